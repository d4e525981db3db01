#!/bin/sh
# Usage: wrapper.sh PROMPT. Prints the answer of claude, or a message and exit code 1.
fail() { echo "wrapper: $1" >&2; exit 1; }
out=$(timeout -k 1 9 claude -p "$1" --output-format json </dev/null) || fail "claude ended with $?"
answer=$(printf '%s' "$out" | jq -ers 'select(length == 1)[0] | select(.is_error == false).result') || fail "no answer"
case $answer in "API Error"*) fail "$answer" ;; esac
printf '%s\n' "$answer"

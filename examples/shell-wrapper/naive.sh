#!/bin/sh
# Usage: naive.sh PROMPT. Prints whatever claude prints: an answer, an error, or half of a line.
echo "answer: $(claude -p "$1" </dev/null)"

#!/bin/sh
# Prepares the table of versions for a new release of the real CLI: downloads it, compares it with
# the version that claudeless plays, plays the corpus with it, and writes a report with draft rows
# for internal/claudecode.
#
#   tests/parity/follow.sh CLAUDELESS VERSION [CASE…]
#
# The report is bin/follow-VERSION.md. The exit code is that of the corpus: 0 if all differences are
# known.
set -eu
cd "$(dirname "$0")/../.."
program=$1
version=$2
shift 2
[ "$#" -gt 0 ] || set -- tests/parity
current=$("$program" version --json | sed -n 's/.*"claude":"\([^"]*\)".*/\1/p')
mkdir -p bin
report=bin/follow-$version.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" parity --retries 1 --between "$current" "$version" "$@" >"$work/between" || true
corpus=0
"$program" parity --retries 2 --claude-version "$version" "$@" >"$work/corpus" || corpus=$?
{
	printf '# claude %s after %s\n\n' "$version" "$current"
	printf '## What changed on the wire\n\n```text\n'
	cat "$work/between"
	printf '```\n\n## Draft rows of internal/claudecode\n\nEach key that is new, for its table in keys.go, init.go or tools.go:\n\n```go\n'
	sed -n "s/^+ \([^ :]*\).*/{\"\1\", \"$version\"},/p" "$work/between" | sort -u
	printf '```\n\n## The corpus\n\n```text\n'
	cat "$work/corpus"
	printf '```\n'
} >"$report"
tail -n 1 "$work/corpus"
echo "report: $report"
exit "$corpus"

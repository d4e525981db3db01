#!/bin/sh
# Compares the corpus with the versions of the real CLI that are claimed, each
# fetched from npm once, pinned, into the user's cache: the cases, and the permission
# decisions about the calls in tests/parity/calls. The last lines are the figures, two
# for each version.
#
#   tests/parity/run.sh CLAUDELESS
#
# If npm's package is not available, the script says so and succeeds; in CI (CI is set)
# that fails. A version that differs keeps no other from being compared. A case that
# differs is compared again: the real CLI races with itself now and then, when a signal
# meets a question for instance.
set -eu
cd "$(dirname "$0")/../.."
program=$1
out=$(mktemp)
trap 'rm -f "$out"' EXIT
worst=0
figures=

# compare LABEL ARGUMENT… runs one comparison and keeps its last line.
compare() {
	label=$1
	shift
	status=0
	"$program" parity --claude-version "$version" --retries 2 "$@" >"$out" || status=$?
	cat "$out"
	if [ "$status" = 77 ]; then
		figures="${figures}$label: skipped: claude $version is not to be had from npm
"
		[ -n "${CI:-}" ] || status=0
	else
		figures="${figures}$label: claude $version: $(tail -n 1 "$out")
"
	fi
	[ "$worst" != 0 ] || worst=$status
}

set --
for file in tests/parity/calls/*.toml; do
	set -- "$@" --permissions "$file"
done
for version in 2.1.329 2.1.330; do
	compare parity tests/parity
	compare permissions "$@"
done
printf %s "$figures"
exit "$worst"

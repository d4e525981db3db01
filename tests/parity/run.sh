#!/bin/sh
# Compares the corpus with the versions of the real CLI that are claimed, each
# fetched from npm once, pinned, into the user's cache. The last lines are the
# figures, one a version.
#
#   tests/parity/run.sh CLAUDELESS
#
# Where npm's package is not to be had it says so and ends well; in CI (CI is set)
# that fails. A version that differs keeps no other from being compared. A case that
# differs is compared again: the real CLI races with itself now and then, when a signal
# meets a question for instance.
set -eu
cd "$(dirname "$0")/../.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT
worst=0
figures=
for version in 2.1.329 2.1.330; do
	status=0
	"$1" parity --claude-version "$version" --retries 2 tests/parity >"$out" || status=$?
	cat "$out"
	if [ "$status" = 77 ]; then
		figures="${figures}parity: skipped: claude $version is not to be had from npm
"
		[ -n "${CI:-}" ] || status=0
	else
		figures="${figures}parity: claude $version: $(tail -n 1 "$out")
"
	fi
	[ "$worst" != 0 ] || worst=$status
done
printf %s "$figures"
exit "$worst"

#!/bin/sh
# Compares the corpus with the versions of the real CLI that are claimed, each
# fetched from npm once, pinned, into the user's cache.
#
#   tests/parity/run.sh CLAUDELESS
#
# Where npm's package is not to be had it says so and ends well; in CI (CI is set)
# that fails.
set -eu
cd "$(dirname "$0")/../.."
for version in 2.1.329 2.1.330; do
	status=0
	"$1" parity --claude-version "$version" tests/parity || status=$?
	if [ "$status" = 77 ] && [ -z "${CI:-}" ]; then
		echo "parity: skipped: claude $version is not to be had from npm"
		continue
	fi
	[ "$status" = 0 ] || exit "$status"
done

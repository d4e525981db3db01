#!/bin/sh
# Compares the corpus with the supported versions of the real CLI: the cases, and the
# permission decisions about the calls in tests/parity/calls. Each version is fetched
# from npm once, into the user's cache. The last lines are the figures, two for each
# version.
#
#   tests/parity/run.sh CLAUDELESS [full]
#
# Without "full" it plays a third: of each directory, sorted by name, the first case
# and every third after it, against the version that claudeless reports. The choice
# depends on names only, so that two runs of one tree compare the same cases.
#
# Fixtures support every revision of MCP. With "full" the cases about MCP are played two
# more times, with fixtures that support a single revision: an older one, and the newest.
# SSE, which the newest revision does not have, and cases about the revision itself are
# left out.
#
# CLAUDE_VERSIONS names other versions for "full".
#
# If the package of npm is not available, the script says so and succeeds; in CI (CI is
# set) it fails. All versions are compared, even if one differs. A case that differs is
# compared again, because the real CLI has races, for instance between a signal and a
# question.
set -eu
cd "$(dirname "$0")/../.."
program=$1
extent=${2:-third}
out=$(mktemp)
trap 'rm -f "$out"' EXIT
worst=0
figures=

# compare LABEL ARGUMENT… runs one comparison and stores its last line.
compare() {
	label=$1
	shift
	status=0
	"$program" parity --claude-version "$version" --retries 2 --verbose "$@" >"$out" || status=$?
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

# third prints its arguments, or the first and every third after it of each directory.
third() {
	[ "$extent" != full ] || { printf '%s\n' "$@"; return; }
	printf '%s\n' "$@" | LC_ALL=C sort | awk -F/ '{ if (n[$(NF - 1)]++ % 3 == 0) print }'
}

cases=tests/parity
versions=${CLAUDE_VERSIONS:-2.1.329 2.1.330}
if [ "$extent" != full ]; then
	cases=$(third tests/parity/*/*.txtar)
	versions=2.1.330
fi
one_revision=$(printf '%s\n' tests/parity/mcp/*.txtar | grep -v -e /sse -e /revision- -e /fault-)
set --
for file in $(third tests/parity/calls/*.toml); do
	set -- "$@" --permissions "$file"
done
for version in $versions; do
	# shellcheck disable=SC2086 # a list of files
	compare parity $cases
	compare permissions "$@"
	[ "$extent" = full ] || continue
	for revision in 2025-11-25 2026-07-28; do
		# shellcheck disable=SC2086 # a list of files
		compare "parity, MCP $revision" --protocol "$revision" $one_revision
	done
done
printf %s "$figures"
exit "$worst"

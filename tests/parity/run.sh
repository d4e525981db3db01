#!/bin/sh
# Compares the corpus with the versions of the real CLI that are claimed, each
# fetched from npm once, pinned, into the user's cache: the cases, and the permission
# decisions about the calls in tests/parity/calls. The last lines are the figures, two
# for each version.
#
#   tests/parity/run.sh CLAUDELESS [full]
#
# Without "full" it plays a third: of each directory, sorted by name, the first case
# and every third after it, against the version that the double reports. The choice
# depends on names only, so that two runs of one tree compare the same cases.
#
# Fixtures speak every revision of MCP. With "full" the cases about MCP are played twice
# more, with fixtures that speak one revision alone: an older one, and the newest. Left
# out are SSE, which the newest does not have, and cases about the revision itself.
#
# CLAUDE_VERSIONS names other versions for "full".
#
# If npm's package is not available, the script says so and succeeds; in CI (CI is set)
# that fails. A version that differs keeps no other from being compared. A case that
# differs is compared again: the real CLI races with itself now and then, when a signal
# meets a question for instance.
set -eu
cd "$(dirname "$0")/../.."
program=$1
extent=${2:-third}
out=$(mktemp)
trap 'rm -f "$out"' EXIT
worst=0
figures=

# compare LABEL ARGUMENT… runs one comparison and keeps its last line.
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

#!/bin/sh
# Prepares the table of versions for a new release of the real CLI: downloads it, compares it with
# the newest version of the table, plays the corpus with it, and writes a report with draft rows
# for internal/claudecode.
#
#   tests/parity/follow.sh CLAUDELESS VERSION [CASE…]
#
# Without cases it compares the two versions by a ninth of the corpus, because changes of the schema
# show in nearly every case, and then plays the whole corpus with the new one. FOLLOW_SINCE names
# another version to compare with; FOLLOW_CORPUS=none leaves the corpus out. A version that is in the
# table already is compared with the one that claudeless plays by default.
#
# The report is bin/follow-VERSION.md. The exit code is that of the corpus: 0 if all differences are
# known.
set -eu
cd "$(dirname "$0")/../.."
program=$1
version=$2
shift 2
sample=$*
if [ "$#" = 0 ]; then
	set -- tests/parity
	sample=$(printf '%s\n' tests/parity/*/*.txtar | LC_ALL=C sort | awk -F/ '{ if (n[$(NF - 1)]++ % 9 == 0) print }')
fi
current=${FOLLOW_SINCE:-$(sed -n 's/.*NewestMeasuredVersion = "\(.*\)"/\1/p' internal/claudecode/profile.go)}
[ "$current" != "$version" ] || current=$("$program" version --json | sed -n 's/.*"claude":"\([^"]*\)".*/\1/p')
mkdir -p bin
report=bin/follow-$version.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# draft prints rows for the schema changes of a report.
draft() {
	awk -v v="$version" '
	/^[a-z]+:$/ { kind = $0; next }
	kind == "options:" && /^~/ { for (i = 3; i <= NF; i++) print "internal/claude/flags/options.go: " $2 " " $i }
	kind == "events:" { print "a type in simulator/protocol: " $1 " " $2 }
	kind == "keys:" {
		path = $2
		sub(/:$/, "", path)
		table = sub(/^stdout\./, "", path) ? "versions.txt, event keys" : sub(/^transcript\./, "", path) ? "versions.txt, transcript keys" : "another surface"
		event = path
		sub(/\..*/, "", event)
		sub(/^[^.]*\./, "", path)
		sub(/\[.*/, "", event)
		sub(/^result\/.*/, "result", event)
		sub(/^control_response\/.*/, "control_response", event)
		sub(/^$/, "agent_metadata", event)
		gsub(/claude-[a-z0-9-]+/, "*", path)
		gsub(/\[\]/, ".*", path)
		print table ": " ($1 == "-" ? "gone: " : "") event " " path "\t" v
	}
	kind == "lists:" {
		key = $2
		sub(/.*\./, "", key)
		for (i = 3; i <= NF && $i ~ /^[-+]/; i++) {
			gone = sub(/^-/, "", $i)
			sub(/^\+/, "", $i)
			row = key == "tools:" ? "{\"Name\":\"" $i "\",\"Listing\":\"always\",\"Unsimulated\":true,\"Since\":\"" v "\"}," : $i "\t" v
			print (key == "tools:" ? "tools.json: " : "versions.txt, " key " ") (gone ? "gone: " : "") row
		}
	}
	kind == "defaults:" && $2 ~ /init[.]plugins/ {
		split($0, side, " → ")
		while (match(side[2], /"name":"[^"]*/)) {
			name = substr(side[2], RSTART + 8, RLENGTH - 8)
			if (!index(side[1], "\"" name "\"")) print "versions.txt, plugins: " name "\t" v
			side[2] = substr(side[2], RSTART + RLENGTH)
		}
	}' "$1" | LC_ALL=C sort -u
}

# shellcheck disable=SC2086 # a list of files
"$program" parity --verbose --between "$current" "$version" $sample >"$work/between" || true
corpus=0
: >"$work/corpus"
[ "${FOLLOW_CORPUS:-}" = none ] || "$program" parity --retries 2 --claude-version "$version" "$@" >"$work/corpus" || corpus=$?
{
	printf '# claude %s after %s\n\n' "$version" "$current"
	printf '## What changed on the wire\n\n```text\n'
	cat "$work/between"
	printf '```\n\n## Draft rows of internal/claudecode\n\n```text\n'
	draft "$work/between"
	printf '```\n\n## The corpus\n\n```text\n'
	cat "$work/corpus"
	printf '```\n'
} >"$report"
tail -n 1 "$work/corpus"
echo "report: $report"
exit "$corpus"

#!/bin/sh
# Runs the server scenarios of the official MCP conformance suite, requirement
# sets 2025-11-25 (M34) and 2026-07-28, against server.toml served by `claudeless
# fixture serve`.
#
#   tests/conformance/server.sh [CLAUDELESS]
#
# CLAUDELESS is the binary; by default it is built. install.sh says where the suite
# is. Exit 0 = all scored scenarios passed: 30 and 37. No failure is expected.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

main=$("$here/install.sh")

"$bin" fixture serve "$here/server.toml" --http 127.0.0.1:0 --port-file "$tmp/port" >/dev/null 2>"$tmp/serve.log" &
server=$!
up
for set in 2025-11-25:30 2026-07-28:37; do
	revision=${set%:*} required=${set#*:}
	node "$main" server --url "http://127.0.0.1:$port/mcp" --requirements "$revision" -o "$tmp/$revision" >"$tmp/log" 2>&1 || {
		cat "$tmp/log"
		echo "conformance: the suite reports failures of $revision" >&2
		exit 1
	}
	# The summary has one line for each scenario, and an indented one for those that are not scored.
	all=$(grep -c -e '^✓ ' -e '^✗ ' "$tmp/log")
	unscored=$(grep -c -e '^  ✓ ' -e '^  ✗ ' "$tmp/log" || true)
	echo "conformance: $((all - unscored)) of $required server scenarios of $revision passed"
	[ $((all - unscored)) -eq "$required" ] || { cat "$tmp/log"; exit 1; }
done

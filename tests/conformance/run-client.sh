#!/bin/sh
# Runs the client scenarios of the official MCP conformance suite, requirement
# set 2025-11-25, with `claudeless -p` as the client (client.sh).
#
#   tests/conformance/run-client.sh [CLAUDELESS]
#
# CLAUDELESS is the binary; without it, it is built. install.sh says where the
# suite is. Exit 0 = what fails is exactly client/expected-failures.yml, and the
# unscored scenario json-schema-2020-12-preservation passes too.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM

CLAUDELESS=${1:-}
if [ -z "$CLAUDELESS" ]; then
	CLAUDELESS=$tmp/claudeless
	(cd "$here/../.." && go build -o "$CLAUDELESS" ./cmd/claudeless)
fi
export CLAUDELESS CONFORMANCE_HOME="$tmp/home"
mkdir "$CONFORMANCE_HOME"
main=$("$here/install.sh")

# client runs scenarios; what the suite prints is shown only if they fail.
client() {
	node "$main" client --command "$here/client.sh" "$@" -o "$tmp/out" >"$tmp/log" 2>&1 || {
		tail -60 "$tmp/log"
		echo "conformance: client: $* failed" >&2
		exit 1
	}
}

client --requirements 2025-11-25 --expected-failures "$here/client/expected-failures.yml"
grep '^✓' "$tmp/log" | grep -v ' auth/'
client --scenario json-schema-2020-12-preservation
echo "conformance: client scenarios of 2025-11-25: all but the expected failures passed"

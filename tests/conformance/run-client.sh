#!/bin/sh
# Runs the client scenarios of the official MCP conformance suite, requirement
# sets 2025-11-25 and 2026-07-28, with `claudeless` as the client (client.sh).
#
#   tests/conformance/run-client.sh [CLAUDELESS]
#
# CLAUDELESS is the binary; by default it is built. install.sh says where the suite
# is. Exit 0 = all scored scenarios passed, and the unscored ones listed below: a
# schema that is preserved, and logins that the real CLI does not have.
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

# client runs scenarios and shows the suite's output only if they fail.
client() {
	node "$main" client --timeout 120000 --command "$here/client.sh" "$@" -o "$tmp/out" >"$tmp/log" 2>&1 || {
		tail -60 "$tmp/log"
		echo "conformance: client: $* failed" >&2
		exit 1
	}
}

for revision in 2025-11-25 2026-07-28; do
	client --requirements "$revision"
	echo "conformance: all scored client scenarios of $revision passed"
done
for scenario in json-schema-2020-12-preservation auth/client-credentials-basic auth/client-credentials-jwt auth/dpop auth/dpop-nonce; do
	client --scenario "$scenario"
	echo "conformance: $scenario passed"
done

#!/bin/sh
# The client under test, as the conformance suite runs it: the URL of the
# suite's server is the last argument, the name of the scenario is in
# MCP_CONFORMANCE_SCENARIO. client/SCENARIO.toml plays the model. If that file does
# not exist, client/default.toml does, which only connects and disconnects.
#
# Scenarios about authorization log in first, and once more when a call needs more
# permissions. Each has a separate home directory.
#
# CLAUDELESS is the binary (default: claudeless in PATH), CONFORMANCE_HOME an
# empty directory that replaces the user's home.
set -eu

for url; do :; done
here=$(cd "$(dirname "$0")" && pwd)
script=$here/client/$MCP_CONFORMANCE_SCENARIO.toml
[ -f "$script" ] || script=$here/client/default.toml
export HOME="$CONFORMANCE_HOME" MCP_TOOL_TIMEOUT=20000
claudeless=${CLAUDELESS:-claudeless}

# run connects to the server and plays the scenario.
run() {
	"$claudeless" -p go --output-format stream-json --verbose \
		--strict-mcp-config --mcp-config "{\"mcpServers\":{\"conf\":{\"type\":\"http\",\"url\":\"$url\"}}}" \
		--allowedTools 'mcp__conf__*' --scenario "$script" </dev/null
}

case $MCP_CONFORMANCE_SCENARIO in
auth/*) ;;
*)
	run
	exit
	;;
esac

HOME=$(mktemp -d "$CONFORMANCE_HOME/auth.XXXXXX")
cd "$HOME"
# member prints a text of the JSON object that the suite gives some scenarios.
member() { printf %s "${MCP_CONFORMANCE_CONTEXT:-}" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
MCP_CLIENT_SECRET=$(member client_secret)
[ -n "$MCP_CLIENT_SECRET" ] || MCP_CLIENT_SECRET=$(printf %b "$(member private_key_pem)")
export MCP_CLIENT_SECRET
id=$(member client_id)
# The suite names the client metadata document that clients must use.
[ "$MCP_CONFORMANCE_SCENARIO" != auth/basic-cimd ] || id=https://conformance-test.local/client-metadata.json
if [ -n "$MCP_CLIENT_SECRET" ]; then
	"$claudeless" mcp add --transport http conf "$url" --client-id "$id" --client-secret
elif [ -n "$id" ]; then
	"$claudeless" mcp add --transport http conf "$url" --client-id "$id"
else
	"$claudeless" mcp add --transport http conf "$url"
fi
"$claudeless" mcp login conf --auto
if ! run >out 2>&1 || grep -q 'needs additional permissions' out; then
	cat out
	"$claudeless" mcp login conf --auto
	run
else
	cat out
fi

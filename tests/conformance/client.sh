#!/bin/sh
# The client under test, as the conformance suite runs it: the URL of the
# suite's server is the last argument, the name of the scenario is in
# MCP_CONFORMANCE_SCENARIO. The model's side is client/SCENARIO.toml; a scenario
# without one gets client/default.toml, which connects and says goodbye.
#
# CLAUDELESS is the binary (default: claudeless in PATH), CONFORMANCE_HOME an
# empty directory in place of the user's own.
set -eu

for url; do :; done
here=$(cd "$(dirname "$0")" && pwd)
script=$here/client/$MCP_CONFORMANCE_SCENARIO.toml
[ -f "$script" ] || script=$here/client/default.toml
export HOME="$CONFORMANCE_HOME" MCP_TOOL_TIMEOUT=20000
exec "${CLAUDELESS:-claudeless}" -p go --output-format stream-json --verbose \
	--strict-mcp-config --mcp-config "{\"mcpServers\":{\"conf\":{\"type\":\"http\",\"url\":\"$url\"}}}" \
	--allowedTools 'mcp__conf__*' --scenario "$script" </dev/null

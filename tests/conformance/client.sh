#!/bin/sh
# The client under test, as the conformance suite runs it: the URL of the
# suite's server is the last argument, the name of the scenario is in
# MCP_CONFORMANCE_SCENARIO. The model's side is client/SCENARIO.toml; a scenario
# without one gets client/default.toml, which connects and says goodbye.
#
# CLAUDELESS is the binary (default: claudeless in PATH).
set -eu

for url; do :; done
here=$(cd "$(dirname "$0")" && pwd)
script=$here/client/$MCP_CONFORMANCE_SCENARIO.toml
[ -f "$script" ] || script=$here/client/default.toml

# Nothing of the user's own configuration has a say: the state goes into a
# directory that lives as long as the run.
HOME=$(mktemp -d)
export HOME
trap 'rm -rf "$HOME"' EXIT

case ${MCP_CONFORMANCE_PROTOCOL_VERSION:-} in
2026-*) export MCP_PROTOCOL_NEGOTIATION=auto ;;
esac
"${CLAUDELESS:-claudeless}" -p go --output-format stream-json --verbose \
	--strict-mcp-config --mcp-config "{\"mcpServers\":{\"conf\":{\"type\":\"http\",\"url\":\"$url\"}}}" \
	--allowedTools 'mcp__conf__*' --scenario "$script" </dev/null

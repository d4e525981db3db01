#!/bin/sh
# Installs the official MCP conformance suite, with a pinned version, unless it is
# installed already, and prints the path of its program.
#
#   tests/conformance/install.sh [DIR]
#
# DIR is CONFORMANCE_DIR or a place in the user's cache directory, where the
# suite stays. Needs node 20 or newer and npm.
set -eu

version=0.2.0-alpha.12
dir=${1:-${CONFORMANCE_DIR:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/claudeless-interop/conformance-$version}}
main=$dir/node_modules/@modelcontextprotocol/conformance/dist/index.js
if [ ! -f "$main" ]; then
	mkdir -p "$(dirname "$dir")"
	new=$(mktemp -d "$dir.XXXXXX") # an interrupted install leaves no partial suite
	trap 'rm -rf "$new"' EXIT
	(cd "$new" && npm install --silent --no-audit --no-fund --no-package-lock --prefix . "@modelcontextprotocol/conformance@$version") >&2
	# The suite imports fs.globSync, which node has since version 22; the
	# scenarios that are run here do not use it.
	sed -i.orig -e '2s/globSync as a,//' -e '2a\
const a=()=>[];' "$new/node_modules/@modelcontextprotocol/conformance/dist/index.js"
	rm -rf "$dir"
	mv "$new" "$dir"
fi
echo "$main"

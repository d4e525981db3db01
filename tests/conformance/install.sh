#!/bin/sh
# Installs the official MCP conformance suite, pinned, into a directory unless
# it is there already, and prints the path of its program.
#
#   tests/conformance/install.sh DIR
#
# Needs node 20 or newer and npm.
set -eu

suite=@modelcontextprotocol/conformance@0.2.0-alpha.12
dir=$1
main=$dir/node_modules/@modelcontextprotocol/conformance/dist/index.js
if [ ! -f "$main" ]; then
	mkdir -p "$dir"
	(cd "$dir" && npm install --silent --no-audit --no-fund --no-package-lock --prefix . "$suite") >&2
fi
# The suite imports fs.globSync, which node has since version 22; the scenarios
# that are run here do not use it.
if ! node -e 'process.exit(require("fs").globSync ? 0 : 1)' && ! grep -q '^const a=()=>\[\];$' "$main"; then
	sed -i.orig -e '2s/globSync as a,//' -e '2a\
const a=()=>[];' "$main"
fi
echo "$main"

#!/usr/bin/env bash
# Builds the packages from the tree as users install them, and runs their tests: check.sh BINARY
# Test libraries have pinned versions and stay in the cache directory. If a registry cannot be reached, the check is skipped
# with a message; in CI (CI=true) it fails.
set -euo pipefail
binary=$(realpath "${1:?usage: check.sh BINARY}"); cd "$(dirname "$0")"; here=$PWD
cache=${XDG_CACHE_HOME:-$HOME/.cache}/claudeless-packages; mkdir -p "$cache"
work=$(mktemp -d); trap 'wait; rm -rf "$work"' EXIT; trap 'trap - INT TERM; kill 0' INT TERM
give_up() { [ -z "${CI:-}" ] || { echo "packages: $1" >&2; exit 1; }; echo "packages: skipped: $1"; }

python() {
  local venv=$cache/python-2
  [ -x "$venv/bin/mypy" ] || { rm -rf "$venv"; python3 -m venv "$venv" &&
    "$venv/bin/pip" -q install --disable-pip-version-check pytest==8.4.2 pytest-xdist==3.8.0 mypy==1.18.2 hatchling==1.27.0 taplo==0.9.3 claude-agent-sdk anthropic; } ||
    { rm -rf "$venv"; give_up "the test libraries of Python cannot be had"; return; }
  CLAUDELESS_BIN=$binary "$venv/bin/pip" -q wheel --disable-pip-version-check --no-build-isolation --no-deps -w "$work/wheels" "$here/python"
  "$venv/bin/pip" -q install --disable-pip-version-check --force-reinstall --no-deps "$work"/wheels/*.whl
  (cd "$here/python" && "$venv/bin/mypy" && env -u CLAUDELESS_BIN "$venv/bin/python" -m pytest -q -p no:cacheprovider tests)
  pages "pytest" "$venv/bin"
  (cd "$here/.." && TAPLO=$venv/bin/taplo go test -count=1 ./tests/docs -run '^TestTaplo$') && echo "packages: Taplo accepts the library"
}

servers() { # the examples of MCP servers in Python, with what their requirements.txt pins
  local pins=$here/../examples/fastmcp-server/requirements.txt venv
  venv=$cache/servers-$(sha256sum < "$pins" | cut -c-12)
  [ -x "$venv/bin/fastmcp" ] || { rm -rf "$venv"; python3 -m venv "$venv" && "$venv/bin/pip" -q install --disable-pip-version-check -r "$pins"; } ||
    { rm -rf "$venv"; give_up "FastMCP cannot be had"; return; }
  pages "fastmcp" "$venv/bin"
}

# pages runs the examples of the documents and of examples/ that need these runners: pages RUNNERS BIN [NODE_MODULES]
pages() {
  (cd "$here/.." && PATH=$2:$PATH PAGES_RUNNERS=$1 PAGES_NODE_MODULES=${3:-} go test -count=1 ./tests/docs -run '^Test(Pages|Examples)$') && echo "packages: the examples for $1 do what they say"
}

npm_() {
  mkdir -p "$work/user"; install -D "$binary" "$work/binaries/$(go env GOHOSTOS)_$(go env GOHOSTARCH)/claudeless"
  node "$here/npm/pack.mjs" "$work/user" "$work/binaries" || { give_up "the compiler of npm cannot be had"; return; }
  cd "$work/user" && echo '{"type":"module"}' > package.json
  npm install --silent --no-audit --no-fund --omit=peer --cache "$cache/npm" ./*.tgz vitest@3.2.4 jest@30.5.2 @anthropic-ai/sdk@1.12.0 \
    @anthropic-ai/claude-agent-sdk@0.3.330 @agentclientprotocol/claude-agent-acp@0.101.0 @copilotkit/aimock@1.43.0
  mkdir test && for t in scripted conformance; do
    sed 's#"\.\./dist/index\.js"#"claudeless"#g; s#"\.\./dist/node-test\.js"#"claudeless/node-test"#; s#"\.\./dist/matchers\.js"#"../node_modules/claudeless/dist/matchers.js"#' \
      "$here/npm/test/$t.test.mjs" > "test/$t.test.mjs"
  done
  CONFORMANCE_SCRIPTS=$here/conformance/scripts.json env -u CLAUDELESS_BIN node --test test/
  pages "vitest jest node aimock" "$work/user/node_modules/.bin" "$work/user/node_modules"
}

directory() { # npm installs the package from its directory without a compiler, and its types do not need those of Node
  rm -rf "$work/dir" "$work/dir-user"; mkdir -p "$work/dir" "$work/dir-user"
  tar -C "$here/npm" --exclude=node_modules --exclude=dist -cf - . | tar -C "$work/dir" -xf -
  cd "$work/dir-user" && echo '{"type":"module"}' > package.json
  npm install --silent --no-audit --no-fund --omit=optional --omit=peer --cache "$cache/npm" ../dir
  cp "$here/npm/test/types.ts" .
  echo '{"compilerOptions":{"noEmit":true,"strict":true,"target":"es2022","lib":["es2022"],"module":"nodenext","types":[]},"files":["types.ts"]}' > tsconfig.json
  node "$work/dir/node_modules/typescript/bin/tsc" -p .
  CLAUDELESS_BIN=/nowhere/claudeless node --input-type=module -e 'import { scriptedClaude } from "claudeless"; await scriptedClaude("x").then(() => process.exit(1), (error) => process.exit(error.message.startsWith("CLAUDELESS_BIN names /nowhere/claudeless") ? 0 : 1))'
  echo "packages: npm install from the directory works"
}

lanes() { # the same script in both lanes; the real claude is that of npm's Agent SDK, with only loopback as its network if possible
  local claude=("$work"/user/node_modules/@anthropic-ai/claude-agent-sdk-*/claude) alone=()
  [ -x "${claude[0]}" ] || { give_up "npm's Agent SDK brings no real claude here"; return; }
  unshare -rn ip link set lo up 2>/dev/null && alone=(unshare -rn sh -c 'ip link set lo up && exec "$@"' sh)
  (cd "$here/python" && HOME=$work CLAUDE_BIN=${claude[0]} "${alone[@]}" "$cache/python-2/bin/python" -m pytest -q -p no:cacheprovider tests/test_real.py)
}

# Python and npm run at the same time, because installations and test runners mostly wait. The output of npm follows that of Python.
{ (npm_); (directory); } >"$work/npm.log" 2>&1 & npm=$!
python; servers
wait "$npm" || { status=$?; cat "$work/npm.log"; exit "$status"; }
cat "$work/npm.log"
lanes; pages go "$(go env GOROOT)/bin"

#!/usr/bin/env bash
# Makes the release twice and compares the bytes. Then it installs each artefact as a user does, in an environment that is
# as clean as possible (an empty home, empty caches, one language on PATH), runs a test that passes and one that fails, and
# requires that this takes less than three minutes.
set -euo pipefail
cd "$(dirname "$0")/.."; root=$PWD
version=$(cat internal/cli/version.txt)
work=$(mktemp -d); trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

sums() { (cd dist && find . -type f -exec sha256sum {} + | LC_ALL=C sort -k2); }
packages/release.sh; sums > "$work/first"
packages/release.sh; sums > "$work/second"
diff "$work/first" "$work/second" || { echo "release-check: two releases of the same tree have different bytes" >&2; exit 1; }
echo "release-check: $(wc -l < "$work/first") files are the same bytes twice"
(cd dist && sha256sum --check --quiet --strict SHA256SUMS)

os=$(go env GOHOSTOS) arch=$(go env GOHOSTARCH) platform=$(node -p 'process.platform + "-" + process.arch')
mkdir "$work/bin"
for tool in sh bash env cat chmod cp ls rm mkdir mktemp dirname basename uname grep sed tar gzip git; do ! path=$(command -v $tool) || ln -s "$path" "$work/bin/"; done

# The settings that name proxies, certificates and registries are those of the machine.
mapfile -t network < <(env | grep -iE '^(https?_proxy|no_proxy|ssl_cert_(file|dir)|pip_cert|node_extra_ca_certs|requests_ca_bundle)=' || true)
network+=("NPM_CONFIG_USERCONFIG=$(npm config get userconfig 2>/dev/null)")

# busy prints how many seconds the processors of this machine have worked so far (Linux; elsewhere 0).
busy() { if [ -r /proc/stat ]; then awk '/^cpu /{printf "%.2f", ($2+$3+$4+$7+$8+$9)/100}' /proc/stat; else echo 0; fi; }

# clean NAME PATH runs the function NAME in an empty directory with only PATH and the basic tools, and measures its time. The time
# in which other programs used the processors is subtracted.
clean() {
  mkdir -p "$work/$1/home"
  local before after real user sys seconds TIMEFORMAT='%R %U %S'
  before=$(busy)
  { time (cd "$work/$1" && env -i HOME="$work/$1/home" PATH="$2:$work/bin" GOPROXY="$(go env GOPROXY)" GOFLAGS=-mod=mod GOTOOLCHAIN=local DOCKER_HOST="${DOCKER_HOST-}" "${network[@]}" \
    root="$root" version="$version" os="$os" arch="$arch" platform="$platform" bash -euo pipefail -c "$(declare -f "$1" fails); $1" 2>&3); } 3>&2 2>"$work/$1/time"
  after=$(busy)
  read -r real user sys < "$work/$1/time"
  seconds=$(awk -v all="$before $after" -v real="$real" -v own="$user $sys" -v cores="$(getconf _NPROCESSORS_ONLN)" \
    'BEGIN { split(all, a, " "); split(own, o, " "); others = a[2] - a[1] - o[1] - o[2]; printf "%.0f", real - (others > 0 ? others / cores : 0) }')
  echo "release-check: ${1#with_}: a green and a red test in $seconds s ($real s on the clock, $user s + $sys s of processor time)"
  [ "$seconds" -lt 180 ] || { echo "release-check: ${1#with_} took more than three minutes" >&2; exit 1; }
}

# fails WORDS CMD… requires that CMD fails and says WORDS.
fails() {
  local words=$1 out; shift
  if out=$("$@" 2>&1); then echo "release-check: $* is green: $out" >&2; return 1; fi
  grep -qF "$words" <<< "$out" || { echo "release-check: $* does not say \"$words\": $out" >&2; return 1; }
}

with_archive() {
  tar -xzf "$root/dist/claudeless_${version}_${os}_$arch.tar.gz"
  PATH=$PWD/claudeless_${version}_${os}_$arch:$PATH
  claudeless init
  claudeless exec -s claudeless.toml --mcp-config claudeless.mcp.json -- claude -p "What is the weather in Oslo?" --allowedTools mcp__weather
  fails "answered no prompt" claudeless exec -s claudeless.toml --strict -- claude -p Hello
}

with_python() {
  python3 -m venv venv
  venv/bin/pip install -q --disable-pip-version-check --find-links "$root/dist" --only-binary claudeless "claudeless==$version" pytest
  cat > test_green.py <<'EOF'
import subprocess

def test_triage(claude):
    claude.on("triage", "Parser bug.")
    assert subprocess.run(["claude", "-p", "triage"], capture_output=True, text=True).stdout == "Parser bug.\n"
EOF
  printf 'def test_triage(claude):\n    claude.on("triage", "Parser bug.")\n' > test_red.py
  venv/bin/pytest -q test_green.py
  fails 'test_red.py:2: expected the rule' venv/bin/pytest -q test_red.py
}

with_node() {
  echo '{"type":"module"}' > package.json
  npm install --silent --no-audit --no-fund --omit=peer --no-save "$root/dist/claudeless-$version.tgz" "$root/dist/claudeless-$platform-$version.tgz"
  cat > green.test.js <<'EOF'
import { execFileSync } from "node:child_process";
import assert from "node:assert/strict";
import { test } from "node:test";
import { scriptedClaude } from "claudeless";
import "claudeless/node-test";

test("triage", async () => {
  await using claude = await scriptedClaude(["Parser bug."]);
  assert.equal(execFileSync("claude", ["-p", "triage"], { env: claude.env, input: "", encoding: "utf8" }), "Parser bug.\n");
});
EOF
  sed '/execFileSync("claude"/d; s/await using claude = //' green.test.js > red.test.js
  # Node before 24 does not know `await using`, which TypeScript and the bundlers translate.
  sed -i 's/await using claude =/const claude =/' green.test.js
  node --test green.test.js
  fails 'red.test.js:8: expected' node --test red.test.js
}

with_go() {
  tar -xzf "$root/dist/claudeless_${version}_source.tar.gz"
  go mod init example >/dev/null 2>&1
  go mod edit -require "github.com/claudeless/claudeless@v$version" -replace "github.com/claudeless/claudeless=./claudeless_$version"
  cat > green_test.go <<'EOF'
package example

import (
	"os/exec"
	"testing"

	"github.com/claudeless/claudeless/simtest"
)

func TestGreen(t *testing.T) {
	simtest.New(t, "Parser bug.")
	if out, err := exec.Command("claude", "-p", "triage").Output(); err != nil || string(out) != "Parser bug.\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestRed(t *testing.T) {
	simtest.New(t, "Parser bug.")
}
EOF
  go mod tidy 2>/dev/null
  go test -run TestGreen .
  fails 'claude was never started' go test -run TestRed .
}

# with_image needs Docker, or Buildah, which runs the image without a daemon in a directory of its own.
with_image() {
  printf '[[responses]]\npattern = { type = "any" }\nresponse = "Parser bug."\n\n[[expect]]\nprompt = { type = "exact", text = "triage" }\n' > s.toml
  chmod 755 . "$HOME"
  if command -v docker >/dev/null; then
    docker build -q --build-arg "TARGETPLATFORM=linux/$arch" -t claudeless:check "$root/dist/image"
    # Without --rm: some services with the API of Docker lose the exit code of a container that removes itself.
    run() { rm -f cid; docker run --cidfile cid --user 1000 -v "$PWD:/work" -w /work claudeless:check "$@"; local code=$?; docker rm "$(cat cid)" >/dev/null; return $code; }
  else
    export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
    buildah bud -q --build-arg "TARGETPLATFORM=linux/$arch" -t localhost/claudeless:check "$root/dist/image"
    container=$(buildah from --pull-never localhost/claudeless:check)
    trap 'buildah rm "$container" >/dev/null; buildah rmi localhost/claudeless:check >/dev/null' EXIT
    run() { buildah run --user 1000 -v "$PWD:/work" --workingdir /work "$container" -- /usr/local/bin/claudeless "$@"; }
  fi
  # The user of the container may not be root; the session is saved below /tmp, and stderr is empty.
  [ "$(run -p triage --scenario s.toml --expect 2>&1)" = "Parser bug." ]
  fails 'expected a prompt' run -p other --scenario s.toml --expect
}

mkdir "$work/node-bin" && for tool in node npm npx; do ln -s "$(command -v $tool)" "$work/node-bin/"; done
clean with_archive ""
clean with_python "$(dirname "$(python3 -c 'import sys; print(sys.executable)')")"
clean with_node "$work/node-bin"
clean with_go "$(go env GOROOT)/bin"
if docker info >/dev/null 2>&1; then
  ln -s "$(command -v docker)" "$work/bin/docker"; clean with_image ""
elif command -v buildah >/dev/null; then
  ln -s "$(command -v buildah)" "$work/bin/buildah"; clean with_image ""
else
  echo "release-check: image: skipped, no Docker daemon is running and there is no buildah"
fi

#!/bin/sh
# Runs the tests that the Anthropic SDKs have for messages and models against
# `claudeless serve`: those of the Python SDK from its source distribution, those of
# the Go module from the module cache.
#
#   tests/conformance/api.sh [CLAUDELESS]
#
# CLAUDELESS is the binary; by default it is built. Downloads have pinned versions and
# stay in CONFORMANCE_DIR, or in the user's cache directory. Exit 0 = all tests passed.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
python=2.12.0
golang=v1.84.0
cache=${CONFORMANCE_DIR:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/claudeless-interop}
. "$here/common.sh"

sdk=$cache/anthropic-python-$python
if [ ! -f "$sdk/installed" ]; then
	rm -rf "$sdk" && mkdir -p "$sdk"
	python3 -m venv "$sdk/venv"
	"$sdk/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary :all: --dest "$sdk" "anthropic==$python"
	tar -xzf "$sdk/anthropic-$python.tar.gz" -C "$sdk"
	"$sdk/venv/bin/pip" install --quiet --disable-pip-version-check "anthropic[aiohttp] @ file://$sdk/anthropic-$python.tar.gz" \
		pytest==9.0.3 pytest-asyncio==1.3.0 pytest-xdist==3.8.0 respx==0.22.0 inline-snapshot==0.32.5 "http-snapshot[httpx]==0.1.9" \
		httpx2==2.9.1 rich==14.3.3 time-machine==3.2.0 dirty-equals==0.11
	touch "$sdk/installed"
fi

"$bin" serve echo --port-file "$tmp/port" 2>"$tmp/serve.log" &
server=$!
up
TEST_API_BASE_URL=http://127.0.0.1:$port
export TEST_API_BASE_URL

(cd "$sdk/anthropic-$python" && "$sdk/venv/bin/python" -m pytest -q -n0 -p no:cacheprovider \
	tests/api_resources/test_messages.py tests/api_resources/test_models.py \
	tests/api_resources/beta/test_messages.py tests/api_resources/beta/test_models.py) >"$tmp/python.log" 2>&1 || {
	tail -40 "$tmp/python.log"
	echo "conformance: tests of the Python SDK fail" >&2
	exit 1
}
echo "conformance: Python SDK $python: $(tail -1 "$tmp/python.log")"

mkdir "$tmp/go"
(
	cd "$tmp/go"
	go mod init conformance
	go get -t "github.com/anthropics/anthropic-sdk-go@$golang"
	go test -count=1 -v -run '^Test(Beta)?(Message|Model|Accumulate)' -skip Batch github.com/anthropics/anthropic-sdk-go
) >"$tmp/go.log" 2>&1 || {
	tail -40 "$tmp/go.log"
	echo "conformance: tests of the Go SDK fail" >&2
	exit 1
}
if grep -q -e '--- SKIP' "$tmp/go.log"; then
	grep -e '--- SKIP' -A2 "$tmp/go.log"
fi
echo "conformance: Go SDK $golang: $(grep -c -e '^--- PASS' "$tmp/go.log") passed"

#!/usr/bin/env bash
# Checks other systems than this one: all tests are built for them, and the tests of packages that use neither processes nor
# files can run on them.
#
#   tests/portable.sh          vet and build every test for Windows and macOS, run nothing
#   tests/portable.sh run      run the tests of these packages here
#   tests/portable.sh wine     run their Windows binaries with wine
set -euo pipefail
cd "$(dirname "$0")/.."

# portable lists the packages whose tests start no process, open no port and write no file.
portable() {
  go list -f '{{.ImportPath}} {{.Dir}}{{range .TestImports}} {{.}}{{end}}{{range .XTestImports}} {{.}}{{end}}' ./... | while read -r package dir imports; do
    [ -n "$imports" ] && ! grep -q 'TempDir()' "$dir"/*_test.go || continue
    # shellcheck disable=SC2086 # a list of packages
    go list -deps "$package" $imports 2>/dev/null | grep -qE '^(os/exec|net/http/httptest|.*/internal/base/proc)$' || echo "$package"
  done
}

case ${1:-} in
"")
  for os in windows darwin; do
    GOOS=$os go vet ./...
    GOOS=$os go test -exec=true ./... >/dev/null
    echo "portable: every test builds for $os"
  done ;;
run) go test $(portable) ;;
wine)
  command -v wine >/dev/null || { echo "portable: wine is not installed" >&2; exit 1; }
  export WINEDEBUG=-all WINEPREFIX; WINEPREFIX=$(mktemp -d); trap 'wineserver -k 2>/dev/null; rm -rf "$WINEPREFIX"' EXIT
  GOOS=windows GOARCH=amd64 go test -exec wine $(portable) ;;
*) echo "usage: tests/portable.sh [run|wine]" >&2; exit 2 ;;
esac

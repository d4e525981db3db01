#!/bin/sh
# Runs tests under the race detector: those of the given packages, or of the
# packages that start goroutines or use package sync, in their code or their tests.
# The packages in tests are left out, because the packages below them are tested
# here. The detector makes some tests ten times slower: a package that fails without
# a data race is run once more, alone, and must pass then.
set -u
cd "$(dirname "$0")/.."
export CGO_ENABLED=1 # the detector needs it

# concurrent lists the packages with concurrency.
concurrent() {
	files='{{.ImportPath}}{{$d := .Dir}}{{range .GoFiles}} {{$d}}/{{.}}{{end}}{{range .TestGoFiles}} {{$d}}/{{.}}{{end}}{{range .XTestGoFiles}} {{$d}}/{{.}}{{end}}'
	go list -f "$files" ./... | grep -v '^[^ ]*/tests[/ ]' | while read -r package sources; do
		# shellcheck disable=SC2086 # a list of files
		! grep -qE '^[[:space:]]+go (func|[a-zA-Z])|\.Go\(|^[[:space:]]+"sync' $sources </dev/null || echo "$package"
	done
}

[ $# -gt 0 ] || set -- $(concurrent)
echo "race: $# packages or patterns"
log=$(mktemp)
trap 'rm -f "$log" "$log.status"' EXIT
{ go test -race -shuffle=on -timeout 30m "$@" 2>&1; echo "exit $?" >"$log.status"; } | tee "$log"
status=$(sed 's/exit //' "$log.status")
[ "$status" != 0 ] || exit 0
failed=$(sed -n 's/^FAIL[[:space:]]\{1,\}\(github\.com[^[:space:]]*\)[[:space:]].*s$/\1/p' "$log")
if grep -q 'DATA RACE\|\[build failed\]\|\[setup failed\]' "$log" || [ -z "$failed" ]; then
	exit "$status"
fi
echo "race: once more, alone:" $failed
go test -race -count=1 -p 1 -timeout 30m $failed

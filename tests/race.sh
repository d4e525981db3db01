#!/bin/sh
# Runs every test under the race detector. It slows some tests tenfold: a package
# that fails without a data race is run once more, alone, and has to pass then.
set -u
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ go test -race -shuffle=on -timeout 30m ./... 2>&1; echo "exit $?" >"$log.status"; } | tee "$log"
status=$(sed 's/exit //' "$log.status")
rm -f "$log.status"
[ "$status" != 0 ] || exit 0
failed=$(sed -n 's/^FAIL[[:space:]]\{1,\}\(github\.com[^[:space:]]*\)[[:space:]].*s$/\1/p' "$log")
if grep -q 'DATA RACE\|\[build failed\]\|\[setup failed\]' "$log" || [ -z "$failed" ]; then
	exit "$status"
fi
echo "race: once more, alone:" $failed
go test -race -count=1 -p 1 -timeout 30m $failed

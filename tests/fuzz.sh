#!/bin/sh
# Runs every fuzz target of the tree for FUZZTIME, a number of runs such as 10000x.
# FuzzRules starts a shell for each run, so it gets fewer.
set -eu
cd "$(dirname "$0")/.."
grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do
	dir=$(dirname "$file")
	sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while read -r target; do
		runs=${FUZZTIME:-10000x}
		[ "$target" != FuzzRules ] || runs=300x
		echo "fuzz $dir $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$runs" "$dir"
	done
done

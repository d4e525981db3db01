#!/bin/sh
# Usage: replicas.sh [--state-dir DIR]. Sends a request to three replicas behind HAProxy, stops one replica, and sends another request.
dir=$(mktemp -d)
trap 'kill $pids 2>/dev/null; rm -rf "$dir"' EXIT
for name in a b c; do
  claudeless serve triage.toml --port-file "$dir/$name" "$@" 2>>"$dir/log" &
  pids="$pids $!" first=${first:-$!}
done
for name in a b c; do
  until [ -s "$dir/$name" ]; do sleep 0.05; done
done
A=$(cat "$dir/a") B=$(cat "$dir/b") C=$(cat "$dir/c")
BALANCER=$((20000 + $$ % 10000))
export A B C BALANCER ANTHROPIC_BASE_URL="http://127.0.0.1:$BALANCER"
haproxy -f haproxy.cfg 2>>"$dir/log" &
pids="$pids $!"
until curl -sf -o "$dir/health" "$ANTHROPIC_BASE_URL/_claudeless/health"; do sleep 0.05; done
./ask.sh "triage issue 7" || exit 1
kill "$first" && ./ask.sh "triage issue 8" && ./ask.sh "triage issue 8"

#!/bin/sh
# Usage: orchestrate.sh TASK…. Types each task into a separate claude in tmux, accepts its permission dialogs, and prints its answer.
dir=$(mktemp -d)
trap 'tm kill-server 2>/dev/null; rm -rf "$dir"' EXIT
tm() { tmux -u -S "$dir/tmux" "$@"; }
screen() { tm capture-pane -p -t "$1"; }
wait_for() { until screen "$1" | grep -qF "$2"; do sleep 0.1; done; }
answered() { screen "$1" | grep -q '^● ' && screen "$1" | grep -qF "? for shortcuts"; } # idle again, not idle still

n=0
for task; do
  n=$((n + 1))
  tm new-session -d -s "agent$n" -x 100 -y 30 claude --permission-mode default
  wait_for "agent$n" "? for shortcuts" # it is idle
  tm send-keys -t "agent$n" -l "$task"
  wait_for "agent$n" "$task"
  tm send-keys -t "agent$n" Enter
done
for i in $(seq "$n"); do
  until answered "agent$i"; do
    if screen "agent$i" | grep -qF "1. Yes"; then tm send-keys -t "agent$i" Enter; fi
    sleep 0.1
  done
  echo "agent $i: $(screen "agent$i" | sed -n 's/^● //p' | tail -n 1)"
  tm send-keys -t "agent$i" -l /exit
  wait_for "agent$i" "/exit"
  tm send-keys -t "agent$i" Enter
  while tm has-session -t "agent$i" 2>/dev/null; do sleep 0.1; done
done

#!/bin/sh
# Usage: orchestrate.sh TASK…. Runs one claude for each task, each in its own tmux window, and prints the answers in order.
dir=$(mktemp -d) && server=$dir/tmux
trap 'tmux -S "$server" kill-server; rm -rf "$dir"' EXIT
tmux -S "$server" new-session -d -s agents # a shell that keeps the session open
n=0
for task; do
  n=$((n + 1))
  printf '%s' "$task" >"$dir/task.$n"
  tmux -S "$server" new-window -d "claude -p \"\$(cat $dir/task.$n)\" >$dir/answer.$n; echo \$? >$dir/code.$n; tmux -S $server wait-for -S $n"
done
failed=0
for i in $(seq "$n"); do
  tmux -S "$server" wait-for "$i"
  echo "agent $i: $(cat "$dir/answer.$i")"
  [ "$(cat "$dir/code.$i")" = 0 ] || failed=1
done
exit $failed

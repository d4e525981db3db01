# Starts the server, logs in unless the first argument is "without-login", and asks claude.
port=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
python server.py "$port" >server.log 2>&1 &
trap 'kill $!' EXIT
until curl -s -o /dev/null "http://127.0.0.1:$port/mcp"; do sleep 0.1; done
claudeless mcp add --transport http notes "http://127.0.0.1:$port/mcp" >/dev/null
[ "$1" = without-login ] || claudeless mcp login notes --auto
claude -p "Read my notes" --allowedTools mcp__notes

# What the scripts beside this one begin with; sourced, with here as their
# directory. It makes the scratch directory tmp, which goes with the script as the
# process server does, and finds the binary bin: the first argument, or it is built.
tmp=$(mktemp -d)
server=
cleanup() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

bin=${1:-}
if [ -z "$bin" ]; then
	bin=$tmp/claudeless
	(cd "$here/../.." && go build -o "$bin" ./cmd/claudeless)
fi

# up waits for the port file of the server, and puts the port into port.
up() {
	tries=0
	until [ -s "$tmp/port" ]; do
		tries=$((tries + 1))
		[ $tries -le 100 ] || { cat "$tmp/serve.log" >&2; echo "conformance: the server does not come up" >&2; exit 1; }
		sleep 0.1
	done
	port=$(cat "$tmp/port")
}

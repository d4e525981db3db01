# The beginning of the scripts in this directory. They source it after setting here to
# their directory. It creates the temporary directory tmp, which is removed at the end
# of the script, like the process server, and sets bin to the binary: the first
# argument, or a new build.
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

# up waits for the port file of the server and sets port.
up() {
	tries=0
	until [ -s "$tmp/port" ]; do
		tries=$((tries + 1))
		[ $tries -le 100 ] || { cat "$tmp/serve.log" >&2; echo "conformance: the server does not come up" >&2; exit 1; }
		sleep 0.1
	done
	port=$(cat "$tmp/port")
}

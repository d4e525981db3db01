package guard

import "net"

const (
	// apiPort and proxyPort are beyond those that a system gives to clients.
	apiPort   = 61_880
	proxyPort = 61_881
	dnsPort   = 53
)

// Addresses of what is served inside of a network of its own.
const (
	APIAddr   = "127.0.0.1:61880"
	ProxyAddr = "127.0.0.1:61881"
)

// Network is a network of its own, seen from outside. A command in it waits for
// [Network.Go].
type Network struct {
	// API and Proxy listen inside of it; whoever serves them closes them.
	API, Proxy net.Listener

	w *watch
}

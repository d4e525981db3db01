package guard

import "net"

const (
	// apiPort and proxyPort are outside the range of ephemeral ports.
	apiPort   = 61_880
	proxyPort = 61_881
	dnsPort   = 53
)

// Addresses of the servers inside the network namespace of a run.
const (
	APIAddr   = "127.0.0.1:61880"
	ProxyAddr = "127.0.0.1:61881"
)

// Network is the network namespace of a run, seen from outside. The command in it waits for [Network.ReleaseCommand].
type Network struct {
	// API and Proxy listen inside the namespace; the servers that use them close them.
	API, Proxy net.Listener

	w *syscallWatcher
}

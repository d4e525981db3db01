package guard

import "net"

const (
	// apiPortInNamespace and proxyPortInNamespace are outside the range of ephemeral ports.
	apiPortInNamespace   = 61_880
	proxyPortInNamespace = 61_881
	dnsPort              = 53
)

// Addresses of the servers inside the network namespace of a run.
const (
	APIAddrInNamespace   = "127.0.0.1:61880"
	ProxyAddrInNamespace = "127.0.0.1:61881"
)

// CommandWatch is the network namespace of a run, seen from outside. The command in it waits for [CommandWatch.StartWaitingCommand].
type CommandWatch struct {
	// API and Proxy listen inside the namespace; the servers that use them close them.
	API, Proxy net.Listener

	w *syscallWatcher
}

package connection

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
)

// Target is a server and how to reach it: [Process], [RemoteServer] or [HostedServer].
type Target interface {
	// dial creates the transport before limit ends; the transport lasts until lifetime is cancelled.
	dial(lifetime, limit context.Context, b *transportBase) (transport.Interface, messageTransport, error)
}

// messageTransport is the part of a connection below the client: a process, an endpoint or a host.
type messageTransport interface {
	// close closes the transport within its own time limit.
	close(ctx context.Context)
}

type transportBase struct {
	*closeReason
	*listChanges
	interceptor   *interceptor
	notifications *notificationHandler
	debug         DebugLog
	tasks         *sync.WaitGroup
}

// Log returns the debug log of the server.
func (b *transportBase) Log() DebugLog { return b.debug }

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
	interceptor   *interceptor
	notifications *notificationHandler
	debug         DebugLog
	tasks         *sync.WaitGroup
}

// Log returns the debug log of the server.
func (b *transportBase) Log() DebugLog { return b.debug }

// ListsChanged returns a channel that holds a token after the server reported a changed list.
func (b *transportBase) ListsChanged() <-chan struct{} { return b.notifications.lists.signal }

// TakeChanges returns the lists that the server reported as changed since the last call, and the number of all changes.
func (b *transportBase) TakeChanges() (changed map[ListKind]bool, seen int64) {
	return b.notifications.lists.take()
}

// MarkFetched records that the lists were fetched. changes is the number of changes that they already contain, as
// TakeChanges returned it before.
func (b *transportBase) MarkFetched(changes int64) { b.notifications.lists.current.Store(changes) }

// ForgetChanges treats the lists as up to date, although the server may have reported changes.
func (b *transportBase) ForgetChanges() {
	select {
	case <-b.notifications.lists.signal:
	default:
	}
	_, seen := b.TakeChanges()
	b.MarkFetched(seen)
}

// HasUnfetchedChanges reports whether the server's lists changed since they were fetched.
func (b *transportBase) HasUnfetchedChanges() bool {
	return b.notifications.lists.current.Load() < b.notifications.lists.seen.Load()
}

package connection

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client/transport"
)

// Target is a server and how it is reached: [Process], [Remote] or [Hosted].
type Target interface {
	// dial lays the way, which ends with life, before limit does.
	dial(life, limit context.Context, b *transportBase) (transport.Interface, messageTransport, error)
}

// messageTransport is what the messages of a connection go over, below the client.
type messageTransport interface {
	// opened hears that the handshake is done, and what version it agreed on.
	opened(version string)
	// close ends the way, within bounds of its own.
	close(ctx context.Context)
}

// transportBase is what a way is laid on: the link that takes its messages, and the fate
// that it decides.
type transportBase struct {
	link  *link
	fate  *closeReason
	inbox *notificationHandler
	debug Log
	tasks *sync.WaitGroup
}

// closeReason is the end of a connection.
type closeReason struct {
	lost   chan struct{} // closed once when the server went away
	once   sync.Once
	silent atomic.Bool // it was given up since it no longer answers
	barred atomic.Bool // it was given up since it wants authorization
}

// Log is the debug log of the server.
func (b *transportBase) Log() Log { return b.debug }

// Lose marks the connection as gone.
func (b *transportBase) Lose() { b.fate.once.Do(func() { close(b.fate.lost) }) }

// Lost is closed when the server went away or the connection was closed.
func (b *transportBase) Lost() <-chan struct{} { return b.fate.lost }

// IsLost reports whether Lost is closed.
func (b *transportBase) IsLost() bool {
	select {
	case <-b.fate.lost:
		return true
	default:
		return false
	}
}

// Silent reports whether the connection was given up since the server no longer
// answered pings.
func (b *transportBase) Silent() bool { return b.fate.silent.Load() }

// Barred reports whether the connection was given up since the server wants
// authorization.
func (b *transportBase) Barred() bool { return b.fate.barred.Load() }

// Kick has a token when the server said that a list has changed.
func (b *transportBase) Kick() <-chan struct{} { return b.inbox.lists.kick }

// TakeChanges returns the lists that the server said have changed since the last
// time, and how many changes there have been in all.
func (b *transportBase) TakeChanges() (changed map[List]bool, seen int64) {
	return b.inbox.lists.take()
}

// Fetched says that the lists in use are good up to a count of TakeChanges.
func (b *transportBase) Fetched(changes int64) { b.inbox.lists.current.Store(changes) }

// Stale reports whether the server's lists changed since they were fetched.
func (b *transportBase) Stale() bool {
	return b.inbox.lists.current.Load() < b.inbox.lists.seen.Load()
}

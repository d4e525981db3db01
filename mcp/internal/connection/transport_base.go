package connection

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// DialTarget is a server and how to reach it: [ProcessServer], [RemoteServer] or [HostedServer].
type DialTarget interface {
	// dial creates the transport before limit ends; the transport lasts until lifetime is cancelled.
	dial(lifetime, limit context.Context, b *transportBase) (messageTransport, error)
}

// messageTransport carries the messages of a connection: to a process, a remote server or a host.
type messageTransport interface {
	// StartReading begins to read messages. Requests of the server are handled until ctx ends.
	StartReading(ctx context.Context) error
	// SendRequest sends a request and returns its response. If the response arrives on another stream, the client cancels ctx.
	SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error)
	// sendWithoutResponse sends a message that has no response.
	sendWithoutResponse(ctx context.Context, message any) error
	// close closes the transport within its own time limit.
	close(ctx context.Context)
}

type transportBase struct {
	*closeReason
	*listChanges
	client        *client
	notifications *notificationDispatcher
	debug         DebugLog
	goroutines    *sync.WaitGroup
	reopenPause   time.Duration // pause before a stream of notifications is opened again
}

// Log returns the debug log of the server.
func (b *transportBase) Log() DebugLog { return b.debug }

// waitForLossOrRequestEnd returns transport.ErrTransportClosed if the connection is lost, or ctx.Err() if ctx ends.
func (*transportBase) waitForLossOrRequestEnd(ctx context.Context, lost <-chan struct{}) (closedOrContextError error) {
	select {
	case <-lost:
		return transport.ErrTransportClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func hasMethod(message json.RawMessage) bool {
	return plainjson.DecodeIgnoringErrors[struct{ Method string }](message).Method != ""
}

func parseRequest(message []byte) (req transport.JSONRPCRequest, isRequest bool) {
	err := json.Unmarshal(message, &req)
	return req, err == nil && req.Method != "" && !req.ID.IsNil()
}

// dispatchMessage handles a message. It answers requests in the background, but ignores them in revision 2026-07-28.
func (b *transportBase) dispatchMessage(ctx context.Context, message []byte) {
	switch req, isRequest := parseRequest(message); {
	case !isRequest:
		_ = b.dispatchNotificationOrResponse(message) // a message that cannot be read is ignored
	case !b.client.isModern.Load():
		go func() { _ = b.answerRequest(ctx, req) }() // returns when the request has been handled
	}
}

// answerRequest handles a request of the server and posts the response.
func (b *transportBase) answerRequest(ctx context.Context, req transport.JSONRPCRequest) error {
	resp, err := b.client.askHandlerForResponse(ctx, req)
	if err != nil {
		return err
	}
	return b.client.transport.sendWithoutResponse(ctx, resp)
}

func (b *transportBase) dispatchNotificationOrResponse(message json.RawMessage) error {
	if !hasMethod(message) {
		resp := &transport.JSONRPCResponse{}
		if json.Unmarshal(message, resp) == nil {
			b.client.endPendingRequest(idText(resp.ID), requestOutcomeError{response: resp})
		}
		return nil
	}
	var n wire.JSONRPCNotification
	if err := json.Unmarshal(message, &n); err != nil {
		return fmt.Errorf("reading a notification of the MCP server: %w", err)
	}
	b.notifications.dispatchNotification(n)
	return nil
}

// TakeChanges returns the lists that the server reported as changed since the previous call, and the number of all changes.
func (c *listChanges) TakeChanges() (changed map[ListKind]bool, seen int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, c.changed = c.changed, nil
	return changed, c.reported.Load()
}

// ListsChanged returns a channel that holds a token after the server reported a changed list.
func (c *listChanges) ListsChanged() <-chan struct{} { return c.signal }

// MarkFetched records that the fetched lists contain the given number of changes, as TakeChanges returned it.
func (c *listChanges) MarkFetched(changes int64) { c.fetched.Store(changes) }

// ForgetChanges treats the lists as up to date, although the server may have reported changes.
func (c *listChanges) ForgetChanges() {
	select {
	case <-c.signal:
	default:
	}
	_, seen := c.TakeChanges()
	c.MarkFetched(seen)
}

// HasUnfetchedChanges reports whether the server's lists changed since they were fetched.
func (c *listChanges) HasUnfetchedChanges() bool { return c.fetched.Load() < c.reported.Load() }

// closeReason records that a connection ended, and why.
type closeReason struct {
	lost                         chan struct{}                           // closed when the connection is lost
	givenUpReason                atomic.Pointer[ConnectionGivenUpReason] // nil means that the connection is not lost
	consecutiveBrokenConnections atomic.Int32                            // HTTP connections that failed or broke off since the last answer
}

func (r *closeReason) markEnded(why ConnectionGivenUpReason) {
	if r.givenUpReason.CompareAndSwap(nil, &why) {
		close(r.lost)
	}
}

// MarkConnectionLost records that the connection broke without a reason to report. It closes the channel of [closeReason.Lost].
func (r *closeReason) MarkConnectionLost() { r.markEnded("") }

// Lost returns a channel that is closed when the connection is lost or closed.
func (r *closeReason) Lost() <-chan struct{} { return r.lost }

// IsConnectionLostOrClosed reports whether the connection has ended, by a failure or by Close.
func (r *closeReason) IsConnectionLostOrClosed() bool { return r.givenUpReason.Load() != nil }

// GivenUpReason returns why the connection was given up; "" means that it was not given up.
func (r *closeReason) GivenUpReason() ConnectionGivenUpReason {
	if why := r.givenUpReason.Load(); why != nil {
		return *why
	}
	return ""
}

// maxBrokenConnections is how many broken connections in a row mean that the server is lost (observed with 2.1.330).
const maxBrokenConnections = 3

func (r *closeReason) countBrokenHTTPMarkLostAtLimit(additionalCount int32) {
	if r.consecutiveBrokenConnections.Add(additionalCount) >= maxBrokenConnections {
		r.MarkConnectionLost()
	}
}

package carrier

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// SSEOptions configure an SSE transport. All of them are required.
type SSEOptions struct {
	URL    string
	Client *http.Client
	Limit  int             // of one event, in bytes
	Owner  TransportOwner  // called on the reading goroutine
	Tasks  *sync.WaitGroup // counts that goroutine
}

// StatusError is a response to the GET that is not an event stream.
type StatusError struct{ Code int }

func (e *StatusError) Error() string { return fmt.Sprintf("HTTP %d from the event stream", e.Code) }

// SSE is one open stream of the older HTTP transport (HTTP+SSE): everything that the server sends arrives on it, and
// messages are posted to the endpoint that it announces. mcp-go's implementation cannot answer requests of the server
// and lets calls hang when the stream ends.
type SSE struct {
	handlers
	options  SSEOptions
	endpoint *url.URL
	stop     context.CancelFunc // ends the stream

	mu      sync.Mutex
	version string // of the protocol; empty before the handshake
	closed  bool
	pending map[string]chan *transport.JSONRPCResponse
}

// OpenSSE opens the stream and waits for the endpoint event. Opening ends when limit does. The stream and the
// goroutine that reads it end with life.
func OpenSSE(life, limit context.Context, o SSEOptions) (*SSE, error) {
	t := &SSE{options: o, pending: map[string]chan *transport.JSONRPCResponse{}}
	stream, stop := context.WithCancel(life)
	t.stop = stop
	opened := make(chan error, 1)
	o.Tasks.Go(func() {
		defer stop()
		t.read(stream, opened)
	})
	select {
	case err := <-opened:
		return t, err
	case <-limit.Done():
		stop()
		return nil, limit.Err()
	}
}

// read opens the stream and handles its events until it ends. It sends the outcome of opening, including the endpoint
// event, to opened.
func (t *SSE) read(ctx context.Context, opened chan<- error) {
	defer t.fail()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.options.URL, http.NoBody)
	if err != nil {
		opened <- errors.New("the url cannot be read")
		return
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := t.options.Client.Do(req)
	if err != nil {
		opened <- err
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		opened <- &StatusError{Code: resp.StatusCode}
		return
	}
	in := eventReader{in: bufio.NewReader(PlainEvents(resp.Body)), limit: t.options.Limit}
	for {
		ev, err := in.next()
		switch {
		case err != nil:
			if t.endpoint == nil {
				opened <- errors.New("the event stream ended before it named an endpoint")
			}
			return
		case ev.tooLong != nil:
			t.refuse(ctx, ev)
		case ev.name == "endpoint" && t.endpoint == nil:
			endpoint, err := req.URL.Parse(ev.data)
			if err != nil || endpoint.Host != req.URL.Host || endpoint.Scheme != req.URL.Scheme {
				opened <- fmt.Errorf("endpoint %q is on another server", ev.data)
				return
			}
			t.endpoint = endpoint
			opened <- nil
		case ev.name == "" || ev.name == "message":
			t.receive(ctx, []byte(ev.data))
		}
	}
}

// refuse fails the request whose response is too long.
func (t *SSE) refuse(ctx context.Context, ev event) {
	if ev.id == nil || !json.Valid(ev.id) {
		return
	}
	t.options.Owner.TooLong(ev.id, ev.tooLong)
	t.receive(ctx, tooLongResponse(ev.id, ev.tooLong))
}

// receive passes one message to its receiver: a waiting call or a handler.
func (t *SSE) receive(ctx context.Context, data []byte) {
	var m struct {
		ID     wire.RequestId `json:"id"`
		Method string         `json:"method"`
	}
	if json.Unmarshal(data, &m) != nil {
		return
	}
	t.mu.Lock()
	waiting := t.pending[m.ID.String()]
	t.mu.Unlock()
	notified, handler := t.get()
	switch {
	case m.Method != "" && m.ID.IsNil():
		var n wire.JSONRPCNotification
		if json.Unmarshal(data, &n) == nil && notified != nil {
			notified(n)
		}
	case m.Method != "":
		var req transport.JSONRPCRequest
		if json.Unmarshal(data, &req) == nil && handler != nil {
			go func() { // ends with ctx at the latest
				if resp, err := handler(ctx, req); err == nil {
					_ = t.post(ctx, resp) // a lost server is noticed on the stream
				}
			}()
		}
	case waiting != nil:
		resp := &transport.JSONRPCResponse{}
		if json.Unmarshal(data, resp) == nil {
			select {
			case waiting <- resp:
			default: // a second response to the same request
			}
		}
	}
}

// fail ends all calls in progress.
func (t *SSE) fail() {
	t.mu.Lock()
	t.closed = true
	for _, waiting := range t.pending {
		close(waiting)
	}
	t.pending = nil
	t.mu.Unlock()
	t.options.Owner.End()
}

func (t *SSE) post(ctx context.Context, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if version := t.protocolVersion(); version != "" {
		req.Header.Set(VersionHeader, version)
	}
	resp, err := t.options.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("HTTP %d from the message endpoint", resp.StatusCode)
	}
	return nil
}

// VersionHeader carries the negotiated protocol version.
const VersionHeader = "Mcp-Protocol-Version"

// SetProtocolVersion sets the version for VersionHeader.
func (t *SSE) SetProtocolVersion(version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version = version
}

func (t *SSE) protocolVersion() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version
}

// Start does nothing: OpenSSE has opened the stream.
func (t *SSE) Start(context.Context) error { return nil }

// GetSessionId returns "": the endpoint URL identifies the session.
func (t *SSE) GetSessionId() string { return "" }

// Close ends the stream.
func (t *SSE) Close() error {
	t.stop()
	return nil
}

// SendRequest posts a request and waits for its response on the stream.
func (t *SSE) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	key, waiting := req.ID.String(), make(chan *transport.JSONRPCResponse, 1)
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, transport.ErrTransportClosed
	}
	t.pending[key] = waiting
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.pending, key)
	}()
	if err := t.post(ctx, req); err != nil {
		return nil, err
	}
	select {
	case resp, ok := <-waiting:
		if !ok {
			return nil, transport.ErrTransportClosed
		}
		return resp, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// SendNotification posts a notification.
func (t *SSE) SendNotification(ctx context.Context, n wire.JSONRPCNotification) error {
	return t.post(ctx, n)
}

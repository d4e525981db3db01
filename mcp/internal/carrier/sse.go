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
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// SSEOptions configure an SSE transport. All of them are required.
type SSEOptions struct {
	URL    string
	Client *http.Client
	Limit  int            // of one message, in bytes
	Owner  TransportOwner // called on the reading goroutine
}

// StatusError is a response to the GET that is not an event stream.
type StatusError struct{ Code int }

func (e *StatusError) Error() string { return fmt.Sprintf("HTTP %d from the event stream", e.Code) }

// SSE is one open stream of the older HTTP transport (HTTP+SSE): everything that the server sends arrives on it, and
// messages are posted to the endpoint that it announces. The stream is read by mcp-go's transport over pipes: its
// transport over SSE cannot answer requests of the server and lets calls hang when the stream ends.
type SSE struct {
	*transport.Stdio
	options  SSEOptions
	endpoint *url.URL
	stop     context.CancelFunc
	version  atomic.Value // string: the protocol version; empty before the handshake
	expected sync.Map     // id of a request to a chan struct{} that is closed when its response can be received
}

// OpenSSE opens the stream and waits for the endpoint event. Opening ends when limit does. The stream ends with life.
func OpenSSE(life, limit context.Context, o SSEOptions) (*SSE, error) {
	stream, stop := context.WithCancel(life)
	defer context.AfterFunc(limit, stop)()
	t := &SSE{options: o, stop: stop}
	if err := t.open(stream); err != nil {
		stop()
		o.Owner.End()
		if limit.Err() != nil {
			err = limit.Err()
		}
		return nil, err
	}
	return t, nil
}

func (t *SSE) open(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.options.URL, http.NoBody)
	if err != nil {
		return errors.New("the url cannot be read")
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := t.options.Client.Do(req)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		return &StatusError{Code: resp.StatusCode}
	}
	events := &eventReader{in: bufio.NewReader(PlainEvents(resp.Body)), limit: t.options.Limit}
	var first event
	for first.name != "endpoint" {
		if first, err = events.next(); err != nil {
			return errors.New("the event stream ended before it named an endpoint")
		}
	}
	t.endpoint, err = req.URL.Parse(string(first.data))
	if err != nil || t.endpoint.Host != req.URL.Host || t.endpoint.Scheme != req.URL.Scheme {
		return fmt.Errorf("endpoint %q is on another server", first.data)
	}
	lines := NewFilter(FilterOptions{Source: &messageLines{events: events}, Limit: t.options.Limit, Owner: t.options.Owner})
	t.Stdio = transport.NewIO(lines, unpostedLines{t}, nil)
	return nil
}

// unpostedLines replaces the pipe to the server, because messages are posted. mcp-go's transport writes a request to it
// once it can receive the response; only then may the request be posted.
type unpostedLines struct{ t *SSE }

// Write implements io.Writer. Each call has one message.
func (w unpostedLines) Write(p []byte) (int, error) {
	var m struct{ ID wire.RequestId }
	if err := json.Unmarshal(p, &m); err != nil {
		return 0, err
	}
	if expected, ok := w.t.expected.LoadAndDelete(m.ID.String()); ok {
		close(expected.(chan struct{}))
	}
	return len(p), nil
}

func (unpostedLines) Close() error { return nil }

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
	if version, ok := t.version.Load().(string); ok {
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
func (t *SSE) SetProtocolVersion(version string) { t.version.Store(version) }

// Close ends the stream.
func (t *SSE) Close() error {
	t.stop()
	return t.Stdio.Close()
}

// SetRequestHandler sets the handler of requests that the server sends; its responses are posted.
func (t *SSE) SetRequestHandler(handle transport.RequestHandler) {
	t.Stdio.SetRequestHandler(func(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
		if resp, err := handle(ctx, req); err == nil {
			_ = t.post(ctx, resp) // a lost server is noticed on the stream
		}
		return nil, nil
	})
}

// SendRequest posts a request and waits for its response on the stream.
func (t *SSE) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	id, expected, posted := req.ID.String(), make(chan struct{}), make(chan error, 1)
	t.expected.Store(id, expected)
	go func() { // ends with ctx at the latest
		select {
		case <-expected:
		case <-ctx.Done():
			return
		}
		err := t.post(ctx, req)
		if err != nil {
			stop()
		}
		posted <- err
	}()
	resp, err := t.Stdio.SendRequest(ctx, req)
	if _, unposted := t.expected.LoadAndDelete(id); unposted {
		return nil, err
	}
	if postError := <-posted; postError != nil {
		return nil, postError
	}
	return resp, err
}

// SendNotification posts a notification.
func (t *SSE) SendNotification(ctx context.Context, n wire.JSONRPCNotification) error {
	return t.post(ctx, n)
}

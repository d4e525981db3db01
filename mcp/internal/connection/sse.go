package connection

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// sseClient is one open stream of the older HTTP transport (HTTP+SSE). Everything that the server sends arrives on the
// stream. First the server announces an endpoint, to which the client then posts its messages. mcp-go's transport for
// pipes reads the stream. Its SSE transport is not used, because it cannot answer requests of the server and lets calls
// hang when the stream is closed.
type sseClient struct {
	*transport.Stdio
	client   *http.Client
	endpoint *url.URL
	stop     context.CancelFunc
	version  atomic.Value // string: the protocol version; empty before the handshake
	expected sync.Map     // request id → chan struct{}, which is closed when the response can be received
}

// openSSE opens the stream, within limit, and waits for its endpoint event. It stays open until lifetime is cancelled.
func (e *endpoint) openSSE(lifetime, limit context.Context, to RemoteServer, b *transportBase) (*sseClient, error) {
	stream, stop := context.WithCancel(lifetime)
	defer context.AfterFunc(limit, stop)()
	sse := &sseClient{client: &http.Client{Transport: e.roundTripper}, stop: stop}
	err := sse.open(stream, to, b)
	if err == nil {
		return sse, nil
	}
	stop()
	e.roundTripper.base.CloseIdleConnections()
	if limit.Err() != nil {
		err = limit.Err()
	}
	transient := isTransient(err)
	if errors.Is(err, syscall.ECONNREFUSED) {
		err = fmt.Errorf("SSE error: %w", errRefused)
	}
	if transient {
		err = &DialError{Reason: err.Error(), Wire: err.Error(), IsTransient: true}
	}
	return nil, err
}

func (t *sseClient) open(ctx context.Context, to RemoteServer, base *transportBase) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.URL, http.NoBody)
	if err != nil {
		return errors.New("invalid url of the MCP server")
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := t.client.Do(req)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		text := fmt.Sprintf("SSE error: Non-200 status code (%d)", resp.StatusCode)
		return &DialError{Reason: fmt.Sprintf("HTTP %d: %s", resp.StatusCode, text), Wire: text, IsTransient: resp.StatusCode >= http.StatusInternalServerError}
	}
	events := &eventReader{in: newNormalizedEvents(resp.Body), limit: to.MaxMessage}
	var first event
	for first.name != "endpoint" {
		if first, err = events.next(); err != nil {
			return errors.New("the event stream ended before it named an endpoint")
		}
	}
	t.endpoint, err = req.URL.Parse(string(first.data))
	if err != nil || t.endpoint.Host != req.URL.Host || t.endpoint.Scheme != req.URL.Scheme {
		return fmt.Errorf("the server sent the endpoint %q; expected the same scheme and host as the URL of the server", first.data)
	}
	lines := newLineFilter(filterOptions{Source: &chunkReader{source: &messageLines{events: events}}, Limit: to.MaxMessage, Owner: base})
	t.Stdio = transport.NewIO(lines, messagePoster{t}, nil)
	return nil
}

// messagePoster takes the place of the pipe to the server, to which mcp-go's transport would write messages. Its Write
// sends nothing. It only tells SendRequest that the transport is ready for the response, and then SendRequest posts the
// request.
type messagePoster struct{ t *sseClient }

// Write implements io.Writer. Each call has one message.
func (w messagePoster) Write(p []byte) (int, error) {
	var m struct{ ID wire.RequestId }
	if err := json.Unmarshal(p, &m); err != nil {
		return 0, err
	}
	if expected, ok := w.t.expected.LoadAndDelete(m.ID.String()); ok {
		close(expected.(chan struct{}))
	}
	return len(p), nil
}

func (messagePoster) Close() error { return nil }

func (t *sseClient) post(ctx context.Context, message any) error {
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
		req.Header.Set(versionHeader, version)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("HTTP %d from the message endpoint", resp.StatusCode)
	}
	return nil
}

// SetProtocolVersion sets the protocol version that requests send in versionHeader.
func (t *sseClient) SetProtocolVersion(version string) { t.version.Store(version) }

// Close ends the stream.
func (t *sseClient) Close() error {
	t.stop()
	return t.Stdio.Close()
}

// SetRequestHandler sets the handler of requests that the server sends; its responses are posted.
func (t *sseClient) SetRequestHandler(handle transport.RequestHandler) {
	t.Stdio.SetRequestHandler(func(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
		if resp, err := handle(ctx, req); err == nil {
			_ = t.post(ctx, resp) // the loss of a server is detected on the stream
		}
		return nil, nil
	})
}

// SendRequest posts a request and waits for its response on the stream.
func (t *sseClient) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	id, expected, posted := req.ID.String(), make(chan struct{}), make(chan error, 1)
	t.expected.Store(id, expected)
	go func() { // returns when ctx is cancelled at the latest
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
func (t *sseClient) SendNotification(ctx context.Context, n wire.JSONRPCNotification) error {
	return t.post(ctx, n)
}

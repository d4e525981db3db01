package connection

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
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
	unsent   sync.Map     // request id → func() that posts the request, for requests whose response cannot be received yet
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
	if named := nameNetworkError(err); named != nil {
		err = fmt.Errorf("SSE error: %w", named)
	}
	if transient {
		err = &DialError{Reason: err.Error(), Wire: err.Error(), IsTransient: true}
	}
	return nil, err
}

func (t *sseClient) open(ctx context.Context, to RemoteServer, base *transportBase) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.URL, http.NoBody)
	if err != nil {
		return err
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
	events, data := newEventReader(resp.Body), boundedLine{limit: to.MaxMessage}
	for first := (event{}); first.name != "endpoint"; {
		data.reset()
		if first, err = events.next(&data, math.MaxInt64); err != nil {
			return errors.New("the event stream ended before it named an endpoint")
		}
	}
	t.endpoint, err = req.URL.Parse(string(data.kept))
	if err != nil || t.endpoint.Host != req.URL.Host || t.endpoint.Scheme != req.URL.Scheme {
		return fmt.Errorf("the server sent the endpoint %q; expected the same scheme and host as the URL of the server", data.kept)
	}
	t.Stdio = transport.NewIO(newLineFilter(events, to.MaxMessage, base), messagePoster{t}, nil)
	return nil
}

// messagePoster takes the place of the pipe to the server. mcp-go's transport writes a request to it when it is ready for
// the response, so Write then posts the request. Other messages are posted without it.
type messagePoster struct{ t *sseClient }

// Write implements io.Writer. Each call has one request.
func (w messagePoster) Write(p []byte) (int, error) {
	if post, ok := w.t.unsent.LoadAndDelete(plainjson.DecodeOrZero[struct{ ID wire.RequestId }](p).ID.String()); ok {
		go post.(func())() // returns when the request is cancelled at the latest
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
	id, posted := req.ID.String(), make(chan error, 1)
	t.unsent.Store(id, func() {
		err := t.post(ctx, req)
		if err != nil {
			stop()
		}
		posted <- err
	})
	resp, err := t.Stdio.SendRequest(ctx, req)
	if _, unsent := t.unsent.LoadAndDelete(id); unsent {
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

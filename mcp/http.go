package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

const (
	// deleteLimit bounds the DELETE that ends a session.
	deleteLimit   = time.Second
	versionHeader = "Mcp-Protocol-Version"
)

// dialHTTP puts a client on a streamable HTTP endpoint, with a standing GET
// stream for what the server sends by itself.
func (s *server) dialHTTP(cfg ServerConfig, debug *debugLog) (*conn, error) {
	if cfg.URL == "" {
		return nil, errors.New("url is empty")
	}
	base := &http.Transport{DialContext: (&net.Dialer{}).DialContext, MaxIdleConnsPerHost: 16}
	trip := &roundTripper{
		base: base, headers: cfg.Headers, limit: orDefault(cfg.MaxLineBytes, defaultMaxLine),
		standing: true, ready: make(chan struct{}),
	}
	inner, err := transport.NewStreamableHTTP(cfg.URL,
		transport.WithHTTPBasicClient(&http.Client{Transport: trip}),
		transport.WithContinuousListening(), //nolint:staticcheck // deprecated for a protocol version that is not asked for here
		transport.WithHTTPLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("url of MCP server %q cannot be read", cfg.Name) // the parser's text repeats it
	}
	c := newConn(s, inner, debug)
	c.remote = true
	c.opened = func() {
		trip.version = c.hello.ProtocolVersion
		close(trip.ready)
	}
	c.closeTransport = func(context.Context) { base.CloseIdleConnections() }
	return c, nil
}

// roundTripper puts the configured headers on every request, DELETE included,
// bounds what a server may send at a stretch, and makes refusals errors.
type roundTripper struct {
	base    http.RoundTripper
	headers map[string]string
	limit   int
	// standing says that GET opens the optional standing stream, which waits
	// for ready. Version is set before ready is closed, after the handshake.
	standing bool
	ready    chan struct{}
	version  string
}

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, stop := req.Context(), context.CancelFunc(func() {})
	switch {
	case req.Method == http.MethodGet && t.standing: // must not overtake the handshake
		select {
		case <-t.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case req.Method == http.MethodDelete:
		ctx, stop = context.WithTimeout(ctx, deleteLimit)
	}
	req = req.Clone(ctx)
	if t.standing && req.Method == http.MethodGet && t.version != "" {
		req.Header.Set(versionHeader, t.version)
	}
	for k, v := range t.headers {
		req.Header.Set(k, v)
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		stop()
		return nil, err
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, limit: t.limit, stop: stop}
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return resp, nil
	}
	if t.standing && req.Method == http.MethodGet { // no use in trying again
		resp.StatusCode = http.StatusMethodNotAllowed
		return resp, nil
	}
	resp.Body.Close()
	text := fmt.Sprintf("HTTP %d: authorization required", resp.StatusCode)
	return nil, &dialError{Reason: text, Wire: text, NeedsAuth: true}
}

// boundedBody fails when there are more than limit bytes without a newline.
type boundedBody struct {
	io.ReadCloser
	limit, run int
	stop       context.CancelFunc
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if last := bytes.LastIndexByte(p[:n], '\n'); last >= 0 {
		b.run = n - last - 1
	} else {
		b.run += n
	}
	if b.run > b.limit {
		return 0, fmt.Errorf("message longer than %d bytes", b.limit)
	}
	return n, err
}

func (b *boundedBody) Close() error {
	defer b.stop()
	return b.ReadCloser.Close()
}

// transient reports whether a first connect to a remote server is worth
// another try: it was refused, broke off, or met an error of the server.
func transient(err error) bool {
	var d *dialError
	var rpc *RPCError
	return !errors.As(err, &d) && !errors.As(err, &rpc) && !errors.Is(err, transport.ErrLegacySSEServer) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// again starts a new session for a server that forgot the old one; calls that
// met the loss together share one handshake.
func (c *conn) again(ctx context.Context) error {
	c.session.Lock()
	defer c.session.Unlock()
	if c.link.GetSessionId() != "" {
		return nil
	}
	_, err := c.client.Initialize(ctx, c.greeting)
	return err
}

// sseTransport is the older HTTP transport: one GET stream brings everything
// the server sends, messages go to the endpoint it names. It is our own since
// mcp-go's cannot answer requests and does not fail calls when the stream ends.
type sseTransport struct {
	client   *http.Client
	limit    int // of one event
	endpoint *url.URL
	stop     context.CancelFunc // ends the stream
	lose     func()

	mu       sync.Mutex
	closed   bool
	pending  map[string]chan *transport.JSONRPCResponse
	notified func(wire.JSONRPCNotification)
	handler  transport.RequestHandler
}

// dialSSE opens the stream and waits for the endpoint. The stream lives as
// long as life; opening ends when limit does.
func (s *server) dialSSE(life, limit context.Context, cfg ServerConfig, debug *debugLog) (*conn, error) {
	base := &http.Transport{DialContext: (&net.Dialer{}).DialContext, MaxIdleConnsPerHost: 16}
	size := orDefault(cfg.MaxLineBytes, defaultMaxLine)
	t := &sseTransport{
		client:  &http.Client{Transport: &roundTripper{base: base, headers: cfg.Headers, limit: size}},
		limit:   size,
		pending: map[string]chan *transport.JSONRPCResponse{},
	}
	stream, stop := context.WithCancel(life)
	t.stop = stop
	c := newConn(s, t, debug)
	c.remote, t.lose = true, c.lose
	c.closeTransport = func(context.Context) { base.CloseIdleConnections() }
	opened := make(chan error, 1)
	s.m.tasks.Go(func() { // ends with the stream
		defer base.CloseIdleConnections()
		defer stop()
		t.read(stream, cfg.URL, opened)
	})
	select {
	case err := <-opened:
		return c, err
	case <-limit.Done():
		stop()
		return nil, limit.Err()
	}
}

// read opens the stream and hands on its events until it ends. The outcome of
// opening, endpoint event included, goes to opened.
func (t *sseTransport) read(ctx context.Context, address string, opened chan<- error) {
	defer t.fail()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		opened <- errors.New("the url cannot be read")
		return
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := t.client.Do(req)
	if err != nil {
		opened <- err
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text := fmt.Sprintf("HTTP %d from the event stream", resp.StatusCode)
		if resp.StatusCode >= http.StatusInternalServerError {
			opened <- errors.New(text)
			return
		}
		opened <- &dialError{Reason: text, Wire: text}
		return
	}
	in := bufio.NewReader(resp.Body)
	for {
		name, data, err := nextEvent(in, t.limit)
		switch {
		case err != nil:
			if t.endpoint == nil {
				opened <- errors.New("the event stream ended before it named an endpoint")
			}
			return
		case name == "endpoint" && t.endpoint == nil:
			endpoint, err := req.URL.Parse(data)
			if err != nil || endpoint.Host != req.URL.Host || endpoint.Scheme != req.URL.Scheme {
				opened <- fmt.Errorf("endpoint %q is not of the same server", data)
				return
			}
			t.endpoint = endpoint
			opened <- nil
		case name == "" || name == "message":
			t.receive(ctx, []byte(data))
		}
	}
}

// nextEvent reads one event: several data lines are joined by newlines,
// comments and fields without meaning here are skipped.
func nextEvent(in *bufio.Reader, limit int) (name, data string, err error) {
	var lines []string
	size := 0
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return "", "", err // an event that is not complete does not count
		}
		if size += len(line); size > limit {
			return "", "", fmt.Errorf("event longer than %d bytes", limit)
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" && len(lines) > 0 {
			return name, strings.Join(lines, "\n"), nil
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "data":
			lines = append(lines, value)
		}
	}
}

// receive hands one message to whom it is for.
func (t *sseTransport) receive(ctx context.Context, data []byte) {
	var m struct {
		ID     wire.RequestId `json:"id"`
		Method string         `json:"method"`
	}
	if json.Unmarshal(data, &m) != nil {
		return
	}
	t.mu.Lock()
	notified, handler, waiting := t.notified, t.handler, t.pending[m.ID.String()]
	t.mu.Unlock()
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
					_ = t.post(ctx, resp) // a server that is gone shows in the stream
				}
			}()
		}
	case waiting != nil:
		resp := &transport.JSONRPCResponse{}
		if json.Unmarshal(data, resp) == nil {
			select {
			case waiting <- resp:
			default: // answered twice
			}
		}
	}
}

// fail ends all calls under way.
func (t *sseTransport) fail() {
	t.mu.Lock()
	t.closed = true
	for _, waiting := range t.pending {
		close(waiting)
	}
	t.pending = nil
	t.mu.Unlock()
	t.lose()
}

func (t *sseTransport) post(ctx context.Context, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
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

func (t *sseTransport) Start(context.Context) error { return nil }
func (t *sseTransport) GetSessionId() string        { return "" }

func (t *sseTransport) Close() error {
	t.stop()
	return nil
}

func (t *sseTransport) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
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

func (t *sseTransport) SendNotification(ctx context.Context, n wire.JSONRPCNotification) error {
	return t.post(ctx, n)
}

func (t *sseTransport) SetNotificationHandler(f func(wire.JSONRPCNotification)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notified = f
}

func (t *sseTransport) SetRequestHandler(f transport.RequestHandler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handler = f
}

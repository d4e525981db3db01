package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
)

// RemoteServer is a server at a URL: an endpoint of the streamable HTTP transport, or of the older SSE transport. Up to
// revision 2025-11-25, a streamable HTTP endpoint has a GET stream for unsolicited messages of the server.
type RemoteServer struct {
	Server  string // name of the server
	URL     string
	SSE     bool // the older HTTP+SSE transport
	Agent   string
	Headers map[string]string
	Renewer Renewer // nil means that a refused request is not sent again
	// DialTimeout bounds opening the TCP connection.
	DialTimeout time.Duration
	MaxMessage  int // bytes
}

func (t RemoteServer) dial(lifetime, limit context.Context, b *transportBase) (transport.Interface, messageTransport, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("invalid url of MCP server %q", t.Server) // the parser's message would contain the URL
	}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
	e := &endpoint{roundTripper: t.roundTripper(originOf(u)), address: address}
	if t.SSE {
		sse, err := e.openSSE(lifetime, limit, t, b)
		return sse, e, err
	}
	e.roundTripper.sessionStream = &sessionStream{listening: make(chan struct{}), answered: make(chan struct{}, 1), interceptor: b.interceptor}
	options := []transport.StreamableHTTPCOption{
		transport.WithHTTPBasicClient(&http.Client{Transport: e.roundTripper}), transport.WithHTTPLogger(discardLogger),
	}
	if b.interceptor.negotiation.mode == NegotiateLegacy {
		options = append(options, transport.WithContinuousListening()) //nolint:staticcheck // deprecated for a protocol version that is not asked for here
	}
	inner, err := transport.NewStreamableHTTP(t.URL, options...)
	return inner, e, err
}

func (t RemoteServer) roundTripper(origin string) *roundTripper {
	dialer := net.Dialer{Timeout: t.DialTimeout}
	trip := &roundTripper{
		base:  &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 16},
		limit: t.MaxMessage, agent: t.Agent, origin: origin,
		requestHeaders: requestHeaders{headers: t.Headers, renewer: t.Renewer},
	}
	trip.transport = trip.base
	if w, ok := t.Renewer.(interface {
		Transport(base http.RoundTripper) http.RoundTripper
	}); ok {
		trip.transport = w.Transport(trip.base)
	}
	return trip
}

// endpoint is a server over HTTP. A nil endpoint means that the server is not reached over HTTP.
type endpoint struct {
	roundTripper *roundTripper
	address      string // host and port
}

func (e *endpoint) close(context.Context) { e.roundTripper.base.CloseIdleConnections() }

func (e *endpoint) startListening(version string) {
	if e != nil && e.roundTripper.sessionStream != nil {
		e.roundTripper.sessionStream.version = version
		close(e.roundTripper.sessionStream.listening)
	}
}

// isGone reports whether the server has closed its port. It checks after a pause, because a server that shuts down
// closes its streams before its port.
func (e *endpoint) isGone(ctx context.Context, pause time.Duration) bool {
	if !Sleep(ctx, pause) {
		return false
	}
	conn, err := e.roundTripper.base.DialContext(ctx, "tcp", e.address)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// listenStreamTimeout is how long to wait for the listening stream to open. After this time the server counts as
// connected without it. Some servers answer the GET request only when they send their first message.
const listenStreamTimeout = time.Second

// WaitListening waits until the listening stream of an HTTP server is open, at most listenStreamTimeout. The stream
// must not open during a call, because the server could then send the answer on this stream, where it would be lost.
func (c *Conn) WaitListening(ctx context.Context) {
	if c.endpoint == nil || c.endpoint.roundTripper.sessionStream == nil || c.options.Negotiation != NegotiateLegacy {
		return
	}
	ctx, stop := context.WithTimeout(ctx, listenStreamTimeout)
	defer stop()
	select {
	case <-c.endpoint.roundTripper.sessionStream.answered:
	case <-ctx.Done():
	}
}

package connection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/claudeless/claudeless/mcp/internal/carrier"
)

// Remote is a server at a URL: a streamable HTTP endpoint, in the older era with
// a standing GET stream for what the server sends by itself, or the older
// transport.
type Remote struct {
	Server  string // its name
	URL     string
	SSE     bool // the older transport
	Agent   string
	Headers map[string]string
	Renewer Renewer // nil = a refusal is final
	// DialTimeout bounds connecting to the port.
	DialTimeout time.Duration
	MaxMessage  int // bytes
}

// dial lays the way.
func (t Remote) dial(life, limit context.Context, b *transportBase) (transport.Interface, messageTransport, error) {
	e := &endpoint{transportBase: b, trip: t.roundTripper()}
	if t.SSE {
		return e.stream(life, limit, t)
	}
	e.trip.standing = &sessionStream{ready: make(chan struct{}), answered: make(chan struct{})}
	options := []transport.StreamableHTTPCOption{
		transport.WithHTTPBasicClient(&http.Client{Transport: e.trip}), transport.WithHTTPLogger(silent),
	}
	if b.link.negotiation.mode == Legacy {
		options = append(options, transport.WithContinuousListening()) //nolint:staticcheck // deprecated for a protocol version that is not asked for here
		e.listens = true
	}
	inner, err := transport.NewStreamableHTTP(t.URL, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("url of MCP server %q cannot be read", t.Server) // the parser's text repeats it
	}
	return inner, e, nil
}

func (t Remote) roundTripper() *roundTripper {
	dialer := net.Dialer{Timeout: t.DialTimeout}
	trip := &roundTripper{
		base:  &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 16},
		limit: t.MaxMessage, agent: t.Agent,
		pass: requestHeaders{headers: t.Headers, renewer: t.Renewer},
	}
	if u, err := url.Parse(t.URL); err == nil { // else there is nobody to send to
		trip.origin = originOf(u)
	}
	return trip
}

// endpoint is the way to a server over HTTP.
type endpoint struct {
	*transportBase
	trip    *roundTripper
	listens bool // the standing stream is opened
}

// stream opens the stream of the older transport and waits for its endpoint.
func (e *endpoint) stream(life, limit context.Context, t Remote) (transport.Interface, messageTransport, error) {
	sse, err := carrier.OpenSSE(life, limit, carrier.SSEOptions{
		URL: t.URL, Client: &http.Client{Transport: e.trip}, Limit: t.MaxMessage, Owner: e, Tasks: e.tasks,
	})
	var status *carrier.StatusError
	switch {
	case err == nil:
		return sse, e, nil
	case errors.As(err, &status) && status.Code < http.StatusInternalServerError:
		return nil, nil, &DialError{Reason: err.Error(), Wire: err.Error()}
	case transient(err):
		return nil, nil, TransientError{err}
	}
	return nil, nil, err
}

// TooLong implements carrier.Owner.
func (e *endpoint) TooLong(id []byte, why *carrier.TooLongError) { e.link.TooLong(id, why) }

// End implements carrier.Owner.
func (e *endpoint) End() {
	e.trip.base.CloseIdleConnections()
	e.Lose()
}

func (e *endpoint) close(context.Context) { e.trip.base.CloseIdleConnections() }

func (e *endpoint) opened(version string) {
	if s := e.trip.standing; s != nil {
		s.version = version
		close(s.ready)
	}
}

// listenLimit is how long the standing stream of a server may take to open
// before it counts as connected all the same. Servers that answer the GET
// with their first message only cost it once.
const listenLimit = time.Second

func (e *endpoint) waitListening(ctx context.Context) {
	if !e.listens {
		return
	}
	timer := time.NewTimer(listenLimit)
	defer timer.Stop()
	select {
	case <-e.trip.standing.answered:
	case <-timer.C:
	case <-ctx.Done():
	}
}

package connection

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// RemoteServer is a server at a URL: an endpoint of the streamable HTTP transport, or of the older SSE transport. Up to
// revision 2025-11-25, a streamable HTTP endpoint has a GET stream for unsolicited messages of the server.
type RemoteServer struct {
	Server      string // name of the server
	URL         string
	SSE         bool // the older HTTP+SSE transport
	Agent       string
	Headers     map[string]string
	Renewer     HeadersProvider // nil means that a refused request is not sent again
	DialTimeout time.Duration   // bounds opening the TCP connection
	MaxMessage  int             // bytes
}

func (t RemoteServer) dial(lifetime, limit context.Context, b *transportBase) (messageTransport, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, fmt.Errorf("invalid URL of the MCP server %q: expected http://… or https://…", t.Server) // the parser's error quotes the URL
	}
	trip := t.roundTripper(originOf(u))
	h := &httpTransport{
		transportBase: b, roundTripper: trip, httpClient: &http.Client{Transport: trip}, url: t.URL, maxMessageBytes: t.MaxMessage, getStreamAnswered: make(chan struct{}),
		hostPort: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])),
	}
	h.lifetime, h.endLifetime = context.WithCancel(lifetime)
	if t.SSE {
		if err := h.openLegacySSE(limit); err != nil {
			h.close(limit)
			return nil, err
		}
	}
	return h, nil
}

func (t RemoteServer) roundTripper(origin string) *roundTripper {
	dialer := net.Dialer{Timeout: t.DialTimeout}
	trip := &roundTripper{
		base:      &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 16},
		userAgent: t.Agent, serverOrigin: origin,
		headers: t.Headers, renewer: t.Renewer,
	}
	trip.sender = trip.base
	if w, ok := t.Renewer.(interface {
		ProofTransport(base http.RoundTripper) http.RoundTripper
	}); ok {
		trip.sender = w.ProofTransport(trip.base)
	}
	return trip
}

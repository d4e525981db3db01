package connection

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/mcp/internal/carrier"
)

// Refusal is an answer that wants authorization.
type Refusal struct {
	Status int    // 401 or 403
	Header string // WWW-Authenticate; empty = none came
	// Accepted says that some request was taken before.
	Accepted bool
}

// Renewer gives other headers after a request was refused that matters, once
// for each.
type Renewer interface {
	Renew(ctx context.Context, r Refusal) (headers map[string]string, err error)
}

// roundTripper puts the configured headers on every request, DELETE included,
// bounds what a server may send at a stretch, and makes refusals errors.
type roundTripper struct {
	base   *http.Transport
	limit  int
	origin string // of the server: headers go nowhere else
	agent  string // User-Agent
	// sessionStream is the optional stream that GET opens; nil = GET opens a stream
	// whose reader bounds it.
	standing *sessionStream
	pass     requestHeaders
	status   atomic.Int64 // of the last answer
	issuer   atomic.Value // string: the origin that has given out the id of the session
}

// sessionStream is the optional GET stream of an endpoint. It waits for ready, after
// the handshake; version is set before that is closed.
type sessionStream struct {
	ready    chan struct{}
	version  string
	answered chan struct{} // closed when the first GET was answered, however
	once     sync.Once
}

// requestHeaders are the headers that requests go with.
type requestHeaders struct {
	renewer  Renewer     // nil = a refusal is final
	accepted atomic.Bool // some request was not refused

	mu      sync.Mutex // held while headers are renewed
	headers map[string]string
}

func (p *requestHeaders) now() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.headers
}

// renew returns other headers than those used for a request that was refused;
// of several requests refused together one asks for them. ok is false when
// there are none.
func (p *requestHeaders) renew(ctx context.Context, refusal *http.Response, used map[string]string) (headers map[string]string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if maps.Equal(used, p.headers) {
		fresh, err := p.renewer.Renew(ctx, Refusal{
			Status: refusal.StatusCode, Header: refusal.Header.Get("WWW-Authenticate"), Accepted: p.accepted.Load(),
		})
		if err != nil {
			return nil, false
		}
		p.headers = fresh
	}
	return p.headers, true
}

// sessionHeader names the session, as its server has called it.
const sessionHeader = "Mcp-Session-Id"

// deleteLimit bounds the DELETE that ends a session.
const deleteLimit = time.Second

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, stop := req.Context(), context.CancelFunc(func() {})
	standing := req.Method == http.MethodGet && t.standing != nil
	switch {
	case standing: // must not overtake the handshake
		select {
		case <-t.standing.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case req.Method == http.MethodDelete:
		ctx, stop = context.WithTimeout(ctx, deleteLimit)
	}
	headers := t.pass.now()
	resp, err := t.send(ctx, req, headers)
	optional := req.Method == http.MethodDelete || standing
	if err == nil && unauthorized(resp) && t.pass.renewer != nil && !optional {
		resp, err = t.sendAgain(ctx, req, resp, headers)
	}
	if standing {
		t.standing.once.Do(func() { close(t.standing.answered) })
	}
	if err != nil {
		stop()
		return nil, err
	}
	t.status.Store(int64(resp.StatusCode))
	limit := t.limit
	if req.Method == http.MethodGet && !standing {
		limit = math.MaxInt // who reads the stream bounds it
	}
	carrier.Bound(ctx, resp, limit, stop)
	if !unauthorized(resp) {
		t.pass.accepted.Store(true)
		return resp, nil
	}
	if standing { // no use in trying again
		resp.StatusCode = http.StatusMethodNotAllowed
		return resp, nil
	}
	resp.Body.Close()
	text := fmt.Sprintf("HTTP %d: authorization required", resp.StatusCode)
	return nil, &DialError{Reason: text, Wire: text, NeedsAuth: true}
}

func unauthorized(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
}

func originOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

func (t *roundTripper) send(ctx context.Context, req *http.Request, headers map[string]string) (*http.Response, error) {
	req = req.Clone(ctx)
	get := req.Method == http.MethodGet
	if get && t.standing != nil && t.standing.version != "" {
		req.Header.Set(carrier.VersionHeader, t.standing.version)
	}
	req.Header.Set("User-Agent", t.agent)
	req.Header.Set("Accept-Encoding", "identity")
	if get {
		req.Header.Del("Content-Type")
	}
	req.Header.Del("Referer") // a redirect would tell the next server the URL of this one, with its query
	to := originOf(req.URL)
	if to == t.origin { // a redirect to somebody else does not carry secrets there
		for k, v := range headers {
			req.Header.Set(k, v)
		}
	}
	if issuer, ok := t.issuer.Load().(string); ok && issuer != to {
		req.Header.Del(sessionHeader)
	}
	resp, err := t.base.RoundTrip(req)
	if err == nil && resp.Header.Get(sessionHeader) != "" {
		t.issuer.Store(to)
	}
	return resp, err
}

// sendAgain renews the headers that were refused and repeats the request.
// Without new headers the refusal stands.
func (t *roundTripper) sendAgain(ctx context.Context, req *http.Request, refusal *http.Response, used map[string]string) (*http.Response, error) {
	if req.Body != nil && req.GetBody == nil {
		return refusal, nil
	}
	headers, ok := t.pass.renew(ctx, refusal, used)
	if !ok {
		return refusal, nil
	}
	refusal.Body.Close()
	again := req.Clone(ctx)
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		again.Body = body
	}
	return t.send(ctx, again, headers)
}

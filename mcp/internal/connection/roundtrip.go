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

// Refusal is a response that requires authorization.
type Refusal struct {
	Status int    // 401 or 403
	Header string // WWW-Authenticate; empty = absent
	// Accepted is true if an earlier request was accepted.
	Accepted bool
}

// Renewer returns new headers after a request was refused. It is called once per refusal.
type Renewer interface {
	Renew(ctx context.Context, r Refusal) (headers map[string]string, err error)
}

// roundTripper adds the configured headers to every request, including DELETE, bounds the size of messages, and turns
// refusals into errors.
type roundTripper struct {
	base   *http.Transport
	limit  int
	origin string // origin of the server; headers are not sent to other origins
	agent  string // User-Agent
	// standing is the optional stream that GET opens; nil = GET opens an SSE stream whose reader bounds its size.
	standing       *sessionStream
	requestHeaders requestHeaders
	status         atomic.Int64 // of the last response
	issuer         atomic.Value // string: the origin that issued the session id
}

// sessionStream is the optional GET stream of an endpoint. It is opened when ready is closed, after the handshake;
// version is set before that.
type sessionStream struct {
	ready    chan struct{}
	version  string
	answered chan struct{} // closed after the first GET was answered, successfully or not
	once     sync.Once
}

// requestHeaders are the headers added to requests.
type requestHeaders struct {
	renewer  Renewer     // nil = a refusal is not retried
	accepted atomic.Bool // a request was accepted

	mu      sync.Mutex // held while headers are renewed
	headers map[string]string
}

func (p *requestHeaders) current() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.headers
}

// renew returns headers other than those used for a refused request. If several requests are refused at the same
// time, only one calls the renewer. ok is false if there are no new headers.
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

// sessionHeader carries the session id that the server assigned.
const sessionHeader = "Mcp-Session-Id"

// deleteLimit bounds the DELETE that ends a session.
const deleteLimit = time.Second

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, stop := req.Context(), context.CancelFunc(func() {})
	standing := req.Method == http.MethodGet && t.standing != nil
	switch {
	case standing: // must not be sent before the handshake
		select {
		case <-t.standing.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case req.Method == http.MethodDelete:
		ctx, stop = context.WithTimeout(ctx, deleteLimit)
	}
	headers := t.requestHeaders.current()
	resp, err := t.send(ctx, req, headers)
	optional := req.Method == http.MethodDelete || standing
	if err == nil && unauthorized(resp) && t.requestHeaders.renewer != nil && !optional {
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
		limit = math.MaxInt // the reader of the stream bounds it
	}
	carrier.Bound(ctx, resp, limit, stop)
	if !unauthorized(resp) {
		t.requestHeaders.accepted.Store(true)
		return resp, nil
	}
	if standing { // retrying does not help
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
	req.Header.Del("Referer") // a redirect would reveal this URL and its query to the next server
	to := originOf(req.URL)
	if to == t.origin { // after a redirect to another origin the secrets are not sent
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

// sendAgain renews refused headers and repeats the request. Without new headers it returns the refusal.
func (t *roundTripper) sendAgain(ctx context.Context, req *http.Request, refusal *http.Response, used map[string]string) (*http.Response, error) {
	if req.Body != nil && req.GetBody == nil {
		return refusal, nil
	}
	headers, ok := t.requestHeaders.renew(ctx, refusal, used)
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

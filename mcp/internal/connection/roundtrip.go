package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
)

// AuthorizationRefusal is a response that requires authorization.
type AuthorizationRefusal struct {
	Status      int               // 401 or 403
	Challenge   string            // WWW-Authenticate; empty means absent
	UsedHeaders map[string]string // the headers of the request
	WasAccepted bool              // true if the server accepted an earlier request to this endpoint
}

// HeadersProvider provides the headers of requests. A Renewer may also have the method Transport(http.RoundTripper)
// http.RoundTripper. Requests are then sent by the transport that this method returns.
type HeadersProvider interface {
	// NextRequestHeaders returns the headers of the next request; last are the headers of the previous request.
	NextRequestHeaders(ctx context.Context, last map[string]string) map[string]string
	// Renew returns new headers after a request was refused; it is called once per refusal. If it returns a
	// *DialError, that is the error of the request.
	Renew(ctx context.Context, r AuthorizationRefusal) (headers map[string]string, err error)
}

// roundTripper adds the configured headers to every request, and turns refusals into errors.
type roundTripper struct {
	base               *http.Transport
	sender             http.RoundTripper // sends the requests: base itself, or the transport that the renewer has put around base
	serverOrigin       string            // origin of the server; headers are not sent to other origins
	userAgent          string            // User-Agent
	sessionIDOrigin    atomic.Value      // the origin that issued the session id, a string; the id is not sent to other origins
	renewer            HeadersProvider   // nil means that a refused request is not sent again
	hasAcceptedRequest atomic.Bool       // a request was accepted

	mu      sync.Mutex // held while headers are renewed
	headers map[string]string
}

func (t *roundTripper) fetchNextRequestHeaders(ctx context.Context) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.renewer != nil {
		t.headers = t.renewer.NextRequestHeaders(ctx, t.headers)
	}
	return t.headers
}

// renewHeaders returns new headers after a request was refused. used are the headers of this request. If several requests
// were refused at the same time, only the first one calls the renewer; the others get the same new headers.
func (t *roundTripper) renewHeaders(ctx context.Context, refusal *http.Response, used map[string]string) (_ map[string]string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if maps.Equal(used, t.headers) {
		t.headers, err = t.renewer.Renew(ctx, AuthorizationRefusal{
			Status: refusal.StatusCode, Challenge: strings.Join(refusal.Header.Values("WWW-Authenticate"), ", "), UsedHeaders: used, WasAccepted: t.hasAcceptedRequest.Load(),
		})
		if err != nil {
			t.headers = used
		}
	}
	return t.headers, err
}

func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	headers := t.fetchNextRequestHeaders(ctx)
	resp, err := t.sendWithSameOriginHeaders(ctx, req, headers)
	if isRenewed := t.renewer != nil && req.Method == http.MethodPost && originOf(req.URL) == t.serverOrigin; err == nil && isUnauthorizedOrForbidden(resp) && isRenewed {
		resp, err = t.renewHeadersAndSendAgain(ctx, req, resp, headers)
	}
	if err != nil {
		return nil, err
	}
	isForbidden := resp.StatusCode == http.StatusForbidden && req.Header.Get(versionHeader) != "" // after the handshake, a login does not help
	if !isUnauthorizedOrForbidden(resp) {
		t.hasAcceptedRequest.Store(true)
	} else if !isForbidden {
		defer resp.Body.Close()
		return nil, t.unauthorizedResponseError(resp, headers)
	}
	return resp, nil
}

// unauthorizedResponseError returns the error of a refused request. Normally the error asks for a login. If the user configured
// the Authorization header, the error says that this header was rejected, because the real CLI then offers no login.
func (t *roundTripper) unauthorizedResponseError(resp *http.Response, sentHeaders map[string]string) *DialError {
	text := fmt.Sprintf("HTTP %d: authorization required", resp.StatusCode)
	value := sentHeaders["Authorization"]
	if value == "" || t.renewer != nil {
		return &DialError{Reason: text, CLIText: text, NeedsAuth: true}
	}
	const longest = 300
	detail, _ := io.ReadAll(io.LimitReader(resp.Body, longest)) // a part of the body is enough
	text = fmt.Sprintf("Server rejected the configured Authorization header (HTTP %d). Check that the token is valid for this MCP endpoint — "+
		"OAuth fallback is disabled when headers.Authorization is set.", resp.StatusCode)
	f := &DialError{Reason: text, CLIText: text}
	if len(detail) > 0 {
		f.Reason += " Error detail: " + strings.ReplaceAll(string(detail), value[strings.LastIndexByte(value, ' ')+1:], "[hidden]")
	}
	return f
}

func isUnauthorizedOrForbidden(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
}

func originOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

func (t *roundTripper) sendWithSameOriginHeaders(ctx context.Context, req *http.Request, headers map[string]string) (*http.Response, error) {
	req = req.Clone(ctx)
	req.Header.Set("User-Agent", t.userAgent)
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Del("Referer") // a redirect would reveal this URL and its query to the next server
	to := originOf(req.URL)
	if to == t.serverOrigin { // after a redirect to another origin the secrets are not sent
		for k, v := range headers {
			req.Header.Set(k, v)
		}
	}
	if issuer, ok := t.sessionIDOrigin.Load().(string); ok && issuer != to {
		req.Header.Del(sessionHeader)
	}
	resp, err := t.sender.RoundTrip(req)
	if err == nil && resp.Header.Get(sessionHeader) != "" {
		t.sessionIDOrigin.Store(to)
	}
	return resp, err
}

// renewHeadersAndSendAgain repeats a refused request with new headers. If the renewer has no new headers,
// renewHeadersAndSendAgain returns the refusal. If the renewer returns a *DialError, this is the error of the request.
func (t *roundTripper) renewHeadersAndSendAgain(ctx context.Context, req *http.Request, refusal *http.Response, used map[string]string) (*http.Response, error) {
	headers, err := t.renewHeaders(ctx, refusal, used)
	if f, ok := errors.AsType[*DialError](err); ok {
		refusal.Body.Close()
		return nil, f
	}
	if err != nil {
		return refusal, nil
	}
	refusal.Body.Close()
	again := req.Clone(ctx)
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.sendWithSameOriginHeaders(ctx, again, headers)
}

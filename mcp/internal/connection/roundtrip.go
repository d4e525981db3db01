package connection

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Refusal is a response that requires authorization.
type Refusal struct {
	Status      int               // 401 or 403
	Header      string            // WWW-Authenticate; empty means absent
	UsedHeaders map[string]string // the headers of the request
	// WasAccepted is true if the server accepted an earlier request to this endpoint.
	WasAccepted bool
}

// Renewer provides the headers of requests. A Renewer may also have the method Transport(http.RoundTripper)
// http.RoundTripper. Requests are then sent by the transport that this method returns.
type Renewer interface {
	// Prepare returns the headers of the next request; last are the headers of the previous request.
	Prepare(ctx context.Context, last map[string]string) map[string]string
	// Renew returns new headers after a request was refused; it is called once per refusal. If it returns a
	// *DialError, that is the error of the request.
	Renew(ctx context.Context, r Refusal) (headers map[string]string, err error)
}

// roundTripper adds the configured headers to every request, bounds the size of messages, and turns refusals into
// errors. It suppresses the DELETE with which mcp-go ends a session, because the real CLI does not send it.
type roundTripper struct {
	base      *http.Transport
	transport http.RoundTripper // sends the requests: base itself, or the transport that the renewer has put around base
	limit     int
	origin    string // origin of the server; headers are not sent to other origins
	agent     string // User-Agent
	// sessionStream is the optional stream that a GET request opens. It is nil for the older SSE transport, in which
	// GET opens the main stream; the reader of that stream limits the size of messages.
	sessionStream  *sessionStream
	requestHeaders requestHeaders
	issuer         atomic.Value // the origin that issued the session id, a string; the id is not sent to other origins
}

// sessionStream is the optional GET stream of an endpoint. The GET request must not be sent before the end of the
// handshake, so it waits until the channel listening is closed. version must be set before the channel is closed.
type sessionStream struct {
	listening   chan struct{}
	version     string
	interceptor *interceptor
	answered    chan struct{} // holds a token after a GET was answered, successfully or not
}

type requestHeaders struct {
	renewer  Renewer     // nil means that a refused request is not sent again
	accepted atomic.Bool // a request was accepted

	mu      sync.Mutex // held while headers are renewed
	headers map[string]string
}

func (p *requestHeaders) currentHeaders(ctx context.Context) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.renewer != nil {
		p.headers = p.renewer.Prepare(ctx, p.headers)
	}
	return p.headers
}

// renew returns new headers after a request was refused. used are the headers of this request. If several requests were
// refused at the same time, only the first one calls the renewer; the others get the same new headers.
func (p *requestHeaders) renew(ctx context.Context, refusal *http.Response, used map[string]string) (map[string]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if maps.Equal(used, p.headers) {
		fresh, err := p.renewer.Renew(ctx, Refusal{
			Status: refusal.StatusCode, Header: strings.Join(refusal.Header.Values("WWW-Authenticate"), ", "), UsedHeaders: used, WasAccepted: p.accepted.Load(),
		})
		if err != nil {
			return nil, err
		}
		p.headers = fresh
	}
	return p.headers, nil
}

var errNoDelete = errors.New("sessions are not ended with DELETE")

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodDelete {
		return nil, errNoDelete
	}
	ctx := req.Context()
	standing := req.Method == http.MethodGet && t.sessionStream != nil
	if standing { // must not be sent before the handshake
		select {
		case <-t.sessionStream.listening:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	headers := t.requestHeaders.currentHeaders(ctx)
	resp, err := t.send(ctx, req, headers)
	if err == nil && isUnauthorized(resp) && t.requestHeaders.renewer != nil && !standing && originOf(req.URL) == t.origin {
		resp, err = t.sendAgain(ctx, req, resp, headers)
	}
	if standing {
		signalChange(t.sessionStream.answered)
	}
	if err != nil {
		if t.sessionStream != nil && ctx.Err() == nil && findError[*DialError](err) == nil { // the real CLI counts a stream of notifications twice
			t.sessionStream.interceptor.closeReason.countBroken(map[bool]int32{false: 1, true: 2}[standing])
		}
		return nil, err
	}
	if t.sessionStream != nil { // else the reader of the stream limits the size
		t.sessionStream.interceptor.closeReason.brokenInRow.Store(0)
		t.boundBody(req, resp)
	}
	unauthorized := isUnauthorized(resp)
	if !unauthorized {
		t.requestHeaders.accepted.Store(true)
	}
	isForbidden := resp.StatusCode == http.StatusForbidden && req.Header.Get(versionHeader) != "" // after the handshake, a login does not help
	switch {
	case unauthorized && standing: // retrying does not help
		resp.StatusCode = http.StatusMethodNotAllowed
		return resp, nil
	case unauthorized && !isForbidden:
		err = t.refusalError(resp, headers)
	case req.Method == http.MethodPost && t.sessionStream != nil:
		err = t.checkAnswer(req, resp)
	}
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// refusalError returns the error of a refused request. Normally the error asks for a login. If the user configured the
// Authorization header, the error says that this header was rejected, because the real CLI then offers no login.
func (t *roundTripper) refusalError(resp *http.Response, headers map[string]string) *DialError {
	text := fmt.Sprintf("HTTP %d: authorization required", resp.StatusCode)
	value := headers["Authorization"]
	if value == "" || t.requestHeaders.renewer != nil {
		return &DialError{Reason: text, Wire: text, NeedsAuth: true}
	}
	const longest = 300
	detail, _ := io.ReadAll(io.LimitReader(resp.Body, longest)) // a part of the body is enough
	text = fmt.Sprintf("Server rejected the configured Authorization header (HTTP %d). Check that the token is valid for this MCP endpoint — "+
		"OAuth fallback is disabled when headers.Authorization is set.", resp.StatusCode)
	f := &DialError{Reason: text, Wire: text}
	if len(detail) > 0 {
		f.Reason += " Error detail: " + strings.ReplaceAll(string(detail), value[strings.LastIndexByte(value, ' ')+1:], "[hidden]")
	}
	return f
}

func isUnauthorized(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
}

func originOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

func (t *roundTripper) send(ctx context.Context, req *http.Request, headers map[string]string) (*http.Response, error) {
	req = req.Clone(ctx)
	get := req.Method == http.MethodGet
	if get && t.sessionStream != nil && t.sessionStream.version != "" {
		req.Header.Set(versionHeader, t.sessionStream.version)
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
	resp, err := t.transport.RoundTrip(req)
	if err == nil && resp.Header.Get(sessionHeader) != "" {
		t.issuer.Store(to)
	}
	return resp, err
}

// sendAgain repeats a refused request with new headers. If the renewer has no new headers, sendAgain returns the
// refusal. If the renewer returns a *DialError, this is the error of the request.
func (t *roundTripper) sendAgain(ctx context.Context, req *http.Request, refusal *http.Response, used map[string]string) (*http.Response, error) {
	if req.Body != nil && req.GetBody == nil { // the GET request of SSE, too
		return refusal, nil
	}
	headers, err := t.requestHeaders.renew(ctx, refusal, used)
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
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		again.Body = body
	}
	return t.send(ctx, again, headers)
}

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
)

// boundBody limits the messages in the body of a response. An event stream also becomes a [responseStream].
func (t *roundTripper) boundBody(req *http.Request, resp *http.Response) {
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != "text/event-stream" {
		resp.Body = http.MaxBytesReader(nil, resp.Body, 2*int64(t.limit)+1)
		return
	}
	stream := &responseStream{events: newEventReader(resp.Body), data: boundedLine{limit: t.limit}, isModern: isModern(req)}
	var isOpen bool
	if stream.request, isOpen = req.Context().Value(openRequestKey{}).(openRequest); !isOpen {
		stream.request = openRequest{interceptor: t.sessionStream.interceptor, isListening: true}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{&chunkReader{source: stream}, resp.Body}
}

func isModern(req *http.Request) bool { return req.Header.Get(versionHeader) == ModernVersion }

// checkAnswer returns why the answer to a posted message cannot be used, or nil. If it is JSON, its body is replaced by
// the response in it. Status 202 does not answer a request, so checkAnswer then waits until it is cancelled.
func (t *roundTripper) checkAnswer(req *http.Request, resp *http.Response) error {
	open, isRequest := req.Context().Value(openRequestKey{}).(openRequest)
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	succeeded := resp.StatusCode/100 == 2
	switch {
	case resp.StatusCode == http.StatusNotFound && req.Header.Get(sessionHeader) != "": // the session has ended
		return nil
	case succeeded && !isRequest, resp.StatusCode/100 == 3: // net/http follows redirects
		return nil
	case resp.StatusCode == http.StatusAccepted: // the server may never answer
		<-req.Context().Done()
		return req.Context().Err()
	case succeeded && media == "text/event-stream":
		return nil
	case succeeded && media != "application/json":
		return &AnswerError{resp.StatusCode, "Unexpected content type: " + cmp.Or(resp.Header.Get("Content-Type"), "null")}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(t.limit)+1))
	if len(body) > t.limit && isRequest {
		rest, _ := io.Copy(io.Discard, resp.Body) // its end or the limit of the body
		open.fail(newTooLongError(int64(len(body))+rest, t.limit))
	}
	if err != nil {
		return err
	}
	message := findResponse(body)
	parsed := parseMessage(message)
	refused := resp.StatusCode == http.StatusBadRequest && isModern(req) && plainjson.DecodeOrZero[struct{ Error json.RawMessage }](message).Error != nil
	switch {
	case !succeeded && !refused:
		return &AnswerError{resp.StatusCode, strings.TrimSpace("Error POSTing to endpoint: " + string(body))}
	case !json.Valid(body):
		return ErrUnreadable
	case parsed == nil:
		return &ResultError{"returned a malformed result that failed schema validation: the answer is not a message of JSON-RPC"}
	}
	resp.StatusCode, resp.Body = http.StatusOK, io.NopCloser(bytes.NewReader(parsed))
	return nil
}

// findResponse returns the JSON-RPC response in a body: the first response of an array, otherwise the whole body.
func findResponse(body []byte) []byte {
	for _, m := range plainjson.DecodeOrZero[[]json.RawMessage](body) {
		if plainjson.DecodeOrZero[struct{ Method *string }](m).Method == nil {
			return m
		}
	}
	return body
}

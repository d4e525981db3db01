package connection

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// httpTransport is the streamable HTTP transport, or the older HTTP transport (HTTP+SSE). Up to revision 2025-11-25, streamable
// HTTP has sessions and a GET stream for messages that belong to no request. With HTTP+SSE, everything that the server sends
// arrives on the GET stream.
type httpTransport struct {
	*transportBase
	roundTripper      *roundTripper // round tripper of httpClient
	httpClient        *http.Client
	url               string          // URL to which messages are posted
	hostPort          string          // host and port of the server
	legacyEventStream *eventReader    // event stream of the older transport; nil means streamable HTTP
	maxMessageBytes   int             // maximum number of bytes in a message
	lifetime          context.Context // ends when the connection is closed
	endLifetime       context.CancelFunc
	sessionID         atomic.Value  // string; empty or nil means none
	protocolVersion   atomic.Value  // string: the protocol version; empty or nil before the handshake
	getStreamAnswered chan struct{} // closed when the first request for the GET stream is answered or has failed
}

// StartReading begins to read the stream of the older transport.
func (t *httpTransport) StartReading(context.Context) (alwaysNil error) {
	if t.legacyEventStream != nil {
		t.goroutines.Go(func() { // returns when the connection is closed
			_, _ = (&eventStream{httpTransport: t}).dispatchMessagesUntilResponse(t.legacyEventStream) // however the stream ends, the connection is lost
			t.MarkConnectionLost()
		})
	}
	return nil
}

// close ends the open requests. Like the real CLI, it does not end the session.
func (t *httpTransport) close(context.Context) {
	t.endLifetime()
	t.roundTripper.base.CloseIdleConnections()
}

func (t *httpTransport) isModern() bool { return t.protocolVersion.Load() == ModernVersion }

// sendAndCountBrokenConnections sends an HTTP request. If the server cannot be reached, it adds
// brokenConnectionsPerFailure to the count of broken connections.
func (t *httpTransport) sendAndCountBrokenConnections(req *http.Request, brokenConnectionsPerFailure int32) (*http.Response, error) {
	if id, _ := t.sessionID.Load().(string); id != "" && !t.isModern() {
		req.Header.Set(sessionHeader, id)
	}
	if version, _ := t.protocolVersion.Load().(string); version != "" {
		req.Header.Set(versionHeader, version)
	}
	resp, err := t.httpClient.Do(req)
	switch {
	case err == nil:
		t.consecutiveBrokenConnections.Store(0)
	case t.legacyEventStream == nil && req.Context().Err() == nil && findError[*DialError](err) == nil:
		t.countBrokenHTTPMarkLostAtLimit(brokenConnectionsPerFailure)
	}
	return resp, err
}

func (t *httpTransport) postMessage(ctx context.Context, message any, header http.Header) (*http.Response, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := t.sendAndCountBrokenConnections(req, 1)
	switch {
	case err != nil:
	case resp.StatusCode == http.StatusNotFound && req.Header.Get(sessionHeader) != "":
		err = transport.ErrSessionTerminated
	case t.legacyEventStream != nil && resp.StatusCode/100 != 2:
		err = fmt.Errorf("the server answered a message with HTTP status %d", resp.StatusCode)
	default:
		return resp, nil
	}
	if resp != nil {
		resp.Body.Close()
	}
	return nil, err
}

// contextUntilClosed returns a context that also ends when the connection is closed.
func (t *httpTransport) contextUntilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(t.lifetime, cancel)
	return ctx, func() { stop(); cancel() }
}

func (t *httpTransport) sendWithoutResponse(ctx context.Context, message any) error {
	ctx, stop := t.contextUntilClosed(ctx)
	defer stop()
	resp, err := t.postMessage(ctx, message, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		_, err = t.readSingleMessage(resp)
	}
	return err
}

// SendRequest posts a request and waits for its response, which may arrive on the GET stream.
func (t *httpTransport) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	ctx, stop := t.contextUntilClosed(ctx)
	defer stop()
	resp, err := t.postMessage(ctx, req, req.Header)
	if err != nil {
		return nil, err
	}
	defer func() { stop(); resp.Body.Close() }() // in this order, because closing may wait for the server
	if id := resp.Header.Get(sessionHeader); id != "" && req.Method == string(wire.MethodInitialize) {
		t.sessionID.Store(id)
	}
	if resp.StatusCode/100 == 2 && isEventStream(resp) && t.legacyEventStream == nil {
		return t.readResponseStream(ctx, resp.Body, req)
	}
	if resp.StatusCode == http.StatusAccepted || t.legacyEventStream != nil {
		return nil, t.waitForResponseOnOtherStream(ctx)
	}
	message, err := t.readSingleMessage(resp)
	if err != nil {
		return nil, err
	}
	s := eventStream{httpTransport: t, id: req.ID.String()}
	if answer := s.dispatchUnlessAwaited(message); answer != nil {
		return answer, nil
	}
	return nil, t.waitForResponseOnOtherStream(ctx) // as the real CLI does
}

func isEventStream(resp *http.Response) bool {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return media == "text/event-stream"
}

func (t *httpTransport) waitForResponseOnOtherStream(ctx context.Context) error {
	if t.legacyEventStream == nil {
		return t.waitForLossOrRequestEnd(ctx, nil)
	}
	return t.waitForLossOrRequestEnd(ctx, t.Lost())
}

// readSingleMessage reads the message of a response that is not an event stream. The error says why it cannot be used.
func (t *httpTransport) readSingleMessage(resp *http.Response) (message []byte, err error) {
	succeeded := resp.StatusCode/100 == 2
	kind := resp.Header.Get("Content-Type")
	if media, _, _ := mime.ParseMediaType(kind); succeeded && media != "application/json" {
		return nil, &UnusableHTTPAnswerError{resp.StatusCode, "CLIENT_HTTP_UNEXPECTED_CONTENT", "Unexpected content type: " + cmp.Or(kind, "null")}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(t.maxMessageBytes)+1))
	if len(body) > t.maxMessageBytes {
		rest, _ := io.CopyN(io.Discard, resp.Body, int64(t.maxMessageBytes)) // stops at the end of the body or at the limit
		return nil, newTooLongError(int64(len(body))+rest, t.maxMessageBytes)
	}
	if err != nil {
		return nil, &url.Error{Op: "Post", URL: t.url, Err: err}
	}
	found := firstResponseInBodyOrWholeBody(body)
	message = jsonRPCMessageInLine(found)
	refused := resp.StatusCode == http.StatusBadRequest && t.isModern() && plainjson.DecodeIgnoringErrors[struct{ Error json.RawMessage }](found).Error != nil
	switch {
	case !succeeded && !refused:
		return nil, &UnusableHTTPAnswerError{resp.StatusCode, formatHTTPStatus(resp), strings.TrimSpace("Error POSTing to endpoint: " + string(body))}
	case !json.Valid(body):
		return nil, ErrUnreadable
	case message == nil:
		return nil, &UnusableResultError{"returned a malformed result that failed schema validation: the answer is not a message of JSON-RPC"}
	}
	return message, nil
}

func firstResponseInBodyOrWholeBody(body []byte) []byte {
	for _, m := range plainjson.DecodeIgnoringErrors[[]json.RawMessage](body) {
		if plainjson.DecodeIgnoringErrors[struct{ Method *string }](m).Method == nil {
			return m
		}
	}
	return body
}

// readResponseStream reads the response to a request from an event stream. Up to revision 2025-11-25, if the server
// ends the stream before the response, the stream is resumed after its last event.
func (t *httpTransport) readResponseStream(ctx context.Context, body io.Reader, req transport.JSONRPCRequest) (resp *transport.JSONRPCResponse, err error) {
	s := eventStream{httpTransport: t, id: req.ID.String(), isHandshake: req.Method == string(wire.MethodInitialize) || req.Method == string(wire.MethodServerDiscover)}
	resp, err = s.dispatchMessagesUntilResponse(newEventReader(body))
	for errors.Is(err, io.EOF) && s.lastEventID != "" && !t.isModern() && SleepUnlessCancelled(ctx, cmp.Or(s.retry, reopenPause)) {
		if next, _ := s.requestStream(ctx); next != nil {
			resp, err = s.dispatchMessagesUntilResponse(newEventReader(next))
			next.Close()
		} else {
			s.lastEventID = ""
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		err = t.awaitRequestEndAfterStreamEnd(ctx)
	case errors.Is(err, ErrUnreadable) && req.Method == string(wire.MethodSubscriptionsListen):
		t.markEnded(LostUnreadable)
	}
	return resp, err
}

// awaitRequestEndAfterStreamEnd returns the error of a request whose stream ended without an answer. After a tool call, it
// waits until ctx ends and only then returns, as the real CLI does. It does not wait if the server is gone.
func (t *httpTransport) awaitRequestEndAfterStreamEnd(ctx context.Context) error {
	if ctx.Value(pendingCallContextKey{}) == nil {
		return errNoAnswer
	}
	if t.hasServerClosedPort(ctx, t.reopenPause) {
		return ErrBroken
	}
	return t.waitForLossOrRequestEnd(ctx, nil)
}

// hasServerClosedPort reports whether the server has closed its port. It checks after a pause, because a server that shuts down
// closes its streams before its port.
func (t *httpTransport) hasServerClosedPort(ctx context.Context, pauseBeforeCheck time.Duration) bool {
	if !SleepUnlessCancelled(ctx, pauseBeforeCheck) {
		return false
	}
	conn, err := t.roundTripper.base.DialContext(ctx, "tcp", t.hostPort)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// maxGETStreamReopenings is how often the GET stream is requested again. The first pause is reopenPause and
// the second 1.5 times as long, unless the server sets it (observed with 2.1.300 and 2.1.330).
const maxGETStreamReopenings = 2

// keepGETStreamOpen keeps the GET stream open until the connection is closed, unless the server refuses the first request.
func (t *httpTransport) keepGETStreamOpen() {
	s := eventStream{httpTransport: t}
	body, _ := s.requestStream(t.lifetime)
	close(t.getStreamAnswered)
	for body != nil {
		_, err := s.dispatchMessagesUntilResponse(newEventReader(body))
		body.Close()
		if body = nil; errors.Is(err, ErrUnreadable) {
			t.markEnded(LostUnreadable)
			return
		}
		pause, isRefused := t.reopenPause, false
		for range maxGETStreamReopenings {
			if body != nil || isRefused || !SleepUnlessCancelled(t.lifetime, cmp.Or(s.retry, pause)) {
				break
			}
			body, isRefused = s.requestStream(t.lifetime)
			pause += pause / 2
		}
	}
}

// eventStream is the response to a request, or the GET stream. It may continue over several HTTP responses.
type eventStream struct {
	*httpTransport
	id          string // id of the request; empty means the GET stream
	isHandshake bool   // events that cannot be parsed are skipped, as in the real CLI until it is connected
	lastEventID string
	retry       time.Duration // pause that the server asked for; 0 means none
}

// requestStream sends a GET request for the stream, or for the rest of it. A nil body means that the request failed.
// isStreamNotOffered means that the server does not offer this stream.
func (s *eventStream) requestStream(ctx context.Context) (body io.ReadCloser, isStreamNotOffered bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
	if err != nil {
		return nil, true
	}
	req.Header.Set("Accept", "text/event-stream")
	if s.lastEventID != "" {
		req.Header.Set("Last-Event-Id", s.lastEventID)
	}
	resp, err := s.sendAndCountBrokenConnections(req, 2) // the real CLI counts a stream of notifications twice
	if err != nil {
		return nil, false
	}
	if resp.StatusCode != http.StatusOK || !isEventStream(resp) {
		resp.Body.Close()
		return nil, resp.StatusCode == http.StatusMethodNotAllowed
	}
	return resp.Body, false
}

// dispatchMessagesUntilResponse handles messages until the awaited response arrives, and returns it, or io.EOF at the end.
func (s *eventStream) dispatchMessagesUntilResponse(events *eventReader) (*transport.JSONRPCResponse, error) {
	data, most := boundedLine{limit: s.maxMessageBytes}, 2*int64(s.maxMessageBytes)
	if s.legacyEventStream != nil {
		most = math.MaxInt64
	}
	for {
		data.reset()
		ev, err := events.nextEvent(&data, most)
		switch {
		case data.isTooLong() && s.legacyEventStream != nil:
			s.failRequestOfTooLongResponse(&data)
			continue
		case data.isTooLong():
			return nil, newTooLongError(data.size, s.maxMessageBytes)
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case err != nil:
			s.countBrokenHTTPMarkLostAtLimit(1)
			return nil, ErrBroken
		}
		s.updateCursor(&ev)
		switch isEmpty := ev.dataLines == 0 || ev.name != "" && ev.name != "message" || len(data.kept) == 0 && s.legacyEventStream == nil; {
		case !isEmpty && !s.isHandshake && !json.Valid(data.kept):
			return nil, ErrUnreadable
		case !isEmpty:
			if resp := s.dispatchUnlessAwaited(jsonRPCMessageInLine(data.kept)); resp != nil {
				return resp, nil
			}
		}
	}
}

// updateCursor reads the fields id and retry of an event. As in the real CLI, an id counts only if its event has data.
func (s *eventStream) updateCursor(ev *serverSentEventHead) {
	for line := range strings.Lines(string(ev.cursor)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		if ms, err := strconv.ParseUint(value, 10, 31); name == "retry" && err == nil {
			s.retry = time.Duration(ms) * time.Millisecond
		} else if name == "id" && ev.dataLines > 0 {
			s.lastEventID = value
		}
	}
}

// dispatchUnlessAwaited returns the message if it is the response to the request of the stream. It
// handles requests and notifications, and on the GET stream also responses to any request, and then returns nil.
func (s *eventStream) dispatchUnlessAwaited(message []byte) (awaitedResponse *transport.JSONRPCResponse) {
	if s.id == "" || hasMethod(message) {
		s.dispatchMessage(s.lifetime, message)
		return nil
	}
	resp := &transport.JSONRPCResponse{}
	if json.Unmarshal(message, resp) != nil || resp.ID.String() != s.id {
		return nil
	}
	return resp
}

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

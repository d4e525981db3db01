package connection

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/mcp/internal/carrier"
)

var (
	// errNoResult says that an answer had neither result nor error.
	errNoResult = errors.New("server answered with neither a result nor an error")
	// errNoAnswer says that a stream ended before the answer; streamEnded is
	// what mcp-go says then, which has no error of its own for it.
	errNoAnswer = errors.New("the stream ended before the answer")
	streamEnded = "unexpected nil response"
)

// cancelLimit bounds a notification whose outcome nobody waits for.
const cancelLimit = 5 * time.Second

// link sits between mcp-go's client and a transport. It keeps results as they
// came (the client's typed ones lose schema keywords, unknown content kinds
// and large integers), keeps code and data of errors, cancels abandoned
// requests on every transport, and takes what the server sends by itself.
//
// It always has SetProtocolVersion, so that the client leaves cancelling to it.
type link struct {
	inner transport.Interface
	inbox *notificationHandler
	debug Log

	negotiation negotiation
	sampling    bool        // the handler answers sampling
	modern      atomic.Bool // the server answered the probe
	ids         idSequence

	inFlight atomic.Int64

	mu      sync.Mutex
	pending map[string]*pendingRequest // by the text of the id
}

// pendingRequest is a request that waits for its answer.
type pendingRequest struct {
	id      wire.RequestId
	problem error // with the answer; nil = none was found
}

// newLink makes a link; inner is set before anything is sent.
func newLink(in *notificationHandler, debug Log) *link {
	return &link{inbox: in, debug: debug, pending: map[string]*pendingRequest{}}
}

// idSequence numbers requests as the real CLI does: probes and subscriptions
// have ids of their own, everything else counts from 0.
type idSequence struct{ probes, listens, requests atomic.Int64 }

func (s *idSequence) next(method string, probing bool) wire.RequestId {
	switch {
	case method == string(wire.MethodSubscriptionsListen):
		return wire.NewRequestId(fmt.Sprintf("listen:%d", s.listens.Add(1)-1))
	case method == string(wire.MethodServerDiscover) && probing:
		return wire.NewRequestId(fmt.Sprintf("server-discover-probe-%d", s.probes.Add(1)))
	}
	return wire.NewRequestId(s.requests.Add(1) - 1)
}

// exchange travels in a request's context and brings the raw answer back.
type exchange struct {
	// stub is the well-formed result shown to the client in place of the real
	// one, which goes to result.
	stub   json.RawMessage
	result json.RawMessage
}

type exchangeKey struct{}

func (l *link) Start(ctx context.Context) error { return l.inner.Start(ctx) }
func (l *link) Close() error                    { return l.inner.Close() }
func (l *link) GetSessionId() string            { return l.inner.GetSessionId() }

// SetProtocolVersion passes the negotiated version on to HTTP transports.
func (l *link) SetProtocolVersion(version string) {
	if h, ok := l.inner.(transport.HTTPConnection); ok {
		h.SetProtocolVersion(version)
	}
}

// SendRequest sends one request and waits for its answer.
func (l *link) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	req.Params = asSent(req.Params)
	if req.Method == string(wire.MethodInitialize) {
		if err := l.negotiation.handshake(); err != nil {
			return nil, err
		}
		l.negotiation.greeted = true
	}
	result, err := l.send(ctx, &req)
	switch {
	case req.Method == string(wire.MethodServerDiscover) && !l.modern.Load():
		if err == nil {
			err = discovered(result)
		}
		l.negotiation.probe, l.negotiation.probed = err, true
		l.modern.Store(err == nil)
	case err == nil:
		result, err = l.complete(ctx, &req, result)
	}
	if err != nil {
		return nil, err
	}
	shown := result
	if ex, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		ex.result = result
		if ex.stub != nil {
			shown = ex.stub
		}
		if l.modern.Load() && req.Method == string(wire.MethodToolsList) {
			shown = readable(result)
		}
	}
	return transport.NewJSONRPCResultResponse(req.ID, shown), nil
}

// complete makes a request again as long as its result asks for input, and
// returns the first result that does not.
func (l *link) complete(ctx context.Context, req *transport.JSONRPCRequest, result json.RawMessage) (json.RawMessage, error) {
	if !l.modern.Load() {
		return result, nil
	}
	rounds := inputRounds{handler: l.inbox.handler, sampling: l.sampling, debug: l.debug, method: req.Method}
	rounds.params, _ = req.Params.(map[string]json.RawMessage) // as all those of the newer era
	for {
		params, err := rounds.next(ctx, result)
		if err != nil || params == nil {
			return result, err
		}
		req.Params = params
		if result, err = l.send(ctx, req); err != nil {
			return nil, err
		}
	}
}

// send gives a request its id, sends it and returns the result.
func (l *link) send(ctx context.Context, req *transport.JSONRPCRequest) (json.RawMessage, error) {
	req.ID = l.ids.next(req.Method, !l.negotiation.probed)
	if w, ok := ctx.Value(waiterKey{}).(*waiter); ok {
		id, _ := req.ID.Value().(int64) // calls have a number
		w.numbered(id)
		if fields, ok := req.Params.(map[string]json.RawMessage); ok { // written already
			fields["_meta"] = withToken(fields["_meta"], id)
		}
	}
	l.debug.Message("->", req.Method, idText(req.ID))
	result, err := l.exchange(ctx, *req)
	if err == nil {
		l.debug.Message("<-", "result of "+req.Method, idText(req.ID))
	}
	return result, err
}

// exchange sends a request that has its id and returns the result.
func (l *link) exchange(ctx context.Context, req transport.JSONRPCRequest) (json.RawMessage, error) {
	subscription := req.Method == string(wire.MethodSubscriptionsListen)
	if !subscription { // which stays open, and says nothing about other requests
		l.track(req.ID)
	}
	resp, err := l.inner.SendRequest(carrier.OnTooLong(ctx, func(why error) { l.fail(idText(req.ID), why) }), req)
	if why := l.untrack(req.ID); why != nil {
		err = why
	}
	switch {
	case err != nil:
		if ctx.Err() != nil && l.cancellable(ctx, req.Method) {
			l.cancel(ctx, req)
		}
		if strings.HasSuffix(err.Error(), streamEnded) {
			err = errNoAnswer
		}
		return nil, err
	case resp == nil, resp.ID.IsNil() && resp.Error == nil && len(resp.Result) == 0:
		return nil, errNoResult
	case resp.ID.String() != req.ID.String() && (resp.Error == nil || !resp.ID.IsNil()):
		return nil, fmt.Errorf("answer to request %v came for request %v", req.ID.Value(), resp.ID.Value())
	case resp.Error != nil:
		l.debug.Message("<-", fmt.Sprintf("error %d to %s", resp.Error.Code, req.Method), idText(req.ID))
		return nil, &Error{Code: resp.Error.Code, Message: resp.Error.Message, Data: resp.Error.Data}
	case len(resp.Result) == 0 || string(resp.Result) == "null":
		return nil, errNoResult
	}
	return resp.Result, nil
}

// cancellable reports whether the server is told that nobody waits for a
// request any more. In the newer era the end of a request over HTTP says so.
func (l *link) cancellable(ctx context.Context, method string) bool {
	if method == string(wire.MethodSubscriptionsListen) {
		return errors.Is(context.Cause(ctx), errNotAcknowledged)
	}
	if method == string(wire.MethodInitialize) || method == string(wire.MethodServerDiscover) {
		return false
	}
	_, remote := l.inner.(transport.HTTPConnection)
	return !remote || !l.modern.Load()
}

// asSent writes parameters as the real CLI does: lists are asked for without
// any, prompts always with arguments.
func asSent(params any) any {
	switch p := params.(type) {
	case wire.PaginatedParams:
		if p.Cursor == "" && p.Meta == nil {
			return nil
		}
	case wire.GetPromptParams:
		if len(p.Arguments) == 0 {
			return promptParams{GetPromptParams: p, Arguments: map[string]string{}}
		}
	}
	return params
}

// promptParams are parameters of prompts/get whose arguments are never left out.
type promptParams struct {
	wire.GetPromptParams
	Arguments map[string]string `json:"arguments"`
}

// withToken puts a progress token into a request's meta.
func withToken(raw json.RawMessage, token int64) json.RawMessage {
	meta := map[string]json.RawMessage{}
	_ = json.Unmarshal(raw, &meta) // what is none is replaced
	meta["progressToken"] = strconv.AppendInt(nil, token, 10)
	out, err := json.Marshal(meta)
	if err != nil { // all of it was JSON
		return raw
	}
	return out
}

// readable is a list with those tools that mcp-go can read: in the newer era it
// makes headers of what they declare.
func readable(result json.RawMessage) json.RawMessage {
	var list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	_ = json.Unmarshal(result, &list) // what is no list has no tools
	list.Tools = slices.DeleteFunc(list.Tools, func(tool json.RawMessage) bool {
		return json.Unmarshal(tool, &wire.Tool{}) != nil
	})
	out, err := json.Marshal(list)
	if err != nil { // all of it was JSON
		return json.RawMessage(`{}`)
	}
	return out
}

func idText(id wire.RequestId) string { return strings.TrimPrefix(fmt.Sprint(id.Value()), "<nil>") }

func (l *link) track(id wire.RequestId) {
	l.inFlight.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending[idText(id)] = &pendingRequest{id: id}
}

func (l *link) untrack(id wire.RequestId) (problem error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	request, tracked := l.pending[idText(id)]
	if !tracked {
		return nil
	}
	l.inFlight.Add(-1)
	delete(l.pending, idText(id))
	return request.problem
}

// fail says what is wrong with the answer to a request, which is then its
// outcome.
func (l *link) fail(id string, problem error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if request, waits := l.pending[id]; waits {
		request.problem = problem
	}
}

// TooLong is fail for an answer that a carrier did not keep.
func (l *link) TooLong(id []byte, why *carrier.TooLongError) {
	l.fail(strings.Trim(string(id), `"`), why)
}

// onlyPending returns the id of the one request under way; ok is false when
// there is none or more than one.
func (l *link) onlyPending() (id wire.RequestId, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, request := range l.pending {
		return request.id, len(l.pending) == 1
	}
	return id, false
}

// cancel tells the server that nobody waits for a request any more.
func (l *link) cancel(ctx context.Context, req transport.JSONRPCRequest) {
	n := wire.JSONRPCNotification{JSONRPC: wire.JSONRPC_VERSION}
	n.Method = string(wire.MethodNotificationCancelled)
	n.Params.Meta = identity(req.Params)
	n.Params.AdditionalFields = map[string]any{"requestId": req.ID}
	if cause := context.Cause(ctx); !errors.Is(cause, errNotAcknowledged) {
		n.Params.AdditionalFields["reason"] = cancelReason(cause)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelLimit)
	if _, local := l.inner.(*transport.Stdio); local {
		defer stop()
		_ = l.SendNotification(ctx, n) // best effort; it is queued and cannot block
		return
	}
	go func() { // ends within cancelLimit
		defer stop()
		_ = l.SendNotification(ctx, n)
	}()
}

// cancelReason is the reason of a cancellation, in the words of the real CLI for a
// time-out.
func cancelReason(cause error) string {
	var expired *ExpiredError
	if errors.As(cause, &expired) {
		return "SdkError: Request timed out"
	}
	return cause.Error()
}

// identity is what the parameters of a request of the newer era say about the
// client; nil = nothing.
func identity(params any) map[string]any {
	fields, _ := params.(map[string]json.RawMessage)
	var meta map[string]any
	_ = json.Unmarshal(fields["_meta"], &meta) // what is none says nothing
	maps.DeleteFunc(meta, func(key string, _ any) bool {
		return !slices.Contains([]string{wire.MetaKeyProtocolVersion, wire.MetaKeyClientInfo, wire.MetaKeyClientCapabilities}, key)
	})
	return meta
}

// SendNotification sends a notification.
func (l *link) SendNotification(ctx context.Context, n wire.JSONRPCNotification) error {
	l.debug.Message("->", n.Method, "")
	return l.inner.SendNotification(ctx, n)
}

// SetNotificationHandler installs the link's own handler in place of the
// client's, which would run its listeners on the read loop.
func (l *link) SetNotificationHandler(func(wire.JSONRPCNotification)) {
	l.inner.SetNotificationHandler(func(n wire.JSONRPCNotification) {
		l.debug.Message("<-", n.Method, "")
		l.inbox.notified(n.Method, n.Params.AdditionalFields)
	})
}

// SetRequestHandler installs the link's own handler in place of the client's,
// which answers what it does not know with an internal error.
func (l *link) SetRequestHandler(transport.RequestHandler) {
	if b, ok := l.inner.(transport.BidirectionalInterface); ok {
		b.SetRequestHandler(l.handle)
	}
}

func (l *link) handle(ctx context.Context, req transport.JSONRPCRequest) (resp *transport.JSONRPCResponse, err error) {
	l.debug.Message("<-", req.Method, idText(req.ID))
	defer func() { // a server's message must not end this program
		if p := recover(); p != nil {
			resp, err = failure(req.ID, &Error{Code: CodeInternalError, Message: fmt.Sprint("internal error: ", p)}), nil
		}
	}()
	params, err := json.Marshal(req.Params)
	if err != nil {
		return nil, err
	}
	result, err := l.inbox.handler.Answer(ctx, req.Method, params)
	if err != nil {
		return failure(req.ID, err), nil
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	return transport.NewJSONRPCResultResponse(req.ID, raw), nil
}

func failure(id wire.RequestId, err error) *transport.JSONRPCResponse {
	e := &Error{Code: CodeInternalError, Message: err.Error()}
	errors.As(err, &e)
	return transport.NewJSONRPCErrorResponse(id, e.Code, e.Message, e.Data)
}

// Repair gives an error answer without an id to the one request that is
// under way; with several nobody can tell whose it is.
func (l *link) Repair(line []byte) []byte {
	const small = 64 << 10
	if len(line) > small || !bytes.Contains(line, []byte(`"error"`)) || !bytes.Contains(line, []byte("null")) {
		return line
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(line, &m) != nil || m["error"] == nil || m["method"] != nil || string(m["id"]) != "null" {
		return line
	}
	id, ok := l.onlyPending()
	if !ok {
		return line
	}
	if m["id"], _ = json.Marshal(id); m["id"] == nil { // an id of ours
		return line
	}
	repaired, err := json.Marshal(m)
	if err != nil {
		return line
	}
	return append(repaired, '\n')
}

package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

var (
	errNoResult = errors.New("the server answered with neither a result nor an error")
	errNoAnswer = errors.New("the stream ended before the answer")
)

const backgroundNotificationTimeout = 5 * time.Second

// ModernVersion is the revision of MCP without a handshake: clients probe for it with server/discover.
const ModernVersion = wire.ProtocolVersion20260728

// client is the JSON-RPC client of a connection. It sends requests, knows which of them wait for a response, cancels
// abandoned ones, and handles the requests of the server. Results and errors stay as the server sent them.
type client struct {
	transport     messageTransport
	notifications *notificationDispatcher
	debug         DebugLog

	wasProbed                bool // a probe has ended
	isLocal                  bool // the server is a process
	isRemote                 bool // the server is reached over HTTP
	closeReason              *closeReason
	requestMetadata          plainjson.Object // the members of _meta that each request of revision 2026-07-28 has
	sampling                 bool             // the handler handles sampling requests
	isModern                 atomic.Bool      // the server successfully answered the probe for revision 2026-07-28
	toolsWithHeaderArguments sync.Map         // *wire.Tool by name: the tools whose arguments may be sent as headers
	ids                      requestIDSequence
	pendingCancels           sync.Map // context.CancelCauseFunc of each request that waits, by idText
}

// requestIDSequence numbers requests as the real CLI does: probes and subscriptions have their own ids, others count from 0.
type requestIDSequence struct{ probes, listens, requests atomic.Int64 }

func (s *requestIDSequence) nextRequestID(method string, isVersionProbe bool) wire.RequestId {
	switch {
	case method == string(wire.MethodSubscriptionsListen):
		return wire.NewRequestId(fmt.Sprintf("listen:%d", s.listens.Add(1)-1))
	case method == string(wire.MethodServerDiscover) && isVersionProbe:
		return wire.NewRequestId(fmt.Sprintf("server-discover-probe-%d", s.probes.Add(1)))
	}
	return wire.NewRequestId(s.requests.Add(1) - 1)
}

// requestAnsweringQuestions sends a request and returns its result. In revision 2026-07-28, it is repeated while its result requests input.
func (l *client) requestAnsweringQuestions(ctx context.Context, method string, params plainjson.Object) (json.RawMessage, error) {
	rounds := inputRequestRepetition{handler: l.notifications.handler, handlesSampling: l.sampling, debug: l.debug, method: method, firstParams: params}
	for {
		result, err := l.sendRequest(ctx, method, params)
		if err != nil || !l.isModern.Load() {
			return result, err
		}
		if params, err = rounds.askAndBuildNextParams(ctx, result); err != nil || params == nil {
			return result, err
		}
	}
}

func (l *client) sendRequest(ctx context.Context, method string, params plainjson.Object) (json.RawMessage, error) {
	req := transport.JSONRPCRequest{JSONRPC: wire.JSONRPC_VERSION, ID: l.ids.nextRequestID(method, !l.wasProbed), Method: method}
	fields, meta := slices.Clone(params), plainjson.DecodeIgnoringErrors[plainjson.Object](params.Get("_meta"))
	if w, ok := ctx.Value(pendingCallContextKey{}).(*pendingCall); ok {
		id, _ := req.ID.Value().(int64) // calls have a numeric id
		w.tokens = append(w.tokens, id)
		w.callsByProgressToken.Store(id, w)
		meta = append(meta, newJSONObject("progressToken", id)...)
	}
	isModern := l.isModern.Load() || method == string(wire.MethodServerDiscover)
	if isModern {
		meta = append(meta, l.requestMetadata...)
	}
	if len(meta) > 0 {
		fields = fields.Set("_meta", meta.Raw())
	}
	if len(fields) > 0 {
		req.Params = fields
	}
	if isModern {
		req.Header = l.requestHeaders(method, fields)
	}
	l.debug.LogMessage("->", method, idText(req.ID))
	result, err := l.sendRequestAndAwaitResult(ctx, req)
	if err == nil {
		l.debug.LogMessage("<-", "result of "+method, idText(req.ID))
	}
	return result, err
}

// newJSONObject returns an object with these members, in order. pairs are names and values in turn.
func newJSONObject(pairs ...any) (o plainjson.Object) {
	for i := 0; i < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		o = append(o, plainjson.Member{Key: name, Value: []byte(plainjson.MarshalString(pairs[i+1]))})
	}
	return o
}

// requestHeaders returns the headers that a request of revision 2026-07-28 has over HTTP.
func (l *client) requestHeaders(method string, fields plainjson.Object) http.Header {
	header, raw := http.Header{}, fields.Raw()
	all := wire.StandardHeaders(ModernVersion, wire.MCPMethod(method), raw)
	if tool, ok := l.toolsWithHeaderArguments.Load(plainjson.JSString(fields.Get("name"))); ok && method == string(wire.MethodToolsCall) {
		maps.Copy(all, wire.GenerateParamHeaders(tool.(*wire.Tool), raw))
	}
	for name, value := range all {
		header.Set(name, value)
	}
	return header
}

// sendRequestAndAwaitResult sends a request that already has an id, and returns the result.
func (l *client) sendRequestAndAwaitResult(ctx context.Context, req transport.JSONRPCRequest) (json.RawMessage, error) {
	id := idText(req.ID)
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	l.pendingCancels.Store(id, stop)
	defer l.pendingCancels.Delete(id)
	resp, err := l.transport.SendRequest(waiting, req)
	if o, ok := errors.AsType[requestOutcomeError](context.Cause(waiting)); ok {
		resp, err = o.response, o.err
	}
	switch {
	case err != nil:
		if ctx.Err() != nil && l.needsCancelNotification(ctx, req.Method) {
			l.sendCancellation(ctx, req.ID)
		}
		return nil, err
	case resp.Error != nil:
		l.debug.LogMessage("<-", fmt.Sprintf("error %d in reply to %s", resp.Error.Code, req.Method), idText(req.ID))
		return nil, &RPCError{Code: resp.Error.Code, Message: resp.Error.Message, Data: resp.Error.Data}
	case len(resp.Result) == 0 || string(resp.Result) == "null":
		return nil, errNoResult
	}
	return resp.Result, nil
}

// requestOutcomeError carries the outcome of a request if the transport's SendRequest does not return it.
// endPendingRequest cancels the request's context with this error as the cause.
type requestOutcomeError struct {
	response *transport.JSONRPCResponse
	err      error
}

func (requestOutcomeError) Error() (fixedText string) { return "the request already has an outcome" }

// endPendingRequest ends a request with an outcome. Only the first outcome of a request counts.
func (l *client) endPendingRequest(id string, o requestOutcomeError) {
	if stop, ok := l.pendingCancels.Load(id); ok {
		stop.(context.CancelCauseFunc)(o)
	}
}

// needsCancelNotification reports whether the server must be notified that a request was abandoned. In revision
// 2026-07-28 over HTTP this is not necessary, because closing the HTTP request cancels it.
func (l *client) needsCancelNotification(ctx context.Context, method string) bool {
	if method == string(wire.MethodSubscriptionsListen) {
		return errors.Is(context.Cause(ctx), errSubscriptionNotAcknowledged)
	}
	if method == string(wire.MethodInitialize) { // observed over stdio
		return l.isLocal && errors.Is(ctx.Err(), context.DeadlineExceeded)
	}
	return method != string(wire.MethodServerDiscover) && (!l.isRemote || !l.isModern.Load())
}

func idText(id wire.RequestId) string { return strings.TrimPrefix(fmt.Sprint(id.Value()), "<nil>") }

func (l *client) sendCancellation(ctx context.Context, id wire.RequestId) {
	params := newJSONObject("requestId", id)
	if cause := context.Cause(ctx); !errors.Is(cause, errSubscriptionNotAcknowledged) {
		params = append(params, newJSONObject("reason", reasonForCancelledNotification(cause))...)
	}
	if l.isModern.Load() {
		params = append(params, newJSONObject("_meta", l.requestMetadata)...)
	}
	l.sendNotificationIgnoringErrors(ctx, string(wire.MethodNotificationCancelled), params)
}

// reasonForCancelledNotification returns the reason of a cancellation, with the real CLI's text for a timeout.
func reasonForCancelledNotification(cause error) string {
	if _, ok := errors.AsType[*CallTimeoutError](cause); ok || errors.Is(cause, context.DeadlineExceeded) {
		return "SdkError: Request timed out"
	}
	return cause.Error()
}

func (l *client) sendNotification(ctx context.Context, method string, params plainjson.Object) error {
	l.debug.LogMessage("->", method, "")
	n := newJSONObject("jsonrpc", wire.JSONRPC_VERSION, "method", method)
	if params != nil {
		n = append(n, newJSONObject("params", params)...)
	}
	return l.transport.sendWithoutResponse(ctx, n)
}

// sendNotificationIgnoringErrors sends a notification even if ctx has ended. It ignores errors: the next request would fail too.
func (l *client) sendNotificationIgnoringErrors(ctx context.Context, method string, params plainjson.Object) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), backgroundNotificationTimeout)
	send := func() {
		defer stop()
		_ = l.sendNotification(ctx, method, params)
	}
	if l.isLocal { // the transport of a process queues the message, so send returns at once
		send()
	} else {
		go send() // returns within backgroundNotificationTimeout
	}
}

func (l *client) askHandlerForResponse(ctx context.Context, req transport.JSONRPCRequest) (resp *transport.JSONRPCResponse, err error) {
	l.debug.LogMessage("<-", req.Method, idText(req.ID))
	defer func() { // a message of the server must not crash this program
		if p := recover(); p != nil {
			resp, err = errorResponse(req.ID, &RPCError{Code: CodeInternalError, Message: fmt.Sprint("internal error: ", p)}), nil
		}
	}()
	params, err := json.Marshal(req.Params)
	if err != nil {
		return nil, err
	}
	if req.Method == MethodElicit {
		if err := checkElicitation(params, false); err != nil {
			return errorResponse(req.ID, err), nil
		}
	}
	result, err := l.notifications.handler.HandleRequest(ctx, req.Method, params)
	if err != nil {
		return errorResponse(req.ID, err), nil
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	return transport.NewJSONRPCResultResponse(req.ID, raw), nil
}

func errorResponse(id wire.RequestId, err error) *transport.JSONRPCResponse {
	e := &RPCError{Code: CodeInternalError, Message: err.Error()}
	errors.As(err, &e)
	return transport.NewJSONRPCErrorResponse(id, e.Code, e.Message, e.Data)
}

package connection

import (
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

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

var (
	errNoResult = errors.New("server answered with neither a result nor an error")
	// errNoAnswer reports that a stream ended before the response. mcp-go has no error values for this case, so it is
	// recognized by the texts of its errors: streamEndedText and notResumedText.
	errNoAnswer     = errors.New("the stream ended before the answer")
	streamEndedText = "unexpected nil response"
	notResumedText  = "failed to resume the SSE stream"
)

const notificationTimeout = 5 * time.Second

// interceptor sits between mcp-go's client and a transport. It keeps results and errors as the server sent them,
// because the client's typed results lose schema keywords, unknown kinds of content and large integers. It also cancels
// abandoned requests on every transport, and handles the requests and notifications of the server.
//
// It always implements SetProtocolVersion, so that the client does not send cancellations itself.
type interceptor struct {
	transport.Interface
	notifications *notificationHandler
	debug         DebugLog

	// server is used to find out whether a remote server has closed its port; nil means that the server is not remote.
	server interface {
		isGone(ctx context.Context, pause time.Duration) bool
	}
	reopen      time.Duration // pause before isGone checks the port
	negotiation negotiationState
	defects     func(method string, result json.RawMessage) string
	closeReason *closeReason
	sampling    bool        // the handler handles sampling requests
	modern      atomic.Bool // the server successfully answered the probe for revision 2026-07-28
	ids         idSequence
	pending     sync.Map // requests that wait for a response, by idText; the value is the error that the response causes, or nil
}

// newInterceptor returns an interceptor without a transport: the caller must set Interface before anything is sent.
func newInterceptor(in *notificationHandler, debug DebugLog) *interceptor {
	return &interceptor{notifications: in, debug: debug, closeReason: newCloseReason()}
}

// idSequence numbers requests as the real CLI does: probes and subscriptions have their own ids, others count from 0.
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

// rawResultSlot is stored in a request's context and receives the result as the server sent it.
type rawResultSlot struct {
	// stub is a small well-formed result, which the client gets instead of the real one.
	stub   json.RawMessage
	result json.RawMessage
}

type rawResultKey struct{}

// SetProtocolVersion passes the negotiated version to HTTP transports.
func (l *interceptor) SetProtocolVersion(version string) {
	if h, ok := l.Interface.(transport.HTTPConnection); ok {
		h.SetProtocolVersion(version)
	}
}

// SendRequest sends one request and waits for its response.
func (l *interceptor) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	req.Params = encodeParams(req.Method, req.Params)
	if req.Method == string(wire.MethodInitialize) {
		if err := l.negotiation.handshakeError(); err != nil {
			return nil, err
		}
		l.negotiation.handshakeStarted = true
	}
	result, err := l.send(ctx, &req)
	switch {
	case req.Method == string(wire.MethodServerDiscover) && !l.modern.Load():
		if err == nil {
			err = checkDiscovery(result)
		}
		l.negotiation.probeError, l.negotiation.probeDone = err, true
		l.modern.Store(err == nil)
	case err == nil && req.Method == string(wire.MethodInitialize):
		err = l.checkHandshake(result)
	case err == nil:
		result, err = l.answerInputRequests(ctx, &req, result)
	}
	if err != nil {
		return nil, err
	}
	shown := result
	if req.Method == string(wire.MethodServerDiscover) {
		shown = dropCacheKeys(result)
	}
	if ex, ok := ctx.Value(rawResultKey{}).(*rawResultSlot); ok {
		ex.result = result
		if ex.stub != nil {
			shown = ex.stub
		}
		if l.modern.Load() && req.Method == string(wire.MethodToolsList) {
			shown = dropUnreadableTools(result)
		}
	}
	return transport.NewJSONRPCResultResponse(req.ID, shown), nil
}

// checkHandshake returns the reason why the answer to initialize cannot be used; nil means that it can.
func (l *interceptor) checkHandshake(result json.RawMessage) error {
	text := ""
	if defects := l.defects(string(wire.MethodInitialize), result); defects != "" {
		text = "the server " + MalformedResult(string(wire.MethodInitialize), defects).Text
	} else if version := plainjson.DecodeOrZero[InitializeResult](result).ProtocolVersion; wire.IsModernProtocol(version) {
		text = "Server's protocol version is not supported: " + version
	}
	if text == "" {
		return nil
	}
	return &DialError{Reason: text, Wire: text}
}

// answerInputRequests repeats a request while its result requests input, and returns the first complete result.
func (l *interceptor) answerInputRequests(ctx context.Context, req *transport.JSONRPCRequest, result json.RawMessage) (json.RawMessage, error) {
	if !l.modern.Load() {
		return result, nil
	}
	rounds := inputRounds{handler: l.notifications.handler, sampling: l.sampling, debug: l.debug, method: req.Method}
	rounds.params, _ = req.Params.(map[string]json.RawMessage) // all requests of this revision have such parameters
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

func (l *interceptor) send(ctx context.Context, req *transport.JSONRPCRequest) (json.RawMessage, error) {
	req.ID = l.ids.next(req.Method, !l.negotiation.probeDone)
	if w, ok := ctx.Value(pendingCallKey{}).(*pendingCall); ok {
		id, _ := req.ID.Value().(int64) // calls have a numeric id
		w.addToken(id)
		if fields, ok := req.Params.(map[string]json.RawMessage); ok { // already encoded
			fields["_meta"] = withProgressToken(fields["_meta"], id)
		}
	}
	l.debug.Message("->", req.Method, idText(req.ID))
	result, err := l.sendTracked(ctx, *req)
	if err == nil {
		l.debug.Message("<-", "result of "+req.Method, idText(req.ID))
	}
	return result, err
}

// sendTracked sends a request that already has an id, and returns the result.
func (l *interceptor) sendTracked(ctx context.Context, req transport.JSONRPCRequest) (json.RawMessage, error) {
	id := idText(req.ID)
	l.pending.Store(id, nil)
	open := openRequest{
		interceptor: l, id: id, isListening: req.Method == string(wire.MethodSubscriptionsListen),
		isHandshake: req.Method == string(wire.MethodInitialize) || req.Method == string(wire.MethodServerDiscover),
	}
	resp, err := l.Interface.SendRequest(context.WithValue(ctx, openRequestKey{}, open), req)
	problem, _ := l.pending.LoadAndDelete(id)
	switch why, isUnusable := problem.(error); {
	case isUnusable:
		err = why
	case err != nil && (strings.HasSuffix(err.Error(), streamEndedText) || strings.Contains(err.Error(), notResumedText)):
		err = l.waitUnanswered(ctx)
	case err == nil && !resp.ID.IsNil() && resp.ID.String() != req.ID.String(): // the real CLI still waits for the answer
		<-ctx.Done()
		err = ctx.Err()
	}
	switch {
	case err != nil:
		if ctx.Err() != nil && l.isCancellable(ctx, req.Method) {
			l.cancel(ctx, req)
		}
		return nil, err
	case resp.Error != nil:
		l.debug.Message("<-", fmt.Sprintf("error %d to %s", resp.Error.Code, req.Method), idText(req.ID))
		return nil, &Error{Code: resp.Error.Code, Message: resp.Error.Message, Data: resp.Error.Data}
	case len(resp.Result) == 0 || string(resp.Result) == "null":
		return nil, errNoResult
	}
	return resp.Result, nil
}

// openRequest is a request over streamable HTTP that waits for its response.
type openRequest struct {
	interceptor *interceptor
	id          string // as in [idText]; empty means a stream without a request
	isHandshake bool   // events that cannot be parsed are skipped, as in the real CLI until it is connected
	isListening bool   // a stream of notifications: if it cannot be parsed, the connection is lost
}

// fail records that the response is too long, cannot be parsed, or is an event stream that breaks off. mcp-go does not
// report why a body could not be read.
func (r openRequest) fail(why error) {
	r.interceptor.setProblem(r.id, why)
	switch {
	case errors.Is(why, ErrBroken):
		r.interceptor.closeReason.countBroken(1)
	case r.isListening && errors.Is(why, ErrUnreadable):
		r.interceptor.closeReason.giveUp(LostUnreadable)
	}
}

// openRequestKey is the key of the *openRequest in the context of a request.
type openRequestKey struct{}

// waitUnanswered returns the error of a request whose stream ended without an answer. After a tool call, it waits until
// ctx ends and only then returns, as the real CLI does. It does not wait if the server is gone.
func (l *interceptor) waitUnanswered(ctx context.Context) error {
	if ctx.Value(pendingCallKey{}) == nil {
		return errNoAnswer
	}
	if l.server != nil && l.server.isGone(ctx, l.reopen) {
		return ErrBroken
	}
	<-ctx.Done()
	return ctx.Err()
}

// isCancellable reports whether the server must be notified that a request was abandoned. In revision 2026-07-28 over
// HTTP this is not necessary, because closing the HTTP request cancels it.
func (l *interceptor) isCancellable(ctx context.Context, method string) bool {
	if method == string(wire.MethodSubscriptionsListen) {
		return errors.Is(context.Cause(ctx), errNotAcknowledged)
	}
	if method == string(wire.MethodInitialize) { // observed over stdio
		_, local := l.Interface.(*transport.Stdio)
		return local && errors.Is(ctx.Err(), context.DeadlineExceeded)
	}
	if method == string(wire.MethodServerDiscover) {
		return false
	}
	_, remote := l.Interface.(transport.HTTPConnection)
	return !remote || !l.modern.Load()
}

// encodeParams encodes parameters as the real CLI does: lists have no parameters, prompts always have arguments.
func encodeParams(method string, params any) any {
	switch p := params.(type) {
	case wire.PaginatedParams:
		if p.Cursor == "" && p.Meta == nil {
			return nil
		}
	case wire.GetPromptParams:
		if len(p.Arguments) == 0 {
			return promptParams{GetPromptParams: p, Arguments: map[string]string{}}
		}
	case map[string]json.RawMessage: // mcp-go has added _meta
		if _, ok := p["arguments"]; !ok && method == string(wire.MethodPromptsGet) {
			p["arguments"] = json.RawMessage("{}")
		}
	}
	return params
}

// promptParams are the parameters of prompts/get; arguments are always present.
type promptParams struct {
	wire.GetPromptParams
	Arguments map[string]string `json:"arguments"`
}

func withProgressToken(raw json.RawMessage, token int64) json.RawMessage {
	meta := map[string]json.RawMessage{}
	_ = json.Unmarshal(raw, &meta) // an invalid _meta is replaced
	meta["progressToken"] = strconv.AppendInt(nil, token, 10)
	out, err := json.Marshal(meta)
	if err != nil { // the input was valid JSON
		return raw
	}
	return out
}

// dropUnreadableTools removes the tools that mcp-go cannot parse from a list of tools. mcp-go parses the list in
// revision 2026-07-28, because the definition of a tool tells which arguments of a call are sent as headers.
func dropUnreadableTools(result json.RawMessage) json.RawMessage {
	var list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	_ = json.Unmarshal(result, &list) // an invalid list has no tools
	list.Tools = slices.DeleteFunc(list.Tools, func(tool json.RawMessage) bool {
		return json.Unmarshal(tool, &wire.Tool{}) != nil
	})
	out, err := json.Marshal(list)
	if err != nil { // the input was valid JSON
		return json.RawMessage(`{}`)
	}
	return out
}

func idText(id wire.RequestId) string { return strings.TrimPrefix(fmt.Sprint(id.Value()), "<nil>") }

// setProblem records the first error that the response to a request causes. The request then fails with this error.
func (l *interceptor) setProblem(id string, problem error) {
	l.pending.CompareAndSwap(id, nil, problem)
}

func (l *interceptor) cancel(ctx context.Context, req transport.JSONRPCRequest) {
	n := wire.JSONRPCNotification{JSONRPC: wire.JSONRPC_VERSION}
	n.Method = string(wire.MethodNotificationCancelled)
	n.Params.Meta = clientIdentity(req.Params)
	n.Params.AdditionalFields = map[string]any{"requestId": req.ID}
	if cause := context.Cause(ctx); !errors.Is(cause, errNotAcknowledged) {
		n.Params.AdditionalFields["reason"] = cancelReason(cause)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), notificationTimeout)
	if _, local := l.Interface.(*transport.Stdio); local {
		defer stop()
		_ = l.SendNotification(ctx, n) // best effort; the message is queued, so this does not block
		return
	}
	go func() { // returns within notificationTimeout
		defer stop()
		_ = l.SendNotification(ctx, n)
	}()
}

// cancelReason returns the reason of a cancellation, with the real CLI's text for a timeout.
func cancelReason(cause error) string {
	var expired *ExpiredError
	if errors.As(cause, &expired) || errors.Is(cause, context.DeadlineExceeded) {
		return "SdkError: Request timed out"
	}
	return cause.Error()
}

// clientIdentity returns the client information in the parameters of a request of revision 2026-07-28; nil means none.
func clientIdentity(params any) map[string]any {
	fields, _ := params.(map[string]json.RawMessage)
	var meta map[string]any
	_ = json.Unmarshal(fields["_meta"], &meta) // an invalid _meta counts as empty
	maps.DeleteFunc(meta, func(key string, _ any) bool {
		return !slices.Contains([]string{wire.MetaKeyProtocolVersion, wire.MetaKeyClientInfo, wire.MetaKeyClientCapabilities}, key)
	})
	return meta
}

// SendNotification sends a notification.
func (l *interceptor) SendNotification(ctx context.Context, n wire.JSONRPCNotification) error {
	l.debug.Message("->", n.Method, "")
	return l.Interface.SendNotification(ctx, n)
}

// SetNotificationHandler ignores the client's handler, because that handler would run listeners on the read loop. It
// installs the interceptor's own handler instead.
func (l *interceptor) SetNotificationHandler(func(wire.JSONRPCNotification)) {
	l.Interface.SetNotificationHandler(func(n wire.JSONRPCNotification) { l.notifications.receive(n) })
}

// SetRequestHandler ignores the client's handler, because that handler answers unknown methods with an internal error.
// It installs the interceptor's own handler instead.
func (l *interceptor) SetRequestHandler(transport.RequestHandler) {
	if b, ok := l.Interface.(transport.BidirectionalInterface); ok {
		b.SetRequestHandler(l.handle)
	}
}

func (l *interceptor) handle(ctx context.Context, req transport.JSONRPCRequest) (resp *transport.JSONRPCResponse, err error) {
	l.debug.Message("<-", req.Method, idText(req.ID))
	defer func() { // a message of the server must not crash this program
		if p := recover(); p != nil {
			resp, err = errorResponse(req.ID, &Error{Code: CodeInternalError, Message: fmt.Sprint("internal error: ", p)}), nil
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
	e := &Error{Code: CodeInternalError, Message: err.Error()}
	errors.As(err, &e)
	return transport.NewJSONRPCErrorResponse(id, e.Code, e.Message, e.Data)
}

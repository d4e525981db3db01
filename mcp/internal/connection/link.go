package connection

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	inbox *inbox
	debug Log

	// onlyModern refuses the handshake of the older era; modern is set when
	// the server answered server/discover.
	onlyModern bool
	modern     atomic.Bool

	inFlight atomic.Int64

	mu      sync.Mutex
	pending map[int64]error // ids that wait for an answer, with what is wrong with it
}

// newLink makes a link; inner is set before anything is sent.
func newLink(in *inbox, debug Log) *link {
	return &link{inbox: in, debug: debug, pending: map[int64]error{}}
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

// SendRequest sends one request and waits for its answer. Ids count from 0, as
// the real CLI's do.
func (l *link) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	req.Params = asSent(req.Params)
	if l.onlyModern && req.Method == string(wire.MethodInitialize) {
		return nil, ErrLegacy
	}
	id := req.ID.Value().(int64) - 1
	req.ID = wire.NewRequestId(id)
	if w, ok := ctx.Value(waiterKey{}).(*waiter); ok {
		w.numbered(id)
		if fields, ok := req.Params.(map[string]json.RawMessage); ok { // written already
			fields["_meta"] = withToken(fields["_meta"], id)
		}
	}
	l.debug.Message("->", req.Method, idText(req.ID))
	l.track(id)
	resp, err := l.inner.SendRequest(carrier.OnTooLong(ctx, func(why error) { l.fail(id, why) }), req)
	if why := l.untrack(id); why != nil {
		err = why
	}
	switch {
	case err != nil:
		if ctx.Err() != nil && req.Method != string(wire.MethodInitialize) {
			l.cancel(ctx, id)
		}
		if strings.HasSuffix(err.Error(), streamEnded) {
			err = errNoAnswer
		}
		return nil, err
	case resp == nil, resp.ID.IsNil() && resp.Error == nil && len(resp.Result) == 0:
		return nil, errNoResult
	case resp.ID.String() != req.ID.String() && (resp.Error == nil || !resp.ID.IsNil()):
		return nil, fmt.Errorf("answer to request %v came for request %v", id, resp.ID.Value())
	case resp.Error != nil:
		l.debug.Message("<-", fmt.Sprintf("error %d to %s", resp.Error.Code, req.Method), idText(req.ID))
		return nil, &Error{Code: resp.Error.Code, Message: resp.Error.Message, Data: resp.Error.Data}
	case len(resp.Result) == 0 || string(resp.Result) == "null":
		return nil, errNoResult
	}
	l.debug.Message("<-", "result of "+req.Method, idText(req.ID))
	if req.Method == string(wire.MethodServerDiscover) {
		if err := l.discovered(resp.Result); err != nil {
			return nil, err
		}
	}
	if ex, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		ex.result = resp.Result
		if ex.stub != nil && (!l.modern.Load() || !forClient(req.Method, resp.Result)) {
			resp.Result = ex.stub
		}
	}
	return resp, nil
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

// discovered checks the answer to the probe: some servers answer everything
// with an empty object.
func (l *link) discovered(result json.RawMessage) error {
	var d struct {
		Versions []string `json:"supportedVersions"`
	}
	if json.Unmarshal(result, &d) != nil || len(d.Versions) == 0 {
		return &Error{Code: CodeMethodNotFound, Message: "the answer to server/discover names no version"}
	}
	l.modern.Store(true)
	return nil
}

// forClient reports whether mcp-go has to see a result of the newer era itself:
// it makes headers of what tools declare, and answers what results ask for.
func forClient(method string, result json.RawMessage) bool {
	if method == string(wire.MethodToolsList) {
		return json.Unmarshal(result, &wire.ListToolsResult{}) == nil
	}
	return bytes.Contains(result, []byte(`"input_required"`))
}

func idText(id wire.RequestId) string { return strings.TrimPrefix(fmt.Sprint(id.Value()), "<nil>") }

func (l *link) track(id int64) {
	l.inFlight.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending[id] = nil
}

func (l *link) untrack(id int64) (why error) {
	l.inFlight.Add(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	why = l.pending[id]
	delete(l.pending, id)
	return why
}

// fail says what is wrong with the answer to a request, which is then its
// outcome.
func (l *link) fail(id int64, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, waits := l.pending[id]; waits {
		l.pending[id] = why
	}
}

// TooLong is fail for an answer that a carrier did not keep.
func (l *link) TooLong(id []byte, why *carrier.TooLongError) {
	if n, err := strconv.ParseInt(strings.Trim(string(id), `"`), 10, 64); err == nil {
		l.fail(n, why)
	}
}

// onlyPending returns the id of the one request under way; ok is false when
// there is none or more than one.
func (l *link) onlyPending() (id int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id = range l.pending {
		return id, len(l.pending) == 1
	}
	return 0, false
}

// cancel tells the server that nobody waits for a request any more.
func (l *link) cancel(ctx context.Context, id int64) {
	reason := context.Cause(ctx).Error()
	n := wire.JSONRPCNotification{JSONRPC: wire.JSONRPC_VERSION}
	n.Method = string(wire.MethodNotificationCancelled)
	n.Params.AdditionalFields = map[string]any{"requestId": id, "reason": reason}
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
	m["id"] = json.RawMessage(fmt.Sprint(id))
	repaired, err := json.Marshal(m)
	if err != nil {
		return line
	}
	return append(repaired, '\n')
}

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/mcp/record"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Routing errors of Resolve and Call; no byte was sent. Test with errors.Is.
var (
	ErrUnknownServer = errors.New("unknown MCP server")
	ErrUnknownTool   = errors.New("unknown MCP tool")
	ErrNotConnected  = errors.New("MCP server is not connected")
	ErrDisabled      = errors.New("MCP server is disabled")
	ErrClosed        = errors.New("MCP manager is closed") // for ever
)

// ErrConnectionClosed says that a server went away during a call.
var ErrConnectionClosed = errors.New("Connection closed") //nolint:staticcheck // the text users see, as the real CLI writes it

// TimeoutError says that a server gave no sign of life for too long.
type TimeoutError struct {
	Server, Tool string // raw
	Limit        time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("MCP server %q tool %q timed out after %ds", e.Server, e.Tool, int(e.Limit.Seconds()))
}

// CallRequest is one tool call.
type CallRequest struct {
	Tool      string          // any name Resolve takes
	ToolUseID string          // sent as _meta["claudecode/toolUseId"]; empty = left out
	Input     json.RawMessage // a JSON object; anything else is sent as {}
	Timeout   time.Duration   // between two signs of life; 0 = the server's
	// OnProgress gets the call's progress, in order, before Call returns; nil
	// = not wanted. It runs on the goroutine of Call. Of progress that comes
	// faster than it is taken some is left out.
	OnProgress func(Progress)
}

// Progress is one progress notification.
type Progress struct {
	Progress, Total float64 // Total 0 = unknown
	Message         string
}

// Call runs one tool and returns what the model sees of it. A tool or server
// that fails is a result with IsError. The error is one of the routing errors;
// then nothing was sent. A lost stdio server is started again first. When ctx
// ends the call is cancelled and the result says so.
func (m *Manager) Call(ctx context.Context, c CallRequest) (protocol.ToolResult, error) {
	tool, result, err := m.call(ctx, c)
	if routing(err) {
		return protocol.ToolResult{}, err
	}
	var res protocol.ToolResult
	if err != nil {
		res = errorResult(errorText(err))
	} else {
		res = m.convert(tool, c.ToolUseID, result)
	}
	res.Server = tool.Server
	return res, nil
}

// CallRaw is Call without the conversion: the result as the server sent it.
// Beside the routing errors the error is an *RPCError, a *TimeoutError,
// ErrConnectionClosed or the cause of ctx's end.
func (m *Manager) CallRaw(ctx context.Context, c CallRequest) (json.RawMessage, error) {
	_, result, err := m.call(ctx, c)
	return result, err
}

func routing(err error) bool {
	return errors.Is(err, ErrUnknownServer) || errors.Is(err, ErrUnknownTool) ||
		errors.Is(err, ErrNotConnected) || errors.Is(err, ErrDisabled) || errors.Is(err, ErrClosed)
}

func errorText(err error) string {
	if errors.Is(err, context.Canceled) {
		return "The tool call was cancelled"
	}
	return cmp.Or(err.Error(), "Command failed with no output")
}

func (m *Manager) call(ctx context.Context, c CallRequest) (protocol.Tool, json.RawMessage, error) {
	if m.isClosed() {
		return protocol.Tool{}, nil, ErrClosed
	}
	tool, err := m.freshTool(ctx, c.Tool)
	if err != nil {
		return tool, nil, err
	}
	s := m.catalogue().owner[tool.Name]
	if s == nil { // gone since it was resolved
		return tool, nil, fmt.Errorf("%w: %s", ErrUnknownTool, c.Tool)
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		return tool, nil, err
	}
	k := toolCall{
		tool: tool, req: c, maxTotal: s.cfg.MaxTotal,
		limit: orDefault(c.Timeout, orDefault(s.cfg.Timeout, m.o.ToolTimeout)),
	}
	var began time.Time
	if m.o.Records != nil {
		began = m.o.Records.Now()
	}
	result, err := conn.call(ctx, k)
	m.record(k, began, result, err)
	return tool, result, err
}

// record keeps a call that is over.
func (m *Manager) record(k toolCall, began time.Time, result json.RawMessage, err error) {
	if m.o.Records == nil {
		return
	}
	c := record.Call{
		Server: k.tool.Server, Tool: k.tool.Name, RawTool: k.tool.RawName, ToolUseID: k.req.ToolUseID,
		Input: arguments(k.req.Input), Result: result, StartedAt: began,
	}
	var rpc *RPCError
	switch {
	case errors.As(err, &rpc):
		c.Error, c.ErrorCode = rpc.Message, rpc.Code
	case err != nil:
		c.Error = errorText(err)
	}
	m.o.Records.Add(c)
}

// arguments is a tool's input as it is sent: always an object.
func arguments(input json.RawMessage) json.RawMessage {
	if ordered.TypeOf(input) == "object" && json.Valid(input) {
		return input
	}
	return json.RawMessage(`{}`)
}

// acquire returns the server's connection, and starts a lost server again.
func (s *server) acquire(ctx context.Context) (*conn, error) {
	st, err := s.known(ctx)
	if err != nil {
		return nil, err
	}
	if st.state == StateLost {
		if err := s.send(ctx, StateConnected); err != nil {
			return nil, fmt.Errorf("%w: %s: %v", ErrNotConnected, s.cfg.Name, err)
		}
		if st, err = s.settle(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case st.state == StateDisabled:
		return nil, fmt.Errorf("%w: %s", ErrDisabled, s.cfg.Name)
	case st.conn == nil:
		return nil, fmt.Errorf("%w: %s", ErrNotConnected, s.cfg.Name)
	}
	return st.conn, nil
}

// known returns the status once it no longer speaks of a connection that is
// gone: noticing the loss and saying why takes a moment, and a call right after
// a crash must not meet the dead connection again.
func (s *server) known(ctx context.Context) (status, error) {
	for {
		st, changed := s.look()
		if st.conn == nil || !st.conn.isLost() {
			return st, nil
		}
		select {
		case <-changed:
		case <-s.done:
			return st, ErrClosed
		case <-ctx.Done():
			return st, ctx.Err()
		}
	}
}

// Loss says why a connected server went away ("exit status 3: boom") and what it
// wrote last to standard error, once that is known; empty when it has not, or
// nobody knows before ctx ends.
func (m *Manager) Loss(ctx context.Context, server string) (reason string, stderr []string) {
	s := m.find(server)
	if s == nil {
		return "", nil
	}
	st, err := s.known(ctx)
	if err != nil {
		return "", nil
	}
	return st.err, st.tail
}

// toolCall is one call with its limits settled.
type toolCall struct {
	tool            protocol.Tool
	req             CallRequest
	limit, maxTotal time.Duration
}

// call sends one tools/call and waits for its answer.
func (c *conn) call(ctx context.Context, k toolCall) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	expire := func(d time.Duration) *time.Timer {
		return time.AfterFunc(d, func() {
			cancel(&TimeoutError{Server: k.tool.Server, Tool: k.tool.RawName, Limit: d})
		})
	}
	idle := expire(k.limit)
	defer idle.Stop()
	if k.maxTotal > 0 {
		total := expire(k.maxTotal)
		defer total.Stop()
	}
	l := &listener{touch: func() {
		if idle.Stop() { // a timer that fired stays fired
			idle.Reset(k.limit)
		}
	}}
	if k.req.OnProgress != nil {
		const behind = 1024
		l.queue = make(chan Progress, behind)
	}
	req := callRequest(k)
	numbered, unlisten := c.listen(l, req.Params.Meta)
	defer unlisten()

	send := func() (json.RawMessage, error) {
		return raw(context.WithValue(ctx, numberedKey{}, numbered), `{"content":[]}`, func(ctx context.Context) error {
			_, err := c.client.CallTool(ctx, req)
			return err
		})
	}
	result, err := withProgress(l.queue, k.req.OnProgress, send)
	if errors.Is(err, transport.ErrSessionTerminated) {
		if err = c.again(ctx); err == nil {
			result, err = withProgress(l.queue, k.req.OnProgress, send)
		}
	}
	if errors.Is(err, ErrConnectionClosed) && !c.remote {
		c.lose()
	}
	if c.remote && ctx.Err() == nil && brokeOff(err) {
		c.lose()
		err = ErrConnectionClosed
	}
	if d := new(dialError); errors.As(err, &d) && d.NeedsAuth {
		c.barred.Store(true)
		c.lose()
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return result, err
}

// brokeOff reports whether a request over HTTP failed because nobody is there,
// or is there any more.
func brokeOff(err error) bool {
	var unreachable *url.Error
	var network *net.OpError
	return errors.As(err, &unreachable) && (errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

func callRequest(k toolCall) wire.CallToolRequest {
	var req wire.CallToolRequest
	req.Params.Name = k.tool.RawName
	req.Params.Arguments = arguments(k.req.Input)
	req.Params.Meta = &wire.Meta{}
	if k.req.ToolUseID != "" {
		req.Params.Meta.AdditionalFields = map[string]any{"claudecode/toolUseId": k.req.ToolUseID}
	}
	return req
}

// withProgress runs send and hands progress to its listener meanwhile.
func withProgress(queue <-chan Progress, on func(Progress), send func() (json.RawMessage, error)) (result json.RawMessage, err error) {
	if on == nil {
		return send()
	}
	done := make(chan struct{})
	go func() { // ends with the call
		defer close(done)
		result, err = send()
	}()
	for {
		select {
		case p := <-queue:
			on(p)
		case <-done:
			for {
				select {
				case p := <-queue:
					on(p)
				default:
					return result, err
				}
			}
		}
	}
}

// listener waits for the progress of one call.
type listener struct {
	touch func()        // a sign of life
	queue chan Progress // nil = only the sign of life is wanted
}

// progress hands a notification to its call.
func (c *conn) progress(params map[string]any) {
	c.mu.Lock()
	l := c.listeners[progressToken(params["progressToken"])]
	c.mu.Unlock()
	if l == nil {
		return
	}
	l.touch()
	if l.queue == nil {
		return
	}
	p := Progress{}
	p.Progress, _ = params["progress"].(float64)
	p.Total, _ = params["total"].(float64)
	p.Message, _ = params["message"].(string)
	select {
	case l.queue <- p:
	default: // the listener is far behind; the next one will do
	}
}

// progressToken reads a token back; some servers make a string of it. 0 is
// none of a call.
func progressToken(v any) int64 {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return 0
		}
		return n
	default:
		return 0
	}
}

// numberedKey is for a function that hears the id of a request before it is
// sent.
type numberedKey struct{}

// listen registers a progress listener under the id that the request gets. It
// is the token as well, as in the real CLI, and goes into the request's meta.
func (c *conn) listen(l *listener, meta *wire.Meta) (numbered func(id int64), unlisten func()) {
	var tokens []int64 // a request may be sent again
	numbered = func(id int64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		meta.ProgressToken = id
		tokens = append(tokens, id)
		c.listeners[id] = l
	}
	return numbered, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, token := range tokens {
			delete(c.listeners, token)
		}
	}
}

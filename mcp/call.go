package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/claudeless/claudeless/internal/base/ordered"
	"github.com/claudeless/claudeless/mcp/internal/connection"
	"github.com/claudeless/claudeless/mcp/internal/shown"
	"github.com/claudeless/claudeless/mcp/record"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// ErrConnectionClosed says that a server went away during a call. Its text is
// the one that the real CLI shows.
var ErrConnectionClosed = connection.ErrClosed

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

// Progress is one progress notification: Progress and Total are float64s in the
// server's own unit (Total 0 = unknown), Message a string, often empty.
type Progress = connection.Progress

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
		res = shown.Failure(errorText(err))
	} else {
		res = m.view(tool.Server).Result(tool, c.ToolUseID, result)
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
	tool, err := m.Resolve(c.Tool)
	if err != nil { // lists that are being fetched again may have it
		m.waitFresh(ctx, listWait)
		tool, err = m.Resolve(c.Tool)
	}
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
	k := connection.Call{
		Tool: tool.RawName, UseID: c.ToolUseID, Arguments: arguments(c.Input), Total: s.cfg.MaxTotal,
		Idle: orDefault(c.Timeout, orDefault(s.cfg.Timeout, m.o.ToolTimeout)),
	}
	var began time.Time
	if m.o.Records != nil {
		began = m.o.Records.Now()
	}
	result, err := conn.Call(ctx, k, c.OnProgress)
	if late, ok := errors.AsType[*connection.ExpiredError](err); ok {
		err = &TimeoutError{Server: tool.Server, Tool: tool.RawName, Limit: late.Limit}
	}
	if unserved, ok := errors.AsType[*connection.UnservedError](err); ok {
		err = fmt.Errorf("MCP server %q %w", tool.Server, unserved)
	}
	err = public(err)
	if m.o.Records != nil {
		m.o.Records.Add(recorded(tool, k, began, result, err))
	}
	return tool, result, err
}

// public is the answer of a server that err wraps, if it does.
func public(err error) error {
	if rpc, ok := errors.AsType[*RPCError](err); ok {
		return rpc
	}
	return err
}

// recorded is the record of a call that is over.
func recorded(tool protocol.Tool, k connection.Call, began time.Time, result json.RawMessage, err error) record.Call {
	c := record.Call{
		Server: tool.Server, Tool: tool.Name, RawTool: k.Tool, ToolUseID: k.UseID,
		Input: k.Arguments, Result: result, StartedAt: began,
	}
	if rpc, ok := errors.AsType[*RPCError](err); ok {
		c.Error, c.ErrorCode = rpc.Message, rpc.Code
	} else if err != nil {
		c.Error = errorText(err)
	}
	return c
}

// arguments is a tool's input as it is sent: always an object.
func arguments(input json.RawMessage) json.RawMessage {
	if ordered.TypeOf(input) == "object" && json.Valid(input) {
		return input
	}
	return json.RawMessage(`{}`)
}

// Loss says why a connected server went away ("exit status 3: boom") and what it
// wrote last to standard error, once that is known; empty when it has not, or
// nobody knows before ctx ends.
func (m *Manager) Loss(ctx context.Context, server string) (reason string, stderr []string) {
	s, err := m.known(server)
	if err != nil {
		return "", nil
	}
	st, err := s.known(ctx)
	if err != nil {
		return "", nil
	}
	return st.err, st.tail
}

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/mcp/internal/connection"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// ErrConnectionClosed reports that the server closed the connection during a call. It has the message of the real CLI.
var ErrConnectionClosed = connection.ErrClosed

// CallTimeoutError reports that a server sent no result in time. Limit is the limit that was exceeded: for the whole call,
// or for the time between two messages of the server.
type CallTimeoutError struct {
	Server, Tool string // the server as configured, and the tool as the server names it
	Limit        time.Duration
}

func (e *CallTimeoutError) Error() string {
	return fmt.Sprintf("MCP server %q tool %q timed out after %ds", e.Server, e.Tool, int(e.Limit.Seconds()))
}

// CallRequest says which tool of an MCP server to call, and how.
type CallRequest struct {
	Tool      string          // name of the tool in any form that Resolve accepts
	ToolUseID string          // sent as _meta["claudecode/toolUseId"]; empty means omitted
	Input     json.RawMessage // a JSON object; anything else is sent as {}
	Timeout   time.Duration   // longest time between two messages of the server; 0 means the limits in its ServerConfig
	// OnProgress receives the progress of the call, in order; nil means that progress is ignored. It is called before
	// Call returns, on the same goroutine. If progress arrives faster than OnProgress handles it, some is dropped.
	OnProgress func(Progress)
}

// Progress is a progress notification, in the unit of the server. A Total of 0 means unknown.
type Progress = connection.Progress

// Call runs one tool and returns the result in the form for the model. If the tool or the server fails, the result has IsError
// set. If ctx is cancelled, the call is cancelled, and the result reports that. Call returns an error only if the tool is
// unknown or its server is not connected, so that nothing was sent. A stdio server that was lost is started again first.
func (m *Manager) Call(ctx context.Context, c CallRequest) (toolResult protocol.ToolResult, notSentErr error) {
	tool, result, err := m.resolveConnectAndCall(ctx, c)
	for _, notSent := range []error{ErrUnknownServer, ErrUnknownTool, ErrNotConnected, ErrDisabled, ErrClosed} {
		if errors.Is(err, notSent) {
			return protocol.ToolResult{}, err
		}
	}
	var res protocol.ToolResult
	if err != nil {
		res = shortenedErrorResult(toolCallErrorText(err))
	} else {
		res = m.resultConverterFor(tool.Server).Convert(tool, c.ToolUseID, result)
	}
	res.Server = tool.Server
	return res, nil
}

// CallRaw is like Call but returns the result as the server sent it. In addition to the routing errors it returns an
// *RPCError, a *CallTimeoutError, ErrConnectionClosed or the cause of the cancellation of ctx.
func (m *Manager) CallRaw(ctx context.Context, c CallRequest) (json.RawMessage, error) {
	_, result, err := m.resolveConnectAndCall(ctx, c)
	return result, err
}

func toolCallErrorText(callErr error) string {
	if errors.Is(callErr, context.Canceled) {
		return "The tool call was cancelled"
	}
	return cmp.Or(callErr.Error(), "Command failed with no output")
}

func (m *Manager) resolveConnectAndCall(ctx context.Context, c CallRequest) (tool calledTool, result json.RawMessage, err error) {
	if m.isClosed() {
		return tool, nil, ErrClosed
	}
	tool.Tool, err = m.Resolve(c.Tool)
	if err != nil { // the tool may be in a list that is being fetched
		m.waitForPendingListUpdates(ctx, maxListUpdateWaitBeforeCall)
		tool.Tool, err = m.Resolve(c.Tool)
	}
	if err != nil {
		if _, ok := m.TryReconnectServerOfTool(ctx, c.Tool, c.ToolUseID); ok {
			tool.Tool, err = m.Resolve(c.Tool)
		}
	}
	if err != nil {
		return tool, nil, err
	}
	s := m.currentToolCatalogue().owners[tool.Name]
	if s == nil { // the server was removed since the name was resolved
		return tool, nil, fmt.Errorf("%w: %s", ErrUnknownTool, c.Tool)
	}
	conn, err := s.connectionReconnectingIfLost(ctx)
	if err != nil {
		return tool, nil, err
	}
	tool.isModern = conn.IsModern()
	if tool.outputSchema, err = s.outputSchemaToEnforce(tool.RawName); err != nil {
		return tool, nil, err
	}
	limit := positiveOr(s.cfg.Timeout, m.options.ToolTimeout)
	if plainjson.TypeOf(c.Input) != "object" || !json.Valid(c.Input) {
		c.Input = json.RawMessage(`{}`)
	}
	k := connection.ToolCall{Tool: tool.RawName, UseID: c.ToolUseID, Arguments: c.Input, Idle: positiveOr(c.Timeout, limit), Total: s.cfg.MaxTotal}
	if k.Total == 0 && c.Timeout == 0 {
		k.Total = limit
	}
	var began time.Time
	if m.options.Observer != nil {
		began = m.options.Observer.Now()
	}
	result, err = conn.CallTool(ctx, k, c.OnProgress)
	if errors.Is(err, connection.ErrExpired) {
		if conn, err = s.connectionReconnectingIfLost(ctx); err == nil { // the server is connected again
			result, err = conn.CallTool(ctx, k, c.OnProgress)
		}
	}
	err = describeCallError(err, tool)
	if m.options.Observer != nil {
		m.recordCall(tool.Tool, k, began, result, err)
	}
	return tool, result, err
}

// describeCallError returns the error of a call in the words of the real CLI.
func describeCallError(err error, tool calledTool) error {
	if late, ok := errors.AsType[*connection.CallTimeoutError](err); ok {
		return &CallTimeoutError{Server: tool.Server, Tool: tool.RawName, Limit: late.Limit}
	}
	if refused, ok := errors.AsType[*connection.DialError](err); ok && refused.NeedsLogin {
		return fmt.Errorf("MCP server %q needs you to sign in again (run /mcp to re-authenticate)", tool.Server)
	}
	switch {
	case errors.Is(err, connection.ErrExpired):
		return connection.CLIError(mcpSessionExpiredText(tool.Server))
	case errors.Is(err, connection.ErrBroken):
		return connection.CLIError(fmt.Sprintf("MCP server %q connection closed before the tool call was answered. "+
			"The tool may have run: check whether it did before running it again.", tool.Server))
	case errors.Is(err, connection.ErrUnreadable):
		return connection.CLIError(fmt.Sprintf("The connection to MCP server %q was closed because a message from the server was too large or could not be parsed, "+
			"so the result of tool %q was not read. The tool may have run: check whether it did before running it again. "+
			"If its result may have been too large, ask for less data when you run it again.", tool.Server, tool.RawName))
	}
	if unusable, ok := errors.AsType[*connection.UnusableResultError](err); ok {
		return fmt.Errorf("MCP server %q %w", tool.Server, unusable)
	}
	return wrappedRPCErrorOrSelf(err)
}

// TryReconnectServerOfTool makes one attempt to connect to the remote server of a tool, if the server has failed. The real CLI does this before a tool
// call. If a background attempt is scheduled, TryReconnectServerOfTool waits for it instead, but once in 10 s only. isCallable reports whether the tool can be called now.
// noteForModel says that the attempt failed, or that the last attempt was too recent for another. Calls with the same toolUseID share an
// attempt.
func (m *Manager) TryReconnectServerOfTool(ctx context.Context, toolName, toolUseID string) (noteForModel string, isCallable bool) {
	_, err := m.Resolve(toolName)
	failed, isCallable := errors.AsType[notConnectedError](err)
	if !isCallable {
		return "", err == nil
	}
	s, err := m.findServer(failed.server)
	if err != nil || !s.isHTTPOrSSE() {
		return "", false
	}
	st, _ := s.statusAndChangeSignal()
	if st.state == StateFailed && !st.isFinal || st.state == StateNeedsAuth && st.cannotLogIn {
		noteForModel, err = s.tryConnectForCall(ctx, toolUseID, st)
	}
	if noteForModel != "" || err != nil {
		return noteForModel, false
	}
	_, err = m.Resolve(toolName)
	return "", err == nil
}

func wrappedRPCErrorOrSelf(err error) error {
	if rpc, ok := errors.AsType[*RPCError](err); ok {
		return rpc
	}
	return err
}

func (m *managerState) recordCall(tool protocol.Tool, sentCall connection.ToolCall, startedAt time.Time, result json.RawMessage, err error) {
	c := CallRecord{
		Source: RecordSource, Server: tool.Server, Tool: tool.Name, RawTool: sentCall.Tool, ToolUseID: sentCall.UseID, Input: sentCall.Arguments, Result: result,
		InputCID: canonicalJSONContentID(sentCall.Arguments), ResultCID: canonicalJSONContentID(result), StartedAt: startedAt,
	}
	if rpc, ok := errors.AsType[*RPCError](err); ok {
		c.Error, c.ErrorCode = rpc.Message, rpc.Code
	} else if err != nil {
		c.Error = toolCallErrorText(err)
	}
	c.DurationMS = m.options.Observer.Now().Sub(startedAt).Milliseconds()
	m.options.Observer.RecordCall(c)
}

// LossReason returns why the connection to a server was lost ("exit status 3: boom"), and the last
// lines of its standard error. If the loss is still being recorded, LossReason waits for this until
// ctx ends. Both results are empty if the server is unknown, still connected, or gave no reason.
func (m *Manager) LossReason(ctx context.Context, server string) (reason string, stderr []string) {
	s, err := m.findServer(server)
	if err != nil {
		return "", nil
	}
	st, err := s.statusAfterRecordedLoss(ctx)
	if err != nil {
		return "", nil
	}
	return st.connectError, st.stderrTail
}

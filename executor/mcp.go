package executor

import (
	"context"
	"errors"

	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// MCP runs tool calls on the servers of a manager. The manager belongs to the caller, who starts and closes it.
type MCP struct {
	Manager *mcp.Manager
}

// Tools lists the tools of all connected servers.
func (m MCP) Tools(ctx context.Context) ([]protocol.Tool, error) {
	return m.Manager.FreshTools(ctx), nil
}

// Execute runs one call. If no server has the tool, or its server has failed or is
// disabled, the error is [ErrUnknownTool].
func (m MCP) Execute(ctx context.Context, call protocol.ToolUse) (Result, error) {
	result, err := m.Manager.Call(ctx, mcp.CallRequest{Tool: call.Name, ToolUseID: call.ID, Input: call.Input})
	switch {
	case err == nil:
		return ResultOf(result), nil
	case errors.Is(err, mcp.ErrNotConnected) && m.isListed(call.Name):
		gone := failedResult(err.Error())
		gone.UnknownTool = true
		return gone, nil
	default:
		return Result{}, ErrUnknownTool
	}
}

// isListed reports whether a tool is listed although its server cannot be called now, for example while it reconnects.
func (m MCP) isListed(name string) bool {
	_, err := m.Manager.Resolve(name)
	return err == nil
}

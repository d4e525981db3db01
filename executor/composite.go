package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Composite is an executor that passes each call to the first of its executors that has the tool.
type Composite []Executor

// Tools returns the tools of all executors in order. Of tools with the same name, it returns only the first.
func (c Composite) Tools(ctx context.Context) ([]protocol.Tool, error) {
	lists, n := make([][]protocol.Tool, len(c)), 0
	for i, member := range c {
		tools, err := member.Tools(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing tools: %w", err)
		}
		lists[i], n = tools, n+len(tools)
	}
	// The list and the map are allocated in their final size, because every request to the model lists the tools.
	all, seen := make([]protocol.Tool, 0, n), make(map[string]struct{}, n)
	for _, tools := range lists {
		for i := range tools {
			if _, ok := seen[tools[i].Name]; !ok {
				seen[tools[i].Name] = struct{}{}
				all = append(all, tools[i])
			}
		}
	}
	return all, nil
}

// Execute runs the call with the first executor that has the tool. If none has it, the error is [ErrUnknownTool].
func (c Composite) Execute(ctx context.Context, call protocol.ToolUse) (Result, error) {
	for _, member := range c {
		if result, err := member.Execute(ctx, call); !errors.Is(err, ErrUnknownTool) {
			return result, err
		}
	}
	return Result{}, ErrUnknownTool
}

// RemoveTools returns a middleware that hides tools: hidden tools are not listed, and calls of them return [ErrUnknownTool].
func RemoveTools(hidden func(protocol.Tool) bool) Middleware {
	return func(next Executor) Executor { return &executorWithoutHiddenTools{next: next, hidden: hidden} }
}

type executorWithoutHiddenTools struct {
	next   Executor
	hidden func(protocol.Tool) bool
}

func (h *executorWithoutHiddenTools) Tools(ctx context.Context) ([]protocol.Tool, error) {
	tools, err := h.next.Tools(ctx)
	return slices.DeleteFunc(slices.Clone(tools), h.hidden), err
}

func (h *executorWithoutHiddenTools) Execute(ctx context.Context, call protocol.ToolUse) (Result, error) {
	tools, err := h.Tools(ctx)
	if err != nil {
		return Result{}, err
	}
	if !slices.ContainsFunc(tools, func(t protocol.Tool) bool { return t.Name == call.Name }) {
		return Result{}, ErrUnknownTool
	}
	return h.next.Execute(ctx, call)
}

// MCP is an executor that runs calls on the MCP servers of a manager. The caller starts and closes the manager.
type MCP struct {
	Manager *mcp.Manager
}

// Tools lists the tools of all connected servers.
func (m MCP) Tools(ctx context.Context) ([]protocol.Tool, error) {
	return m.Manager.ToolsAfterPendingListUpdates(ctx), nil
}

// Execute runs one call. The error is [ErrUnknownTool] if no server has the tool, or if its server has failed or is disabled.
func (m MCP) Execute(ctx context.Context, call protocol.ToolUse) (Result, error) {
	result, err := m.Manager.Call(ctx, mcp.CallRequest{Tool: call.Name, ToolUseID: call.ID, Input: call.Input})
	if err == nil {
		return ResultOf(result), nil
	}
	// While a server reconnects, its tools are still listed.
	if _, unlisted := m.Manager.Resolve(call.Name); !errors.Is(err, mcp.ErrNotConnected) || unlisted != nil {
		return Result{}, ErrUnknownTool
	}
	gone := errorResultWithText(err.Error())
	gone.UnknownTool = true
	return gone, nil
}

package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Composite calls the first of its members that has the tool.
type Composite []Executor

// Tools returns the members' tools in order; the first of two tools with the same name wins.
func (c Composite) Tools(ctx context.Context) ([]protocol.Tool, error) {
	lists, n := make([][]protocol.Tool, len(c)), 0
	for i, member := range c {
		tools, err := member.Tools(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing tools: %w", err)
		}
		lists[i], n = tools, n+len(tools)
	}
	all, seen := make([]protocol.Tool, 0, n), make(map[string]struct{}, n) // one allocation each, because every request lists the tools
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

// Execute runs the call with the first member that has the tool. If no member has it, the error is [ErrUnknownTool].
func (c Composite) Execute(ctx context.Context, call protocol.ToolUse) (Result, error) {
	for _, member := range c {
		result, err := member.Execute(ctx, call)
		if !errors.Is(err, ErrUnknownTool) {
			return result, err
		}
	}
	return Result{}, ErrUnknownTool
}

// Hide removes tools: they are not listed, and calling one returns [ErrUnknownTool].
func Hide(hidden func(protocol.Tool) bool) Middleware {
	return func(next Executor) Executor { return &hidingExecutor{next: next, hidden: hidden} }
}

type hidingExecutor struct {
	next   Executor
	hidden func(protocol.Tool) bool
}

func (h *hidingExecutor) Tools(ctx context.Context) ([]protocol.Tool, error) {
	tools, err := h.next.Tools(ctx)
	return slices.DeleteFunc(slices.Clone(tools), h.hidden), err
}

func (h *hidingExecutor) Execute(ctx context.Context, call protocol.ToolUse) (Result, error) {
	tools, err := h.Tools(ctx)
	if err != nil {
		return Result{}, err
	}
	if !slices.ContainsFunc(tools, func(t protocol.Tool) bool { return t.Name == call.Name }) {
		return Result{}, ErrUnknownTool
	}
	return h.next.Execute(ctx, call)
}

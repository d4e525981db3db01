package executor

import (
	"context"
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
)

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

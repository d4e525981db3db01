package session

import (
	"context"
	"slices"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// sequentialExecutor runs the calls of a tool one after another if a breakpoint stops only a limited number of them. If
// they ran in parallel, it would be left to chance which calls the breakpoint stops.
type sequentialExecutor struct {
	executor.Executor
	script *debug.ScriptedGate
}

// Tools returns the tools. A tool whose calls a breakpoint counts is not read-only, so that its calls run in sequence.
func (c sequentialExecutor) Tools(ctx context.Context) ([]protocol.Tool, error) {
	tools, err := c.Executor.Tools(ctx)
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].ReadOnly = tools[i].ReadOnly && !c.script.HasLimitedRule(tools[i].Name)
	}
	return tools, err
}

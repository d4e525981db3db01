package session

import (
	"context"
	"slices"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// callSerializerForHitLimits runs the calls of a tool one after another if a breakpoint stops only a limited number of them. If
// they ran in parallel, it would be left to chance which calls the breakpoint stops.
type callSerializerForHitLimits struct {
	executor.Executor
	breakpoints *debug.ScriptedGate
}

// Tools returns the tools. If a breakpoint counts the calls of a tool, the tool is reported as not read-only, so that
// its calls run in sequence.
func (c callSerializerForHitLimits) Tools(ctx context.Context) ([]protocol.Tool, error) {
	tools, err := c.Executor.Tools(ctx)
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].ReadOnly = tools[i].ReadOnly && !c.breakpoints.HasLimitedRule(tools[i].Name)
	}
	return tools, err
}

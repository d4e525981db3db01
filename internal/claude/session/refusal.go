package session

import (
	"context"
	"slices"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/layer"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Precheck looks at a call that is about to run. What is answered without a tool is not checked.
func (t *toolbox) Precheck(ctx context.Context, call protocol.ToolUse) simulator.Precheck {
	ready := simulator.Precheck{ObservedInput: t.builtinTools(call).ObservedInput(call)}
	if !t.policy.canned.Answers(call) {
		ready.Refusal = t.refuse(ctx, call)
	}
	return ready
}

// EarlyRefusal says when the refusal of a call comes while its message is still being streamed. Tools that write
// files look at them first.
func (t *toolbox) EarlyRefusal(ctx context.Context, call protocol.ToolUse) simulator.RefusalPoint {
	if t.policy.canned.Answers(call) {
		return simulator.AfterMessage
	}
	call.ObservedInput = t.builtinTools(call).ObservedInput(call)
	writes := call.Name == "Edit" || call.Name == "Write"
	refused := t.refuse(ctx, call)
	_, missing := t.inventory.refusal(call)
	switch {
	case refused != nil && (missing || refused.UnknownTool || layer.IsInputError(*refused)):
		return simulator.BeforeBlockStop
	case writes:
	case refused != nil:
		return simulator.AfterBlockStop
	case t.refusesAtOnce(call):
		return simulator.InNextBlock
	}
	return simulator.AfterMessage
}

// refuse returns the error for a call that no tool of the session accepts, or nil.
func (t *toolbox) refuse(ctx context.Context, call protocol.ToolUse) *executor.Result {
	if v, refused := t.policy.Refuses(call); refused {
		return new(layer.Denial(v))
	}
	if text, refused := t.inventory.refusal(call); refused {
		result := executor.Unavailable(text)
		result.UnknownTool = t.inventory.remains(call.Name) // else the user has taken it away
		return new(executor.Plain(result))
	}
	if refused := t.builtinTools(call).Check(ctx, call); refused != nil {
		return new(executor.Plain(*refused))
	}
	if _, known := t.Tool(call.Name); known {
		return nil
	}
	names := t.inventory.listed(t.servers.hasResources())
	if i := slices.Index(names, "Task"); i >= 0 {
		names[i] = "Agent" // as calls name it
	}
	return new(executor.Plain(executor.Unknown(call.Name, names)))
}

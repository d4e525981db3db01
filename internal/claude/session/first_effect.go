package session

import (
	"context"
	"strings"

	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/layer"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// FirstVisibleEffectOfCall returns the effect that a call shows while the model's message still streams: the call starts or is
// refused (observed with 2.1.330). The zero value means no effect before the message ends. Calls of agents have no early effect,
// and neither have valid calls that write a file, because they read the file first.
func (t *toolbox) FirstVisibleEffectOfCall(ctx context.Context, call protocol.ToolUse) simulator.CallStartOrRefusal {
	if t.policy.cannedResults.HasResult(call) {
		return simulator.CallStartOrRefusal{}
	}
	call.ObservedInput = t.builtinToolsForCaller(call).ObservedInput(call)
	refused := t.reconnectOrRefuseCall(ctx, call)
	_, missing := t.inventory.unavailableBuiltinToolText(call)
	switch {
	case refused != nil && (missing || refused.UnknownTool || layer.IsInputSchemaError(*refused)):
		return simulator.CallStartOrRefusal{Point: simulator.StreamPointBeforeBlockStop, ToolIsMissing: missing}
	case call.Name == "Edit", call.Name == "Write", call.Name == "NotebookEdit":
		return simulator.CallStartOrRefusal{}
	case refused != nil:
		return simulator.CallStartOrRefusal{Point: simulator.StreamPointAfterBlockStop}
	}
	first := layer.FirstVisibleEffect(t.policy.Policy, t.hooks, t.prompter, call)
	switch {
	case !first.Starts || first.Point != simulator.StreamPointOneEventAfterBlockStop:
	case strings.HasPrefix(call.Name, "mcp__"):
		first.Point = simulator.StreamPointAfterBlockStop
	case call.Name == "AskUserQuestion":
		first.Point = simulator.StreamPointBeforeBlockStop
	}
	if first.Point == simulator.StreamPointAfterMessage && len(t.breakpointGates.scenarioThenDebuggerGates()) == 0 {
		switch {
		case agent.IsAgentOrTask(call.Name), call.Name == "Skill" && t.skills.forksAgent(call):
			first = simulator.CallStartOrRefusal{Point: simulator.StreamPointAfterBlockStop, Starts: true}
		case call.Name == "Skill":
			first = simulator.CallStartOrRefusal{Point: simulator.StreamPointTwoEventsAfterBlockStop, Starts: true}
		case call.Name == "ToolSearch":
			first = simulator.CallStartOrRefusal{Point: simulator.StreamPointOneEventAfterBlockStop, Starts: true}
		}
	}
	if first.Starts && call.Agent != nil {
		return simulator.CallStartOrRefusal{}
	}
	return first
}

package session

import (
	"context"
	"strings"

	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/layer"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// FirstEffect returns the first visible effect of a call, and when it appears (observed with 2.1.330). A call with
// valid input that writes a file shows nothing during the message, because it reads the file first. The calls of agents
// start after the message.
func (t *toolbox) FirstEffect(ctx context.Context, call protocol.ToolUse) simulator.Effect {
	if t.policy.canned.HasResult(call) {
		return simulator.Effect{}
	}
	call.ObservedInput = t.builtinTools(call).ObservedInput(call)
	refused := t.refuseCall(ctx, call)
	_, missing := t.inventory.refusalText(call)
	switch {
	case refused != nil && (missing || refused.UnknownTool || layer.IsInputError(*refused)):
		return simulator.Effect{Point: simulator.BeforeBlockStop}
	case call.Name == "Edit", call.Name == "Write", call.Name == "NotebookEdit":
		return simulator.Effect{}
	case refused != nil:
		return simulator.Effect{Point: simulator.AfterBlockStop}
	}
	first := layer.FirstEffect(t.policy.Policy, t.hooks, t.prompter, call)
	switch {
	case !first.Starts || first.Point != simulator.InNextBlock:
	case strings.HasPrefix(call.Name, "mcp__"):
		first.Point = simulator.AfterBlockStop
	case call.Name == "AskUserQuestion":
		first.Point = simulator.BeforeBlockStop
	}
	if first.Point == simulator.AfterMessage && len(t.callGates.gates()) == 0 {
		switch {
		case agent.IsAgentTool(call.Name), call.Name == "Skill" && t.skills.forksAgent(call):
			first = simulator.Effect{Point: simulator.AfterBlockStop, Starts: true}
		case call.Name == "Skill":
			first = simulator.Effect{Point: simulator.LaterInNextBlock, Starts: true}
		case call.Name == "ToolSearch":
			first = simulator.Effect{Point: simulator.InNextBlock, Starts: true}
		}
	}
	if first.Starts && call.Agent != nil {
		return simulator.Effect{}
	}
	return first
}

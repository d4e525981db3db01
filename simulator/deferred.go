package simulator

import (
	"slices"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Deferred is a tool call that a PreToolUse hook put off in an earlier run of
// the session, so that somebody could be asked meanwhile.
type Deferred struct {
	Use     protocol.ToolUse
	Message string // uuid of the message that made the call
}

// Deferred gives the turn that answers the call of [Options.Deferred], before
// any prompt; false = there is none to answer.
func (s *Simulator) Deferred() (protocol.UserMessage, bool) {
	return protocol.UserMessage{Source: sourceDeferred}, s.o.Deferred != nil
}

// sourceDeferred marks a turn without a prompt.
const sourceDeferred = "deferred"

// answerDeferred runs the call that was put off, hooks included, and goes on
// with the model. A tool that is there no more ends the turn before its hooks.
func (t *turn) answerDeferred() (finish, error) {
	d := t.s.o.Deferred
	t.promptID = t.s.o.NewID()
	if err := t.sessionStart(); err != nil {
		return finish{}, err
	}
	if err := t.init(""); err != nil {
		return finish{}, err
	}
	tools, err := t.s.o.Executor.Tools(t.ctx)
	if err != nil {
		return finish{}, err
	}
	at := slices.IndexFunc(tools, func(tool protocol.Tool) bool { return tool.Name == d.Use.Name })
	if at < 0 {
		const reason = "tool_deferred_unavailable"
		return finish{subtype: "success", isError: true, terminal: reason, stop: reason, deferred: &d.Use, result: new(string)}, nil
	}
	calls := []call{{use: d.Use, tool: tools[at], event: d.Message}}
	results, end, err := t.toolRound(calls)
	if err != nil || end != nil {
		return deref(end), err
	}
	t.rounds++
	if err := t.batchDone(calls, results); err != nil {
		return finish{}, err
	}
	return t.converse(scenarios.Request{Results: results})
}

package replay

import (
	"encoding/json"
	"slices"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// state is a conversation after some of its history. It is never changed: going
// on makes another one.
type state struct {
	engine         *scenarios.Engine
	answer         *answer        // to what was asked last; nil = nothing was
	pendingPrompts []string       // added prompts that nothing has answered
	context        []string       // texts beside the prompt and the results, for expressions
	failureCounts  map[string]int // how often a rule's failure struck before it was overcome
	nudged         bool           // Claude Code has asked about an empty reply since the last prompt: it does so once
}

// answer is what the scenario says to the last group of a history.
type answer struct {
	firstRequest scenarios.Request // what was asked first
	lastRequest  scenarios.Request // the last that was answered
	reply        scenarios.Reply   // the first: its rule, failure, delay and pace count
	blocks       []protocol.Block
	stop         string // subagentEngine stop reason
	usage        *scenarios.Usage
	structured   json.RawMessage
	pendingGates []PendingGate
	continues    bool // a step follows that needs no results
	hasCalls     bool
}

// isEmpty tells whether nothing of the answer can be seen.
func (a *answer) isEmpty() bool {
	return !slices.ContainsFunc(a.blocks, func(b protocol.Block) bool { text, ok := b.(protocol.TextBlock); return !ok || text.Text != "" })
}

// PendingGate is a gate that a part of an answer waits at: its own, or that of another step.
type PendingGate struct {
	Gate, After string // one of them is set
	Rule        scenarios.RuleRef
}

// MissingValue is a path in a template that had no value.
type MissingValue struct {
	Rule scenarios.RuleRef
	Path string
}

// append puts a message of the scenario behind those before.
func (a *answer) append(reply scenarios.Reply) {
	a.blocks = append(a.blocks, reply.Blocks...)
	a.stop, a.continues = reply.StopReason, reply.More
	if a.stop == "end_turn" {
		a.stop = ""
	}
	if reply.StructuredOutput != nil {
		a.structured = reply.StructuredOutput
	}
	if reply.After != "" {
		a.pendingGates = append(a.pendingGates, PendingGate{After: reply.After, Rule: reply.Rule})
	}
	if reply.Gate != "" {
		a.pendingGates = append(a.pendingGates, PendingGate{Gate: reply.Gate, Rule: reply.Rule})
	}
	if u := reply.Usage; u != nil {
		sum := *u
		if a.usage != nil {
			sum.InputTokens += a.usage.InputTokens
			sum.OutputTokens += a.usage.OutputTokens
		}
		a.usage = &sum
	}
	a.hasCalls = scenarios.StopReason(reply.Blocks) == "tool_use"
}

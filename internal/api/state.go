package api

import (
	"encoding/json"
	"slices"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// conversationState is a conversation after part of its history. It is immutable: each step creates a new one.
type conversationState struct {
	engine         *scenarios.Engine
	answer         *scriptedAnswer // answer to the last group; nil means that none exists
	pendingPrompts []string        // prompts that were typed while the model worked and are not answered yet
	context        []string        // texts that accompany the prompt and the results, for expressions
	failureCounts  map[string]int  // number of failures since the last success, by rule
	wasReminded    bool            // Claude Code has repeated its request after an empty reply to this prompt; it does that only once
}

// scriptedAnswer is the scenario's answer to the last group of a history.
type scriptedAnswer struct {
	firstRequest scenarios.Request
	lastRequest  scenarios.Request // the last request that was answered
	reply        scenarios.Reply   // the first reply, which determines rule, failure, delay and pace
	blocks       []protocol.Block
	stopReason   string
	usage        *scenarios.Usage
	structured   json.RawMessage
	pendingGates []pendingGate
	hasMoreSteps bool // the scenario has another step, which does not wait for results
	hasCalls     bool
}

func (a *scriptedAnswer) isEmpty() bool {
	return !slices.ContainsFunc(a.blocks, func(b protocol.Block) bool { text, ok := b.(protocol.TextBlock); return !ok || text.Text != "" })
}

// pendingGate is a gate at which a part of an answer waits: Gate belongs to the part itself, After to another step.
type pendingGate struct {
	Gate, After string // exactly one of the two is set
	Rule        scenarios.RuleRef
}

type missingTemplateValue struct {
	Rule scenarios.RuleRef
	Path string
}

func (a *scriptedAnswer) addReplyBlocksUsageAndGates(reply scenarios.Reply) {
	a.blocks = append(a.blocks, reply.Blocks...)
	a.stopReason, a.hasMoreSteps = reply.StopReason, reply.HasMore
	if a.stopReason == "end_turn" {
		a.stopReason = ""
	}
	if reply.StructuredOutput != nil {
		a.structured = reply.StructuredOutput
	}
	if reply.After != "" {
		a.pendingGates = append(a.pendingGates, pendingGate{After: reply.After, Rule: reply.Rule})
	}
	if reply.Gate != "" {
		a.pendingGates = append(a.pendingGates, pendingGate{Gate: reply.Gate, Rule: reply.Rule})
	}
	if u := reply.Usage; u != nil {
		sum := *u
		if a.usage != nil {
			sum = sum.Add(*a.usage)
		}
		a.usage = &sum
	}
	a.hasCalls = scenarios.StopReason(reply.Blocks) == "tool_use"
}

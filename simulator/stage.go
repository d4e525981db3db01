package simulator

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// turnContext is what the acts of a turn (asking the model, running calls, going on,
// commands of the CLI itself) stand on. Each part has its own state.
type turnContext struct {
	s          *Simulator
	out        *emitter
	ledger     *turnTotals
	behind     *backgroundWork
	prompts    *prompts
	hooks      *hookPoints
	structured *structured
}

// newStage sets the stage for one prompt.
func newStage(s *Simulator, in protocol.UserMessage, yield func(protocol.Event, error) bool) *turnContext {
	st := &turnContext{
		s: s, out: &emitter{s: s, yield: yield}, ledger: &turnTotals{books: &s.books, clock: s.o.Clock, limit: s.o.Limits.BudgetUSD, show: s.o.Show, started: s.o.Clock.Now()},
		structured: &structured{schema: s.main.Schema, tries: s.o.Limits.SchemaTries},
	}
	st.behind = &backgroundWork{s: s, out: st.out, ledger: st.ledger}
	st.prompts = &prompts{s: s, out: st.out, in: in}
	if in.UUIDs == nil && in.UUID != "" {
		st.prompts.in.UUIDs = []string{in.UUID}
	}
	st.hooks = &hookPoints{s: s, out: st.out, prompts: st.prompts}
	return st
}

const (
	structuredTool  = "StructuredOutput"
	structuredNudge = "[structured-output-enforce] You MUST call the StructuredOutput tool to complete this request. Call this tool now."
)

// structured follows the StructuredOutput calls of one turn (spec:
// cli-contract 9.1).
type structured struct {
	schema   Schema          // nil = none is asked for
	tries    int             // that may fail; 0 = 5
	value    json.RawMessage // the accepted output
	last     string          // last validation error
	failures int
	nudged   bool
}

// add returns the reply's blocks, with the scripted structured output as one
// more tool call.
func (st *structured) add(reply scenarios.Reply) []protocol.Block {
	if st.schema == nil || reply.StructuredOutput == nil {
		return reply.Blocks
	}
	use := protocol.ToolUse{Type: "tool_use", Name: structuredTool, Input: reply.StructuredOutput}
	blocks := reply.Blocks[:len(reply.Blocks):len(reply.Blocks)]
	if len(blocks) == 1 { // a message is not empty that has a call
		if text, ok := blocks[0].(protocol.TextBlock); ok && text.Text == "" {
			blocks = nil
		}
	}
	return append(blocks, use)
}

// check validates one call.
func (st *structured) check(use protocol.ToolUse) protocol.ToolResult {
	accept := &protocol.PermissionDecision{Decision: "accept", Source: "config"}
	if err := st.schema.Validate(use.Input); err != nil {
		st.failures++
		st.last = "Output does not match required schema: " + err.Error()
		r := protocol.ErrorResult(st.last)
		r.Decision = accept
		return r
	}
	st.value = use.Input
	const text = "Structured output provided successfully"
	return protocol.ToolResult{Content: protocol.Content{Text: text}, Output: text, Decision: accept}
}

// done ends the turn once there is an output or too many were refused.
func (st *structured) done() error {
	if st.schema == nil {
		return nil
	}
	tries := cmp.Or(st.tries, 5)
	switch {
	case st.value != nil:
		return &turnEndError{subtype: "success", terminal: "completed", structured: compact(st.value), result: new(string(compact(st.value))), stop: "tool_use"}
	case st.failures >= tries:
		return &turnEndError{
			subtype: "error_max_structured_output_retries", terminal: "structured_output_retry_exhausted", isError: true, exhausted: true, stop: "tool_use",
			errors: []string{fmt.Sprintf("Failed to provide valid structured output after %d attempts — last StructuredOutput error: %s", tries, st.last)},
		}
	default:
		return nil
	}
}

// reminder is the one text that asks for a structured output not yet given.
func (st *structured) reminder() (string, bool) {
	if st.schema == nil || st.nudged || st.value != nil {
		return "", false
	}
	st.nudged = true
	return structuredNudge, true
}

func compact(raw json.RawMessage) json.RawMessage {
	out, err := protocol.Marshal(raw)
	if err != nil {
		return raw
	}
	return out
}

package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type turnContext struct {
	sim        *Simulator
	out        *recordingEmitter
	totals     *turnTotals
	background *backgroundTaskReporter
	prompts    *turnPrompts
	hooks      *turnHooks
	structured *structuredOutput
	refills    rapidCompactionCounter
}

func newTurnContext(s *Simulator, in protocol.UserMessage, yield func(protocol.Event, error) bool) *turnContext {
	st := &turnContext{
		sim: s, out: &recordingEmitter{sim: s, yield: yield}, totals: &turnTotals{session: &s.totals, clock: s.options.Clock, budgetUSD: s.options.Limits.BudgetUSD, maxRounds: s.options.Limits.MaxTurns, display: s.options.Display, started: s.options.Clock.Now()},
		structured: &structuredOutput{schema: s.main.Schema, maxInvalidOutputs: s.options.Limits.SchemaAttempts},
	}
	st.background = &backgroundTaskReporter{sim: s, out: st.out, totals: st.totals}
	st.prompts = &turnPrompts{sim: s, out: st.out, prompt: in}
	switch {
	case in.Source == protocol.PromptSourceWakeup: // no host sent the prompt, so events do not list it
		st.prompts.promptUUID, st.prompts.prompt.UUID = in.UUID, ""
	case in.UUIDs == nil && in.UUID != "":
		st.prompts.prompt.UUIDs = []string{in.UUID}
	}
	st.hooks = &turnHooks{sim: s, out: st.out, prompts: st.prompts}
	return st
}

const (
	structuredOutputTool = "StructuredOutput"
	structuredReminder   = "[structured-output-enforce] You MUST call the StructuredOutput tool to complete this request. Call this tool now."
)

// structuredOutput tracks the StructuredOutput calls of one turn (spec: cli-contract 9.1).
type structuredOutput struct {
	schema            StructuredOutputSchema // nil if no structured output is requested
	maxInvalidOutputs int                    // invalid outputs allowed; 0 means 5
	validOutput       json.RawMessage
	lastError         string
	invalidOutputs    int
	wasReminded       bool
}

func (st *structuredOutput) blocksWithStructuredOutputCall(reply scenarios.Reply) []protocol.Block {
	if st.schema == nil || reply.StructuredOutput == nil {
		return reply.Blocks
	}
	use := protocol.ToolUse{Type: "tool_use", Name: structuredOutputTool, Input: reply.StructuredOutput}
	blocks := reply.Blocks[:len(reply.Blocks):len(reply.Blocks)]
	if len(blocks) == 1 { // an empty text is omitted, because the message now has a call
		if text, ok := blocks[0].(protocol.TextBlock); ok && text.Text == "" {
			blocks = nil
		}
	}
	return append(blocks, use)
}

func (st *structuredOutput) validateAndRecordCall(use protocol.ToolUse, mode protocol.PermissionMode) protocol.ToolResult {
	accept := &protocol.PermissionDecision{Decision: "accept", Source: "config"}
	if mode == protocol.ModeBypass {
		accept.ReasonType = "mode"
	}
	if err := st.schema.Validate(use.Input); err != nil {
		st.invalidOutputs++
		st.lastError = "Output does not match required schema: " + err.Error()
		r := protocol.ErrorResult(st.lastError)
		r.Decision = accept
		return r
	}
	st.validOutput = use.Input
	const text = "Structured output provided successfully"
	return protocol.ToolResult{Content: protocol.Content{Text: text}, Output: text, Decision: accept}
}

// StructuredOutputExecutor is an executor for StructuredOutput calls, so that the layers around the tools apply to them.
type StructuredOutputExecutor struct{}

type structuredOutputToolRoundKey struct{}

// Tools returns no tools, because the session itself adds StructuredOutput to its list of tools.
func (StructuredOutputExecutor) Tools(context.Context) (noTools []protocol.Tool, err error) {
	return nil, nil
}

// Execute checks the input of a StructuredOutput call with the schema. For other calls, it returns [executor.ErrUnknownTool].
func (StructuredOutputExecutor) Execute(ctx context.Context, structuredOutputCall protocol.ToolUse) (executor.Result, error) {
	if d, ok := ctx.Value(structuredOutputToolRoundKey{}).(*toolCallRunner); ok && structuredOutputCall.Name == structuredOutputTool {
		return executor.ResultOf(d.structured.validateAndRecordCall(structuredOutputCall, d.sim.options.Location.Mode())), nil
	}
	return executor.Result{}, executor.ErrUnknownTool
}

// turnEndErrorIfDone returns the [turnEndError] after a valid output or too many invalid ones, and nil otherwise.
func (st *structuredOutput) turnEndErrorIfDone() error {
	tries := cmp.Or(st.maxInvalidOutputs, 5)
	switch {
	case st.validOutput != nil:
		return &turnEndError{subtype: "success", terminalReason: "completed", structuredOutput: plainjson.Compact(st.validOutput), resultText: new(string(plainjson.Compact(st.validOutput))), stopReason: "tool_use"}
	case st.invalidOutputs >= tries:
		return &turnEndError{
			subtype: "error_max_structured_output_retries", terminalReason: "structured_output_retry_exhausted", isError: true, excludeLastReply: true, stopReason: "tool_use",
			errors: []string{fmt.Sprintf("Failed to provide valid structured output after %d attempts — last StructuredOutput error: %s", tries, st.lastError)},
		}
	}
	return nil
}

func (st *structuredOutput) remindOnceOfMissingOutput() (reminderText string, isNeeded bool) {
	if st.schema == nil || st.wasReminded || st.validOutput != nil {
		return "", false
	}
	st.wasReminded = true
	return structuredReminder, true
}

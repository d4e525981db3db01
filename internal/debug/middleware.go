package debug

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// ToolCallGate decides about tool calls. BeforeCall and AfterCall may block until a person decides or ctx is cancelled.
type ToolCallGate interface {
	// Register adds tools with their schemas.
	Register(ctx context.Context, tools []protocol.Tool) error
	// BeforeCall reports a call that is about to run. It returns the call's id, and whether and how the call runs.
	BeforeCall(ctx context.Context, c Call) (callID string, d Decision, err error)
	// AfterCall reports the outcome of a call and returns what happens to the result.
	AfterCall(ctx context.Context, callID string, o CallOutcome) (Decision, error)
}

// MiddlewareOptions describe the run and the process that make the calls. All fields are optional.
type MiddlewareOptions struct {
	Run     CallingRun // nil means unknown
	PID     int        // process id of this process
	Started float64    // start time of this process, in Unix seconds
}

// CallingRun describes the run whose calls may be stopped.
type CallingRun interface {
	ID() string // session id
	// CallingAgentJSON describes the sub-agent that makes a call, as JSON; nil means the main conversation.
	CallingAgentJSON(call protocol.ToolUse) json.RawMessage
	// ToolResultFromText builds a structured result for a call from text that the debugger or another tool provided.
	ToolResultFromText(call protocol.ToolUse, text string) protocol.ToolResult
}

func (o MiddlewareOptions) structuredResultFromText(toolCall protocol.ToolUse, text string) protocol.ToolResult {
	if o.Run == nil {
		return protocol.ToolResult{Content: protocol.Content{Text: text}}
	}
	return o.Run.ToolResultFromText(toolCall, text)
}

// Middleware stops calls at g's breakpoints. If g fails before a call, the tool does not run and the result is an
// error. If g fails after a call, the result is kept. The result's field Breakpoints lists all decisions in order:
// g's decision before the call, the decisions of inner middleware, and g's decision after the call.
func Middleware(g ToolCallGate, o MiddlewareOptions) executor.Middleware {
	return executor.NewMiddleware(func(ctx context.Context, use protocol.ToolUse, next executor.Executor) (executor.Result, error) {
		c := Call{Tool: use.Name, Input: use.Input, ToolUseID: use.ID, Client: ClientClaudelessRun, PID: o.PID, Started: o.Started}
		if o.Run != nil {
			c.Session, c.CallSite = o.Run.ID(), o.Run.CallingAgentJSON(use)
		}
		id, d, err := g.BeforeCall(ctx, c)
		if err != nil {
			if ctx.Err() != nil {
				return errorResultWithText("The tool call was cancelled while it was paused"), nil
			}
			return errorResultWithText("debugger: " + err.Error()), nil
		}
		result, runErr := o.runCallAsDecided(ctx, use, d, next)
		result.Breakpoints = append(breakpointDecisionIfStopped(PhaseBefore, d), result.Breakpoints...)
		out, err := outcomeOf(result, runErr)
		if err != nil {
			return result, err
		}
		d, err = g.AfterCall(ctx, id, out)
		if err != nil {
			return result, runErr
		}
		result.Breakpoints = append(result.Breakpoints, breakpointDecisionIfStopped(PhaseAfterCall, d)...)
		if d.Action == ActionContinue {
			return result, runErr
		}
		return o.resultAfterDecision(use, result, d), nil
	})
}

// breakpointDecisionIfStopped returns the decision about a stopped call, as a list with one element; nil means not stopped.
func breakpointDecisionIfStopped(phase CallPhase, d Decision) []protocol.BreakpointDecision {
	if d.PauseID == "" && d.BreakpointName == "" && d.Action == ActionContinue {
		return nil
	}
	b := protocol.BreakpointDecision{
		Phase: string(phase), Action: string(d.Action), Breakpoint: d.BreakpointName, Pause: d.PauseID, Input: d.Input, Replacement: d.Tool,
	}
	if d.Action == ActionRaise {
		b.Action = "fail"
	}
	return []protocol.BreakpointDecision{b}
}

func errorResultWithText(text string) executor.Result {
	return executor.ResultOf(protocol.ErrorResult(text))
}

func (o MiddlewareOptions) runCallAsDecided(ctx context.Context, use protocol.ToolUse, d Decision, next executor.Executor) (executor.Result, error) {
	asked := use
	switch d.Action {
	case ActionModify:
		use.Input = d.Input
	case ActionRunOtherTool:
		use.Name = d.Tool
	case ActionSkip:
		return executor.ResultOf(o.structuredResultFromText(use, ReplacementResultText(d.Result))), nil
	case ActionRaise:
		return errorResultWithText(d.Message), nil
	case ActionEndedWithoutDecision:
		return errorResultWithText("debugger: the pause ended without a decision"), nil
	default: // the call runs unchanged
	}
	result, err := next.Execute(ctx, use)
	if d.Action == ActionRunOtherTool && errors.Is(err, executor.ErrUnknownTool) {
		return errorResultWithText(fmt.Sprintf("debugger: unknown replacement tool %s", use.Name)), nil
	}
	if use.Name != asked.Name && err == nil && !result.IsError {
		result = o.rebuildStructuredOutput(asked, result)
	}
	return result, err
}

// rebuildStructuredOutput gives a replaced result a structured output in the form that the tool's results have. If the
// content is not a single text, the result gets no structured output.
func (o MiddlewareOptions) rebuildStructuredOutput(toolCall protocol.ToolUse, replacedResult executor.Result) executor.Result {
	replacedResult.Output, replacedResult.ShowsIsErrorFalse = nil, false
	if text, ok := textOfSingleBlock(replacedResult.Content); ok {
		shaped := o.structuredResultFromText(toolCall, text)
		replacedResult.Output, replacedResult.ShowsIsErrorFalse = shaped.Output, shaped.ShowsIsErrorFalse
	}
	return replacedResult
}

func outcomeOf(r executor.Result, err error) (CallOutcome, error) {
	if err != nil {
		return CallOutcome{Failed: true, Error: err.Error()}, nil
	}
	var content any = r.Content
	if text, ok := textOfSingleBlock(r.Content); ok {
		content = text
	}
	raw, err := protocol.Marshal(content)
	if err != nil {
		return CallOutcome{}, fmt.Errorf("encoding the result of the tool call: %w", err)
	}
	o := CallOutcome{Failed: r.IsError, Result: raw}
	if r.IsError {
		o.Error = r.Content.Plain()
	}
	return o, nil
}

func textOfSingleBlock(c protocol.Content) (text string, ok bool) {
	if c.Blocks == nil {
		return c.Text, true
	}
	if len(c.Blocks) == 1 {
		if t, ok := c.Blocks[0].(protocol.TextBlock); ok {
			return t.Text, true
		}
	}
	return "", false
}

func (o MiddlewareOptions) resultAfterDecision(use protocol.ToolUse, r executor.Result, d Decision) executor.Result {
	switch d.Action {
	case ActionModify:
		r.Content, r.IsError = EditedContent(d.Result), false
		r = o.rebuildStructuredOutput(use, r)
	case ActionRaise:
		r.Content, r.IsError, r.Output = protocol.Content{Text: d.Message}, true, nil
	default: // unchanged
	}
	return r
}

// ReplacementResultText returns a replaced result as text: a string unchanged, anything else as JSON.
func ReplacementResultText(replacedResult json.RawMessage) string {
	if text, ok := plainjson.StringValue(replacedResult); ok {
		return text
	}
	return cmp.Or(string(replacedResult), "null")
}

// EditedContent converts an edited result. A list of content blocks becomes those blocks, anything else becomes text.
func EditedContent(v json.RawMessage) protocol.Content {
	var blocks []struct{ Type string }
	known := []string{"text", "image", "document", "resource", "resource_link", "audio", "tool_reference"}
	if json.Unmarshal(v, &blocks) == nil && len(blocks) > 0 {
		var c protocol.Content
		ok := true
		for _, b := range blocks {
			ok = ok && slices.Contains(known, b.Type)
		}
		if ok && json.Unmarshal(v, &c) == nil {
			return c
		}
	}
	return protocol.Content{Text: ReplacementResultText(v)}
}

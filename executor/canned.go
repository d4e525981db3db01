package executor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// UncannedCallPolicy selects what happens to calls without a canned result.
type UncannedCallPolicy int

// What happens to calls that have no canned result.
const (
	ModeLive UncannedCallPolicy = iota // runs calls that have no canned result
	ModeMock                           // makes calls that have no canned result fail; no MCP server and no built-in tool is called
)

// CannedToolSettings contains the settings of a scenario for all calls of one tool (tool_execution.tools.NAME).
type CannedToolSettings struct {
	Result      *string // text of the result of each call; nil means none
	Error       *string // text with which calls are refused, unless AutoApprove is set; nil means that they are not refused
	AutoApprove bool
}

// CannedOptions configures [Canned]. The zero value runs every call that has no canned result.
type CannedOptions struct {
	Mode  UncannedCallPolicy
	Tools map[string]CannedToolSettings // keyed by canonical tool name
	// Shape builds the result of a successful canned call from its text. It adds the structured output that the real
	// tool would return. Nil means that the result has only the text.
	Shape func(call protocol.ToolUse, text string) protocol.ToolResult
}

// HasResult reports whether the scenario answers the call, so that no tool runs. Input of such calls is not checked.
func (o CannedOptions) HasResult(call protocol.ToolUse) bool {
	tool := o.Tools[call.Name]
	return o.Mode == ModeMock || tool.refusesEveryCall() || tool.Result != nil || call.Script != nil && call.Script.Result != nil
}

func (t CannedToolSettings) refusesEveryCall() bool { return t.Error != nil && !t.AutoApprove }

// Canned returns a middleware that answers calls from the scenario. It first waits for the delay of the call. Then it
// uses the first of these values that the scenario contains: the error of the tool, the result of the call, the result
// of the tool. If the scenario contains none of them, Mode decides (spec: scenario-format 1).
func Canned(o CannedOptions) Middleware {
	return NewMiddleware(func(ctx context.Context, call protocol.ToolUse, next Executor) (Result, error) {
		var script protocol.CallScript
		if call.Script != nil {
			script = *call.Script
		}
		if clock.Sleep(ctx, time.Duration(script.DelayMS)*time.Millisecond) != nil {
			return ResultOf(InterruptedResult()), nil
		}
		tool := o.Tools[call.Name]
		if tool.refusesEveryCall() {
			return errorResultWithText("Permission denied: " + *tool.Error), nil
		}
		text := cmp.Or(script.Result, tool.Result)
		switch {
		case text != nil && script.IsError:
			return errorResultWithText(*text), nil
		case text != nil && o.Shape != nil:
			return ResultOf(o.Shape(call, *text)), nil
		case text != nil:
			return ResultOf(protocol.ToolResult{Content: protocol.Content{Text: *text}}), nil
		case o.Mode == ModeMock:
			return errorResultWithText(fmt.Sprintf("No mock result configured for tool '%s'", call.Name)), nil
		}
		return next.Execute(ctx, call)
	})
}

// AbortedByPromptResult returns the result of a running call that another prompt aborted.
func AbortedByPromptResult() protocol.ToolResult {
	return protocol.ErrorResult("<error>Command was aborted before completion</error>")
}

// NotStartedResult returns the result of a call that did not start, because another prompt came first or because the host
// that decides about the call has disconnected.
func NotStartedResult() protocol.ToolResult {
	const text = "The user doesn't want to take this action right now. STOP what you are doing and wait for the user to tell you how to proceed."
	return protocol.ToolResult{Content: protocol.Content{Text: text}, IsError: true, Output: text, NonExecutionKind: "cancelled"}
}

// InterruptedWhileRunningResult returns the result of a call that was interrupted while it ran. It begins with the text of InterruptedResult,
// which claims that the call did not run, and then corrects this claim.
func InterruptedWhileRunningResult() (resultOfCallInterruptedWhileRunning protocol.ToolResult) {
	r := InterruptedResult()
	r.Content.Text += " Correction to the text above: this call was stopped while running, not refused before it ran. " +
		"What it had done by then stays done; look before doing it again. The instruction to stop and wait still stands."
	return r
}

// RejectedTextPrefix is the beginning of the result of a call that a person has refused.
const RejectedTextPrefix = "The user doesn't want to proceed with this tool use. " +
	"The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). "

// InterruptedResult returns the result of a call whose context was cancelled (spec: cli-contract 4.4).
func InterruptedResult() protocol.ToolResult {
	return protocol.ToolResult{
		Content: protocol.Content{Text: RejectedTextPrefix + "STOP what you are doing and wait for the user to tell you how to proceed."},
		IsError: true, Output: "User rejected tool use", NonExecutionKind: "user-rejected",
	}
}

package executor

import (
	"encoding/json"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Result is what became of one call: what is told of it, and what the layers
// around the tool want of the turn. The tool failing is IsError, not a Go error.
type Result struct {
	protocol.ToolResult
	Trace
}

// Trace is what the layers around a tool say beside its result. None of it leaves
// the process as it stands here.
type Trace struct {
	// Took is how long the tool itself ran, questions and hooks not counted.
	Took          time.Duration
	RanWith       json.RawMessage               // the input after hooks and the host had their say; nil = as given
	Breakpoints   []protocol.BreakpointDecision // where the call was stopped, in order of time
	Denied        *protocol.PermissionDenied    // event to show before the result; nil = none
	CountDenial   bool                          // add to result.permission_denials
	Context       []string                      // texts that hooks give the model beside the result
	Before, After []protocol.Event              // other events to show around the result
	Stop          *StopTurn                     // non-nil ends the turn after this result
}

// StopTurn tells why a layer ends the turn.
type StopTurn struct {
	TerminalReason string            // "hook_stopped", "aborted_tools", "completed", …
	StopReason     string            // empty = "tool_use"
	Interrupted    bool              // result is error_during_execution
	Deferred       *protocol.ToolUse // the call that was deferred (PreToolUse "defer")
	Err            error             // ends the run, in the place of a result; nil = the turn has one
}

// Plain is a result that no layer has added to.
func Plain(r protocol.ToolResult) Result { return Result{ToolResult: r} }

// failed is a tool error whose text is shown as it is.
func failed(text string) Result { return Plain(protocol.ErrorResult(text)) }

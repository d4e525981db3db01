package executor

import (
	"encoding/json"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Result is the result of one call together with requests of the middlewares to the
// turn. A tool's failure is IsError, not a Go error.
type Result struct {
	protocol.ToolResult
	Trace
}

// Trace is what the middlewares report about a call. It is internal and not encoded in this form.
type Trace struct {
	// Duration is how long the tool itself ran, without questions and hooks.
	Duration                  time.Duration
	ExecutedInput             json.RawMessage               // the input after changes by hooks and the host; nil means unchanged
	Breakpoints               []protocol.BreakpointDecision // decisions at breakpoints, in order of time
	Denied                    *protocol.PermissionDenied    // event to show before the result; nil means none
	CountDenial               bool                          // add to result.permission_denials
	Context                   []string                      // text from hooks for the model, in addition to the result
	EventsBefore, EventsAfter []protocol.Event              // other events to show around the result
	Stop                      *StopTurn                     // ends the turn after this result; nil means the turn continues
}

// StopTurn explains why a middleware ends the turn.
type StopTurn struct {
	TerminalReason string            // "hook_stopped", "aborted_tools", "completed", …
	StopReason     string            // empty means "tool_use"
	Interrupted    bool              // result is error_during_execution
	Deferred       *protocol.ToolUse // the call that was deferred (PreToolUse "defer")
	Err            error             // ends the run instead of a result; nil means the turn has a result
}

// ResultOf returns a result to which no middleware has added anything.
func ResultOf(r protocol.ToolResult) Result { return Result{ToolResult: r} }

// failedResult returns a tool error with this text.
func failedResult(text string) Result { return ResultOf(protocol.ErrorResult(text)) }

// Package executor runs tool calls on MCP servers or as built-in tools.
//
// A tool that fails returns a [Result] with IsError set. A Go error means that claudeless itself failed, except for
// [ErrUnknownTool], after which [Composite] tries the next executor.
package executor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// ErrUnknownTool means that an executor does not have the tool. Test for it with errors.Is.
var ErrUnknownTool = errors.New("unknown tool")

// Executor runs tool calls. Both methods may be called from many goroutines.
type Executor interface {
	// Tools returns the available tools in a stable order.
	Tools(ctx context.Context) ([]protocol.Tool, error)
	// Execute runs a call whose tool has its canonical name, such as "mcp__server__tool". If ctx is cancelled, Execute
	// returns an error result with the reason.
	Execute(ctx context.Context, call protocol.ToolUse) (Result, error)
}

// Middleware wraps an executor to add permissions, hooks, breakpoints or faults. It may answer a call, change the call
// or its result, or call next more than once.
type Middleware func(next Executor) Executor

// Chain wraps base with middlewares. The first one is the outermost.
func Chain(base Executor, layers ...Middleware) Executor {
	for i := len(layers) - 1; i >= 0; i-- {
		base = layers[i](base)
	}
	return base
}

// NewMiddleware creates a middleware from a function that replaces Execute. The list of tools is unchanged.
func NewMiddleware(f func(ctx context.Context, call protocol.ToolUse, next Executor) (Result, error)) Middleware {
	return func(next Executor) Executor { return &middlewareFuncExecutor{Executor: next, middlewareFunction: f} }
}

type middlewareFuncExecutor struct {
	Executor
	middlewareFunction func(context.Context, protocol.ToolUse, Executor) (Result, error)
}

func (l *middlewareFuncExecutor) Execute(ctx context.Context, call protocol.ToolUse) (Result, error) {
	return l.middlewareFunction(ctx, call, l.Executor)
}

// ErrSuperseded is the cause of a cancellation if another prompt comes first. A running command then continues to its end.
var ErrSuperseded = errors.New("a newer prompt replaced this one")

// SupersededError is [ErrSuperseded] with a channel that is closed when the process must end. A running command is then stopped.
type SupersededError struct{ ProcessEnds <-chan struct{} }

func (SupersededError) Error() string { return ErrSuperseded.Error() }

// Unwrap returns [ErrSuperseded].
func (SupersededError) Unwrap() error { return ErrSuperseded }

// IsProcessEnding reports whether a signal that ends the process has cancelled ctx. A turn then ends at once, without texts about
// an interrupt and without a result.
func IsProcessEnding(ctx context.Context) bool {
	_, ends := errors.AsType[interface {
		error
		EndsProcess()
	}](context.Cause(ctx))
	return ends
}

// The names of the tools of [MCPResources] and [ToolSearch].
const (
	listResourcesName   = "ListMcpResourcesTool"
	readResourceName    = "ReadMcpResourceTool"
	readResourceDirName = "ReadMcpResourceDirTool"
	toolSearchName      = "ToolSearch"
)

// UnknownToolResult returns the result of a call of a tool that the session lacks. names are the session's tools.
func UnknownToolResult(name string, names []string) protocol.ToolResult {
	text := "Error: No such tool available: " + name
	same := func(other string) bool { return strings.EqualFold(other, name) }
	switch i := slices.IndexFunc(names, same); {
	case i >= 0:
		text += ". Tool names are case-sensitive: call " + names[i] + " instead."
	case name == "Brief", name == "SendUserMessage":
		text += ". " + name + " is not enabled in this session — write your message as normal assistant text instead."
	case name == listResourcesName, name == readResourceName, name == readResourceDirName:
		return ToolNotOfferedResult(name)
	// Claude Code has these tools, but they are always disabled in the sessions that claudeless simulates.
	case slices.Contains([]string{"Artifact", "DesignSync", "LSP", "PushNotification", "RemoteTrigger"}, name):
		text += ". " + name + " is disabled for this session, in subagents as well as here."
	}
	return UnknownToolResultWithText(text)
}

// UnknownToolResultWithText returns the error result for a call of an unknown tool, with messageForModel as its text.
func UnknownToolResultWithText(messageForModel string) (unknownToolError protocol.ToolResult) {
	r := protocol.UsageErrorResult(messageForModel)
	r.UnknownTool = true
	return r
}

// ToolNotOfferedResult returns the result of a call of a tool that exists but is not available in this conversation. For
// example, an agent has only the tools of its definition.
func ToolNotOfferedResult(toolNotOfferedInConversation string) (unknownToolError protocol.ToolResult) {
	return UnknownToolResultWithText("Error: No such tool available: " + toolNotOfferedInConversation + ". " + toolNotOfferedInConversation +
		" is not among the tools available here. Continue with the tools you have.")
}

// Result is the result of one call, with the reports of middlewares. IsError is true if the tool failed.
type Result struct {
	protocol.ToolResult
	MiddlewareReport
}

// MiddlewareReport contains what the middlewares report about a call. It has no JSON form.
type MiddlewareReport struct {
	Duration                  time.Duration                   // the run time of the tool itself, without questions and hooks
	ExecutedInput             json.RawMessage                 // the input after changes by hooks and the host; nil means unchanged
	Breakpoints               []protocol.BreakpointDecision   // decisions at breakpoints, in order of time
	Denied                    *protocol.PermissionDeniedEvent // event to show before the result; nil means none
	CountDenial               bool                            // the call is added to result.permission_denials
	Context                   []string                        // texts from hooks that the model receives in addition to the result
	EventsBefore, EventsAfter []protocol.Event                // other events to show before and after the result
	Stop                      *StopTurn                       // ends the turn after this result; nil means the turn continues
}

// StopTurn tells the simulator to end the turn after a call, and why.
type StopTurn struct {
	TerminalReason string            // such as "hook_stopped", "aborted_tools" or "completed"
	StopReason     string            // empty means "tool_use"
	Interrupted    bool              // the result of the turn is error_during_execution
	Deferred       *protocol.ToolUse // the call that was deferred (PreToolUse "defer")
	Err            error             // error that ends the run, so that the turn has no result; nil means that the turn has one
}

// ResultOf returns r as a [Result] without reports of middlewares.
func ResultOf(r protocol.ToolResult) Result { return Result{ToolResult: r} }

func errorResultWithText(text string) Result { return ResultOf(protocol.ErrorResult(text)) }

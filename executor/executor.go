// Package executor runs tool calls: first on MCP servers, then as built-in tools.
//
// A tool that fails returns a [Result] with IsError set. A Go error means that claudeless itself failed, except for
// [ErrUnknownTool], which tells [Composite] to ask the next executor.
package executor

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// ErrUnknownTool means that an executor does not have the tool. [Composite] then
// tries the next one. Test it with errors.Is.
var ErrUnknownTool = errors.New("unknown tool")

// Executor runs tool calls. Both methods may be called from many goroutines.
type Executor interface {
	// Tools lists the available tools, in a stable order.
	Tools(ctx context.Context) ([]protocol.Tool, error)
	// Execute runs one call by its canonical name. When ctx ends, the call is cancelled and the result is an error
	// with the reason.
	Execute(ctx context.Context, call protocol.ToolUse) (Result, error)
}

// Middleware wraps an executor: permissions, hooks, breakpoints, faults. It may
// answer a call, change the call or the result, or call next more than once.
type Middleware func(next Executor) Executor

// Chain wraps base; the first middleware is the outermost.
func Chain(base Executor, layers ...Middleware) Executor {
	for i := len(layers) - 1; i >= 0; i-- {
		base = layers[i](base)
	}
	return base
}

// Func creates a middleware from a function around Execute. The list of tools is unchanged.
func Func(f func(ctx context.Context, call protocol.ToolUse, next Executor) (Result, error)) Middleware {
	return func(next Executor) Executor { return &middlewareExecutor{Executor: next, f: f} }
}

type middlewareExecutor struct {
	Executor
	f func(context.Context, protocol.ToolUse, Executor) (Result, error)
}

func (l *middlewareExecutor) Execute(ctx context.Context, call protocol.ToolUse) (Result, error) {
	return l.f(ctx, call, l.Executor)
}

// UnknownToolResult returns the result of a call of a tool that the session does not have;
// names are the tools that it has.
func UnknownToolResult(name string, names []string) protocol.ToolResult {
	text := "Error: No such tool available: " + name
	same := func(other string) bool { return strings.EqualFold(other, name) }
	switch i := slices.IndexFunc(names, same); {
	case i >= 0:
		text += ". Tool names are case-sensitive: call " + names[i] + " instead."
	case name == "Brief", name == "SendUserMessage":
		text += ". " + name + " is not enabled in this session — write your message as normal assistant text instead."
	case name == listResources, name == readResource, name == readResourceDir:
		return MissingToolResult(name)
	case slices.Contains([]string{"Artifact", "DesignSync", "LSP", "PushNotification", "RemoteTrigger"}, name): // real tools that these sessions never have
		text += ". " + name + " is disabled for this session, in subagents as well as here."
	}
	return UnavailableResult(text)
}

// UnavailableResult returns the error result for a call of a tool that does not exist.
func UnavailableResult(text string) protocol.ToolResult {
	r := protocol.UsageError(text)
	r.UnknownTool = true
	return r
}

// MissingToolResult returns the result of a call of a tool that exists, but not in this conversation: an agent has
// only the tools of its definition. For a name that no tool has it returns [UnknownToolResult].
func MissingToolResult(name string) protocol.ToolResult {
	return UnavailableResult("Error: No such tool available: " + name + ". " + name +
		" is not among the tools available here. Continue with the tools you have.")
}

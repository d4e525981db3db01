// Package tool defines a built-in tool: its description, the schema of its input, and the function that runs a call.
//
// Inputs are decoded and validated here, so a tool only sees valid input.
// Validation errors become results with the wording of the real CLI.
package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Tool is one built-in tool, bound to its state.
type Tool struct {
	Name, Description string
	ReadOnly          bool
	Input             Schema
	Run               Run
	// Check finds out, before permissions are asked, whether a valid call is impossible; nil means no check.
	Check Check
	// Prepare changes an input before it is shown and reports whether it did; nil means no change.
	Prepare func(*Keys) bool
	// RenameAliases renames alternative keys that models tend to use to the keys of the tool, and reports whether it
	// did; note is appended to a successful result. It runs before the input is validated, and the shown call is
	// unchanged. Nil means no aliases.
	RenameAliases func(*Keys) (note string, changed bool)
}

type (
	// Run runs a call with valid input.
	Run func(context.Context, protocol.ToolUse) Result
	// Check refuses an input; nil means accepted.
	Check func(context.Context, json.RawMessage) *protocol.ToolResult
	// Keys are the keys of an input, in order.
	Keys = plainjson.Object
)

// Clock provides the time and ids.
type Clock interface {
	Now() time.Time
	NewID() string
}

// Definition returns the tool as a session lists it.
func (t Tool) Definition() protocol.Tool {
	return protocol.Tool{
		Name: t.Name, Description: t.Description, InputSchema: t.Input.AppendJSON(nil), ReadOnly: t.ReadOnly,
	}
}

// Prepared returns an input after Prepare. An input that is not an object is unchanged.
func (t Tool) Prepared(input json.RawMessage) json.RawMessage {
	if t.Prepare == nil {
		return input
	}
	in, err := plainjson.Parse(input)
	if err != nil || !t.Prepare(&in) {
		return input
	}
	out, err := in.MarshalJSON()
	if err != nil {
		return input
	}
	return out
}

// WithAliases returns an input with the tool's own keys, and the note to append to a successful result.
func (t Tool) WithAliases(input json.RawMessage) (known json.RawMessage, note string) {
	if t.RenameAliases == nil {
		return input, ""
	}
	in, err := plainjson.Parse(input)
	if err != nil {
		return input, ""
	}
	note, changed := t.RenameAliases(&in)
	if !changed {
		return input, ""
	}
	out, err := in.MarshalJSON()
	if err != nil {
		return input, ""
	}
	return out, note
}

// RenameStringKey is like RenameKey, but only renames a key whose value is a non-empty string.
func RenameStringKey(in *Keys, from, to string) bool {
	if TextOf(in.Get(from)) == "" || !IsText(in.Get(from)) {
		return false
	}
	return RenameKey(in, from, to)
}

// DropKeys removes keys from an input and reports whether there were any.
func DropKeys(in *Keys, names ...string) bool {
	before := len(*in)
	*in = in.Without(names...)
	return len(*in) != before
}

// IsText reports whether a value is a string.
func IsText(raw json.RawMessage) bool { return plainjson.TypeOf(raw) == "string" }

// RenameKey renames a key, if it exists and the new name is unused, and reports whether it did.
func RenameKey(in *Keys, from, to string) bool {
	if in.Get(from) == nil || in.Get(to) != nil {
		return false
	}
	for i := range *in {
		if (*in)[i].Key == from {
			(*in)[i].Key = to
		}
	}
	return true
}

// TypedRun creates a Run function from a function of the tool's state and the decoded input.
func TypedRun[S, In any](state S, f func(context.Context, S, In) protocol.ToolResult) Run {
	return TypedWithEvents(state, func(ctx context.Context, state S, in In) Result { return ResultOf(f(ctx, state, in)) })
}

// TypedWithEvents is TypedRun for tools that return additional events.
func TypedWithEvents[S, In any](state S, f func(context.Context, S, In) Result) Run {
	return func(ctx context.Context, call protocol.ToolUse) Result {
		in, err := Decode[In](call.Input)
		if err != nil {
			return ResultOf(Refuse("InputValidationError: %s failed due to the following issue:\n%v", call.Name, err))
		}
		return f(ctx, state, in)
	}
}

// TypedWithCall is TypedRun for tools that need the call itself.
func TypedWithCall[S, In any](state S, f func(context.Context, S, protocol.ToolUse, In) protocol.ToolResult) Run {
	return func(ctx context.Context, call protocol.ToolUse) Result {
		return TypedRun(state, func(ctx context.Context, state S, in In) protocol.ToolResult { return f(ctx, state, call, in) })(ctx, call)
	}
}

// TypedCheck creates a Check function from a function of the tool's state and the decoded input. Input that cannot be
// decoded is accepted, because the validation reports it.
func TypedCheck[S, In any](state S, f func(context.Context, S, In) *protocol.ToolResult) Check {
	return func(ctx context.Context, raw json.RawMessage) *protocol.ToolResult {
		in, err := Decode[In](raw)
		if err != nil {
			return nil
		}
		return f(ctx, state, in)
	}
}

// Package tool defines what a built-in tool is: a description, the schema of its input, and the function that runs a
// call.
//
// It decodes and validates inputs, so a tool receives only valid input. Its error results have the wording of the real
// CLI.
package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Tool is one built-in tool with its state.
type Tool struct {
	Name, Description string
	ReadOnly          bool
	Input             Schema
	Run               Run
	// Check refuses a valid call that is not possible, before permissions are checked; nil means no check.
	Check Check
	// Prepare changes an input before the call is shown, and reports whether it did; nil means no change.
	Prepare func(*Keys) bool
	// RenameAliases renames aliases, which are keys that models often write instead of the tool's own keys. It reports
	// whether it changed the input, and returns a note that is appended to a successful result. It runs before
	// validation and does not change the call that is shown. Nil means no aliases.
	RenameAliases func(*Keys) (note string, changed bool)
}

type (
	// Run runs a call with valid input.
	Run func(context.Context, protocol.ToolUse) Result
	// Check returns the result for a refused input; nil means that the input is accepted.
	Check func(context.Context, json.RawMessage) *protocol.ToolResult
	// Keys are the keys of an input, in order.
	Keys = plainjson.Object
)

// Clock provides the time and ids.
type Clock interface {
	Now() time.Time
	NewID() string
}

// Definition returns the tool as it is listed in a session.
func (t Tool) Definition() protocol.Tool {
	return protocol.Tool{
		Name: t.Name, Description: t.Description, InputSchema: t.Input.AppendJSON(nil), ReadOnly: t.ReadOnly,
	}
}

// Prepared returns an input after t.Prepare. An input that is not an object is unchanged.
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

// WithAliases returns an input with the keys of the tool instead of aliases, and a note to append to a successful
// result.
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
	if TextOf(in.Get(from)) == "" || !IsString(in.Get(from)) {
		return false
	}
	return RenameKey(in, from, to)
}

// DropKeys removes keys from an input. It reports whether any existed.
func DropKeys(in *Keys, names ...string) bool {
	before := len(*in)
	*in = in.Without(names...)
	return len(*in) != before
}

// IsString reports whether a value is a string.
func IsString(raw json.RawMessage) bool { return plainjson.TypeOf(raw) == "string" }

// RenameKey renames a key if it exists and the new name is not used. It reports whether it renamed the key.
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

// TypedRun creates a [Run] from a function that takes the state of the tool and the decoded input.
func TypedRun[S, In any](state S, f func(context.Context, S, In) protocol.ToolResult) Run {
	return TypedRunWithEvents(state, func(ctx context.Context, state S, in In) Result { return ResultOf(f(ctx, state, in)) })
}

// TypedRunWithEvents is [TypedRun] for tools that return additional events.
func TypedRunWithEvents[S, In any](state S, f func(context.Context, S, In) Result) Run {
	return func(ctx context.Context, call protocol.ToolUse) Result {
		in, err := Decode[In](call.Input)
		if err != nil {
			return ResultOf(Refuse("InputValidationError: %s failed due to the following issue:\n%v", call.Name, err))
		}
		return f(ctx, state, in)
	}
}

// TypedRunWithCall is [TypedRun] for tools that need the call itself.
func TypedRunWithCall[S, In any](state S, f func(context.Context, S, protocol.ToolUse, In) protocol.ToolResult) Run {
	return func(ctx context.Context, call protocol.ToolUse) Result {
		return TypedRun(state, func(ctx context.Context, state S, in In) protocol.ToolResult { return f(ctx, state, call, in) })(ctx, call)
	}
}

// TypedCheck creates a [Check] from a function that takes the state of the tool and the decoded input. It accepts input
// that cannot be decoded, because the validation reports it.
func TypedCheck[S, In any](state S, f func(context.Context, S, In) *protocol.ToolResult) Check {
	return func(ctx context.Context, raw json.RawMessage) *protocol.ToolResult {
		in, err := Decode[In](raw)
		if err != nil {
			return nil
		}
		return f(ctx, state, in)
	}
}

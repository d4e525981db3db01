// Package tool defines a built-in tool: its description, the schema of its
// input, and the function that runs a call.
//
// Inputs are decoded and validated here, so a tool only sees valid input.
// Validation errors become results with the wording of the real CLI.
package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claudeless/claudeless/internal/base/ordered"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Tool is one built-in tool, bound to the state that it works on.
type Tool struct {
	Name, Description string
	ReadOnly          bool
	Input             Schema
	Run               Run
	// Check finds out before permissions are asked whether a well-formed call
	// is impossible; nil = never.
	Check Check
	// Prepare changes an input before anybody sees it and reports whether it
	// did; nil = never.
	Prepare func(*Keys) bool
	// Alias gives keys that models like to write otherwise the names that the
	// tool knows, and reports whether it did; note is said behind a good result.
	// It is done before the input is checked, and the frame of the call does not
	// show it. Nil = never.
	Alias func(*Keys) (note string, changed bool)
}

type (
	// Run runs a call whose input is valid.
	Run func(context.Context, protocol.ToolUse) Result
	// Check refuses an input; nil = it may go on.
	Check func(context.Context, json.RawMessage) *protocol.ToolResult
	// Keys are the keys of an input, in their order.
	Keys = ordered.Object
)

// Clock tells the time, and names what has no name.
type Clock interface {
	Now() time.Time
	NewID() string
}

// Definition is the tool as a session tells of it.
func (t Tool) Definition() protocol.Tool {
	return protocol.Tool{
		Name: t.Name, Description: t.Description, InputSchema: t.Input.AppendJSON(nil), ReadOnly: t.ReadOnly,
	}
}

// Prepared is an input as Prepare leaves it. One that is no object stays as it
// is.
func (t Tool) Prepared(input json.RawMessage) json.RawMessage {
	if t.Prepare == nil {
		return input
	}
	in, err := ordered.Parse(input)
	if err != nil || !t.Prepare(&in) {
		return input
	}
	out, err := in.MarshalJSON()
	if err != nil {
		return input
	}
	return out
}

// Known is an input with the names of keys that the tool knows, and what is said
// of it behind a good result.
func (t Tool) Known(input json.RawMessage) (known json.RawMessage, note string) {
	if t.Alias == nil {
		return input, ""
	}
	in, err := ordered.Parse(input)
	if err != nil {
		return input, ""
	}
	note, changed := t.Alias(&in)
	if !changed {
		return input, ""
	}
	out, err := in.MarshalJSON()
	if err != nil {
		return input, ""
	}
	return out, note
}

// Rename gives the key of a text that is not empty another name, where none
// has it yet.
func Rename(in *Keys, from, to string) bool {
	if TextOf(in.Get(from)) == "" || !IsText(in.Get(from)) {
		return false
	}
	return RenameAny(in, from, to)
}

// Drop takes keys out of an input, and tells whether there was any of them.
func Drop(in *Keys, names ...string) bool {
	before := len(*in)
	*in = in.Without(names...)
	return len(*in) != before
}

// IsText tells whether a value is a text.
func IsText(raw json.RawMessage) bool { return ordered.TypeOf(raw) == "string" }

// RenameAny is Rename for values of every kind.
func RenameAny(in *Keys, from, to string) bool {
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

// Typed makes the Run of a tool from a function of its state and the decoded
// input.
func Typed[S, In any](state S, f func(context.Context, S, In) protocol.ToolResult) Run {
	return Traced(state, func(ctx context.Context, state S, in In) Result { return Plain(f(ctx, state, in)) })
}

// Traced is Typed for tools that show more than their result.
func Traced[S, In any](state S, f func(context.Context, S, In) Result) Run {
	return func(ctx context.Context, call protocol.ToolUse) Result {
		in, err := Decode[In](call.Input)
		if err != nil {
			return Plain(Refuse("InputValidationError: %s failed due to the following issue:\n%v", call.Name, err))
		}
		return f(ctx, state, in)
	}
}

// Called is Typed for tools that have to know the call itself.
func Called[S, In any](state S, f func(context.Context, S, protocol.ToolUse, In) protocol.ToolResult) Run {
	return func(ctx context.Context, call protocol.ToolUse) Result {
		return Typed(state, func(ctx context.Context, state S, in In) protocol.ToolResult { return f(ctx, state, call, in) })(ctx, call)
	}
}

// Checked makes the Check of a tool from a function of its state and the
// decoded input. What cannot be decoded is for validation to tell.
func Checked[S, In any](state S, f func(context.Context, S, In) *protocol.ToolResult) Check {
	return func(ctx context.Context, raw json.RawMessage) *protocol.ToolResult {
		in, err := Decode[In](raw)
		if err != nil {
			return nil
		}
		return f(ctx, state, in)
	}
}

package debug

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Gate is what a caller asks around its calls. Both methods may take as long
// as a person does; they end with ctx.
type Gate interface {
	// Register makes tools known, with their schemas.
	Register(ctx context.Context, tools []protocol.Tool) error
	// Before tells of a call about to run and returns its id and what to do.
	Before(ctx context.Context, c Call) (callID string, d Decision, err error)
	// After tells how the call went and returns what to do with that.
	After(ctx context.Context, callID string, o Outcome) (Decision, error)
}

// MiddlewareOptions tell a gate about the calls of a run. The zero value works.
type MiddlewareOptions struct {
	Session func() string // the session's id; nil = unknown
	PID     int           // of this process
	Started float64       // of this process, Unix seconds
	// Site tells where a call comes from, as JSON; nil = unknown.
	Site func(call protocol.ToolUse) json.RawMessage
}

// Middleware stops calls at g's breakpoints. When the gate fails before a call
// the tool does not run and the result says so; when it fails afterwards the
// result is kept.
func Middleware(g Gate, o MiddlewareOptions) executor.Middleware {
	return executor.Func(func(ctx context.Context, use protocol.ToolUse, next executor.Executor) (protocol.ToolResult, error) {
		c := Call{Tool: use.Name, Input: use.Input, ToolUseID: use.ID, Client: ClientRun, PID: o.PID, Started: o.Started}
		if o.Session != nil {
			c.Session = o.Session()
		}
		if o.Site != nil {
			c.Site = o.Site(use)
		}
		id, d, err := g.Before(ctx, c)
		if err != nil {
			return gateFailed(ctx, err), nil
		}
		result, runErr := carryOut(ctx, use, d, next)
		o, err := outcome(result, runErr)
		if err != nil {
			return result, err
		}
		d, err = g.After(ctx, id, o)
		if err != nil || d.Action == ActionContinue {
			return result, runErr
		}
		return revise(result, d), nil
	})
}

func gateFailed(ctx context.Context, err error) protocol.ToolResult {
	if ctx.Err() != nil {
		return protocol.ErrorResult("The tool call was cancelled while it was paused")
	}
	return protocol.ErrorResult("debugger: " + err.Error())
}

// carryOut runs a call as it was decided.
func carryOut(ctx context.Context, use protocol.ToolUse, d Decision, next executor.Executor) (protocol.ToolResult, error) {
	switch d.Action {
	case ActionModify:
		use.Input = d.Input
	case ActionReplace:
		use.Name = d.Tool
	case ActionSkip:
		return protocol.ToolResult{Content: protocol.Content{Text: Text(d.Result)}}, nil
	case ActionRaise:
		return protocol.ErrorResult(d.Message), nil
	case ActionAbandon:
		return protocol.ErrorResult("debugger: the pause was abandoned"), nil
	default: // it runs as it is
	}
	result, err := next.Execute(ctx, use)
	if d.Action == ActionReplace && errors.Is(err, executor.ErrUnknownTool) {
		return protocol.ErrorResult(fmt.Sprintf("debugger: there is no tool %s to run instead", use.Name)), nil
	}
	return result, err
}

// outcome is a result as the hub takes it.
func outcome(r protocol.ToolResult, err error) (Outcome, error) {
	if err != nil {
		return Outcome{Failed: true, Error: err.Error()}, nil
	}
	raw, err := protocol.Marshal(content(r.Content))
	if err != nil {
		return Outcome{}, fmt.Errorf("encoding the result: %w", err)
	}
	o := Outcome{Failed: r.IsError, Result: raw}
	if r.IsError {
		o.Error = r.Content.Plain()
	}
	return o, nil
}

// content is a single text as a string, and anything else as it is.
func content(c protocol.Content) any {
	if len(c.Blocks) == 1 {
		if t, ok := c.Blocks[0].(protocol.TextBlock); ok {
			return t.Text
		}
	}
	return c
}

// revise changes a result as it was decided after the call.
func revise(r protocol.ToolResult, d Decision) protocol.ToolResult {
	switch d.Action {
	case ActionModify:
		r.Content, r.IsError, r.Output = NewContent(d.Result), false, nil
	case ActionRaise:
		r.Content, r.IsError, r.Output = protocol.Content{Text: d.Message}, true, nil
	default: // it stays as it is
	}
	return r
}

// Text is a made-up result as text: a string is itself, anything else its JSON.
func Text(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil && len(v) > 0 && v[0] == '"' {
		return s
	}
	if len(v) == 0 {
		return "null"
	}
	return string(v)
}

// NewContent is an edited result: a list of content blocks becomes those
// blocks, everything else is text as in Text.
func NewContent(v json.RawMessage) protocol.Content {
	var blocks []struct {
		Type string `json:"type"`
	}
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
	return protocol.Content{Text: Text(v)}
}

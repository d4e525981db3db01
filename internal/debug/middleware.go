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
	Run     Run     // nil = nothing is known of it
	PID     int     // of this process
	Started float64 // of this process, Unix seconds
}

// Run is the run whose calls are stopped.
type Run interface {
	ID() string // of its session
	// Site tells where a call comes from, as JSON; nil = unknown.
	Site(call protocol.ToolUse) json.RawMessage
	// Shape makes the result of a call from a text that was made up or is
	// another tool's, so that it has the structure the tool's own have.
	Shape(call protocol.ToolUse, text string) protocol.ToolResult
}

func (o MiddlewareOptions) shape(use protocol.ToolUse, text string) protocol.ToolResult {
	if o.Run == nil {
		return protocol.ToolResult{Content: protocol.Content{Text: text}}
	}
	return o.Run.Shape(use, text)
}

// Middleware stops calls at g's breakpoints. When the gate fails before a call
// the tool does not run and the result says so; when it fails afterwards the
// result is kept. What was decided is in the result's Breakpoints, around what
// the layers further in have put there.
func Middleware(g Gate, o MiddlewareOptions) executor.Middleware {
	return executor.Func(func(ctx context.Context, use protocol.ToolUse, next executor.Executor) (executor.Result, error) {
		c := Call{Tool: use.Name, Input: use.Input, ToolUseID: use.ID, Client: ClientRun, PID: o.PID, Started: o.Started}
		if o.Run != nil {
			c.Session, c.Site = o.Run.ID(), o.Run.Site(use)
		}
		id, d, err := g.Before(ctx, c)
		if err != nil {
			return gateFailed(ctx, err), nil
		}
		result, runErr := o.carryOut(ctx, use, d, next)
		result.Breakpoints = append(told(Before, d), result.Breakpoints...)
		out, err := outcome(result, runErr)
		if err != nil {
			return result, err
		}
		d, err = g.After(ctx, id, out)
		if err != nil {
			return result, runErr
		}
		result.Breakpoints = append(result.Breakpoints, told(After, d)...)
		if d.Action == ActionContinue {
			return result, runErr
		}
		return o.revise(use, result, d), nil
	})
}

// told is a decision for those who record; none when nobody decided anything.
func told(phase Phase, d Decision) []protocol.BreakpointDecision {
	if d.Pause == "" && d.Breakpoint == "" && d.Action == ActionContinue {
		return nil
	}
	b := protocol.BreakpointDecision{
		Phase: string(phase), Action: string(d.Action), Breakpoint: d.Breakpoint, Pause: d.Pause, Input: d.Input, Replacement: d.Tool,
	}
	if d.Action == ActionRaise {
		b.Action = "fail"
	}
	return []protocol.BreakpointDecision{b}
}

func gateFailed(ctx context.Context, err error) executor.Result {
	if ctx.Err() != nil {
		return failed("The tool call was cancelled while it was paused")
	}
	return failed("debugger: " + err.Error())
}

func failed(text string) executor.Result { return executor.Plain(protocol.ErrorResult(text)) }

// carryOut runs a call as it was decided.
func (o MiddlewareOptions) carryOut(ctx context.Context, use protocol.ToolUse, d Decision, next executor.Executor) (executor.Result, error) {
	asked := use
	switch d.Action {
	case ActionModify:
		use.Input = d.Input
	case ActionReplace:
		use.Name = d.Tool
	case ActionSkip:
		return executor.Plain(o.shape(use, Text(d.Result))), nil
	case ActionRaise:
		return failed(d.Message), nil
	case ActionAbandon:
		return failed("debugger: the pause was abandoned"), nil
	default: // it runs as it is
	}
	result, err := next.Execute(ctx, use)
	if d.Action == ActionReplace && errors.Is(err, executor.ErrUnknownTool) {
		return failed(fmt.Sprintf("debugger: unknown replacement tool %s", use.Name)), nil
	}
	if use.Name != asked.Name && err == nil && !result.IsError {
		result = o.reshape(asked, result)
	}
	return result, err
}

// reshape gives a result that is not the tool's own its structure.
func (o MiddlewareOptions) reshape(use protocol.ToolUse, r executor.Result) executor.Result {
	r.Output, r.ExplicitOK = nil, false
	if text, ok := plain(r.Content); ok {
		shaped := o.shape(use, text)
		r.Output, r.ExplicitOK = shaped.Output, shaped.ExplicitOK
	}
	return r
}

// outcome is a result as the hub takes it.
func outcome(r executor.Result, err error) (Outcome, error) {
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
	if text, ok := plain(c); ok {
		return text
	}
	return c
}

func plain(c protocol.Content) (text string, ok bool) {
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

// revise changes a result as it was decided after the call.
func (o MiddlewareOptions) revise(use protocol.ToolUse, r executor.Result, d Decision) executor.Result {
	switch d.Action {
	case ActionModify:
		r.Content, r.IsError = NewContent(d.Result), false
		r = o.reshape(use, r)
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

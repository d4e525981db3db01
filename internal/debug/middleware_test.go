package debug

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// fakeTools runs tools that echo their input.
type fakeTools struct{ ran []string }

func (f *fakeTools) Tools(context.Context) ([]protocol.Tool, error) { return nil, nil }

func (f *fakeTools) Execute(_ context.Context, use protocol.ToolUse) (executor.Result, error) {
	f.ran = append(f.ran, use.Name+string(use.Input))
	switch use.Name {
	case "fail":
		return executor.ResultOf(protocol.ErrorResult("it failed")), nil
	case "blocks":
		return executor.ResultOf(protocol.ToolResult{Content: protocol.Content{Blocks: []protocol.Block{protocol.Text("a"), protocol.Image("image/png", "eA==")}}}), nil
	case "echo", "loud":
		return executor.ResultOf(protocol.ToolResult{Content: protocol.Content{Blocks: []protocol.Block{protocol.Text(use.Name + string(use.Input))}}}), nil
	}
	return executor.Result{}, executor.ErrUnknownTool
}

// fakeGate decides as configured and records its calls.
type fakeGate struct {
	before, after       Decision
	beforeErr, afterErr error
	call                Call
	id                  string
	outcome             *CallOutcome
}

func (g *fakeGate) Register(context.Context, []protocol.Tool) error { return nil }

func (g *fakeGate) BeforeCall(_ context.Context, c Call) (string, Decision, error) {
	g.call = c
	return "c1", g.before, g.beforeErr
}

func (g *fakeGate) AfterCall(_ context.Context, id string, o CallOutcome) (Decision, error) {
	g.id, g.outcome = id, &o
	return g.after, g.afterErr
}

func TestMiddleware(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	goOn := Decision{Action: ActionContinue}
	tests := []struct {
		name    string
		tool    string
		gate    fakeGate
		ran     []string
		text    string // of the result, as JSON
		isError bool
		outcome *CallOutcome
	}{
		{"goes on", "echo", fakeGate{before: goOn, after: goOn}, []string{`echo{"x":1}`}, `[{"type":"text","text":"echo{\"x\":1}"}]`, false, &CallOutcome{Result: raw(`"echo{\"x\":1}"`)}},
		{"modified input reaches the tool", "echo", fakeGate{before: Decision{Action: ActionModify, Input: raw(`{"x":2}`)}, after: goOn}, []string{`echo{"x":2}`}, `[{"type":"text","text":"echo{\"x\":2}"}]`, false, &CallOutcome{Result: raw(`"echo{\"x\":2}"`)}}, // S44 S45
		{"skipped with text", "echo", fakeGate{before: Decision{Action: ActionSkip, Result: raw(`"made up"`)}, after: goOn}, nil, `"made up"`, false, &CallOutcome{Result: raw(`"made up"`)}},                                                                       // S42
		{"skipped with JSON", "echo", fakeGate{before: Decision{Action: ActionSkip, Result: raw(`{"a":1}`)}, after: goOn}, nil, `"{\"a\":1}"`, false, &CallOutcome{Result: raw(`"{\"a\":1}"`)}},
		{"skipped with nothing", "echo", fakeGate{before: Decision{Action: ActionSkip}, after: goOn}, nil, `"null"`, false, &CallOutcome{Result: raw(`"null"`)}},
		{"raised", "echo", fakeGate{before: Decision{Action: ActionRaise, Message: "no"}, after: goOn}, nil, `"no"`, true, &CallOutcome{Failed: true, Error: "no", Result: raw(`"no"`)}},                                                  // S43
		{"replaced", "echo", fakeGate{before: Decision{Action: ActionRunOtherTool, Tool: "loud"}, after: goOn}, []string{`loud{"x":1}`}, `[{"type":"text","text":"loud{\"x\":1}"}]`, false, &CallOutcome{Result: raw(`"loud{\"x\":1}"`)}}, // S46
		{"replaced by nothing", "echo", fakeGate{before: Decision{Action: ActionRunOtherTool, Tool: "gone"}, after: goOn}, []string{`gone{"x":1}`}, `"debugger: unknown replacement tool gone"`, true, &CallOutcome{Failed: true, Error: "debugger: unknown replacement tool gone", Result: raw(`"debugger: unknown replacement tool gone"`)}},
		{"failed tool, changed to a success", "fail", fakeGate{before: goOn, after: Decision{Action: ActionModify, Result: raw(`"fine"`)}}, []string{`fail{"x":1}`}, `"fine"`, false, &CallOutcome{Failed: true, Error: "it failed", Result: raw(`"it failed"`)}}, // B1
		{"success, changed to a failure", "echo", fakeGate{before: goOn, after: Decision{Action: ActionRaise, Message: "bad"}}, []string{`echo{"x":1}`}, `"bad"`, true, &CallOutcome{Result: raw(`"echo{\"x\":1}"`)}},
		{"blocks stay blocks", "blocks", fakeGate{before: goOn, after: Decision{Action: ActionModify, Result: raw(`[{"type":"text","text":"b"}]`)}}, []string{`blocks{"x":1}`}, `[{"type":"text","text":"b"}]`, false, &CallOutcome{Result: raw(`[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]`)}},
		{"debugger gone before", "echo", fakeGate{beforeErr: errors.New("cannot reach http://x")}, nil, `"debugger: cannot reach http://x"`, true, nil},
		{"debugger gone after", "echo", fakeGate{before: goOn, afterErr: errors.New("gone")}, []string{`echo{"x":1}`}, `[{"type":"text","text":"echo{\"x\":1}"}]`, false, &CallOutcome{Result: raw(`"echo{\"x\":1}"`)}},
	}
	for _, tt := range tests {
		fake := &fakeTools{}
		o := MiddlewareOptions{Run: fakeRun{}, PID: 4}
		chain := executor.Chain(fake, Middleware(&tt.gate, o))
		got, err := chain.Execute(t.Context(), protocol.ToolUse{ID: "tu", Name: tt.tool, Input: raw(`{"x":1}`)})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		text, err := protocol.Marshal(got.Content)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != tt.text || got.IsError != tt.isError {
			t.Errorf("%s: %s (error %v)", tt.name, text, got.IsError)
		}
		if diff := cmp.Diff(tt.ran, fake.ran); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.outcome, tt.gate.outcome); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		want := Call{Tool: tt.tool, Input: raw(`{"x":1}`), Session: "s1", ToolUseID: "tu", Client: ClientClaudelessRun, PID: 4, CallSite: raw(`{"line":1}`)}
		if diff := cmp.Diff(want, tt.gate.call); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// fakeRun creates results that are only a text.
type fakeRun struct{}

func (fakeRun) ID() string { return "s1" }

func (fakeRun) CallingAgentJSON(protocol.ToolUse) json.RawMessage {
	return json.RawMessage(`{"line":1}`)
}

func (fakeRun) ToolResultFromText(_ protocol.ToolUse, text string) protocol.ToolResult {
	return protocol.ToolResult{Content: protocol.Content{Text: text}}
}

// structuredTools creates results as the tool itself would.
type structuredTools struct{ fakeRun }

func (structuredTools) ToolResultFromText(use protocol.ToolUse, text string) protocol.ToolResult {
	return protocol.ToolResult{Content: protocol.Content{Text: text}, Output: use.Name + ": " + text, ShowsIsErrorFalse: true}
}

// A result that the tool did not create gets the structure of the tool's own results, unless it is an error or contains
// more than a text.
func TestShape(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	goOn := Decision{Action: ActionContinue}
	for _, tt := range []struct {
		name, tool string
		gate       fakeGate
		want       any
	}{
		{"its own", "echo", fakeGate{before: goOn, after: goOn}, nil},
		{"made up", "echo", fakeGate{before: Decision{Action: ActionSkip, Result: raw(`"x"`)}, after: goOn}, "echo: x"},
		{"another tool's", "echo", fakeGate{before: Decision{Action: ActionRunOtherTool, Tool: "loud"}, after: goOn}, `echo: loud{"x":1}`},
		{"another tool's blocks", "echo", fakeGate{before: Decision{Action: ActionRunOtherTool, Tool: "blocks"}, after: goOn}, nil},
		{"changed", "echo", fakeGate{before: goOn, after: Decision{Action: ActionModify, Result: raw(`"y"`)}}, "echo: y"},
		{"mended", "fail", fakeGate{before: goOn, after: Decision{Action: ActionModify, Result: raw(`"y"`)}}, "fail: y"},
		{"failed", "echo", fakeGate{before: goOn, after: Decision{Action: ActionRaise, Message: "no"}}, nil},
	} {
		chain := executor.Chain(&fakeTools{}, Middleware(&tt.gate, MiddlewareOptions{Run: structuredTools{}}))
		got, err := chain.Execute(t.Context(), protocol.ToolUse{Name: tt.tool, Input: raw(`{"x":1}`)})
		if err != nil || got.Output != tt.want || got.ShowsIsErrorFalse != (tt.want != nil) {
			t.Errorf("%s: %v (explicit %v), %v; want %v", tt.name, got.Output, got.ShowsIsErrorFalse, err, tt.want)
		}
	}
}

// Calls of unknown tools are not refused, so that another executor can handle them.
func TestMiddlewareUnknownTool(t *testing.T) {
	gate := &fakeGate{before: Decision{Action: ActionContinue}, after: Decision{Action: ActionContinue}}
	_, err := executor.Chain(&fakeTools{}, Middleware(gate, MiddlewareOptions{})).Execute(t.Context(), protocol.ToolUse{Name: "nosuch"})
	if !errors.Is(err, executor.ErrUnknownTool) || gate.outcome == nil || !gate.outcome.Failed {
		t.Errorf("%v, outcome %+v", err, gate.outcome)
	}
}

// Interrupting a run while it is paused leaves no pause.
func TestMiddlewareCancelled(t *testing.T) {
	h := newHub(t)
	setBreakpoint(t, h, BreakpointSettings{Name: "echo"})
	ctx, cancel := context.WithCancel(t.Context())
	sub := h.Subscribe(0)
	done := make(chan executor.Result)
	go func() {
		got, err := executor.Chain(&fakeTools{}, Middleware(h, MiddlewareOptions{})).Execute(ctx, protocol.ToolUse{Name: "echo"})
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	if e := <-sub.C; e.Kind != EventPaused {
		t.Errorf("%+v", e)
	}
	cancel()
	if got := <-done; !got.IsError {
		t.Errorf("%+v", got)
	}
	if e := <-sub.C; e.Action != string(ActionEndedWithoutDecision) || len(h.Pauses()) != 0 {
		t.Errorf("%+v, %d paused", e, len(h.Pauses()))
	}
}

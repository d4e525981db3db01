package debug

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// scriptTools answer with their name and input; "fail" fails.
type scriptTools struct{}

func (scriptTools) Tools(context.Context) ([]protocol.Tool, error) { return nil, nil }

func (scriptTools) Execute(_ context.Context, use protocol.ToolUse) (executor.Result, error) {
	if use.Name == "nosuch" {
		return executor.Result{}, executor.ErrUnknownTool
	}
	text := use.Name + string(use.Input)
	if use.Name == "fail" {
		return executor.ResultOf(protocol.ErrorResult(text)), nil
	}
	return executor.ResultOf(protocol.ToolResult{Content: protocol.Content{Text: text}}), nil
}

// newGate creates a gate from the breakpoints of a scenario file.
func newGate(t *testing.T, file string) *ScriptedGate {
	t.Helper()
	s, err := scenarios.Parse("s.toml", []byte(file), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewScriptedGate(ScriptedGateOptions{
		Breakpoints: s.Breakpoints, Now: time.Now,
		Resolve: func(_ context.Context, name string) string { return strings.TrimPrefix(name, "bare-") },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func TestGate(t *testing.T) {
	tests := []struct {
		name, file, tool string
		want             string // the result; "!" precedes an error
		decided          []protocol.BreakpointDecision
	}{
		{"none", ``, "a", `a{"x":1}`, nil},
		{"another tool", `tool = "b"
			action = "skip"
			result = "x"`, "a", `a{"x":1}`, nil},
		{"continue", `tool = "a"
			action = "continue"`, "a", `a{"x":1}`, []protocol.BreakpointDecision{{Phase: "before", Action: "continue", Breakpoint: "s.toml:1"}}},
		{"modify", `tool = "a"
			action = "modify"
			input = { y = "{{ input.x + 1 }}", big = 12345678901234567 }`, "a", `a{"y":2,"big":12345678901234567}`, []protocol.BreakpointDecision{
			{Phase: "before", Action: "modify", Breakpoint: "s.toml:1", Input: json.RawMessage(`{"y":2,"big":12345678901234567}`)},
		}},
		{"modify as a whole", `tool = "a"
			action = "modify"
			input = "{{ {\"all\": input} }}"`, "a", `a{"all":{"x":1}}`, []protocol.BreakpointDecision{
			{Phase: "before", Action: "modify", Breakpoint: "s.toml:1", Input: json.RawMessage(`{"all":{"x":1}}`)},
		}},
		{"modify after", `tool = "a"
			phase = "after"
			action = "modify"
			result = "{{ result }}, {{ phase }}"`, "a", `a{"x":1}, after`, []protocol.BreakpointDecision{{Phase: "after", Action: "modify", Breakpoint: "s.toml:1"}}},
		{"mend a failed call", `tool = "fail"
			phase = "after"
			when = "error != nil"
			action = "modify"
			result = [{ type = "text", text = "fine" }]`, "fail", `fine`, []protocol.BreakpointDecision{{Phase: "after", Action: "modify", Breakpoint: "s.toml:1"}}},
		{"skip", `tool = "a"
			action = "skip"
			result = { n = [1, "{{ input.x }}"] }`, "a", `{"n":[1,1]}`, []protocol.BreakpointDecision{{Phase: "before", Action: "skip", Breakpoint: "s.toml:1"}}},
		{"fail", `tool = "a"
			action = "fail"
			message = "no {{ tool }}"`, "a", `!no a`, []protocol.BreakpointDecision{{Phase: "before", Action: "fail", Breakpoint: "s.toml:1"}}},
		{"fail after", `tool = "a"
			phase = "after"
			action = "fail"
			message = "no"`, "a", `!no`, []protocol.BreakpointDecision{{Phase: "after", Action: "fail", Breakpoint: "s.toml:1"}}},
		{"replace", `tool = "a"
			action = "replace"
			replacement = "bare-b"`, "a", `b{"x":1}`, []protocol.BreakpointDecision{{Phase: "before", Action: "replace", Breakpoint: "s.toml:1", Replacement: "b"}}},
		{"replace by none", `tool = "a"
			action = "replace"
			replacement = "nosuch"`, "a", `!debugger: unknown replacement tool nosuch`, []protocol.BreakpointDecision{
			{Phase: "before", Action: "replace", Breakpoint: "s.toml:1", Replacement: "nosuch"},
		}},
		{"server/tool and a pattern", `tool = "my srv/e*"
			action = "skip"
			result = "hit"`, "mcp__my_srv__echo", `hit`, []protocol.BreakpointDecision{{Phase: "before", Action: "skip", Breakpoint: "s.toml:1"}}},
		{"bare name of an MCP tool", `tool = "echo"
			action = "skip"
			result = "hit"`, "mcp__my_srv__echo", `hit`, []protocol.BreakpointDecision{{Phase: "before", Action: "skip", Breakpoint: "s.toml:1"}}},
		{"an input that is no object", `tool = "a"
			action = "modify"
			input = "{{ input.x }}"`, "a", "!breakpoint at s.toml:1: invalid_arguments: the input of a tool must be a JSON object", []protocol.BreakpointDecision{
			{Phase: "before", Action: "fail", Breakpoint: "s.toml:1"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := ""
			if tt.file != "" {
				file = "[[breakpoints]]\n" + tt.file
			}
			chain := executor.Chain(scriptTools{}, Middleware(newGate(t, file), MiddlewareOptions{}))
			r, err := chain.Execute(t.Context(), protocol.ToolUse{Name: tt.tool, Input: json.RawMessage(`{"x":1}`)})
			got := r.Content.Plain()
			if r.IsError {
				got = "!" + got
			}
			if got != tt.want || err != nil {
				t.Errorf("result %s, %v, want %s", got, err, tt.want)
			}
			if diff := cmp.Diff(tt.decided, r.Breakpoints); diff != "" {
				t.Errorf("decided (-want +got):\n%s", diff)
			}
		})
	}
}

// The first matching breakpoint that has not reached its limit decides.
func TestOrder(t *testing.T) {
	g := newGate(t, `
[[breakpoints]]
tool = "a"
when = "input.x == 2"
action = "fail"
message = "two"
[[breakpoints]]
tool = "*"
max_hits = 2
action = "skip"
result = "skipped"
[[breakpoints]]
tool = "a"
action = "fail"
message = "the rest"
`)
	chain := executor.Chain(scriptTools{}, Middleware(g, MiddlewareOptions{}))
	var got []string
	for _, input := range []string{`{"x":1}`, `{"x":2}`, `{"x":1}`, `{"x":1}`, `{"x":2}`} {
		r, err := chain.Execute(t.Context(), protocol.ToolUse{Name: "a", Input: json.RawMessage(input)})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Content.Plain())
	}
	if diff := cmp.Diff([]string{"skipped", "two", "skipped", "the rest", "two"}, got); diff != "" {
		t.Error(diff)
	}
	if !g.HasRuleWithPauseLimit("anything") || newGate(t, "").HasRuleWithPauseLimit("a") {
		t.Error("which tools count")
	}
}

// Errors during the run are reported: a failing template fails the call; a failing condition counts as false and
// gives a warning.
func TestFaults(t *testing.T) {
	g := newGate(t, `
[[breakpoints]]
tool = "a"
when = "input.no.such == 1"
action = "fail"
message = "never"
[[breakpoints]]
tool = "a"
action = "skip"
result = "{{ input.no.such }}"
`)
	chain := executor.Chain(scriptTools{}, Middleware(g, MiddlewareOptions{}))
	r, err := chain.Execute(t.Context(), protocol.ToolUse{Name: "a", Input: json.RawMessage(`{"x":1}`)})
	if err != nil || !r.IsError || !strings.HasPrefix(r.Content.Plain(), `breakpoint at s.toml:7: result: template "{{ input.no.such }}": `) {
		t.Errorf("%+v, %v", r, err)
	}
	if w := g.FailedConditionWarnings(); len(w) != 1 || !strings.HasPrefix(w[0], "s.toml:2: the condition of the breakpoint could not be evaluated") {
		t.Errorf("%q", w)
	}
}

// A scenario that was created in Go; its breakpoints have no position in a file.
func TestCompiled(t *testing.T) {
	s := scenarios.Scenario{Breakpoints: []scenarios.Breakpoint{
		{Tool: "b", Action: scenarios.BreakContinue}, {Tool: "a", Action: scenarios.BreakSkip, Result: json.RawMessage(`"made up"`)},
	}}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	g, err := NewScriptedGate(ScriptedGateOptions{Breakpoints: s.Breakpoints, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	_, d, err := g.BeforeCall(t.Context(), Call{Tool: "a"})
	if err != nil || d.Action != ActionSkip || d.BreakpointName != "breakpoints[1]" {
		t.Errorf("%+v, %v", d, err)
	}
}

// BenchmarkScriptedCall measures a call through the gate with breakpoints whose conditions are false.
func BenchmarkScriptedCall(b *testing.B) {
	s := scenarios.Scenario{}
	for range 20 {
		s.Breakpoints = append(s.Breakpoints, scenarios.Breakpoint{Tool: "B*", When: `input.command == "no"`, Action: scenarios.BreakContinue})
	}
	if err := s.Compile(); err != nil {
		b.Fatal(err)
	}
	g, err := NewScriptedGate(ScriptedGateOptions{Breakpoints: s.Breakpoints, Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	chain := executor.Chain(scriptTools{}, Middleware(g, MiddlewareOptions{}))
	for b.Loop() {
		if _, err := chain.Execute(b.Context(), protocol.ToolUse{Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}); err != nil {
			b.Fatal(err)
		}
	}
}

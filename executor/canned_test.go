package executor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// fakeTools answers every call with "ran NAME" and counts the calls.
type fakeTools struct {
	calls int
	err   error
	tools []protocol.Tool
}

func (f *fakeTools) Tools(context.Context) ([]protocol.Tool, error) { return f.tools, f.err }

func (f *fakeTools) Execute(_ context.Context, call protocol.ToolUse) (executor.Result, error) {
	f.calls++
	return executor.ResultOf(text("ran " + call.Name)), f.err
}

func text(s string) protocol.ToolResult {
	return protocol.ToolResult{Content: protocol.Content{Text: s}}
}

// TestCanned checks the results and errors that a scenario defines for calls and tools. In mode
// "mock", no server gets a call (spec: scenario-format 1; also scenario-compat 1.6 and Q5, surfaces).
func TestCanned(t *testing.T) {
	tools := map[string]executor.CannedToolSettings{
		"mcp__s__t": {Result: new("of the tool")},
		"Bash":      {Error: new("not here")},
		"Write":     {Error: new("not here"), AutoApprove: true},
		"Both":      {Error: new("no"), Result: new("yes")},
	}
	own := &protocol.CallScript{Result: new("of the call")}
	tests := []struct {
		name   string
		mode   executor.UncannedCallPolicy
		call   protocol.ToolUse
		want   protocol.ToolResult
		calls  int
		answer bool
	}{
		{name: "own result", call: protocol.ToolUse{Name: "mcp__s__t", Script: own}, want: text("of the call"), answer: true},
		{name: "tool result", call: protocol.ToolUse{Name: "mcp__s__t"}, want: text("of the tool"), answer: true},
		{name: "live", call: protocol.ToolUse{Name: "Read"}, want: text("ran Read"), calls: 1},
		{name: "the raw tool name does not select a result", call: protocol.ToolUse{Name: "t"}, want: text("ran t"), calls: 1},
		{name: "error", call: protocol.ToolUse{Name: "Bash"}, want: protocol.ErrorResult("Permission denied: not here"), answer: true},
		{name: "error wins over result", call: protocol.ToolUse{Name: "Both", Script: own}, want: protocol.ErrorResult("Permission denied: no"), answer: true},
		{name: "auto_approve lifts error", call: protocol.ToolUse{Name: "Write"}, want: text("ran Write"), calls: 1},
		{name: "mock", mode: executor.ModeMock, call: protocol.ToolUse{Name: "Read"}, want: protocol.ErrorResult("No mock result configured for tool 'Read'"), answer: true},
		{name: "mock with result", mode: executor.ModeMock, call: protocol.ToolUse{Name: "mcp__s__t"}, want: text("of the tool"), answer: true},
		{
			name: "canned error", call: protocol.ToolUse{Name: "X", Script: &protocol.CallScript{Result: new("boom"), IsError: true}},
			want: protocol.ErrorResult("boom"), answer: true,
		},
		{name: "is_error alone", call: protocol.ToolUse{Name: "X", Script: &protocol.CallScript{IsError: true}}, want: text("ran X"), calls: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := &fakeTools{}
			o := executor.CannedOptions{Mode: tt.mode, Tools: tools}
			got, err := executor.Canned(o)(base).Execute(t.Context(), tt.call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.ToolResult); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if base.calls != tt.calls {
				t.Errorf("real calls = %d, want %d", base.calls, tt.calls)
			}
			if o.HasResult(tt.call) != tt.answer {
				t.Errorf("Answers = %v, want %v", !tt.answer, tt.answer)
			}
		})
	}
}

func TestCannedShape(t *testing.T) {
	shape := func(call protocol.ToolUse, s string) protocol.ToolResult {
		return protocol.ToolResult{Content: protocol.Content{Text: s}, Output: call.Name}
	}
	call := protocol.ToolUse{Name: "Bash", Script: &protocol.CallScript{Result: new("x")}}
	got, _ := executor.Canned(executor.CannedOptions{Shape: shape})(&fakeTools{}).Execute(t.Context(), call)
	if got.Output != "Bash" {
		t.Errorf("Output = %v, want the shaped one", got.Output)
	}
}

func TestCannedDelay(t *testing.T) {
	call := protocol.ToolUse{Name: "Read", Script: &protocol.CallScript{DelayMS: 1500}}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		base := &fakeTools{}
		if _, err := executor.Canned(executor.CannedOptions{})(base).Execute(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 1500*time.Millisecond || base.calls != 1 {
			t.Errorf("ran %d calls after %v, want 1 after 1.5s", base.calls, d)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		base := &fakeTools{}
		got, err := executor.Canned(executor.CannedOptions{})(base).Execute(ctx, call)
		if err != nil || base.calls != 0 {
			t.Fatalf("err %v, %d calls; want an interrupted result and none", err, base.calls)
		}
		if diff := cmp.Diff(executor.InterruptedResult(), got.ToolResult); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
	})
}

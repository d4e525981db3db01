package simulator_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// refusingTools denies the first call of Write and requests an interrupt.
type refusingTools struct{ fakeTools }

func (r refusingTools) Execute(ctx context.Context, call protocol.ToolUse) (executor.Result, error) {
	if call.Name != "Write" {
		return r.fakeTools.Execute(ctx, call)
	}
	result := executor.ResultOf(executor.InterruptedResult())
	result.CountDenial = true
	result.Stop = &executor.StopTurn{TerminalReason: "aborted_tools", Interrupted: true}
	return result, nil
}

// A denial with an interrupt also cancels the calls that have not started: each has its own result, and only the
// denied one counts as a denial.
func TestRefusedForGood(t *testing.T) {
	model := &fakeModel{replies: []scenarios.Reply{callReply(`Read {}`, `Write {"n":1}`, `Write {"n":2}`, `Read {}`)}}
	s := newSimulator(t, simulator.Options{Model: model, Tools: simulator.NonInspectingExecutor(refusingTools{})})
	got, result := playTurn(t.Context(), t, s, "hi")
	rejected := `user tool_result "` + executor.InterruptedResult().Content.Plain() + `" error=true`
	want := []string{
		`user tool_result "Read ran" error=false`, rejected, rejected, rejected,
		`user text "[Request interrupted by user for tool use]"`, "result error_during_execution error=true turns=6 aborted_tools",
	}
	if diff := cmp.Diff(want, got[len(got)-len(want):]); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if len(result.PermissionDenials) != 1 || string(result.PermissionDenials[0].ToolInput) != `{"n":1}` {
		t.Errorf("denials %+v, want that of the call that was refused", result.PermissionDenials)
	}
}

// denyingTools denies a call, which takes no time.
type denyingTools struct{ fakeTools }

func (d denyingTools) Execute(ctx context.Context, call protocol.ToolUse) (executor.Result, error) {
	r, err := d.fakeTools.Execute(ctx, call)
	if string(call.Input) == `{"no":1}` {
		r.Denied = &protocol.PermissionDeniedEvent{ToolName: call.Name}
	}
	return r, err
}

// Of calls that end immediately, the denied ones come first.
func TestDeniedFirst(t *testing.T) {
	model := &fakeModel{replies: []scenarios.Reply{callReply(`Read {}`, `Read {"no":1}`, `Read {}`), text("after")}}
	s := newSimulator(t, simulator.Options{Model: model, Tools: simulator.NonInspectingExecutor(denyingTools{}), Display: simulator.DisplayOptions{OrderedResults: true}})
	var got []string
	for ev := range s.RunTurn(t.Context(), protocol.UserMessage{Content: protocol.Content{Text: "hi"}}) {
		switch ev := ev.(type) {
		case *protocol.PermissionDeniedEvent:
			got = append(got, "denied")
		case *protocol.UserEvent:
			got = append(got, ev.ToolUseResult.(protocol.Content).Plain())
		}
	}
	if diff := cmp.Diff([]string{"denied", "Read ran", "Read ran", "Read ran"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

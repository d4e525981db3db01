package debug

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each rule stops one phase. Rules apply in the order of creation, before named breakpoints and independently of the
// behaviours.
func TestRules(t *testing.T) {
	h := newHub(t)
	if err := h.Register(t.Context(), tools("mcp__t__echo")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.BreakpointSet.SetDefaultBreakpointBehavior("go"); err != nil {
		t.Fatal(err)
	}
	setBreakpoint(t, h, BreakpointSettings{Name: "Bash", Before: new("stop"), After: new("stop")})
	for _, r := range []PauseRule{
		{Name: "never", Tools: []string{"*"}, Phase: PhaseBefore, MaxPauses: 0},
		{Name: "broken", Tools: []string{"*"}, Phase: PhaseBefore, When: "input.a.b == 1", MaxPauses: -1},
		{Name: "once", Tools: []string{"Bash"}, Phase: PhaseBefore, When: `input.x > 1`, MaxPauses: 1},
		{Name: "all", Tools: []string{"Bash", "t/*"}, Phase: PhaseBefore, MaxPauses: -1},
		{Name: "failed", Tools: []string{"B*"}, Phase: PhaseAfterCall, When: "error != nil", MaxPauses: -1},
	} {
		if err := h.BreakpointSet.AddRule(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ tool, input, want string }{
		{"Bash", `{"x":1}`, "all"},
		{"Bash", `{"x":2}`, "once"},
		{"Bash", `{"x":3}`, "all"},
		{"mcp__t__echo", `{}`, "all"},
		{"Read", `{}`, ""},
	} {
		got := ""
		if id := startCall(t, h, tt.tool, tt.input).PauseID; id != "" {
			p, err := h.PauseByID(id)
			if err != nil {
				t.Fatal(err)
			}
			names, err := h.Variables(id)
			if err != nil || names["tool"] != tt.tool || names["phase"] != "before" {
				t.Errorf("%v, %v", names, err)
			}
			got = p.CallData.Breakpoint
			h.AbandonPause(id)
			if _, err := h.Variables(id); code(err) != CodePauseResumed {
				t.Errorf("names after the pause: %v", err)
			}
		}
		if got != tt.want {
			t.Errorf("%s%s stopped at %q, want %q", tt.tool, tt.input, got, tt.want)
		}
	}
	for failed, want := range map[bool]string{true: "failed", false: "Bash"} {
		b := startCall(t, h, "Bash", `{"x":1}`)
		if err := h.Resume(t.Context(), b.PauseID, ResumeRequest{}); err != nil {
			t.Fatal(err)
		}
		id, err := h.RecordCallOutcomeAndPauseIfStopped(t.Context(), CompletionReport{CallID: b.CallID, CallOutcome: CallOutcome{Failed: failed, Error: "e"}})
		if err != nil {
			t.Fatal(err)
		}
		if p, err := h.PauseByID(id); err != nil || p.CallData.Breakpoint != want || p.CallData.Phase != PhaseAfterCall {
			t.Errorf("failed %v: %+v, %v", failed, p.CallData, err)
		}
	}
	left := map[string]int{}
	for _, r := range h.BreakpointSet.PauseRules() {
		left[r.Name] = r.MaxPauses
		if (r.ConditionError != "") != (r.Name == "broken") {
			t.Errorf("%s: condition error %q", r.Name, r.ConditionError)
		}
	}
	if diff := cmp.Diff(map[string]int{"never": 0, "broken": -1, "once": 0, "all": -1, "failed": -1}, left); diff != "" {
		t.Error(diff)
	}
	if !h.BreakpointSet.HasRuleWithPauseLimit("Bash") || !h.BreakpointSet.HasRuleWithPauseLimit("Read") { // because of the rule "never"
		t.Error("which tools count")
	}
	for _, r := range []PauseRule{{Tools: []string{"["}}, {Tools: []string{"a"}, When: "nosuch"}} {
		if err := h.BreakpointSet.AddRule(r); err == nil {
			t.Errorf("%+v was taken", r)
		}
	}
}

// Of many concurrent calls, a rule stops exactly MaxPauses.
func TestRuleHitsAtOnce(t *testing.T) {
	h := newHub(t)
	if err := h.BreakpointSet.AddRule(PauseRule{Name: "ten", Tools: []string{"Bash"}, Phase: PhaseBefore, When: `input.text startsWith "x"`, MaxPauses: 10}); err != nil {
		t.Fatal(err)
	}
	input := json.RawMessage(`{"text":"` + strings.Repeat("x", 100) + `"}`)
	var stopped atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			b, err := h.ReportCallStart(t.Context(), Call{Tool: "Bash", Input: input, Client: ClientClaudelessRun})
			if err != nil {
				t.Error(err)
			}
			if b.PauseID != "" {
				stopped.Add(1)
			}
		})
	}
	wg.Wait()
	if n := stopped.Load(); n != 10 {
		t.Errorf("%d calls were stopped", n)
	}
}

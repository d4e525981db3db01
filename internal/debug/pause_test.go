package debug

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPaused(t *testing.T) {
	h := newHub(t)
	if got := h.Pauses(); got == nil || len(got) != 0 { // S38
		t.Errorf("paused: %#v", got)
	}
	if err := h.Register(t.Context(), tools("mcp__t__echo")); err != nil {
		t.Fatal(err)
	}
	setBreakpoint(t, h, BreakpointSettings{Name: "mcp__t__echo"})
	begun, err := h.ReportCallStart(t.Context(), Call{
		Tool: "mcp__t__echo", Input: json.RawMessage(`{"text":"hi"}`), Client: ClientClaudelessRun, Session: "s1", ToolUseID: "tu",
		CallSite: json.RawMessage(`{"scenario":"a.toml","line":3}`), PID: 7, Started: 1.5,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.StartREPLSession(begun.PauseID); err != nil {
		t.Fatal(err)
	}
	got := h.Pauses()[0] // S39 S40
	if got.ID != begun.PauseID || got.PausedAt == 0 || len(got.Sessions) != 1 || !strings.HasPrefix(got.Sessions[0], "7-") {
		t.Errorf("pause %+v", got)
	}
	d := got.CallData
	if d.MethodName != "mcp__t__echo" || d.Reason != "breakpoint" || d.Phase != PhaseBefore || d.ProcessKey != "1.500000+7" ||
		string(d.Input()) != `{"text":"hi"}` || string(d.CallSite) != `{"scenario":"a.toml","line":3}` ||
		d.Signature != `{"properties":{"text":{"type":"string"}},"type":"object"}` || d.Values.(ClaudelessCallInput).ContentID == "" {
		t.Errorf("call data %+v", d)
	}
}

func TestResume(t *testing.T) {
	tests := []struct {
		name string
		r    ResumeRequest
		want Decision
		code string
	}{
		{"default", ResumeRequest{}, Decision{Action: ActionContinue}, ""}, // S41
		{"continue", ResumeRequest{Action: "continue"}, Decision{Action: ActionContinue}, ""},
		{"skip", ResumeRequest{Action: "skip", FakeResult: json.RawMessage(`"fake"`)}, Decision{Action: ActionSkip, Result: json.RawMessage(`"fake"`)}, ""}, // S42
		{
			"raise", ResumeRequest{Action: "raise", ExceptionType: "ValueError", ExceptionMessage: "no"}, // S43
			Decision{Action: ActionRaise, Type: "ValueError", Message: "no"}, "",
		},
		{"one argument", ResumeRequest{Action: "modify", ModifiedArgs: &[]json.RawMessage{json.RawMessage(`{"a":1}`)}}, Decision{Action: ActionModify, Input: json.RawMessage(`{"a":1}`)}, ""}, // S44
		{"by field", ResumeRequest{ModifiedKwargs: &map[string]json.RawMessage{"a": json.RawMessage("2")}}, Decision{Action: ActionModify, Input: json.RawMessage(`{"a":2}`)}, ""},             // S45, B2
		{"expression", ResumeRequest{ModifiedInputExpr: `{"text": input.text + "!"}`}, Decision{Action: ActionModify, Input: json.RawMessage(`{"text":"hi!"}`)}, ""},
		{"replace", ResumeRequest{ReplacementFunction: "t/loud"}, Decision{Action: ActionRunOtherTool, Tool: "mcp__t__loud"}, ""},                                // S46
		{"replacement wins", ResumeRequest{Action: "skip", ReplacementFunction: "mcp__t__loud"}, Decision{Action: ActionRunOtherTool, Tool: "mcp__t__loud"}, ""}, // S47
		{"unknown action", ResumeRequest{Action: "explode"}, Decision{}, CodeInvalidAction},                                                                      // B7
		{"abandon is the hub's", ResumeRequest{Action: "abandoned"}, Decision{}, CodeInvalidAction},
		{"modify without values", ResumeRequest{Action: "modify"}, Decision{}, CodeInvalidArguments},
		{"two arguments", ResumeRequest{ModifiedArgs: &[]json.RawMessage{json.RawMessage("1"), json.RawMessage("2")}}, Decision{}, CodeInvalidArguments},
		{"input that is no object", ResumeRequest{ModifiedArgs: &[]json.RawMessage{json.RawMessage("1")}}, Decision{}, CodeInvalidArguments},
		{"bad expression", ResumeRequest{ModifiedInputExpr: "nosuch"}, Decision{}, CodeInvalidCondition},
		{"replace without a tool", ResumeRequest{Action: "replace"}, Decision{}, CodeMissingParameter},
	}
	for _, tt := range tests {
		h := newHub(t)
		setBreakpoint(t, h, BreakpointSettings{Name: "mcp__t__echo"})
		id := startCall(t, h, "mcp__t__echo", `{"text":"hi"}`).PauseID
		err := h.Resume(t.Context(), id, tt.r)
		if code(err) != tt.code {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.code)
			continue
		}
		if tt.code != "" { // refused: still paused
			if len(h.Pauses()) != 1 {
				t.Errorf("%s: a refused decision ended the pause", tt.name)
			}
			continue
		}
		d, decided, err := h.Wait(t.Context(), id)
		if err != nil || !decided {
			t.Errorf("%s: decided %v, %v", tt.name, decided, err)
		}
		if d.Encoded == nil || (d.InputCID == "") != (d.Input == nil) {
			t.Errorf("%s: written as %s, input %q", tt.name, d.Encoded, d.InputCID)
		}
		d.Encoded, d.InputCID = nil, ""
		if diff := cmp.Diff(tt.want, d); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// The record of a call contains the input that the tool received, by value and by CID.
func TestModifiedInputIsRecorded(t *testing.T) {
	h := newHub(t)
	setBreakpoint(t, h, BreakpointSettings{Name: "Bash", After: new("go")})
	b := startCall(t, h, "Bash", `{"command":"ls"}`)
	if err := h.Resume(t.Context(), b.PauseID, ResumeRequest{ModifiedArgs: &[]json.RawMessage{json.RawMessage(`{ "command": "pwd" }`)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.RecordCallOutcomeAndPauseIfStopped(t.Context(), CompletionReport{CallID: b.CallID}); err != nil {
		t.Fatal(err)
	}
	calls, err := h.Records.Calls("", nil)
	if err != nil || len(calls.Calls) != 1 {
		t.Fatalf("%+v, %v", calls, err)
	}
	rec := calls.Calls[0]
	if data, err := h.StoredValueByContentID(rec.Values.(ClaudelessCallInput).ContentID); err != nil || string(data) != `{"command":"pwd"}` || string(rec.Input()) != `{ "command": "pwd" }` {
		t.Errorf("input %s, by CID %s, %v", rec.Input(), data, err)
	}
}

// An agent whose hook refused a call receives only the reason. There is no second pause, because it could block the
// hook until the agent stops waiting and runs the tool anyway.
func TestDeniedByHook(t *testing.T) {
	for _, tt := range []struct {
		client CallerKind
		action string
		again  bool
	}{{ClientAgentHook, "skip", false}, {ClientAgentHook, "raise", false}, {ClientAgentHook, "continue", true}, {ClientClaudelessRun, "skip", true}} {
		h := newHub(t)
		setBreakpoint(t, h, BreakpointSettings{Name: "Bash", After: new("stop_exception")})
		b, err := h.ReportCallStart(t.Context(), Call{Tool: "Bash", Client: tt.client})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Resume(t.Context(), b.PauseID, ResumeRequest{Action: tt.action}); err != nil {
			t.Fatal(err)
		}
		id, err := h.RecordCallOutcomeAndPauseIfStopped(t.Context(), CompletionReport{CallID: b.CallID, CallOutcome: CallOutcome{Failed: tt.action == "raise", Error: "no"}})
		if err != nil || (id != "") != tt.again {
			t.Errorf("%s %s: pause %q, %v", tt.client, tt.action, id, err)
		}
	}
}

func TestResumeTwice(t *testing.T) {
	h := newHub(t)
	setBreakpoint(t, h, BreakpointSettings{Name: "Bash"})
	if err := h.Resume(t.Context(), "never", ResumeRequest{}); code(err) != CodePauseNotFound { // S48
		t.Errorf("unknown pause: %v", err)
	}
	id := startCall(t, h, "Bash", `{}`).PauseID
	if err := h.Resume(t.Context(), id, ResumeRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := h.Resume(t.Context(), id, ResumeRequest{Action: "skip"}); code(err) != CodePauseResumed { // S49
		t.Errorf("second decision: %v", err)
	}
	if d, _, err := h.Wait(t.Context(), id); err != nil || d.Action != ActionContinue {
		t.Errorf("decision %+v, %v", d, err)
	}
}

// B1, B11: a pause after the call accepts the decisions that are still possible then.
func TestAfter(t *testing.T) {
	h := newHub(t)
	setBreakpoint(t, h, BreakpointSettings{Name: "Bash", Before: new("go"), After: new("stop_exception")})
	complete := func(o CallOutcome) string {
		b := startCall(t, h, "Bash", `{}`)
		id, err := h.RecordCallOutcomeAndPauseIfStopped(t.Context(), CompletionReport{CallID: b.CallID, CallOutcome: o})
		if err != nil || id == "" {
			t.Fatalf("pause %q, %v", id, err)
		}
		return id
	}
	id := complete(CallOutcome{Result: json.RawMessage(`"out"`)})
	p, err := h.PauseByID(id)
	if err != nil || p.CallData.Phase != PhaseAfterCall || string(p.CallData.PrettyResult) != `"out"` || p.CallData.Reason != "breakpoint" {
		t.Errorf("%+v, %v", p.CallData, err)
	}
	for _, r := range []ResumeRequest{{Action: "skip"}, {ReplacementFunction: "x"}} {
		if err := h.Resume(t.Context(), id, r); code(err) != CodeUnsupportedAction {
			t.Errorf("%+v after the call: %v", r, err)
		}
	}
	if err := h.Resume(t.Context(), id, ResumeRequest{ModifiedResult: json.RawMessage(`"new"`)}); err != nil {
		t.Fatal(err)
	}
	if d, _, _ := h.Wait(t.Context(), id); d.Action != ActionModify || string(d.Result) != `"new"` {
		t.Errorf("decision %+v", d)
	}
	if got, err := h.Records.Calls("", nil); err != nil || got.Calls[0].AfterAction != ActionModify || string(got.Calls[0].PrettyResult) != `"out"` {
		t.Errorf("%+v, %v", got, err)
	}
	id = complete(CallOutcome{Failed: true, Result: json.RawMessage(`"boom"`), Error: "boom"})
	p, err = h.PauseByID(id)
	if err != nil || p.CallData.Reason != "exception" || string(p.CallData.Exception) != `"boom"` {
		t.Errorf("%+v, %v", p.CallData, err)
	}
	if err := h.Resume(t.Context(), id, ResumeRequest{Action: "raise", ExceptionMessage: "worse"}); err != nil {
		t.Error(err)
	}
}

// B12: a pause ends soon after its caller has ended, and after its timeout.
func TestPauseEnds(t *testing.T) {
	tests := []struct {
		name   string
		o      func(*Options)
		client CallerKind
		want   PauseDecisionAction
		after  time.Duration
	}{
		{"caller gone", func(*Options) {}, ClientClaudelessRun, ActionEndedWithoutDecision, 8 * time.Second},
		{"own lease", func(o *Options) { o.Lease = time.Second }, ClientAgentHook, ActionEndedWithoutDecision, time.Second},
		{"continue", func(o *Options) { o.PauseTimeout, o.OnTimeout = 2*time.Second, PolicyContinue }, ClientClaudelessRun, ActionContinue, 2 * time.Second},
		{"fail", func(o *Options) { o.PauseTimeout, o.OnTimeout = 3*time.Second, PolicyFail }, ClientClaudelessRun, ActionRaise, 3 * time.Second},
		{"wait", func(o *Options) { o.PauseTimeout = time.Second }, ClientClaudelessRun, ActionEndedWithoutDecision, 8 * time.Second},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			h := newHub(t, tt.o)
			setBreakpoint(t, h, BreakpointSettings{Name: "Bash"})
			b, err := h.ReportCallStart(t.Context(), Call{Tool: "Bash", Client: tt.client})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			sub := h.Subscribe(0)
			e := <-sub.C
			if took := time.Since(began); PauseDecisionAction(e.Action) != tt.want || took != tt.after {
				t.Errorf("%s: %s after %s, want %s after %s", tt.name, e.Action, took, tt.want, tt.after)
			}
			if len(h.Pauses()) != 0 {
				t.Errorf("%s: still paused", tt.name)
			}
			d, decided, err := h.Wait(t.Context(), b.PauseID)
			if err != nil || !decided || d.Action != tt.want {
				t.Errorf("%s: %+v, %v", tt.name, d, err)
			}
		})
	}
}

// The lease of a pause does not run during a poll; each poll starts it again.
func TestLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t)
		setBreakpoint(t, h, BreakpointSettings{Name: "Bash"})
		id := startCall(t, h, "Bash", `{}`).PauseID
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
			if _, decided, err := h.Wait(ctx, id); decided || err != nil {
				t.Fatalf("decided %v, %v", decided, err)
			}
			cancel()
		}
		began := time.Now()
		sub := h.Subscribe(0)
		if e := <-sub.C; e.Action != string(ActionEndedWithoutDecision) || time.Since(began) != 8*time.Second {
			t.Errorf("%+v after %s", e, time.Since(began))
		}
	})
}

// The record of a call contains the duration of its pause, so that it is not part of the tool's time.
func TestRecordTellsThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t)
		setBreakpoint(t, h, BreakpointSettings{Name: "Bash", After: new("go")})
		b := startCall(t, h, "Bash", `{}`)
		time.Sleep(1_004_692_531) // on the fake clock of synctest; Duration.Seconds would write 1.0046925309999999
		if err := h.Resume(t.Context(), b.PauseID, ResumeRequest{Action: "continue"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := h.RecordCallOutcomeAndPauseIfStopped(t.Context(), CompletionReport{CallID: b.CallID}); err != nil {
			t.Fatal(err)
		}
		all, err := h.Records.Calls("", nil)
		if err != nil || len(all.Calls) != 1 || all.Calls[0].PausedSeconds != 1.004692 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

func TestCloseEndsPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t)
		setBreakpoint(t, h, BreakpointSettings{Name: "Bash"})
		sub := h.Subscribe(0)
		failed := make(chan error, 1)
		go func() {
			_, _, err := h.BeforeCall(t.Context(), Call{Tool: "Bash", Client: ClientClaudelessRun})
			failed <- err
		}()
		synctest.Wait()
		h.Close()
		h.Close()
		if err := <-failed; code(err) != CodeHubClosed {
			t.Errorf("waiting caller: %v", err)
		}
		for range sub.C { // until the channel is closed
		}
		if _, err := h.ReportCallStart(t.Context(), Call{Tool: "Bash", Client: ClientClaudelessRun}); code(err) != CodeHubClosed {
			t.Errorf("a call after Close: %v", err)
		}
	})
}

// Ten callers pause and resume a thousand calls and none is lost, while breakpoints are set and removed (S90) and
// sessions are opened.
func TestManyPauses(t *testing.T) {
	h := newHub(t)
	setBreakpoint(t, h, BreakpointSettings{Name: "Bash", After: new("go")})
	const callers, each = 10, 50
	sub := h.Subscribe(10 * callers * each)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for n := range each {
				want := fmt.Sprintf(`{"v":"%d-%d"}`, c, n)
				id, d, err := h.BeforeCall(t.Context(), Call{Tool: "Bash", Input: json.RawMessage(`{"v":""}`), Client: ClientClaudelessRun, ToolUseID: want})
				if err != nil || d.Action != ActionModify || string(d.Input) != want {
					t.Errorf("%s: %+v, %v", want, d, err)
				}
				if _, err := h.AfterCall(t.Context(), id, CallOutcome{Result: json.RawMessage("null")}); err != nil {
					t.Error(err)
				}
				name := fmt.Sprintf("other-%d", c)
				if err := h.BreakpointSet.SetBreakpoint(BreakpointSettings{Name: name}); err != nil {
					t.Error(err)
				}
				h.BreakpointSet.RemoveBreakpoint(name)
			}
		})
	}
	// Two debuggers send a decision at the same time; exactly one is used.
	var resumed, late atomic.Int64
	debugger := func() {
		for resumed.Load() < callers*each {
			for _, p := range h.Pauses() {
				var in map[string]json.RawMessage
				if err := json.Unmarshal([]byte(p.CallData.ToolUseID), &in); err != nil {
					t.Error(err)
					return
				}
				switch err := h.Resume(t.Context(), p.ID, ResumeRequest{ModifiedKwargs: &in}); code(err) {
				case "":
					resumed.Add(1)
				case CodePauseResumed:
					late.Add(1)
				default:
					t.Error(err)
				}
			}
		}
	}
	wg.Go(debugger)
	wg.Go(debugger)
	wg.Wait()
	if n := resumed.Load(); n != callers*each {
		t.Errorf("%d resumed", n)
	}
	sub.Close()
	counts := map[EventKind]int{}
	for e := range sub.C {
		counts[e.Kind]++
	}
	if counts[EventPaused] != callers*each || counts[EventResumed] != callers*each || counts[EventCompleted] != callers*each {
		t.Errorf("events %v", counts)
	}
	if s := h.Status(); s.Paused != 0 || s.ActiveCalls != 0 || s.TotalCalls != callers*each || s.Breakpoints != 1 {
		t.Errorf("left over: %+v", s)
	}
}

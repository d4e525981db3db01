package debug

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFunctions(t *testing.T) {
	h := newHub(t)
	if got := h.DebuggedFunctionsSortedByName(); len(got) != 0 { // S51
		t.Errorf("%v", got)
	}
	if err := h.Register(t.Context(), tools("mcp__t__echo", "mcp__t__add")); err != nil {
		t.Fatal(err)
	}
	got := h.DebuggedFunctionsSortedByName() // S52
	if len(got) != 2 || got[0].Name != "mcp__t__add" || got[0].Alias != "t/add" || got[0].Signature == "" {
		t.Fatalf("%+v", got)
	}
	var meta struct{ Server, Description string }
	if err := json.Unmarshal(got[0].Metadata, &meta); err != nil || meta.Server != "t" || meta.Description != "about add" {
		t.Errorf("metadata %s, %v", got[0].Metadata, err)
	}
	if len(h.BreakpointSet.Breakpoints()) != 0 {
		t.Error("registering set a breakpoint")
	}
}

func TestCalls(t *testing.T) {
	h := newHub(t, func(o *Options) { o.MaxRecords = 200 })
	if got, err := h.Records.Calls("", nil); err != nil || got.Calls == nil || len(got.Calls) != 0 || got.Total != 0 { // S53
		t.Errorf("%+v, %v", got, err)
	}
	for i := range 150 {
		tool := "Bash"
		if i%3 == 0 {
			tool = "Read"
		}
		b := startCall(t, h, tool, fmt.Sprintf(`{"n":%d}`, i))
		o := CallOutcome{Result: json.RawMessage(fmt.Sprint(i))}
		if i == 149 {
			o = CallOutcome{Failed: true, Error: "boom", ErrorType: "OSError"}
		}
		if _, err := h.RecordCallOutcomeAndPauseIfStopped(t.Context(), CompletionReport{CallID: b.CallID, CallOutcome: o}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := h.Records.Calls("", nil)
	if err != nil || len(all.Calls) != 100 || all.Total != 150 || !all.Truncated { // S58 S59 S60
		t.Fatalf("%d of %d, truncated %v, %v", len(all.Calls), all.Total, all.Truncated, err)
	}
	last := all.Calls[99] // B5: the newest are kept; S57
	if string(last.Input()) != `{"n":149}` || last.Status != "exception" || string(last.Exception) != `"OSError: boom"` || last.Error != "boom" {
		t.Errorf("last %+v", last)
	}
	if got, err := h.Records.Calls("", new(1000)); err != nil || len(got.Calls) != 150 || got.Truncated { // S54 S60
		t.Errorf("%d, %v", len(got.Calls), err)
	}
	if got, err := h.Records.Calls("Read", new(2)); err != nil || len(got.Calls) != 2 || got.Total != 50 || string(got.Calls[1].Input()) != `{"n":147}` { // S55 S56
		t.Errorf("%+v, %v", got, err)
	}
	for _, n := range []int{0, -1} { // S61
		if _, err := h.Records.Calls("", &n); code(err) != CodeInvalidLimit {
			t.Errorf("limit %d: %v", n, err)
		}
	}
	for range 300 {
		h.Records.AddExternalRecord(CallRecord{CallData: CallData{MethodName: "more"}, CallEnding: CallEnding{Status: "success"}})
	}
	if got, err := h.Records.Calls("", new(1000)); err != nil || len(got.Calls) != 200 || got.Total != 450 || h.Status().DroppedCalls == 0 {
		t.Errorf("%d of %d, %v", len(got.Calls), got.Total, err)
	}
}

func TestHistory(t *testing.T) {
	h := newHub(t)
	run := func(tool string) {
		b := startCall(t, h, tool, `{}`)
		if _, err := h.RecordCallOutcomeAndPauseIfStopped(t.Context(), CompletionReport{Session: "s1", ToolUseID: "tu"}); err != nil {
			t.Fatal(err)
		}
		_ = b
	}
	run("Bash")
	setBreakpoint(t, h, BreakpointSettings{Name: "B*", Before: new("go"), After: new("go")})
	run("Bash")
	run("Read")
	run("Bash")
	got := h.Records.BreakpointHistory("B*", 0)
	if len(got) != 2 || got[0].CompletedAt < got[1].CompletedAt || got[0].FunctionName != "Bash" {
		t.Errorf("%+v", got)
	}
	if got := h.Records.BreakpointHistory("B*", 1); len(got) != 1 {
		t.Errorf("limit 1: %d", len(got))
	}
}

func TestEvaluate(t *testing.T) {
	h := newHub(t)
	setBreakpoint(t, h, BreakpointSettings{Name: "Bash"})
	id := startCall(t, h, "Bash", `{"command":"ls","n":9007199254740993,"list":[1,2,3]}`).PauseID
	session := ""
	tests := []struct {
		expr, want string
		isError    bool
	}{
		{"2 + 2", "4", false}, // S62
		{"input.command", `"ls"`, false},
		{"input.n", "9007199254740993", false},
		{"x := sum(input.list)", "6", false},
		{"vars.x * 2", "12", false},
		{"{tool: tool, phase: phase, session: session}", `{"phase":"before","session":"s1","tool":"Bash"}`, false},
		{"result", "null", false},
		{"call.client", `"claudeless"`, false},
		{"1 +", "", true}, // S65
		{"1 / 0", "the value cannot be written as JSON: +Inf", true},
		{"nosuch", "unknown name nosuch (column 1)", true},
		{"y := nosuch", "unknown name nosuch (column 6)", true},
		{"input.a.b", "", true},
	}
	for _, tt := range tests {
		a, err := h.Evaluate(t.Context(), EvaluateParams{PauseID: id, Session: session, Expr: tt.expr})
		if err != nil {
			t.Errorf("%s: %v", tt.expr, err)
			continue
		}
		if a.IsError != tt.isError || tt.want != "" && a.Output != tt.want || a.Output == "" || a.Stdout != "" { // S68
			t.Errorf("%s: %+v", tt.expr, a)
		}
		if session != "" && a.SessionID != session { // S64
			t.Errorf("another session: %s", a.SessionID)
		}
		session = a.SessionID // S63
	}
	s, err := h.REPLSessionByID(session)
	if err != nil || len(s.Transcript) != len(tests) || s.Transcript[0].Input != "2 + 2" || s.Transcript[0].Output != "4" {
		t.Errorf("session %+v, %v", s, err)
	}
	other := startCall(t, h, "Bash", `{}`).PauseID
	for _, tt := range []struct {
		q    EvaluateParams
		want string
	}{
		{EvaluateParams{PauseID: id, Expr: " \n"}, CodeMissingExpression},                 // S66
		{EvaluateParams{PauseID: "never", Expr: "1"}, CodePauseNotFound},                  // S67
		{EvaluateParams{PauseID: other, Session: session, Expr: "1"}, CodeInvalidSession}, // a session of another pause
		{EvaluateParams{PauseID: id, Session: "no", Expr: "1"}, CodeSessionNotFound},
	} {
		if _, err := h.Evaluate(t.Context(), tt.q); code(err) != tt.want {
			t.Errorf("%+v: %v, want %s", tt.q, err, tt.want)
		}
	}
	if err := h.CloseREPLSession(session); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Evaluate(t.Context(), EvaluateParams{PauseID: id, Session: session, Expr: "1"}); code(err) != CodeSessionClosed { // S70
		t.Errorf("closed session: %v", err)
	}
}

// Nested loops end, because they are refused or exceed the step limit.
func TestEvaluationBomb(t *testing.T) {
	h := newHub(t)
	setBreakpoint(t, h, BreakpointSettings{Name: "Bash"})
	list, err := json.Marshal(map[string]any{"l": make([]int, 300)})
	if err != nil {
		t.Fatal(err)
	}
	id := startCall(t, h, "Bash", string(list)).PauseID
	began := time.Now()
	a, err := h.Evaluate(t.Context(), EvaluateParams{PauseID: id, Expr: "sum(input.l, sum(input.l, sum(input.l, sum(input.l, 1))))"})
	if err != nil || !a.IsError {
		t.Errorf("%+v, %v", a, err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestEvents(t *testing.T) {
	h := newHub(t)
	setBreakpoint(t, h, BreakpointSettings{Name: "Bash", After: new("exception")}) // S101: no observer yet
	one, two := h.Subscribe(0), h.Subscribe(0)                                     // S102 S105
	id := startCall(t, h, "Bash", `{}`)
	if err := h.Resume(t.Context(), id.PauseID, ResumeRequest{Action: "skip"}); err != nil {
		t.Fatal(err)
	}
	after, err := h.RecordCallOutcomeAndPauseIfStopped(t.Context(), CompletionReport{CallID: id.CallID, CallOutcome: CallOutcome{Failed: true, Error: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.PauseByID(after)
	if err != nil {
		t.Fatal(err)
	}
	two.Close() // S104 S106
	two.Close() // S107
	h.BreakpointSet.SetDefaultBreakpointBehavior("go")
	one.Close()
	var got []Event
	for e := range one.C {
		if len(h.Pauses()) != 1 { // S111: reading the state from an observer
			t.Error("state cannot be read")
		}
		e.PausedAt = 0
		got = append(got, e)
	}
	want := []Event{
		{Kind: EventPaused, PauseID: id.PauseID, MethodName: "Bash", Reason: "breakpoint"}, // S93 S96 S97 S98 S108
		{Kind: EventResumed, PauseID: id.PauseID, MethodName: "Bash", Action: "skip"},      // S94 S99 S109
		{Kind: EventCompleted, CallID: id.CallID, MethodName: "Bash", Status: "exception"}, // S95 S100 S110; recorded before the pause after the call
		{Kind: EventPaused, PauseID: after, MethodName: "Bash", Reason: "exception"},
		{Kind: EventConfigurationChanged, Topic: TopicBehavior},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	n := 0
	for range two.C {
		n++
	}
	if n != 4 {
		t.Errorf("the other observer got %d events", n)
	}
	params := Event{Kind: EventPaused, PauseID: "p", MethodName: "m", Reason: "breakpoint", PausedAt: p.PausedAt}.Params()
	if diff := cmp.Diff(map[string]any{"pause_id": "p", "method_name": "m", "pause_reason": "breakpoint", "paused_at": p.PausedAt}, params); diff != "" {
		t.Error(diff)
	}
}

// S111: an observer may read all state while events happen. S105: observers are channels here, not callbacks as in the
// older system; so the panicking observer of S103 has no equivalent.
func TestObserverReadsState(t *testing.T) {
	h := newHub(t)
	setBreakpoint(t, h, BreakpointSettings{Name: "Bash", After: new("go")})
	sub := h.Subscribe(0)
	looked := make(chan int)
	go func() {
		n := 0
		for e := range sub.C {
			n++
			h.Status()
			h.BreakpointSet.Breakpoints()
			if _, err := h.Records.Calls("", nil); err != nil {
				t.Error(err)
			}
			if e.Kind == EventPaused { // the observer may also decide, because the call waits in another goroutine
				if err := h.Resume(t.Context(), e.PauseID, ResumeRequest{}); err != nil {
					t.Error(err)
				}
			}
		}
		looked <- n
	}()
	for range 50 {
		id, d, err := h.BeforeCall(t.Context(), Call{Tool: "Bash", Client: ClientClaudelessRun})
		if err != nil || d.Action != ActionContinue {
			t.Fatalf("%+v, %v", d, err)
		}
		if _, err := h.AfterCall(t.Context(), id, CallOutcome{}); err != nil {
			t.Fatal(err)
		}
	}
	sub.Close()
	if n := <-looked; n != 150 {
		t.Errorf("%d events", n)
	}
}

// S103: an observer that does not read misses events and does not delay others.
func TestSlowObserver(t *testing.T) {
	h := newHub(t)
	slow, good := h.Subscribe(2), h.Subscribe(100)
	for range 10 {
		h.PublishChange(TopicExternalMCPServers)
	}
	if n := len(good.C); n != 10 {
		t.Errorf("the good observer got %d events", n)
	}
	<-slow.C
	<-slow.C
	h.PublishChange(TopicExternalMCPServers)
	if e := <-slow.C; e.Missed != 8 {
		t.Errorf("missed %d, want 8", e.Missed)
	}
	if got := h.Status().EventsDropped; got != 8 {
		t.Errorf("dropped %d", got)
	}
}

// The history is also bounded in bytes: records, decisions and transcripts drop the oldest entries and keep the
// newest.
func TestBytesKept(t *testing.T) {
	h := newHub(t)
	value := json.RawMessage(`"` + strings.Repeat("x", maxRecordValueBytes-2) + `"`)
	for range 2000 {
		h.Records.AddExternalRecord(CallRecord{CallData: CallData{MethodName: "T", Values: ClaudelessCallInput{JSON: value}}})
	}
	kept := len(value) * 2000
	all, err := h.Records.Calls("", new(5000))
	if n := len(all.Calls); err != nil || n*len(value) > maxTotalBytesOfRecords || n*len(value) < maxTotalBytesOfRecords/2 || all.Total != 2000 || h.Status().DroppedCalls != 2000-n {
		t.Errorf("%d records of %d bytes are kept (%d at first), %v", n, len(value), kept, err)
	}

	h.mu.Lock()
	for i := range 5000 {
		h.pauses.storeDecision(fmt.Sprint(i), Decision{Result: value})
	}
	_, newest := h.pauses.recentDecisions["4999"]
	if len(h.pauses.recentDecisions)*len(value) > maxTotalBytesOfStoredDecisions || len(h.pauses.recentDecisions) != len(h.pauses.decidedIDs) || !newest {
		t.Errorf("%d decisions are kept, the newest: %v", len(h.pauses.recentDecisions), newest)
	}
	h.pauses.storeDecision("huge", Decision{Result: json.RawMessage(strings.Repeat("x", maxTotalBytesOfStoredDecisions+1))})
	if _, ok := h.pauses.recentDecisions["huge"]; !ok || len(h.pauses.recentDecisions) != 1 {
		t.Errorf("of a huge decision and %d others it is kept: %v", len(h.pauses.recentDecisions)-1, ok)
	}
	h.mu.Unlock()

	for i := range 2 {
		if err := h.BreakpointSet.SetBreakpoint(BreakpointSettings{Name: "T"}); err != nil {
			t.Fatal(err)
		}
		b := startCall(t, h, "T", `{}`)
		id, err := h.StartREPLSession(b.PauseID)
		if err != nil {
			t.Fatal(err)
		}
		h.mu.Lock()
		for range 100 {
			h.appendTranscriptEntry(h.byID[id], EvaluatedExpression{Output: string(value)})
		}
		if h.bytes > maxTotalBytesOfSessionTranscripts || len(h.byID[id].Transcript) != 100 {
			t.Errorf("session %d: %d entries, %d bytes in all", i, len(h.byID[id].Transcript), h.bytes)
		}
		h.mu.Unlock()
	}
}

// A record contains both the requested input and the executed one, and both the tool's result and the one that the
// agent received.
func TestChangedValues(t *testing.T) {
	for name, c := range map[string]struct {
		before, after   ResumeRequest
		original, final string
	}{
		"unchanged": {ResumeRequest{}, ResumeRequest{}, "", ""},
		"both":      {ResumeRequest{ModifiedKwargs: &map[string]json.RawMessage{"n": json.RawMessage("2")}}, ResumeRequest{ModifiedResult: json.RawMessage(`"b"`)}, `{"n":1}`, `"b"`},
		"failed":    {ResumeRequest{}, ResumeRequest{Action: "raise", ExceptionMessage: "no"}, "", `"no"`},
	} {
		h := newHub(t)
		if err := h.BreakpointSet.SetBreakpoint(BreakpointSettings{Name: "T"}); err != nil {
			t.Fatal(err)
		}
		b := startCall(t, h, "T", `{"n":1}`)
		if err := h.Resume(t.Context(), b.PauseID, c.before); err != nil {
			t.Fatal(err)
		}
		after, err := h.RecordCallOutcomeAndPauseIfStopped(t.Context(), CompletionReport{CallID: b.CallID, CallOutcome: CallOutcome{Result: json.RawMessage(`"a"`)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Resume(t.Context(), after, c.after); err != nil {
			t.Fatal(err)
		}
		all, err := h.Records.Calls("", nil)
		if err != nil || string(all.Calls[0].OriginalInput) != c.original || string(all.Calls[0].FinalResult) != c.final {
			t.Errorf("%s: %s, %s, %v", name, all.Calls[0].OriginalInput, all.Calls[0].FinalResult, err)
		}
	}
}

// heap returns the bytes in use after a garbage collection.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// The memory of the hub is limited for finished calls, for calls that never finish, and for functions (A7).
func TestMemoryIsFlatUnderLoad(t *testing.T) {
	h := newHub(t)
	load := func(from, to int, complete bool) {
		for i := from; i < to; i++ {
			text := fmt.Sprintf(`%d%s`, i, strings.Repeat("x", 10_000))
			b := startCall(t, h, "T", `{"text":"`+text+`"}`)
			if !complete {
				continue
			}
			if _, err := h.RecordCallOutcomeAndPauseIfStopped(t.Context(), CompletionReport{CallID: b.CallID, CallOutcome: CallOutcome{Result: json.RawMessage(`"` + text + `"`)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, complete := range []bool{true, false} {
		load(0, 2000, complete)
		early := heap()
		load(2000, 5000, complete)
		if late := heap(); late > 64<<20 || late > early*5/4 {
			t.Errorf("calls completed: %v: %d bytes after 2000 calls, %d after 5000", complete, early, late)
		}
	}

	signature := strings.Repeat("x", maxTotalBytesOfRegisteredFunctions/4)
	var refused error
	for i := range 5 {
		refused = h.AddOrReplaceFunction(RegisteredFunction{Name: fmt.Sprint(i), Signature: signature})
	}
	if e, ok := errors.AsType[*Error](refused); !ok || e.Code != CodeLimit {
		t.Errorf("a function over the limit: %v", refused)
	}
	if err := h.AddOrReplaceFunction(RegisteredFunction{Name: "0", Signature: "()"}); err != nil {
		t.Error(err)
	}
	if err := h.AddOrReplaceFunction(RegisteredFunction{Name: "5", Signature: signature}); err != nil {
		t.Errorf("room that a function gave up is not used: %v", err)
	}
}

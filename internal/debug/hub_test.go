package debug

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/simulator/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newHub(tb testing.TB, change ...func(*Options)) *Hub {
	tb.Helper()
	var n atomic.Int64
	o := Options{Now: time.Now, NewID: func() string { return fmt.Sprintf("id-%d", n.Add(1)) }}
	for _, c := range change {
		c(&o)
	}
	h, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(h.Close)
	return h
}

func code(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if err != nil {
		return "not a *Error: " + err.Error()
	}
	return ""
}

func set(tb testing.TB, h *Hub, c BreakpointChange) {
	tb.Helper()
	if err := h.SetBreakpoint(c); err != nil {
		tb.Fatal(err)
	}
}

func ptr[T any](v T) *T { return &v }

// start begins a call of one of our own callers.
func start(tb testing.TB, h *Hub, tool, input string) Begun {
	tb.Helper()
	b, err := h.Start(tb.Context(), Call{Tool: tool, Input: json.RawMessage(input), Client: ClientRun, Session: "s1", ToolUseID: "tu"})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func tools(names ...string) []protocol.Tool {
	var all []protocol.Tool
	for _, name := range names {
		raw := strings.TrimPrefix(name, "mcp__t__")
		all = append(all, protocol.Tool{
			Name: name, Server: "t", RawName: raw, Description: "about " + raw,
			InputSchema: json.RawMessage(`{"type": "object", "properties": {"text": {"type":"string"}}}`),
		})
	}
	return all
}

func TestBreakpoints(t *testing.T) {
	h := newHub(t)
	if got := h.Breakpoints(); len(got) != 0 { // S5
		t.Errorf("breakpoints of a new hub: %v", got)
	}
	set(t, h, BreakpointChange{Name: "a"})                      // S8
	set(t, h, BreakpointChange{Name: "b", Before: ptr("stop")}) // S9
	set(t, h, BreakpointChange{Name: "b", After: ptr("both")})
	set(t, h, BreakpointChange{Name: "b"})                                                                          // S12: twice is once and keeps the settings
	want := []Breakpoint{{Name: "a", Before: Yield, After: Yield}, {Name: "b", Before: Stop, After: StopException}} // S6
	if diff := cmp.Diff(want, h.Breakpoints()); diff != "" {
		t.Error(diff)
	}
	if err := h.SetBreakpoint(BreakpointChange{}); code(err) != CodeMissingParameter { // S10
		t.Errorf("no name: %v", err)
	}
	for _, c := range []BreakpointChange{ // S11, B9: refused, and none is left behind
		{Name: "c", Before: ptr("sometimes")},
		{Name: "c", Before: ptr("exception")},
		{Name: "c", After: ptr("")},
		{Name: "c", When: ptr("input.")},
		{Name: "c", When: ptr("nosuch == 1")},
		{Name: "c["},
	} {
		if err := h.SetBreakpoint(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	if diff := cmp.Diff(want, h.Breakpoints()); diff != "" {
		t.Errorf("a refused breakpoint changed something: %s", diff)
	}
	h.RemoveBreakpoint("b") // S13
	h.RemoveBreakpoint("b") // S14
	set(t, h, BreakpointChange{Name: "b"})
	if got := h.Breakpoints()[1]; got.Before != Yield || got.After != Yield || got.Replacement != "" { // S15
		t.Errorf("settings survived the removal: %+v", got)
	}
}

func TestBehaviors(t *testing.T) {
	h := newHub(t)
	set(t, h, BreakpointChange{Name: "a"})
	for _, tt := range []struct {
		word string
		want Behavior
	}{{"stop", Stop}, {"go", Go}, {"yield", Yield}, {"continue", Go}, {"breakpoints", Stop}, {"defer", Yield}, {"default", Yield}} { // S16 S17 S18
		if err := h.ChangeBreakpoint(BreakpointChange{Name: "a", Before: &tt.word}); err != nil || h.Breakpoints()[0].Before != tt.want {
			t.Errorf("before %q: %v, %v", tt.word, h.Breakpoints()[0].Before, err)
		}
	}
	for _, tt := range []struct {
		word string
		want Behavior
	}{{"stop", Stop}, {"go", Go}, {"exception", Exception}, {"stop_exception", StopException}, {"yield", Yield}, {"both", StopException}} { // S21 S22 S23 S24 S25
		if err := h.ChangeBreakpoint(BreakpointChange{Name: "a", After: &tt.word}); err != nil || h.Breakpoints()[0].After != tt.want {
			t.Errorf("after %q: %v, %v", tt.word, h.Breakpoints()[0].After, err)
		}
	}
	for _, tt := range []struct {
		c    BreakpointChange
		want string
	}{
		{BreakpointChange{Name: "a", Before: ptr("exception")}, CodeInvalidBehavior}, // S19
		{BreakpointChange{Name: "no", Before: ptr("stop")}, CodeBreakpointNotFound},  // S20
		{BreakpointChange{Name: "a", After: ptr("never")}, CodeInvalidBehavior},      // S26
		{BreakpointChange{Name: "no", After: ptr("stop")}, CodeBreakpointNotFound},   // S27
		{BreakpointChange{Name: "no", After: ptr("nonsense")}, CodeInvalidBehavior},
	} {
		if err := h.ChangeBreakpoint(tt.c); code(err) != tt.want {
			t.Errorf("%+v: %v, want %s", tt.c, err, tt.want)
		}
	}
	if got := h.Default(); got != Stop { // S33
		t.Errorf("default %s", got)
	}
	for word, want := range map[string]Behavior{"go": Go, "exception": Exception, "stop_exception": StopException, "continue": Go, "stop_at_exceptions": Exception} { // S34 S35 S36
		if got, err := h.SetDefault(word); err != nil || got != want || h.Default() != want {
			t.Errorf("%q: %v, %v", word, got, err)
		}
	}
	before := h.Default()
	for _, word := range []string{"yield", "nonsense", ""} { // S37
		if _, err := h.SetDefault(word); code(err) != CodeInvalidBehavior || h.Default() != before {
			t.Errorf("%q: %v, default %v", word, err, h.Default())
		}
	}
}

func TestReplacement(t *testing.T) {
	h := newHub(t)
	all := tools("mcp__t__echo", "mcp__t__loud", "mcp__t__add")
	all[1].InputSchema = json.RawMessage(`{"properties":{"text":{"type":"string"}},"type":"object"}`) // the same, written otherwise
	all[2].InputSchema = json.RawMessage(`{"type":"object"}`)
	all = append(all, protocol.Tool{Name: "bare"}, protocol.Tool{Name: "bare2"})
	if err := h.Register(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mcp__t__echo", "bare"} {
		set(t, h, BreakpointChange{Name: name, Before: ptr("go")})
	}
	for _, tt := range []struct{ name, tool, want string }{
		{"mcp__t__echo", "mcp__t__loud", ""},                     // S28
		{"mcp__t__echo", "mcp__t__add", CodeSignatureMismatch},   // S30
		{"bare", "bare2", CodeSignatureMismatch},                 // S31: no schema at all
		{"mcp__t__loud", "mcp__t__echo", CodeBreakpointNotFound}, // S32
		{"mcp__t__loud", "mcp__t__add", CodeSignatureMismatch},   // the schema is checked first
		{"mcp__t__echo", "t/loud", ""},
	} {
		if err := h.SetReplacement(tt.name, tt.tool); code(err) != tt.want {
			t.Errorf("%s by %s: %v, want %q", tt.name, tt.tool, err, tt.want)
		}
	}
	if got := h.Breakpoints()[0].Replacement; got != "t/loud" { // S7
		t.Errorf("replacement %q", got)
	}
	b := start(t, h, "mcp__t__echo", `{}`)
	if diff := cmp.Diff(Decision{Action: ActionReplace, Tool: "mcp__t__loud"}, b.Decision); diff != "" {
		t.Error(diff)
	}
	// A hook cannot run another tool.
	hook, err := h.Start(t.Context(), Call{Tool: "mcp__t__echo", Client: ClientHook})
	if err != nil || hook.Decision.Action != ActionContinue {
		t.Errorf("hook: %+v, %v", hook, err)
	}
	for _, word := range []string{"", "mcp__t__echo"} { // S29
		if err := h.SetReplacement("mcp__t__echo", word); err != nil || h.Breakpoints()[0].Replacement != "" {
			t.Errorf("clearing by %q: %v", word, err)
		}
	}
}

// Breakpoints are found by canonical name, server/tool and patterns; the most
// exact one whose condition holds decides.
func TestWhatStops(t *testing.T) {
	h := newHub(t)
	if err := h.Register(t.Context(), tools("mcp__t__echo", "mcp__t__add")); err != nil {
		t.Fatal(err)
	}
	stop := ptr("stop")
	tests := []struct {
		name  string
		bps   []BreakpointChange
		tool  string
		input string
		want  bool
	}{
		{"none", nil, "mcp__t__echo", `{}`, false},
		{"exact", []BreakpointChange{{Name: "mcp__t__echo", Before: stop}}, "mcp__t__echo", `{}`, true},
		{"other tool", []BreakpointChange{{Name: "mcp__t__echo", Before: stop}}, "mcp__t__add", `{}`, false},
		{"server/tool", []BreakpointChange{{Name: "t/echo", Before: stop}}, "mcp__t__echo", `{}`, true},
		{"server/tool that is not registered", []BreakpointChange{{Name: "my srv/do.it", Before: stop}}, "mcp__my_srv__do_it", `{}`, true},
		{"glob", []BreakpointChange{{Name: "mcp__t__*", Before: stop}}, "mcp__t__add", `{}`, true},
		{"glob over server/tool", []BreakpointChange{{Name: "t/*", Before: stop}}, "mcp__t__add", `{}`, true},
		{"glob that misses", []BreakpointChange{{Name: "mcp__u__*", Before: stop}}, "mcp__t__add", `{}`, false},
		{"exact before glob", []BreakpointChange{{Name: "*", Before: stop}, {Name: "Bash", Before: ptr("go")}}, "Bash", `{}`, false},
		{"condition holds", []BreakpointChange{{Name: "Bash", When: ptr(`input.command contains "rm"`)}}, "Bash", `{"command":"rm x"}`, true},
		{"condition does not", []BreakpointChange{{Name: "Bash", When: ptr(`input.command contains "rm"`)}}, "Bash", `{"command":"ls"}`, false},
		{"condition fails", []BreakpointChange{{Name: "Bash", When: ptr(`input.a.b.c == 1`)}}, "Bash", `{}`, false},
		{"condition on the phase", []BreakpointChange{{Name: "Bash", When: ptr(`phase == "after"`)}}, "Bash", `{}`, false},
		{"exact one's condition does not hold, the glob's does", []BreakpointChange{{Name: "Bash", When: ptr("false")}, {Name: "B*", Before: stop}}, "Bash", `{}`, true},
		{"go", []BreakpointChange{{Name: "Bash", Before: ptr("go")}}, "Bash", `{}`, false},
		{"large whole numbers stay whole", []BreakpointChange{{Name: "Bash", When: ptr(`input.n == 9007199254740993`)}}, "Bash", `{"n":9007199254740993}`, true},
	}
	for _, tt := range tests {
		for _, b := range h.Breakpoints() {
			h.RemoveBreakpoint(b.Name)
		}
		for _, b := range tt.bps {
			set(t, h, b)
		}
		b := start(t, h, tt.tool, tt.input)
		if got := b.PauseID != ""; got != tt.want {
			t.Errorf("%s: stopped %v, want %v", tt.name, got, tt.want)
		}
		h.Abandon(b.PauseID)
	}
}

// The table of spec section 1.3: when a breakpoint stops before, after a
// success and after a failure.
func TestStops(t *testing.T) {
	tests := []struct {
		global, own              Behavior
		before, success, failure bool
	}{
		{Stop, Yield, true, true, false},
		{Go, Yield, false, false, false},
		{Exception, Yield, false, false, true},
		{StopException, Yield, true, true, true},
		{Go, Stop, true, true, false},
		{Stop, Go, false, false, false},
	}
	for _, tt := range tests {
		b := &breakpoint{Breakpoint: Breakpoint{Before: tt.own, After: tt.own}}
		got := []bool{b.stops(Before, false, tt.global), b.stops(After, false, tt.global), b.stops(After, true, tt.global)}
		if want := []bool{tt.before, tt.success, tt.failure}; !slices.Equal(got, want) {
			t.Errorf("%s/%s: %v, want %v", tt.global, tt.own, got, want)
		}
	}
	b := &breakpoint{Breakpoint: Breakpoint{After: Exception}}
	if b.stops(After, false, Go) || !b.stops(After, true, Go) {
		t.Error("exception must stop failed calls only")
	}
}

func TestPaused(t *testing.T) {
	h := newHub(t)
	if got := h.Paused(); got == nil || len(got) != 0 { // S38
		t.Errorf("paused: %#v", got)
	}
	if err := h.Register(t.Context(), tools("mcp__t__echo")); err != nil {
		t.Fatal(err)
	}
	set(t, h, BreakpointChange{Name: "mcp__t__echo"})
	begun, err := h.Start(t.Context(), Call{
		Tool: "mcp__t__echo", Input: json.RawMessage(`{"text":"hi"}`), Client: ClientRun, Session: "s1", ToolUseID: "tu",
		Site: json.RawMessage(`{"scenario":"a.toml","line":3}`), PID: 7, Started: 1.5,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.StartSession(begun.PauseID); err != nil {
		t.Fatal(err)
	}
	got := h.Paused()[0] // S39 S40
	if got.ID != begun.PauseID || got.PausedAt == 0 || len(got.Sessions) != 1 || !strings.HasPrefix(got.Sessions[0], "7-") {
		t.Errorf("pause %+v", got)
	}
	d := got.CallData
	if d.MethodName != "mcp__t__echo" || d.Reason != "breakpoint" || d.Phase != Before || d.ProcessKey != "1.500000+7" ||
		string(d.Input) != `{"text":"hi"}` || string(d.PrettyKwargs) != `{"text":"hi"}` || string(d.CallSite) != `{"scenario":"a.toml","line":3}` ||
		d.Signature != `{"properties":{"text":{"type":"string"}},"type":"object"}` || d.InputCID == "" {
		t.Errorf("call data %+v", d)
	}
}

func TestResume(t *testing.T) {
	tests := []struct {
		name string
		r    Resume
		want Decision
		code string
	}{
		{"default", Resume{}, Decision{Action: ActionContinue}, ""}, // S41
		{"continue", Resume{Action: "continue"}, Decision{Action: ActionContinue}, ""},
		{"skip", Resume{Action: "skip", FakeResult: json.RawMessage(`"fake"`)}, Decision{Action: ActionSkip, Result: json.RawMessage(`"fake"`)}, ""}, // S42
		{
			"raise", Resume{Action: "raise", ExceptionType: "ValueError", ExceptionMessage: "no"}, // S43
			Decision{Action: ActionRaise, Type: "ValueError", Message: "no"}, "",
		},
		{"one argument", Resume{Action: "modify", ModifiedArgs: &[]json.RawMessage{json.RawMessage(`{"a":1}`)}}, Decision{Action: ActionModify, Input: json.RawMessage(`{"a":1}`)}, ""}, // S44
		{"by field", Resume{ModifiedKwargs: &map[string]json.RawMessage{"a": json.RawMessage("2")}}, Decision{Action: ActionModify, Input: json.RawMessage(`{"a":2}`)}, ""},             // S45, B2
		{"expression", Resume{ModifiedInputExpr: `{"text": input.text + "!"}`}, Decision{Action: ActionModify, Input: json.RawMessage(`{"text":"hi!"}`)}, ""},
		{"replace", Resume{ReplacementFunction: "t/loud"}, Decision{Action: ActionReplace, Tool: "mcp__t__loud"}, ""},                                // S46
		{"replacement wins", Resume{Action: "skip", ReplacementFunction: "mcp__t__loud"}, Decision{Action: ActionReplace, Tool: "mcp__t__loud"}, ""}, // S47
		{"unknown action", Resume{Action: "explode"}, Decision{}, CodeInvalidAction},                                                                 // B7
		{"abandon is the hub's", Resume{Action: "abandoned"}, Decision{}, CodeInvalidAction},
		{"modify without values", Resume{Action: "modify"}, Decision{}, CodeInvalidArguments},
		{"two arguments", Resume{ModifiedArgs: &[]json.RawMessage{json.RawMessage("1"), json.RawMessage("2")}}, Decision{}, CodeInvalidArguments},
		{"input that is no object", Resume{ModifiedArgs: &[]json.RawMessage{json.RawMessage("1")}}, Decision{}, CodeInvalidArguments},
		{"bad expression", Resume{ModifiedInputExpr: "nosuch"}, Decision{}, CodeInvalidCondition},
		{"replace without a tool", Resume{Action: "replace"}, Decision{}, CodeMissingParameter},
	}
	for _, tt := range tests {
		h := newHub(t)
		set(t, h, BreakpointChange{Name: "mcp__t__echo"})
		id := start(t, h, "mcp__t__echo", `{"text":"hi"}`).PauseID
		err := h.Resume(t.Context(), id, tt.r)
		if code(err) != tt.code {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.code)
			continue
		}
		if tt.code != "" { // refused: still paused
			if len(h.Paused()) != 1 {
				t.Errorf("%s: a refused decision ended the pause", tt.name)
			}
			continue
		}
		d, decided, err := h.Wait(t.Context(), id)
		if err != nil || !decided {
			t.Errorf("%s: decided %v, %v", tt.name, decided, err)
		}
		if diff := cmp.Diff(tt.want, d); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestResumeTwice(t *testing.T) {
	h := newHub(t)
	set(t, h, BreakpointChange{Name: "Bash"})
	if err := h.Resume(t.Context(), "never", Resume{}); code(err) != CodePauseNotFound { // S48
		t.Errorf("unknown pause: %v", err)
	}
	id := start(t, h, "Bash", `{}`).PauseID
	if err := h.Resume(t.Context(), id, Resume{}); err != nil {
		t.Fatal(err)
	}
	if err := h.Resume(t.Context(), id, Resume{Action: "skip"}); code(err) != CodePauseResumed { // S49
		t.Errorf("second decision: %v", err)
	}
	if d, _, err := h.Wait(t.Context(), id); err != nil || d.Action != ActionContinue {
		t.Errorf("decision %+v, %v", d, err)
	}
}

// B1, B11: a pause after the call takes what can still be done then.
func TestAfter(t *testing.T) {
	h := newHub(t)
	set(t, h, BreakpointChange{Name: "Bash", Before: ptr("go"), After: ptr("stop_exception")})
	complete := func(o Outcome) string {
		b := start(t, h, "Bash", `{}`)
		id, err := h.Complete(t.Context(), Completion{CallID: b.CallID, Outcome: o})
		if err != nil || id == "" {
			t.Fatalf("pause %q, %v", id, err)
		}
		return id
	}
	id := complete(Outcome{Result: json.RawMessage(`"out"`)})
	p, err := h.Pause(id)
	if err != nil || p.CallData.Phase != After || string(p.CallData.PrettyResult) != `"out"` || p.CallData.Reason != "breakpoint" {
		t.Errorf("%+v, %v", p.CallData, err)
	}
	for _, r := range []Resume{{Action: "skip"}, {ReplacementFunction: "x"}} {
		if err := h.Resume(t.Context(), id, r); code(err) != CodeUnsupportedAction {
			t.Errorf("%+v after the call: %v", r, err)
		}
	}
	if err := h.Resume(t.Context(), id, Resume{ModifiedResult: json.RawMessage(`"new"`)}); err != nil {
		t.Fatal(err)
	}
	if d, _, _ := h.Wait(t.Context(), id); d.Action != ActionModify || string(d.Result) != `"new"` {
		t.Errorf("decision %+v", d)
	}
	id = complete(Outcome{Failed: true, Result: json.RawMessage(`"boom"`), Error: "boom"})
	p, err = h.Pause(id)
	if err != nil || p.CallData.Reason != "exception" || string(p.CallData.Exception) != `"boom"` {
		t.Errorf("%+v, %v", p.CallData, err)
	}
	if err := h.Resume(t.Context(), id, Resume{Action: "raise", ExceptionMessage: "worse"}); err != nil {
		t.Error(err)
	}
}

func TestFunctions(t *testing.T) {
	h := newHub(t)
	if got := h.Functions(); len(got) != 0 { // S51
		t.Errorf("%v", got)
	}
	if err := h.Register(t.Context(), tools("mcp__t__echo", "mcp__t__add")); err != nil {
		t.Fatal(err)
	}
	got := h.Functions() // S52
	if len(got) != 2 || got[0].Name != "mcp__t__add" || got[0].Alias != "t/add" || got[0].Signature == "" {
		t.Fatalf("%+v", got)
	}
	var meta struct{ Server, Description string }
	if err := json.Unmarshal(got[0].Metadata, &meta); err != nil || meta.Server != "t" || meta.Description != "about add" {
		t.Errorf("metadata %s, %v", got[0].Metadata, err)
	}
	if len(h.Breakpoints()) != 0 {
		t.Error("registering set a breakpoint")
	}
}

func TestCalls(t *testing.T) {
	h := newHub(t, func(o *Options) { o.MaxRecords = 200 })
	if got, err := h.Calls("", nil); err != nil || got.Calls == nil || len(got.Calls) != 0 || got.Total != 0 { // S53
		t.Errorf("%+v, %v", got, err)
	}
	for i := range 150 {
		tool := "Bash"
		if i%3 == 0 {
			tool = "Read"
		}
		b := start(t, h, tool, fmt.Sprintf(`{"n":%d}`, i))
		o := Outcome{Result: json.RawMessage(fmt.Sprint(i))}
		if i == 149 {
			o = Outcome{Failed: true, Error: "boom", ErrorType: "OSError"}
		}
		if _, err := h.Complete(t.Context(), Completion{CallID: b.CallID, Outcome: o}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := h.Calls("", nil)
	if err != nil || len(all.Calls) != 100 || all.Total != 150 || !all.Truncated { // S58 S59 S60
		t.Fatalf("%d of %d, truncated %v, %v", len(all.Calls), all.Total, all.Truncated, err)
	}
	last := all.Calls[99] // B5: the newest are kept; S57
	if string(last.Input) != `{"n":149}` || last.Status != "exception" || string(last.Exception) != `"OSError: boom"` || last.Error != "boom" {
		t.Errorf("last %+v", last)
	}
	if got, err := h.Calls("", ptr(1000)); err != nil || len(got.Calls) != 150 || got.Truncated { // S54 S60
		t.Errorf("%d, %v", len(got.Calls), err)
	}
	if got, err := h.Calls("Read", ptr(2)); err != nil || len(got.Calls) != 2 || got.Total != 50 || string(got.Calls[1].Input) != `{"n":147}` { // S55 S56
		t.Errorf("%+v, %v", got, err)
	}
	for _, n := range []int{0, -1} { // S61
		if _, err := h.Calls("", &n); code(err) != CodeInvalidLimit {
			t.Errorf("limit %d: %v", n, err)
		}
	}
	for range 300 {
		h.AddRecord(Record{CallData: CallData{MethodName: "more"}, Status: "success"})
	}
	if got, err := h.Calls("", ptr(1000)); err != nil || len(got.Calls) != 200 || got.Total != 450 || h.Status().DroppedCalls == 0 {
		t.Errorf("%d of %d, %v", len(got.Calls), got.Total, err)
	}
}

func TestHistory(t *testing.T) {
	h := newHub(t)
	run := func(tool string) {
		b := start(t, h, tool, `{}`)
		if _, err := h.Complete(t.Context(), Completion{Session: "s1", ToolUseID: "tu"}); err != nil {
			t.Fatal(err)
		}
		_ = b
	}
	run("Bash")
	set(t, h, BreakpointChange{Name: "B*", Before: ptr("go"), After: ptr("go")})
	run("Bash")
	run("Read")
	run("Bash")
	got := h.History("B*", 0)
	if len(got) != 2 || got[0].CompletedAt < got[1].CompletedAt || got[0].FunctionName != "Bash" {
		t.Errorf("%+v", got)
	}
	if got := h.History("B*", 1); len(got) != 1 {
		t.Errorf("limit 1: %d", len(got))
	}
}

func TestInspect(t *testing.T) {
	h := newHub(t)
	put := func(data string) string {
		cid, err := h.Store().Put([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return cid
	}
	deep := put(`{"a":{"b":{"c":{"d":1}}},"list":[1,"x"]}`)
	got, err := h.Inspect(deep) // S71
	want := map[string]any{
		"a": map[string]any{"b": map[string]any{"c": "<object>"}}, "list": map[string]any{"0": json.Number("1"), "1": "x"},
	}
	if err != nil || got.Type != "object" || cmp.Diff(want, got.Attributes) != "" {
		t.Errorf("%+v, %v", got, err)
	}
	many, err := h.Inspect(put("[" + strings.Repeat("0,", 200) + "0]"))
	if err != nil || len(many.Attributes) != 101 || many.Attributes["…"] != "101 more" {
		t.Errorf("%d members, %v", len(many.Attributes), err)
	}
	for _, cid := range []string{"", "xyz", strings.Repeat("0", 128)} { // S72
		if _, err := h.Inspect(cid); code(err) != CodeCIDNotFound {
			t.Errorf("%q: %v", cid, err)
		}
	}
	for data, want := range map[string][2]string{ // S73: what is no JSON; S74: what does not decode
		"\x00\x01\xff":              {"bytes", ""},
		"\x80\x04K\x03.":            {"int", ""},
		"cdatetime\ndate\n(I1\ntR.": {"datetime.date", ""},
		"\x80\x04broken":            {"unknown", "deserialization_failed"},
		"{broken":                   {"unknown", "deserialization_failed"},
	} {
		got, err := h.Inspect(put(data))
		if err != nil || got.Type != want[0] || got.Error != want[1] || got.Repr == "" || got.Size != len(data) {
			t.Errorf("%q: %+v, %v", data, got, err)
		}
	}
}

func TestEvaluate(t *testing.T) {
	h := newHub(t)
	set(t, h, BreakpointChange{Name: "Bash"})
	id := start(t, h, "Bash", `{"command":"ls","n":9007199254740993,"list":[1,2,3]}`).PauseID
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
		{"nosuch", "unknown name nosuch (column 1)", true},
		{"y := nosuch", "unknown name nosuch (column 6)", true},
		{"input.a.b", "", true},
	}
	for _, tt := range tests {
		a, err := h.Evaluate(t.Context(), Question{PauseID: id, Session: session, Expr: tt.expr})
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
	s, err := h.Session(session)
	if err != nil || len(s.Transcript) != len(tests) || s.Transcript[0].Input != "2 + 2" || s.Transcript[0].Output != "4" {
		t.Errorf("session %+v, %v", s, err)
	}
	other := start(t, h, "Bash", `{}`).PauseID
	for _, tt := range []struct {
		q    Question
		want string
	}{
		{Question{PauseID: id, Expr: " \n"}, CodeMissingExpression},                 // S66
		{Question{PauseID: "never", Expr: "1"}, CodePauseNotFound},                  // S67
		{Question{PauseID: other, Session: session, Expr: "1"}, CodeInvalidSession}, // a session of another pause
		{Question{PauseID: id, Session: "no", Expr: "1"}, CodeSessionNotFound},
	} {
		if _, err := h.Evaluate(t.Context(), tt.q); code(err) != tt.want {
			t.Errorf("%+v: %v, want %s", tt.q, err, tt.want)
		}
	}
	if err := h.CloseSession(session); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Evaluate(t.Context(), Question{PauseID: id, Session: session, Expr: "1"}); code(err) != CodeSessionClosed { // S70
		t.Errorf("closed session: %v", err)
	}
}

// Nested loops end: by refusal or by their steps.
func TestEvaluationBomb(t *testing.T) {
	h := newHub(t)
	set(t, h, BreakpointChange{Name: "Bash"})
	list, err := json.Marshal(map[string]any{"l": make([]int, 300)})
	if err != nil {
		t.Fatal(err)
	}
	id := start(t, h, "Bash", string(list)).PauseID
	began := time.Now()
	a, err := h.Evaluate(t.Context(), Question{PauseID: id, Expr: "sum(input.l, sum(input.l, sum(input.l, sum(input.l, 1))))"})
	if err != nil || !a.IsError {
		t.Errorf("%+v, %v", a, err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestEvents(t *testing.T) {
	h := newHub(t)
	set(t, h, BreakpointChange{Name: "Bash", After: ptr("exception")}) // S101: no observer yet
	one, two := h.Subscribe(0), h.Subscribe(0)                         // S102 S105
	id := start(t, h, "Bash", `{}`)
	if err := h.Resume(t.Context(), id.PauseID, Resume{Action: "skip"}); err != nil {
		t.Fatal(err)
	}
	after, err := h.Complete(t.Context(), Completion{CallID: id.CallID, Outcome: Outcome{Failed: true, Error: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.Pause(after)
	if err != nil {
		t.Fatal(err)
	}
	two.Close() // S104 S106
	two.Close() // S107
	h.SetDefault("go")
	one.Close()
	var got []Event
	for e := range one.C {
		if len(h.Paused()) != 1 { // S111: reading the state from an observer
			t.Error("state cannot be read")
		}
		e.PausedAt = 0
		got = append(got, e)
	}
	want := []Event{
		{Kind: EventPaused, PauseID: id.PauseID, MethodName: "Bash", Reason: "breakpoint"}, // S93 S96 S97 S98 S108
		{Kind: EventResumed, PauseID: id.PauseID, MethodName: "Bash", Action: "skip"},      // S94 S99 S109
		{Kind: EventCompleted, CallID: id.CallID, MethodName: "Bash", Status: "exception"}, // S95 S100 S110; before the after-pause
		{Kind: EventPaused, PauseID: after, MethodName: "Bash", Reason: "exception"},
		{Kind: EventChanged, Topic: TopicBehavior},
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

// S103: an observer that does not read loses events and delays nobody.
func TestSlowObserver(t *testing.T) {
	h := newHub(t)
	slow, good := h.Subscribe(2), h.Subscribe(100)
	for range 10 {
		h.Announce(TopicServers)
	}
	if n := len(good.C); n != 10 {
		t.Errorf("the good observer got %d events", n)
	}
	<-slow.C
	<-slow.C
	h.Announce(TopicServers)
	if e := <-slow.C; e.Missed != 8 {
		t.Errorf("missed %d, want 8", e.Missed)
	}
	if got := h.Status().EventsDropped; got != 8 {
		t.Errorf("dropped %d", got)
	}
}

// B12: a pause does not outlive its caller for long, nor the patience that was
// set.
func TestPauseEnds(t *testing.T) {
	tests := []struct {
		name   string
		o      func(*Options)
		client Client
		want   Action
		after  time.Duration
	}{
		{"caller gone", func(*Options) {}, ClientRun, ActionAbandon, 8 * time.Second},
		{"own lease", func(o *Options) { o.Lease = time.Second }, ClientHook, ActionAbandon, time.Second},
		{"continue", func(o *Options) { o.PauseTimeout, o.OnTimeout = 2*time.Second, PolicyContinue }, ClientRun, ActionContinue, 2 * time.Second},
		{"fail", func(o *Options) { o.PauseTimeout, o.OnTimeout = 3*time.Second, PolicyFail }, ClientRun, ActionRaise, 3 * time.Second},
		{"wait", func(o *Options) { o.PauseTimeout = time.Second }, ClientRun, ActionAbandon, 8 * time.Second},
		{"fail, an older client", func(o *Options) { o.PauseTimeout, o.OnTimeout = 3*time.Second, PolicyFail }, ClientForeign, ActionRaise, 3 * time.Second},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			h := newHub(t, tt.o)
			set(t, h, BreakpointChange{Name: "Bash"})
			c := Call{Tool: "Bash", Client: tt.client}
			if tt.client == ClientForeign {
				c.Foreign = &Foreign{}
			}
			b, err := h.Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			sub := h.Subscribe(0)
			e := <-sub.C
			if took := time.Since(began); Action(e.Action) != tt.want || took != tt.after {
				t.Errorf("%s: %s after %s, want %s after %s", tt.name, e.Action, took, tt.want, tt.after)
			}
			if len(h.Paused()) != 0 {
				t.Errorf("%s: still paused", tt.name)
			}
			d, decided, err := h.Wait(t.Context(), b.PauseID)
			if err != nil || !decided || d.Action != tt.want {
				t.Errorf("%s: %+v, %v", tt.name, d, err)
			}
		})
	}
}

// While somebody asks, the lease does not run; each question begins it anew.
func TestLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t)
		set(t, h, BreakpointChange{Name: "Bash"})
		id := start(t, h, "Bash", `{}`).PauseID
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
			if _, decided, err := h.Wait(ctx, id); decided || err != nil {
				t.Fatalf("decided %v, %v", decided, err)
			}
			cancel()
		}
		began := time.Now()
		sub := h.Subscribe(0)
		if e := <-sub.C; e.Action != string(ActionAbandon) || time.Since(began) != 8*time.Second {
			t.Errorf("%+v after %s", e, time.Since(began))
		}
	})
}

// An older client is not asked to ask: its lease begins with its first poll.
func TestForeignLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t)
		set(t, h, BreakpointChange{Name: "f"})
		b, err := h.Start(t.Context(), Call{Tool: "f", Foreign: &Foreign{}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour) // of the test's own clock
		if len(h.Paused()) != 1 {
			t.Error("the pause ended without a poll")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, decided, err := h.Wait(ctx, b.PauseID); decided || err != nil {
			t.Errorf("decided %v, %v", decided, err)
		}
		time.Sleep(5*time.Minute + time.Second)
		if len(h.Paused()) != 0 {
			t.Error("the pause outlived its client")
		}
	})
}

func TestCloseEndsPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t)
		set(t, h, BreakpointChange{Name: "Bash"})
		sub := h.Subscribe(0)
		failed := make(chan error, 1)
		go func() {
			_, _, err := h.Before(t.Context(), Call{Tool: "Bash", Client: ClientRun})
			failed <- err
		}()
		synctest.Wait()
		h.Close()
		h.Close()
		if err := <-failed; code(err) != CodeClosed {
			t.Errorf("waiting caller: %v", err)
		}
		for range sub.C { // ends
		}
		if _, err := h.Start(t.Context(), Call{Tool: "Bash", Client: ClientRun}); code(err) != CodeClosed {
			t.Errorf("a call after Close: %v", err)
		}
	})
}

// A thousand pauses and resumes from ten callers at once, none lost, while
// breakpoints come and go (S90) and sessions are opened.
func TestManyPauses(t *testing.T) {
	h := newHub(t)
	set(t, h, BreakpointChange{Name: "Bash", After: ptr("go")})
	const callers, each = 10, 100
	sub := h.Subscribe(10 * callers * each)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for n := range each {
				want := fmt.Sprintf(`{"v":"%d-%d"}`, c, n)
				id, d, err := h.Before(t.Context(), Call{Tool: "Bash", Input: json.RawMessage(`{"v":""}`), Client: ClientRun, ToolUseID: want})
				if err != nil || d.Action != ActionModify || string(d.Input) != want {
					t.Errorf("%s: %+v, %v", want, d, err)
				}
				if _, err := h.After(t.Context(), id, Outcome{Result: json.RawMessage("null")}); err != nil {
					t.Error(err)
				}
				name := fmt.Sprintf("other-%d", c)
				if err := h.SetBreakpoint(BreakpointChange{Name: name}); err != nil {
					t.Error(err)
				}
				h.RemoveBreakpoint(name)
			}
		})
	}
	// Two debuggers race; of their decisions exactly one counts.
	var resumed, late atomic.Int64
	debugger := func() {
		for resumed.Load() < callers*each {
			for _, p := range h.Paused() {
				var in map[string]json.RawMessage
				if err := json.Unmarshal([]byte(p.CallData.ToolUseID), &in); err != nil {
					t.Error(err)
					return
				}
				switch err := h.Resume(t.Context(), p.ID, Resume{ModifiedKwargs: &in}); code(err) {
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
	counts := map[Kind]int{}
	for e := range sub.C {
		counts[e.Kind]++
	}
	if counts[EventPaused] != 1000 || counts[EventResumed] != 1000 || counts[EventCompleted] != 1000 {
		t.Errorf("events %v", counts)
	}
	if s := h.Status(); s.Paused != 0 || s.ActiveCalls != 0 || s.TotalCalls != 1000 || s.Breakpoints != 1 {
		t.Errorf("left over: %+v", s)
	}
}

// BenchmarkCall is a call through the hub without a breakpoint on it, with
// breakpoints on others: at most 100 µs.
func BenchmarkCall(b *testing.B) {
	h := newHub(b)
	for i := range 20 {
		set(b, h, BreakpointChange{Name: fmt.Sprintf("mcp__s%d__*", i)})
	}
	input := json.RawMessage(`{"path":"/tmp/x","text":"` + strings.Repeat("x", 500) + `"}`)
	for b.Loop() {
		id, _, err := h.Before(b.Context(), Call{Tool: "Bash", Input: input, Client: ClientRun})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.After(b.Context(), id, Outcome{Result: json.RawMessage(`"done"`)}); err != nil {
			b.Fatal(err)
		}
	}
}

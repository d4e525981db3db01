package debug

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/tests/mcptest"
)

// TestMain makes the test binary a server if MCPTEST_MODE is set. C1, C4 and C96 require that all goroutines have
// returned after Close.
func TestMain(m *testing.M) {
	if mode := os.Getenv("MCPTEST_MODE"); mode != "" {
		o := mcptest.Options{Mode: mode, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
		o.Count, _ = strconv.Atoi(os.Getenv("MCPTEST_COUNT"))
		if name := os.Getenv("MCPTEST_LOG"); name != "" {
			file, err := os.Create(name)
			if err != nil {
				panic(err)
			}
			o.Log = file
		}
		os.Exit(mcptest.Serve(o))
	}
	goleak.VerifyTestMain(m)
}

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

func setBreakpoint(tb testing.TB, h *Hub, c BreakpointSettings) {
	tb.Helper()
	if err := h.BreakpointSet.SetBreakpoint(c); err != nil {
		tb.Fatal(err)
	}
}

// startCall starts a call of claudeless's own kind of caller.
func startCall(tb testing.TB, h *Hub, tool, input string) CallStartResponse {
	tb.Helper()
	b, err := h.ReportCallStart(tb.Context(), Call{Tool: tool, Input: json.RawMessage(input), Client: ClientClaudelessRun, Session: "s1", ToolUseID: "tu"})
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
	if got := h.BreakpointSet.Breakpoints(); len(got) != 0 { // S5
		t.Errorf("breakpoints of a new hub: %v", got)
	}
	setBreakpoint(t, h, BreakpointSettings{Name: "a"})                      // S8
	setBreakpoint(t, h, BreakpointSettings{Name: "b", Before: new("stop")}) // S9
	setBreakpoint(t, h, BreakpointSettings{Name: "b", After: new("both")})
	setBreakpoint(t, h, BreakpointSettings{Name: "b"})                                                                                                                             // S12: twice is once and keeps the settings
	want := []Breakpoint{{Name: "a", Before: BehaviorUseHubDefault, After: BehaviorUseHubDefault}, {Name: "b", Before: BehaviorStop, After: BehaviorStopBeforeAndAfterAnyOutcome}} // S6
	if diff := cmp.Diff(want, h.BreakpointSet.Breakpoints()); diff != "" {
		t.Error(diff)
	}
	if err := h.BreakpointSet.SetBreakpoint(BreakpointSettings{}); code(err) != CodeMissingParameter { // S10
		t.Errorf("no name: %v", err)
	}
	for _, c := range []BreakpointSettings{ // S11, B9: refused, and no breakpoint remains
		{Name: "c", Before: new("sometimes")},
		{Name: "c", Before: new("exception")},
		{Name: "c", After: new("")},
		{Name: "c", When: new("input.")},
		{Name: "c", When: new("nosuch == 1")},
		{Name: "c["},
	} {
		if err := h.BreakpointSet.SetBreakpoint(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	if diff := cmp.Diff(want, h.BreakpointSet.Breakpoints()); diff != "" {
		t.Errorf("a refused breakpoint changed something: %s", diff)
	}
	h.BreakpointSet.RemoveBreakpoint("b") // S13
	h.BreakpointSet.RemoveBreakpoint("b") // S14
	setBreakpoint(t, h, BreakpointSettings{Name: "b"})
	if got := h.BreakpointSet.Breakpoints()[1]; got.Before != BehaviorUseHubDefault || got.After != BehaviorUseHubDefault || got.Replacement != "" { // S15
		t.Errorf("settings survived the removal: %+v", got)
	}
}

func TestBehaviors(t *testing.T) {
	h := newHub(t)
	setBreakpoint(t, h, BreakpointSettings{Name: "a"})
	for _, tt := range []struct {
		word string
		want BreakpointBehavior
	}{{"stop", BehaviorStop}, {"go", BehaviorNeverStop}, {"yield", BehaviorUseHubDefault}, {"continue", BehaviorNeverStop}, {"breakpoints", BehaviorStop}, {"defer", BehaviorUseHubDefault}, {"default", BehaviorUseHubDefault}} { // S16 S17 S18
		if _, err := h.BreakpointSet.UpdateBreakpoint(BreakpointSettings{Name: "a", Before: &tt.word}); err != nil || h.BreakpointSet.Breakpoints()[0].Before != tt.want {
			t.Errorf("before %q: %v, %v", tt.word, h.BreakpointSet.Breakpoints()[0].Before, err)
		}
	}
	for _, tt := range []struct {
		word string
		want BreakpointBehavior
	}{{"stop", BehaviorStop}, {"go", BehaviorNeverStop}, {"exception", BehaviorStopAfterFailedCall}, {"stop_exception", BehaviorStopBeforeAndAfterAnyOutcome}, {"yield", BehaviorUseHubDefault}, {"both", BehaviorStopBeforeAndAfterAnyOutcome}} { // S21 S22 S23 S24 S25
		if _, err := h.BreakpointSet.UpdateBreakpoint(BreakpointSettings{Name: "a", After: &tt.word}); err != nil || h.BreakpointSet.Breakpoints()[0].After != tt.want {
			t.Errorf("after %q: %v, %v", tt.word, h.BreakpointSet.Breakpoints()[0].After, err)
		}
	}
	for _, tt := range []struct {
		c    BreakpointSettings
		want string
	}{
		{BreakpointSettings{Name: "a", Before: new("exception")}, CodeInvalidBehavior}, // S19
		{BreakpointSettings{Name: "no", Before: new("stop")}, CodeBreakpointNotFound},  // S20
		{BreakpointSettings{Name: "a", After: new("never")}, CodeInvalidBehavior},      // S26
		{BreakpointSettings{Name: "no", After: new("stop")}, CodeBreakpointNotFound},   // S27
		{BreakpointSettings{Name: "no", After: new("nonsense")}, CodeInvalidBehavior},
	} {
		if _, err := h.BreakpointSet.UpdateBreakpoint(tt.c); code(err) != tt.want {
			t.Errorf("%+v: %v, want %s", tt.c, err, tt.want)
		}
	}
	if got := h.BreakpointSet.DefaultBehavior(); got != BehaviorStop { // S33
		t.Errorf("default %s", got)
	}
	for word, want := range map[string]BreakpointBehavior{"go": BehaviorNeverStop, "exception": BehaviorStopAfterFailedCall, "stop_exception": BehaviorStopBeforeAndAfterAnyOutcome, "continue": BehaviorNeverStop, "stop_at_exceptions": BehaviorStopAfterFailedCall} { // S34 S35 S36
		if got, err := h.BreakpointSet.SetDefaultBreakpointBehavior(word); err != nil || got != want || h.BreakpointSet.DefaultBehavior() != want {
			t.Errorf("%q: %v, %v", word, got, err)
		}
	}
	before := h.BreakpointSet.DefaultBehavior()
	for _, word := range []string{"yield", "nonsense", ""} { // S37
		if _, err := h.BreakpointSet.SetDefaultBreakpointBehavior(word); code(err) != CodeInvalidBehavior || h.BreakpointSet.DefaultBehavior() != before {
			t.Errorf("%q: %v, default %v", word, err, h.BreakpointSet.DefaultBehavior())
		}
	}
}

func TestReplacement(t *testing.T) {
	h := newHub(t)
	all := tools("mcp__t__echo", "mcp__t__loud", "mcp__t__add")
	all[1].InputSchema = json.RawMessage(`{"properties":{"text":{"type":"string"}},"type":"object"}`) // the same schema, written differently
	all[2].InputSchema = json.RawMessage(`{"type":"object"}`)
	all = append(all, protocol.Tool{Name: "bare"}, protocol.Tool{Name: "bare2"})
	if err := h.Register(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mcp__t__echo", "bare"} {
		setBreakpoint(t, h, BreakpointSettings{Name: name, Before: new("go")})
	}
	for _, tt := range []struct{ name, tool, want string }{
		{"mcp__t__echo", "mcp__t__loud", ""},                           // S28
		{"mcp__t__echo", "mcp__t__add", CodeReplacementSchemaMismatch}, // S30
		{"bare", "bare2", CodeReplacementSchemaMismatch},               // S31: no schema at all
		{"mcp__t__loud", "mcp__t__echo", CodeBreakpointNotFound},       // S32
		{"mcp__t__loud", "mcp__t__add", CodeReplacementSchemaMismatch}, // the schema is checked first
		{"mcp__t__echo", "t/loud", ""},
	} {
		if err := h.BreakpointSet.SetReplacementToolOfBreakpoint(tt.name, tt.tool); code(err) != tt.want {
			t.Errorf("%s by %s: %v, want %q", tt.name, tt.tool, err, tt.want)
		}
	}
	if got := h.BreakpointSet.Breakpoints()[0].Replacement; got != "t/loud" { // S7
		t.Errorf("replacement %q", got)
	}
	b := startCall(t, h, "mcp__t__echo", `{}`)
	if diff := cmp.Diff(Decision{Action: ActionRunOtherTool, Tool: "mcp__t__loud"}, b.Decision); diff != "" {
		t.Error(diff)
	}
	// A hook cannot run another tool.
	hook, err := h.ReportCallStart(t.Context(), Call{Tool: "mcp__t__echo", Client: ClientAgentHook})
	if err != nil || hook.Decision.Action != ActionContinue {
		t.Errorf("hook: %+v, %v", hook, err)
	}
	for _, word := range []string{"", "mcp__t__echo"} { // S29
		if err := h.BreakpointSet.SetReplacementToolOfBreakpoint("mcp__t__echo", word); err != nil || h.BreakpointSet.Breakpoints()[0].Replacement != "" {
			t.Errorf("clearing by %q: %v", word, err)
		}
	}
}

// Breakpoints are found by canonical name, server/tool and patterns; the most specific one whose condition is true
// decides.
func TestWhatStops(t *testing.T) {
	h := newHub(t)
	if err := h.Register(t.Context(), tools("mcp__t__echo", "mcp__t__add")); err != nil {
		t.Fatal(err)
	}
	stop := new("stop")
	tests := []struct {
		name  string
		bps   []BreakpointSettings
		tool  string
		input string
		want  bool
	}{
		{"none", nil, "mcp__t__echo", `{}`, false},
		{"exact", []BreakpointSettings{{Name: "mcp__t__echo", Before: stop}}, "mcp__t__echo", `{}`, true},
		{"other tool", []BreakpointSettings{{Name: "mcp__t__echo", Before: stop}}, "mcp__t__add", `{}`, false},
		{"server/tool", []BreakpointSettings{{Name: "t/echo", Before: stop}}, "mcp__t__echo", `{}`, true},
		{"server/tool that is not registered", []BreakpointSettings{{Name: "my srv/do.it", Before: stop}}, "mcp__my_srv__do_it", `{}`, true},
		{"glob", []BreakpointSettings{{Name: "mcp__t__*", Before: stop}}, "mcp__t__add", `{}`, true},
		{"glob over server/tool", []BreakpointSettings{{Name: "t/*", Before: stop}}, "mcp__t__add", `{}`, true},
		{"glob that misses", []BreakpointSettings{{Name: "mcp__u__*", Before: stop}}, "mcp__t__add", `{}`, false},
		{"exact before glob", []BreakpointSettings{{Name: "*", Before: stop}, {Name: "Bash", Before: new("go")}}, "Bash", `{}`, false},
		{"condition holds", []BreakpointSettings{{Name: "Bash", When: new(`input.command contains "rm"`)}}, "Bash", `{"command":"rm x"}`, true},
		{"condition does not", []BreakpointSettings{{Name: "Bash", When: new(`input.command contains "rm"`)}}, "Bash", `{"command":"ls"}`, false},
		{"condition fails", []BreakpointSettings{{Name: "Bash", When: new(`input.a.b.c == 1`)}}, "Bash", `{}`, false},
		{"condition on the phase", []BreakpointSettings{{Name: "Bash", When: new(`phase == "after"`)}}, "Bash", `{}`, false},
		{"exact one's condition does not hold, the glob's does", []BreakpointSettings{{Name: "Bash", When: new("false")}, {Name: "B*", Before: stop}}, "Bash", `{}`, true},
		{"go", []BreakpointSettings{{Name: "Bash", Before: new("go")}}, "Bash", `{}`, false},
		{"large whole numbers stay whole", []BreakpointSettings{{Name: "Bash", When: new(`input.n == 9007199254740993`)}}, "Bash", `{"n":9007199254740993}`, true},
	}
	for _, tt := range tests {
		for _, b := range h.BreakpointSet.Breakpoints() {
			h.BreakpointSet.RemoveBreakpoint(b.Name)
		}
		for _, b := range tt.bps {
			setBreakpoint(t, h, b)
		}
		b := startCall(t, h, tt.tool, tt.input)
		if got := b.PauseID != ""; got != tt.want {
			t.Errorf("%s: stopped %v, want %v", tt.name, got, tt.want)
		}
		h.AbandonPause(b.PauseID)
	}
}

// The table of section 1.3 of the specification: when a breakpoint pauses before a call, after a success and after a
// failure.
func TestStops(t *testing.T) {
	tests := []struct {
		global, own              BreakpointBehavior
		before, success, failure bool
	}{
		{BehaviorStop, BehaviorUseHubDefault, true, true, false},
		{BehaviorNeverStop, BehaviorUseHubDefault, false, false, false},
		{BehaviorStopAfterFailedCall, BehaviorUseHubDefault, false, false, true},
		{BehaviorStopBeforeAndAfterAnyOutcome, BehaviorUseHubDefault, true, true, true},
		{BehaviorNeverStop, BehaviorStop, true, true, false},
		{BehaviorStop, BehaviorNeverStop, false, false, false},
	}
	for _, tt := range tests {
		b := &compiledBreakpoint{Breakpoint: Breakpoint{Before: tt.own, After: tt.own}}
		got := []bool{b.stopsCallInPhase(PhaseBefore, false, tt.global), b.stopsCallInPhase(PhaseAfterCall, false, tt.global), b.stopsCallInPhase(PhaseAfterCall, true, tt.global)}
		if want := []bool{tt.before, tt.success, tt.failure}; !slices.Equal(got, want) {
			t.Errorf("%s/%s: %v, want %v", tt.global, tt.own, got, want)
		}
	}
	b := &compiledBreakpoint{Breakpoint: Breakpoint{After: BehaviorStopAfterFailedCall}}
	if b.stopsCallInPhase(PhaseAfterCall, false, BehaviorNeverStop) || !b.stopsCallInPhase(PhaseAfterCall, true, BehaviorNeverStop) {
		t.Error("exception must stop failed calls only")
	}
}

// BenchmarkCall measures a call through a hub with breakpoints that do not match the call. It must take at most 100 µs.
func BenchmarkCall(b *testing.B) {
	h := newHub(b)
	for i := range 20 {
		setBreakpoint(b, h, BreakpointSettings{Name: fmt.Sprintf("mcp__s%d__*", i)})
	}
	input := json.RawMessage(`{"path":"/tmp/x","text":"` + strings.Repeat("x", 500) + `"}`)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		id, _, err := h.BeforeCall(b.Context(), Call{Tool: "Bash", Input: input, Client: ClientClaudelessRun})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.AfterCall(b.Context(), id, CallOutcome{Result: json.RawMessage(`"done"`)}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	if half := took[len(took)/2]; half > 100*time.Microsecond { // the median, because other programs affect the mean
		b.Errorf("half of the calls take more than %s", half)
	}
}

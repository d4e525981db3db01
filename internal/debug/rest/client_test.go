package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/debug"

	"github.com/claudeless/claudeless/simulator/protocol"
)

func newClientHub(tb testing.TB) *debug.Hub {
	tb.Helper()
	var n atomic.Int64
	h, err := debug.New(debug.Options{Now: time.Now, NewID: func() string { return fmt.Sprintf("id-%d", n.Add(1)) }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(h.Close)
	return h
}

// debugger serves a hub; stop closes it abruptly, like a killed process.
func debugger(tb testing.TB, o Options, token ...string) (url string, stop func()) {
	tb.Helper()
	h := Handler(o)
	return serveKillable(tb, func(w http.ResponseWriter, r *http.Request) {
		if len(token) > 0 && r.Header.Get("Authorization") != "Bearer "+token[0] {
			http.Error(w, `{"error":"unauthorized"}`, http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// serveKillable starts a debugger that can be killed.
func serveKillable(tb testing.TB, h http.HandlerFunc) (url string, kill func()) {
	tb.Helper()
	s := httptest.NewServer(h)
	kill = sync.OnceFunc(func() {
		s.Listener.Close()
		s.CloseClientConnections()
		s.Close()
	})
	tb.Cleanup(kill)
	return s.URL, kill
}

func newClient(tb testing.TB, o ClientOptions) *Client {
	tb.Helper()
	c, err := NewClient(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

func breakOn(tb testing.TB, h *debug.Hub, name string) {
	tb.Helper()
	if err := h.BreakpointSet.SetBreakpoint(debug.BreakpointSettings{Name: name}); err != nil {
		tb.Fatal(err)
	}
}

func TestNew(t *testing.T) {
	for _, url := range []string{"", "localhost:5174", "ftp://x", "http://", "://"} {
		if _, err := NewClient(ClientOptions{URL: url}); err == nil {
			t.Errorf("%q was taken", url)
		}
	}
	if _, err := NewClient(ClientOptions{URL: "http://x", OnLost: debug.PolicyWaitForever}); err == nil {
		t.Error("a policy that waits for ever was taken")
	}
}

func TestRegister(t *testing.T) {
	h := newClientHub(t)
	url, _ := debugger(t, Options{Hub: h}, "secret")
	tool := protocol.Tool{Name: "mcp__t__echo", Server: "t", RawName: "echo", Description: "d", InputSchema: json.RawMessage(`{"type": "object"}`)}
	if err := newClient(t, ClientOptions{URL: url, Token: "secret"}).Register(t.Context(), []protocol.Tool{tool, {Name: "Bash"}}); err != nil {
		t.Fatal(err)
	}
	want := []debug.RegisteredFunction{
		{Name: "Bash", Metadata: json.RawMessage(`{}`)},
		{Name: "mcp__t__echo", Alias: "t/echo", Signature: `{"type":"object"}`, Metadata: json.RawMessage(`{"server":"t","original_name":"echo","description":"d","input_schema":{"type":"object"}}`)},
	}
	if diff := cmp.Diff(want, h.DebuggedFunctionsSortedByName()); diff != "" || len(h.BreakpointSet.Breakpoints()) != 0 {
		t.Error(diff)
	}
	if err := newClient(t, ClientOptions{URL: url}).Register(t.Context(), nil); err == nil {
		t.Error("the token was not asked for")
	}
}

func TestUnreachable(t *testing.T) {
	url, stop := debugger(t, Options{Hub: newClientHub(t)})
	stop()
	c := newClient(t, ClientOptions{URL: url})
	_, _, before := c.BeforeCall(t.Context(), debug.Call{Tool: "Bash"})
	_, after := c.AfterCall(t.Context(), "x", debug.CallOutcome{})
	for what, err := range map[string]error{"register": c.Register(t.Context(), nil), "before": before, "after": after} {
		if lost, ok := errors.AsType[*DebuggerLostError](err); !ok || !strings.Contains(err.Error(), url) || lost.URL != url {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Every decision arrives unchanged.
func TestDecisions(t *testing.T) {
	h := newClientHub(t)
	url, _ := debugger(t, Options{Hub: h})
	c := newClient(t, ClientOptions{URL: url, Client: debug.ClientProxy})
	breakOn(t, h, "Bash")
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := []struct {
		phase debug.CallPhase
		r     debug.ResumeRequest
		want  debug.Decision
	}{
		{debug.PhaseBefore, debug.ResumeRequest{}, debug.Decision{Action: debug.ActionContinue}},
		{debug.PhaseBefore, debug.ResumeRequest{ModifiedArgs: &[]json.RawMessage{raw(`{"b":1,"a":12345678901234567890}`)}}, debug.Decision{Action: debug.ActionModify, Input: raw(`{"b":1,"a":12345678901234567890}`)}},
		{debug.PhaseBefore, debug.ResumeRequest{Action: "skip", FakeResult: raw(`"x"`)}, debug.Decision{Action: debug.ActionSkip, Result: raw(`"x"`)}},
		{debug.PhaseBefore, debug.ResumeRequest{Action: "raise", ExceptionType: "E", ExceptionMessage: "m"}, debug.Decision{Action: debug.ActionRaise, Type: "E", Message: "m"}},
		{debug.PhaseBefore, debug.ResumeRequest{ReplacementFunction: "t/x"}, debug.Decision{Action: debug.ActionRunOtherTool, Tool: "mcp__t__x"}},
		{debug.PhaseAfterCall, debug.ResumeRequest{}, debug.Decision{Action: debug.ActionContinue}},
		{debug.PhaseAfterCall, debug.ResumeRequest{ModifiedResult: raw(`{"a":1}`)}, debug.Decision{Action: debug.ActionModify, Result: raw(`{"a":1}`)}},
		{debug.PhaseAfterCall, debug.ResumeRequest{Action: "raise", ExceptionMessage: "m"}, debug.Decision{Action: debug.ActionRaise, Message: "m"}},
	}
	sub := h.Subscribe(0)
	for i, tt := range tests {
		resume := func(r debug.ResumeRequest) {
			for e := range sub.C {
				if e.Kind == debug.EventPaused {
					if err := h.Resume(t.Context(), e.PauseID, r); err != nil {
						t.Error(err)
					}
					return
				}
			}
		}
		first := debug.ResumeRequest{}
		if tt.phase == debug.PhaseBefore {
			first = tt.r
		}
		go resume(first)
		id, d, err := c.BeforeCall(t.Context(), debug.Call{Tool: "Bash", Input: raw(`{"x":1}`)})
		if tt.phase == debug.PhaseAfterCall {
			go resume(tt.r)
			d, err = c.AfterCall(t.Context(), id, debug.CallOutcome{Result: raw(`"out"`)})
		}
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
		if d.PauseID == "" {
			t.Errorf("%d: the decision names no pause", i)
		}
		d.PauseID = ""
		if diff := cmp.Diff(tt.want, d); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
	}
}

// The debugger is killed during a pause: the caller soon follows its policy.
func TestLostInPause(t *testing.T) {
	for _, policy := range []debug.NoDecisionPolicy{"", debug.PolicyFail, debug.PolicyContinue} {
		t.Run(string(policy), func(t *testing.T) { lostInPause(t, policy) })
	}
}

func lostInPause(t *testing.T, policy debug.NoDecisionPolicy) {
	t.Helper()
	t.Parallel()
	h := newClientHub(t)
	handler := Handler(Options{Hub: h})
	paused := make(chan struct{}, 100)
	url, kill := serveKillable(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, pollPath) {
			paused <- struct{}{}
		}
		handler.ServeHTTP(w, r)
	})
	c := newClient(t, ClientOptions{URL: url, OnLost: policy})
	breakOn(t, h, "Bash")
	go func() {
		<-paused
		kill()
	}()
	began := time.Now()
	_, d, err := c.BeforeCall(t.Context(), debug.Call{Tool: "Bash"})
	if took := time.Since(began); took > time.Minute {
		t.Errorf("%q: took %s", policy, took)
	}
	if policy == debug.PolicyContinue {
		if err != nil || d.Action != debug.ActionContinue {
			t.Errorf("%q: %+v, %v", policy, d, err)
		}
	} else if _, ok := errors.AsType[*DebuggerLostError](err); !ok {
		t.Errorf("%q: %+v, %v", policy, d, err)
	}
}

// A restarted debugger does not know the pause.
func TestRestartedInPause(t *testing.T) {
	h := newClientHub(t)
	first, fresh := Handler(Options{Hub: h}), Handler(Options{Hub: newClientHub(t)})
	var restarted atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case restarted.Load():
			fresh.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, pollPath): // the call is paused, and the client waits for the decision
			restarted.Store(true)
			panic(http.ErrAbortHandler)
		default:
			first.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	c := newClient(t, ClientOptions{URL: s.URL})
	breakOn(t, h, "Bash")
	if _, _, err := c.BeforeCall(t.Context(), debug.Call{Tool: "Bash"}); err == nil || !strings.Contains(err.Error(), "pause_not_found") {
		t.Errorf("%v", err)
	}
}

// The debugger shuts down normally during a pause.
func TestClosedInPause(t *testing.T) {
	h := newClientHub(t)
	url, _ := debugger(t, Options{Hub: h})
	c := newClient(t, ClientOptions{URL: url})
	breakOn(t, h, "Bash")
	sub := h.Subscribe(0)
	go func() {
		<-sub.C
		h.Close()
	}()
	if _, _, err := c.BeforeCall(t.Context(), debug.Call{Tool: "Bash"}); err == nil {
		t.Error("the call went on as if somebody had decided")
	}
}

func TestCancelledInPause(t *testing.T) {
	h := newClientHub(t)
	url, _ := debugger(t, Options{Hub: h})
	c := newClient(t, ClientOptions{URL: url})
	breakOn(t, h, "Bash")
	sub := h.Subscribe(0)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-sub.C
		cancel()
	}()
	if _, _, err := c.BeforeCall(ctx, debug.Call{Tool: "Bash"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if e := <-sub.C; e.Action != string(debug.ActionEndedWithoutDecision) { // immediately, not after the lease expires
		t.Errorf("%+v", e)
	}
}

// Ten clients pause and resume a thousand calls, and none is lost.
func TestManyPauses(t *testing.T) {
	h := newClientHub(t)
	url, _ := debugger(t, Options{Hub: h})
	if err := h.BreakpointSet.SetBreakpoint(debug.BreakpointSettings{Name: "Bash", After: new("go")}); err != nil {
		t.Fatal(err)
	}
	sub := h.Subscribe(10_000)
	var wg sync.WaitGroup
	const clients, each = 10, 100
	for i := range clients {
		c := newClient(t, ClientOptions{URL: url})
		wg.Go(func() {
			for n := range each {
				input := fmt.Sprintf(`{"v":"%d-%d"}`, i, n)
				id, d, err := c.BeforeCall(t.Context(), debug.Call{Tool: "Bash", Input: json.RawMessage(input)})
				if err != nil || string(d.Input) != fmt.Sprintf(`{"got":{"v":"%d-%d"}}`, i, n) {
					t.Errorf("%s: %+v, %v", input, d, err)
					return
				}
				if _, err := c.AfterCall(t.Context(), id, debug.CallOutcome{Result: json.RawMessage(input)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for resumed := 0; resumed < clients*each; {
			e := <-sub.C
			if e.Kind != debug.EventPaused {
				continue
			}
			if err := h.Resume(t.Context(), e.PauseID, debug.ResumeRequest{ModifiedInputExpr: `{"got": input}`}); err != nil {
				t.Error(err)
				return
			}
			resumed++
		}
	})
	wg.Wait()
	if s := h.Status(); s.Paused != 0 || s.ActiveCalls != 0 || s.TotalCalls != clients*each {
		t.Errorf("left over: %+v", s)
	}
}

// BenchmarkCall measures a call over HTTP on loopback without a breakpoint: at most 1 ms.
func BenchmarkCall(b *testing.B) {
	h := newClientHub(b)
	url, _ := debugger(b, Options{Hub: h})
	c := newClient(b, ClientOptions{URL: url})
	breakOn(b, h, "mcp__other__*")
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		id, _, err := c.BeforeCall(b.Context(), debug.Call{Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`)})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.AfterCall(b.Context(), id, debug.CallOutcome{Result: json.RawMessage(`"done"`)}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	if half := took[len(took)/2]; half > time.Millisecond { // the median, because other programs affect the mean
		b.Errorf("half of the calls take more than %s", half)
	}
}

package compat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/internal/debug"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newClients(t *testing.T, o debug.Options) (*debug.Hub, *OlderClients) {
	t.Helper()
	var n atomic.Int64
	o.Now, o.NewID = time.Now, func() string { return fmt.Sprintf("id-%d", n.Add(1)) }
	h, err := debug.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h, New(h)
}

func breakOn(t *testing.T, h *debug.Hub) {
	t.Helper()
	if err := h.BreakpointSet.SetBreakpoint(debug.BreakpointSettings{Name: "f"}); err != nil {
		t.Fatal(err)
	}
}

func code(err error) string {
	if e, ok := errors.AsType[*debug.Error](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

// An undecided call of an older client fails like a call of a client of claudeless.
func TestPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newClients(t, debug.Options{PauseTimeout: 3 * time.Second, OnTimeout: debug.PolicyFail})
		breakOn(t, h)
		b, err := h.ReportCallStart(t.Context(), c.WithOlderClientAsCaller(debug.Call{Tool: "f"}, CallData{}))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		d, decided, err := h.Wait(t.Context(), b.PauseID)
		if took := time.Since(began); err != nil || !decided || d.Action != debug.ActionRaise || took != 3*time.Second {
			t.Errorf("%+v after %s, %v", d, took, err)
		}
		if !strings.Contains(string(d.Encoded), `"exception_type":"TimeoutError"`) {
			t.Errorf("the client reads %s", d.Encoded)
		}
	})
}

// The lease of an older client begins with its first poll.
func TestForeignLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newClients(t, debug.Options{})
		breakOn(t, h)
		b, err := h.ReportCallStart(t.Context(), c.WithOlderClientAsCaller(debug.Call{Tool: "f"}, CallData{}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour) // on the fake clock of synctest
		if len(h.Pauses()) != 1 {
			t.Error("the pause ended without a poll")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, decided, err := h.Wait(ctx, b.PauseID); decided || err != nil {
			t.Errorf("decided %v, %v", decided, err)
		}
		time.Sleep(5*time.Minute + time.Second)
		if len(h.Pauses()) != 0 {
			t.Error("the pause outlived its client")
		}
	})
}

// After a call an older client polls at once or never. A client that continues before a decision ends its pause.
func TestForeignPauseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newClients(t, debug.Options{})
		breakOn(t, h)
		for _, failed := range []bool{false, true} {
			if _, err := h.BreakpointSet.SetDefaultBreakpointBehavior(map[bool]string{false: "stop", true: "stop_exception"}[failed]); err != nil {
				t.Fatal(err)
			}
			b, err := h.ReportCallStart(t.Context(), c.WithOlderClientAsCaller(debug.Call{Tool: "f"}, CallData{}))
			if err != nil {
				t.Fatal(err)
			}
			after, err := h.RecordCallOutcomeAndPauseIfStopped(t.Context(), debug.CompletionReport{CallID: b.CallID, CallOutcome: debug.CallOutcome{Failed: failed}})
			if err != nil || after == "" {
				t.Fatalf("%q, %v", after, err)
			}
			if open := h.Pauses(); len(open) != 1 || open[0].ID != after {
				t.Errorf("failed %v: paused %+v", failed, open)
			}
			if d, _, err := h.Wait(t.Context(), b.PauseID); err != nil || d.Action != debug.ActionEndedWithoutDecision {
				t.Errorf("failed %v: %+v, %v", failed, d, err)
			}
			time.Sleep(5*time.Minute + time.Second) // on the fake clock of synctest
			if len(h.Pauses()) != 0 {
				t.Errorf("failed %v: the pause stays", failed)
			}
		}
		if s := h.Status(); s.ActiveCalls != 0 || s.TotalCalls != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// S69: an evaluation by an older client without its own limit ends shortly after the client's limit of 30 s (B13), and
// is not sent later.
func TestRelayTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newClients(t, debug.Options{})
		breakOn(t, h)
		b, err := h.ReportCallStart(t.Context(), c.WithOlderClientAsCaller(debug.Call{Tool: "f"}, CallData{}))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := h.Evaluate(t.Context(), debug.EvaluateParams{PauseID: b.PauseID, Expr: "1"}); code(err) != debug.CodeEvalTimeout {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took != 35*time.Second {
			t.Errorf("took %s", took)
		}
		if q := c.TakeEvalRequest(b.PauseID); q != nil {
			t.Errorf("still asked: %+v", q)
		}
	})
}

func TestInspect(t *testing.T) {
	h, _ := newClients(t, debug.Options{})
	put := func(data string) string {
		cid, err := h.Store().Put([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return cid
	}
	inspect := func(cid string) (Inspection, error) {
		data, err := h.StoredValueByContentID(cid)
		if err != nil {
			return Inspection{}, err
		}
		return Inspect(cid, data), nil
	}
	deep := put(`{"a":{"b":{"c":{"d":1}}},"list":[1,"x"]}`)
	got, err := inspect(deep) // S71
	want := map[string]any{
		"a": map[string]any{"b": map[string]any{"c": "<object>"}}, "list": map[string]any{"0": json.Number("1"), "1": "x"},
	}
	if err != nil || got.Type != "object" || cmp.Diff(want, got.Attributes) != "" {
		t.Errorf("%+v, %v", got, err)
	}
	many, err := inspect(put("[" + strings.Repeat("0,", 200) + "0]"))
	if err != nil || len(many.Attributes) != 101 || many.Attributes["…"] != "101 more" {
		t.Errorf("%d members, %v", len(many.Attributes), err)
	}
	for _, cid := range []string{"", "xyz", strings.Repeat("0", 128)} { // S72
		if _, err := inspect(cid); code(err) != debug.CodeContentIDNotFound {
			t.Errorf("%q: %v", cid, err)
		}
	}
	for data, want := range map[string][2]string{ // S73: values that are not JSON; S74: values that cannot be decoded
		"\x00\x01\xff":               {"bytes", ""},
		"\x80\x04K\x03.":             {"int", ""},
		"cdatetime\ndate\n(K\x01tR.": {"datetime.date", ""},
		"\x80\x04broken":             {"unknown", "deserialization_failed"},
		"{broken":                    {"unknown", "deserialization_failed"},
	} {
		got, err := inspect(put(data))
		if err != nil || got.Type != want[0] || got.Error != want[1] || got.Repr == "" || got.Size != len(data) {
			t.Errorf("%q: %+v, %v", data, got, err)
		}
	}
}

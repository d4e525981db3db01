package output_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/claude/output"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func stream(events ...protocol.Event) output.Events {
	return func(yield func(protocol.Event, error) bool) {
		for _, ev := range events {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

func status(s string) protocol.Event {
	return &protocol.SystemEvent{Subtype: "status", Fields: []protocol.Field{{Key: "status", Value: s}}, SessionID: "S", UUID: "U"}
}

func result(change func(*protocol.ResultEvent)) *protocol.ResultEvent {
	r := &protocol.ResultEvent{Type: "result", Subtype: "success", NumTurns: 1, Result: new("done"), ModelUsageSince: &map[string]protocol.ModelUsage{}}
	if change != nil {
		change(r)
	}
	return r
}

// The texts are those of cli-observed section 2.
func TestText(t *testing.T) {
	limits := output.Limits{MaxTurns: 2, MaxBudgetUSD: 0.5}
	tests := []struct {
		name   string
		result *protocol.ResultEvent
		want   string
	}{
		{"newline added", result(nil), "done\n"},
		{"newline kept", result(func(r *protocol.ResultEvent) { r.Result = new("done\n") }), "done\n"},
		{"empty", result(func(r *protocol.ResultEvent) { r.Result = new("") }), "\n"},
		{"api error", result(func(r *protocol.ResultEvent) { r.IsError, r.Result = true, new("API Error: 400 x") }), "API Error: 400 x\n"},
		{"max turns", result(func(r *protocol.ResultEvent) { r.Subtype, r.Result = "error_max_turns", nil }), "Error: Reached max turns (2)"},
		{"budget", result(func(r *protocol.ResultEvent) { r.Subtype, r.Result = "error_max_budget_usd", nil }), "Error: Exceeded USD budget (0.5)"},
		{"no rule", result(func(r *protocol.ResultEvent) {
			r.Subtype, r.Result, r.Errors = "error_during_execution", nil, []string{"no rule matches"}
		}), "Error: no rule matches\n"},
		{"resume missing", result(func(r *protocol.ResultEvent) {
			r.Subtype, r.Result, r.NumTurns, r.Errors = "error_during_execution", nil, 0, []string{"No conversation found"}
		}), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			if err := output.ResultTexts(limits)(&out, stream(status("requesting"), tt.result)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStreamJSONLeavesTracesOut(t *testing.T) {
	var out strings.Builder
	text := &protocol.UserEvent{Type: "user", Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: "<a>\u2028ü&"}}}
	if err := output.StreamJSON(&out, stream(&protocol.RuleMatchOutcome{Rule: "x"}, status("a"), text)); err != nil {
		t.Fatal(err)
	}
	want := `{"type":"system","subtype":"status","status":"a","session_id":"S","uuid":"U"}
{"type":"user","message":{"role":"user","content":"<a>\u2028ü&"},"parent_tool_use_id":null,"session_id":"","uuid":""}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

func TestJSONIsTheLastResultAlone(t *testing.T) {
	var out strings.Builder
	if err := output.LastResultJSON(&out, stream(status("a"), result(nil), result(func(r *protocol.ResultEvent) { r.Result = new("second") }))); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"result":"second"`) || strings.Contains(got, "model_usage_since_last_result") {
		t.Errorf("stdout: %s", got)
	}
}

func TestJSONVerboseIsOneArray(t *testing.T) {
	var out strings.Builder
	if err := output.JSONVerbose(&out, stream(status("a"), &protocol.RuleMatchOutcome{}, &protocol.SystemEvent{Subtype: "hook_started"}, status("b"))); err != nil {
		t.Fatal(err)
	}
	want := `[{"type":"system","subtype":"status","status":"a","session_id":"S","uuid":"U"},{"type":"system","subtype":"status","status":"b","session_id":"S","uuid":"U"}]` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

// Output that was written before an error is kept, and the error is returned.
func TestErrorOfTheStream(t *testing.T) {
	broken := errors.New("crash")
	events := func(yield func(protocol.Event, error) bool) {
		_ = yield(status("a"), nil) && yield(nil, broken)
	}
	for name, encode := range map[string]output.Encoder{
		"stream-json": output.StreamJSON, "json": output.LastResultJSON, "verbose": output.JSONVerbose, "text": output.ResultTexts(output.Limits{}),
	} {
		var out strings.Builder
		if err := encode(&out, events); !errors.Is(err, broken) {
			t.Errorf("%s: error %v", name, err)
		}
		if name == "stream-json" && !strings.Contains(out.String(), `"status":"a"`) {
			t.Errorf("%s: lost what was written: %q", name, out.String())
		}
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestErrorOfTheWriterEndsTheLoop(t *testing.T) {
	for name, encode := range map[string]output.Encoder{"stream-json": output.StreamJSON, "verbose": output.JSONVerbose} {
		seen := 0
		events := func(yield func(protocol.Event, error) bool) {
			for range 5 {
				seen++
				if !yield(status("a"), nil) {
					return
				}
			}
		}
		if err := encode(closedPipe{}, events); err == nil || seen != 1 {
			t.Errorf("%s: error %v after %d events", name, err, seen)
		}
	}
}

// counter records the sizes of its writes, and the beginnings and ends of groups.
type counter struct {
	bytes, largest int
	groups         []int
	last           byte
}

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += len(p)
	c.largest = max(c.largest, len(p))
	if len(p) > 0 {
		c.last = p[len(p)-1]
	}
	return len(p), nil
}

func (c *counter) WriteGroup(f func(io.Writer) error) error {
	before := c.bytes
	err := f(c)
	c.groups = append(c.groups, c.bytes-before)
	return err
}

// A repeated line is written in consecutive pieces, without being held in memory.
func TestRepeatedLine(t *testing.T) {
	const times = 100_000_000
	w := &counter{}
	err := output.StreamJSON(w, stream(
		&protocol.VerbatimOutput{Stdout: []byte("0123456789"), Times: times, End: []byte("\n")},
		&protocol.VerbatimOutput{Stdout: []byte("once"), End: []byte("\n")},
		&protocol.VerbatimOutput{Stdout: []byte("ab"), Times: 3},
	))
	if err != nil || w.bytes != 10*times+1+5+6 || w.last != 'b' || w.largest > 64<<10 {
		t.Errorf("%d bytes, pieces of up to %d, %v", w.bytes, w.largest, err)
	}
	if diff := cmp.Diff([]int{10*times + 1, 6}, w.groups); diff != "" {
		t.Error(diff)
	}
}

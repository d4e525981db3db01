package bash

import (
	"strings"
	"testing"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
	"github.com/claudeless/claudeless/tests/tooltest"
)

// waitNotices waits until the set is idle and returns the notices for the model.
func waitNotices(set *task.Set) []string {
	for set.HasRunningBackgroundTask() {
		<-set.ChangeSignal()
	}
	var out []string
	for n, ok := set.TakeNextNotice(task.ConversationPhaseInTurn); ok; n, ok = set.TakeNextNotice(task.ConversationPhaseInTurn) {
		out = append(out, n.Text)
	}
	return out
}

// Texts observed with 2.1.329.
func TestMonitor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, command string
		want          []string // parts of the last notice
	}{
		{"events", "echo a; echo b >&2; printf c", []string{`<summary>Monitor event: "d"</summary>`, "<event>a\nc</event>", `<summary>Monitor "d" stream ended</summary>`}},
		{"silent", "echo b >&2", []string{"<status>completed</status>", `Monitor "d" ended without producing output (exit 0)`}},
		{"failed", "echo a; exit 3", []string{"<event>a</event>", "<status>failed</status>", `Monitor "d" script failed (exit 3)`}},
		{"expired", "echo a; exec sleep 60", []string{"<event>[Monitor expired after 1s with 1 events delivered. Re-arm it if you still need the watch.]</event>"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			set := newTasks(t)
			r := call(t, newTools(t, testOptions{Tasks: set}), "Monitor", tooltest.Input{"command": tt.command, "description": "d", "timeout_ms": 1000})
			id := tooltest.Output[struct{ TaskID string }](t, r.ToolResult).TaskID
			if !strings.HasPrefix(r.Content.Text, "Monitor started (task "+id+", expires in 1s unless the source ends first; ") {
				t.Errorf("text %q", r.Content.Text)
			}
			tooltest.WantOutput(t, r.ToolResult, `{"taskId":"`+id+`","timeoutMs":1000,"persistent":false}`)
			told := waitNotices(set)
			if len(told) == 0 {
				t.Fatal("the model is told nothing")
			}
			for _, part := range tt.want {
				if last := told[len(told)-1]; !strings.Contains(last, part) {
					t.Errorf("no %q in %q", part, last)
				}
			}
		})
	}
}

// The key persistent is accepted and ignored (observed with 2.1.330).
func TestMonitorPersistent(t *testing.T) {
	input := []byte(`{"description":"d","command":"true","persistent":true}`)
	if r := newTools(t, testOptions{}).Precheck(t.Context(), protocol.ToolUse{Name: "Monitor", Input: input}); r != nil {
		t.Errorf("refused: %+v", r)
	}
}

func TestMonitorRefusals(t *testing.T) {
	for input, want := range map[string]string{
		`{"description":"d"}`: "exactly one of command or ws",
		`{"description":"d","command":"x","ws":{"url":"ws://x"}}`: "exactly one of command or ws",
		`{"description":"d","command":"x","timeout_ms":10}`:       "Too small: expected number to be >=1000",
		`{"description":"d","command":"x","timeout_ms":99999999}`: "timeout_ms must be ≤ 3600000",
		`{"command":"x","timeout_ms":1000}`:                       "The required parameter `description` is missing",
	} {
		r := newTools(t, testOptions{}).Precheck(t.Context(), protocol.ToolUse{Name: "Monitor", Input: []byte(input)})
		if r == nil || !strings.Contains(r.Content.Text, want) {
			t.Errorf("%s: %+v, want %q", input, r, want)
		}
	}
}

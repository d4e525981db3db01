package terminal

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// TestBackgroundWork: while an agent runs in the background, the title is busy and the agent has a row; commands are
// counted.
func TestBackgroundWork(t *testing.T) {
	term := idleTerminal(t)
	s := &term.console.screen
	v := &eventView{screen: s, player: term.player, clock: term.plan.Clock}
	event := func(subtype string, kv ...any) {
		ev := &protocol.SystemEvent{Subtype: subtype}
		for pair := range slices.Chunk(kv, 2) {
			ev.Fields = append(ev.Fields, protocol.Field{Key: pair[0].(string), Value: pair[1]})
		}
		v.showSystem(ev)
	}
	shown := func() string { return strings.Join(s.renderFrame(time.Unix(1002, 0)).rows, "\n") }

	event("task_started", "task_id", "a", "description", "Count files", "subagent_type", "general-purpose", "is_backgrounded", true, "task_type", task.KindAgent)
	if s.windowTitle() != "◑ Claude Code" {
		t.Errorf("title %q", s.windowTitle())
	}
	if text := shown(); !strings.Contains(text, "◯ general-purpose  Count files") || !strings.Contains(text, "2s") || !strings.Contains(text, "↓ to") {
		t.Errorf("%s", text)
	}
	s.rows = 14 // the rows from the input field on fill half of the screen
	if text := shown(); !strings.HasSuffix(text, "● main") {
		t.Errorf("14 rows:\n%s", text)
	}
	event("task_started", "task_id", "b", "description", "Wait", "is_backgrounded", true, "task_type", task.KindBash)
	if text := shown(); !strings.Contains(text, " · 1 shell") {
		t.Errorf("%s", text)
	}
	event("task_notification", "task_id", "a")
	event("task_notification", "task_id", "b")
	named := *s
	named.sessionTitle = "a name"
	if got := named.windowTitle(); got != "✳ a name" {
		t.Errorf("title of a session with a name: %q", got)
	}
	if s.windowTitle() != idleWindowGlyph+defaultWindowTitle {
		t.Errorf("title %q", s.windowTitle())
	}
	last := s.entries[len(s.entries)-1]
	if diff := cmp.Diff(`Agent "Count files" finished · 0s`, last.text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := shown(); strings.Contains(text, "general-purpose") || !strings.Contains(text, "/tasks to see subagents") || strings.Contains(text, "shell") {
		t.Errorf("%s", text)
	}
}

// TestRestore: a continued conversation is shown unchanged, without the texts that only the model receives.
func TestRestore(t *testing.T) {
	term := idleTerminal(t)
	s := &term.console.screen
	v := &eventView{screen: s, player: term.player, clock: term.plan.Clock}
	v.showRestoredMessage("user", protocol.Content{Text: "hello"})
	v.showRestoredMessage("user", protocol.Content{Blocks: []protocol.Block{protocol.Text("<system-reminder>x</system-reminder>"), protocol.Text("more")}})
	v.showRestoredMessage("assistant", protocol.Content{Blocks: []protocol.Block{protocol.Text("Hello there.")}})
	var got []string
	for _, e := range s.entries {
		got = append(got, e.glyph+e.text)
	}
	if diff := cmp.Diff([]string{"❯ hello", "❯ more", "● Hello there."}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

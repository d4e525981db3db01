package transcript_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

func record(t *testing.T, s *transcript.Transcript, events ...protocol.Event) {
	t.Helper()
	for _, ev := range events {
		if err := s.Record(ev); err != nil {
			t.Fatal(err)
		}
	}
}

func newFields(pairs ...any) []protocol.Field {
	var out []protocol.Field
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, protocol.Field{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return out
}

// Checklist row 39: the .meta.json of an agent inside an agent, and a line that
// stdout does not show. A command in the background has no transcript.
func TestNestedSubagent(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	w.turn(t, s, "hi")
	parent := "toolu_1"
	record(
		t, s,
		&protocol.SystemEvent{Subtype: "task_started", Fields: newFields("task_id", "b1", "tool_use_id", "toolu_0", "description", "sleep")},
		&protocol.SystemEvent{Subtype: "task_started", Fields: newFields(
			"task_id", "a2", "tool_use_id", parent, "description", "inner", "subagent_type", "mine", "spawn_depth", 2, "parent_task_id", "a1",
		)},
		&protocol.TranscriptOnlyEvent{Event: &protocol.AssistantEvent{
			Type: "assistant", UUID: w.id(), ParentToolUseID: &parent, AgentID: "a2", SubagentType: "mine", TaskDescription: "inner",
			Message: protocol.AssistantMessage{Role: "assistant", Content: []protocol.Block{protocol.Text("quiet")}},
		}},
	)
	dir := filepath.Join(strings.TrimSuffix(s.Path(), ".jsonl"), "subagents")
	meta := func() string {
		data, err := os.ReadFile(filepath.Join(dir, "agent-a2.meta.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const want = `{"agentType":"mine","isBuiltIn":false,"description":"inner","toolUseId":"toolu_1","parentAgentId":"a1","spawnDepth":2,"requestShape":"foreground","requestNonInteractive":true}`
	if diff := cmp.Diff(want, meta()); diff != "" {
		t.Errorf("meta (-want +got):\n%s", diff)
	}
	record(t, s, &protocol.SystemEvent{Subtype: "task_notification", Fields: newFields("task_id", "a2")})
	if diff := cmp.Diff(strings.TrimSuffix(want, "}")+`,"finished":true}`, meta()); diff != "" {
		t.Errorf("meta at the end (-want +got):\n%s", diff)
	}
	lines := readLines(t, filepath.Join(dir, "agent-a2.jsonl"))
	if len(lines) != 1 || lines[0]["isSidechain"] != true {
		t.Errorf("lines %v", lines)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("files %v, %v", entries, err)
	}
}

// A killed process leaves a call without a result; the next process records that before its prompt.
func TestLostCall(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	use := w.id()
	record(
		t, s,
		&protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "one"}},
		&protocol.AssistantEvent{UUID: use, Message: protocol.AssistantMessage{ID: "m", Role: "assistant", Content: []protocol.Block{call("toolu_1")}}},
	)
	for range 2 { // the second process finds no missing result
		next := w.mustOpen(t, transcript.Options{Resume: s.ID()})
		w.turn(t, next, "two")
		closeAll(t, next)
	}
	said := messageLines(readLines(t, s.Path()))
	if got := len(said); got != 2+2+2*2 {
		t.Fatalf("%d messages: %v", got, said)
	}
	if l := said[2]; l["parentUuid"] != use || l["sourceToolAssistantUUID"] != use || l["toolDenialKind"] != "interrupted" || l["promptId"] != "p-two" {
		t.Errorf("result %v", l)
	}
	answer := said[3]["message"].(line)["content"].([]any)[0].(line)["text"]
	if said[3]["parentUuid"] != said[2]["uuid"] || answer != "No response requested." || said[4]["parentUuid"] != said[3]["uuid"] {
		t.Errorf("answer %v, then %v", said[3], said[4])
	}
}

// Checklist row 67: after /compact the conversation begins at the boundary, and the output of a local command is a
// system line.
func TestCompactedTranscript(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	before := w.turn(t, s, "before")
	boundary, summary, cost := w.id(), w.id(), w.id()
	yes, no := true, false
	shown := &protocol.UserEvent{UUID: summary, IsSynthetic: true, IsReplay: &no, Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: "summary"}}}
	said := &protocol.UserEvent{UUID: w.id(), IsReplay: &yes, Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: "Compacted"}}}
	record(
		t, s,
		&protocol.SystemEvent{Subtype: "compact_boundary", UUID: boundary, Fields: newFields("compact_metadata", protocol.CompactMetadata{Trigger: "manual", PreTokens: 7})},
		&protocol.ConversationCompacted{Summary: shown, Command: &protocol.PromptAccepted{LocalCommand: true, Content: protocol.Content{Text: "/compact"}}, Output: said},
		shown, said,
		&protocol.AssistantEvent{
			UUID: cost, LocalCommandSource: "<local-command-stdout>$0</local-command-stdout>", LocalCommandRun: &protocol.LocalCommand{Command: "cost"},
		},
	)
	after := w.turn(t, s, "after")
	found := map[string]line{}
	for _, l := range readLines(t, s.Path()) {
		if id, ok := l["uuid"].(string); ok {
			found[id] = l
		}
	}
	if b := found[boundary]; b["parentUuid"] != nil || b["logicalParentUuid"] == before[len(before)-1] || found[b["logicalParentUuid"].(string)]["type"] != "attachment" || b["compactMetadata"].(map[string]any)["preTokens"] != 7.0 {
		t.Errorf("boundary %v", b)
	}
	if l := found[summary]; l["parentUuid"] != boundary || l["isCompactSummary"] != true {
		t.Errorf("summary %v", l)
	}
	if l := found[cost]; l["subtype"] != "local_command" || l["commandRun"].(map[string]any)["command"] != "cost" {
		t.Errorf("local command %v", l)
	}
	if l := found[after[0]]; l["parentUuid"] != cost {
		t.Errorf("next prompt %v", l)
	}
	closeAll(t, s)
	var texts []string
	for _, m := range w.mustOpen(t, transcript.Options{Resume: s.ID()}).ResumedHistory() {
		if text := m.Content.Plain(); !strings.HasPrefix(text, "<local-command-caveat>") {
			texts = append(texts, text)
		}
	}
	if diff := cmp.Diff([]string{"summary", "/compact", "Compacted", "after", "answer to after"}, texts); diff != "" {
		t.Errorf("what a resumed session knows (-want +got):\n%s", diff)
	}
}

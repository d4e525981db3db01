package transcript

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// A reminder comes after the reminders at the beginning of a message and before its other blocks.
func TestInsertReminder(t *testing.T) {
	const first, second, other = "<system-reminder>\nfirst\n</system-reminder>", "<system-reminder>\nsecond\n</system-reminder>", "hi"
	for _, tt := range []struct{ content, want []string }{
		{[]string{first, other}, []string{first, second, other}},
		{[]string{first}, []string{first, second}},
		{[]string{other}, []string{second, other}},
	} {
		c := &modelInput{}
		var content []json.RawMessage
		for _, text := range tt.content {
			content = append(content, rawTextBlock(text+"\n"))
		}
		c.addOrMergeMessage("user", "", content, false)
		c.insertReminderInUserMessage(1, second, false)
		var got []string
		for _, raw := range c.messages[0].content {
			var b struct{ Text string }
			if err := json.Unmarshal(raw, &b); err != nil {
				t.Fatal(err)
			}
			got = append(got, b.Text[:len(b.Text)-1])
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.content, diff)
		}
	}
}

// If a skill is loaded while a message is streamed, the next message is attributed to the skill,
// not the rest of the current one.
func TestAttributionOfMessage(t *testing.T) {
	var c attributionTracker
	var got []string
	reply := func(id string) {
		got = append(got, c.attributeMessage(&protocol.AssistantEvent{Message: protocol.AssistantMessage{ID: id}}).Skill)
	}
	reply("msg_1")
	c.recordSkill("tidy")
	reply("msg_1")
	reply("msg_2")
	if diff := cmp.Diff([]string{"", "", "tidy"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// In a message, results precede texts. A message is written again only if it differs from its lines.
func TestMessageOfSeveralLines(t *testing.T) {
	result := func(id string) []json.RawMessage {
		return []json.RawMessage{json.RawMessage(`{"type":"tool_result","tool_use_id":"` + id + `"}`)}
	}
	var c modelInput
	c.addOrMergeMessage("user", "", result("1"), false)
	c.addOrMergeMessage("user", "", []json.RawMessage{rawTextBlock("skill")}, false)
	if m := c.messages[0]; len(c.messages) != 1 || m.differsFromLines {
		t.Errorf("one result: %+v", c.messages)
	}
	c.addOrMergeMessage("user", "", result("2"), false)
	if m := c.messages[0]; !m.differsFromLines || !isBlockOfType(m.content[1], "tool_result") || !isBlockOfType(m.content[2], "text") {
		t.Errorf("two results: %s", m.content)
	}
}

// A reply remains one message of the next request, even if its first call ends before its last block is complete.
func TestReplyAroundResult(t *testing.T) {
	var c modelInput
	text := func(s string) []json.RawMessage { return []json.RawMessage{rawTextBlock(s)} }
	c.addOrMergeMessage("assistant", "m1", text("a"), false)
	c.addOrMergeMessage("user", "", text("result 1"), false)
	c.addOrMergeMessage("assistant", "m1", text("b"), false)
	c.addOrMergeMessage("user", "", text("result 2"), false)
	if len(c.messages) != 2 || len(c.messages[0].content) != 2 || !c.messages[0].differsFromLines || !c.messages[1].differsFromLines {
		t.Errorf("messages %+v", c.messages)
	}
}

// Texts of hooks about a call follow its result, and a prompt after a result belongs to the message of the result.
func TestRemindersFollowResults(t *testing.T) {
	var c modelInput
	text := func(s string) []json.RawMessage { return []json.RawMessage{rawTextBlock(s)} }
	c.addOrMergeMessage("assistant", "m1", text("call"), false)
	c.addOrMergeMessage("system", "", text("hook"), true)
	c.addOrMergeMessage("user", "", []json.RawMessage{json.RawMessage(`{"type":"tool_result","tool_use_id":"1"}`)}, false)
	c.addOrMergeMessage("system", "", text("stop"), true)
	c.addOrMergeMessage("user", "", text("next prompt"), false)
	c.moveUnsentReminders(true)
	var roles []string
	for _, m := range c.messages {
		roles = append(roles, m.role)
	}
	if diff := cmp.Diff([]string{"assistant", "user", "system"}, roles); diff != "" || len(c.messages[1].content) != 2 {
		t.Errorf("%s: (-want +got)\n%s", c.messages[1].content, diff)
	}
}

type stoppedClock struct{}

func (stoppedClock) Now() time.Time { return time.Time{} }

func (stoppedClock) NewID() string { return "id" }

// Results of ToolSearch load tools; each such result adds a text after all results of the message.
func TestToolsLoadedByResults(t *testing.T) {
	log := newRecorder(&conversation{options: Options{Clock: stoppedClock{}}, lastLineUUIDs: map[string]string{}}).requests
	c := log.getOrAddInputOf("")
	for _, result := range []string{
		`{"tool_use_id":"1","type":"tool_result","content":[{"type":"tool_reference","tool_name":"CronList"}]}`,
		`{"tool_use_id":"2","type":"tool_result","content":[{"type":"tool_reference","tool_name":"Read"}]}`,
		`{"tool_use_id":"3","type":"tool_result","content":[{"type":"text","text":"x"}]}`,
	} {
		c.addUserMessage([]json.RawMessage{json.RawMessage(result)}, false)
	}
	var kinds []string
	for _, raw := range c.messages[0].content {
		var b struct{ Type, Text string }
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, b.Type+b.Text)
	}
	want := []string{"tool_result", "tool_result", "tool_result", "textTool loaded.", "textTool loaded."}
	if diff := cmp.Diff(want, kinds); diff != "" || len(c.messages) != 1 {
		t.Errorf("%d messages, blocks (-want +got):\n%s", len(c.messages), diff)
	}
	now := RequestContext{Tools: []protocol.Tool{{Name: "CronDelete"}, {Name: "CronList"}, {Name: "Read"}}, Deferred: []string{"CronDelete", "CronList"}}
	requested := now.requestTools(c.loadedTools)
	list := protocol.RequestTool{Name: "CronList", Description: "The tool CronList.", InputSchema: json.RawMessage(anyObjectInputSchema), DeferLoading: true}
	record := protocol.AttachmentLine{Attachment: newAttachment("deferred_tools_record", "entries", []protocol.RequestTool{list})}
	got := log.appendLoadedToolsRecord(nil, "", requested)
	if len(got) != 1 || len(requested) != 2 {
		t.Fatalf("%d tools, recorded %v", len(requested), got)
	}
	if diff := cmp.Diff(record.Attachment, got[0].(protocol.AttachmentLine).Attachment); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := log.appendLoadedToolsRecord(nil, "", requested); again != nil {
		t.Errorf("recorded again: %v", again)
	}
}

package transcript_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// pickMembers returns the named members of the lines that have one of them.
func pickMembers(t *testing.T, s *transcript.Transcript, keys ...string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, line := range readLines(t, s.Path()) {
		some := map[string]any{}
		for _, key := range keys {
			if v, ok := line[key]; ok {
				some[key] = v
			}
		}
		if a, ok := line["attachment"].(map[string]any); ok && a["type"] == "command_permissions" {
			some["attachment"] = a
		}
		if len(some) > 0 {
			all = append(all, some)
		}
	}
	return all
}

// The line of a command has no mode and no source. The line with the text of the command follows
// directly, and the model's reply is attributed to the command (E14, as 2.1.329 writes it).
func TestExpandedCommand(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	greet := &protocol.ExpandedCommand{Name: "team:greet", Tools: []string{"Read"}}
	text := protocol.Content{Blocks: []protocol.Block{protocol.Text("Say hello.\n")}}
	record(
		t, s,
		&protocol.PromptQueued{Content: protocol.Content{Text: "/greet"}},
		&protocol.PromptAccepted{UUID: "u1", PermissionMode: "default", Content: protocol.Content{Text: "<tags>"}, Expansion: greet},
		&protocol.PromptAccepted{UUID: "u2", WrittenByCLI: true, Content: text, Expansion: greet},
		&protocol.AssistantEvent{UUID: "a1", Message: protocol.AssistantMessage{Content: []protocol.Block{protocol.Text("hello")}}},
		&protocol.UserEvent{UUID: "u3", IsSynthetic: true, ToolUseID: "t1", Expansion: &protocol.ExpandedCommand{Name: "tidy"}, Message: protocol.UserContent{Content: text}},
		&protocol.AssistantEvent{UUID: "a2", Message: protocol.AssistantMessage{Content: []protocol.Block{protocol.Text("tidied")}}},
		&protocol.PromptAccepted{UUID: "u4", PermissionMode: "default", Content: protocol.Content{Text: "more"}},
		&protocol.AssistantEvent{UUID: "a3", Message: protocol.AssistantMessage{Content: []protocol.Block{protocol.Text("more")}}},
	)
	closeAll(t, s)
	got := pickMembers(t, s, "permissionMode", "turnCompanion", "sourceToolUseID", "attributionSkill", "attributionPlugin", "lastPrompt")
	want := []map[string]any{
		{"turnCompanion": true},
		{"attachment": map[string]any{"type": "command_permissions", "allowedTools": []any{"Read"}}},
		{"attributionSkill": "team:greet", "attributionPlugin": "team"},
		{"turnCompanion": true, "sourceToolUseID": "t1"},
		{"attachment": map[string]any{"type": "command_permissions", "allowedTools": []any{}}},
		{"attributionSkill": "tidy"},
		{"permissionMode": "default"},
		{"lastPrompt": "more"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// The CLI's own request after an incomplete reply is marked as a companion, but a hook's text for
// the model is not (E14, as 2.1.329 writes it).
func TestCompanion(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	said := func(uuid, text string, companion bool) protocol.Event {
		content := protocol.Content{Blocks: []protocol.Block{protocol.Text(text)}}
		return &protocol.UserEvent{UUID: uuid, IsSynthetic: true, Companion: companion, Message: protocol.UserContent{Content: content}}
	}
	record(
		t, s,
		&protocol.PromptAccepted{UUID: "u1", PermissionMode: "default", Content: protocol.Content{Text: "hello"}},
		said("u2", "Go on.", true), said("u3", "The hook says no.", false),
	)
	closeAll(t, s)
	got := pickMembers(t, s, "turnCompanion", "isMeta")
	want := []map[string]any{{"isMeta": true, "turnCompanion": true}, {"isMeta": true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// The line of an MCP result contains the parts of the result other than its content. Later replies
// are attributed to the server (E14, as 2.1.329 writes it).
func TestMCPLines(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	said := func(id string) protocol.Event {
		return &protocol.AssistantEvent{UUID: id, Message: protocol.AssistantMessage{Content: []protocol.Block{protocol.Text("x")}}}
	}
	result := func(tool string, call *protocol.MCPCall) protocol.Event {
		return &protocol.UserEvent{UUID: "r" + tool, Tool: tool, ToolUseResult: "shown", MCP: call}
	}
	structured := &protocol.MCPResult{Content: "kept", Meta: json.RawMessage(`{"a":1}`), Structured: json.RawMessage(`{"n":1}`)}
	record(
		t, s,
		&protocol.PromptAccepted{UUID: "u1", Content: protocol.Content{Text: "go"}}, said("a1"),
		result("mcp__s__one", &protocol.MCPCall{Server: "s", Tool: "one", Result: structured}),
		result("mcp__s__two", &protocol.MCPCall{Server: "s", Tool: "two", NotReadOnly: "no_hint"}),
		result("Bash", nil), said("a2"), said("a3"), result("Bash", nil), said("a4"),
		&protocol.UserEvent{UUID: "r5", Tool: "mcp__s__one", MCP: &protocol.MCPCall{Server: "s", Tool: "one"}, ToolResultMeta: []protocol.ToolResultMeta{{NonExecutionKind: "user-rejected"}}},
		said("a5"),
	)
	got := pickMembers(t, s, "toolUseResult", "mcpMeta", "mcpCallNotReadOnly", "attributionMcpServer", "attributionMcpTool")
	credited := map[string]any{"attributionMcpServer": "s", "attributionMcpTool": "two"}
	want := []map[string]any{
		{"toolUseResult": "kept", "mcpMeta": map[string]any{"_meta": map[string]any{"a": 1.0}, "structuredContent": map[string]any{"n": 1.0}}},
		{"toolUseResult": "shown", "mcpCallNotReadOnly": "no_hint"},
		{"toolUseResult": "shown"},
		credited, credited,
		{"toolUseResult": "shown"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// A session with only commands ends without mode or title lines. An unknown command is recorded as typed, and a
// hook's refusal of a prompt is recorded.
func TestCommandLines(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	record(
		t, s,
		&protocol.PromptAccepted{UUID: "u1", HostID: "u1", LocalCommand: true, UnknownCommand: true, Content: protocol.Content{Text: "/vim x"}},
		&protocol.AssistantEvent{UUID: "a1", LocalCommandSource: "no", LocalCommandOutcome: &protocol.SlashCommandFailureKind{Kind: "unavailable_headless"}},
		&protocol.PromptAccepted{UUID: "u2", HostID: "u2", LocalCommand: true, Content: protocol.Content{Text: "<tags>"}},
		&protocol.SystemEvent{Subtype: "informational", Fields: []protocol.Field{
			{Key: "content", Value: "no"}, {Key: "prompt_submit_outcome", Value: protocol.PromptSubmitOutcome{Kind: "blocked_by_hook", Reason: "why"}},
		}},
	)
	closeAll(t, s)
	got := pickMembers(t, s, "submitUuid", "commandOutcome", "turnAttributionKey", "promptSubmitEnding", "mode", "atis")
	want := []map[string]any{
		{"submitUuid": "u1"},
		{"commandOutcome": map[string]any{"kind": "unavailable_headless"}},
		{"turnAttributionKey": "u2"},
		{"promptSubmitEnding": map[string]any{"ending": map[string]any{"kind": "blocked_by_hook", "reason": "why"}, "promptKept": false}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if lines := readLines(t, s.Path()); lines[0]["content"] != "/vim x" {
		t.Errorf("the command is kept as %v", lines[0])
	}
}

// TestMembersOfLines checks keys as 2.1.329 writes them: those about the directory, interruptions,
// failed requests and background notices.
func TestMembersOfLines(t *testing.T) {
	w := newWorld(t)
	where := &movedContext{}
	s := w.mustOpen(t, transcript.Options{Context: where})
	failed := protocol.ToolResultBlock{ToolUseID: "t1", Type: "tool_result", IsError: new(true)}
	result := func(id string, block protocol.ToolResultBlock) *protocol.UserEvent {
		return &protocol.UserEvent{
			UUID: id, Tool: "StructuredOutput", ToolResultMeta: []protocol.ToolResultMeta{{ID: "t1"}},
			Message: protocol.UserContent{Content: protocol.Content{Blocks: []protocol.Block{block}}},
		}
	}
	record(t, s, &protocol.PromptAccepted{UUID: "u1", Content: protocol.Content{Text: "go"}}, result("r1", failed))
	where.dir = "/elsewhere"
	record(
		t, s, result("r2", toolResult("t1")),
		&protocol.PromptAccepted{UUID: "u2", Source: "system", Content: protocol.Content{Text: "news"}},
		&protocol.FailedAPIRequestBeforeRetry{Status: 529, Message: "Overloaded", Body: "529 {}", RequestID: "req_1", Attempt: 1},
		&protocol.UserEvent{UUID: "u3", IsSynthetic: true, Message: protocol.UserContent{Content: protocol.Content{Blocks: []protocol.Block{protocol.Text("go on")}}}},
		&protocol.AssistantEvent{UUID: "a1", Message: protocol.SyntheticMessage("m1", "no money", "stop_sequence"), IsAPIErrorMessage: true, Error: "billing_error"},
		&protocol.AssistantEvent{UUID: "a2", Message: protocol.SyntheticMessage("m2", "too long", "stop_sequence"), IsAPIErrorMessage: true, ErrorDetails: "400 {}"},
	)
	var got []map[string]any
	for _, some := range pickMembers(t, s, "cwd", "toolEndsTurn", "queueSkipAttachments", "error", "resendCannotCure", "errorDetails", "madeBy", "perTurnEffort") {
		if some["cwd"] != "/elsewhere" {
			delete(some, "cwd")
		}
		if e, is := some["error"].(map[string]any); is {
			some["error"] = []any{e["message"], e["formatted"], e["requestId"]}
		}
		got = append(got, some)
	}
	there := func(more map[string]any) map[string]any {
		more["cwd"] = "/elsewhere"
		return more
	}
	want := []map[string]any{
		there(map[string]any{"toolEndsTurn": true}),
		there(map[string]any{"queueSkipAttachments": true}),
		there(map[string]any{}), // the prompt of the failed request
		there(map[string]any{"error": []any{"529 {}", "529 Overloaded", "req_1"}}),
		there(map[string]any{}),
		there(map[string]any{"error": "billing_error", "resendCannotCure": true, "madeBy": "model", "perTurnEffort": "low"}),
		there(map[string]any{"errorDetails": "400 {}", "madeBy": "other"}),
	}
	at := slices.IndexFunc(got, func(some map[string]any) bool { return some["toolEndsTurn"] == true })
	if at < 0 {
		t.Fatalf("no call ends the turn: %v", got)
	}
	if diff := cmp.Diff(want, got[at:]); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	for _, l := range readLines(t, s.Path()) {
		if l["uuid"] == "u3" && l["message"].(map[string]any)["content"] != "go on" {
			t.Errorf("what the CLI itself says is kept as %v", l["message"])
		}
	}
}

// TestTerminalLines checks the lines of a session in a terminal: the mode, prompts with their
// origin, and the duration of a turn (observed with 2.1.330).
func TestTerminalLines(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{Machine: transcript.SessionEnvironment{IsTerminal: true}})
	for _, n := range []string{"1", "2"} {
		record(
			t, s,
			&protocol.PromptQueued{Content: protocol.Content{Text: "hi " + n}},
			&protocol.PromptAccepted{UUID: "u" + n, PermissionMode: "default", Source: "sdk", Content: protocol.Content{Text: "hi " + n}},
			&protocol.InitEvent{},
			&protocol.AssistantEvent{UUID: "a" + n, Message: protocol.AssistantMessage{ID: n, Content: []protocol.Block{protocol.Text("hello")}}, Final: &protocol.CompletedMessageInfo{}},
			&protocol.ResultEvent{NumTurns: 1, DurationMS: 7},
		)
	}
	no := false
	shown := &protocol.UserEvent{UUID: "s", IsSynthetic: true, IsReplay: &no, Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: "summary"}}}
	record(
		t, s,
		&protocol.SystemEvent{Subtype: "compact_boundary", UUID: "b", Fields: newFields("compact_metadata", protocol.CompactMetadata{Trigger: "manual"})},
		&protocol.ConversationCompacted{Summary: shown}, shown,
	)
	closeAll(t, s)
	var got []string
	for _, line := range readLines(t, s.Path()) {
		parts := []string{fmt.Sprint(line["type"])}
		for _, key := range []string{"subtype", "isMeta", "mode", "permissionMode", "promptSource", "origin", "turnPosition", "lastPrompt", "querySource", "messageCount", "durationMs"} {
			if v, ok := line[key]; ok {
				parts = append(parts, fmt.Sprintf("%s=%v", key, v))
			}
		}
		if line["session_id"] != nil {
			parts = append(parts, "query")
		}
		if kind := line["type"]; kind != "attachment" && kind != "api-request-shape" && kind != "api-request-blob" {
			got = append(got, strings.Join(parts, " "))
		}
	}
	want := []string{
		"mode mode=normal", "permission-mode permissionMode=default", "atis-latch",
		"user permissionMode=default promptSource=typed origin=map[kind:human] turnPosition=map[promptIndex:1 turnIndex:1]",
		"api-request querySource=", "assistant query", "system subtype=turn_duration isMeta=false messageCount=9 durationMs=7",
		"last-prompt lastPrompt=hi 1", "mode mode=normal", "permission-mode permissionMode=default", "atis-latch",
		"user permissionMode=default promptSource=typed origin=map[kind:human] turnPosition=map[promptIndex:2 turnIndex:2]",
		"api-request querySource=", "assistant query", "system subtype=turn_duration isMeta=false messageCount=12 durationMs=7",
		"last-prompt lastPrompt=hi 2", "mode mode=normal", "permission-mode permissionMode=default", "atis-latch",
		"system subtype=compact_boundary", "user turnPosition=map[promptIndex:0 turnIndex:2] query",
		"last-prompt lastPrompt=hi 2", "mode mode=normal", "permission-mode permissionMode=default", "atis-latch", "cost-state",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestRunningAgents checks that, in a terminal, the line about a turn counts the agents that are still running.
func TestRunningAgents(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{Machine: transcript.SessionEnvironment{IsTerminal: true}})
	record(
		t, s,
		&protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "x"}},
		&protocol.SystemEvent{Subtype: "task_started", Fields: []protocol.Field{{Key: "task_id", Value: "a1"}, {Key: "spawn_depth", Value: 1}}},
		&protocol.ResultEvent{NumTurns: 1},
		&protocol.SystemEvent{Subtype: "task_notification", Fields: []protocol.Field{{Key: "task_id", Value: "a1"}}},
		&protocol.ResultEvent{NumTurns: 1},
	)
	var counts []any
	for _, line := range pickMembers(t, s, "pendingBackgroundAgentCount", "messageCount") {
		counts = append(counts, line["pendingBackgroundAgentCount"])
	}
	if diff := cmp.Diff([]any{1.0, nil}, counts); diff != "" {
		t.Errorf("running agents (-want +got):\n%s", diff)
	}
}

// TestTerminalCommandBeforePrompt checks that, in a terminal, the line about the latch follows the commands before the first prompt,
// as in transcripts of 2.1.330. Without a prompt, the transcript does not have it, and ends with the changed mode.
func TestTerminalCommandBeforePrompt(t *testing.T) {
	for name, prompts := range map[string]int{"with a prompt": 1, "without a prompt": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			where := &remindingContext{}
			where.mode = protocol.ModeDefault
			s := w.mustOpen(t, transcript.Options{Context: where, Machine: transcript.SessionEnvironment{IsTerminal: true}})
			record(t, s, &protocol.PromptAccepted{UUID: w.id(), LocalCommand: true, UnknownCommand: true, Content: protocol.Content{Text: "/model"}})
			for range prompts {
				record(t, s, &protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "x"}})
			}
			where.mode = protocol.ModePlan
			closeAll(t, s)
			var got []string
			for _, l := range readLines(t, s.Path()) {
				if l["type"] != "attachment" {
					got = append(got, l["type"].(string))
				}
			}
			want := []string{"mode", "permission-mode", "system", "last-prompt", "permission-mode", "cost-state"}
			if prompts > 0 {
				want = []string{"mode", "permission-mode", "system", "atis-latch", "user", "last-prompt", "mode", "permission-mode", "atis-latch", "cost-state"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestQueryInTerminal checks that, in a terminal, only the lines after the start of the query have its session (session_id), as in
// transcripts of 2.1.330.
func TestQueryInTerminal(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{Machine: transcript.SessionEnvironment{IsTerminal: true}})
	ofHook := func(event string) *protocol.AttachmentAdded {
		return &protocol.AttachmentAdded{Attachment: map[string]string{"type": "hook_success", "hookEvent": event}}
	}
	record(
		t, s,
		&protocol.PromptAccepted{UUID: w.id(), WrittenByCLI: true, Content: protocol.Content{Text: "a reminder"}},
		&protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "x"}},
		ofHook("UserPromptSubmit"), &protocol.InitEvent{}, ofHook("PostToolUse"),
	)
	got := map[any]bool{}
	for _, line := range pickMembers(t, s, "session_id", "attachment", "isMeta") {
		if a, ok := line["attachment"].(map[string]any); ok && a["hookEvent"] != nil {
			got[a["hookEvent"]] = line["session_id"] != nil
		}
	}
	if diff := cmp.Diff(map[any]bool{"UserPromptSubmit": false, "PostToolUse": true}, got); diff != "" {
		t.Errorf("lines with a session_id (-want +got):\n%s", diff)
	}
}

// TestResumedWithoutPrompt checks that a session that is resumed in a terminal and ends without a
// prompt has lines about its mode and costs.
func TestResumedWithoutPrompt(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	record(t, s, &protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "x"}})
	before := len(readLines(t, s.Path()))
	again := w.mustOpen(t, transcript.Options{Resume: s.ID(), Machine: transcript.SessionEnvironment{IsTerminal: true}})
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	var kinds []any
	for _, line := range readLines(t, s.Path())[before:] {
		kinds = append(kinds, line["type"])
	}
	if diff := cmp.Diff([]any{"mode", "permission-mode", "cost-state"}, kinds); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestPromptIndexAfterPrintMode checks that a session that is resumed in a terminal does not count the prompts of print mode.
func TestPromptIndexAfterPrintMode(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	record(t, s, &protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "x"}})
	again := w.mustOpen(t, transcript.Options{Resume: s.ID(), Machine: transcript.SessionEnvironment{IsTerminal: true}})
	record(t, again, &protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "y"}}, &protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "z"}})
	third := w.mustOpen(t, transcript.Options{Resume: s.ID(), Machine: transcript.SessionEnvironment{IsTerminal: true}})
	record(t, third, &protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "z"}})
	var got []any
	for _, line := range pickMembers(t, s, "turnPosition") {
		got = append(got, line["turnPosition"])
	}
	at := func(turn, prompt float64) map[string]any {
		return map[string]any{"turnIndex": turn, "promptIndex": prompt}
	}
	if diff := cmp.Diff([]any{at(1, 0), at(2, 1), at(3, 2), at(4, 3)}, got); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
}

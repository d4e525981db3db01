package transcript_test

import (
	gocmp "cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// remindingContext describes a model that is told how many tokens are left and that agents exist.
type remindingContext struct {
	movedContext
	mode protocol.PermissionMode // empty means bypassPermissions
}

func (e *remindingContext) SessionContext(string) transcript.SessionContext {
	return transcript.SessionContext{
		Model: "m", BashSteer: "relaxed", ShellMode: gocmp.Or(e.mode, protocol.ModeBypass), Remaining: protocol.RemainingLimits{Tokens: 9}, Agents: []transcript.ListedItem{{Name: "Plan", Text: "- Plan"}},
	}
}

func (*remindingContext) RequestContext(string) transcript.RequestContext {
	return transcript.RequestContext{SystemTurns: true, Remaining: protocol.RemainingLimits{Tokens: 9}, Tools: []protocol.Tool{{Name: "Bash"}}}
}

// In plan mode, lines contain the name of the plan file. Reminders inform the model when the mode begins and ends.
func TestPlanMode(t *testing.T) {
	w := newWorld(t)
	where := &remindingContext{}
	where.mode = protocol.ModePlan
	s := w.mustOpen(t, transcript.Options{Context: where})
	reply := func() *protocol.AssistantEvent {
		return &protocol.AssistantEvent{UUID: w.id(), Message: protocol.AssistantMessage{ID: w.id(), Role: "assistant", Content: []protocol.Block{protocol.Text("a")}}}
	}
	record(t, s, &protocol.PromptAccepted{UUID: w.id(), PermissionMode: protocol.ModePlan, Content: protocol.Content{Text: "go"}}, &protocol.InitEvent{}, reply())
	where.mode = protocol.ModeBypass
	record(t, s, &protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "go"}}, reply())
	closeAll(t, s)
	if name := s.PlanName(); !regexp.MustCompile(`^go-[a-z]+-[a-z]+$`).MatchString(name) || s.EnsurePlanName("other") != name {
		t.Errorf("the plan file is %s", name)
	}
	var told []string
	for i, l := range readLines(t, s.Path()) {
		if about, ok := l["attachment"].(line); ok && strings.HasPrefix(about["type"].(string), "plan_mode") {
			told = append(told, about["type"].(string))
		}
		if _, isMessage := l["message"]; isMessage && l["uuid"] != nil && l["slug"] != s.PlanName() {
			t.Errorf("line %d has the slug %v", i, l["slug"])
		}
	}
	if diff := cmp.Diff([]string{"plan_mode", "plan_mode_exit"}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// In a resumed session, a reminder informs the model if commands start in a different directory than before.
func TestResumedDirectory(t *testing.T) {
	w := newWorld(t)
	where := &movedContext{}
	path, id := "", ""
	for _, dir := range []string{"", filepath.Join(w.cwd, "sub"), ""} {
		s := w.mustOpen(t, transcript.Options{Context: where, Resume: id})
		where.dir = dir
		record(
			t, s, &protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "go"}}, &protocol.InitEvent{},
			&protocol.AssistantEvent{UUID: w.id(), Message: protocol.AssistantMessage{ID: w.id(), Role: "assistant", Content: []protocol.Block{protocol.Text("a")}}},
		)
		closeAll(t, s)
		path, id = s.Path(), s.ID()
	}
	var from []any
	for _, l := range readLines(t, path) {
		if about, ok := l["attachment"].(line); ok && about["changes"] != nil {
			from = append(from, about["changes"].([]any)[0].(line)["from"])
		}
	}
	if diff := cmp.Diff([]any{w.cwd, filepath.Join(w.cwd, "sub")}, from); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A reminder informs the model of its new name after the model has changed, even between the runs of a session.
func TestChangedModel(t *testing.T) {
	w := newWorld(t)
	path, id := "", ""
	for _, model := range []string{"m1", "m1", "m2"} {
		s := w.mustOpen(t, transcript.Options{Context: lowEffortContext{Model: model}, Resume: id})
		record(
			t, s, &protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "go"}}, &protocol.InitEvent{},
			&protocol.AssistantEvent{UUID: w.id(), Message: protocol.AssistantMessage{ID: w.id(), Role: "assistant", Content: []protocol.Block{protocol.Text("a")}}},
		)
		closeAll(t, s)
		path, id = s.Path(), s.ID()
	}
	var told []any
	for _, l := range readLines(t, path) {
		if about, ok := l["attachment"].(line); ok && about["type"] == "model" {
			told = append(told, about["identity"].(line)["modelId"])
		}
	}
	if diff := cmp.Diff([]any{"m1", "m2"}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The lines of reminders precede the line of the request that contains them (observed with 2.1.330).
func TestRemindersOfRequests(t *testing.T) {
	w := newWorld(t)
	where := &remindingContext{}
	s := w.mustOpen(t, transcript.Options{Context: where})
	parent, prompts := "toolu_9", 0
	conversation := func(agent string) {
		prompt := &protocol.UserEvent{UUID: w.id(), Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: "task"}}, AgentID: agent}
		result := &protocol.UserEvent{UUID: w.id(), Tool: "Bash", AgentID: agent, Message: protocol.UserContent{Content: protocol.Content{Blocks: []protocol.Block{toolResult("t1")}}}}
		replies := [2]*protocol.AssistantEvent{}
		for i, b := range []protocol.Block{call("t1"), protocol.Text("done")} {
			replies[i] = &protocol.AssistantEvent{UUID: w.id(), AgentID: agent, Message: protocol.AssistantMessage{ID: w.id(), Role: "assistant", Content: []protocol.Block{b}}}
		}
		if agent != "" {
			prompt.ParentToolUseID, result.ParentToolUseID, replies[0].ParentToolUseID, replies[1].ParentToolUseID = &parent, &parent, &parent, &parent
			record(t, s, prompt)
		} else {
			prompts++
			accepted := &protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "go"}}
			if prompts == 2 {
				accepted.Source, accepted.Preamble = "system", "Bash is known"
			}
			record(t, s, accepted, &protocol.InitEvent{})
		}
		record(t, s, replies[0])
		if agent == "" {
			where.dir = filepath.Join(w.cwd, strings.Repeat("x", prompts))
		}
		record(t, s, result, replies[1])
	}
	conversation("a1")
	conversation("")
	conversation("")
	closeAll(t, s)
	informs := func(kind string) bool {
		return strings.HasPrefix(kind, "user") || kind == "api-request" || slices.Contains([]string{
			"attachment:environment", "attachment:total_tokens_reminder", "attachment:agent_listing_delta", "attachment:auto_mode",
		}, kind)
	}
	kinds := func(path string) []string {
		lines := readLines(t, path)
		var all []string
		for i, kind := range lineKinds(lines) {
			message, _ := lines[i]["message"].(line)
			if text, _ := message["content"].(string); strings.Contains(text, "Bash is known") {
				kind += " preamble"
			}
			if informs(kind) {
				all = append(all, strings.TrimPrefix(kind, "attachment:"))
			}
		}
		return all
	}
	want := []string{"user", "environment", "api-request", "user", "agent_listing_delta", "auto_mode", "total_tokens_reminder", "api-request"}
	if diff := cmp.Diff(want, kinds(filepath.Join(filepath.Dir(s.Path()), s.ID(), "subagents", "agent-a1.jsonl"))); diff != "" {
		t.Errorf("agent (-want +got):\n%s", diff)
	}
	want = []string{
		"user", "environment", "agent_listing_delta", "auto_mode", "total_tokens_reminder", "api-request", "user", "environment", "total_tokens_reminder", "api-request",
		"user preamble", "user", "total_tokens_reminder", "api-request", "user", "environment", "total_tokens_reminder", "api-request",
	}
	if diff := cmp.Diff(want, kinds(s.Path())); diff != "" {
		t.Errorf("main conversation (-want +got):\n%s", diff)
	}
}

// The remaining tokens are those of the start without the longest request and reply, also in a resumed session.
func TestRemainingTokens(t *testing.T) {
	w := newWorld(t)
	o := transcript.Options{Context: &remindingContext{}}
	s := w.mustOpen(t, o)
	turn := func(input int) {
		record(t, s, &protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "go"}}, &protocol.InitEvent{}, &protocol.AssistantEvent{
			UUID: w.id(), Final: &protocol.CompletedMessageInfo{StopReason: "end_turn", Usage: protocol.Usage{InputTokens: input, OutputTokens: 1}},
			Message: protocol.AssistantMessage{ID: w.id(), Role: "assistant", Model: "claude-haiku-5-5", Content: []protocol.Block{protocol.Text("a")}},
		})
	}
	turn(1)
	turn(3)
	turn(2)
	closeAll(t, s)
	o.Resume = s.ID()
	s = w.mustOpen(t, o)
	turn(1)
	closeAll(t, s)
	var left []string
	for _, l := range readLines(t, s.Path()) {
		if about, ok := l["attachment"].(line); ok && about["type"] == "total_tokens_reminder" {
			left = append(left, about["text"].(string))
		}
	}
	const want = "<total_tokens>9 tokens left</total_tokens> <total_tokens>7 tokens left</total_tokens> " +
		"<total_tokens>5 tokens left</total_tokens> <total_tokens>5 tokens left</total_tokens>"
	if diff := cmp.Diff(want, strings.Join(left, " ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Requests describe the state of the repository, and those of an agent the state of its worktree.
func TestGitStatus(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{Context: repositoryContext{}})
	reply := &protocol.AssistantEvent{UUID: w.id(), Message: protocol.AssistantMessage{ID: w.id(), Role: "assistant", Content: []protocol.Block{protocol.Text("a")}}}
	record(t, s, &protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "go"}}, &protocol.InitEvent{}, reply)
	closeAll(t, s)
	for _, l := range readLines(t, s.Path()) {
		if about, ok := l["attachment"].(line); ok && about["type"] == "session_context" {
			if l["renderedRole"] != "user" || about["context"].(line)["gitStatus"] != "clean" {
				t.Errorf("line %v", l)
			}
			return
		}
	}
	t.Error("the transcript has no session_context")
}

type repositoryContext struct{ lowEffortContext }

func (repositoryContext) GitStatus(string) string { return "clean" }

package simulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// playedEvents runs a prompt and renders the emitted events, without ids and usage.
func playedEvents(t *testing.T, s *simulator.Simulator, prompt string) []string {
	t.Helper()
	var lines []string
	for ev, err := range s.RunTurn(t.Context(), protocol.UserMessage{Content: protocol.Content{Text: prompt}}) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case *protocol.Frame:
			raw, _ := protocol.Marshal(ev)
			var keys map[string]string
			_ = json.Unmarshal(raw, &keys)
			lines = append(lines, fmt.Sprintf("%s %s in %s", ev.Type, keys["trigger"], ev.SessionID))
			if keys["uuid"] != keys["new_conversation_id"] || keys["user_message_uuid"] == "" || keys["timestamp"] == "" {
				t.Errorf("%s", raw)
			}
		case *protocol.SystemEvent:
			var line strings.Builder
			line.WriteString(ev.Subtype)
			for _, f := range ev.Fields {
				if f.Key == "status" || f.Key == "compact_result" || f.Key == "tasks" {
					fmt.Fprintf(&line, " %v", f.Value)
				}
			}
			lines = append(lines, line.String()+" in "+ev.SessionID)
		case *protocol.InitEvent:
			lines = append(lines, "init in "+ev.SessionID)
		case *protocol.AssistantEvent:
			text := ev.Message.Content[0].(protocol.TextBlock).Text
			line, _, _ := strings.Cut(text, "\n")
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("assistant %s %s", strings.TrimPrefix(ev.Message.Model, "claude-opus-5-5"), line)))
		case *protocol.UserEvent:
			text, _, _ := strings.Cut(ev.Message.Content.Plain(), ".")
			lines = append(lines, fmt.Sprintf("user synthetic=%v replay=%v %s", ev.IsSynthetic, ev.IsReplay != nil && *ev.IsReplay, text))
		case *protocol.ResultEvent:
			first, _, _ := strings.Cut(*ev.Result, "\n")
			lines = append(lines, fmt.Sprintf("result %s turns=%d %q in %s", ev.LocalCommand, ev.NumTurns, first, ev.SessionID))
		}
	}
	return lines
}

// testCommands returns the commands of a session. A new conversation gets the id NEW.
func testCommands() *simulator.MainOptions {
	return &simulator.MainOptions{Commands: fakeCommands{}, Transcript: transcriptFunc(func(protocol.Event) {})}
}

type fakeCommands struct{}

func (fakeCommands) LoadedContext() slash.LoadedContextTokens { return slash.LoadedContextTokens{} }
func (fakeCommands) LooksLikePath(string) bool                { return false }
func (fakeCommands) SetGrantedRules([]string)                 {}

func (fakeCommands) Find(name string) (simulator.SlashCommand, bool) {
	switch name {
	case "help":
		return simulator.SlashCommandAnsweringUnavailable{}, true
	case "name":
		return textCommand(func(c slash.Call) *slash.Outcome { return &slash.Outcome{Name: "rename", Text: "named", Title: c.Args} }), true
	case "mcp__s__p":
		return textCommand(func(slash.Call) *slash.Outcome {
			return &slash.Outcome{Name: "s:p (MCP)", Result: "mcp", Text: "Error: the server is gone", Failed: true}
		}), true
	case "fix":
		return customCommand{}, true
	}
	return nil, false
}

// textCommand is a command that answers with text.
type textCommand func(slash.Call) *slash.Outcome

func (f textCommand) Run(_ context.Context, c slash.Call) (*slash.Outcome, *slash.Expansion) {
	return f(c), nil
}

// customCommand is a custom command.
type customCommand struct{}

func (customCommand) Run(_ context.Context, c slash.Call) (*slash.Outcome, *slash.Expansion) {
	return nil, &slash.Expansion{Text: "Fix the issue " + c.Args, Kind: "slash_command", Source: "projectSettings"}
}

// A /clear emits the reset and the tasks of the old conversation, then init and result of the new
// one (golden slash-clear, checklist row 47).
func TestClear(t *testing.T) {
	s := newSimulator(t, simulator.Options{Model: &fakeModel{replies: []scenarios.Reply{text("hi")}}, Main: testCommands()})
	playedEvents(t, s, "hello")
	want := []string{"conversation_reset clear in S", "background_tasks_changed [] in S", "init in NEW", `result clear turns=0 "" in NEW`}
	if diff := cmp.Diff(want, playedEvents(t, s, "/clear")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := playedEvents(t, s, "hello"); got[0] != "init in NEW" {
		t.Errorf("next prompt %q", got)
	}
}

// The failure of an MCP server's prompt is shown differently from the output of a command (observed
// with 2.1.329).
func TestFailedPrompt(t *testing.T) {
	s := newSimulator(t, simulator.Options{Model: &fakeModel{}, Main: testCommands()})
	for ev, err := range s.RunTurn(t.Context(), protocol.UserMessage{Content: protocol.Content{Text: "/mcp__s__p x"}}) {
		said, ok := ev.(*protocol.AssistantEvent)
		if err != nil || !ok {
			continue
		}
		want := []any{"<local-command-stderr>Error: the server is gone</local-command-stderr>", &protocol.SlashCommandFailureKind{Kind: "failed"}, &protocol.LocalCommand{Command: "s:p (MCP)", Args: "x"}}
		if diff := cmp.Diff(want, []any{said.LocalCommandSource, said.LocalCommandOutcome, said.LocalCommandRun}); diff != "" {
			t.Error(diff)
		}
		return
	}
	t.Error("nothing was said")
}

// Local commands send no request to the model (golden slash-context, cli-contract 9.6).
func TestLocalCommands(t *testing.T) {
	tests := map[string][]string{
		"/context":       {"init in S", "assistant <synthetic> ## Context Usage", `result context turns=0 "## Context Usage" in S`},
		"/cost":          {"init in S", "assistant <synthetic> Estimated cost:        $0.0000", `result cost turns=0 "Estimated cost:        $0.0000" in S`},
		"/help":          {"init in S", "assistant <synthetic> /help isn't available in this environment.", `result  turns=0 "/help isn't available in this environment." in S`},
		"/name new name": {"session_title_changed in S", "init in S", "assistant <synthetic> named", `result name turns=0 "named" in S`},
		"/compact":       {"init in S", "assistant <synthetic> Error: No messages to compact", `result compact turns=0 "" in S`},
		"/mcp__s__p x": {
			"init in S", "assistant <synthetic> Error: the server is gone", `result mcp turns=0 "Error: the server is gone" in S`,
		},
	}
	for prompt, want := range tests {
		model := &fakeModel{}
		s := newSimulator(t, simulator.Options{Model: model, Main: testCommands()})
		if diff := cmp.Diff(want, playedEvents(t, s, prompt)); diff != "" || len(model.requests) > 0 {
			t.Errorf("%s: %d requests; events (-want +got):\n%s", prompt, len(model.requests), diff)
		}
	}
}

// TestCompact checks the frames of /compact (checklist row 67).
func TestCompact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulator(t, simulator.Options{Model: &fakeModel{}, Main: testCommands(), Display: simulator.DisplayOptions{CompactDelay: time.Second}})
		playedEvents(t, s, "hello")
		before, began := s.ContextUsage().TotalTokens, time.Now()
		want := []string{
			"status compacting in S", "status <nil> success in S", "init in S", "compact_boundary in S",
			"user synthetic=true replay=false This session is being continued from a previous conversation that ran out of context",
			"user synthetic=false replay=true <local-command-stdout>Compacted </local-command-stdout>",
			`result compact turns=0 "" in S`,
		}
		if diff := cmp.Diff(want, playedEvents(t, s, "/compact keep names")); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took != time.Second || before <= 0 {
			t.Errorf("took %s, %d tokens before", took, before)
		}
	})
}

// For a custom command, the model receives the command's text. An unknown command is sent
// unchanged. The transcript contains the tags of the call (checklist row 67).
func TestCustomCommands(t *testing.T) {
	tests := []struct {
		name, prompt, asked string
		o                   *simulator.MainOptions
	}{
		{"custom", "/fix 7", "Fix the issue 7", testCommands()},
		{"unknown", "/nosuch thing", "/nosuch thing", testCommands()},
		{"no commands", "/fix 7", "/fix 7", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			model := &fakeModel{}
			s := newSimulator(t, simulator.Options{Model: model, Main: tt.o})
			var prompts []string
			for ev := range s.RunTurn(t.Context(), protocol.UserMessage{Content: protocol.Content{Text: tt.prompt}}) {
				if p, ok := ev.(*protocol.PromptAccepted); ok {
					prompts = append(prompts, p.Content.Plain())
				}
			}
			if len(model.requests) != 1 || model.requests[0].Prompt != tt.asked || model.requests[0].IsInjected {
				t.Errorf("requests %+v", model.requests)
			}
			want := []string{tt.prompt}
			if tt.name == "custom" {
				want = []string{"<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>7</command-args>", tt.asked}
			}
			if diff := cmp.Diff(want, prompts); diff != "" {
				t.Errorf("transcript (-want +got):\n%s", diff)
			}
		})
	}
}

// Hooks see the expansion, the compaction and the new conversation.
func TestCommandHooks(t *testing.T) {
	var events []string
	answers := map[string]string{}
	runner, _ := hook.New(hook.Options{
		NewID: func() string { return "id" }, SessionID: "S",
		Callback: func(_ context.Context, event string, input json.RawMessage, _ string) (json.RawMessage, error) {
			var in struct {
				SessionID string `json:"session_id"`
				Args      string `json:"command_args"`
				Trigger   string `json:"trigger"`
			}
			_ = json.Unmarshal(input, &in)
			events = append(events, strings.TrimSpace(event+" "+in.SessionID+" "+in.Args+in.Trigger))
			if a := answers[event]; a != "" {
				return json.RawMessage(a), nil
			}
			return json.RawMessage(`{}`), nil
		},
	})
	for _, event := range []string{"UserPromptExpansion", "UserPromptSubmit", "PreCompact", "PostCompact"} {
		runner.AddCallbacks(event, []protocol.HookCallbackMatcher{{HookCallbackIDs: []string{event}}})
	}
	s := newSimulator(t, simulator.Options{Model: &fakeModel{}, Main: testCommands(), Hooks: runner})
	for _, prompt := range []string{"/fix 7", "/compact", "/clear", "hello"} {
		playedEvents(t, s, prompt)
	}
	want := []string{
		"UserPromptSubmit S", "UserPromptExpansion S 7", "PreCompact S manual", "PostCompact S manual", "UserPromptSubmit NEW",
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	answers["PreCompact"] = `{"decision":"block","reason":"not now"}`
	got := playedEvents(t, s, "/compact")
	if !slices.Contains(got, "status <nil> failed in NEW") || !slices.ContainsFunc(got, func(l string) bool {
		return strings.HasPrefix(l, "assistant <synthetic> Compaction blocked by PreCompact hook: ")
	}) {
		t.Errorf("events %q", got)
	}
	answers["UserPromptExpansion"] = `{"decision":"block","reason":"no fixes"}`
	if got = playedEvents(t, s, "/fix 8"); !strings.HasPrefix(got[len(got)-1], `result custom turns=0 "UserPromptExpansion operation blocked by hook:`) {
		t.Errorf("events %q", got)
	}
	runner.WaitForAsyncHooksAndClose(t.Context())
}

// A prompt that the CLI itself writes is matched like injected text and runs no prompt hooks.
func TestSystemPrompt(t *testing.T) {
	model := &fakeModel{}
	s := newSimulator(t, simulator.Options{Model: model, Main: testCommands()})
	origin := json.RawMessage(`{"kind":"task-notification"}`)
	for ev := range s.RunTurn(t.Context(), protocol.UserMessage{Content: protocol.Content{Text: "/clear"}, Source: "system", Origin: origin}) {
		if r, ok := ev.(*protocol.ResultEvent); ok && string(r.Origin) != string(origin) {
			t.Errorf("origin %s", r.Origin)
		}
	}
	if len(model.requests) != 1 || !model.requests[0].IsInjected {
		t.Errorf("requests %+v", model.requests)
	}
}

// A session without tasks has no background work.
func TestNoBackground(t *testing.T) {
	s := newSimulator(t, simulator.Options{Model: &fakeModel{}})
	if _, ok := s.TakeNextNotice(); ok || s.HasBackgroundWorkOrNotice() {
		t.Error("there is background work")
	}
	for ev := range s.RunBackgroundUntilNotice(t.Context()) {
		t.Errorf("%T", ev)
	}
	for ev := range s.WaitForBackgroundAndItsTurns(t.Context(), time.Hour) {
		t.Errorf("%T", ev)
	}
}

// An agent cannot run the slash commands of the session or of a conversation; they are prompts for its model.
func TestCommandsOfAgents(t *testing.T) {
	live := &simulator.SessionState{}
	live.BeginConversation("S", "")
	model := &fakeModel{}
	s, err := simulator.New(simulator.Options{
		Model: model, Tools: simulator.NonInspectingExecutor(fakeTools{}), Clock: &fakeClock{}, State: live.ForAgent("haiku"), Agent: &protocol.AgentRef{ID: "a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := append(playedEvents(t, s, "/clear"), playedEvents(t, s, "/fix 7")...)
	want := []string{
		"init in S", "assistant <synthetic> /clear isn't available in this environment.", `result  turns=0 "/clear isn't available in this environment." in S`,
		"init in S", "assistant claude-haiku-5-5 done", `result  turns=1 "done" in S`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if len(model.requests) != 1 || model.requests[0].Prompt != "/fix 7" {
		t.Errorf("requests %+v", model.requests)
	}
}

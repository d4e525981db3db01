package history_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/api/history"
)

// messageGroups returns the message groups of a request.
func messageGroups(t *testing.T, messages ...any) []history.Group {
	t.Helper()
	return groupsOf(t, "", messages...)
}

// groupsOf returns the message groups of a request of this client.
func groupsOf(t *testing.T, agent string, messages ...any) []history.Group {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	r, err := history.NewReader(0).Read(body, history.ReadClient(&http.Request{Header: http.Header{"User-Agent": {agent}}}, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	return r.Groups(r.Messages)
}

type object map[string]any

func text(s string) object { return object{"type": "text", "text": s} }

// TestContext (messages-api 8): the context that Claude Code adds to a prompt is split, in the blocks of older models
// and in the system messages of newer ones. Hooks and files come first, as in the CLI.
func TestContext(t *testing.T) {
	const environment = "# Environment\n - Primary working directory: /w"
	want := []string{"blue", "1\tline one\n\n# Environment\nno", "Codebase and user instructions are shown below.\n\nBe kind.", environment, "Today's date is 2026-01-01."}
	for name, messages := range map[string][]any{
		"older": {object{"role": "user", "content": []any{
			text("<system-reminder>\n" + environment + "\n</system-reminder>"),
			text("<system-reminder>\nResult of calling the Read tool:\n1\tline one\n\n# Environment\nno\n</system-reminder>"),
			text("<system-reminder>\nUserPromptSubmit hook success: blue\n</system-reminder>"),
			text("<system-reminder>\nCodebase and user instructions are shown below.\n\nBe kind.\n</system-reminder>"),
			text("<system-reminder>\nToday's date is 2026-01-01.\n</system-reminder>"), text("hi"),
		}}},
		"newer": {
			object{"role": "user", "content": []any{
				text("<system-reminder>\nResult of calling the Read tool:\n1\tline one\n\n# Environment\nno\n</system-reminder>"),
				text("<system-reminder>\nCodebase and user instructions are shown below.\n\nBe kind.\n</system-reminder>"), text("hi"),
			}},
			object{"role": "system", "content": environment + "\n\nUserPromptSubmit hook success: blue\n\nToday's date is 2026-01-01."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := messageGroups(t, messages...)
			if len(g) != 1 || len(g[0].Steps) != 1 || g[0].Steps[0].Text != "hi" {
				t.Fatalf("%+v", g)
			}
			got := g[0].Context
			if name == "older" { // Claude Code has its own order here
				want := []string{want[0], want[1], environment, want[2], want[4]}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestResults (messages-api 8): texts that Claude Code adds to a tool result are not part of the result.
func TestResults(t *testing.T) {
	for name, content := range map[string]string{
		"reminder": "plain\n\n<system-reminder>\nBe careful.\n</system-reminder>\n",
		"schema":   "plain\n\nThis tool's input schema was not in your prompt when you called it. The input schema is: {}",
		"both":     "plain\n\n<system-reminder>\na\n</system-reminder>\n\n<system-reminder>\nb\n</system-reminder>\n\nThis tool's input schema was not in your prompt when you called it. The input schema is: {}",
		"nothing":  "plain",
	} {
		t.Run(name, func(t *testing.T) {
			g := messageGroups(t, object{"role": "user", "content": "hi"},
				object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": "a", "name": "T", "input": object{}}}},
				object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": "a", "content": content}}})
			if got := g[2].Steps[0].Results[0].Text; got != "plain" {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestDropped (messages-api 8): Claude Code omits empty replies, so its answer to them directly follows the prompt.
func TestDropped(t *testing.T) {
	const more = "[Your previous response had no visible output. Please continue and produce a user-visible response.]"
	const refused = "Your response above was stopped by a safety classifier — this is not a tool or API error."
	g := messageGroups(t, object{"role": "user", "content": []any{text("<system-reminder>\nx\n</system-reminder>"), text("hi\n"), text(more), text(refused)}})
	var got []string
	for _, s := range g[0].Steps {
		got = append(got, string(s.Kind)+" "+s.Text)
	}
	if diff := cmp.Diff([]string{"prompt hi", "resumed " + more, "retry " + refused}, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// TestTyped (messages-api 8): after a turn that ended with a call, the next prompt is in the message with the results
// of the call, together with Claude Code's own texts about them. Other clients put instructions about the results
// there.
func TestTyped(t *testing.T) {
	const more = "[Your previous response had no visible output. Please continue and produce a user-visible response.]"
	const meanwhile = "The user sent a new message while you were working:\nquick\n\nThis is how Claude Code surfaces messages the user sends mid-turn."
	result := func(id, content string) object {
		return object{"type": "tool_result", "tool_use_id": id, "content": content}
	}
	bash, skill := result("bash", "1"), result("skill", "Launching skill: tidy")
	const base = "Base directory for this skill: /w/tidy"
	for name, tt := range map[string]struct {
		agent   string
		content []any
		want    []string
	}{
		"the next prompt":                 {"claude-cli/2.1.329", []any{bash, text("two")}, []string{"closed", "prompt two"}},
		"two of them":                     {"claude-cli/2.1.329", []any{bash, text("two\n"), text("three")}, []string{"closed", "prompt two\nthree"}},
		"one whose reply was empty":       {"claude-cli/2.1.329", []any{bash, text("two\n"), text(more)}, []string{"closed", "prompt two", "resumed " + more}},
		"behind an empty reply":           {"claude-cli/2.1.329", []any{bash, text(more), text("two")}, []string{"results", "resumed " + more, "prompt two"}},
		"behind a message sent meanwhile": {"claude-cli/2.1.329", []any{bash, text(meanwhile), text("two")}, []string{"closed", "added quick", "prompt two"}},
		"an interrupt":                    {"claude-cli/2.1.329", []any{bash, text("[Request interrupted by user for tool use]"), text("two")}, []string{"closed", "interrupt ", "prompt two"}},
		"a skill":                         {"claude-cli/2.1.329", []any{skill, text(base)}, []string{"results", "beside " + base}},
		"a command":                       {"claude-cli/2.1.329", []any{skill, text("Ask kindly.")}, []string{"results", "beside Ask kindly."}},
		"a skill, and the next prompt":    {"claude-cli/2.1.329", []any{skill, text(base), text("two")}, []string{"closed", "prompt two", "beside " + base}},
		"a skill again": {
			"claude-cli/2.1.329",
			[]any{skill, text("(Re-invocation of /tidy — …)"), text(base)},
			[]string{"results", "beside (Re-invocation of /tidy — …)", "beside " + base},
		},
		"the words of a skill": {"claude-cli/2.1.329", []any{result("bash", "Launching skill: tidy"), text("two")}, []string{"closed", "prompt two"}},
		"a tool that was loaded": {
			"claude-cli/2.1.329", []any{bash, text("Tool loaded.")}, []string{"results", "beside Tool loaded."},
		},
		"a picture that was made smaller": {
			"claude-cli/2.1.329",
			[]any{bash, text("[Image: original 3000x1500, displayed at 2000x1000.]")},
			[]string{"results", "beside [Image: original 3000x1500, displayed at 2000x1000.]"},
		},
		"another client": {"", []any{bash, text("Be brief.")}, []string{"results", "beside Be brief."}},
	} {
		t.Run(name, func(t *testing.T) {
			uses := []any{
				object{"type": "tool_use", "id": "bash", "name": "Bash", "input": object{}}, object{"type": "tool_use", "id": "skill", "name": "Skill", "input": object{}},
			}
			g := groupsOf(t, tt.agent, object{"role": "user", "content": "one"}, object{"role": "assistant", "content": uses}, object{"role": "user", "content": tt.content})
			var got []string
			for _, s := range g[2].Steps {
				if s.Results != nil {
					got = append(got, string(s.Kind))
					continue
				}
				got = append(got, string(s.Kind)+" "+s.Text)
			}
			for _, c := range g[2].Context {
				got = append(got, "beside "+c)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPictures (messages-api 8): the path of a picture is read as context of the prompt.
func TestPictures(t *testing.T) {
	g := messageGroups(t, object{"role": "user", "content": []any{
		text("what is it"), object{"type": "image", "source": object{}}, text("[Image: source: /tmp/images/1.png]"),
	}})
	if s := g[0].Steps[0]; s.Text != "what is it" || len(s.Files) != 1 {
		t.Errorf("%+v", s)
	}
}

// TestInterrupted: a prompt that was interrupted before any reply is in the message of the next prompt and is not
// part of that prompt (observed with 2.1.329).
func TestInterrupted(t *testing.T) {
	g := groupsOf(t, "claude-cli/2.1.329", object{"role": "user", "content": []any{text("count\n"), text("[Request interrupted by user]"), text("more")}})
	var got []string
	for _, s := range g[0].Steps {
		got = append(got, string(s.Kind)+" "+s.Text)
	}
	if diff := cmp.Diff([]string{"prompt count", "interrupt ", "prompt more"}, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

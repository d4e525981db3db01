package history_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/api/history"
)

// messageGroups returns the message groups of a request.
func messageGroups(t *testing.T, messages ...any) []history.MessageGroup {
	t.Helper()
	return groupsOf(t, "", messages...)
}

// groupsOf returns the message groups of a request of this client.
func groupsOf(t *testing.T, agent string, messages ...any) []history.MessageGroup {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "m", "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	rd := history.NewRequestReader(64)
	var readings [2][]history.MessageGroup // the second uses cached messages, which must be unchanged
	for i := range readings {
		r, err := rd.Read(body, history.SenderFromRequestHeaders(&http.Request{Header: http.Header{"User-Agent": {agent}}}, "", ""))
		if err != nil {
			t.Fatal(err)
		}
		readings[i] = r.GroupAndInterpretMessages(r.Messages)
	}
	if diff := cmp.Diff(readings[0], readings[1], cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("the second reading (-first +second):\n%s", diff)
	}
	return readings[1]
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

// TestShellCommand: a shell command that the user has typed is a prompt, unless a prompt follows it.
func TestShellCommand(t *testing.T) {
	const output = "<bash-stdout>hi</bash-stdout><bash-stderr></bash-stderr>"
	for want, blocks := range map[string][]any{
		"!echo hi":    {text("<bash-input>echo hi</bash-input>\n"), text(output)},
		"and then?":   {text("<bash-input>echo hi</bash-input>\n"), text(output + "\n"), text("and then?")},
		"!false\n!ls": {text("<bash-input>false</bash-input>\n"), text(output + "\n"), text("<bash-input>ls</bash-input>\n"), text(output)},
	} {
		g := messageGroups(t, object{"role": "user", "content": blocks})
		if len(g) != 1 || len(g[0].Steps) != 1 || g[0].Steps[0].Text != want || g[0].Context[1] != output {
			t.Errorf("%s: %+v", want, g)
		}
	}
}

// TestResults (messages-api 8): texts that Claude Code adds to a tool result are not part of the result.
func TestResults(t *testing.T) {
	for name, content := range map[string]string{
		"reminder": "plain\n\n<system-reminder>\nBe careful.\n</system-reminder>\n",
		"schema":   "plain\n\nThis tool's input schema was not in your prompt when you called it. The input schema is: {}",
		"spaces":   "plain\n\n<system-reminder>\na\n</system-reminder> \n",
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

// A reminder inside a result, for example in the content of a file, is part of the result.
func TestReminderInsideResult(t *testing.T) {
	for _, content := range []string{"a\n\n<system-reminder>\nb\n</system-reminder>\nc", "a</system-reminder>"} {
		g := messageGroups(t, object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": "a", "content": content}}})
		if diff := cmp.Diff(content, g[0].Steps[0].Results[0].Text); diff != "" {
			t.Error(diff)
		}
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
		"another client":                 {"", []any{bash, text("Be brief.")}, []string{"results", "beside Be brief."}},
		"an interrupt of another client": {"", []any{bash, text("[Request interrupted by user]"), text("two")}, []string{"closed", "interrupt ", "prompt two"}},
		"a picture with a result":        {"claude-cli/2.1.329", []any{bash, object{"type": "image", "source": object{}}}, []string{"results"}},
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

// TestInterrupted: a prompt that was interrupted before any reply is in the same message as the next prompt but is not
// part of it (observed with 2.1.329).
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

// A group can consist of several messages.
func TestAdjacentMessages(t *testing.T) {
	result := func(id, content string) object {
		return object{"type": "tool_result", "tool_use_id": id, "content": content}
	}
	user := func(content ...any) object { return object{"role": "user", "content": content} }
	const interrupt = "[Request interrupted by user]"
	for name, tt := range map[string]struct {
		messages []any
		want     []string
	}{
		"an interrupt first":                     {[]any{user(text(interrupt)), user(result("bash", "1"))}, []string{"interrupt ", "closed 1", "prompt "}},
		"only a prompt that was typed meanwhile": {[]any{user(text("The user sent a new message while you were working:\nquick"))}, []string{"prompt quick"}},
		"two prompts that were typed meanwhile": {
			[]any{user(text("The user sent a new message while you were working:\nquick\n\nThis is how Claude Code surfaces messages.\n\nThe user sent a new message while you were working:\nslow"))}, []string{"prompt quick", "prompt slow"},
		},
		"only context": {[]any{user(text("<system-reminder>\nx\n</system-reminder>"))}, []string{"prompt x"}},
		"notices that were queued together": {
			[]any{user(text("<system-reminder>\n[SYSTEM NOTIFICATION - NOT USER INPUT]\n<task-notification>a</task-notification>\n</system-reminder>\n"), text("<system-reminder>\n[SYSTEM NOTIFICATION - NOT USER INPUT]\n<task-notification>b</task-notification>\n</system-reminder>"))},
			[]string{"notice <task-notification>a</task-notification>\n<task-notification>b</task-notification>"},
		},
		"only a picture": {[]any{user(object{"type": "image", "source": object{}})}, []string{"prompt "}},
	} {
		t.Run(name, func(t *testing.T) {
			uses := []any{
				object{"type": "tool_use", "id": "bash", "name": "Bash", "input": object{}}, object{"type": "tool_use", "id": "skill", "name": "Skill", "input": object{}},
			}
			g := groupsOf(t, "claude-cli/2.1.329", append([]any{user(text("one")), object{"role": "assistant", "content": uses}}, tt.messages...)...)
			var got []string
			for _, s := range g[2].Steps {
				if s.Results != nil {
					got = append(got, fmt.Sprint(s.Kind, " ", len(s.Results)))
					continue
				}
				got = append(got, string(s.Kind)+" "+s.Text)
				if name == "only context" {
					if diff := cmp.Diff([]string{s.Text}, s.Blocks); diff != "" {
						t.Errorf("pieces (-want +got):\n%s", diff)
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// Two conversations are equal if the parts that a scenario can script are equal. Ids, thinking, white space in inputs
// and the division of an answer into blocks are ignored.
func TestSameConversation(t *testing.T) {
	use := func(id, name string, input object) object {
		return object{"type": "tool_use", "id": id, "name": name, "input": input}
	}
	result := func(id, content string, isError bool) object {
		return object{"type": "tool_result", "tool_use_id": id, "content": content, "is_error": isError}
	}
	image := object{"type": "image", "source": object{}}
	type turn struct{ prompt, answer, next []any }
	digests := func(t *testing.T, c turn) []history.Digest {
		t.Helper()
		var out []history.Digest
		for _, g := range messageGroups(t, object{"role": "user", "content": c.prompt}, object{"role": "assistant", "content": c.answer}, object{"role": "user", "content": c.next}) {
			out = append(out, g.AnswerDigest)
			for _, s := range g.Steps {
				out = append(out, s.Digest(g.Uses))
			}
		}
		return out
	}
	prompt := []any{text("hi")}
	answer := []any{text("well"), use("a", "Bash", object{"command": "ls"}), use("b", "Read", object{})}
	next := []any{result("a", "x", false), result("b", "y", false)}
	base := digests(t, turn{prompt, answer, next})
	for name, c := range map[string]turn{
		"other ids":         {prompt, []any{text("well"), use("c", "Bash", object{"command": "ls"}), use("d", "Read", object{})}, []any{result("c", "x", false), result("d", "y", false)}},
		"another order":     {prompt, answer, []any{next[1], next[0]}},
		"a divided text":    {prompt, []any{text("we"), text("ll"), answer[1], answer[2]}, next},
		"with thinking":     {prompt, []any{object{"type": "thinking", "thinking": "hm", "signature": ""}, answer[0], answer[1], answer[2]}, next},
		"an input in lines": {prompt, []any{answer[0], object{"type": "tool_use", "id": "a", "name": "Bash", "input": json.RawMessage("{ \"command\":\n\"ls\" }")}, answer[2]}, next},
	} {
		if diff := cmp.Diff(base, digests(t, c)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, c := range map[string]turn{
		"another prompt":    {[]any{text("ho")}, answer, next},
		"a picture":         {[]any{text("hi"), image}, answer, next},
		"another answer":    {prompt, []any{text("good"), answer[1], answer[2]}, next},
		"another tool":      {prompt, []any{answer[0], use("a", "Grep", object{"command": "ls"}), answer[2]}, next},
		"another input":     {prompt, []any{answer[0], use("a", "Bash", object{"command": "id"}), answer[2]}, next},
		"results exchanged": {prompt, answer, []any{result("a", "y", false), result("b", "x", false)}},
		"another result":    {prompt, answer, []any{next[0], result("b", "z", false)}},
		"a failed result":   {prompt, answer, []any{next[0], result("b", "y", true)}},
		"interrupted":       {prompt, answer, []any{next[0], next[1], text("[Request interrupted by user]")}},
	} {
		if cmp.Equal(base, digests(t, c)) {
			t.Errorf("%s: the digests are the same", name)
		}
	}
}

// The digest of an answer in several messages depends on each of them and on their order.
func TestAnswerInSeveralMessages(t *testing.T) {
	known := map[history.Digest][]string{}
	for _, texts := range [][]string{{"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"a", "b", "a"}} {
		messages := []any{object{"role": "user", "content": "hi"}}
		for _, s := range texts {
			messages = append(messages, object{"role": "assistant", "content": s})
		}
		d := messageGroups(t, messages...)[1].AnswerDigest
		if other, found := known[d]; found {
			t.Errorf("%q and %q have the same digest", texts, other)
		}
		known[d] = texts
	}
}

// A rule can match the first content blocks of a prompt alone, and another rule the other blocks.
func TestBlocksOfAPrompt(t *testing.T) {
	g := messageGroups(t, object{"role": "user", "content": []any{text("a\n"), text("b\n"), text("c")}})
	whole := g[0].Steps[0]
	head, tail := whole.PromptFromFirstBlocks(1), whole.PromptWithoutFirstBlocks(1)
	if diff := cmp.Diff([][]string{{"a", "b", "c"}, {"a"}, {"b", "c"}}, [][]string{whole.Blocks, head.Blocks, tail.Blocks}); diff != "" {
		t.Errorf("pieces (-want +got):\n%s", diff)
	}
	for want, part := range map[string]history.Segment{"a": head, "b\nc": tail} {
		alone := messageGroups(t, object{"role": "user", "content": want})[0].Steps[0]
		if part.Text != want || part.Digest(nil) != alone.Digest(nil) {
			t.Errorf("%q is not the prompt %q", part.Text, want)
		}
	}
}

// Expressions can read the headers of a request except those that may contain a credential.
func TestVisibleHeaders(t *testing.T) {
	c := history.SenderFromRequestHeaders(&http.Request{Header: http.Header{
		"X-Api-Key": {"k"}, "Authorization": {"Bearer k"}, "Proxy-Authorization": {"Basic k"}, "Cookie": {"k"}, "X-Claudeless-Token": {"k"}, "My-Token": {"k"},
		"X-Secret-Id": {"k"}, "Aws-Credential": {"k"}, "Other-Api-Key": {"k"}, "X-Team": {"red", "blue"}, "Key": {"visible"},
	}}, "", "")
	want := map[string]string{"x-team": "red, blue", "key": "visible"}
	for _, name := range []string{"x-api-key", "authorization", "proxy-authorization", "cookie", "x-claudeless-token", "my-token", "x-secret-id", "aws-credential", "other-api-key"} {
		want[name] = "[redacted]"
	}
	if diff := cmp.Diff(want, c.RedactedHeaders()); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

// The number of retries that an SDK reports is limited in both directions.
func TestRetries(t *testing.T) {
	got := map[string]int{}
	for _, text := range []string{"", "x", "-3", "0", "2", "1000", "99999"} {
		got[text] = history.SenderFromRequestHeaders(&http.Request{Header: http.Header{"X-Stainless-Retry-Count": {text}}}, "", "").Retries
	}
	if diff := cmp.Diff(map[string]int{"": 0, "x": 0, "-3": 0, "0": 0, "2": 2, "1000": 1000, "99999": 1000}, got); diff != "" {
		t.Errorf("retries (-want +got):\n%s", diff)
	}
}

// Thinking that claudeless signed must come back unchanged. Other signatures are not checked.
func TestThinkingSignature(t *testing.T) {
	sum := sha256.Sum256([]byte("hm"))
	own := base64.StdEncoding.EncodeToString(sum[:9])
	const altered, order = "400 messages.1.content.0: Invalid `signature` in `thinking` block",
		"400 messages.1.content.0.type: If an assistant message contains any thinking blocks, the first block must be `thinking` or `redacted_thinking`. Found `tool_use`."
	thinking := func(text, signature string) object {
		return object{"type": "thinking", "thinking": text, "signature": signature}
	}
	call := object{"type": "tool_use", "id": "a", "name": "T", "input": object{}}
	for name, tt := range map[string]struct {
		mode    string
		content []any
		want    string
	}{
		"as signed":             {"enabled", []any{thinking("hm", own), call}, ""},
		"altered":               {"enabled", []any{thinking("ha", own), call}, altered},
		"altered, adaptive":     {"adaptive", []any{thinking("ha", own), call}, altered},
		"without text":          {"enabled", []any{thinking("", own), call}, ""},
		"another signature":     {"enabled", []any{thinking("hm", own+"AAAA"), call}, ""},
		"no base64":             {"enabled", []any{thinking("ha", own+"!"), call}, ""},
		"unsigned":              {"enabled", []any{thinking("hm", ""), call}, altered},
		"unsigned, adaptive":    {"adaptive", []any{thinking("hm", ""), call}, ""},
		"after a call":          {"enabled", []any{call, thinking("hm", own)}, order},
		"altered, but disabled": {"disabled", []any{thinking("ha", own), call}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(object{"model": "m", "max_tokens": 9, "metadata": object{"user_id": "u"}, "thinking": object{"type": tt.mode}, "messages": []any{
				object{"role": "user", "content": "hi"},
				object{"role": "assistant", "content": tt.content},
				object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": "a"}}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			r, err := history.NewRequestReader(8).Read(body, history.RequestSender{})
			if err != nil || string(r.Metadata) != `{"user_id":"u"}` {
				t.Fatalf("%v, metadata %s", err, r.Metadata)
			}
			got := ""
			if err := r.Check(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

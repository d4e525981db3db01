package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/api"
)

// client sends requests as Claude Code does.
type client struct {
	t        *testing.T
	server   http.Handler
	session  string
	agent    string
	messages []block
	tools    []string
}

// send sends a prompt, adds the answer to the history, and returns its text.
func (c *client) send(more ...block) string {
	c.t.Helper()
	c.messages = append(c.messages, more...)
	status, m := c.ask()
	if status != http.StatusOK {
		c.t.Fatalf("status %d: %v", status, m)
	}
	content, _ := m["content"].([]any)
	c.messages = append(c.messages, block{"role": "assistant", "content": content})
	var texts []string
	for _, b := range content {
		b, _ := b.(map[string]any)
		switch b["type"] {
		case "text":
			texts = append(texts, fmt.Sprint(b["text"]))
		case "tool_use":
			texts = append(texts, fmt.Sprint(b["name"], " ", b["id"]))
		}
	}
	return strings.Join(texts, "|")
}

func (c *client) ask() (int, map[string]any) {
	c.t.Helper()
	var tools []block
	for _, name := range c.tools {
		tools = append(tools, block{"name": name, "input_schema": block{}})
	}
	body := mustJSON(c.t, block{"model": "m", "max_tokens": 100, "messages": c.messages, "tools": tools})
	r := httptest.NewRequestWithContext(c.t.Context(), http.MethodPost, "/v1/messages?beta=true", strings.NewReader(string(body)))
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("User-Agent", "claude-cli/2.1.329 (external, cli)")
	r.Header.Set("X-Claude-Code-Session-Id", c.session)
	if c.agent != "" {
		r.Header.Set("X-Claude-Code-Agent-Id", c.agent)
	}
	w := httptest.NewRecorder()
	c.server.ServeHTTP(w, r)
	var m map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
		c.t.Fatal(err)
	}
	return w.Code, m
}

func userMessage(texts ...string) block {
	var blocks []block
	for _, text := range texts {
		blocks = append(blocks, block{"type": "text", "text": text})
	}
	return block{"role": "user", "content": blocks}
}

func withLossyClient(o *api.Options) { o.Memory = -1 }

// TestCutHistory: after a compaction the history starts again and the session continues. Without the memory the
// replay starts at the first turn.
func TestCutHistory(t *testing.T) {
	const src = `
[[responses]]
pattern = { type = "exact", text = "count" }
response = "{{ turn }}"
[[responses]]
pattern = { type = "exact", text = "begin" }
response = "one"
[[responses.turns]]
expect = { type = "exact", text = "next" }
response = "two"
`
	for name, tt := range map[string]struct {
		change []func(*api.Options)
		want   []string
	}{
		"remembered": {nil, []string{"1", "one", "two", "4", "5"}},
		"lost":       {[]func(*api.Options){withLossyClient}, []string{"1", "one", "", "2", "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &client{t: t, server: newServer(t, src, tt.change...), session: "s"}
			got := []string{c.send(userMessage("count")), c.send(userMessage("begin"))}
			summary := block{"role": "user", "content": "This session is being continued from a previous conversation that ran out of context. All was well."}
			c.messages = []block{summary, {"role": "assistant", "content": "one"}}
			got = append(got, c.send(userMessage("<local-command-stdout>Compacted </local-command-stdout>", "next")), c.send(userMessage("count")), c.send(userMessage("count")))
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestCutAgain: a request that was too long is sent again after the summary. It counts as another attempt of the same
// request, and the scenario continues with it.
func TestCutAgain(t *testing.T) {
	const src = `
[[responses]]
pattern = { type = "exact", text = "tools" }
[[responses.response.steps]]
tool_calls = [{ tool = "Bash", input = { command = "echo a" } }]
[[responses.response.steps]]
failure = { type = "prompt_too_long", times = 1 }
text = "after {{ results[0].text }}"
[[responses]]
pattern = { type = "exact", text = "once" }
failure = { type = "prompt_too_long", times = 1 }
response = "through {{ attempt }}"
[[responses]]
pattern = { type = "exact", text = "next" }
response = "turn {{ turn }}"
`
	const summary = "This session is being continued from a previous conversation that ran out of context. All was well."
	for name, tt := range map[string]struct {
		change []func(*api.Options)
		want   []string
	}{
		"remembered": {nil, []string{"after a", "through 2", "turn 3"}},
		"lost":       {[]func(*api.Options){withLossyClient}, []string{"", "400", "turn 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &client{t: t, server: newServer(t, src, tt.change...), session: "s", tools: []string{"Bash"}}
			c.send(userMessage("tools"))
			call := c.messages[1]["content"].([]any)[0].(map[string]any)
			result := block{"role": "user", "content": []block{{"type": "tool_result", "tool_use_id": call["id"], "content": "a"}}}
			c.messages = append(c.messages, result)
			if status, _ := c.ask(); status != http.StatusBadRequest {
				t.Fatal(status)
			}
			c.messages = []block{{"role": "user", "content": summary}, c.messages[1]}
			got := []string{c.send(result)}
			c.messages = append(c.messages, userMessage("once"))
			if status, _ := c.ask(); status != http.StatusBadRequest {
				t.Fatal(status)
			}
			c.messages = []block{userMessage(summary+" Twice.", "once")}
			status, m := c.ask()
			if content, _ := m["content"].([]any); status == http.StatusOK {
				got = append(got, fmt.Sprint(content[0].(map[string]any)["text"]))
				c.messages = append(c.messages, block{"role": "assistant", "content": content})
			} else {
				got = append(got, fmt.Sprint(status))
			}
			got = append(got, c.send(userMessage("next")))
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestCutForked: a compacted session that is forked continues under its new id.
func TestCutForked(t *testing.T) {
	server := newServer(t, `default_response = "turn {{ turn }}"`)
	c := &client{t: t, server: server, session: "s"}
	c.send(userMessage("a"))
	c.send(userMessage("b"))
	c.messages = nil
	got := []string{c.send(userMessage("This session is being continued from a previous conversation that ran out of context.", "c"))}
	c.session = "fork"
	got = append(got, c.send(userMessage("d")), c.send(userMessage("e")))
	if want := "[turn 3 turn 4 turn 5]"; fmt.Sprint(got) != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

// TestSummary: the summary of a conversation counts all its prompts, even if the last one has no answer.
func TestSummary(t *testing.T) {
	c := &client{t: t, server: newServer(t, `default_response = "ok"`), session: "s", tools: []string{"Bash"}}
	c.send(userMessage("a"))
	c.send(userMessage("b"))
	const critical = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."
	for _, messages := range [][]block{append(c.messages, userMessage(critical)), append(c.messages, userMessage("c\n", critical))} {
		beside := &client{t: t, server: c.server, session: "s", tools: c.tools, messages: messages}
		if got := beside.send(); !strings.Contains(got, "The user sent 2 prompts and each was answered.") {
			t.Error(got)
		}
	}
}

// TestScriptedAgents: the conversation of a sub-agent plays the script of the call that started it. Without the
// memory the rules answer, and the journal has a finding.
func TestScriptedAgents(t *testing.T) {
	const src = `
default_response = "the rules"
[[responses]]
pattern = { type = "exact", text = "delegate" }
[[responses.response.steps]]
tool_calls = [
  { tool = "Task", input = { prompt = "work" }, subagent = { steps = [{ text = "first", tool_calls = [{ tool = "Bash" }] }, { text = "first done" }] } },
  { tool = "Task", input = { prompt = "work" }, subagent = { steps = [{ text = "second" }] } },
]
`
	for name, tt := range map[string]struct {
		change []func(*api.Options)
		want   []string
		lost   bool
	}{
		"remembered": {nil, []string{"first", "second", "first done"}, false},
		"lost":       {[]func(*api.Options){withLossyClient}, []string{"the rules", "the rules", ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var journal safeBuffer
			server := newServer(t, src, append(tt.change, func(o *api.Options) { o.Capture = &journal })...)
			parent := &client{t: t, server: server, session: "s", tools: []string{"Agent", "Bash"}}
			if said := parent.send(userMessage("delegate")); strings.Count(said, "Agent toolu_") != 2 {
				t.Fatal(said)
			}
			if _, again := parent.ask(); again == nil { // a retry does not start a third script
				t.Fatal("no answer")
			}
			a := &client{t: t, server: server, session: "s", agent: "a1", tools: []string{"Bash"}}
			b := &client{t: t, server: server, session: "s", agent: "a2", tools: []string{"Bash"}}
			text, _, _ := strings.Cut(a.send(userMessage("work")), "|")
			got := []string{text, b.send(userMessage("work"))}
			last := a.messages[len(a.messages)-1]["content"].([]any)
			if call := last[len(last)-1].(map[string]any); call["type"] == "tool_use" {
				got = append(got, a.send(block{"role": "user", "content": []block{{"type": "tool_result", "tool_use_id": call["id"], "content": "r"}}}))
			} else {
				got = append(got, "")
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if strings.Contains(journal.String(), "the script of the sub-agent") != tt.lost {
				t.Error(journal.String())
			}
		})
	}
}

// TestAttempts: a failure with times counts the attempts of one conversation, even if other parts of the request
// change. Without the memory every attempt fails.
func TestAttempts(t *testing.T) {
	const src = `
[[responses]]
pattern = { type = "exact", text = "flaky" }
failure = { type = "api_error", status = 529, times = 2 }
response = "attempt {{ attempt }}"
[[responses]]
pattern = { type = "any" }
response = "other"
`
	server := newServer(t, src)
	statuses := func(session, agent string, tools ...string) []int {
		var out []int
		for i := range 4 {
			c := &client{t: t, server: server, session: session, agent: agent, messages: []block{userMessage("flaky")}}
			c.tools = tools[:min(i, len(tools))]
			status, _ := c.ask()
			out = append(out, status)
		}
		return out
	}
	if got := statuses("s", "", "A", "B", "C"); fmt.Sprint(got) != "[529 529 200 200]" {
		t.Error(got)
	}
	if got := statuses("s", "agent"); fmt.Sprint(got) != "[529 529 200 200]" {
		t.Errorf("an agent counts for itself: %v", got)
	}
	server = newServer(t, src, withLossyClient)
	if got := statuses("s", ""); fmt.Sprint(got) != "[529 529 529 529]" {
		t.Errorf("without memory: %v", got)
	}
}

// TestFailedPrompt: a prompt that failed finally is the first block of the next user message. Both count as separate
// prompts, as in the CLI.
func TestFailedPrompt(t *testing.T) {
	server := newServer(t, `
[[responses]]
pattern = { type = "exact", text = "bad" }
failure = { type = "prompt_too_long" }
[[responses]]
pattern = { type = "exact", text = "good" }
response = "turn {{ turn }}"
`)
	c := &client{t: t, server: server, session: "s", messages: []block{userMessage("bad")}}
	if status, m := c.ask(); status != http.StatusBadRequest {
		t.Fatal(status, m)
	}
	c.messages = nil
	if got := c.send(userMessage("bad\n", "good")); got != "turn 2" {
		t.Error(got)
	}
}

// TestSideRequests (messages-api 8): side requests do not change rules, counts or expectations.
func TestSideRequests(t *testing.T) {
	var journal safeBuffer
	server := newServer(t, `
unmatched = "error"
[[responses]]
pattern = { type = "contains", text = "hello" }
max_matches = 1
response = "turn {{ turn }}"
[[api.side]]
kind = "probe"
text = "scripted probe"
[[expect]]
prompt = { type = "contains", text = "hello" }
times = 1
`, func(o *api.Options) { o.Capture = &journal })
	ask := func(body string) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", strings.NewReader(body))
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set("User-Agent", "claude-cli/2.1.329 (external, cli)")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return fmt.Sprint(w.Code, " ", strings.Join(textsOf(t, w.Body), "|"))
	}
	for _, tt := range []struct{ kind, body, want string }{
		{"title", `{"model":"h","max_tokens":9,"system":"You are naming a coding session from what is said.","messages":[{"role":"user","content":"<session>\nhello one two three four five six\n</session>\nName it."}],"output_config":{"format":{"type":"json_schema","schema":{"properties":{"title":{}}}}}}`, `200 {"title":"hello one two three four"}`},
		{"probe", `{"model":"h","max_tokens":1,"messages":[{"role":"user","content":"hello"}]}`, `200 scripted probe`},
		{"compact", `{"model":"h","max_tokens":9,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"x"},{"role":"user","content":"CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."}]}`, "200 <summary>\nThe conversation so far followed the scenario.\n</summary>"},
		{"other", `{"model":"h","max_tokens":9,"messages":[{"role":"user","content":"hello"}],"output_config":{"format":{"type":"json_schema","schema":{"properties":{"risk":{}}}}}}`, `200 OK`},
	} {
		if got := ask(tt.body); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.kind, got, tt.want)
		}
		if want := fmt.Sprintf(`"type":"side_request","namespace":"","kind":%q`, tt.kind); !strings.Contains(journal.String(), want) {
			t.Errorf("no %s in %s", want, journal.String())
		}
	}
	if !strings.Contains(journal.String(), `"unclassified":true`) {
		t.Error("no drift alarm")
	}
	if got := ask(`{"model":"m","max_tokens":99,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"hello"}]}`); got != "200 turn 1" {
		t.Errorf("the conversation afterwards: %s", got)
	}
	if unmet := unmetExpectations(t, server); len(unmet) != 0 {
		t.Error(unmet)
	}
}

func textsOf(t *testing.T, body io.Reader) []string {
	t.Helper()
	var m struct {
		Content []struct{ Text string }
		Error   struct{ Message string }
	}
	if err := json.NewDecoder(body).Decode(&m); err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for _, c := range m.Content {
		texts = append(texts, c.Text)
	}
	if m.Error.Message != "" {
		texts = append(texts, m.Error.Message)
	}
	return texts
}

// TestMatchesOfARun: rules with a limit count over all sessions of a run, even if a session repeats a request, is
// resumed or forked. Without a run, each session counts separately.
func TestMatchesOfARun(t *testing.T) {
	const src = `
[[responses]]
pattern = { type = "any" }
once = true
response = "once"
[[responses]]
pattern = { type = "any" }
max_matches = 2
response = "twice"
[[responses]]
pattern = { type = "any" }
response = "rest"
`
	for name, tt := range map[string]struct {
		change []func(*api.Options)
		want   []string
	}{
		"a run": {
			[]func(*api.Options){func(o *api.Options) { o.IsPartOfRun, o.Gates = true, filepath.Join(t.TempDir(), "gates") }},
			[]string{"once", "twice", "once", "twice", "rest", "rest", "rest"},
		},
		"no run": {nil, []string{"once", "once", "once", "twice", "twice", "twice", "once"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(t, src, tt.change...)
			session := func(name string, messages ...block) *client {
				return &client{t: t, server: server, session: name, messages: slices.Clone(messages)}
			}
			first, second := session("a"), session("b")
			got := []string{first.send(userMessage("go")), second.send(userMessage("go"))}
			got = append(got, session("a").send(userMessage("go"))) // the same request again
			forked := session("c", second.messages...)
			got = append(got, second.send(userMessage("on")), first.send(userMessage("on")), forked.send(userMessage("on")), session("d").send(userMessage("go")))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

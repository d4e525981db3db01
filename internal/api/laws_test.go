package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/api"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// conversations is the number of random conversations for each law.
var conversations = flag.Int("conversations", 100, "random conversations for each law")

// block is a content block of a request or an answer.
type block map[string]any

// turnMessage is a message of a history, before it is rendered.
type turnMessage struct {
	role    string
	blocks  []block
	context []string // context blocks next to it
	added   []string // prompts typed during the turn
}

// modelRequest is one request of the CLI: its history, and the model's reply.
type modelRequest struct {
	history []turnMessage
	blocks  []block
	fails   int // failed attempts before the reply
}

// sessionModel simulates the turn loop of the CLI with its own engine, and records the requests to the model.
type sessionModel struct {
	t        *testing.T
	r        *rand.Rand
	engine   *scenarios.Engine
	history  []turnMessage
	requests []modelRequest
	failed   map[string]int
	ids      int
	stops    int
	limits   int          // how often a turn may end with a call
	ended    *turnMessage // results that were not sent to the model; nil means none
}

// silentText is the text that Claude Code sends after an empty reply, once in a turn. The reply is not part of the
// history.
const silentText = "[Your previous response had no visible output. Please continue and produce a user-visible response.]"

// prompt plays one prompt to the end of its turn.
func (c *sessionModel) prompt(text string) {
	typed := turnMessage{role: "user", blocks: []block{{"type": "text", "text": text}}, context: c.contexts()}
	if c.ended != nil {
		typed.blocks, c.ended = append(c.ended.blocks, typed.blocks...), nil
	}
	c.history = append(c.history, typed)
	req := scenarios.Request{Prompt: text}
	var said []block // the message so far
	var waiting []string
	fails := 0
	begin := slices.Clone(c.history)
	more, adds, prodded := false, 0, false
	for range 100 {
		reply, err := c.engine.Next(c.t.Context(), req)
		if err != nil {
			c.t.Fatal(err)
		}
		var calls []block
		if !req.IsInterjected || !reply.IsUnmatched {
			fails += c.failures(reply)
			calls = c.blocks(&said, reply)
			more = reply.HasMore
		}
		switch {
		case len(calls) > 0:
			c.answer(begin, said, fails)
			results, message := c.run(calls)
			if adds++; adds < 4 && c.r.IntN(4) == 0 {
				message.added = []string{randomWord(c.r)}
				waiting = append(slices.Clone(waiting), message.added...)
			}
			if c.limits > 0 && c.r.IntN(3) == 0 {
				c.limits--
				message.added, message.context = nil, nil
				c.ended = &message
				return
			}
			c.history = append(c.history, message)
			begin, said, fails = slices.Clone(c.history), nil, 0
			req = scenarios.Request{Results: results}
		case len(said) == 0 && !prodded:
			prodded = true
			c.requests = append(c.requests, modelRequest{history: begin, blocks: []block{{"type": "text", "text": ""}}, fails: fails})
			c.history = append(c.history, turnMessage{role: "user", blocks: []block{{"type": "text", "text": silentText}}})
			begin, fails = slices.Clone(c.history), 0
			req = scenarios.Request{Results: []scenarios.ToolCallResult{}}
		case more:
			req = scenarios.Request{Results: []scenarios.ToolCallResult{}}
		case len(waiting) > 0:
			req = scenarios.Request{Prompt: waiting[0], IsInterjected: true}
			waiting = waiting[1:]
		default:
			c.answer(begin, said, fails)
			if c.stops == 0 || c.r.IntN(3) > 0 {
				return
			}
			c.stops--
			feedback := "Stop hook feedback:\n[check]: " + randomWord(c.r)
			c.history = append(c.history, turnMessage{role: "user", blocks: []block{{"type": "text", "text": feedback}}})
			begin, said, fails = slices.Clone(c.history), nil, 0
			req = scenarios.Request{Prompt: feedback, IsInjected: true, IsNotification: true}
		}
	}
	c.t.Fatal("a turn without an end")
}

func (c *sessionModel) contexts() []string {
	if c.r.IntN(2) == 0 {
		return nil
	}
	return []string{"# Environment\n" + randomWord(c.r)}
}

// failures returns the number of failed attempts before the reply, as the CLI counts them.
func (c *sessionModel) failures(reply scenarios.Reply) int {
	if reply.Failure == nil {
		return 0
	}
	n := max(0, reply.Failure.Times-c.failed[reply.Rule.Name])
	c.failed[reply.Rule.Name] += n
	return n
}

// blocks appends the blocks of a reply to the message and returns its calls.
func (c *sessionModel) blocks(said *[]block, reply scenarios.Reply) []block {
	var calls []block
	for _, b := range reply.Blocks {
		switch b := b.(type) {
		case protocol.TextBlock:
			if b.Text != "" {
				*said = append(*said, block{"type": "text", "text": b.Text})
			}
		case protocol.ThinkingBlock:
			b = scenarios.WithDefaultSignature(b)
			*said = append(*said, block{"type": "thinking", "thinking": b.Thinking, "signature": b.Signature})
		case protocol.ToolUse:
			c.ids++
			var input any
			if err := json.Unmarshal(b.Input, &input); err != nil {
				c.t.Fatal(err)
			}
			call := block{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", c.ids), "name": b.Name, "input": input}
			*said, calls = append(*said, call), append(calls, call)
		}
	}
	return calls
}

func (c *sessionModel) answer(begin []turnMessage, said []block, fails int) {
	if len(said) == 0 {
		said = []block{{"type": "text", "text": ""}}
	}
	c.requests = append(c.requests, modelRequest{history: begin, blocks: said, fails: fails})
	c.history = append(c.history, turnMessage{role: "assistant", blocks: said})
}

// run returns a result for each call.
func (c *sessionModel) run(calls []block) ([]scenarios.ToolCallResult, turnMessage) {
	var results []scenarios.ToolCallResult
	message := turnMessage{role: "user", context: c.contexts()}
	for _, call := range calls {
		text, bad := randomWord(c.r)+" "+randomWord(c.r), c.r.IntN(4) == 0
		id, _ := call["id"].(string)
		name, _ := call["name"].(string)
		results = append(results, scenarios.ToolCallResult{ToolUseID: id, Tool: name, Text: text, IsError: bad})
		message.blocks = append(message.blocks, block{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": bad})
	}
	return results, message
}

func randomWord(r *rand.Rand) string {
	return []string{"alpha", "beta", "gamma", "delta", "go on", "ünï", "alpha beta"}[r.IntN(7)]
}

// randomScenario writes a scenario that combines rules, counts, sequences, captures and conditions.
func randomScenario(r *rand.Rand, failures bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed = %d\n", r.IntN(1000))
	if r.IntN(2) == 0 {
		fmt.Fprintf(&b, "default_response = \"default {{ turn }} {{ prompt }}\"\n")
	}
	for range 1 + r.IntN(5) {
		b.WriteString("[[responses]]\n" + randomPattern(r, "pattern"))
		if r.IntN(3) == 0 {
			fmt.Fprintf(&b, "when = %q\n", pickOne(r, "turn > 1", "turn % 2 == 1", "prompt contains 'a'", "len(prompt) > 4"))
		}
		if r.IntN(3) == 0 {
			fmt.Fprintf(&b, "max_matches = %d\n", r.IntN(3))
		}
		if failures && r.IntN(5) == 0 {
			fmt.Fprintf(&b, "failure = { type = \"api_error\", status = 529, times = %d }\n", 1+r.IntN(2))
		}
		randomResponse(&b, r, "responses")
		for range r.IntN(3) {
			b.WriteString("[[responses.turns]]\n" + randomPattern(r, "expect"))
			randomResponse(&b, r, "responses.turns")
		}
	}
	return b.String()
}

func randomPattern(r *rand.Rand, key string) string {
	return key + " = " + pickOne(
		r, `{ type = "any" }`, `{ type = "exact", text = "`+randomWord(r)+`" }`, `{ type = "contains", text = "`+randomWord(r)[:2]+`" }`,
		`{ type = "regex", pattern = '(?P<w>\w+)' }`, `{ type = "regex", pattern = '^(?P<w>alpha|beta)( (?P<x>\w+))?$' }`,
	) + "\n"
}

func randomResponse(b *strings.Builder, r *rand.Rand, table string) {
	switch r.IntN(3) {
	case 0:
		fmt.Fprintf(b, "response = \"answer %d to {{ prompt }} in {{ turn }}\"\n", r.IntN(9))
		return
	case 1:
		fmt.Fprintf(b, "response = { text = \"closing {{ len(results) }}\", tool_calls = [{ tool = \"Bash\", input = { command = \"echo {{ prompt }}\" } }] }\n")
		return
	}
	for i := range 1 + r.IntN(4) {
		fmt.Fprintf(b, "[[%s.response.steps]]\n", table)
		if i > 0 && r.IntN(3) == 0 {
			fmt.Fprintf(b, "when = %q\n", pickOne(r, "len(results) > 1", "any(results, .is_error)", "turn > 1"))
		}
		if r.IntN(3) == 0 {
			fmt.Fprintf(b, "thinking = \"thought %d\"\n", r.IntN(9))
		}
		if r.IntN(4) > 0 {
			fmt.Fprintf(b, "text = \"step %d {{ join(map(results, .text), '+') }}\"\n", i)
		}
		if n := r.IntN(3); n > 0 {
			calls := make([]string, n)
			for j := range calls {
				calls[j] = fmt.Sprintf(`{ tool = %q, input = { command = "{{ prompt }} %d" } }`, pickOne(r, "Bash", "Read", "mcp__s__t"), j)
			}
			fmt.Fprintf(b, "tool_calls = [%s]\n", strings.Join(calls, ", "))
		}
	}
}

func pickOne(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// playConversation plays a random conversation as the CLI and returns its requests.
func playConversation(t *testing.T, r *rand.Rand, src string, stops int) []modelRequest {
	t.Helper()
	scenario, err := scenarios.Parse("scenario.toml", []byte(src), scenarios.LoadOptions{})
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	c := &sessionModel{t: t, r: r, engine: scenarios.NewEngine(scenario, scenarios.EngineOptions{}), failed: map[string]int{}, stops: stops, limits: r.IntN(3)}
	for range 1 + r.IntN(5) {
		c.prompt(randomWord(r))
	}
	return c.requests
}

// historyFormat is a way to write a history.
type historyFormat func(r *rand.Rand, history []turnMessage) []block

// joinUserMessages adds Claude Code's answer to an empty reply to the user message before it, as Claude Code does:
// the text before it gets a newline.
func joinUserMessages(history []turnMessage) []turnMessage {
	var out []turnMessage
	for _, m := range history {
		if len(out) == 0 || m.blocks[0]["text"] != silentText {
			out = append(out, m)
			continue
		}
		before := &out[len(out)-1]
		before.blocks = slices.Clone(before.blocks)
		if end := len(before.blocks) - 1; before.blocks[end]["type"] == "text" {
			before.blocks[end] = block{"type": "text", "text": fmt.Sprint(before.blocks[end]["text"], "\n")}
		}
		before.blocks = append(before.blocks, m.blocks...)
	}
	return out
}

// asNewModels writes a history as Claude Code does for newer models: context follows its message as a system message.
func asNewModels(_ *rand.Rand, history []turnMessage) []block {
	var out []block
	for _, m := range joinUserMessages(history) {
		out = append(out, block{"role": m.role, "content": m.blocks})
		for _, text := range m.context {
			out = append(out, block{"role": "system", "content": text})
		}
		for _, text := range m.added {
			out = append(out, block{"role": "system", "content": addedText(text)})
		}
	}
	return out
}

// asOldModels writes a history as Claude Code does for older models: reminders come before a prompt, and inside a
// tool result.
func asOldModels(_ *rand.Rand, history []turnMessage) []block {
	var out []block
	for _, m := range joinUserMessages(history) {
		blocks := slices.Clone(m.blocks)
		for _, text := range m.context {
			reminder := "<system-reminder>\n" + text + "\n</system-reminder>"
			if last := len(blocks) - 1; blocks[last]["type"] == "tool_result" {
				b := block{}
				maps.Copy(b, blocks[last])
				b["content"] = fmt.Sprint(b["content"], "\n\n", reminder)
				blocks[last] = b
				continue
			}
			blocks = slices.Insert(blocks, 0, block{"type": "text", "text": reminder})
		}
		for _, text := range m.added {
			blocks = append(blocks, block{"type": "text", "text": addedText(text)})
		}
		out = append(out, block{"role": m.role, "content": blocks})
	}
	return out
}

func addedText(text string) string {
	return "The user sent a new message while you were working:\n" + text + "\n\nThis is how Claude Code surfaces messages the user sends mid-turn."
}

// varyForm makes changes that must have no effect: string or array content, cache marks, split texts, omitted thinking,
// and the order of results.
func varyForm(r *rand.Rand, history []turnMessage) []block {
	render := asNewModels
	if r.IntN(2) == 0 {
		render = asOldModels
	}
	var changed []turnMessage
	for _, m := range joinUserMessages(history) {
		m.blocks = slices.Clone(m.blocks)
		if m.role == "assistant" {
			if slices.ContainsFunc(m.blocks, func(b block) bool { return b["type"] != "thinking" }) {
				m.blocks = slices.DeleteFunc(m.blocks, func(b block) bool { return b["type"] == "thinking" && r.IntN(2) == 0 })
			}
			m.blocks = cutTexts(r, m.blocks)
		} else if r.IntN(2) == 0 && m.blocks[0]["type"] == "tool_result" && m.blocks[len(m.blocks)-1]["type"] == "tool_result" {
			r.Shuffle(len(m.blocks), func(i, j int) { m.blocks[i], m.blocks[j] = m.blocks[j], m.blocks[i] })
		}
		changed = append(changed, m)
	}
	out := render(r, changed)
	for _, m := range out {
		blocks, ok := m["content"].([]block)
		switch {
		case !ok && r.IntN(2) == 0:
			m["content"] = []block{{"type": "text", "text": m["content"]}}
		case ok && len(blocks) == 1 && blocks[0]["type"] == "text" && r.IntN(2) == 0:
			m["content"] = blocks[0]["text"]
		case ok && len(blocks) > 0 && r.IntN(2) == 0:
			marked := slices.Clone(blocks)
			last := block{"cache_control": block{"type": "ephemeral"}}
			maps.Copy(last, marked[len(marked)-1])
			marked[len(marked)-1] = last
			m["content"] = marked
		}
	}
	return out
}

func cutTexts(r *rand.Rand, blocks []block) []block {
	var out []block
	for _, b := range blocks {
		text, ok := b["text"].(string)
		if !ok || len(text) < 2 || r.IntN(2) == 0 {
			out = append(out, b)
			continue
		}
		at := strings.IndexByte(text, ' ') + 1
		out = append(out, block{"type": "text", "text": text[:at]}, block{"type": "text", "text": text[at:]})
	}
	return out
}

// sendHistory sends a history and returns the status and the body.
func sendHistory(t *testing.T, server http.Handler, history []block, session string) (int, []byte) {
	t.Helper()
	body, err := json.Marshal(block{"model": "claude-opus-5-5", "max_tokens": 32000, "messages": history})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", bytes.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "claude-cli/2.1.329 (external, sdk-cli)")
	if session != "" {
		r.Header.Set("X-Claude-Code-Session-Id", session)
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return w.Code, w.Body.Bytes()
}

// responseBlocks returns the blocks of a response without ids.
func responseBlocks(t *testing.T, body []byte) []block {
	t.Helper()
	var m struct {
		Content []block `json:"content"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	return withoutIDs(m.Content)
}

func withoutIDs(blocks []block) []block {
	out := make([]block, len(blocks))
	for i, b := range blocks {
		out[i] = block{}
		for k, v := range b {
			if k != "id" {
				out[i][k] = v
			}
		}
	}
	return out
}

// TestLawsHold checks that the API replies to a history like the model of the CLI: in both formats of Claude Code (L1),
// after differences that must have no effect (L4), and to a repeated request (L2), with and without its memory.
func TestLawsHold(t *testing.T) {
	for i := range *conversations {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		src := randomScenario(r, true)
		talk := playConversation(t, r, src, r.IntN(2))
		forgetful := newServer(t, src, func(o *api.Options) { o.Memory = -1 })
		for name, render := range map[string]historyFormat{"new": asNewModels, "old": asOldModels, "varyForm": varyForm} {
			server := newServer(t, src)
			for n, a := range talk {
				history := render(r, a.history)
				context := fmt.Sprintf("conversation %d, %s, request %d\n%s\n%s", i, name, n, src, mustJSON(t, history))
				status, body := sendHistory(t, server, history, "")
				for range a.fails {
					if status != 529 {
						t.Fatalf("status %d, want 529 first: %s\n%s", status, body, context)
					}
					status, body = sendHistory(t, server, history, "")
				}
				if status != http.StatusOK {
					t.Fatalf("status %d: %s\n%s", status, body, context)
				}
				if diff := cmp.Diff(withoutIDs(a.blocks), responseBlocks(t, body)); diff != "" {
					t.Fatalf("L1 (-CLI +API):\n%s\n%s", diff, context)
				}
				if _, again := sendHistory(t, server, history, ""); !bytes.Equal(body, again) {
					t.Fatalf("L2: %s\nthen %s\n%s", body, again, context)
				}
				if a.fails == 0 && !strings.Contains(src, "failure") {
					if _, fresh := sendHistory(t, forgetful, history, ""); name != "varyForm" && !bytes.Equal(body, fresh) {
						t.Fatalf("without memory: %s\nwith %s\n%s", fresh, body, context)
					}
				}
			}
		}
	}
}

// TestIsolation checks L3: interleaved conversations get the same replies as each conversation alone.
func TestIsolation(t *testing.T) {
	for i := range *conversations / 4 {
		r := rand.New(rand.NewPCG(uint64(i), 3))
		src := randomScenario(r, false)
		type line struct {
			session string
			left    []modelRequest
		}
		shared := newServer(t, src)
		var lines []*line
		for n := range 4 {
			lines = append(lines, &line{session: pickOne(r, "", fmt.Sprintf("session-%d", n)), left: playConversation(t, r, src, 1)})
		}
		for len(lines) > 0 {
			n := r.IntN(len(lines))
			l := lines[n]
			a := l.left[0]
			status, body := sendHistory(t, shared, asNewModels(r, a.history), l.session)
			if status != http.StatusOK {
				t.Fatalf("status %d: %s", status, body)
			}
			if diff := cmp.Diff(withoutIDs(a.blocks), responseBlocks(t, body)); diff != "" {
				t.Fatalf("conversation %d (-alone +together):\n%s\n%s", i, diff, src)
			}
			if l.left = l.left[1:]; len(l.left) == 0 {
				lines = slices.Delete(lines, n, n+1)
			}
		}
	}
}

// TestSameSeed (messages-api 14.10): two servers with the same seed send the same bytes; a server with another seed
// sends other bytes.
func TestSameSeed(t *testing.T) {
	history := []block{{"role": "user", "content": "x"}}
	bodies := make([][]byte, 3)
	for i, seed := range []int{1, 1, 2} {
		_, bodies[i] = sendHistory(t, newServer(t, fmt.Sprintf("seed = %d\ndefault_response = \"y\"", seed)), history, "")
	}
	if !bytes.Equal(bodies[0], bodies[1]) || bytes.Equal(bodies[0], bodies[2]) {
		t.Errorf("%s\n%s\n%s", bodies[0], bodies[1], bodies[2])
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

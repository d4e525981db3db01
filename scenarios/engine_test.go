package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// parse loads a valid scenario.
func parse(t *testing.T, src string) *Scenario {
	t.Helper()
	s, err := Parse("s.toml", []byte(src), LoadOptions{ReadFile: func(string) ([]byte, error) { return []byte(`{"from": "file"}`), nil }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// show writes a reply as text: one line per block, then the other fields.
func show(r Reply) string {
	var lines []string
	for _, b := range r.Blocks {
		switch b := b.(type) {
		case protocol.TextBlock:
			lines = append(lines, "text "+b.Text)
		case protocol.ThinkingBlock:
			lines = append(lines, "thinking "+b.Thinking)
		case protocol.ToolUse:
			line := "call " + b.Name + " " + string(b.Input)
			if b.ID != "" {
				line += " id=" + b.ID
			}
			if b.Script != nil && b.Script.Result != nil {
				line += " result=" + *b.Script.Result
			}
			lines = append(lines, line)
		}
	}
	if r.Failure != nil {
		lines = append(lines, "failure "+string(r.Failure.Type))
	}
	if r.StructuredOutput != nil {
		lines = append(lines, "structured "+string(r.StructuredOutput))
	}
	if r.HasMore {
		lines = append(lines, "more")
	}
	return strings.Join(lines, " | ")
}

// converse sends each line as a prompt. A line that begins with "+ " is an injected prompt. A line that begins
// with "=> " instead answers the calls of the last reply: one word for each call, with "!" before an error.
func converse(t *testing.T, e *Engine, lines ...string) []string {
	t.Helper()
	var out []string
	for _, line := range lines {
		r := Request{Prompt: line, Vars: ExpressionVars{
			Model: "m", PermissionMode: "default", Tools: []string{"Bash", "mcp__w__f"},
			Schemas: map[string]json.RawMessage{"mcp__w__f": json.RawMessage(`{"type":"object","required":["city"]}`)},
			Session: SessionVars{ID: "S", IsResumed: true},
		}}
		if rest, ok := strings.CutPrefix(line, "+ "); ok {
			r.Prompt, r.IsInjected, r.IsNotification = rest, true, true
		}
		if rest, ok := strings.CutPrefix(line, "=> "); ok {
			r = Request{Results: []ToolCallResult{}, Vars: r.Vars}
			for word := range strings.FieldsSeq(rest) {
				text, bad := strings.CutPrefix(word, "!")
				r.Results = append(r.Results, ToolCallResult{
					Tool: "T", ToolUseID: "id", Text: text, IsError: bad, Content: json.RawMessage(`[{"type":"text"}]`),
					Structured: map[string]any{"n": 9007199254740993, "f": 1.5},
				})
			}
		}
		reply, err := e.Next(t.Context(), r)
		if err != nil {
			out = append(out, "error "+err.Error())
			continue
		}
		out = append(out, reply.Rule.Name+": "+show(reply))
	}
	return out
}

// Each conversation checks one rule of sections 1 and 2 of the scenario format.
func TestConversations(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		in, want  []string
	}{
		{"empty scenario", ``, []string{"x"}, []string{": text "}},
		{"default as text", `default_response = "d"`, []string{"x"}, []string{"default_response: text d"}},
		{"default as table", `default_response = { text = "d" }`, []string{"x"}, []string{"default_response: text d"}},
		{
			"first rule wins",
			ruleTOML(`any`, `"1"`) + ruleTOML(`any`, `"2"`),
			[]string{"x"},
			[]string{"responses[0]: text 1"},
		},
		{
			"max_matches counts, 0 is never",
			ruleTOML(`any`, `"never"`, `max_matches = 0`) + ruleTOML(`any`, `"twice"`, `max_matches = 2`) + ruleTOML(`any`, `"rest"`),
			[]string{"x", "x", "x"},
			[]string{"responses[1]: text twice", "responses[1]: text twice", "responses[2]: text rest"},
		},
		{
			"once is one prompt of the session, where nobody tells of others",
			ruleTOML(`any`, `"first"`, `once = true`) + ruleTOML(`any`, `"rest"`),
			[]string{"x", "x"},
			[]string{"responses[0]: text first", "responses[1]: text rest"},
		},
		{
			"a rule without a response is an empty reply",
			"[[responses]]\npattern = { type = \"any\" }\n",
			[]string{"x"},
			[]string{"responses[0]: text "},
		},
		{
			"failure wins over the response",
			ruleTOML(`any`, `"r"`, `failure = { type = "api_error", status = 529, times = 1 }`),
			[]string{"x"},
			[]string{"responses[0]: text r | failure api_error"},
		},
		{
			"turns are the next prompts; another prompt ends the sequence and goes to the rules",
			turnsScenario,
			[]string{"login", "joe", "pw", "joe", "login", "other", "joe"},
			[]string{
				"responses[0]: text name?", "responses[0].turns[0]: text hi joe", "responses[0].turns[1]: text in",
				"default_response: text d", "responses[0]: text name?", "responses[1]: text o", "default_response: text d",
			},
		},
		{
			"injected text is for rules that ask for it and leaves the sequence alone",
			turnsScenario + ruleTOML(`any`, `"it is {{ prompt }}"`, `source = "notification"`),
			[]string{"login", "+ joe", "+ other", "joe", "pw", "x"},
			[]string{
				"responses[0]: text name?", "responses[2]: text it is joe", "responses[2]: text it is other",
				"responses[0].turns[0]: text hi joe", "responses[0].turns[1]: text in", "default_response: text d",
			},
		},
		{
			"injected text is for the next turn if that asks for it, and else leaves the sequence alone",
			strings.Replace(turnsScenario, `(?P<n>joe)$' },`, `(?P<n>joe)$' }, source = "notification",`, 1),
			[]string{"login", "+ other", "+ joe", "+ x", "pw"},
			[]string{
				"responses[0]: text name?", "default_response: text d", "responses[0].turns[0]: text hi joe",
				"default_response: text d", "responses[0].turns[1]: text in",
			},
		},
		{
			"a rule for both answers both, as does a pattern that names a text of the CLI",
			ruleWithCaptures(`{ type = "exact", text = "a" }`, `"1"`, `source = "any"`) + ruleWithCaptures(`{ type = "contains", text = "Stop hook feedback" }`, `"2"`) + ruleTOML(`any`, `"3"`),
			[]string{"a", "+ a", "+ Stop hook feedback: b", "Stop hook feedback: b"},
			[]string{"responses[0]: text 1", "responses[0]: text 1", "responses[1]: text 2", "responses[1]: text 2"},
		},
		{
			"without a rule for it and a default, injected text gets the last text again, also where that is an error",
			`unmatched = "error"` + "\n" + ruleTOML(`any`, `"{{ 1 + 1 }} {{ '{{' }} no }}"`),
			[]string{"a", "+ a"},
			[]string{"responses[0]: text 2 {{ no }}", ": text 2 {{ no }}"},
		},
		{
			"turns see the captures of their rule and of earlier turns; the latest win",
			ruleWithCaptures(`{ type = "regex", pattern = '^write (?P<file>\S+) as (?P<n>\w+)$' }`, `"when?"`,
				"[[responses.turns]]\nexpect = { type = \"exact\", text = \"now\" }\nresponse = \"{{ match.file }} {{ match.n }} {{ match[0] }}\"",
				"[[responses.turns]]\nexpect = { type = \"regex\", pattern = '^(?P<n>joe)$' }\nresponse = \"{{ match.file }} {{ match.n }}\"",
				"[[responses.turns]]\nexpect = { type = \"exact\", text = \"end\" }\nresponse = \"{{ match.file }} {{ match.n }}\""),
			[]string{"write a.txt as bob", "now", "joe", "end"},
			[]string{
				"responses[0]: text when?", "responses[0].turns[0]: text a.txt bob now", "responses[0].turns[1]: text a.txt joe",
				"responses[0].turns[2]: text a.txt joe",
			},
		},
		{
			"text beside tool_calls closes after the results", // design.md 6
			ruleTOML(`any`, `{ text = "done", tool_calls = [{ tool = "Bash", input = { command = "ls" }, result = "r" }, { tool = "w/f" }] }`),
			[]string{"x", "=> a b", "=> c"},
			[]string{`responses[0]: call Bash {"command":"ls"} result=r | call w/f {} | more`, "responses[0]: text done", "responses[0]: text "},
		},
		{
			"a step is one message: thinking, text, calls; conditions see all results",
			quick,
			[]string{"weather in Oslo?", "=> rain"},
			[]string{`responses[0]: thinking T | text Let me look. | call weather/forecast_get {"city":"Oslo"} | more`, "responses[0]: text It is rain in Oslo."},
		},
		{
			"the other branch",
			quick,
			[]string{"weather in Lima", "=> !down"},
			[]string{`responses[0]: thinking T | text Let me look. | call weather/forecast_get {"city":"Lima"} | more`, "responses[0]: text failed: down"},
		},
		{
			"a last step with calls gets a closing empty message",
			ruleTOML(`any`, `{ steps = [{ tool_calls = [{ tool = "A" }] }] }`),
			[]string{"x", "=> a"},
			[]string{"responses[0]: call A {} | more", "responses[0]: text "},
		},
		{
			"results of all earlier steps",
			ruleTOML(`any`, `{ steps = [{ tool_calls = [{ tool = "A" }] }, { tool_calls = [{ tool = "B", input = { n = "{{ len(results) }}" } }] }, { text = "{{ join(map(results, .text), '+') }}" }] }`),
			[]string{"x", "=> a", "=> b"},
			[]string{"responses[0]: call A {} | more", `responses[0]: call B {"n":1} | more`, "responses[0]: text a+b"},
		},
		{
			"blocks keep their order",
			ruleTOML(`any`, `{ steps = [{ blocks = [{ type = "text", text = "1" }, { type = "tool_use", tool = "A", id = "toolu_1" }, { type = "thinking", thinking = "2" }, { type = "text", text = "3" }] }] }`),
			[]string{"x"},
			[]string{"responses[0]: text 1 | call A {} id=toolu_1 | thinking 2 | text 3 | more"},
		},
		{
			"text steps in a row are messages of their own",
			ruleTOML(`any`, `{ steps = [{ text = "1" }, { when = "false", text = "no" }, { text = "2" }] }`),
			[]string{"x", "=> "},
			[]string{"responses[0]: text 1 | more", "responses[0]: text 2"},
		},
		{
			"when on rules and turns",
			ruleTOML(`any`, `"plan"`, `when = 'permission_mode == "plan"'`) +
				ruleTOML(`any`, `"tool"`, `when = '"mcp__w__f" in tools && turn == 1'`,
					"[[responses.turns]]\nexpect = { type = \"any\" }\nwhen = 'turn > 5'\nresponse = \"late\"") + ruleTOML(`any`, `"rest"`),
			[]string{"x", "x"},
			[]string{"responses[1]: text tool", "responses[2]: text rest"},
		},
		{
			"typed and mixed templates, schemas, session, env",
			ruleTOML(`any`, `{ tool_calls = [{ tool = "A", input = { s = "{{ schemas['mcp__w__f'] }}", req = "{{ schemas['mcp__w__f'].required[0] }}", t = "v={{ tools }}", id = "{{ session.id }}", home = "{{ env.HOME }}", none = "{{ env.NOPE }}", first = "{{ args[0] }}", r = "{{ session.resumed }}", list = ["{{ turn }}", 1, true] } }] }`),
			[]string{"x"},
			[]string{`responses[0]: call A {"s":{"required":["city"],"type":"object"},"req":"city","t":"v=[\"Bash\",\"mcp__w__f\"]","id":"S","home":"/h","none":"","first":"-p","r":true,"list":[1,1,true]} | more`},
		},
		{
			"structured results keep big integers",
			ruleTOML(`any`, `{ steps = [{ tool_calls = [{ tool = "A" }] }, { text = "{{ results[0].structured.n }} {{ results[0].structured.f }} {{ results[0].content[0].type }}" }] }`),
			[]string{"x", "=> a"},
			[]string{"responses[0]: call A {} | more", "responses[0]: text 9007199254740993 1.5 text"},
		},
		{
			"templates off",
			"templates = false\n" + ruleTOML(`any`, `{ text = "{{ nope", tool_calls = [{ tool = "A", input = { x = "{{ y }}" } }] }`),
			[]string{"x", "=> a"},
			[]string{`responses[0]: call A {"x":"{{ y }}"} | more`, "responses[0]: text {{ nope"},
		},
		{
			"$file at any depth",
			ruleTOML(`any`, `{ tool_calls = [{ tool = "A", input = { a = [{ "$file" = "x.json" }], b = { "$file" = "x.txt" } } }] }`),
			[]string{"x"},
			[]string{`responses[0]: call A {"a":[{"from": "file"}],"b":"{\"from\": \"file\"}"} | more`},
		},
		{
			"the result in a file is its text, whatever it holds",
			ruleTOML(`any`, `{ tool_calls = [{ tool = "A", result = { "$file" = "x.txt" } }, { tool = "B", result = { "$file" = "x.json" } }] }`),
			[]string{"x"},
			[]string{`responses[0]: call A {} result={"from": "file"} | call B {} result={"from": "file"} | more`},
		},
		{
			"input keeps the order of keys and big integers",
			ruleTOML(`any`, `{ tool_calls = [{ tool = "A", input = { z = 9007199254740993, a = 1.50, m = { y = 1, b = 2 } } }] }`),
			[]string{"x"},
			[]string{`responses[0]: call A {"z":9007199254740993,"a":1.50,"m":{"y":1,"b":2}} | more`},
		},
		{
			"match[0] and unnamed groups",
			ruleWithCaptures(`{ type = "regex", pattern = '(\d+) (?P<what>\w+)' }`, `"{{ match[0] }}/{{ match[1] }}/{{ match.what }}"`),
			[]string{"give 12 eggs now"},
			[]string{"responses[0]: text 12 eggs/12/eggs"},
		},
		{
			"structured output goes with the last message",
			ruleTOML(`any`, `{ text = "t", tool_calls = [{ tool = "A" }], structured_output = { q = "{{ prompt }}" } }`),
			[]string{"x", "=> a"},
			[]string{"responses[0]: call A {} | more", `responses[0]: text t | structured {"q":"x"}`},
		},
		{
			"a failing expression is an error",
			ruleTOML(`any`, `"{{ results[0].text }}"`),
			[]string{"x"},
			[]string{`error s.toml:3: responses[0]: template "{{ results[0].text }}": index out of range: 0 (array length is 0)`},
		},
		{
			"extra pattern types",
			ruleWithCaptures(`{ type = "all", patterns = [{ type = "contains", text = "a" }, { type = "not", pattern = { type = "any_of", patterns = [{ type = "exact", text = "ab" }, { type = "glob", pattern = "*c" }] } }] }`, `"yes"`),
			[]string{"a", "ab", "abc", "x", "abd"},
			[]string{"responses[0]: text yes", ": text ", ": text ", ": text ", "responses[0]: text yes"},
		},
		{"results without an active response", ``, []string{"=> a"}, []string{": text "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := NewEngine(parse(t, tt.src), EngineOptions{Env: []string{"HOME=/x", "HOME=/h"}, Args: []string{"-p"}, CWD: "/w"})
			if diff := cmp.Diff(tt.want, converse(t, e, tt.in...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The templates of one reply share a limit of their output. The error does not contain the whole template.
func TestTemplatesTogether(t *testing.T) {
	call := `{ tool = "A", input = { x = "{{ repeat('a', 900000) }}" } }`
	for name, c := range map[string]struct{ response, want string }{
		"many texts": {`{ tool_calls = [` + strings.Repeat(call+", ", 80) + `] }`, "the output of all templates is longer than 67108864 bytes"},
		"a long one": {`"` + strings.Repeat("{{ repeat('a', 900000) }}", 20) + `"`, "…\": the output of the template is longer than 8388608 bytes"},
	} {
		e := NewEngine(parse(t, ruleTOML("any", c.response)), EngineOptions{})
		if _, err := e.Next(t.Context(), Request{Prompt: "x"}); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 500 {
			t.Errorf("%s: %.600v", name, err)
		}
	}
}

func ruleTOML(kind, response string, more ...string) string {
	return ruleWithCaptures(`{ type = "`+kind+`" }`, response, more...)
}

func ruleWithCaptures(pattern, response string, more ...string) string {
	return "[[responses]]\npattern = " + pattern + "\nresponse = " + response + "\n" + strings.Join(more, "\n") + "\n"
}

// A rule is stopped and reported if it answers many consecutive prompts of the CLI with calls. A
// rule with a limit, a rule without calls, and answers to prompts of a user are not stopped.
func TestEndlessRules(t *testing.T) {
	s := parse(t, ruleWithCaptures(`{ type = "contains", text = "limited" }`, `{ tool_calls = [{ tool = "Bash" }] }`, `source = "any"`, `max_matches = 1000`)+
		ruleWithCaptures(`{ type = "contains", text = "text" }`, `"t"`, `source = "any"`)+
		ruleTOML(`any`, `{ text = "done", tool_calls = [{ tool = "Bash" }] }`, `source = "any"`))
	for _, tt := range []struct {
		name, prompt string
		injected     bool
		endless      int
	}{
		{"the notices of ended tasks", "x", true, 5},
		{"prompts of the user", "x", false, 0},
		{"a limited rule", "limited", true, 0},
		{"an answer without calls", "text", true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := NewEngine(s, EngineOptions{})
			ask := func(n int, r Request) (endless int) {
				for range n {
					e = e.Fork()
					reply, err := e.Next(t.Context(), r)
					if err != nil {
						t.Fatal(err)
					}
					if reply.IsEndless {
						endless++
						if diff := cmp.Diff([]protocol.Block{protocol.Text("before")}, reply.Blocks); diff != "" || reply.Rule.Line == 0 {
							t.Errorf("%v: %s", reply.Rule, diff)
						}
					}
				}
				return endless
			}
			e.lastText = "before"
			if got := ask(maxNotificationsInRowAnsweredWithToolCalls+5, Request{Prompt: tt.prompt, IsInjected: tt.injected, IsNotification: tt.injected}); got != tt.endless {
				t.Errorf("%d replies were stopped, want %d", got, tt.endless)
			}
			ask(1, Request{Prompt: "the user again"})
			if got := ask(1, Request{Prompt: tt.prompt, IsInjected: tt.injected, IsNotification: tt.injected}); got != 0 {
				t.Error("the next prompt of the user does not begin again")
			}
		})
	}
}

const turnsScenario = `
default_response = "d"
[[responses]]
pattern = { type = "exact", text = "login" }
response = "name?"
turns = [
  { expect = { type = "regex", pattern = '^(?P<n>joe)$' }, response = "hi {{ match.n }}" },
  { expect = { type = "exact", text = "pw" }, response = "in" },
]
[[responses]]
pattern = { type = "exact", text = "other" }
response = "o"
`

const quick = `
[[responses]]
pattern = { type = "regex", pattern = 'weather in (?P<city>\w+)' }
when = 'permission_mode == "default" && "mcp__w__f" in tools'
[[responses.response.steps]]
thinking = "T"
text = "Let me look."
tool_calls = [{ tool = "weather/forecast_get", input = { city = "{{ match.city }}" } }]
[[responses.response.steps]]
when = 'results[0].is_error'
text = "failed: {{ results[0].text }}"
[[responses.response.steps]]
when = '!results[0].is_error'
text = "It is {{ results[0].text }} in {{ match.city }}."
`

func TestReplyDetails(t *testing.T) {
	s := parse(t, `
[[responses]]
pattern = { type = "exact", text = "plain" }
response = { text = "t", delay_ms = 5, usage = { input_tokens = 7, output_tokens = 9 }, stop_reason = "max_tokens" }
[[responses]]
pattern = { type = "any" }
[[responses.response.steps]]
text = "s"
delay_ms = 6
stream = { ttft_ms = 1, tokens_per_second = 2.5, jitter = 0.5, chunk = 3 }
tool_calls = [{ tool = "A", is_error = true, result = "bad", delay_ms = 4 }]
failure = { type = "overloaded" }
`)
	e := NewEngine(s, EngineOptions{})
	got, err := e.Next(t.Context(), Request{Prompt: "plain"})
	want := Reply{
		Blocks: []protocol.Block{protocol.Text("t")}, StopReason: "max_tokens", DelayMS: 5,
		Usage: &Usage{InputTokens: 7, OutputTokens: 9}, Rule: RuleLocation{Name: "responses[0]", File: "s.toml", Line: 2},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	got, err = e.Next(t.Context(), Request{Prompt: "x"})
	bad := "bad"
	want = Reply{
		Blocks: []protocol.Block{protocol.Text("s"), protocol.ToolUse{
			Type: "tool_use", Name: "A", Input: json.RawMessage("{}"),
			Script: &protocol.CallScript{Result: &bad, IsError: true, DelayMS: 4},
		}},
		DelayMS: 6, Stream: &Stream{TTFTMS: 1, TokensPerSecond: 2.5, Jitter: 0.5, Chunk: Chunk{Size: 3}},
		Failure: &Failure{Type: FailOverloaded}, Rule: RuleLocation{Name: "responses[1]", File: "s.toml", Line: 5}, HasMore: true,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Next(ctx, Request{}); err == nil {
		t.Error("a done context is no error")
	}
}

// The `usage` of a response is a total: it is the sum of the usage of its messages.
func TestUsageAddsUp(t *testing.T) {
	e := NewEngine(parse(t, ruleTOML(`any`, `{ text = "t", usage = { input_tokens = 7, output_tokens = 9 }, tool_calls = [{ tool = "A" }] }`)), EngineOptions{})
	var sum Usage
	for _, r := range []Request{{Prompt: "x"}, {Results: []ToolCallResult{{}}}} {
		reply, err := e.Next(t.Context(), r)
		if err != nil || reply.Usage == nil {
			t.Fatal(reply, err)
		}
		sum.InputTokens += reply.Usage.InputTokens
		sum.OutputTokens += reply.Usage.OutputTokens
	}
	if want := (Usage{InputTokens: 7, OutputTokens: 9}); sum != want {
		t.Errorf("usage %v, want %v", sum, want)
	}
}

// Match counts and the active sequence belong to the session, and continue in another process.
func TestStateGoesOn(t *testing.T) {
	s := parse(t, turnsScenario+ruleTOML(`contains`, `"once"`, `max_matches = 1`)[:0]+"[[responses]]\npattern = { type = \"contains\", text = \"one\" }\nresponse = \"once {{ turn }}\"\nmax_matches = 1\n")
	first := NewEngine(s, EngineOptions{})
	converse(t, first, "one", "login", "joe")
	state, err := first.State()
	if err != nil {
		t.Fatal(err)
	}
	second := NewEngine(s, EngineOptions{})
	if err := second.RestoreReportingDroppedParts(state); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"responses[0].turns[1]: text in", "default_response: text d"}, converse(t, second, "pw", "one")); diff != "" {
		t.Error(diff)
	}

	// A response whose calls were deferred continues when their results arrive, even if they are deferred twice.
	steps := parse(t, `[[responses]]
pattern = { type = "regex", pattern = '^run (?P<what>\w+)$' }
[[responses.response.steps]]
tool_calls = [{ tool = "Bash" }]
[[responses.response.steps]]
tool_calls = [{ tool = "Bash" }]
[[responses.response.steps]]
text = "{{ prompt }} {{ match.what }} {{ match[1] }} {{ results[0].text }} {{ results[0].structured.n }} {{ results[1].text }}"
`)
	running := NewEngine(steps, EngineOptions{})
	converse(t, running, "run it", "=> one")
	for range 2 {
		kept, err := running.State()
		if err != nil {
			t.Fatal(err)
		}
		running = NewEngine(steps, EngineOptions{})
		if err := running.RestoreReportingDroppedParts(kept); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"responses[0]: text run it it it one 9007199254740993 two"}, converse(t, running, "=> two")); diff != "" {
		t.Error(diff)
	}

	captures := parse(t, `[[responses]]
pattern = { type = "regex", pattern = '^in (?P<dir>\w+)$' }
turns = [{ expect = { type = "any" }, response = "{{ match.dir }}" }]
`)
	before, after := NewEngine(captures, EngineOptions{}), NewEngine(captures, EngineOptions{})
	converse(t, before, "in src")
	kept, err := before.State()
	if err != nil {
		t.Fatal(err)
	}
	if err := after.RestoreReportingDroppedParts(kept); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"responses[0].turns[0]: text src"}, converse(t, after, "x")); diff != "" {
		t.Error(diff)
	}

	changed := NewEngine(parse(t, strings.Replace(turnsScenario, `"login"`, `"logon"`, 1)), EngineOptions{})
	if err := changed.RestoreReportingDroppedParts(state); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("a changed scenario: %v", err)
	}
	if diff := cmp.Diff([]string{"default_response: text d"}, converse(t, changed, "pw")); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "x", "[]", `{"version":9}`, `{"version":1,"active":{"rule":-1,"next":7},"counts":{"x":{},"99":{}}}`} {
		if err := changed.RestoreReportingDroppedParts([]byte(bad)); err == nil {
			t.Errorf("state %q is taken", bad)
		}
		converse(t, changed, "x")
	}
}

// claimCounts counts the claims of engines.
type claimCounts map[string]int

func (s claimCounts) Next(rule string, after int) (int, error) {
	s[rule] = max(s[rule], after) + 1
	return s[rule], nil
}

// A rule with once answers in only one engine of a run.
func TestOnce(t *testing.T) {
	s := parse(t, `unmatched = "error"
[[responses]]
pattern = { type = "contains", text = "one" }
once = true
response = "mine"
[[responses]]
pattern = { type = "contains", text = "two" }
once = true
response = "never"
`)
	claims := claimCounts{}
	first, second := NewEngine(s, EngineOptions{Counter: claims}), NewEngine(s, EngineOptions{Counter: claims})
	if diff := cmp.Diff([]string{"responses[0]: text mine"}, converse(t, first, "one")); diff != "" {
		t.Error(diff)
	}
	want := []string{`no rule of the scenario matches the prompt "one"`, `s.toml:2: responses[0] (contains "one"): it matches, but has already answered`}
	for _, e := range []*Engine{first, second} {
		reply, err := e.Next(t.Context(), Request{Prompt: "one"})
		if err != nil || !reply.IsUnmatched || len(reply.NearMisses) < 2 || !strings.HasPrefix(reply.NearMisses[1], want[1]) {
			t.Errorf("%+v, %v, want %q", reply, err, want)
		}
	}
	if _, err := NewEngine(s, EngineOptions{Counter: brokenPattern{}}).Next(t.Context(), Request{Prompt: "two"}); err == nil || !strings.Contains(err.Error(), "responses[1]: the shelf is broken") {
		t.Error(err)
	}
}

// A rule with max_matches counts the prompts of all engines of a run. A request with a counter uses this counter instead.
func TestMatchesOfARun(t *testing.T) {
	s := parse(t, ruleTOML(`any`, `"a"`, `max_matches = 2`)+ruleTOML(`any`, `"b"`))
	claims := claimCounts{}
	first, second := NewEngine(s, EngineOptions{Counter: claims}), NewEngine(s, EngineOptions{Counter: claims})
	got := slices.Concat(converse(t, first, "x"), converse(t, second, "x", "x"), converse(t, first, "x"))
	if diff := cmp.Diff([]string{"responses[0]: text a", "responses[0]: text a", "responses[1]: text b", "responses[1]: text b"}, got); diff != "" {
		t.Error(diff)
	}
	reply, err := first.Next(t.Context(), Request{Prompt: "x", Counter: claimCounts{}})
	if err != nil || reply.Rule.Name != "responses[0]" {
		t.Errorf("%v, %v", reply.Rule, err)
	}
}

type brokenPattern struct{}

func (brokenPattern) Next(string, int) (int, error) { return 0, errors.New("the shelf is broken") }

// unmatched = "error" reports the nearest rules and the reasons why they do not match.
func TestNearMisses(t *testing.T) {
	s := parse(t, `unmatched = "error"
[[responses]]
pattern = { type = "contains", text = "deploy the app" }
response = "x"
[[responses]]
pattern = { type = "exact", text = "Build it" }
response = "x"
[[responses]]
pattern = { type = "contains", text = "build" }
max_matches = 0
response = "x"
[[responses]]
pattern = { type = "contains", text = "it" }
when = "turn > 9"
response = "x"
`)
	reply, err := NewEngine(s, EngineOptions{}).Next(t.Context(), Request{Prompt: "build it"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`no rule of the scenario matches the prompt "build it"`,
		`s.toml:8: responses[2] (contains "build"): it matches, but its max_matches = 0 is used up`,
		`s.toml:12: responses[3] (contains "it"): it matches, but its condition "turn > 9" is false`,
		`s.toml:5: responses[1] (exact "Build it"): it differs from "Build it" only in upper and lower case`,
		`and 1 more`,
	}
	if diff := cmp.Diff(want, reply.NearMisses); diff != "" || !reply.IsUnmatched {
		t.Error(diff)
	}
}

// TestExpectations checks [[expect]] blocks and the key expect of calls.
func TestExpectations(t *testing.T) {
	s := parse(t, `
[[responses]]
pattern = { type = "any" }
response = { text = "", tool_calls = [{ tool = "A", expect = { type = "contains", text = "fine" } }, { tool = "B" }] }
[[expect]]
tool = "weather/forecast_get"
input = { city = "Oslo" }
times = ">=2"
[[expect]]
tool = "Bash"
never = true
[[expect]]
tool = "Read*"
order = 1
[[expect]]
tool = "Write"
order = 2
[[expect]]
prompt = { type = "contains", text = "hi" }
[[expect]]
tool = "forecast_get"
times = 1
`)
	run := func(calls ...string) []string {
		var record RunRecord
		record.Prompts = append(record.Prompts, "hi there")
		for _, c := range calls {
			name, input, _ := strings.Cut(c, " ")
			record.AddCall(name, json.RawMessage(input))
		}
		var unmet []string
		for _, j := range s.CheckExpectations(&record) {
			if !j.IsMet {
				unmet = append(unmet, j.String())
			}
		}
		return unmet
	}
	oslo := `mcp__weather__forecast_get {"city":"Oslo","days":1}`
	if diff := cmp.Diff([]string{`s.toml:20:1: expected a call to forecast_get (exactly once), but there were 2`}, run(oslo, oslo, `Read {}`, `Write {}`)); diff != "" {
		t.Error(diff)
	}
	want := []string{
		`s.toml:5:1: expected a call to weather/forecast_get with {"city":"Oslo"} (at least twice), but there was none; a call to mcp__weather__forecast_get differs: ` + "`city` is \"Lima\", not \"Oslo\"",
		`s.toml:9:1: expected no call to Bash, but there was one`,
		`s.toml:15:1: expected a call to Write after a call to Read*, but it came before`,
	}
	if diff := cmp.Diff(want, run(`mcp__weather__forecast_get {"city":"Lima"}`, `Bash {}`, `Write {}`, `ReadFile {}`)); diff != "" {
		t.Error(diff)
	}

	e := NewEngine(s, EngineOptions{})
	converse(t, e, "hi", "=> broken b")
	if got := e.UnmetResultExpectations()[0].String(); got != `s.toml:4:53: expected the result of A to match contains "fine": it does not contain "fine"; the result is "broken"` {
		t.Error(got)
	}
}

func TestBuiltInGo(t *testing.T) {
	s := &Scenario{Responses: []Rule{{Pattern: Pattern{Type: PatternContains, Text: "a"}, Response: &Response{Text: "{{ prompt }}!"}}}}
	if diff := cmp.Diff([]string{"responses[0]: text abc!"}, converse(t, NewEngine(s, EngineOptions{}), "abc")); diff != "" {
		t.Error(diff)
	}
	bad := &Scenario{Responses: []Rule{{Pattern: Pattern{Type: PatternRegex, Pattern: "("}}}}
	if err := bad.Compile(); err == nil {
		t.Error("a bad scenario compiles")
	}
	if got := converse(t, NewEngine(Greeting(), EngineOptions{}), "x"); !strings.Contains(got[0], "No scenario is loaded") || !strings.Contains(got[0], "--scenario") {
		t.Error(got)
	}
	if f := FailureByName("rate-limit"); f == nil || f.RetryAfter != 60 {
		t.Error(f)
	}
	if FailureByName("nope") != nil {
		t.Error("an unknown failure has a value")
	}
}

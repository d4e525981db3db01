package scenarios

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
)

const withAgents = `
[[responses]]
pattern = { type = "regex", pattern = "start (?P<what>\\w+)" }
[[responses.response.steps]]
tool_calls = [ { tool = "Agent", input = { prompt = "p" }, subagent = { type = "Explore", background = true, steps = [
  { tool_calls = [ { tool = "Bash", input = { command = "echo {{ match.what }}" }, expect = { type = "exact", text = "fine" } } ] },
  { text = "{{ match.what }}: {{ results[0].text }} for {{ prompt }}" },
] } } ]
[[responses.response.steps]]
text = "main {{ match.what }} {{ results[0].text }}"
[[responses]]
pattern = { type = "contains", text = "once" }
max_matches = 1
response = "ruled"
`

// Expressions of a scripted sub-agent can use the captures of the prompt that started it, its own prompt and its own
// results. The rules answer its later prompts.
func TestSubagent(t *testing.T) {
	e := NewEngine(parse(t, withAgents), EngineOptions{})
	reply, err := e.Next(t.Context(), Request{Prompt: "start work"})
	if err != nil {
		t.Fatal(err)
	}
	script := reply.Blocks[0].(protocol.ToolUse).Script.Subagent
	if script.Type != "Explore" || script.Background == nil || !*script.Background {
		t.Errorf("script %+v", script)
	}
	sub := e.NewSubagentEngine(script)
	want := []string{
		`responses[0]: call Bash {"command":"echo work"} | more`, "responses[0]: text work: broken for p", "responses[1]: text ruled",
		": text ",
	}
	if diff := cmp.Diff(want, converse(t, sub, "p", "=> broken", "once", "once")); diff != "" {
		t.Errorf("sub-agent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"responses[0]: text main work done", "responses[1]: text ruled"}, converse(t, e, "=> done", "once")); diff != "" {
		t.Errorf("main conversation (-want +got):\n%s", diff)
	}
	if unmet := e.UnmetResultExpectations(); len(unmet) != 1 || !strings.Contains(unmet[0].String(), "expected the result of Bash") {
		t.Errorf("unmet %v", unmet)
	}
}

// Later unmet results are appended to the list, whether they come from the main engine or from a
// sub-agent. The journal relies on this order, because it remembers only how many results it has written.
func TestUnmetResultsGrow(t *testing.T) {
	const call = `[[responses]]
pattern = { type = "any" }
[[responses.response.steps]]
tool_calls = [{ tool = "A", expect = { type = "contains", text = "fine" } }]
`
	e := NewEngine(parse(t, call), EngineOptions{})
	sub := e.NewSubagentEngine(nil)
	converse(t, sub, "p", "=> sub")
	first := e.UnmetResultExpectations()
	converse(t, e, "p", "=> main")
	all := e.UnmetResultExpectations()
	if len(first) != 1 || len(all) != 2 || !strings.Contains(all[0].String(), `is "sub"`) || !strings.Contains(all[1].String(), `is "main"`) {
		t.Errorf("unmet %v, then %v", first, all)
	}
}

// Two agents of one scripted call each have their own position in the script. For an agent without a script, the rules
// start with no earlier prompt.
func TestSubagentsApart(t *testing.T) {
	e := NewEngine(parse(t, withAgents), EngineOptions{})
	converse(t, e, "once")
	if diff := cmp.Diff([]string{"responses[1]: text ruled"}, converse(t, e.NewSubagentEngine(nil), "once")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"responses[1]: text ruled"}, converse(t, e.NewSubagentEngine(&protocol.SubagentScript{}), "once")); diff != "" {
		t.Error(diff)
	}
}

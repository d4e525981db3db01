package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/importer/hide"
	"github.com/claudeless/claudeless/internal/importer/session"
)

// expectedCalls gathers the recorded calls, which become [[expect]] tables: a run in
// which one of them does not happen is no repetition of the session. The zero value is
// ready.
type expectedCalls struct {
	list []expectedCall
}

// expectedCall is one recorded call.
type expectedCall struct {
	tool  string
	input map[string]any // the short values that are the same wherever the scenario is played
	whole map[string]any // the whole input
	mcp   bool           // a fixture answers it
}

// messages adds the calls of messages, those of sub-agents among them. Calls that were
// denied have an expectation of their own.
func (e *expectedCalls) messages(p *plans, messages []*session.Message) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			if b.Call != nil {
				e.call(p, b.Call)
			}
		}
	}
}

func (e *expectedCalls) call(p *plans, c *session.Call) {
	how := p.way(c)
	if how == agently {
		e.messages(p, c.Agent.Messages)
	}
	if how == refused || how == bare {
		return
	}
	x := expectedCall{tool: c.Tool, input: map[string]any{}, mcp: how == serverly}
	_ = json.Unmarshal(c.Input, &x.whole) // an input that is no object has no values to name
	changed := ""
	if how == live {
		changed, _, _ = p.reading(c)
	}
	for name, value := range x.whole {
		if name != changed && steady(value) {
			x.input[name] = value
		}
	}
	e.list = append(e.list, x)
}

// steady tells whether a value is short, and the same in every directory.
func steady(value any) bool {
	const longest = 120
	switch v := value.(type) {
	case string:
		return len(v) <= longest && !strings.ContainsAny(v, "\n\r{}"+hide.Home+hide.CWD)
	case bool:
		return true
	}
	return false
}

// toml writes an expectation for each call, equal ones together.
func (e *expectedCalls) toml() string {
	var out strings.Builder
	written := map[string]bool{}
	for i := range e.list {
		x := &e.list[i]
		text := x.toml()
		if written[text] {
			continue
		}
		written[text] = true
		out.WriteString("\n[[expect]]\n" + text)
		if n := e.count(x); n > 1 {
			fmt.Fprintf(&out, "times = %d\n", n)
		}
	}
	return out.String()
}

// toml is the expectation of one call, without how often it happens.
func (x *expectedCall) toml() string {
	if x.mcp {
		server, tool, _ := session.Server(x.tool)
		return "mcp = { server = " + oneLine(glob(server)) + ", tool = " + oneLine(glob(tool)) + " }\n"
	}
	text := "tool = " + oneLine(glob(x.tool)) + "\n"
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(x.input)) {
		value := fmt.Sprint(x.input[name])
		if s, ok := x.input[name].(string); ok {
			value = oneLine(s)
		}
		pairs = append(pairs, key(name)+" = "+value)
	}
	if len(pairs) > 0 {
		text += "input = { " + strings.Join(pairs, ", ") + " }\n"
	}
	return text
}

// glob is a pattern for a name: what has a meaning in patterns stands for any character.
func glob(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`*?[]{}!\`, r) {
			return '?'
		}
		return r
	}, name)
}

// count is how many of the calls the expectation of x speaks of.
func (e *expectedCalls) count(x *expectedCall) int {
	n := 0
	for i := range e.list {
		other := &e.list[i]
		same := other.tool == x.tool && (!x.mcp || other.mcp)
		for name, value := range x.input {
			// Values of other types are not of a comparable type.
			same = same && (x.mcp || steady(other.whole[name]) && other.whole[name] == value)
		}
		if same {
			n++
		}
	}
	return n
}

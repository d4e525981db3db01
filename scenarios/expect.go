package scenarios

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/match"
)

// recorder remembers what a run did, for its expectations.
type recorder struct {
	calls   []observedCall
	prompts []string
	misses  []string // results that a call's `expect` did not match
}

type observedCall struct {
	name  string
	input any
}

// ObserveCall records a tool call of the run, by its canonical name.
func (e *Engine) ObserveCall(name string, input json.RawMessage) {
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		v = nil
	}
	e.seen.calls = append(e.seen.calls, observedCall{name: name, input: v})
}

// ObservePrompt records a prompt of the run.
func (e *Engine) ObservePrompt(text string) { e.seen.prompts = append(e.seen.prompts, text) }

// Unmet says which expectations the run so far does not fulfil: results that
// did not match their call's `expect`, then the [[expect]] blocks in file
// order. Each is one line, with its place where that is known.
func (e *Engine) Unmet() []string {
	unmet := e.misses()
	for i := range e.s.Expect {
		x := &e.s.Expect[i]
		if what := e.check(x); what != "" {
			unmet = append(unmet, placed(x.at.String(), what))
		}
	}
	return unmet
}

func placed(at, what string) string {
	if at == "" {
		return what
	}
	return at + ": " + what
}

// check says what is wrong with one expectation; "" = nothing.
func (e *Engine) check(x *Expectation) string {
	hits := e.hits(x)
	low, high := 1, -1
	switch {
	case x.Never:
		low, high = 0, 0
	case x.Times != nil:
		low, high = x.Times.Min, x.Times.Max
	}
	if len(hits) < low || (high >= 0 && len(hits) > high) {
		return fmt.Sprintf("expected %s %s, but it happened %s", x.subject(), bounds(low, high), count(len(hits))) + e.almost(x, len(hits))
	}
	if x.Order == nil || x.Tool == "" || len(hits) == 0 {
		return ""
	}
	for i := range e.s.Expect {
		other := &e.s.Expect[i]
		if other.Order == nil || *other.Order >= *x.Order || other.Tool == "" {
			continue
		}
		if earlier := e.hits(other); len(earlier) > 0 && earlier[0] > hits[0] {
			return fmt.Sprintf("expected %s after %s, but it came before", x.subject(), other.subject())
		}
	}
	return ""
}

// hits are the positions of the calls or prompts that x speaks of.
func (e *Engine) hits(x *Expectation) []int {
	var hits []int
	if x.Tool == "" {
		for i, p := range e.seen.prompts {
			if _, ok := x.prompt.Match(p); ok {
				hits = append(hits, i)
			}
		}
		return hits
	}
	for i, c := range e.seen.calls {
		if !x.names(c.name) {
			continue
		}
		if _, ok := match.Subset(x.input(), c.input); ok || x.Input == nil {
			hits = append(hits, i)
		}
	}
	return hits
}

// almost tells how the input of a call to the right tool differs.
func (e *Engine) almost(x *Expectation, hits int) string {
	if x.Input == nil || x.Never || hits > 0 {
		return ""
	}
	for _, c := range e.seen.calls {
		if x.names(c.name) {
			diff, _ := match.Subset(x.input(), c.input)
			return "; in a call of " + c.name + " " + diff
		}
	}
	return ""
}

func (x *Expectation) input() any {
	dec := json.NewDecoder(bytes.NewReader(x.Input))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil
	}
	return v
}

// names tells whether the expectation speaks of the tool.
func (x *Expectation) names(tool string) bool {
	for _, t := range x.tools {
		if _, ok := t.Match(tool); ok {
			return true
		}
	}
	return false
}

// toolForms are the globs for canonical names that a tool name in a scenario
// stands for: the name itself, server/tool, or the bare name of an MCP tool.
func toolForms(name string) []string {
	if name == "" {
		return nil
	}
	if server, tool, ok := strings.Cut(name, "/"); ok {
		return []string{name, "mcp__" + normalName(server) + "__" + normalName(tool)}
	}
	if strings.HasPrefix(name, "mcp__") {
		return []string{name}
	}
	return []string{name, "mcp__*__" + name}
}

// normalName is the part of a canonical name that a server or tool name
// becomes. Glob characters stay.
func normalName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (isWord(byte(r)) || strings.ContainsRune("-*?[]!", r)) {
			return r
		}
		return '_'
	}, s)
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

func (x *Expectation) subject() string {
	if x.Tool == "" {
		return "a prompt that matches " + x.Prompt.String()
	}
	if x.Input != nil {
		return "a call of " + x.Tool + " with " + string(x.Input)
	}
	return "a call of " + x.Tool
}

func bounds(low, high int) string {
	switch {
	case high == 0:
		return "never to happen"
	case high < 0 && low == 1:
		return "to happen"
	case high < 0:
		return "at least " + count(low)
	case low == 0:
		return "at most " + count(high)
	case low == high:
		return count(low)
	}
	return fmt.Sprintf("%d to %d times", low, high)
}

func count(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// checkResult records a result that its call's `expect` does not match.
func (e *Engine) checkResult(c expectedResult, r Result) {
	t, _, err := compilePattern(c.pattern, nil)
	if err != nil {
		return
	}
	if _, ok := t.Match(r.Text); !ok {
		e.seen.misses = append(e.seen.misses, placed(c.at, fmt.Sprintf("expected the result of %s to match %s: %s; the result is %s",
			c.tool, c.pattern, t.Explain(r.Text), clip(r.Text))))
	}
}

func clip(s string) string {
	const most = 200
	if r := []rune(s); len(r) > most {
		return fmt.Sprintf("%q…", string(r[:most]))
	}
	return fmt.Sprintf("%q", s)
}

package scenarios

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/diag"
	"github.com/claudeless/claudeless/internal/match"
)

// Seen is what a run did, as its expectations look at it. The zero value is a run
// that did nothing. It is for one goroutine at a time.
type Seen struct {
	calls    []observedCall
	prompts  []string
	servers  []observedCall // calls of MCP servers; name is "server/tool"
	requests []RequestSeen
	exits    []int
	rules    []RuleRef
}

type observedCall struct {
	name  string
	input any
}

// RequestSeen is a request to the model's API.
type RequestSeen struct {
	Model string
	// Retries is how often it was made again.
	Retries int
	// AfterMS is when it came, from the beginning of the run.
	AfterMS float64
}

// Call records a tool call, by its canonical name.
func (s *Seen) Call(name string, input json.RawMessage) {
	s.calls = append(s.calls, observedCall{name: name, input: numbers(input)})
}

// Prompt records a prompt.
func (s *Seen) Prompt(text string) { s.prompts = append(s.prompts, text) }

// ServerCall records what an MCP server was asked, by the server's name in the
// configuration and its own name of the tool.
func (s *Seen) ServerCall(server, tool string) {
	s.servers = append(s.servers, observedCall{name: server + "/" + tool})
}

// Request records a request to the model.
func (s *Seen) Request(r RequestSeen) { s.requests = append(s.requests, r) }

// Exit records the exit code of a process.
func (s *Seen) Exit(code int) { s.exits = append(s.exits, code) }

// Rule records that a rule has answered.
func (s *Seen) Rule(r RuleRef) { s.rules = append(s.rules, r) }

// ObserveCall records a tool call of the run, by its canonical name.
func (e *Engine) ObserveCall(name string, input json.RawMessage) { e.seen.Call(name, input) }

// ObservePrompt records a prompt of the run.
func (e *Engine) ObservePrompt(text string) { e.seen.Prompt(text) }

// Seen is what the run of the engine has done so far; what the engine cannot see
// itself may be added to it.
func (e *Engine) Seen() *Seen { return &e.seen }

// Unmet says which expectations the run so far does not fulfil: results that
// did not match their call's `expect`, then the [[expect]] blocks in file
// order. Each is one line, with its place where that is known.
func (e *Engine) Unmet() []string {
	var unmet []string
	for _, j := range append(e.Misses(), e.s.Judge(&e.seen)...) {
		if !j.Met {
			unmet = append(unmet, j.String())
		}
	}
	return unmet
}

// Judged is one expectation and what came of it.
type Judged struct {
	At   diag.Position // zero = unknown
	Text string        // what is expected: "expected a call of Bash to happen"
	Met  bool
	Got  string // what happened instead; empty when it is met
}

// String is the line that reports an unmet expectation.
func (j Judged) String() string {
	text := j.Text
	if j.Got != "" {
		text += ", but " + j.Got
	}
	if at := j.At.String(); at != "" {
		return at + ": " + text
	}
	return text
}

// Judge holds what a run did against the [[expect]] blocks, in file order.
func (s *Scenario) Judge(seen *Seen) []Judged {
	judged := make([]Judged, 0, len(s.Expect))
	for i := range s.Expect {
		x := &s.Expect[i]
		j := Judged{At: x.at}
		if x.Unused != "" {
			judged = append(judged, s.unused(x, seen)...)
			continue
		}
		j.Text, j.Got = s.check(x, seen)
		j.Met = j.Got == ""
		judged = append(judged, j)
	}
	return judged
}

// check words one expectation and what is wrong with it; "" = nothing.
func (s *Scenario) check(x *Expectation, seen *Seen) (text, got string) {
	hits := x.hits(seen)
	low, high := 1, -1
	switch {
	case x.Never:
		low, high = 0, 0
	case x.Times != nil:
		low, high = x.Times.Min, x.Times.Max
	}
	text = fmt.Sprintf("expected %s %s", x.subject(), bounds(low, high))
	if len(hits) < low || (high >= 0 && len(hits) > high) {
		return text, "it happened " + count(len(hits)) + x.almost(seen, len(hits))
	}
	if got := x.Request.exceeded(hits, seen); got != "" {
		return text, got
	}
	if x.Order == nil || x.Tool == "" || len(hits) == 0 {
		return text, ""
	}
	for i := range s.Expect {
		other := &s.Expect[i]
		if other.Order == nil || *other.Order >= *x.Order || other.Tool == "" {
			continue
		}
		if earlier := other.hits(seen); len(earlier) > 0 && earlier[0] > hits[0] {
			return fmt.Sprintf("expected %s after %s", x.subject(), other.subject()), "it came before"
		}
	}
	return text, ""
}

// ExpectsTool tells whether an expectation speaks of a tool, by its canonical
// name.
func (s *Scenario) ExpectsTool(name string) bool {
	return slices.ContainsFunc(s.Expect, func(x Expectation) bool { return x.Tool != "" && x.names(name) })
}

// Turns are the places of a rule's turns, in their order.
func (s *Scenario) Turns(rule int) []diag.Position {
	if rule < 0 || rule >= len(s.Responses) {
		return nil
	}
	r := &s.Responses[rule]
	turns := make([]diag.Position, len(r.Turns))
	for i := range turns {
		turns[i] = r.source.ix.Pos(diag.Path{"responses", r.index, "turns", i})
	}
	return turns
}

// unused judges every rule of the scenario: each should have answered.
func (s *Scenario) unused(x *Expectation, seen *Seen) []Judged {
	var judged []Judged
	for i := range s.Responses {
		rule := &s.Responses[i]
		at := rule.source.ix.Pos(diag.Path{"responses", rule.index})
		j := Judged{At: at, Text: fmt.Sprintf("expected the rule %s (%s) to answer a prompt", ruleName(i), rule.Pattern.String())}
		j.Met = slices.ContainsFunc(seen.rules, func(r RuleRef) bool { return r.Line == at.Line && sameFile(r.File, at.File) })
		switch {
		case j.Met:
		case x.Unused == "warn":
			j.Met, j.Got = true, "it answered none"
		default:
			j.Got = "it answered none"
		}
		judged = append(judged, j)
	}
	return judged
}

// sameFile compares names of files of which one may be relative.
func sameFile(a, b string) bool { return a == b || filepath.Base(a) == filepath.Base(b) }

// hits are the positions of what x speaks of among things of its kind.
func (x *Expectation) hits(seen *Seen) []int {
	switch {
	case x.Prompt != nil:
		return where(seen.prompts, func(p string) bool { _, ok := x.prompt.Match(p); return ok })
	case x.MCP != nil:
		return where(seen.servers, x.MCP.names)
	case x.Request != nil:
		return where(seen.requests, func(r RequestSeen) bool { return x.Request.Model == "" || globMatches(x.Request.Model, r.Model) })
	case x.Exit != nil:
		return where(seen.exits, func(code int) bool { return code == *x.Exit })
	case x.Rule != nil:
		return where(seen.rules, func(r RuleRef) bool { return r.Line == *x.Rule && sameFile(r.File, x.at.File) })
	}
	return where(seen.calls, func(c observedCall) bool {
		if !x.names(c.name) {
			return false
		}
		_, ok := match.Subset(x.input(), c.input)
		return ok || x.Input == nil
	})
}

func where[T any](list []T, is func(T) bool) []int {
	var hits []int
	for i, v := range list {
		if is(v) {
			hits = append(hits, i)
		}
	}
	return hits
}

// names tells whether the expectation speaks of a call, "server/tool".
func (m *ExpectMCP) names(c observedCall) bool {
	server, tool, _ := strings.Cut(c.name, "/")
	return globMatches(m.Server, server) && (m.Tool == "" || globMatches(m.Tool, tool))
}

// globMatches is for globs that were checked when the scenario was compiled.
func globMatches(glob, text string) bool {
	g, err := match.Glob(glob)
	if err != nil {
		return false
	}
	_, ok := g.Match(text)
	return ok
}

// exceeded says which limit the requests do not keep; "" = none.
func (r *ExpectRequest) exceeded(hits []int, seen *Seen) string {
	if r == nil {
		return ""
	}
	for n, i := range hits {
		q := seen.requests[i]
		if r.MaxRetries != nil && q.Retries > *r.MaxRetries {
			return fmt.Sprintf("one for %s was retried %s", q.Model, count(q.Retries))
		}
		if n == 0 && r.WithinMS > 0 && q.AfterMS > float64(r.WithinMS) {
			return fmt.Sprintf("the first came after %.0f ms", q.AfterMS)
		}
	}
	return ""
}

// almost tells how the input of a call to the right tool differs, or what there
// was instead.
func (x *Expectation) almost(seen *Seen, hits int) string {
	if x.Never || hits > 0 {
		return ""
	}
	if x.Exit != nil && len(seen.exits) > 0 {
		return "; the exit codes were " + strings.Trim(fmt.Sprint(seen.exits), "[]")
	}
	if x.Input == nil {
		return ""
	}
	for _, c := range seen.calls {
		if x.names(c.name) {
			diff, _ := match.Subset(x.input(), c.input)
			return "; in a call of " + c.name + " " + diff
		}
	}
	return ""
}

// numbers decodes JSON with its numbers as they are written; nil = it is none.
func numbers(raw json.RawMessage) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil
	}
	return v
}

func (x *Expectation) input() any { return numbers(x.Input) }

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

// CanonicalTool is the name that a tool has in a conversation when a scenario
// writes it as server/tool; other names stay.
func CanonicalTool(name string) string {
	if server, tool, ok := strings.Cut(name, "/"); ok {
		return "mcp__" + wordName(server) + "__" + wordName(tool)
	}
	return name
}

// wordName is a name with everything else than word characters and hyphens
// replaced.
func wordName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (isWord(byte(r)) || r == '-') {
			return r
		}
		return '_'
	}, s)
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
	switch {
	case x.Prompt != nil:
		return "a prompt that matches " + x.Prompt.String()
	case x.MCP != nil && x.MCP.Tool == "":
		return "a call of the MCP server " + x.MCP.Server
	case x.MCP != nil:
		return "a call of the MCP tool " + x.MCP.Server + "/" + x.MCP.Tool
	case x.Request != nil && x.Request.Model == "":
		return "a request to the model"
	case x.Request != nil:
		return "a request to the model " + x.Request.Model
	case x.Exit != nil:
		return "a process that exits with " + strconv.Itoa(*x.Exit)
	case x.Rule != nil:
		return "a match of the rule in line " + strconv.Itoa(*x.Rule)
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
		e.missed = append(e.missed, Judged{
			At:   c.at,
			Text: fmt.Sprintf("expected the result of %s to match %s: %s; the result is %s", c.tool, c.pattern, t.Explain(r.Text), clip(r.Text)),
		})
	}
}

func clip(s string) string {
	const most = 200
	if r := []rune(s); len(r) > most {
		return fmt.Sprintf("%q…", string(r[:most]))
	}
	return fmt.Sprintf("%q", s)
}

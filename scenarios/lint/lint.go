// Package lint finds mistakes in valid scenarios: rules that never match, and
// references to tools and results that do not exist. It reports only what is
// certain from the scenario alone.
package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/eval"
	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options is what a scenario does not hold itself.
type Options struct {
	// Tools are the built-in tools; nil = calls of them are not looked at.
	Tools []protocol.Tool
	// Server says what is wrong with an entry of [mcp.servers]; nil = they are
	// not looked at.
	Server func(name string, entry map[string]any) []string
	// Placeholder is an answer that somebody still has to write; empty = there is none.
	Placeholder string
}

// Check returns what it finds, all of it warnings, in the order of the file.
func Check(s *scenarios.Scenario, o Options) diag.List {
	l := &linter{s: s, o: o, tools: toolsOf(o.Tools), templates: s.Templates == nil || *s.Templates}
	l.rules()
	if l.s.DefaultResponse != nil {
		l.response(l.root("default_response"), visibleLists{}, l.s.DefaultResponse)
	}
	l.servers()
	l.breakpoints()
	l.expectations()
	l.list.Sort()
	return l.list
}

// The beginnings of the messages about rules that never answer, and about placeholders.
const (
	NeverAnswers      = "the rule never answers"
	PlaceholderAnswer = "the answer is the placeholder that --accept wrote"
)

const noInput = "the tool %s has no input `"

// UnknownInput is the input that a message says a tool does not have; false means that the message is another one.
func UnknownInput(message, tool string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(message, fmt.Sprintf(noInput, tool))
	return strings.TrimSuffix(rest, "`"), ok
}

type linter struct {
	s         *scenarios.Scenario
	o         Options
	tools     map[string]shape // by name; nil = unknown
	templates bool
	called    []string // tools that some answer calls
	list      diag.List
}

// shape is what is known of a tool's input.
type shape struct {
	keys []string // nil = any
}

func toolsOf(defs []protocol.Tool) map[string]shape {
	if defs == nil {
		return nil
	}
	tools := make(map[string]shape, len(defs))
	for _, d := range defs {
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Additional *bool                      `json:"additionalProperties"`
		}
		var known shape
		if json.Unmarshal(d.InputSchema, &schema) == nil && schema.Additional != nil && !*schema.Additional {
			known.keys = []string{}
			for key := range schema.Properties {
				known.keys = append(known.keys, key)
			}
			slices.Sort(known.keys)
		}
		tools[d.Name] = known
	}
	return tools
}

// location is a part of a file.
type location struct {
	warn func(path diag.Path, offset int, message string) diag.Diagnostic
	path diag.Path
}

func (p location) in(steps ...any) location {
	return location{p.warn, append(p.path[:len(p.path):len(p.path)], steps...)}
}

// say adds a finding; offset is in characters within a string.
func (l *linter) say(p location, offset int, hint, format string, args ...any) {
	d := p.warn(p.path, offset, fmt.Sprintf(format, args...))
	d.Hint, d.Warning = hint, true
	l.list = append(l.list, d)
}

func (l *linter) root(path ...any) location { return location{l.s.Locate, path} }

func (l *linter) rules() {
	shadows := newShadows(l.s.Responses)
	for i := range l.s.Responses {
		r := &l.s.Responses[i]
		p := location{warn: r.Locate}
		if by, how := shadows.of(i); how != "" {
			at := l.s.Responses[by].Locate(nil, 0, "").Pos
			l.say(p.in("pattern"), 0, "", NeverAnswers+": the rule at %s %s, and comes before it", at, how)
		}
		switch {
		case r.MaxMatches != nil && *r.MaxMatches == 0:
			l.say(p.in("max_matches"), 0, "", NeverAnswers+": its max_matches is 0")
		case strings.TrimSpace(r.When) == "false":
			l.say(p.in("when"), 0, "", NeverAnswers+": its condition is false")
		}
		l.backspaces(p.in("pattern"), &r.Pattern)
		l.answer(p, groupsOf(&r.Pattern), answer{r.When, r.Response, r.Failure})
		for t := range r.Turns {
			turn := &r.Turns[t]
			l.answer(p.in("turns", t), groupsOf(&turn.Expect), answer{turn.When, turn.Response, turn.Failure})
		}
	}
}

// backspaces warns of a pattern with the control character that "\b" is in a basic TOML string.
func (l *linter) backspaces(p location, pattern *scenarios.Pattern) {
	if strings.Contains(pattern.Text+pattern.Pattern, "\b") {
		l.say(p, 0, `write '\b' in single quotes, or "\\b", for a word boundary`, `the pattern contains a backspace: "\b" in double quotes is one`)
	}
	for i := range pattern.Patterns {
		l.backspaces(p, &pattern.Patterns[i])
	}
	if pattern.Not != nil {
		l.backspaces(p, pattern.Not)
	}
}

// visibleLists is how far the lists go that an expression sees.
type visibleLists struct {
	results int
	groups  int // numbered captures; -1 = unknown
}

// groupsOf counts the numbered captures of a pattern.
func groupsOf(p *scenarios.Pattern) int {
	switch p.Type {
	case scenarios.PatternRegex:
		return captures(p.Pattern)
	case scenarios.PatternExact, scenarios.PatternContains, scenarios.PatternAny, scenarios.PatternNot:
		return 0
	default:
		return -1
	}
}

type answer struct {
	when     string
	response *scenarios.Response
	failure  *scenarios.Failure
}

func (l *linter) answer(p location, groups int, a answer) {
	see := visibleLists{groups: groups}
	l.condition(p.in("when"), see, a.when)
	if a.failure != nil {
		l.text(p.in("failure", "message"), see, a.failure.Message)
		l.text(p.in("failure", "partial_text"), see, a.failure.PartialText)
	}
	if a.response != nil {
		l.response(p.in("response"), see, a.response)
	}
}

func (l *linter) response(p location, see visibleLists, r *scenarios.Response) {
	l.calls(p.in("tool_calls"), see, r.ToolCalls)
	see.results += len(r.ToolCalls)
	l.text(p.in("text"), see, r.Text)
	l.steps(p.in("steps"), see, r.Steps)
}

func (l *linter) steps(p location, see visibleLists, steps []scenarios.Step) {
	for i := range steps {
		s, sp := &steps[i], p.in(i)
		l.condition(sp.in("when"), see, s.When)
		l.text(sp.in("thinking"), see, s.Thinking)
		l.text(sp.in("text"), see, s.Text)
		l.calls(sp.in("tool_calls"), see, s.ToolCalls)
		calls := len(s.ToolCalls)
		for b := range s.Blocks {
			block, bp := &s.Blocks[b], sp.in("blocks", b)
			l.text(bp.in("text"), see, block.Text)
			l.text(bp.in("thinking"), see, block.Thinking)
			if block.Type == scenarios.BlockToolUse {
				l.call(bp, see, &block.ToolCall)
				calls++
			}
		}
		see.results += calls
	}
}

func (l *linter) calls(p location, see visibleLists, calls []scenarios.ToolCall) {
	for i := range calls {
		l.call(p.in(i), see, &calls[i])
	}
}

func (l *linter) call(p location, see visibleLists, c *scenarios.ToolCall) {
	l.called = append(l.called, c.Tool)
	l.input(p.in("input"), see, c.Input)
	if c.Result != nil {
		l.text(p.in("result"), see, c.Result.Text)
	}
	l.tool(p.in("tool"), c.Tool)
	if c.Subagent != nil {
		l.steps(p.in("subagent", "steps"), visibleLists{groups: see.groups}, c.Subagent.Steps)
	}
	known, ok := l.tools[c.Tool]
	var keys map[string]json.RawMessage
	if !ok || known.keys == nil || c.Result != nil || json.Unmarshal(c.Input, &keys) != nil || keys["$file"] != nil {
		return
	}
	for key := range keys {
		if !slices.Contains(known.keys, key) {
			l.say(p.in("input", key), 0, diag.NameHint(key, known.keys), noInput+key+"`", c.Tool)
		}
	}
}

// tool looks at the name of a tool. A bare name that is no built-in tool may be
// that of an MCP tool, from servers that the scenario does not know of: only
// what is hardly one is told.
func (l *linter) tool(p location, name string) {
	if _, ok := l.tools[name]; ok || l.tools == nil || name == "" || strings.ContainsAny(name, "/*?[") || strings.HasPrefix(name, "mcp__") {
		return
	}
	for known := range l.tools {
		if strings.EqualFold(known, name) && len(l.s.MCP.Servers) == 0 {
			l.say(p, 0, "did you mean `"+known+"`?", "unknown tool %q: names are case-sensitive", name)
			return
		}
	}
	if first := name[0]; first < 'A' || first > 'Z' {
		return
	}
	names := make([]string, 0, len(l.tools))
	for known := range l.tools {
		names = append(names, known)
	}
	slices.Sort(names)
	if near := diag.Nearest(name, names); near != "" && len(name) > 3 {
		l.say(p, 0, "did you mean `"+near+"`?", "unknown built-in tool %q", name)
	}
}

// input looks at the templates inside a JSON value.
func (l *linter) input(p location, see visibleLists, raw json.RawMessage) {
	var v any
	if l.mentions(string(raw)) && json.Unmarshal(raw, &v) == nil {
		l.value(p, see, v)
	}
}

func (l *linter) value(p location, see visibleLists, v any) {
	switch v := v.(type) {
	case string:
		l.text(p, see, v)
	case []any:
		for i := range v {
			l.value(p.in(i), see, v[i])
		}
	case map[string]any:
		for key := range v {
			l.value(p.in(key), see, v[key])
		}
	}
}

// mentions keeps most texts from being looked at more closely.
func (l *linter) mentions(src string) bool {
	return strings.Contains(src, "results[") || strings.Contains(src, "match[")
}

// within tells, without reading the expressions, that all numbers are in reach:
// most are.
func within(see visibleLists, src string) bool {
	for _, list := range []struct {
		name string
		size int
	}{{"results[", see.results}, {"match[", see.groups + 1}} {
		for rest := src; ; {
			_, after, ok := strings.Cut(rest, list.name)
			if !ok {
				break
			}
			digits, tail, _ := strings.Cut(after, "]")
			if n, err := strconv.Atoi(digits); err != nil || n >= list.size {
				return false
			}
			rest = tail
		}
	}
	return true
}

func (l *linter) text(p location, see visibleLists, src string) {
	if src != "" && src == l.o.Placeholder {
		l.say(p, 0, "", PlaceholderAnswer)
	}
	if l.templates && l.mentions(src) && !within(see, src) {
		l.indices(p, see, eval.Indices(src))
	}
}

func (l *linter) condition(p location, see visibleLists, src string) {
	if l.mentions(src) && !within(see, src) {
		l.indices(p, see, eval.IndicesOf(src))
	}
}

func (l *linter) indices(p location, see visibleLists, all []eval.Index) {
	for _, x := range all {
		switch {
		case x.Name == "results" && x.Sure && (x.N >= see.results || -x.N > see.results):
			l.say(p, x.Offset, "", "`results[%d]` is out of reach: %s", x.N, before(see.results))
		case x.Name == "match" && see.groups >= 0 && x.N > see.groups:
			l.say(p, x.Offset, "", "`match[%d]` is always empty: the pattern has %s", x.N, count(see.groups, "group"))
		}
	}
}

func before(n int) string {
	if n == 0 {
		return "no calls come before it"
	}
	return "there are at most " + count(n, "result") + " before it"
}

func count(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun + "s"
	case 1:
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (l *linter) servers() {
	if l.o.Server == nil {
		return
	}
	for _, name := range l.s.MCP.ServerNames() {
		for _, wrong := range l.o.Server(name, l.s.MCP.Servers[name]) {
			l.say(l.root("mcp", "servers", name), 0, "", "%s", wrong)
		}
	}
}

// isCalled tells whether an answer may call a tool, by any of its names. It looks
// at the last part of them only: that is more than there is, never less. Without
// answers the calls are those of somebody else.
func (l *linter) isCalled(name string) bool {
	want := lastPart(name)
	return len(l.s.Responses) == 0 && l.s.DefaultResponse == nil || want == "StructuredOutput" || slices.ContainsFunc(l.called, func(called string) bool {
		have := lastPart(called)
		return glob(want, have) || glob(have, want)
	})
}

func glob(pattern, name string) bool {
	g, err := match.Glob(pattern)
	if err != nil {
		return true
	}
	_, ok := g.Match(name)
	return ok
}

// lastPart is the tool's own name, and the newer one where it has two.
func lastPart(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	if i := strings.LastIndex(name, "__"); i >= 0 {
		name = name[i+2:]
	}
	switch name {
	case "Task":
		return "Agent"
	case "KillShell", "KillBash":
		return "TaskStop"
	}
	return name
}

func (l *linter) breakpoints() {
	for i := range l.s.Breakpoints { // what they put in place of a call is called
		if name := l.s.Breakpoints[i].Replacement; eval.HasTemplate(name) {
			l.called = append(l.called, "*")
		} else if name != "" {
			l.called = append(l.called, name)
		}
	}
	for i := range l.s.Breakpoints {
		k := &l.s.Breakpoints[i]
		p := l.root("breakpoints", i)
		l.tool(p.in("tool"), k.Tool)
		if !l.isCalled(k.Tool) {
			l.say(p.in("tool"), 0, "", "the breakpoint never stops anything: no rule calls %s", k.Tool)
		}
		for j := range i {
			earlier := &l.s.Breakpoints[j]
			if earlier.When == "" && earlier.MaxHits == nil && earlier.Phase == k.Phase && (earlier.Tool == k.Tool || earlier.Tool == "*") {
				l.say(p, 0, "", "the breakpoint never decides: the one at %s takes all calls of %s", earlier.Place(), k.Tool)
				break
			}
		}
	}
}

func (l *linter) expectations() {
	for i := range l.s.Expect {
		x := &l.s.Expect[i]
		if x.Tool == "" {
			continue
		}
		p := l.root("expect", i, "tool")
		l.tool(p, x.Tool)
		if !x.Never && (x.Times == nil || x.Times.Min > 0) && !l.isCalled(x.Tool) {
			l.say(p, 0, "", "the expectation cannot be met: no rule calls %s", x.Tool)
		}
	}
}

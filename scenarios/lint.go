package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/eval"
	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// LintOptions configure [Lint] with information that is not in the scenario.
type LintOptions struct {
	Tools []protocol.Tool // the built-in tools; nil means that calls of built-in tools are not checked
	// Server returns the problems of an entry of [mcp.servers]; nil means that the entries are not checked.
	Server      func(name string, entry map[string]any) []string
	Placeholder string // Placeholder is the text of answers that a person must still replace. Lint warns about them; empty means none.
}

// Lint returns warnings about likely mistakes in a scenario, in file order.
func Lint(s *Scenario, o LintOptions) diag.List {
	l := &linter{scenario: s, options: o, tools: closedInputKeysByToolName(o.Tools), templates: s.Templates == nil || *s.Templates}
	l.lintRules()
	if l.scenario.DefaultResponse != nil {
		l.lintResponse(l.locationInScenario("default_response"), templateListLengths{}, l.scenario.DefaultResponse)
	}
	l.lintMCPServerEntries()
	l.lintBreakpoints()
	l.lintExpectations()
	l.warnings.Sort()
	return l.warnings
}

// Other packages recognize two messages of [Lint] by these beginnings.
const (
	NeverAnswersMessage      = "the rule never answers"
	PlaceholderAnswerMessage = "the answer is the placeholder that --accept wrote"
)

const unknownInputFormat = "the tool %s has no input `"

// UnknownInput returns the input key that a [Lint] message reports as unknown for tool; false means another message.
func UnknownInput(lintMessage, tool string) (unknownInputKey string, isUnknownInputMessage bool) {
	rest, isUnknownInputMessage := strings.CutPrefix(lintMessage, fmt.Sprintf(unknownInputFormat, tool))
	return strings.TrimSuffix(rest, "`"), isUnknownInputMessage
}

type linter struct {
	scenario    *Scenario
	options     LintOptions
	tools       map[string][]string // tool name → its input keys; nil keys mean any keys, a nil map means unknown tools
	templates   bool
	calledTools []string // tools that an answer or a breakpoint calls
	warnings    diag.List
}

func closedInputKeysByToolName(defs []protocol.Tool) map[string][]string {
	if defs == nil {
		return nil
	}
	tools := make(map[string][]string, len(defs))
	for _, d := range defs {
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Additional *bool                      `json:"additionalProperties"`
		}
		tools[d.Name] = nil
		if json.Unmarshal(d.InputSchema, &schema) == nil && schema.Additional != nil && !*schema.Additional {
			tools[d.Name] = slices.AppendSeq([]string{}, maps.Keys(schema.Properties))
			slices.Sort(tools[d.Name])
		}
	}
	return tools
}

type diagnosticLocation struct {
	diagnose func(path diag.Path, offset int, message string) diag.Diagnostic
	path     diag.Path
}

func (p diagnosticLocation) below(steps ...any) diagnosticLocation {
	return diagnosticLocation{p.diagnose, append(p.path[:len(p.path):len(p.path)], steps...)}
}

// addWarning adds a warning. offset counts characters within a string value.
func (l *linter) addWarning(p diagnosticLocation, offsetInCharacters int, hint, format string, args ...any) {
	d := p.diagnose(p.path, offsetInCharacters, fmt.Sprintf(format, args...))
	d.Hint, d.Warning = hint, true
	l.warnings = append(l.warnings, d)
}

func (l *linter) locationInScenario(pathFromRoot ...any) diagnosticLocation {
	return diagnosticLocation{l.scenario.DiagnosticAt, pathFromRoot}
}

func (l *linter) lintRules() {
	hidden := newShadowedRuleFinder(l.scenario.Responses)
	for i := range l.scenario.Responses {
		r := &l.scenario.Responses[i]
		p := diagnosticLocation{diagnose: r.DiagnosticAt}
		if by, how := hidden.findShadowingRule(i); how != "" {
			at := l.scenario.Responses[by].DiagnosticAt(nil, 0, "").Pos
			l.addWarning(p.below("pattern"), 0, "", NeverAnswersMessage+": the earlier rule at %s %s", at, how)
		}
		switch {
		case r.MaxMatches != nil && *r.MaxMatches == 0:
			l.addWarning(p.below("max_matches"), 0, "", NeverAnswersMessage+": its max_matches is 0")
		case strings.TrimSpace(r.When) == "false":
			l.addWarning(p.below("when"), 0, "", NeverAnswersMessage+": its condition is false")
		}
		l.warnOfBackspaceInPattern(p.below("pattern"), &r.Pattern)
		l.lintAnswer(p, countGroups(&r.Pattern), r.When, r.Response, r.Failure)
		for t := range r.Turns {
			turn := &r.Turns[t]
			l.lintAnswer(p.below("turns", t), countGroups(&turn.Expect), turn.When, turn.Response, turn.Failure)
		}
	}
}

// warnOfBackspaceInPattern warns of a backspace in a pattern. In a basic TOML string, "\b" is a backspace, not a word boundary.
func (l *linter) warnOfBackspaceInPattern(patternLocation diagnosticLocation, pattern *Pattern) {
	if strings.Contains(pattern.Text+pattern.Pattern, "\b") {
		l.addWarning(patternLocation, 0, `write '\b' in single quotes, or "\\b", for a word boundary`, `the pattern contains a backspace character: "\b" in double quotes is not a word boundary`)
	}
	for i := range pattern.Patterns {
		l.warnOfBackspaceInPattern(patternLocation, &pattern.Patterns[i])
	}
	if pattern.Not != nil {
		l.warnOfBackspaceInPattern(patternLocation, pattern.Not)
	}
}

type templateListLengths struct {
	maxEarlierResults int
	captureGroups     int // number of numbered captures; -1 means unknown
}

// countGroups returns the number of numbered captures of a pattern; -1 means unknown.
func countGroups(p *Pattern) int {
	switch p.Type {
	case PatternRegex:
		if re, err := regexp.Compile(p.Pattern); err == nil {
			return re.NumSubexp()
		}
		return -1
	case PatternExact, PatternContains, PatternAny, PatternNot:
		return 0
	default:
		return -1
	}
}

func (l *linter) lintAnswer(p diagnosticLocation, groups int, when string, response *Response, failure *Failure) {
	lists := templateListLengths{captureGroups: groups}
	l.lintConditionIndices(p.below("when"), lists, when)
	if failure != nil {
		l.lintText(p.below("failure", "message"), lists, failure.Message)
		l.lintText(p.below("failure", "partial_text"), lists, failure.PartialText)
	}
	if response != nil {
		l.lintResponse(p.below("response"), lists, response)
	}
}

func (l *linter) lintResponse(p diagnosticLocation, lists templateListLengths, r *Response) {
	l.lintCalls(p.below("tool_calls"), lists, r.ToolCalls)
	lists.maxEarlierResults += len(r.ToolCalls)
	l.lintText(p.below("text"), lists, r.Text)
	l.lintSteps(p.below("steps"), lists, r.Steps)
}

func (l *linter) lintSteps(p diagnosticLocation, lists templateListLengths, steps []Step) {
	for i := range steps {
		s, sp := &steps[i], p.below(i)
		l.lintConditionIndices(sp.below("when"), lists, s.When)
		l.lintText(sp.below("thinking"), lists, s.Thinking)
		l.lintText(sp.below("text"), lists, s.Text)
		l.lintCalls(sp.below("tool_calls"), lists, s.ToolCalls)
		calls := len(s.ToolCalls)
		for b := range s.Blocks {
			block, bp := &s.Blocks[b], sp.below("blocks", b)
			l.lintText(bp.below("text"), lists, block.Text)
			l.lintText(bp.below("thinking"), lists, block.Thinking)
			if block.Type == BlockToolUse {
				l.lintCall(bp, lists, &block.ToolCall)
				calls++
			}
		}
		lists.maxEarlierResults += calls
	}
}

func (l *linter) lintCalls(p diagnosticLocation, lists templateListLengths, calls []ToolCall) {
	for i := range calls {
		l.lintCall(p.below(i), lists, &calls[i])
	}
}

func (l *linter) lintCall(p diagnosticLocation, lists templateListLengths, c *ToolCall) {
	l.calledTools = append(l.calledTools, c.Tool)
	var v any
	if mayIndexVariables(string(c.Input)) && json.Unmarshal(c.Input, &v) == nil {
		l.lintTemplatesInValue(p.below("input"), lists, v)
	}
	if c.Result != nil {
		l.lintText(p.below("result"), lists, c.Result.Text)
	}
	l.lintToolName(p.below("tool"), c.Tool)
	if c.Subagent != nil {
		l.lintSteps(p.below("subagent", "steps"), templateListLengths{captureGroups: lists.captureGroups}, c.Subagent.Steps)
	}
	known, ok := l.tools[c.Tool]
	var keys map[string]json.RawMessage
	if !ok || known == nil || c.Result != nil || json.Unmarshal(c.Input, &keys) != nil || keys["$file"] != nil {
		return
	}
	for key := range keys {
		if !slices.Contains(known, key) {
			l.addWarning(p.below("input", key), 0, diag.NameHint(key, known), unknownInputFormat+key+"`", c.Tool)
		}
	}
}

// lintToolName warns of a tool name that is probably wrong. A bare name that is not a built-in tool may belong to an
// MCP server, so it is reported only if it resembles a built-in tool.
func (l *linter) lintToolName(p diagnosticLocation, name string) {
	if _, ok := l.tools[name]; ok || l.tools == nil || name == "" || strings.ContainsAny(name, "/*?[") || strings.HasPrefix(name, "mcp__") {
		return
	}
	for known := range l.tools {
		if strings.EqualFold(known, name) && len(l.scenario.MCP.Servers) == 0 {
			l.addWarning(p, 0, "did you mean `"+known+"`?", "unknown tool %q: names are case-sensitive", name)
			return
		}
	}
	if first := name[0]; first < 'A' || first > 'Z' {
		return
	}
	if near := diag.SimilarOtherName(name, slices.Sorted(maps.Keys(l.tools))); near != "" && len(name) > 2 {
		l.addWarning(p, 0, "did you mean `"+near+"`?", "unknown built-in tool %q", name)
	}
}

func (l *linter) lintTemplatesInValue(p diagnosticLocation, lists templateListLengths, v any) {
	switch v := v.(type) {
	case string:
		l.lintText(p, lists, v)
	case []any:
		for i := range v {
			l.lintTemplatesInValue(p.below(i), lists, v[i])
		}
	case map[string]any:
		for key := range v {
			l.lintTemplatesInValue(p.below(key), lists, v[key])
		}
	}
}

// mayIndexVariables reports whether a string may use results[…] or match[…]. It is a fast check before parsing.
func mayIndexVariables(src string) bool {
	return strings.Contains(src, "results[") || strings.Contains(src, "match[")
}

// indexesCertainlyInRange reports whether every index in src is certainly within its list. Otherwise the caller parses src.
func indexesCertainlyInRange(lists templateListLengths, src string) bool {
	for _, list := range []struct {
		name string
		size int
	}{{"results[", lists.maxEarlierResults}, {"match[", lists.captureGroups + 1}} {
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

func (l *linter) lintText(p diagnosticLocation, lists templateListLengths, src string) {
	if src != "" && src == l.options.Placeholder {
		l.addWarning(p, 0, "", PlaceholderAnswerMessage)
	}
	if l.templates && mayIndexVariables(src) && !indexesCertainlyInRange(lists, src) {
		l.lintIndices(p, lists, eval.ListIndicesInTemplate(src))
	}
}

func (l *linter) lintConditionIndices(p diagnosticLocation, lists templateListLengths, src string) {
	if mayIndexVariables(src) && !indexesCertainlyInRange(lists, src) {
		l.lintIndices(p, lists, eval.ListIndicesInExpression(src))
	}
}

func (l *linter) lintIndices(p diagnosticLocation, lists templateListLengths, all []eval.ListIndex) {
	for _, x := range all {
		switch {
		case x.Name == "results" && x.Unconditional && (x.Value >= lists.maxEarlierResults || -x.Value > lists.maxEarlierResults):
			l.addWarning(p, x.Offset, "", "`results[%d]` does not exist here: %s", x.Value, describeMaxEarlierResults(lists.maxEarlierResults))
		case x.Name == "match" && lists.captureGroups >= 0 && x.Value > lists.captureGroups:
			l.addWarning(p, x.Offset, "", "`match[%d]` is always empty: the pattern has %s", x.Value, countWithNoun(lists.captureGroups, "group"))
		}
	}
}

func describeMaxEarlierResults(maxResults int) string {
	if maxResults == 0 {
		return "no calls come before it"
	}
	return "there are at most " + countWithNoun(maxResults, "result") + " before it"
}

func countWithNoun(n int, noun string) string {
	if n == 0 {
		return "no " + noun + "s"
	}
	return diag.FormatCount(n, noun)
}

func (l *linter) lintMCPServerEntries() {
	if l.options.Server == nil {
		return
	}
	for _, name := range l.scenario.MCP.ServerNames() {
		for _, wrong := range l.options.Server(name, l.scenario.MCP.Servers[name]) {
			l.addWarning(l.locationInScenario("mcp", "servers", name), 0, "", "%s", wrong)
		}
	}
}

// mayBeCalled reports whether an answer may call a tool. It compares only the last part of the names, so it may return true for a
// tool of another server, but never misses a call. If the scenario has no answers, it returns true for every tool.
func (l *linter) mayBeCalled(name string) bool {
	want := currentToolNameWithoutServer(name)
	return len(l.scenario.Responses) == 0 && l.scenario.DefaultResponse == nil || want == "StructuredOutput" || slices.ContainsFunc(l.calledTools, func(called string) bool {
		have := currentToolNameWithoutServer(called)
		return globMatchesOrIsInvalid(want, have) || globMatchesOrIsInvalid(have, want)
	})
}

func globMatchesOrIsInvalid(pattern, name string) bool {
	g, err := match.Glob(pattern)
	if err != nil {
		return true
	}
	_, ok := g.Match(name)
	return ok
}

func currentToolNameWithoutServer(anyToolName string) string {
	anyToolName = anyToolName[strings.LastIndexByte(anyToolName, '/')+1:]
	if i := strings.LastIndex(anyToolName, "__"); i >= 0 {
		anyToolName = anyToolName[i+2:]
	}
	switch anyToolName {
	case "Task":
		return "Agent"
	case "KillShell", "KillBash":
		return "TaskStop"
	}
	return anyToolName
}

func (l *linter) lintBreakpoints() {
	for i := range l.scenario.Breakpoints { // a replacement tool counts as called
		if name := l.scenario.Breakpoints[i].Replacement; eval.HasTemplate(name) {
			l.calledTools = append(l.calledTools, "*")
		} else if name != "" {
			l.calledTools = append(l.calledTools, name)
		}
	}
	for i := range l.scenario.Breakpoints {
		k := &l.scenario.Breakpoints[i]
		p := l.locationInScenario("breakpoints", i)
		l.lintToolName(p.below("tool"), k.Tool)
		if !l.mayBeCalled(k.Tool) {
			l.addWarning(p.below("tool"), 0, "", "the breakpoint never stops a call: no rule calls %s", k.Tool)
		}
		for j := range i {
			earlier := &l.scenario.Breakpoints[j]
			if earlier.When == "" && earlier.MaxHits == nil && earlier.Phase == k.Phase && (earlier.Tool == k.Tool || earlier.Tool == "*") {
				l.addWarning(p, 0, "", "this breakpoint has no effect: the one at %s decides all calls of %s", earlier.SourcePosition(), k.Tool)
				break
			}
		}
	}
}

func (l *linter) lintExpectations() {
	for i := range l.scenario.Expect {
		x := &l.scenario.Expect[i]
		if x.Tool == "" {
			continue
		}
		p := l.locationInScenario("expect", i, "tool")
		l.lintToolName(p, x.Tool)
		switch {
		case l.mayBeCalled(x.Tool):
		case !x.Never && (x.Times == nil || x.Times.Min > 0):
			l.addWarning(p, 0, "", "the expectation cannot be met: no rule calls %s", x.Tool)
		case len(l.scenario.Responses) > 0:
			l.addWarning(p, 0, "", "the expectation is always met: no rule calls %s", x.Tool)
		}
	}
}

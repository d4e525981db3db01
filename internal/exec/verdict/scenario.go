package verdict

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// scenario adds findings about the scenario itself: inputs that a tool rejected (S12), placeholder answers (S16),
// rules that answered nothing (S13), and the other warnings of `claudeless check` (S09).
func (l *findings) scenario(runs []*process) {
	warnings := scenarios.Lint(l.in.Scenario, scenarios.LintOptions{Tools: l.in.Tools, Placeholder: AnswerPlaceholder})
	l.rejectedInputs(runs, warnings)
	unused := l.unusedRules(warnings)
	for _, w := range warnings {
		f := placed(Finding{ID: "S09", Level: l.warning(), Text: w.Message, Advice: w.Hint}, w.Pos)
		if strings.HasPrefix(w.Message, scenarios.PlaceholderAnswer) {
			f.ID, f.Level, f.Advice = "S16", levelError, "write the answer of the rule"
		}
		told := slices.ContainsFunc(unused, func(u Finding) bool { return u.Advice == w.Message })
		if !told && !l.reported(f) {
			l.list = append(l.list, f)
		}
	}
	l.list = append(l.list, unused...)
}

// warning returns the level of findings that only --strict turns into errors.
func (l *findings) warning() string {
	if l.in.Strict {
		return levelError
	}
	return levelWarn
}

// reported reports whether another finding says the same about a line.
func (l *findings) reported(f Finding) bool {
	return slices.ContainsFunc(l.list, func(g Finding) bool {
		return g.File == f.File && g.Line == f.Line && (g.ID == "S12" || g.ID == "S11" || g.Text == f.Text)
	})
}

// unusedRules is S13. A scenario that defines itself when an unused rule is a problem has expectations for it.
func (l *findings) unusedRules(warnings diag.List) []Finding {
	var all []Finding
	for _, rule := range journal.Summarize(l.in.Entries).UnusedRules(l.in.Scenario) {
		all = append(all, Finding{
			ID: "S13", Level: l.warning(), Text: rule.Name + " answered no prompt", File: rule.File, Line: rule.Line,
			Advice: "send a prompt that it matches, or remove the rule",
		})
	}
	for _, w := range warnings {
		if !strings.HasPrefix(w.Message, scenarios.NeverAnswers) {
			continue
		}
		for i := range slices.Backward(all) { // the last rule that begins before the warning
			if all[i].File == w.Pos.File && all[i].Line <= w.Pos.Line {
				all[i].Advice = w.Message
				break
			}
		}
	}
	return all
}

// rejectedInputs is S12: calls whose input the tool rejected.
func (l *findings) rejectedInputs(runs []*process, warnings diag.List) {
	for _, p := range runs {
		var rule journal.Match // the rule that answered last
		for _, e := range p.entries {
			if e.Match != nil {
				rule = *e.Match
			}
			if t := e.Tool; t != nil && t.RanWith == nil && t.IsError {
				at := Finding{File: rule.File, Line: rule.Line}
				l.rejected(scriptedCall{t.Tool, t.Input, t.Result}, p.attribute(at), warnings)
			}
		}
	}
	for _, e := range l.in.Entries {
		if e.Request == nil {
			continue
		}
		for _, c := range e.Request.Calls {
			if c.IsError {
				at := Finding{File: e.Request.File, Line: e.Request.Line, Time: e.Time}
				l.rejected(scriptedCall{c.Tool, c.Input, c.Result}, at, warnings)
			}
		}
	}
}

// scriptedCall is a call and the text of its result.
type scriptedCall struct {
	tool   string
	input  json.RawMessage
	result string
}

// rejected adds the finding about one call, at the position of the lint warning or of its rule.
func (l *findings) rejected(c scriptedCall, f Finding, warnings diag.List) {
	why, ok := rejection(c)
	if !ok || l.in.Scenario.ExpectsInput(c.tool, c.input) {
		return
	}
	f.ID, f.Level = "S12", levelError
	f.Text, f.Advice = fmt.Sprintf("the tool %s rejected its scripted input: %s", c.tool, why), "correct the input; `[[expect]]` with this tool and input accepts it"
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(c.input, &keys) // anything but an object has no keys
	for _, w := range warnings {
		if key, ok := scenarios.UnknownInput(w.Message, c.tool); ok && keys[key] != nil && w.Pos.File == f.File {
			f.Text, f.Line = fmt.Sprintf("the tool %s rejected its scripted input: it has no input `%s`", c.tool, key), w.Pos.Line
			if w.Hint != "" {
				f.Advice = w.Hint
			}
			break
		}
	}
	if !l.reported(f) {
		l.list = append(l.list, f)
	}
}

// rejection returns the reason if the tool rejected the input: recognized by the texts of the built-in tools, by the
// JSON-RPC code of an MCP server, and by the texts of our fixtures.
func rejection(c scriptedCall) (why string, ok bool) {
	if _, issue, found := strings.Cut(c.result, "<tool_use_error>InputValidationError: "); found {
		_, issue, _ = strings.Cut(strings.TrimSuffix(issue, "</tool_use_error>"), ":\n")
		return strings.ReplaceAll(strings.TrimSpace(issue), "\n", "; "), true
	}
	if !strings.HasPrefix(c.tool, "mcp__") {
		return "", false
	}
	for _, sign := range []string{"MCP error -32602", "[E_INVALID_PARAMS]"} {
		if _, issue, found := strings.Cut(c.result, sign); found {
			line, _, _ := strings.Cut(strings.TrimLeft(issue, ": "), "\n")
			return line, true
		}
	}
	return "", false
}

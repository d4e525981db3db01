package verdict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// addFalsePassRiskFindings adds findings about set-ups in which a test could pass for the wrong reason.
func (l *findingCollector) addFalsePassRiskFindings(processes []*journaledProcess) {
	if !l.input.AllowNoRuns && !l.input.HasRunsOrRequests() { // a command that never started claude and sent no request to its API has tested nothing
		l.findings = append(l.findings, NoRunsFinding())
	}
	for _, p := range processes {
		l.addFindingsOfProcessSetup(p)
		l.addFindingsOfPromptsWithoutMatchingRule(p)
		l.addImpossibleCallFindings(p)
		l.addFindingsOfEndBySignal(p)
	}
	l.addFindingsOfAPIPromptsWithoutMatchingRule()
	l.addImpossibleCallFindingsOfAPI()
	l.addFindingsOfReusedOnceRules()
	l.findings = append(l.findings, findingsOfUnreachedScript(l.input)...)
	if l.input.Scenario != nil {
		l.addFindingsOfUncheckableMCP()
		l.addFindingsOfScenarioDefects(processes)
	}
}

// addFindingsOfUncheckableMCP adds finding S20 for each uncheckable expectation about notifications of an MCP server. In a
// run with a real claude, notifications are recorded only if exec started the server as a fixture.
func (l *findingCollector) addFindingsOfUncheckableMCP() {
	has := func(is func(journal.Entry) bool) bool { return slices.ContainsFunc(l.input.Entries, is) }
	if has(func(e journal.Entry) bool { return e.Run != nil }) || !l.input.HasRunsOrRequests() {
		return
	}
	var recorded []string
	if has(func(e journal.Entry) bool { return e.Start != nil && e.Start.LogCache != "" }) { // exec --real
		recorded = l.input.Scenario.MCP.FixtureServerNames()
	}
	for _, x := range l.input.Scenario.ExpectationsOfUnrecordedServers(recorded) {
		l.findings = append(l.findings, Finding{
			ID: "S20", Level: levelError, File: x.File, Line: x.Line, Text: "with a real claude, the log and progress messages of the MCP server " + x.Name + " are not recorded",
			Advice: "with exec --real, make the server a `fixture` of the scenario, or expect a call: mcp = { server = …, tool = … }",
		})
	}
}

// NoRunsFinding returns the finding about a command that never started claude.
func NoRunsFinding() Finding {
	return Finding{
		ID: "S10", Level: levelError, Text: "claude was never started",
		Advice: "check that the command runs claude from PATH and waits for it; --allow-no-runs accepts a run without claude",
	}
}

// IsInteractive reports whether a session ran on a terminal.
func (in *Input) IsInteractive() bool {
	return slices.ContainsFunc(in.Entries, func(e journal.Entry) bool { return e.Run != nil && e.Run.Interactive })
}

// addFindingsOfReusedOnceRules adds an S02 finding for each prompt that a rule with `once` answered after its first prompt.
// The server cannot prevent this, because requests do not tell which run they belong to.
func (l *findingCollector) addFindingsOfReusedOnceRules() {
	if l.input.Scenario == nil {
		return
	}
	once := map[string]bool{}
	for i := range l.input.Scenario.Responses {
		once[fmt.Sprintf("responses[%d]", i)] = l.input.Scenario.Responses[i].Once
	}
	type use struct {
		source int
		rule   string
	}
	used := map[use]bool{}
	for _, e := range l.input.Entries {
		q := e.Request
		if q == nil || q.Prompt == "" || q.Attempt > 1 || !once[q.Rule] {
			continue
		}
		if used[use{e.Source, q.Rule}] {
			l.findings = append(l.findings, Finding{
				ID: "S02", Level: levelError, Text: "a prompt matched a rule with `once` that had already answered: " + quoteFirst100Characters(q.Prompt), Advice: "add a rule for this prompt, or remove `once`",
				File: q.File, Line: q.Line, Time: e.Time,
			})
		}
		used[use{e.Source, q.Rule}] = true
	}
}

// addFindingsOfProcessSetup adds findings S01, S07 and S08: problems before the first prompt.
func (l *findingCollector) addFindingsOfProcessSetup(p *journaledProcess) {
	if p.setup != nil && p.setup.Scenario == "" && p.setup.ScenarioFile == "" {
		l.addFindingOfProcess(p, "S01", levelError, "no scenario was given, so claude only answered with a greeting",
			"give a scenario with -s FILE, --scenario FILE or CLAUDELESS_SCENARIO")
	}
	if p.start == nil {
		return
	}
	for _, name := range p.start.UnknownVariables {
		l.addFindingOfProcess(p, "S07", levelError, "unknown variable "+name, "docs/compatibility.md lists the variables; correct the name or remove the variable")
	}
	if p.start.SuggestedCommand != "" {
		l.addFindingOfProcess(p, "S08", levelError, fmt.Sprintf("%q was used as a prompt", p.Argv[1]), "did you mean the command "+p.start.SuggestedCommand+"?")
	}
}

// addFindingsOfPromptsWithoutMatchingRule adds S02 findings: prompts that no rule answers.
func (l *findingCollector) addFindingsOfPromptsWithoutMatchingRule(p *journaledProcess) {
	for _, e := range p.entries {
		m := e.Match
		if m == nil || m.Rule != "" || m.WrittenByCLI {
			continue
		}
		l.addFindingAndUnmatchedPrompt(m.Prompt, m.Nearest, p.withProcessIDAndTime(Finding{}))
	}
}

// addFindingsOfAPIPromptsWithoutMatchingRule adds S02 findings for the API: prompts that no rule answers.
func (l *findingCollector) addFindingsOfAPIPromptsWithoutMatchingRule() {
	for _, e := range l.input.Entries {
		if q := e.Request; q != nil && q.Prompt != "" && !q.WrittenByCLI && q.Rule == "" && q.Status != 0 && q.Status != 401 {
			var nearest []string
			if l.input.Scenario != nil {
				nearest = scenarios.NewEngine(l.input.Scenario, scenarios.EngineOptions{}).ExplainNearMisses(scenarios.Request{Prompt: q.Prompt})
			}
			l.addFindingAndUnmatchedPrompt(q.Prompt, nearest, Finding{Time: e.Time})
		}
	}
}

func (l *findingCollector) addFindingAndUnmatchedPrompt(prompt string, nearestRules []string, finding Finding) {
	u := UnmatchedPrompt{Prompt: prompt, Nearest: append([]string{}, nearestRules...), Rule: TOMLRuleWithPlaceholderAnswer(prompt)}
	if l.input.Scenario != nil {
		u.File = l.input.Scenario.File()
	}
	finding.ID, finding.Level, finding.Text, finding.Advice = "S02", levelError, "no rule matches the prompt "+quoteFirst100Characters(prompt), u.advice()
	l.findings, l.unmatched = append(l.findings, u.findingWithNearestRulePosition(finding)), append(l.unmatched, u)
}

func (u UnmatchedPrompt) advice() string {
	if len(u.Nearest) == 0 {
		return "add a rule, or a default_response"
	}
	nearest := u.Nearest
	if strings.HasPrefix(nearest[0], "no rule of the scenario matches ") { // the finding already says this
		nearest = nearest[1:]
	}
	return strings.Join(append(slices.Clone(nearest), "add this rule, or let --accept add it:", u.Rule), "\n")
}

// findingWithNearestRulePosition returns finding with the position of the nearest rule, which the user probably has to change.
func (u UnmatchedPrompt) findingWithNearestRulePosition(finding Finding) Finding {
	for _, text := range u.Nearest {
		head, _, ok := strings.Cut(text, ": responses[")
		colon := strings.LastIndex(head, ":")
		if !ok || colon < 0 {
			continue
		}
		if line, err := strconv.Atoi(head[colon+1:]); err == nil {
			finding.File, finding.Line = head[:colon], line
			return finding
		}
	}
	return finding
}

// addImpossibleCallFindings adds S03 and S04 findings: scripted calls that cannot have run.
func (l *findingCollector) addImpossibleCallFindings(p *journaledProcess) {
	denied := map[string]bool{}
	var rule journal.Match // the rule that answered last
	add := func(f Finding) {
		f.File, f.Line = rule.File, rule.Line
		l.findings = append(l.findings, p.withProcessIDAndTime(f))
	}
	for _, e := range p.entries {
		if e.Match != nil {
			rule = *e.Match
		}
		if d := e.Permission; d != nil && d.IsDeniedForLackOfAllowRule() {
			denied[d.ToolUseID] = true
		}
		t := e.Tool
		switch {
		case t == nil:
		case t.Unknown && !l.input.hasScenarioExpectationOfTool(t.Tool):
			add(missingToolFinding(t.Tool))
		case denied[t.ToolUseID] && !l.input.hasScenarioExpectationOfTool(t.Tool):
			f := deniedCallFinding(t.Tool)
			if wrong := misspelledAllowedTool(p.Argv, t.Tool); wrong != "" {
				f.Advice = "`" + wrong + "` in --allowedTools is not a tool name; did you mean `" + t.Tool + "`?"
			}
			add(f)
		case t.IsError && journal.SaysNoFixtureCaseMatched(t.Result):
			add(noFixtureCaseForCallFinding(t.Tool, t.Result))
		}
	}
}

// addImpossibleCallFindingsOfAPI adds S03 and S04 findings for the API: calls that its clients cannot have run.
func (l *findingCollector) addImpossibleCallFindingsOfAPI() {
	from := len(l.findings)
	add := func(e journal.Entry, word func(string) Finding, tool string) {
		f := word(tool)
		f.File, f.Line, f.Time = e.Request.File, e.Request.Line, e.Time
		if !l.input.hasScenarioExpectationOfTool(tool) && !slices.ContainsFunc(l.findings[from:], func(g Finding) bool { return g.ID == f.ID && g.Text == f.Text }) {
			l.findings = append(l.findings, f)
		}
	}
	for _, e := range l.input.Entries {
		if e.Request == nil {
			continue
		}
		for _, tool := range e.Request.NotOffered {
			add(e, missingToolFinding, tool)
		}
		for _, c := range e.Request.Calls {
			switch {
			case c.HasUnknownTool():
				add(e, missingToolFinding, c.Tool)
			case c.WasDeniedForLackOfAllowRule():
				add(e, deniedCallFinding, c.Tool)
			case c.IsError && journal.SaysNoFixtureCaseMatched(c.Result):
				f := noFixtureCaseForCallFinding(c.Tool, c.Result)
				f.Time = e.Time
				l.findings = append(l.findings, f)
			}
		}
	}
}

func missingToolFinding(name string) Finding {
	return Finding{
		ID: "S03", Level: levelError, Text: "the script calls the tool " + name + ", which does not exist here",
		Advice: "check the name of the tool and its server, or accept the call with `[[expect]] tool = …`",
	}
}

func noFixtureCaseForCallFinding(toolName, result string) Finding {
	return Finding{
		ID: "S19", Level: levelError, Text: "the fixture has no case for a call of " + toolName + ": " + quoteFirst100Characters(result),
		Advice: "add a case with these arguments to the fixture, or a `result` for all others",
	}
}

// misspelledAllowedTool returns a name in --allowedTools that resembles toolName; empty if there is none, or if toolName is allowed.
func misspelledAllowedTool(argv []string, toolName string) string {
	wrong, rules := "", false
	for _, word := range argv[min(1, len(argv)):] {
		if strings.HasPrefix(word, "--") {
			flag, value, _ := strings.Cut(word, "=")
			rules, word = flag == "--allowedTools" || flag == "--allowed-tools", value
		}
		if !rules {
			continue
		}
		for rule := range strings.FieldsFuncSeq(word, func(r rune) bool { return r == ',' || r == ' ' }) {
			switch name := claudecode.ParsePermissionRule(rule).Tool; {
			case name == toolName:
				return ""
			case diag.SimilarOtherName(name, []string{toolName}) != "":
				wrong = name
			}
		}
	}
	return wrong
}

func deniedCallFinding(tool string) Finding {
	return Finding{
		ID: "S04", Level: levelError, Text: "the scripted call of " + tool + " was denied: the tool is not allowed",
		Advice: "allow the tool with --allowedTools; to test the denial, deny the tool with a permission rule or expect the call with `[[expect]] tool = …`",
	}
}

func (in *Input) hasScenarioExpectationOfTool(toolName string) bool {
	return in.Scenario != nil && in.Scenario.HasExpectationAboutTool(toolName)
}

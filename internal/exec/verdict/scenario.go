package verdict

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// addFindingsOfScenarioDefects adds findings about the scenario itself: inputs that a tool rejected (S12), placeholder answers
// (S16), rules that answered nothing (S13), and the other warnings of `claudeless check` (S09).
func (l *findingCollector) addFindingsOfScenarioDefects(processes []*journaledProcess) {
	l.input.Lint.Placeholder = AnswerPlaceholder
	warnings := scenarios.Lint(l.input.Scenario, l.input.Lint)
	l.addFindingsOfRejectedToolInput(processes, warnings)
	unused := l.unusedRuleFindings(warnings)
	for _, w := range warnings {
		f := withPosition(Finding{ID: "S09", Level: l.errorLevelIfStrictElseWarn(), Text: w.Message, Advice: w.Hint}, w.Pos)
		if strings.HasPrefix(w.Message, scenarios.PlaceholderAnswerMessage) {
			f.ID, f.Level, f.Advice = "S16", levelError, "write the answer of the rule"
		}
		told := slices.ContainsFunc(unused, func(u Finding) bool { return u.Advice == w.Message })
		if !told && !l.isCoveredByFindingAtSameLine(f) {
			l.findings = append(l.findings, f)
		}
	}
	l.findings = append(l.findings, unused...)
}

func (l *findingCollector) errorLevelIfStrictElseWarn() string {
	if l.input.Strict {
		return levelError
	}
	return levelWarn
}

// isCoveredByFindingAtSameLine reports whether another finding at the same line has the same text,
// or names the cause itself: S11 (failed template) or S12 (rejected input).
func (l *findingCollector) isCoveredByFindingAtSameLine(finding Finding) bool {
	return slices.ContainsFunc(l.findings, func(g Finding) bool {
		return g.File == finding.File && g.Line == finding.Line && (g.ID == "S12" || g.ID == "S11" || g.Text == finding.Text)
	})
}

// unusedRuleFindings returns an S13 finding for each rule that answered no prompt. A rule that matched a prompt and then
// failed (S11) does not count as unused. If the scenario has expectations about unused rules, there are no findings.
func (l *findingCollector) unusedRuleFindings(warnings diag.List) []Finding {
	var all []Finding
	for _, rule := range journal.Summarize(l.input.Entries).UnusedRulesUnlessExpected(l.input.Scenario) {
		if slices.ContainsFunc(l.findings, func(f Finding) bool { return f.ID == "S11" && l.input.Scenario.RuleAtLine(f.File, f.Line) == rule }) {
			continue
		}
		f := Finding{
			ID: "S13", Level: l.errorLevelIfStrictElseWarn(), Text: "the rule " + rule.Name + " answered no prompt", File: rule.File, Line: rule.Line,
			Advice: "send a prompt that this rule matches, or remove the rule",
		}
		for _, w := range warnings {
			if strings.HasPrefix(w.Message, scenarios.NeverAnswersMessage) && l.input.Scenario.RuleAtLine(w.Pos.File, w.Pos.Line) == rule {
				f.Advice = w.Message
			}
		}
		all = append(all, f)
	}
	return all
}

// addFindingsOfRejectedToolInput adds S12 findings: calls with an input that the tool rejected.
func (l *findingCollector) addFindingsOfRejectedToolInput(processes []*journaledProcess, warnings diag.List) {
	for _, p := range processes {
		var rule journal.Match // the rule that answered last
		for _, e := range p.entries {
			if e.Match != nil {
				rule = *e.Match
			}
			if t := e.Tool; t != nil && t.RanWith == nil && t.IsError {
				at := Finding{File: rule.File, Line: rule.Line}
				l.addFindingIfToolRejectedInput(failedScriptedToolCall{t.Tool, t.Input, t.Result}, p.withProcessIDAndTime(at), warnings)
			}
		}
	}
	for _, e := range l.input.Entries {
		if e.Request == nil {
			continue
		}
		for _, c := range e.Request.Calls {
			if c.IsError {
				at := Finding{File: e.Request.File, Line: e.Request.Line, Time: e.Time}
				l.addFindingIfToolRejectedInput(failedScriptedToolCall{c.Tool, c.Input, c.Result}, at, warnings)
			}
		}
	}
}

type failedScriptedToolCall struct {
	toolName     string
	input        json.RawMessage
	actualResult string
}

// addFindingIfToolRejectedInput adds finding if the tool rejected the input of a scripted call, unless an expectation
// accepts it. If a linter warning is about this input, finding gets its position.
func (l *findingCollector) addFindingIfToolRejectedInput(call failedScriptedToolCall, finding Finding, lintWarnings diag.List) {
	why, ok := toolInputRejectionReason(call)
	if !ok || l.input.Scenario.HasExpectationForCall(call.toolName, call.input) {
		return
	}
	finding.ID, finding.Level = "S12", levelError
	finding.Text, finding.Advice = fmt.Sprintf("the tool %s rejected its scripted input: %s", call.toolName, why), "correct the input; to accept it, add an `[[expect]]` with this tool and input"
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(call.input, &keys) // anything but an object has no keys
	for _, w := range lintWarnings {
		if key, ok := scenarios.UnknownInput(w.Message, call.toolName); ok && keys[key] != nil && w.Pos.File == finding.File {
			finding.Text, finding.Line = fmt.Sprintf("the tool %s rejected its scripted input: it has no input `%s`", call.toolName, key), w.Pos.Line
			finding.Advice = cmp.Or(w.Hint, finding.Advice)
			break
		}
	}
	if !l.isCoveredByFindingAtSameLine(finding) {
		l.findings = append(l.findings, finding)
	}
}

// toolInputRejectionReason returns why the tool rejected the input of a call; ok is false if the tool did not reject the input.
// It recognizes the messages of the built-in tools and of our fixtures, and the JSON-RPC code -32602 of any MCP server.
func toolInputRejectionReason(call failedScriptedToolCall) (reason string, ok bool) {
	if _, issue, found := strings.Cut(call.actualResult, "<tool_use_error>InputValidationError: "); found {
		_, issue, _ = strings.Cut(strings.TrimSuffix(issue, "</tool_use_error>"), ":\n")
		return strings.ReplaceAll(strings.TrimSpace(issue), "\n", "; "), true
	}
	if !strings.HasPrefix(call.toolName, "mcp__") {
		return "", false
	}
	for _, sign := range []string{"MCP error -32602", "[E_INVALID_PARAMS]"} {
		if _, issue, found := strings.Cut(call.actualResult, sign); found {
			line, _, _ := strings.Cut(strings.TrimLeft(issue, ": "), "\n")
			return line, true
		}
	}
	return "", false
}

// findingsOfUnreachedScript returns S05 findings: turns and steps that the run did not reach.
func findingsOfUnreachedScript(in Input) []Finding {
	p := playbackTracker{in: &in, progress: map[string]*scriptProgressOfSession{}}
	homes := map[journalAndPID]string{} // configuration directory of each process
	for _, e := range in.Entries {
		switch {
		case e.Run != nil:
			homes[journalAndPIDOfEntry(e)] = e.Run.Env["CLAUDE_CONFIG_DIR"]
		case e.Start != nil:
			p.hasHost = p.hasHost || strings.Contains(strings.Join(e.Start.Argv, "="), "--input-format=stream-json")
		case e.Unplayed != nil:
			p.findings = append(p.findings, unplayedStepFinding(e, e.Unplayed))
		case e.Match != nil && !e.Match.WrittenByCLI:
			p.recordMatchAndSkippedTurns(e, e.SessionID+"\x00"+homes[journalAndPIDOfEntry(e)], e.Match.Rule)
		case e.Request != nil && e.Request.Session != "":
			p.updateProgressAddingFindings(e, e.Request)
		}
	}
	return p.addFinalFindingsAndReturnAll()
}

// playbackTracker tracks how far the script of each session was played. API clients that send no session id are ignored.
type playbackTracker struct {
	in       *Input
	findings []Finding
	progress map[string]*scriptProgressOfSession // progress by session id
	sessions []*scriptProgressOfSession
	hasHost  bool
}

type scriptProgressOfSession struct {
	remainingTurns                *remainingTurnsOfRule // the remaining turns; nil means none
	lastRequestBeforeUnplayedStep journal.Entry         // the last request, if the script of the session has another step after it; otherwise empty
}

func (p *playbackTracker) getOrAddProgressOfSession(sessionID string) *scriptProgressOfSession {
	if p.progress[sessionID] == nil {
		p.progress[sessionID] = &scriptProgressOfSession{}
		p.sessions = append(p.sessions, p.progress[sessionID])
	}
	return p.progress[sessionID]
}

func (p *playbackTracker) updateProgressAddingFindings(entry journal.Entry, request *journal.Request) {
	session := request.Session + "/" + request.Agent
	s := p.getOrAddProgressOfSession(session)
	next := request.Prompt != "" && !request.WrittenByCLI && request.Attempt <= 1
	if next && !wasTurnBeforePromptInterrupted(request) {
		p.findings = append(p.findings, s.unreachedStepFindings()...)
	}
	s.lastRequestBeforeUnplayedStep = journal.Entry{}
	if request.NextStep != nil && !request.Failed() {
		s.lastRequestBeforeUnplayedStep = entry
	}
	if next {
		entry.PID = 0 // the server wrote the line, so its process is not a claude
		p.recordMatchAndSkippedTurns(entry, session, request.Rule)
	}
}

// unreachedStepFindings returns one finding, about the next step that the session did not reach; nil means none.
func (s *scriptProgressOfSession) unreachedStepFindings() []Finding {
	if s.lastRequestBeforeUnplayedStep.Request == nil {
		return nil
	}
	f := unplayedStepFinding(s.lastRequestBeforeUnplayedStep, s.lastRequestBeforeUnplayedStep.Request.NextStep)
	f.PID = 0 // the server wrote the line, so its process is not a claude
	return []Finding{f}
}

// wasTurnBeforePromptInterrupted reports whether the turn before the prompt of requestWithPrompt was cut off by the user or the
// end of its process. It recognizes Claude Code's message about a call that did not return before the process exited.
func wasTurnBeforePromptInterrupted(requestWithPrompt *journal.Request) bool {
	for _, kind := range slices.Backward(requestWithPrompt.Messages) {
		if kind == "interrupt" || kind == "answer" {
			return kind == "interrupt" || slices.ContainsFunc(requestWithPrompt.Calls, func(c journal.ExecutedCall) bool { return strings.HasPrefix(c.Result, "[Tool call interrupted: ") })
		}
	}
	return false
}

func (p *playbackTracker) recordMatchAndSkippedTurns(entry journal.Entry, session, ruleName string) {
	s := p.getOrAddProgressOfSession(session)
	rule, turn := parseRuleName(ruleName)
	if before := s.remainingTurns; before != nil && (rule != before.ruleIndex || turn != before.nextTurnIndex) {
		p.findings = append(p.findings, before.newUnreachedTurnFinding(entry)...)
	}
	s.remainingTurns = p.in.turnsOfRuleFromIndex(rule, turn+1)
}

func (p *playbackTracker) addFinalFindingsAndReturnAll() []Finding {
	for _, s := range p.sessions {
		if s.remainingTurns != nil {
			p.findings = append(p.findings, s.remainingTurns.newUnreachedTurnFinding(journal.Entry{})...)
		}
	}
	for _, s := range p.sessions {
		for _, f := range s.unreachedStepFindings() {
			if p.hasHost { // a host may have interrupted the turn; only a later prompt shows whether it did
				f.Level = levelWarn
			}
			p.findings = append(p.findings, f)
		}
	}
	return p.findings
}

func unplayedStepFinding(e journal.Entry, u *journal.Unplayed) Finding {
	return Finding{
		ID: "S05", Level: levelError, Text: "a step of the script was not reached: " + u.Text, File: u.File, Line: u.Line,
		Advice: "let the program continue until the step runs, or remove the step", Time: e.Time, PID: e.PID,
	}
}

// remainingTurnsOfRule is a rule that still expects some of its turns: turn nextTurnIndex and all later ones.
type remainingTurnsOfRule struct {
	ruleIndex, nextTurnIndex int
	turnPositions            []diag.Position
}

// parseRuleName parses the name of a rule: "responses[2].turns[0]" is rule 2, turn 0. A name without a turn means the
// first response of the rule, and turn is -1. For a rule outside [[responses]], rule is -1.
func parseRuleName(name string) (rule, turn int) {
	name, turns, _ := strings.Cut(name, ".")
	rule, ok := parseIndexAfterPrefix(name, "responses[")
	if !ok {
		return -1, -1
	}
	if turn, ok = parseIndexAfterPrefix(turns, "turns["); !ok {
		turn = -1
	}
	return rule, turn
}

// parseIndexAfterPrefix parses the number in a name such as responses[7], where prefixWithBracket is "responses[".
func parseIndexAfterPrefix(nameWithIndex, prefixWithBracket string) (index int, isValid bool) {
	digits, ok := strings.CutPrefix(strings.TrimSuffix(nameWithIndex, "]"), prefixWithBracket)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil
}

func (in *Input) turnsOfRuleFromIndex(ruleIndex, firstTurnIndex int) *remainingTurnsOfRule {
	if in.Scenario == nil {
		return nil
	}
	turns := in.Scenario.TurnPositions(ruleIndex)
	if firstTurnIndex >= len(turns) {
		return nil
	}
	return &remainingTurnsOfRule{ruleIndex: ruleIndex, nextTurnIndex: firstTurnIndex, turnPositions: turns}
}

// addFindingsOfEndBySignal adds finding S05 for a process that was killed by a signal before the script was finished.
func (l *findingCollector) addFindingsOfEndBySignal(p *journaledProcess) {
	signal, code := p.endSignal()
	if signal == "" || slices.Contains(l.input.Killed, p.PID) || p.start != nil && p.start.Fault != "" {
		return
	}
	rule, what := p.unfinishedRuleMatch(), "it wrote a result"
	if rule != nil {
		what = "all steps of " + rule.Rule + " had run"
	} else if rule = (&journal.Match{}); p.exit != nil || len(p.results) > 0 || l.mayHaveUnrecordedSuccess(p) {
		return
	}
	if s := l.input.Scenario; s != nil && (s.HasExpectationAboutExitCode(code) || s.ScriptsFailureOrFault(rule.Rule)) {
		return
	}
	f := p.withProcessIDAndTime(Finding{
		ID: "S05", Level: levelError, Text: fmt.Sprintf("claude was ended by %s before %s", signal, what),
		Advice: fmt.Sprintf("wait until claude exits, or accept the signal with `[[expect]] exit = %d`", code),
	})
	f.File, f.Line = rule.File, rule.Line
	l.findings = append(l.findings, f)
}

// mayHaveUnrecordedSuccess reports whether a process may have ended well although the journal has no
// result. This holds for a real claude, whose results are not recorded, and for a terminal session, which can be empty.
func (l *findingCollector) mayHaveUnrecordedSuccess(p *journaledProcess) bool {
	if p.setup != nil {
		return p.setup.Interactive
	}
	return p.start.LogCache != "" || slices.ContainsFunc(l.input.Entries, func(e journal.Entry) bool { return e.Request != nil || e.Exchange != nil })
}

// endSignal returns the signal that ended a process, and the exit code. The signal is empty if the process ended
// normally or had no session.
func (p *journaledProcess) endSignal() (signal string, code int) {
	sent := p.firstHostAction("signal")
	switch {
	case p.setup == nil && (p.start == nil || p.exit != nil):
		return "", 0
	case p.exit == nil: // the process was killed, or its journal is cut off
		return "SIGKILL", 137
	case p.exit.Signal != "":
		return p.exit.Signal, p.exit.Code
	case sent != nil && sent.Signal == "SIGINT" && !p.usesControlProtocol:
		return sent.Signal, p.exit.Code
	}
	return "", 0
}

func (p *journaledProcess) unfinishedRuleMatch() *journal.Match {
	var rule *journal.Match
	more := false
	for _, e := range p.entries {
		switch {
		case e.Match != nil && !e.Match.WrittenByCLI && e.Match.Rule != "":
			rule, more = e.Match, true
		case e.Model != nil && e.Model.Agent == "":
			more = e.Model.HasMore
		case e.Result != nil && !strings.HasPrefix(e.Result.TerminalReason, "aborted"):
			rule = nil
		}
	}
	if !more {
		return nil
	}
	return rule
}

func (s *remainingTurnsOfRule) newUnreachedTurnFinding(entry journal.Entry) []Finding {
	return []Finding{withPosition(Finding{
		ID: "S05", Level: levelError, Text: fmt.Sprintf("responses[%d].turns[%d] was not reached", s.ruleIndex, s.nextTurnIndex),
		Advice: "send the prompt of this turn in the same session, or remove the turn", Time: entry.Time, PID: entry.PID,
	}, s.turnPositions[s.nextTurnIndex])}
}

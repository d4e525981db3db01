package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/accept"
	"github.com/claudeless/claudeless/internal/diag"
	"github.com/claudeless/claudeless/internal/journal"
)

// strictness finds set-ups with which a test would be green for a wrong reason.
func strictness(in Input, runs []*process) ([]Finding, []Unmatched) {
	var found []Finding
	var unmatched []Unmatched
	for _, p := range runs {
		found = append(found, p.setUp()...)
		more, prompts := p.prompts()
		found, unmatched = append(found, more...), append(unmatched, prompts...)
		found = append(found, p.calls(in)...)
	}
	more, prompts := unansweredRequests(in)
	found, unmatched = append(found, more...), append(unmatched, prompts...)
	found = append(found, askedAgain(in)...)
	return append(found, unplayed(in)...), unmatched
}

// askedAgain is S02 of rules that answer once: prompts after the first that they have
// answered all the same, because the Messages API knows no runs.
func askedAgain(in Input) []Finding {
	if in.Scenario == nil {
		return nil
	}
	asked := map[string]bool{} // the rules that answer once
	for i := range in.Scenario.Responses {
		if in.Scenario.Responses[i].Once {
			asked[fmt.Sprintf("responses[%d]", i)] = false
		}
	}
	var found []Finding
	for _, e := range in.Entries {
		q := e.Request
		if q == nil || q.Prompt == "" || q.Attempt > 1 {
			continue
		}
		again, once := asked[q.Rule]
		if !once {
			continue
		}
		if again {
			found = append(found, Finding{
				ID: "S02", Level: levelError, Text: "the rule answers one prompt, and there was another: " + quoted(q.Prompt), Advice: "add a rule for it",
				File: q.File, Line: q.Line, Time: e.Time, PID: e.PID,
			})
		}
		asked[q.Rule] = true
	}
	return found
}

// setUp is S01, S07 and S08: what was wrong before the first prompt.
func (p *process) setUp() []Finding {
	var found []Finding
	if p.setup != nil && p.setup.Scenario == "" && p.setup.ScenarioFile == "" {
		found = append(found, p.finding("S01", levelError, "no scenario was given: claude only greeted",
			"name one with -s FILE, --scenario FILE or CLAUDELESS_SCENARIO"))
	}
	if p.start == nil {
		return found
	}
	for _, name := range p.start.Unknown {
		found = append(found, p.finding("S07", levelError, "unknown variable "+name, "the variables are listed in the README"))
	}
	if p.start.Meant != "" {
		found = append(found, p.finding("S08", levelError, fmt.Sprintf("%q was taken for a prompt", p.Argv[1]),
			"did you mean the command "+p.start.Meant+"?"))
	}
	return found
}

// prompts is S02: those that no rule answers.
func (p *process) prompts() ([]Finding, []Unmatched) {
	var found []Finding
	var unmatched []Unmatched
	injected := ""
	for _, e := range p.entries {
		if e.Prompt != nil && e.Prompt.Injected {
			injected = e.Prompt.Prompt
		}
		m := e.Match
		if m == nil || m.Rule != "" || m.Prompt == injected && injected != "" {
			continue
		}
		u := unansweredPrompt(m.Prompt, m.Nearest)
		found = append(found, p.finding("S02", levelError, "no rule matches the prompt "+quoted(m.Prompt), u.advice()))
		unmatched = append(unmatched, u)
	}
	return found, unmatched
}

// unansweredRequests is S02 of the API: prompts that no rule answers.
func unansweredRequests(in Input) ([]Finding, []Unmatched) {
	var found []Finding
	var unmatched []Unmatched
	for _, e := range in.Entries {
		if q := e.Request; q != nil && q.Prompt != "" && q.Rule == "" && q.Status != 0 && q.Status != 401 {
			var nearest []string
			if in.Scenario != nil {
				nearest = in.Scenario.Explain(q.Prompt)
			}
			u := unansweredPrompt(q.Prompt, nearest)
			found = append(found, Finding{ID: "S02", Level: levelError, Text: "no rule matches the prompt " + quoted(q.Prompt), Advice: u.advice(), Time: e.Time, PID: e.PID})
			unmatched = append(unmatched, u)
		}
	}
	return found, unmatched
}

func unansweredPrompt(prompt string, nearest []string) Unmatched {
	if nearest == nil {
		nearest = []string{}
	}
	return Unmatched{Prompt: prompt, Nearest: nearest, Rule: accept.Rule(prompt)}
}

// advice is the nearest rules, and one to paste.
func (u Unmatched) advice() string {
	if len(u.Nearest) == 0 {
		return "add a rule, or a default_response"
	}
	return strings.Join(u.Nearest, "\n") + "\na rule to paste, or to have written by --accept:\n" + u.Rule
}

// calls is S03 and S04: scripted calls that cannot have run.
func (p *process) calls(in Input) []Finding {
	var found []Finding
	denied := map[string]bool{}
	for _, e := range p.entries {
		if d := e.Permission; d != nil && d.Decision == "reject" && d.Source == "config" && d.ReasonType != "rule" && d.ReasonType != "hook" {
			denied[d.ToolUseID] = true
		}
		t := e.Tool
		switch {
		case t == nil:
		case t.Unknown && !in.names(t.Tool):
			found = append(found, p.finding("S03", levelError, "the script calls the tool "+t.Tool+", which does not exist here",
				"check its name and its server; `[[expect]] tool = …` says that it is meant so"))
		case denied[t.ToolUseID] && !in.names(t.Tool):
			found = append(found, p.finding("S04", levelError, "the scripted call of "+t.Tool+" was denied by permission",
				"allow it with --allowedTools, deny it with a rule, or expect it with `[[expect]] tool = …`"))
		}
	}
	return found
}

// names tells whether an expectation speaks of a tool.
func (in *Input) names(tool string) bool { return in.Scenario != nil && in.Scenario.ExpectsTool(tool) }

// unplayed is S05: turns and steps that the run did not come to.
func unplayed(in Input) []Finding {
	var found []Finding
	open := map[string]*sequence{} // by session
	injected := map[string]string{}
	var order []string
	for _, e := range in.Entries {
		switch {
		case e.Unplayed != nil:
			found = append(found, Finding{
				ID: "S05", Level: levelError, Text: "a step of the script was not played: " + e.Unplayed.Text, File: e.Unplayed.File, Line: e.Unplayed.Line,
				Advice: "let the run go on, or take the step out", Time: e.Time, PID: e.PID,
			})
		case e.Prompt != nil && e.Prompt.Injected:
			injected[e.SessionID] = e.Prompt.Prompt
		case e.Match != nil && e.Match.Prompt != injected[e.SessionID]:
			if open[e.SessionID] == nil {
				order = append(order, e.SessionID)
			}
			rule, turn := placeOf(e.Match.Rule)
			if before := open[e.SessionID]; before != nil && (rule != before.rule || turn != before.at) {
				found = append(found, before.missed(e)...)
			}
			open[e.SessionID] = in.sequence(rule, turn+1)
		}
	}
	for _, session := range slices.Compact(order) {
		if s := open[session]; s != nil {
			found = append(found, s.missed(journal.Entry{Head: s.head})...)
		}
	}
	return found
}

// sequence is a rule whose turns are being played.
type sequence struct {
	rule int
	at   int // the next turn
	all  []diag.Position
	head journal.Head
}

// placeOf reads the name of a rule: -1 for a rule that is none of the responses,
// and for the turn of a rule's own response.
func placeOf(name string) (rule, turn int) {
	if n, _ := fmt.Sscanf(name, "responses[%d].turns[%d]", &rule, &turn); n == 2 {
		return rule, turn
	}
	if n, _ := fmt.Sscanf(name, "responses[%d]", &rule); n == 1 {
		return rule, -1
	}
	return -1, -1
}

// sequence is what is still to come of a rule's turns; nil = nothing.
func (in *Input) sequence(rule, at int) *sequence {
	if in.Scenario == nil {
		return nil
	}
	turns := in.Scenario.Turns(rule)
	if at >= len(turns) {
		return nil
	}
	return &sequence{rule: rule, at: at, all: turns}
}

// missed are the turns that were still to come.
func (s *sequence) missed(e journal.Entry) []Finding {
	if s.at >= len(s.all) {
		return nil
	}
	return []Finding{placed(Finding{
		ID: "S05", Level: levelError, Text: fmt.Sprintf("responses[%d].turns[%d] was not played", s.rule, s.at),
		Advice: "send the prompt that it expects, in the same session, or take it out", Time: e.Time, PID: e.PID,
	}, s.all[s.at])}
}

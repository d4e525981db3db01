package verdict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/accept"
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
	found = append(found, requestedCalls(in)...)
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
				File: q.File, Line: q.Line, Time: e.Time,
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
	for _, e := range p.entries {
		m := e.Match
		if m == nil || m.Rule != "" || m.Injected {
			continue
		}
		u := unansweredPrompt(m.Prompt, m.Nearest)
		found = append(found, u.near(p.finding("S02", levelError, "no rule matches the prompt "+quoted(m.Prompt), u.advice())))
		unmatched = append(unmatched, u)
	}
	return found, unmatched
}

// unansweredRequests is S02 of the API: prompts that no rule answers.
func unansweredRequests(in Input) ([]Finding, []Unmatched) {
	var found []Finding
	var unmatched []Unmatched
	for _, e := range in.Entries {
		if q := e.Request; q != nil && q.Prompt != "" && !q.Injected && q.Rule == "" && q.Status != 0 && q.Status != 401 {
			var nearest []string
			if in.Scenario != nil {
				nearest = in.Scenario.Explain(q.Prompt)
			}
			u := unansweredPrompt(q.Prompt, nearest)
			found = append(found, u.near(Finding{ID: "S02", Level: levelError, Text: "no rule matches the prompt " + quoted(q.Prompt), Advice: u.advice(), Time: e.Time}))
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
	nearest := u.Nearest
	if strings.HasPrefix(nearest[0], "no rule of the scenario matches ") { // as the finding says
		nearest = nearest[1:]
	}
	return strings.Join(append(slices.Clone(nearest), "a rule to paste, or to have written by --accept:", u.Rule), "\n")
}

// near gives a finding the place of the nearest rule, which is what has to change.
func (u Unmatched) near(f Finding) Finding {
	for _, text := range u.Nearest {
		head, _, ok := strings.Cut(text, ": responses[")
		colon := strings.LastIndex(head, ":")
		if !ok || colon < 0 {
			continue
		}
		if line, err := strconv.Atoi(head[colon+1:]); err == nil {
			f.File, f.Line = head[:colon], line
			return f
		}
	}
	return f
}

// calls is S03 and S04: scripted calls that cannot have run.
func (p *process) calls(in Input) []Finding {
	var found []Finding
	denied := map[string]bool{}
	var rule journal.Match // that answered last
	add := func(f Finding) {
		f.File, f.Line = rule.File, rule.Line
		found = append(found, p.seen(f))
	}
	for _, e := range p.entries {
		if e.Match != nil {
			rule = *e.Match
		}
		if d := e.Permission; d != nil && d.Decision == "reject" && d.Source == "config" && d.ReasonType != "rule" && d.ReasonType != "hook" {
			denied[d.ToolUseID] = true
		}
		t := e.Tool
		switch {
		case t == nil:
		case t.Unknown && !in.names(t.Tool):
			add(noSuchTool(t.Tool))
		case denied[t.ToolUseID] && !in.names(t.Tool):
			add(notAllowed(t.Tool))
		}
	}
	return found
}

// requestedCalls is S03 and S04 of the API: calls that its clients cannot have run.
func requestedCalls(in Input) []Finding {
	var found []Finding
	add := func(e journal.Entry, word func(string) Finding, tool string) {
		f := word(tool)
		f.File, f.Line, f.Time = e.Request.File, e.Request.Line, e.Time
		if !in.names(tool) && !slices.ContainsFunc(found, func(g Finding) bool { return g.ID == f.ID && g.Text == f.Text }) {
			found = append(found, f)
		}
	}
	for _, e := range in.Entries {
		if e.Request == nil {
			continue
		}
		for _, tool := range e.Request.NotOffered {
			add(e, noSuchTool, tool)
		}
		for _, c := range e.Request.Calls {
			switch {
			case absent(c):
				add(e, noSuchTool, c.Tool)
			case denied(c):
				add(e, notAllowed, c.Tool)
			}
		}
	}
	return found
}

func noSuchTool(name string) Finding {
	return Finding{
		ID: "S03", Level: levelError, Text: "the script calls the tool " + name + ", which does not exist here",
		Advice: "check its name and its server; `[[expect]] tool = …` says that it is meant so",
	}
}

func notAllowed(tool string) Finding {
	return Finding{
		ID: "S04", Level: levelError, Text: "the scripted call of " + tool + " was denied by permission",
		Advice: "allow it with --allowedTools, deny it with a rule, or expect it with `[[expect]] tool = …`",
	}
}

// names tells whether an expectation speaks of a tool.
func (in *Input) names(tool string) bool { return in.Scenario != nil && in.Scenario.ExpectsTool(tool) }

package scenarios

import (
	"cmp"
	"fmt"
)

// nearestRules is the number of rules that [Engine.Explain] lists.
const nearestRules = 3

// Explain returns lines that explain why no rule matches a prompt: a summary, the expected turn if a sequence is
// active, then the nearest rules, best first, each with its position, the reason, and where its pattern stopped
// matching.
func (e *Engine) Explain(r Request) []string { return e.explain(r.Prompt, nearestRules) }

// ExplainAll is [Engine.Explain] with all rules of the scenario.
func (e *Engine) ExplainAll(r Request) []string { return e.explain(r.Prompt, len(e.s.Responses)) }

func (e *Engine) explain(prompt string, most int) []string {
	lines := []string{"no rule of the scenario matches the prompt " + e.s.excerpts.clip(prompt)}
	if at := cmp.Or(e.active, e.endedSequence); at != nil && at.next < len(e.s.Responses[at.rule].Turns) {
		turn := &e.s.Responses[at.rule].Turns[at.next]
		why := e.s.excerpts.explainMiss(turn.match, prompt)
		if _, ok := turn.match.Match(prompt); ok {
			why = fmt.Sprintf("it matches, but its condition %q is false", turn.When)
		}
		lines = append(lines, fmt.Sprintf("%s was expected next (%s): %s", e.ref(at.rule, at.next), turn.Expect.String(), why))
	}
	if len(e.s.Responses) == 0 {
		return append(lines, "the scenario has no [[responses]]")
	}
	for i, rule := range rankRules(e.s.Responses, prompt) {
		if i == most {
			return append(lines, fmt.Sprintf("and %d more", len(e.s.Responses)-most))
		}
		lines = append(lines, fmt.Sprintf("%s (%s): %s", e.ref(rule, -1), e.s.Responses[rule].Pattern.String(), e.why(rule, prompt)))
	}
	return lines
}

// why says why a rule did not answer.
func (e *Engine) why(i int, prompt string) string {
	rule := &e.s.Responses[i]
	_, ok := rule.match.Match(prompt)
	switch {
	case !ok:
		return e.s.excerpts.explainMiss(rule.match, prompt)
	case rule.MaxMatches != nil && e.counts[i] >= *rule.MaxMatches:
		return fmt.Sprintf("it matches, but its max_matches = %d is used up", *rule.MaxMatches)
	case rule.Once && e.counts[i] > 0:
		return "it matches, but it answers once"
	case rule.Once && e.o.Claims != nil:
		return "it matches, but it answers once in a run"
	case rule.MaxMatches != nil && e.o.Claims != nil:
		return fmt.Sprintf("it matches, but its max_matches = %d is used up in the run", *rule.MaxMatches)
	case rule.When != "":
		return fmt.Sprintf("it matches, but its condition %q is false", rule.When)
	}
	return "it matches"
}

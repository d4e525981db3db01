package scenarios

import (
	"cmp"
	"fmt"
)

const maxNearestRules = 3

// ExplainNearMisses returns lines that explain why no rule matches a prompt. The first line is a summary. If a
// turn of a sequence was expected, the next line is about this turn. The other lines are about the most similar
// rules: each contains the position of the rule, the reason, and the place up to which its pattern matched.
func (e *Engine) ExplainNearMisses(r Request) []string {
	return e.explainMisses(r.Prompt, maxNearestRules)
}

// ExplainMissesOfAllRules is like [Engine.ExplainNearMisses] but lists all rules of the scenario.
func (e *Engine) ExplainMissesOfAllRules(r Request) []string {
	return e.explainMisses(r.Prompt, len(e.scenario.Responses))
}

func (e *Engine) explainMisses(prompt string, limit int) []string {
	lines := []string{"no rule of the scenario matches the prompt " + e.scenario.excerpts.redactAndQuoteShortened(prompt)}
	if at := cmp.Or(e.activeSequence, e.endedSequence); at != nil && at.nextTurn < len(e.scenario.Responses[at.rule].Turns) {
		turn := &e.scenario.Responses[at.rule].Turns[at.nextTurn]
		why := e.scenario.excerpts.explainMiss(turn.match, prompt)
		if _, ok := turn.match.Match(prompt); ok {
			why = fmt.Sprintf("it matches, but its condition %q is false", turn.When)
		}
		lines = append(lines, fmt.Sprintf("%s was expected next (%s): %s", e.ruleRef(at.rule, at.nextTurn), turn.Expect.String(), why))
	}
	if len(e.scenario.Responses) == 0 {
		return append(lines, "the scenario has no [[responses]]")
	}
	for i, rule := range rankRulesBySimilarity(e.scenario.Responses, prompt) {
		if i == limit {
			return append(lines, fmt.Sprintf("and %d more", len(e.scenario.Responses)-limit))
		}
		lines = append(lines, fmt.Sprintf("%s (%s): %s", e.ruleRef(rule, -1), e.scenario.Responses[rule].Pattern.String(), e.explainMissOfRule(rule, prompt)))
	}
	return lines
}

func (e *Engine) explainMissOfRule(i int, prompt string) string {
	rule := &e.scenario.Responses[i]
	_, ok := rule.match.Match(prompt)
	switch {
	case !ok:
		return e.scenario.excerpts.explainMiss(rule.match, prompt)
	case rule.MaxMatches != nil && e.matchCounts[i] >= *rule.MaxMatches:
		return fmt.Sprintf("it matches, but its max_matches = %d is used up", *rule.MaxMatches)
	case rule.Once && e.matchCounts[i] > 0:
		return "it matches, but has already answered (once = true)"
	case rule.Once && e.options.Counter != nil:
		return "it matches, but has already answered in this run (once = true)"
	case rule.MaxMatches != nil && e.options.Counter != nil:
		return fmt.Sprintf("it matches, but its max_matches = %d is used up in the run", *rule.MaxMatches)
	case rule.When != "":
		return fmt.Sprintf("it matches, but its condition %q is false", rule.When)
	}
	return "it matches"
}

package scenarios

import (
	"maps"
	"slices"
)

// Claims counts the matches of rules with `once` or `max_matches` over a run.
type Claims interface {
	// Next claims, permanently, the next match of a rule that nobody has claimed,
	// and returns its number, which is higher than after: that of the matches in
	// the session. The rule is given by its name and position.
	Next(rule string, after int) (int, error)
}

// usedUp reports whether a rule that has answered count times in a session may not
// answer again.
func (r *Rule) usedUp(count int) bool {
	limit := r.limit()
	return limit >= 0 && count >= limit
}

// limit returns how many prompts a rule may answer; negative = any number.
func (r *Rule) limit() int {
	switch {
	case r.Once:
		return 1
	case r.MaxMatches != nil:
		return *r.MaxMatches
	}
	return -1
}

// claim claims a match of a rule that may answer a limited number of prompts in a run.
func (e *Engine) claim(r Request, rule int) (bool, error) {
	claims := e.o.Claims
	if r.Claims != nil {
		claims = r.Claims
	}
	limit := e.s.Responses[rule].limit()
	if limit < 0 || claims == nil {
		return true, nil
	}
	n, err := claims.Next(e.ref(rule, -1).String(), e.counts[rule])
	return n <= limit, err
}

// maxOwnRounds is how many texts of the CLI a rule without a limit answers before the
// user sends the next prompt.
const maxOwnRounds = 20

// isEndless counts the texts of the CLI that a rule answers with tool calls, and reports
// whether the rule goes on answering them: the calls cause the next text. A rule with a
// limit of its own is never endless.
func (e *Engine) isEndless(r Request, h *matchedRule) bool {
	if !r.Notification || h.ref.Name == "" || h.rule >= 0 && (e.s.Responses[h.rule].Once || e.s.Responses[h.rule].MaxMatches != nil) {
		return false
	}
	if !slices.ContainsFunc(stepsOf(h.response), func(s Step) bool { return len(s.ToolCalls) > 0 || len(s.Blocks) > 0 }) {
		return false
	}
	rounds := maps.Clone(e.ownRounds)
	if rounds == nil {
		rounds = map[int]int{}
	}
	rounds[h.rule]++
	e.ownRounds = rounds
	return rounds[h.rule] > maxOwnRounds
}

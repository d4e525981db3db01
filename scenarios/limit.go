package scenarios

// RuleCounter counts the matches of rules with `once` or `max_matches` over a run.
type RuleCounter interface {
	// Next permanently reserves the next match of a rule, which is identified by its name and position, and returns
	// its number. The number is greater than after, the number of matches in the session.
	Next(rule string, after int) (int, error)
}

// isUsedUp reports whether a rule that has answered count times in a session must not answer again.
func (r *Rule) isUsedUp(count int) bool {
	limit := r.limit()
	return limit >= 0 && count >= limit
}

// limit returns how many prompts a rule may answer; negative means any number.
func (r *Rule) limit() int {
	switch {
	case r.Once:
		return 1
	case r.MaxMatches != nil:
		return *r.MaxMatches
	}
	return -1
}

// maxConsecutiveNotices is how many prompts of the CLI itself a rule without a limit may answer before the user's
// next prompt.
const maxConsecutiveNotices = 20

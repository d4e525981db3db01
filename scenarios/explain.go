package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/diag"
)

// nearest is how many rules [Engine.Explain] names.
const nearest = 3

// Explain says why no rule matches a prompt: one line that says so, then the
// nearest rules, the best first, each with its place and the reason.
func (e *Engine) Explain(r Request) []string {
	lines := []string{"no rule of the scenario matches the prompt " + clip(r.Prompt)}
	if len(e.s.Responses) == 0 {
		return append(lines, "the scenario has no [[responses]]")
	}
	type miss struct{ rule, score int }
	words := wordsOf(r.Prompt)
	misses := make([]miss, 0, len(e.s.Responses))
	for i := range e.s.Responses {
		misses = append(misses, miss{rule: i, score: e.nearness(&e.s.Responses[i], r.Prompt, words)})
	}
	slices.SortStableFunc(misses, func(a, b miss) int { return cmp.Compare(b.score, a.score) })
	for _, m := range misses[:min(nearest, len(misses))] {
		ref := e.ref(m.rule, -1)
		at := ref.Name
		if ref.Line > 0 {
			at = ref.File + ":" + strconv.Itoa(ref.Line) + ": " + ref.Name
		}
		rule := &e.s.Responses[m.rule]
		lines = append(lines, fmt.Sprintf("%s (%s): %s", at, rule.Pattern.String(), e.why(m.rule, r.Prompt)))
	}
	if more := len(misses) - nearest; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

// Unplayed says which step of the response to the last prompt is still to come,
// and where it stands; ok is false when there is none, or when the script itself
// ended it by a failure.
func (e *Engine) Unplayed(ctx context.Context) (text string, at diag.Position, ok bool) {
	r := e.running
	if r == nil || r.failed || r.hit.failure != nil || r.hit.ref.Name == "" {
		return "", diag.Position{}, false
	}
	if more, err := r.more(ctx); err != nil || !more {
		return "", diag.Position{}, false
	}
	at = diag.Position{File: r.hit.ref.File, Line: r.hit.ref.Line}
	if r.at >= len(r.steps) {
		return r.hit.ref.Name + ": the message after the last results", at, true
	}
	if r.hit.response != nil && len(r.hit.response.Steps) > 0 && r.hit.rule >= 0 {
		rule := &e.s.Responses[r.hit.rule]
		path := diag.Path{"responses", rule.index}
		if r.hit.turn >= 0 {
			path = append(path, "turns", r.hit.turn)
		}
		at = rule.source.ix.Pos(append(path, "response", "steps", r.at))
	}
	return fmt.Sprintf("%s: step %d of %d", r.hit.ref.Name, r.at+1, len(r.steps)), at, true
}

// why is the reason that a rule did not answer.
func (e *Engine) why(i int, prompt string) string {
	rule := &e.s.Responses[i]
	_, ok := rule.match.Match(prompt)
	switch {
	case !ok:
		return rule.match.Explain(prompt)
	case rule.MaxMatches != nil && e.counts[i] >= *rule.MaxMatches:
		return fmt.Sprintf("it matches, but its max_matches = %d is used up", *rule.MaxMatches)
	case rule.When != "":
		return fmt.Sprintf("it matches, but its condition %q is false", rule.When)
	}
	return "it matches"
}

// nearness counts what speaks for a rule: that its pattern matches, then the
// words it shares with the prompt.
func (e *Engine) nearness(r *Rule, prompt string, words map[string]bool) int {
	const matches = 1 << 20
	if _, ok := r.match.Match(prompt); ok {
		return matches
	}
	score := 0
	for word := range wordsOf(r.Pattern.String()) {
		if words[word] {
			score += len(word)
		}
	}
	return score
}

func wordsOf(s string) map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r < 0x80 && !isWord(byte(r)) }) {
		words[w] = true
	}
	return words
}

// String writes the pattern as it is shown to people: contains "x".
func (p *Pattern) String() string {
	switch p.Type {
	case PatternExact, PatternContains:
		return fmt.Sprintf("%s %q", p.Type, p.Text)
	case PatternRegex, PatternGlob:
		return fmt.Sprintf("%s %q", p.Type, p.Pattern)
	case PatternNot:
		return fmt.Sprintf("not (%s)", p.Not)
	case PatternAll, PatternAnyOf:
		parts := make([]string, len(p.Patterns))
		for i := range p.Patterns {
			parts[i] = p.Patterns[i].String()
		}
		return fmt.Sprintf("%s (%s)", p.Type, strings.Join(parts, ", "))
	default:
		return string(p.Type)
	}
}

package scenarios

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// randomRules generates many rules over few words: nested patterns of all types, some with conditions and some with a
// limit.
func randomRules(r *rand.Rand) []Rule {
	words := []string{"fix", "the", "test", "bug 7", "é", "a", "", "in main.go", "fix the"}
	word := func() string { return words[r.IntN(len(words))] }
	var pattern func(depth int) Pattern
	pattern = func(depth int) Pattern {
		parts := func() []Pattern {
			all := make([]Pattern, 1+r.IntN(3))
			for i := range all {
				all[i] = pattern(depth - 1)
			}
			return all
		}
		kind := r.IntN(9)
		if depth == 0 {
			kind = r.IntN(5)
		}
		switch kind {
		case 0:
			return Pattern{Type: PatternExact, Text: word() + " " + word()}
		case 1:
			return Pattern{Type: PatternContains, Text: word()}
		case 2:
			return Pattern{Type: PatternRegex, Pattern: words[r.IntN(5)] + []string{`.*`, `(?P<g>\w+)`, `+`, `?`, `|`, `(?i)`, `[ab]`}[r.IntN(7)] + word()}
		case 3:
			return Pattern{Type: PatternGlob, Pattern: word() + []string{"*", "?", "[ab]*"}[r.IntN(3)] + word()}
		case 4:
			return Pattern{Type: PatternExact, Text: fmt.Sprintf("rule %d", r.IntN(500))}
		case 5:
			return Pattern{Type: PatternAll, Patterns: parts()}
		case 6:
			return Pattern{Type: PatternAnyOf, Patterns: parts()}
		default:
			not := pattern(depth - 1)
			return Pattern{Type: PatternNot, Not: &not}
		}
	}
	rules := make([]Rule, maxRulesTriedWithoutIndex+1+r.IntN(200))
	for i := range rules {
		once, few := r.IntN(8) == 0, r.IntN(3)
		rules[i] = Rule{Pattern: pattern(2), Response: &Response{Text: fmt.Sprint(i)}, Once: once}
		if !once {
			rules[i].MaxMatches = &few
		}
		if r.IntN(6) == 0 {
			rules[i].When = `turn % 2 == 0`
		}
		if r.IntN(9) == 0 {
			rules[i].Turns = []Turn{{Expect: pattern(1), Response: &Response{Text: "turn"}}}
		}
	}
	return rules
}

// TestIndexedRules checks that, after any history, the index finds the same rule as a search of all rules in order.
func TestIndexedRules(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	words := []string{"fix", "the", "test", "bug 7", "é", "a", "b", "in main.go", "rule 7", "\xff"}
	for range 60 {
		s := &Scenario{Responses: randomRules(r)}
		if err := s.Compile(); err != nil {
			t.Fatal(err)
		}
		plain := *s
		plain.rules = nil
		indexed, linear := NewEngine(s, EngineOptions{}), NewEngine(&plain, EngineOptions{})
		answered := 0
		for range 80 {
			request := Request{IsInjected: r.IntN(5) == 0}
			request.IsNotification = request.IsInjected && r.IntN(2) == 0
			for range 1 + r.IntN(4) {
				request.Prompt += words[r.IntN(len(words))] + []string{"", " "}[r.IntN(2)]
			}
			got, err := indexed.Next(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			want, err := linear.Next(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%q: %s", request.Prompt, diff)
			}
			if !got.IsUnmatched {
				answered++
			}
		}
		if answered == 0 || s.rules.index == nil {
			t.Errorf("%d answers, index %v", answered, s.rules.index)
		}
	}
}

package lint

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/scenarios"
)

// shadows finds rules that an earlier one never lets answer. Only rules that
// always answer what they match hide others: those without a condition and
// without a number of matches.
type shadows struct {
	rules []scenarios.Rule
	any   int            // the first that matches everything; len(rules) = none
	same  map[string]int // the first of each pattern
	parts trie           // of texts that `contains` looks for
	wide  []wideRule     // the first few of other patterns
	pairs int            // comparisons that may still be made
}

type wideRule struct {
	rule int
	text match.Text
}

// The bounds keep big files quick: what is beyond them is passed over.
const (
	mostWide  = 200
	mostPairs = 20_000
)

func newShadows(rules []scenarios.Rule) *shadows {
	s := &shadows{rules: rules, any: len(rules), same: make(map[string]int, len(rules)), parts: trie{next: map[edge]int{}, rules: map[int]int{}}, pairs: mostPairs}
	for i := range rules {
		r := &rules[i]
		if r.When != "" || r.MaxMatches != nil || r.Once {
			continue
		}
		if all(&r.Pattern) && i < s.any {
			s.any = i
		}
		key := r.Pattern.String()
		if _, ok := s.same[key]; !ok {
			s.same[key] = i
		}
		switch r.Pattern.Type {
		case scenarios.PatternContains:
			s.parts.add(r.Pattern.Text, i)
		case scenarios.PatternRegex, scenarios.PatternGlob:
			if len(s.wide) < mostWide {
				s.wide = append(s.wide, wideRule{i, r.Matcher()})
			}
		default:
		}
	}
	return s
}

// of returns the rule that hides another one, and how; "" = none does.
func (s *shadows) of(i int) (by int, how string) {
	p := &s.rules[i].Pattern
	if s.any < i {
		return s.any, "matches every prompt"
	}
	if first, ok := s.same[p.String()]; ok && first < i {
		return first, "has the same pattern"
	}
	if p.Type != scenarios.PatternExact && p.Type != scenarios.PatternContains {
		return 0, ""
	}
	if by, ok := s.parts.inside(p.Text, i); ok {
		return by, "matches all that this one does"
	}
	if p.Type != scenarios.PatternExact {
		return 0, ""
	}
	for _, w := range s.wide {
		if s.pairs--; w.rule >= i || s.pairs < 0 {
			break
		}
		if _, ok := w.text.Match(p.Text); ok {
			return w.rule, "matches all that this one does"
		}
	}
	return 0, ""
}

// all tells whether a pattern matches every text for certain.
func all(p *scenarios.Pattern) bool {
	switch p.Type {
	case scenarios.PatternAny:
		return true
	case scenarios.PatternContains:
		return p.Text == ""
	case scenarios.PatternRegex:
		return anywhere(p.Pattern)
	case scenarios.PatternAnyOf:
		for i := range p.Patterns {
			if all(&p.Patterns[i]) {
				return true
			}
		}
		return false
	case scenarios.PatternAll:
		for i := range p.Patterns {
			if !all(&p.Patterns[i]) {
				return false
			}
		}
		return len(p.Patterns) > 0
	default:
		return false
	}
}

// anywhere tells whether a regular expression is found in every text: it can be
// empty and says nothing of where it stands.
func anywhere(src string) bool {
	if len(src) > 64 || !strings.ContainsAny(src, "*?|") && src != "" {
		return false
	}
	tree, err := syntax.Parse(src, syntax.Perl)
	return err == nil && optional(tree)
}

func optional(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpStar, syntax.OpQuest, syntax.OpEmptyMatch:
		return true
	case syntax.OpRepeat:
		return re.Min == 0 || optional(re.Sub[0])
	case syntax.OpCapture, syntax.OpPlus:
		return optional(re.Sub[0])
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, optional)
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !optional(sub) })
	default:
		return false
	}
}

// captures counts the groups of a regular expression; -1 = it has an error.
func captures(src string) int {
	re, err := regexp.Compile(src)
	if err != nil {
		return -1
	}
	return re.NumSubexp()
}

// trie holds texts by their bytes, each with the first rule that has it.
type trie struct {
	next  map[edge]int // → node
	rules map[int]int  // of the texts that end at a node
}

// edge leaves a node with a byte.
type edge struct {
	node int
	by   byte
}

func (t trie) add(text string, rule int) {
	node := 0
	for i := range len(text) {
		key := edge{node, text[i]}
		to, ok := t.next[key]
		if !ok {
			to = len(t.next) + 1
			t.next[key] = to
		}
		node = to
	}
	if _, ok := t.rules[node]; !ok {
		t.rules[node] = rule
	}
}

// inside finds a text of a rule before the given one that is a part of text.
func (t trie) inside(text string, before int) (rule int, ok bool) {
	for start := range len(text) {
		node := 0
		for i := start; i < len(text); i++ {
			to, found := t.next[edge{node, text[i]}]
			if !found {
				break
			}
			if rule, found := t.rules[to]; found && rule < before {
				return rule, true
			}
			node = to
		}
	}
	return 0, false
}

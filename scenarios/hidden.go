package scenarios

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// shadowedRuleFinder finds rules that never answer because an earlier rule answers all their prompts. Such an earlier rule has
// no condition and no limit of matches.
type shadowedRuleFinder struct {
	rules         []Rule
	firstCatchAll int            // index of the first rule that matches every text; len(rules) means none
	byPattern     map[string]int // text of a pattern → index of the first rule with this pattern
	substrings    trie           // texts of `contains` patterns
	otherPatterns []int          // indexes of the first rules with regex or glob patterns; later ones are not checked
	comparisons   int            // number of comparisons that may still be made
}

// These limits keep the check of large files fast. Rules beyond them are not checked.
const (
	maxRegexAndGlobRulesComparedForShadowing = 200
	maxPatternComparisons                    = 20_000
)

func newShadowedRuleFinder(rules []Rule) *shadowedRuleFinder {
	s := &shadowedRuleFinder{rules: rules, firstCatchAll: len(rules), byPattern: make(map[string]int, len(rules)), substrings: trie{children: map[trieEdge]int{}, rules: map[int]int{}}, comparisons: maxPatternComparisons}
	for i := range rules {
		r := &rules[i]
		if r.Source == "notification" || r.When != "" || r.MaxMatches != nil || r.Once {
			continue
		}
		if isCertainToMatchEveryText(&r.Pattern) && i < s.firstCatchAll {
			s.firstCatchAll = i
		}
		key := r.Pattern.String()
		if _, ok := s.byPattern[key]; !ok {
			s.byPattern[key] = i
		}
		switch r.Pattern.Type {
		case PatternContains:
			s.substrings.addString(r.Pattern.Text, i)
		case PatternRegex, PatternGlob:
			if len(s.otherPatterns) < maxRegexAndGlobRulesComparedForShadowing {
				s.otherPatterns = append(s.otherPatterns, i)
			}
		default:
		}
	}
	return s
}

// findShadowingRule returns the rule that hides rule i and the reason. The reason is "" if no rule hides it.
func (s *shadowedRuleFinder) findShadowingRule(i int) (by int, reason string) {
	p := &s.rules[i].Pattern
	// It is possible that an earlier rule answers no notifications, so it does not certainly hide this rule.
	if s.rules[i].AnswersNotifications() {
		return 0, ""
	}
	if s.firstCatchAll < i {
		return s.firstCatchAll, "matches every prompt"
	}
	if first, ok := s.byPattern[p.String()]; ok && first < i {
		return first, "has the same pattern"
	}
	if p.Type != PatternExact && p.Type != PatternContains {
		return 0, ""
	}
	if by, ok := s.substrings.findAnySubstring(p.Text, i); ok {
		return by, "matches everything that this rule matches"
	}
	if p.Type != PatternExact {
		return 0, ""
	}
	for _, by := range s.otherPatterns {
		if s.comparisons--; by >= i || s.comparisons < 0 {
			break
		}
		if _, ok := s.rules[by].match.Match(p.Text); ok {
			return by, "matches everything that this rule matches"
		}
	}
	return 0, ""
}

// isCertainToMatchEveryText returns true only if a pattern certainly matches every text. False means that this is not certain.
func isCertainToMatchEveryText(p *Pattern) bool {
	switch p.Type {
	case PatternAny:
		return true
	case PatternContains:
		return p.Text == ""
	case PatternRegex:
		return isRegexCertainToMatchEveryText(p.Pattern)
	case PatternAnyOf:
		return slices.ContainsFunc(p.Patterns, func(part Pattern) bool { return isCertainToMatchEveryText(&part) })
	case PatternAll:
		return len(p.Patterns) > 0 && !slices.ContainsFunc(p.Patterns, func(part Pattern) bool { return !isCertainToMatchEveryText(&part) })
	default:
		return false
	}
}

// isRegexCertainToMatchEveryText reports whether a regular expression certainly matches every text: it has no anchors and matches "".
func isRegexCertainToMatchEveryText(regexSource string) bool {
	if len(regexSource) > 64 || !strings.ContainsAny(regexSource, "*?|") && regexSource != "" {
		return false
	}
	tree, err := syntax.Parse(regexSource, syntax.Perl)
	return err == nil && canBeEmpty(tree)
}

func canBeEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpStar, syntax.OpQuest, syntax.OpEmptyMatch:
		return true
	case syntax.OpRepeat:
		return re.Min == 0 || canBeEmpty(re.Sub[0])
	case syntax.OpCapture, syntax.OpPlus:
		return canBeEmpty(re.Sub[0])
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, canBeEmpty)
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !canBeEmpty(sub) })
	default:
		return false
	}
}

// trie contains strings, each with the first rule that was added for it.
type trie struct {
	children map[trieEdge]int
	rules    map[int]int // rule of the string that ends at a node
}

type trieEdge struct {
	node int
	char byte
}

func (t trie) addString(text string, rule int) {
	node := 0
	for i := range len(text) {
		key := trieEdge{node, text[i]}
		to, ok := t.children[key]
		if !ok {
			to = len(t.children) + 1
			t.children[key] = to
		}
		node = to
	}
	if _, ok := t.rules[node]; !ok {
		t.rules[node] = rule
	}
}

// findAnySubstring returns the rule of the first trie string that occurs in text. It ignores rules whose index is not less than before.
func (t trie) findAnySubstring(text string, before int) (rule int, ok bool) {
	for start := range len(text) {
		node := 0
		for i := start; i < len(text); i++ {
			to, found := t.children[trieEdge{node, text[i]}]
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

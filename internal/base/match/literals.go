package match

import (
	"strings"
	"unicode/utf8"
)

// literalMatcher is a matcher that knows which literals a matching text contains.
type literalMatcher interface {
	// requiredLiterals returns literals of which a matching text contains at least one; nil means unknown.
	requiredLiterals() []string
}

func (t Pattern) requiredLiterals() []string {
	if l, ok := t.m.(literalMatcher); ok {
		return l.requiredLiterals()
	}
	return nil
}

func literalList(literal string) []string {
	if literal == "" {
		return nil
	}
	return []string{literal}
}

func (e exactMatcher) requiredLiterals() []string    { return literalList(string(e)) }
func (c containsMatcher) requiredLiterals() []string { return literalList(string(c)) }
func (r *regex) requiredLiterals() []string          { return literalList(r.literal) }
func (g glob) requiredLiterals() []string            { return literalList(g.longestLiteral()) }

// requiredLiterals returns the literals of one part. It chooses the part whose shortest literal is the longest.
func (a allMatcher) requiredLiterals() (best []string) {
	for _, part := range a {
		if n := part.requiredLiterals(); shortestLength(n) > shortestLength(best) {
			best = n
		}
	}
	return best
}

func shortestLength(literals []string) int {
	if len(literals) == 0 {
		return 0
	}
	least := len(literals[0])
	for _, l := range literals {
		least = min(least, len(l))
	}
	return least
}

// requiredLiterals returns the literals of all parts, if every part has some.
func (a anyOfMatcher) requiredLiterals() (each []string) {
	for _, part := range a {
		n := part.requiredLiterals()
		if n == nil {
			return nil
		}
		each = append(each, n...)
	}
	return each
}

// longestLiteral returns the longest text that every match of the glob contains.
func (g glob) longestLiteral() (longest string) {
	run := 0 // start of a run of plain characters
	take := func(end int) {
		if end-run > len(longest) {
			longest = g.pattern[run:end]
		}
	}
	for at := 0; at < len(g.pattern); {
		r, size := utf8.DecodeRuneInString(g.pattern[at:])
		next := at + size
		switch {
		case strings.HasPrefix(g.pattern[at:], "**/"): // may match an empty text, including the slash
			next = at + len("**/")
		case r == '[':
			next = at + classEnd(g.pattern[at:]) + 1
		case r == '*', r == '?', r == utf8.RuneError && size == 1: // also matches any invalid byte
		default:
			at = next
			continue
		}
		take(at)
		at, run = next, next
	}
	take(len(g.pattern))
	return longest
}

package match

import (
	"strings"
	"unicode/utf8"
)

// literals is a matcher that knows what every text that it matches has in it.
type literals interface {
	// needs are literals of which a matching text has at least one; nil = not
	// known.
	needs() []string
}

// needs are literals of which a matching text has at least one; nil = not known.
func (t Text) needs() []string {
	if l, ok := t.m.(literals); ok {
		return l.needs()
	}
	return nil
}

func one(literal string) []string {
	if literal == "" {
		return nil
	}
	return []string{literal}
}

func (e exact) needs() []string    { return one(string(e)) }
func (c contains) needs() []string { return one(string(c)) }
func (r *regex) needs() []string   { return one(r.literal) }
func (g glob) needs() []string     { return one(g.literal()) }

// needs are those of the part whose shortest literal is the longest.
func (a all) needs() (best []string) {
	for _, part := range a {
		if n := part.needs(); shortest(n) > shortest(best) {
			best = n
		}
	}
	return best
}

func shortest(literals []string) int {
	if len(literals) == 0 {
		return 0
	}
	least := len(literals[0])
	for _, l := range literals {
		least = min(least, len(l))
	}
	return least
}

// needs are those of all parts, if each has some.
func (a anyOf) needs() (each []string) {
	for _, part := range a {
		n := part.needs()
		if n == nil {
			return nil
		}
		each = append(each, n...)
	}
	return each
}

// literal is the longest text that whatever fits the glob has in it.
func (g glob) literal() (longest string) {
	run := 0 // where a run of plain characters began
	take := func(end int) {
		if end-run > len(longest) {
			longest = g.pattern[run:end]
		}
	}
	for at := 0; at < len(g.pattern); {
		r, size := utf8.DecodeRuneInString(g.pattern[at:])
		next := at + size
		switch {
		case strings.HasPrefix(g.pattern[at:], "**/"): // may stand for nothing, slash and all
			next = at + len("**/")
		case r == '[':
			next = at + classEnd(g.pattern[at:]) + 1
		case r == '*', r == '?', r == utf8.RuneError && size == 1: // fits any broken byte
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

package match

import (
	"regexp"
	"slices"
	"unicode/utf8"
)

// Miss says how far a pattern came in a text that it does not match.
type Miss struct {
	// At is where in the text, in bytes, it stopped: what is before fits.
	At int
	// Want is the part of the pattern that should have come there; empty = the
	// pattern is at its end and the text is not.
	Want string
	// Pattern is the whole pattern; Want is its end.
	Pattern string
}

// Miss says where a text that does not match stops doing so; ok is false when
// there is no such place.
func (t Text) Miss(s string) (m Miss, ok bool) {
	switch p := t.m.(type) {
	case exact:
		n := commonPrefix(string(p), s)
		return Miss{At: n, Want: string(p)[n:], Pattern: string(p)}, true
	case contains:
		at, n := partly(string(p), s)
		return Miss{At: at + n, Want: string(p)[n:], Pattern: string(p)}, n > 0
	case *regex:
		at, want, ok := p.partly(s)
		return Miss{At: at, Want: want, Pattern: p.expr}, ok
	case glob:
		at, want := p.partly(s)
		return Miss{At: at, Want: want, Pattern: p.pattern}, true
	case all:
		for _, part := range p {
			if _, fits := part.Match(s); !fits {
				return part.Miss(s)
			}
		}
	case anyOf:
		return furthest(p, s)
	}
	return Miss{}, false
}

// Passed counts the parts of a pattern that a text fits, of how many.
func (t Text) Passed(s string) (passed, of int) {
	parts, ok := t.m.(all)
	if !ok {
		parts = all{t}
	}
	for _, part := range parts {
		if _, fits := part.Match(s); fits {
			passed++
		}
	}
	return passed, len(parts)
}

// furthest is the miss of the part that came furthest.
func furthest(parts []Text, s string) (best Miss, ok bool) {
	for _, part := range parts {
		if m, can := part.Miss(s); can && (!ok || m.At > best.At) {
			best, ok = m, true
		}
	}
	return best, ok
}

// commonPrefix is the length of what two texts begin with, in whole characters.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) {
		r, size := utf8.DecodeRuneInString(a[n:])
		if q, _ := utf8.DecodeRuneInString(b[n:]); q != r {
			break
		}
		n += size
	}
	return n
}

const (
	// mostTried bounds the work on a text that nobody will read as a whole.
	mostTried = 4 << 10
	// longestRegex bounds how many beginnings of an expression are tried.
	longestRegex = 400
)

// partly finds the longest beginning of a pattern that stands in s, and where.
func partly(pattern, s string) (at, n int) {
	s = s[:min(len(s), mostTried)]
	for i := range s {
		if c := commonPrefix(pattern, s[i:]); c > n {
			at, n = i, c
		}
	}
	return at, n
}

// partly shortens the expression until the rest of it is found in s. A beginning
// that ends inside of a group is no expression.
func (r *regex) partly(s string) (at int, want string, ok bool) {
	if len(r.expr) > longestRegex {
		return 0, "", false
	}
	for n := len(r.expr) - 1; n > 0; n-- {
		re, err := regexp.Compile(r.expr[:n])
		if err != nil {
			continue
		}
		if found := re.FindStringIndex(s); found != nil {
			return found[1], r.expr[n:], found[1] > found[0]
		}
	}
	return 0, "", false
}

// partly finds the longest beginning of the pattern that fits one of s.
func (g glob) partly(s string) (at int, want string) {
	s = s[:min(len(s), mostTried)]
	for n := len(g.pattern); n > 0; n-- {
		head, err := Glob(g.pattern[:n])
		if err != nil {
			continue
		}
		for end := len(s); end >= 0; end-- {
			if _, fits := head.Match(s[:end]); fits && (end < len(s) || n < len(g.pattern)) {
				return end, g.pattern[n:]
			}
		}
	}
	return 0, g.pattern
}

// Distance is how many characters would have to be changed, put in or left out to
// make one text out of another. Only the first few hundred are looked at.
func Distance(a, b string) int {
	row := distances(a, b, 1)
	return row[len(row)-1]
}

// Within is the least [Distance] of a part of text to a pattern's own.
func Within(pattern, text string) int { return slices.Min(distances(pattern, text, 0)) }

// distances are those of a to each beginning of b, in which to leave out what
// comes first costs as much as that for each character.
func distances(first, second string, cost int) []int {
	const most = 300
	a, b := []rune(first), []rune(second)
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j * cost
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, diagonal+1)
		}
	}
	return row
}

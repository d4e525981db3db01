package match

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Glob matches whole texts: `*` matches any text, including `/` and line ends, `?` one character, `[a-z]` and
// `[!a-z]` one of a set. `**` must be a complete path element; braces and escapes are not supported.
func Glob(pattern string) (Pattern, error) {
	if !strings.ContainsAny(pattern, "*?[") {
		return Exact(pattern), nil
	}
	deep, err := checkGlob(pattern)
	if err != nil {
		return Pattern{}, fmt.Errorf("invalid glob pattern: %w", err)
	}
	return Pattern{glob{pattern: pattern, hasDoubleStar: deep}}, nil
}

type glob struct {
	pattern       string
	hasDoubleStar bool // the glob contains `**/`, which may also match nothing
}

func (g glob) match(s string) (Captures, bool) {
	if !g.matches(s) {
		return Captures{}, false
	}
	return wholeCapture(s), true
}

func (g glob) explain(_ string, hide Redactor) string {
	return "the glob " + quotePattern(hide.Hide(g.pattern)) + " does not match all of it"
}

// matches compares the pattern with s from left to right. After a mismatch it goes back only to the last star, because
// a later star can match all that an earlier one can. This is not true for patterns with `**/`: for these,
// matchDoubleStar tracks all positions.
func (g glob) matches(s string) bool {
	if g.hasDoubleStar {
		return matchDoubleStar(g.pattern, s)
	}
	p, at := g.pattern, 0
	star, from := "", -1 // the pattern after the last star, and the position where the star began
	for {
		if p != "" && p[0] == '*' {
			p = strings.TrimLeft(p, "*")
			star, from = p, at
			continue
		}
		if at == len(s) && p == "" {
			return true
		}
		if rest, size, ok := matchCharacter(p, s[at:]); ok {
			p, at = rest, at+size
			continue
		}
		if from < 0 || from >= len(s) {
			return false
		}
		_, size := utf8.DecodeRuneInString(s[from:])
		from += size
		p, at = star, from
	}
}

// matchDoubleStar computes, for each position of s, the set of reachable positions in the pattern.
func matchDoubleStar(pattern, s string) bool {
	reached := map[int]bool{}
	addReachablePositions(pattern, 0, true, reached)
	for at := 0; at < len(s); {
		_, size := utf8.DecodeRuneInString(s[at:])
		next := map[int]bool{}
		for i := range reached {
			switch {
			case i < len(pattern) && pattern[i] == '*':
				next[i] = true
				if strings.HasPrefix(pattern[i:], "**/") && s[at] != '/' {
					continue // only a slash is at the end of this part
				}
				if strings.HasPrefix(pattern[i:], "**/") {
					addReachablePositions(pattern, i+3, true, next)
				} else {
					addReachablePositions(pattern, i, false, next)
				}
			default:
				if rest, _, ok := matchCharacter(pattern[i:], s[at:]); ok {
					addReachablePositions(pattern, len(pattern)-len(rest), true, next)
				}
			}
		}
		reached, at = next, at+size
	}
	return reached[len(pattern)]
}

// addReachablePositions adds position i of the pattern to places. If a star begins there, it also adds the position
// after the star, because a star can match nothing.
func addReachablePositions(pattern string, i int, first bool, places map[int]bool) {
	for {
		places[i] = true
		switch {
		case first && strings.HasPrefix(pattern[i:], "**/"):
			i += 3
		case i < len(pattern) && pattern[i] == '*' && !strings.HasPrefix(pattern[i:], "**/"):
			i += len(pattern[i:]) - len(strings.TrimLeft(pattern[i:], "*"))
		default:
			return
		}
		first = true
	}
}

// matchCharacter matches the first character of s with the beginning of p. p must not begin with a star.
func matchCharacter(p, s string) (rest string, size int, ok bool) {
	if p == "" || s == "" {
		return p, 0, false
	}
	r, size := utf8.DecodeRuneInString(s)
	switch p[0] {
	case '?':
		return p[1:], size, true
	case '[':
		end := classEnd(p)
		return p[end+1:], size, inClass(p[1:end], r)
	}
	want, n := utf8.DecodeRuneInString(p)
	return p[n:], size, want == r && n == size
}

// checkGlob validates a pattern and reports whether it has `**/`.
func checkGlob(pattern string) (deep bool, err error) {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*':
			n := len(pattern[i:]) - len(strings.TrimLeft(pattern[i:], "*"))
			switch {
			case n > 2:
				return false, errors.New("too many `*` in a row: only `*` and `**` are supported")
			case n == 2 && (i > 0 && pattern[i-1] != '/' || i+2 < len(pattern) && pattern[i+2] != '/'):
				return false, errors.New("`**` must be a whole path segment")
			case n == 2 && i+2 < len(pattern):
				deep = true
			}
			i += n - 1
		case '[':
			end := classEnd(pattern[i:])
			if end < 0 {
				return false, errors.New("`[` without `]`")
			}
			if bad := findEmptyRange(pattern[i+1 : i+end]); bad != "" {
				return false, fmt.Errorf("the range `%s` is empty: its first character must not come after its last", bad)
			}
			i += end
		}
	}
	return deep, nil
}

// classEnd returns the position of the "]" that ends the class at the start of s; -1 means none. A "]" directly after
// the opening is a character of the class and does not end it.
func classEnd(s string) int {
	from := 2
	if strings.HasPrefix(s, "[!") {
		from = 3
	}
	if from > len(s) {
		return -1
	}
	end := strings.IndexByte(s[from:], ']')
	if end < 0 {
		return -1
	}
	return from + end
}

func inClass(class string, r rune) bool {
	in := true
	if class[0] == '!' && len(class) > 1 {
		in, class = false, class[1:]
	}
	set := []rune(class)
	for i := 0; i < len(set); i++ {
		low, high := set[i], set[i]
		if i+2 < len(set) && set[i+1] == '-' {
			high = set[i+2]
			i += 2
		}
		if low <= r && r <= high {
			return in
		}
	}
	return !in
}

func findEmptyRange(class string) string {
	set := []rune(strings.TrimPrefix(class, "!"))
	for i := 0; i+2 < len(set); i++ {
		if set[i+1] == '-' {
			if set[i] > set[i+2] {
				return string(set[i : i+3])
			}
			i += 2
		}
	}
	return ""
}

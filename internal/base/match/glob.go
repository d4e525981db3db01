package match

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Glob matches whole texts. `*` matches any text, even `/` and line ends; `?` matches one character; `[a-z]` matches
// one of a set and `[!a-z]` one outside it. `**` must be a complete path element. Braces and escapes are not supported.
func Glob(pattern string) (Pattern, error) {
	if !strings.ContainsAny(pattern, "*?[") {
		return Exact(pattern), nil
	}
	expr, literal, err := translateGlob(strings.ToValidUTF8(pattern, "\ufffd"))
	if err != nil {
		return Pattern{}, fmt.Errorf("invalid glob pattern: %w", err)
	}
	return Pattern{&glob{regex: regex{expr: expr + "$", literal: literal}, pattern: pattern}}, nil
}

// glob is a glob and the regular expression that matches the same texts.
type glob struct {
	regex

	pattern string
}

func (g *glob) explain(_ string, hide Redactor) string {
	return "the glob " + quoteShortened(hide.Hide(g.pattern)) + " does not match all of it"
}

// findLongestMatchingGlobPrefix finds the longest prefix of the glob that matches a prefix of wholeText.
// matchedTextBytes is the length of this prefix of wholeText, and restOfGlob is the rest of the glob.
func (g *glob) findLongestMatchingGlobPrefix(wholeText string) (matchedTextBytes int, restOfGlob string) {
	wholeText = wholeText[:min(len(wholeText), maxExplainedBytes)]
	for n := len(g.pattern); n > 0; n-- {
		expr, _, err := translateGlob(g.pattern[:n])
		if err != nil || !utf8.ValidString(expr) { // the prefix ends inside a class or a character
			continue
		}
		head := regexp.MustCompile(expr)
		head.Longest()
		found := head.FindStringIndex(wholeText)
		if n == len(g.pattern) && found != nil && found[1] == len(wholeText) { // the pattern matches all of wholeText, but more text follows it
			found = head.FindStringIndex(wholeText[:max(0, len(wholeText)-1)])
		}
		if found != nil && (found[1] < len(wholeText) || n < len(g.pattern)) {
			return found[1], g.pattern[n:]
		}
	}
	return 0, g.pattern
}

// translateGlob converts a glob to an expression that begins with ^. literal is the longest text that all matches have.
func translateGlob(pattern string) (expr, longestLiteral string, err error) {
	expr = "(?s)^"
	for i := 0; i < len(pattern); {
		rest := pattern[i:]
		switch rest[0] {
		case '*':
			n := len(rest) - len(strings.TrimLeft(rest, "*"))
			switch isLast := n == len(rest); {
			case n > 2:
				return "", "", errors.New("too many `*` in a row: only `*` and `**` are supported")
			case n == 2 && (i > 0 && pattern[i-1] != '/' || !isLast && rest[2] != '/'):
				return "", "", errors.New("`**` must be a whole path segment")
			case n == 2 && !isLast: // `**/` may also match nothing
				expr += "(?:.*/)?"
				i++ // the slash
			default:
				expr += ".*"
			}
			i += n
		case '?':
			expr += "."
			i++
		case '[':
			end := globClassEnd(rest)
			if end < 0 {
				return "", "", errors.New("`[` needs a closing `]`")
			}
			class, err := translateGlobClass(rest[1:end])
			if err != nil {
				return "", "", err
			}
			expr += class
			i += end + 1
		default:
			text := rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(r rune) bool { return !strings.ContainsRune("*?[", r) }))]
			expr += regexp.QuoteMeta(text)
			if len(text) > len(longestLiteral) {
				longestLiteral = text
			}
			i += len(text)
		}
	}
	return expr, longestLiteral, nil
}

// globClassEnd returns the position of the "]" that ends the class at the start of s; -1 means none. A "]" directly after
// the opening is a character of the class and does not end it.
func globClassEnd(s string) int {
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

// translateGlobClass converts the content of a class, such as "!a-z", to a class of a regular expression.
func translateGlobClass(content string) (string, error) {
	class := "["
	content, negated := strings.CutPrefix(content, "!")
	if negated {
		class = "[^"
	}
	for set := []rune(content); len(set) > 0; {
		low, high, size := set[0], set[0], 1
		if len(set) > 2 && set[1] == '-' {
			high, size = set[2], 3
		}
		if low > high {
			return "", fmt.Errorf("the range `%s` is empty: its first character must not come after its last", string(set[:size]))
		}
		class += fmt.Sprintf(`\x{%x}-\x{%x}`, low, high)
		set = set[size:]
	}
	return class + "]", nil
}

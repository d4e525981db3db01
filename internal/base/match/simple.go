package match

import (
	"regexp"
	"slices"
	"strings"
)

// simpleRegexParser parses a simple regular expression, which consists only of ASCII literals, `.`, \w \d \s, classes, anchors,
// groups, alternatives and single quantifiers. Such an expression is always valid, so scenarios with thousands of them
// load without the slower full parser.
type simpleRegexParser struct {
	expr      string
	at, depth int
	hasAtom   bool // a quantifier may follow

	runStart       int // start of the current literal text outside of groups; -1 means none
	hasAlternative bool
	found          *regex
}

func parseRegexIfInSimpleSubset(expr string) (found *regex, isSimple bool) {
	s := &simpleRegexParser{expr: expr, runStart: -1, found: &regex{expr: expr}}
	for s.at < len(expr) {
		if !s.readElement() {
			return nil, false
		}
	}
	s.endLiteralRunAndKeepLongest(len(expr))
	if s.hasAlternative {
		s.found.literal = ""
	}
	return s.found, s.depth == 0
}

func (s *simpleRegexParser) readElement() bool {
	c := s.expr[s.at]
	switch {
	case c >= 0x80:
		return false
	case strings.IndexByte(`\.+*?()|[]{}^$`, c) < 0:
		if s.runStart < 0 && s.depth == 0 {
			s.runStart = s.at
		}
		s.hasAtom = true
		s.at++
		return true
	case c == '*' || c == '+' || c == '?':
		return s.readSimpleQuantifier(c)
	}
	s.endLiteralRunAndKeepLongest(s.at)
	switch c {
	case '\\':
		return s.readSimpleEscape()
	case '[':
		return s.readClass()
	case '.':
		s.hasAtom = true
	case '^', '$':
		s.hasAtom = false
	case '|':
		s.hasAlternative = s.hasAlternative || s.depth == 0
		s.hasAtom = false
	case '(':
		return s.readGroupOpening()
	case ')':
		s.depth--
		s.hasAtom = true
		if s.depth < 0 {
			return false
		}
	default:
		return false
	}
	s.at++
	return true
}

func (s *simpleRegexParser) endLiteralRunAndKeepLongest(runEnd int) {
	if s.runStart >= 0 && runEnd-s.runStart > len(s.found.literal) {
		s.found.literal = s.expr[s.runStart:runEnd]
	}
	s.runStart = -1
}

func (s *simpleRegexParser) readSimpleQuantifier(c byte) bool {
	if !s.hasAtom {
		return false
	}
	end := s.at
	if c != '+' {
		end-- // the last character may be optional
	}
	if s.runStart >= 0 {
		s.endLiteralRunAndKeepLongest(end)
	}
	s.at++
	if s.at < len(s.expr) && s.expr[s.at] == '?' {
		s.at++
	}
	s.hasAtom = false
	return true
}

func (s *simpleRegexParser) readSimpleEscape() (isSimpleEscape bool) {
	if s.at+1 >= len(s.expr) {
		return false
	}
	c := s.expr[s.at+1]
	switch {
	case c == 'b':
		s.hasAtom = false
	case strings.IndexByte("wWdDsS", c) >= 0, strings.IndexByte(`\.+*?()|[]{}^$-/`, c) >= 0:
		s.hasAtom = true
	default:
		return false
	}
	s.at += 2
	return true
}

// readClass parses "[a-z_]" or "[^…]" of letters, digits, their ranges, and some characters without special meaning.
func (s *simpleRegexParser) readClass() bool {
	at := s.at + 1
	if at < len(s.expr) && s.expr[at] == '^' {
		at++
	}
	first := at
	for at < len(s.expr) && s.expr[at] != ']' {
		c := s.expr[at]
		if !isAlphanumeric(c) && strings.IndexByte("_ .,:;/@#%+", c) < 0 {
			return false
		}
		at++
		if at+1 >= len(s.expr) || s.expr[at] != '-' {
			continue
		}
		if last := s.expr[at+1]; !isAlphanumeric(c) || !isAlphanumeric(last) || last < c {
			return false
		}
		at += 2
	}
	if at == first || at >= len(s.expr) {
		return false
	}
	s.at = at + 1
	s.hasAtom = true
	return true
}

func isAlphanumeric(c byte) bool {
	lower := c | 0x20
	return '0' <= c && c <= '9' || 'a' <= lower && lower <= 'z'
}

// readGroupOpening parses "(", "(?:" or "(?P<name>".
func (s *simpleRegexParser) readGroupOpening() bool {
	const deepest = 50
	s.depth++
	s.hasAtom = false
	rest := s.expr[s.at+1:]
	switch {
	case s.depth > deepest:
		return false
	case !strings.HasPrefix(rest, "?"):
		s.at++
		return true
	case strings.HasPrefix(rest, "?:"):
		s.at += 3
		return true
	}
	name, ok := strings.CutPrefix(rest, "?P<")
	if !ok {
		return false
	}
	name, _, ok = strings.Cut(name, ">")
	if !ok || !isGroupName(name) || slices.Contains(s.found.names, name) {
		return false
	}
	s.found.names = append(s.found.names, name)
	s.at += len("(?P<>") + len(name)
	return true
}

func isGroupName(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; (c < 'a' || c > 'z') && s[i] != '_' && (i == 0 || s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return s != ""
}

// CompileGitignore converts a .gitignore pattern to an expression for slash-separated paths relative to the directory
// of the .gitignore file. If a pattern matches a directory, it also matches everything in the directory. A pattern that
// has no slash, or only one at its end, matches at every depth.
func CompileGitignore(pattern string) (*regexp.Regexp, error) {
	if base := strings.TrimSuffix(pattern, "/**"); strings.Trim(base, "/") != "" {
		pattern = base // if the directory matches, so does its content
	}
	anchored := strings.Contains(strings.TrimSuffix(pattern, "/"), "/")
	pattern = strings.Trim(pattern, "/")
	var b strings.Builder
	b.WriteString(`(?s)^`)
	if !anchored {
		b.WriteString(`(?:.*/)?`)
	}
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString(`(?:.*/)?`)
			i += 2
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`.*`)
			i++
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
		case rest[0] == '?':
			b.WriteString(`[^/]`)
		case rest[0] == '\\' && len(rest) > 1:
			i++
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		case rest[0] == '[' && strings.Contains(rest[1:], "]"):
			class := rest[:strings.Index(rest[1:], "]")+2]
			i += len(class) - 1
			b.WriteString(strings.Replace(class, "[!", "[^", 1))
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	b.WriteString(`(?:/.*)?$`)
	return regexp.Compile(b.String())
}

package match

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// Regex matches texts in which the regular expression (RE2) is found. The expression is validated at once and compiled
// on first use. The error reports constructs of the Rust regex crate that RE2 lacks or interprets differently.
func Regex(expr string) (Pattern, error) {
	if !strings.ContainsAny(expr, `\.+*?()|[]{}^$`) {
		return Contains(expr), nil
	}
	if simple, ok := parseRegexIfInSimpleSubset(expr); ok {
		return Pattern{simple}, nil
	}
	if what := describeFirstRustOnlyRegexSyntax(expr); what != "" {
		return Pattern{}, fmt.Errorf("invalid regex pattern: %s is not supported by RE2", what)
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		if se, ok := errors.AsType[*syntax.Error](err); ok {
			return Pattern{}, fmt.Errorf("invalid regex pattern: %s: `%s`", se.Code, se.Expr)
		}
		return Pattern{}, fmt.Errorf("invalid regex pattern: %w", err)
	}
	found := &regex{expr: expr, literal: longestLiteralInEveryMatch(re)}
	for _, name := range re.CapNames() {
		if name != "" {
			found.names = append(found.names, name)
		}
	}
	return Pattern{found}, nil
}

func longestLiteralInEveryMatch(re *syntax.Regexp) (literalOrEmpty string) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return longestLiteralInEveryMatch(re.Sub[0])
	case syntax.OpConcat:
		longest := ""
		for _, sub := range re.Sub {
			if lit := longestLiteralInEveryMatch(sub); len(lit) > len(longest) {
				longest = lit
			}
		}
		return longest
	default:
	}
	return ""
}

func describeFirstRustOnlyRegexSyntax(expr string) (descriptionOrEmpty string) {
	inClass := false
	for i := 0; i < len(expr); i++ {
		rest := expr[i:]
		switch {
		case rest[0] == '\\':
			if what := describeRustEscape(rest); what != "" {
				return what
			}
			i++
		case inClass && rest[0] == ']':
			inClass = false
		case inClass && (strings.HasPrefix(rest, "&&") || strings.HasPrefix(rest, "~~") || strings.HasPrefix(rest, "--")):
			return "the class set operation `" + rest[:2] + "`"
		case inClass && rest[0] == '[' && !strings.HasPrefix(rest, "[:"):
			return "a class `[…]` inside a class"
		case inClass && strings.HasPrefix(rest, "[:"):
			if end := strings.Index(rest, ":]"); end > 0 {
				i += end + 1
			}
		case !inClass && rest[0] == '[':
			inClass = true
			i += len(rest) - len(strings.TrimPrefix(strings.TrimPrefix(rest[1:], "^"), "]")) - 1 // "]" at the start is a character
		case !inClass && strings.HasPrefix(rest, "(?"):
			if what := describeRustFlag(rest[2:]); what != "" {
				return what
			}
		}
	}
	return ""
}

func describeRustEscape(s string) string {
	if len(s) < 2 {
		return ""
	}
	switch {
	case s[1] == 'u' || s[1] == 'U':
		return "the escape `" + s[:2] + "` (write \\x{…})"
	case s[1] == '<' || s[1] == '>':
		return "the word boundary `" + s[:2] + "` (write \\b)"
	case strings.HasPrefix(s[1:], "b{"):
		return "the word boundary `\\b{…}` (write \\b)"
	}
	return ""
}

// describeRustFlag describes the first flag in the text after "(?" that only Rust supports; empty means none.
func describeRustFlag(s string) string {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case 'x', 'u', 'R':
			return "the flag `(?" + s[:i+1] + ")`"
		case 'i', 'm', 's', 'U', '-':
		default:
			return ""
		}
	}
	return ""
}

// JSMatchTimeout is how long one match may take; a match that takes longer fails.
const JSMatchTimeout = time.Second / 2

// JSPattern is a compiled regular expression of JavaScript, as hook matchers and JSON Schemas use it. Unlike Go's
// it supports lookahead, lookbehind and backreferences. Every match ends within [JSMatchTimeout].
type JSPattern interface {
	MatchString(string) bool // reports a match anywhere in the text
	String() string          // returns the source of the expression
}

// CompileJS compiles an expression. An expression without lookaround is matched in linear time.
func CompileJS(expr string) (JSPattern, error) {
	plain, err := regexp.Compile(expr)
	if err == nil {
		return plain, nil
	}
	rich, failed := regexp2.Compile(expr, regexp2.ECMAScript)
	if failed != nil {
		return nil, fmt.Errorf("%w", err)
	}
	rich.MatchTimeout = JSMatchTimeout // the library's timer goroutine exits one or two seconds after the last match
	return backtrackingPattern{rich}, nil
}

// backtrackingPattern is an expression with lookahead, lookbehind or backreferences.
type backtrackingPattern struct{ re *regexp2.Regexp }

func (l backtrackingPattern) MatchString(text string) bool {
	found, err := l.re.MatchString(text)
	return found && err == nil
}

func (l backtrackingPattern) String() string { return l.re.String() }

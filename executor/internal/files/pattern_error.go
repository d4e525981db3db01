package files

import (
	"cmp"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// patternError is an error in a pattern. from and to are byte offsets in ripgrepPatternPrefix + pattern.
type patternError struct {
	from, to int
	problem  string
}

const ripgrepPatternPrefix = "(?:"

// patternErrorText returns the message with which ripgrep refuses a pattern; empty means that the pattern is valid. err
// is the error of Go's engine. It is nil for some invalid patterns, because Go's engine reads a brace without a count,
// as in x{, as a literal.
func patternErrorText(pattern string, err error) string {
	whole := ripgrepPatternPrefix + pattern + ")"
	f := braceError(whole)
	if err != nil {
		if other := locateError(pattern, whole, err); f == nil || other.from > 0 && other.to <= f.from {
			f = &other
		}
	}
	if f == nil {
		return ""
	}
	return "regex parse error:\n" + f.formatWithMarks(whole) + "error: " + f.problem
}

// braceError returns the error at the first brace that is not a valid repetition; nil means none.
func braceError(source string) *patternError {
	canRepeat := false // the previous item can be followed by a repetition
	for i := 0; i < len(source); i++ {
		switch source[i] {
		case '\\':
			if strings.HasPrefix(source[i+1:], "Q") { // Go's engine supports \Q, but ripgrep does not
				return &patternError{i, i + 2, "unrecognized escape sequence"}
			}
			i = cmp.Or(wordBoundaryEnd(source, i), escapeEnd(source, i))
			canRepeat = true
		case '[':
			i, canRepeat = classEnd(source, i), true
		case '(':
			i, canRepeat = groupOpeningEnd(source, i), false
		case '|':
			canRepeat = false
		case '{':
			if !canRepeat {
				return &patternError{i, i + 1, "repetition operator missing expression"}
			}
			end, f := repetitionCountEnd(source, i)
			if f != nil {
				return f
			}
			i = end
		default:
			canRepeat = true
		}
	}
	return nil
}

// escapeEnd returns the index of the last byte of the escape sequence at i, including the braces of \p{…} and \x{…}.
func escapeEnd(source string, i int) int {
	i = min(i+1, len(source)-1)
	if strings.IndexByte("pPxuU", source[i]) >= 0 && strings.HasPrefix(source[i+1:], "{") {
		if n := strings.IndexByte(source[i:], '}'); n > 0 {
			return i + n
		}
	}
	return i
}

// wordBoundaryEnd returns the index of the last byte of the word boundary at i; 0 means that no word boundary is there.
func wordBoundaryEnd(pattern string, i int) int {
	for _, place := range []string{`\<`, `\>`, `\b{start}`, `\b{end}`, `\b{start-half}`, `\b{end-half}`} {
		if strings.HasPrefix(pattern[i:], place) {
			return i + len(place) - 1
		}
	}
	return 0
}

// classEnd returns the index of the last byte of the character class at i.
func classEnd(source string, i int) int {
	if strings.HasPrefix(source[i+1:], "^") {
		i++
	}
	if strings.HasPrefix(source[i+1:], "]") {
		i++
	}
	for i++; i < len(source) && source[i] != ']'; i++ {
		if source[i] == '\\' {
			i++
		}
	}
	return i
}

// groupOpeningEnd returns the index of the last byte of the group opening at i: "(", "(?:", "(?i)" or "(?P<name>".
func groupOpeningEnd(source string, i int) int {
	if strings.HasPrefix(source[i+1:], "?") {
		if n := strings.IndexAny(source[i:], ":>)"); n > 0 {
			return i + n
		}
	}
	return i
}

// repetitionCountEnd returns the index of the brace that closes the count at i, such as {2,3}, or the error in it.
func repetitionCountEnd(source string, i int) (end int, f *patternError) {
	digits := func(at int) int {
		at += len(source[at:]) - len(strings.TrimLeft(source[at:], " "))
		return at + len(source[at:]) - len(strings.TrimLeft(source[at:], "0123456789"))
	}
	noNumber := func(at int) (int, *patternError) {
		return 0, &patternError{at, at + 1, "repetition quantifier expects a valid decimal"}
	}
	from, at := i+1, digits(i+1)
	if at == from {
		return noNumber(at)
	}
	if _, err := strconv.ParseUint(strings.TrimSpace(source[from:at]), 10, 32); err != nil {
		return 0, &patternError{from, at, "decimal literal invalid"}
	}
	if strings.HasPrefix(source[at:], ",") && !strings.HasPrefix(source[at:], ",}") {
		if from, at = at+1, digits(at+1); at == from {
			return noNumber(at)
		}
	} else if strings.HasPrefix(source[at:], ",}") {
		at++
	}
	if !strings.HasPrefix(source[at:], "}") {
		return 0, &patternError{i, at, "unclosed counted repetition"}
	}
	return at, nil
}

func locateError(pattern, source string, err error) patternError {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return patternError{problem: err.Error()}
	}
	at := func(n int, what string) patternError { return patternError{n, n + 1, what} }
	switch e.Code {
	case syntax.ErrMissingParen, syntax.ErrTrailingBackslash:
		unclosed, _ := unbalancedGroups(source)
		return at(unclosed, "unclosed group")
	case syntax.ErrUnexpectedParen:
		_, unopened := unbalancedGroups(source)
		return at(unopened, "unopened group")
	case syntax.ErrMissingBracket:
		return at(len(ripgrepPatternPrefix)+len(pattern)-len(e.Expr), "unclosed character class")
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidNamedCapture:
		return groupError(len(ripgrepPatternPrefix)+max(0, strings.Index(pattern, e.Expr)), e)
	default:
		end := len(ripgrepPatternPrefix) + errorPrefixLength(pattern, *e)
		return describeSyntaxError(patternError{from: max(0, end-len(e.Expr)), to: end}, e)
	}
}

// noLookaroundHint is what ripgrep adds to an error about syntax that it supports only with PCRE2.
const noLookaroundHint = "\n\nConsider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around."

// groupError returns the error about a group that Go's engine cannot parse. from is the position of the group.
func groupError(from int, e *syntax.Error) patternError {
	for _, look := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
		if strings.HasPrefix(e.Expr, look) {
			return patternError{from, from + len(look), "look-around, including look-ahead and look-behind, is not supported" + noLookaroundHint}
		}
	}
	if e.Code == syntax.ErrInvalidPerlOp {
		return patternError{from + len(e.Expr) - 1, from + len(e.Expr), "unrecognized flag"}
	}
	return patternError{from, from + 1, e.Code.String()}
}

// describeSyntaxError returns f with a description of e, the error of Go's engine, in the words of ripgrep.
func describeSyntaxError(f patternError, e *syntax.Error) patternError {
	switch e.Code {
	case syntax.ErrInvalidCharRange:
		f.problem = "invalid character class range, the start must be <= the end"
		if strings.HasPrefix(e.Expr, `\p`) || strings.HasPrefix(e.Expr, `\P`) {
			f.problem = "Unicode property not found"
		}
	case syntax.ErrMissingRepeatArgument:
		f.problem = "repetition operator missing expression"
	case syntax.ErrInvalidRepeatSize:
		f.problem = "invalid repetition count range, the start must be <= the end"
		if low, high, ranged := strings.Cut(strings.Trim(e.Expr, "{?}"), ","); !ranged || len(low) < len(high) || len(low) == len(high) && low <= high {
			f.problem = "ripgrep allows this count, but the simulated search does not"
		}
	case syntax.ErrInvalidEscape:
		switch last := e.Expr[len(e.Expr)-1]; {
		case last >= '1' && last <= '9':
			f.problem = "backreferences are not supported" + noLookaroundHint
		case strings.HasPrefix(e.Expr, `\x`):
			f.from, f.problem = f.from+len(`\x`), "invalid hexadecimal digit"
			f.to = f.from + 1
		case strings.ContainsRune("dDsSwW", rune(last)):
			f.problem = "invalid range boundary, must be a literal"
		default:
			f.problem = "unrecognized escape sequence"
		}
	default:
		f.problem = e.Code.String()
	}
	return f
}

// errorPrefixLength returns the length of the shortest prefix that causes the same error as the whole pattern.
func errorPrefixLength(pattern string, fault syntax.Error) int {
	for k := range pattern {
		_, size := utf8.DecodeRuneInString(pattern[k:])
		var e *syntax.Error
		if _, err := syntax.Parse(pattern[:k+size], syntax.Perl); errors.As(err, &e) && *e == fault {
			return k + size
		}
	}
	return len(pattern)
}

// unbalancedGroups returns the positions of an unclosed group and of an unmatched closing parenthesis, 0 if none
// exists.
func unbalancedGroups(source string) (unclosed, unopened int) {
	var open []int
	class := false
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
			if rest := strings.TrimPrefix(source[i+1:], "^"); strings.HasPrefix(rest, "]") {
				i = len(source) - len(rest) // this closing bracket is a literal
			}
		case c == '(':
			open = append(open, i)
		case c == ')' && len(open) == 0:
			return 0, i
		case c == ')':
			open = open[:len(open)-1]
		}
	}
	return slices.Max(append(open, 0)), 0
}

// formatWithMarks formats a pattern with marks below the error. It numbers the lines of a multi-line pattern.
func (f patternError) formatWithMarks(source string) string {
	if !strings.Contains(source, "\n") {
		return "    " + source + "\n" + f.lineMarks(source, 4, 0)
	}
	rule := strings.Repeat("~", 79) + "\n"
	var b strings.Builder
	b.WriteString(rule)
	start := 0
	for i, line := range strings.Split(source, "\n") {
		head := fmt.Sprintf("%d: ", i+1)
		b.WriteString(head + line + "\n")
		if start <= f.from && f.from <= start+len(line) {
			b.WriteString(f.lineMarks(line, len(head), start))
		}
		start += len(line) + 1
	}
	return b.String() + rule
}

// lineMarks returns the ^ marks below a line of the pattern. start is the offset of the line in the pattern.
func (f patternError) lineMarks(line string, indent, start int) string {
	if f.to == 0 {
		return ""
	}
	from, to := min(f.from-start, len(line)), min(f.to-start, len(line))
	return strings.Repeat(" ", indent+utf8.RuneCountInString(line[:from])) + strings.Repeat("^", max(1, utf8.RuneCountInString(line[from:to]))) + "\n"
}

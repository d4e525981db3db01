package files

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// compilePattern compiles a ripgrep pattern. It rewrites syntax that Go's engine does not support: repeated repetitions
// (a{2}{3}), ripgrep's word boundaries (\<) and characters written as numbers (\u{41}).
func compilePattern(pattern, flags string) (*regexp.Regexp, error) {
	if flags != "" {
		flags = "(?" + flags + ")"
	}
	re, err := regexp.Compile(flags + pattern)
	var plain syntax.Error
	if e := new(syntax.Error); errors.As(err, &e) {
		plain = *e
	}
	d := ripgrepToGoPatternRewriter{pattern: pattern, itemStart: -1}
	if d.rewritePattern(); d.output.String() == pattern {
		return re, err
	}
	other, failed := regexp.Compile(flags + d.output.String())
	switch {
	case failed == nil:
		return other, nil
	case plain.Code == syntax.ErrInvalidRepeatOp:
		return nil, failed
	}
	return re, err
}

type ripgrepToGoPatternRewriter struct {
	pattern    string
	output     strings.Builder
	openGroups []int // offsets in output at which the enclosing groups start
	itemStart  int   // offset in output of the item to which a following repetition, such as *, applies; -1 means none
	repeated   bool  // the item already has a repetition
}

func (d *ripgrepToGoPatternRewriter) rewritePattern() {
	for i := 0; i < len(d.pattern); i++ {
		switch c := d.pattern[i]; c {
		case '\\':
			end := cmp.Or(lastByteOfWordBoundaryAt(d.pattern, i), lastByteOfEscapeAt(d.pattern, i))
			d.writeRepeatablePatternItem(translateRipgrepEscapeToGo(d.pattern[i : end+1]))
			i = end
		case '[':
			end := min(lastByteOfBracketClassAt(d.pattern, i), len(d.pattern)-1)
			d.writeRepeatablePatternItem(d.pattern[i : end+1])
			i = end
		case '(':
			end := lastByteOfGroupPrefix(d.pattern, i)
			d.openGroups = append(d.openGroups, d.output.Len())
			d.output.WriteString(removeGroupName(d.pattern[i : end+1]))
			d.itemStart, i = -1, end
		case ')':
			d.itemStart, d.repeated = -1, false
			if n := len(d.openGroups) - 1; n >= 0 {
				d.itemStart, d.openGroups = d.openGroups[n], d.openGroups[:n]
			}
			d.output.WriteByte(c)
		case '|':
			d.itemStart = -1
			d.output.WriteByte(c)
		case '*', '+', '?':
			i = d.writeRepetitionOfLastItem(d.pattern[i:i+1], i)
		case '{':
			end, f := lastByteOfRepetitionCountAt(d.pattern, i)
			if f != nil || d.itemStart < 0 {
				d.writeRepeatablePatternItem("{")
				continue
			}
			i = d.writeRepetitionOfLastItem(strings.ReplaceAll(d.pattern[i:end+1], " ", ""), end)
		default:
			d.writeRepeatablePatternItem(d.pattern[i : i+1])
		}
	}
}

func (d *ripgrepToGoPatternRewriter) writeRepeatablePatternItem(charEscapeOrClass string) {
	if len(charEscapeOrClass) == 1 && charEscapeOrClass[0]&0xc0 == 0x80 { // charEscapeOrClass is a continuation byte of a UTF-8 character
		d.output.WriteString(charEscapeOrClass)
		return
	}
	d.itemStart, d.repeated = d.output.Len(), false
	d.output.WriteString(charEscapeOrClass)
}

// writeRepetitionOfLastItem writes a repetition operator, such as *, whose last byte is at operatorEnd in the pattern.
// It also writes a ? that follows and makes the operator lazy. It returns the index of the last pattern byte written.
func (d *ripgrepToGoPatternRewriter) writeRepetitionOfLastItem(repetitionOperator string, operatorEnd int) (lastConsumedIndex int) {
	if strings.HasPrefix(d.pattern[operatorEnd+1:], "?") {
		repetitionOperator, operatorEnd = repetitionOperator+"?", operatorEnd+1
	}
	if d.itemStart < 0 {
		d.output.WriteString(repetitionOperator)
		return operatorEnd
	}
	all := d.output.String()
	before, item := all[:d.itemStart], all[d.itemStart:]
	if d.repeated {
		item = "(?:" + item + ")"
	}
	d.output.Reset()
	d.output.WriteString(before + item + repetitionOperator)
	d.repeated = true
	return operatorEnd
}

func translateRipgrepEscapeToGo(escape string) string {
	switch {
	case lastByteOfWordBoundaryAt(escape, 0) > 0:
		return `\b`
	case strings.HasPrefix(escape, `\u{`), strings.HasPrefix(escape, `\U{`):
		return `\x` + escape[2:]
	}
	return escape
}

// removeGroupName removes the name from the opening of a group, such as (?P<name>. Go's engine requires unique
// names, but a repetition may write the group several times.
func removeGroupName(groupOpening string) string {
	if strings.HasPrefix(groupOpening, "(?P<") || strings.HasPrefix(groupOpening, "(?<") && !strings.HasPrefix(groupOpening, "(?<=") && !strings.HasPrefix(groupOpening, "(?<!") {
		return "("
	}
	return groupOpening
}

// ripgrepPatternError is an error in a pattern. from and to are byte offsets in ripgrepGroupStart + pattern.
type ripgrepPatternError struct {
	from, to int
	problem  string
}

const ripgrepGroupStart = "(?:"

// patternErrorTextOrEmpty returns the message with which ripgrep refuses a pattern; empty means that the pattern is valid. err is the error
// of Go's engine. It is nil for some invalid patterns, because Go's engine reads a brace without a count, as in x{, as a literal.
func patternErrorTextOrEmpty(pattern string, err error) string {
	whole := ripgrepGroupStart + pattern + ")"
	f := firstInvalidRepetitionBraceError(whole)
	if err != nil {
		if other := ripgrepErrorFromGo(pattern, whole, err); f == nil || other.from > 0 && other.to <= f.from {
			f = &other
		}
	}
	if f == nil {
		return ""
	}
	return "regex parse error:\n" + f.formatPatternWithCarets(whole) + "error: " + f.problem
}

func firstInvalidRepetitionBraceError(ripgrepPattern string) (errorOrNil *ripgrepPatternError) {
	canRepeat := false // the previous item can be followed by a repetition
	for i := 0; i < len(ripgrepPattern); i++ {
		switch ripgrepPattern[i] {
		case '\\':
			if strings.HasPrefix(ripgrepPattern[i+1:], "Q") { // Go's engine supports \Q, but ripgrep does not
				return &ripgrepPatternError{i, i + 2, "unrecognized escape sequence"}
			}
			i = cmp.Or(lastByteOfWordBoundaryAt(ripgrepPattern, i), lastByteOfEscapeAt(ripgrepPattern, i))
			canRepeat = true
		case '[':
			i, canRepeat = lastByteOfBracketClassAt(ripgrepPattern, i), true
		case '(':
			i, canRepeat = lastByteOfGroupPrefix(ripgrepPattern, i), false
		case '|':
			canRepeat = false
		case '{':
			if !canRepeat {
				return &ripgrepPatternError{i, i + 1, "repetition operator missing expression"}
			}
			end, f := lastByteOfRepetitionCountAt(ripgrepPattern, i)
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

// lastByteOfEscapeAt returns the index of the last byte of the escape sequence at i, including the braces of \p{…} and \x{…}.
func lastByteOfEscapeAt(source string, i int) int {
	i = min(i+1, len(source)-1)
	if strings.IndexByte("pPxuU", source[i]) >= 0 && strings.HasPrefix(source[i+1:], "{") {
		if n := strings.IndexByte(source[i:], '}'); n > 0 {
			return i + n
		}
	}
	return i
}

func lastByteOfWordBoundaryAt(pattern string, offset int) (indexOrZero int) {
	for _, place := range []string{`\<`, `\>`, `\b{start}`, `\b{end}`, `\b{start-half}`, `\b{end-half}`} {
		if strings.HasPrefix(pattern[offset:], place) {
			return offset + len(place) - 1
		}
	}
	return 0
}

func lastByteOfBracketClassAt(pattern string, i int) (lastIndex int) {
	if strings.HasPrefix(pattern[i+1:], "^") {
		i++
	}
	if strings.HasPrefix(pattern[i+1:], "]") {
		i++
	}
	for i++; i < len(pattern) && pattern[i] != ']'; i++ {
		if pattern[i] == '\\' {
			i++
		}
	}
	return i
}

// lastByteOfGroupPrefix returns the last index of the group opening at start: "(", "(?:", "(?i)" or "(?P<name>".
func lastByteOfGroupPrefix(pattern string, start int) (lastIndex int) {
	if strings.HasPrefix(pattern[start+1:], "?") {
		if n := strings.IndexAny(pattern[start:], ":>)"); n > 0 {
			return start + n
		}
	}
	return start
}

// lastByteOfRepetitionCountAt returns the index of the brace that closes the count at i, such as {2,3}, or the error in it.
func lastByteOfRepetitionCountAt(source string, i int) (end int, f *ripgrepPatternError) {
	digits := func(at int) int {
		at += len(source[at:]) - len(strings.TrimLeft(source[at:], " "))
		return at + len(source[at:]) - len(strings.TrimLeft(source[at:], "0123456789"))
	}
	noNumber := func(at int) (int, *ripgrepPatternError) {
		return 0, &ripgrepPatternError{at, at + 1, "repetition quantifier expects a valid decimal"}
	}
	from, at := i+1, digits(i+1)
	if at == from {
		return noNumber(at)
	}
	if _, err := strconv.ParseUint(strings.TrimSpace(source[from:at]), 10, 32); err != nil {
		return 0, &ripgrepPatternError{from, at, "decimal literal invalid"}
	}
	if strings.HasPrefix(source[at:], ",") && !strings.HasPrefix(source[at:], ",}") {
		if from, at = at+1, digits(at+1); at == from {
			return noNumber(at)
		}
	} else if strings.HasPrefix(source[at:], ",}") {
		at++
	}
	if !strings.HasPrefix(source[at:], "}") {
		return 0, &ripgrepPatternError{i, at, "unclosed counted repetition"}
	}
	return at, nil
}

func ripgrepErrorFromGo(pattern, groupedPattern string, goError error) ripgrepPatternError {
	var e *syntax.Error
	if !errors.As(goError, &e) {
		return ripgrepPatternError{problem: goError.Error()}
	}
	at := func(n int, what string) ripgrepPatternError { return ripgrepPatternError{n, n + 1, what} }
	switch e.Code {
	case syntax.ErrMissingParen, syntax.ErrTrailingBackslash:
		unclosed, _ := unbalancedParenOffsets(groupedPattern)
		return at(unclosed, "unclosed group")
	case syntax.ErrUnexpectedParen:
		_, unopened := unbalancedParenOffsets(groupedPattern)
		return at(unopened, "unopened group")
	case syntax.ErrMissingBracket:
		return at(len(ripgrepGroupStart)+len(pattern)-len(e.Expr), "unclosed character class")
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidNamedCapture:
		return errorOfUnsupportedRegexGroup(len(ripgrepGroupStart)+max(0, strings.Index(pattern, e.Expr)), e)
	default:
		end := len(ripgrepGroupStart) + shortestFailingPrefixLength(pattern, *e)
		return describeSyntaxError(ripgrepPatternError{from: max(0, end-len(e.Expr)), to: end}, e)
	}
}

// noLookaroundHint is what ripgrep adds to an error about syntax that it supports only with PCRE2.
const noLookaroundHint = "\n\nConsider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around."

// errorOfUnsupportedRegexGroup returns the error about a group that Go's engine cannot parse. groupStart is the position of the group.
func errorOfUnsupportedRegexGroup(groupStart int, goError *syntax.Error) ripgrepPatternError {
	for _, look := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
		if strings.HasPrefix(goError.Expr, look) {
			return ripgrepPatternError{groupStart, groupStart + len(look), "look-around, including look-ahead and look-behind, is not supported" + noLookaroundHint}
		}
	}
	if goError.Code == syntax.ErrInvalidPerlOp {
		return ripgrepPatternError{groupStart + len(goError.Expr) - 1, groupStart + len(goError.Expr), "unrecognized flag"}
	}
	return ripgrepPatternError{groupStart, groupStart + 1, goError.Code.String()}
}

// describeSyntaxError returns f with a description of e, the error of Go's engine, in the words of ripgrep.
func describeSyntaxError(f ripgrepPatternError, e *syntax.Error) ripgrepPatternError {
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
		if low, high, ranged := strings.Cut(strings.Trim(e.Expr, "{?}"), ","); !ranged || high == "" || len(low) < len(high) || len(low) == len(high) && low <= high {
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

// shortestFailingPrefixLength returns the length of the shortest prefix that causes the same error as the whole pattern.
func shortestFailingPrefixLength(pattern string, fault syntax.Error) int {
	for k := range pattern {
		_, size := utf8.DecodeRuneInString(pattern[k:])
		var e *syntax.Error
		if _, err := syntax.Parse(pattern[:k+size], syntax.Perl); errors.As(err, &e) && *e == fault {
			return k + size
		}
	}
	return len(pattern)
}

func unbalancedParenOffsets(source string) (unclosedIndexOrZero, unopenedIndexOrZero int) {
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

// formatPatternWithCarets formats a pattern with marks below the error. It numbers the lines of a multi-line pattern.
func (f ripgrepPatternError) formatPatternWithCarets(pattern string) string {
	if !strings.Contains(pattern, "\n") {
		return "    " + pattern + "\n" + f.caretsBelowErrorInLine(pattern, 4, 0)
	}
	rule := strings.Repeat("~", 79) + "\n"
	var b strings.Builder
	b.WriteString(rule)
	start := 0
	for i, line := range strings.Split(pattern, "\n") {
		head := fmt.Sprintf("%d: ", i+1)
		b.WriteString(head + line + "\n")
		if start <= f.from && f.from <= start+len(line) {
			b.WriteString(f.caretsBelowErrorInLine(line, len(head), start))
		}
		start += len(line) + 1
	}
	return b.String() + rule
}

// caretsBelowErrorInLine returns the ^ marks below a line of the pattern. lineOffset is the offset of the line in the pattern.
func (f ripgrepPatternError) caretsBelowErrorInLine(patternLine string, indent, lineOffset int) string {
	if f.to == 0 {
		return ""
	}
	from, to := min(f.from-lineOffset, len(patternLine)), min(f.to-lineOffset, len(patternLine))
	return strings.Repeat(" ", indent+utf8.RuneCountInString(patternLine[:from])) + strings.Repeat("^", max(1, utf8.RuneCountInString(patternLine[from:to]))) + "\n"
}

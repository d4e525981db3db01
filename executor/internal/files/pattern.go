package files

import (
	"cmp"
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// compilePattern compiles a ripgrep pattern. It rewrites syntax that Go's engine does not support: repeated repetitions
// (a{2}{3}), counts above 1000, ripgrep's word boundaries (\<) and characters written as numbers (\u{41}).
func compilePattern(pattern, flags string) (*regexp.Regexp, error) {
	if flags != "" {
		flags = "(?" + flags + ")"
	}
	re, err := regexp.Compile(flags + pattern)
	var plain syntax.Error
	if e := new(syntax.Error); errors.As(err, &e) {
		plain = *e
	}
	d := ripgrepToGoPatternRewriter{pattern: pattern, itemStart: -1, exceedsLimit: plain.Code == syntax.ErrInvalidRepeatSize}
	if d.rewriteWholePatternForGo(); d.output.String() == pattern {
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

	exceedsLimit bool // nested counts, as in (a{90}){90}, multiply to more than Go's engine allows
}

func (d *ripgrepToGoPatternRewriter) rewriteWholePatternForGo() {
	for i := 0; i < len(d.pattern); i++ {
		switch c := d.pattern[i]; c {
		case '\\':
			end := cmp.Or(lastByteOfRipgrepWordBoundaryAt(d.pattern, i), escapeEnd(d.pattern, i))
			d.writeRepeatablePatternItem(translateRipgrepEscapeToGo(d.pattern[i : end+1]))
			i = end
		case '[':
			end := min(lastByteOfBracketClassAt(d.pattern, i), len(d.pattern)-1)
			d.writeRepeatablePatternItem(d.pattern[i : end+1])
			i = end
		case '(':
			end := lastByteOfRegexGroupOpeningAt(d.pattern, i)
			d.openGroups = append(d.openGroups, d.output.Len())
			d.output.WriteString(removeNameFromRegexGroupOpening(d.pattern[i : end+1]))
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
			end, f := repetitionCountEnd(d.pattern, i)
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
	if len(charEscapeOrClass) == 1 && charEscapeOrClass[0]&0xc0 == 0x80 { // text is a continuation byte of a UTF-8 character
		d.output.WriteString(charEscapeOrClass)
		return
	}
	d.itemStart, d.repeated = d.output.Len(), false
	d.output.WriteString(charEscapeOrClass)
}

// writeRepetitionOfLastItem writes the repetition repetitionOperator, such as *, whose last byte is at end in the pattern. A ?
// after repetitionOperator makes it lazy and is also written. The result is the index of the last byte of the pattern that was
// written.
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
	d.output.WriteString(before + d.repeatItemWithinGoCountLimit(item, repetitionOperator))
	d.repeated = true
	return operatorEnd
}

// repeatItemWithinGoCountLimit returns an item with a repetition. If the count exceeds Go's limit, it repeats the item itself.
func (d *ripgrepToGoPatternRewriter) repeatItemWithinGoCountLimit(item, repetitionOperator string) (repeatedItem string) {
	const most, longest = 1000, 1 << 12 // the maximum count, and the maximum length of the result in bytes
	step := most
	if d.exceedsLimit && strings.Contains(item, "{") {
		step = 1
	}
	count, isCount := strings.CutPrefix(strings.TrimSuffix(repetitionOperator, "?"), "{")
	low, high, ranged := strings.Cut(strings.TrimSuffix(count, "}"), ",")
	least, err := strconv.Atoi(low)
	limit := least
	if ranged && high != "" {
		limit, _ = strconv.Atoi(high) // high contains only digits; a number too large to parse is above the limit anyway
	}
	if !isCount || err != nil || limit <= step || limit < least || limit/step*len(item) > longest {
		return item + repetitionOperator
	}
	lazy := repetitionOperator[len(strings.TrimSuffix(repetitionOperator, "?")):]
	var b strings.Builder
	b.WriteString("(?:")
	steps := func(n int, from string) {
		for ; n > 0; n -= step {
			b.WriteString(item + "{" + from + strconv.Itoa(min(n, step)) + "}" + lazy)
		}
	}
	steps(least, "")
	switch {
	case ranged && high == "":
		b.WriteString(item + "*" + lazy)
	case ranged:
		steps(limit-least, "0,")
	}
	return b.String() + ")"
}

func translateRipgrepEscapeToGo(escape string) string {
	switch {
	case lastByteOfRipgrepWordBoundaryAt(escape, 0) > 0:
		return `\b`
	case strings.HasPrefix(escape, `\u{`), strings.HasPrefix(escape, `\U{`):
		return `\x` + escape[2:]
	}
	return escape
}

// removeNameFromRegexGroupOpening removes the name from the opening of a group, such as (?P<name>. Go's engine requires unique
// names, but a repetition may write the group several times.
func removeNameFromRegexGroupOpening(groupOpening string) string {
	if strings.HasPrefix(groupOpening, "(?P<") || strings.HasPrefix(groupOpening, "(?<") && !strings.HasPrefix(groupOpening, "(?<=") && !strings.HasPrefix(groupOpening, "(?<!") {
		return "("
	}
	return groupOpening
}

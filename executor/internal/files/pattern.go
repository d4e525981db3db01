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
	d := patternRewriter{pattern: pattern, itemStart: -1, exceedsLimit: plain.Code == syntax.ErrInvalidRepeatSize}
	if d.rewrite(); d.output.String() == pattern {
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

type patternRewriter struct {
	pattern    string
	output     strings.Builder
	openGroups []int // offsets in output at which the enclosing groups start
	itemStart  int   // offset in output of the item to which a following repetition, such as *, applies; -1 means none
	repeated   bool  // the item already has a repetition

	exceedsLimit bool // nested counts, as in (a{90}){90}, multiply to more than Go's engine allows
}

func (d *patternRewriter) rewrite() {
	for i := 0; i < len(d.pattern); i++ {
		switch c := d.pattern[i]; c {
		case '\\':
			end := cmp.Or(wordBoundaryEnd(d.pattern, i), escapeEnd(d.pattern, i))
			d.writeItem(translateEscape(d.pattern[i : end+1]))
			i = end
		case '[':
			end := min(classEnd(d.pattern, i), len(d.pattern)-1)
			d.writeItem(d.pattern[i : end+1])
			i = end
		case '(':
			end := groupOpeningEnd(d.pattern, i)
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
			i = d.rewriteRepetition(d.pattern[i:i+1], i)
		case '{':
			end, f := repetitionCountEnd(d.pattern, i)
			if f != nil || d.itemStart < 0 {
				d.writeItem("{")
				continue
			}
			i = d.rewriteRepetition(strings.ReplaceAll(d.pattern[i:end+1], " ", ""), end)
		default:
			d.writeItem(d.pattern[i : i+1])
		}
	}
}

func (d *patternRewriter) writeItem(text string) {
	if len(text) == 1 && text[0]&0xc0 == 0x80 { // text is a continuation byte of a UTF-8 character
		d.output.WriteString(text)
		return
	}
	d.itemStart, d.repeated = d.output.Len(), false
	d.output.WriteString(text)
}

// rewriteRepetition writes the repetition op, such as *, whose last byte is at end in the pattern. A ? after op makes
// it lazy and is also written. The result is the index of the last byte of the pattern that was written.
func (d *patternRewriter) rewriteRepetition(op string, end int) int {
	if strings.HasPrefix(d.pattern[end+1:], "?") {
		op, end = op+"?", end+1
	}
	if d.itemStart < 0 {
		d.output.WriteString(op)
		return end
	}
	all := d.output.String()
	before, item := all[:d.itemStart], all[d.itemStart:]
	if d.repeated {
		item = "(?:" + item + ")"
	}
	d.output.Reset()
	d.output.WriteString(before + d.expandRepetition(item, op))
	d.repeated = true
	return end
}

// expandRepetition returns an item with a repetition. If the count exceeds Go's limit, it repeats the item itself.
func (d *patternRewriter) expandRepetition(item, op string) string {
	const most, longest = 1000, 1 << 12 // the maximum count, and the maximum length of the result in bytes
	step := most
	if d.exceedsLimit && strings.Contains(item, "{") {
		step = 1
	}
	count, isCount := strings.CutPrefix(strings.TrimSuffix(op, "?"), "{")
	low, high, ranged := strings.Cut(strings.TrimSuffix(count, "}"), ",")
	least, err := strconv.Atoi(low)
	limit := least
	if ranged && high != "" {
		limit, _ = strconv.Atoi(high) // high contains only digits; a number too large to parse is above the limit anyway
	}
	if !isCount || err != nil || limit <= step || limit < least || limit/step*len(item) > longest {
		return item + op
	}
	lazy := op[len(strings.TrimSuffix(op, "?")):]
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

func translateEscape(text string) string {
	switch {
	case wordBoundaryEnd(text, 0) > 0:
		return `\b`
	case strings.HasPrefix(text, `\u{`), strings.HasPrefix(text, `\U{`):
		return `\x` + text[2:]
	}
	return text
}

// removeGroupName removes the name from the opening of a group, such as (?P<name>. Go's engine requires unique names,
// but a repetition may write the group several times.
func removeGroupName(start string) string {
	if strings.HasPrefix(start, "(?P<") || strings.HasPrefix(start, "(?<") && !strings.HasPrefix(start, "(?<=") && !strings.HasPrefix(start, "(?<!") {
		return "("
	}
	return start
}

package files

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// compile compiles a ripgrep pattern. It rewrites syntax that Go's engine lacks or writes differently: repeated
// repetitions, counts above a thousand, word boundaries, characters by number.
func compile(pattern, flags string) (*regexp.Regexp, error) {
	if flags != "" {
		flags = "(?" + flags + ")"
	}
	re, err := regexp.Compile(flags + pattern)
	var plain syntax.Error
	if e := new(syntax.Error); errors.As(err, &e) {
		plain = *e
	}
	d := patternRewriter{pattern: pattern, itemStart: -1, nested: plain.Code == syntax.ErrInvalidRepeatSize}
	if d.rewrite(); d.to.String() == pattern {
		return re, err
	}
	other, failed := regexp.Compile(flags + d.to.String())
	switch {
	case failed == nil:
		return other, nil
	case plain.Code == syntax.ErrInvalidRepeatOp:
		return nil, failed
	}
	return re, err
}

// patternRewriter rewrites one pattern.
type patternRewriter struct {
	pattern    string
	to         strings.Builder
	openGroups []int // start positions of the enclosing groups in to
	itemStart  int   // start of the repeatable item in to; -1 means none
	repeated   bool  // the item is already repeated

	nested bool // nested counts exceed the limit
}

func (d *patternRewriter) rewrite() {
	for i := 0; i < len(d.pattern); i++ {
		switch c := d.pattern[i]; c {
		case '\\':
			end := wordBoundaryEnd(d.pattern, i)
			if end == 0 {
				end = escapeEnd(d.pattern, i)
			}
			d.writeItem(escape(d.pattern[i : end+1]))
			i = end
		case '[':
			end := min(classEnd(d.pattern, i), len(d.pattern)-1)
			d.writeItem(d.pattern[i : end+1])
			i = end
		case '(':
			end := groupStart(d.pattern, i)
			d.openGroups = append(d.openGroups, d.to.Len())
			d.to.WriteString(unnamedGroup(d.pattern[i : end+1]))
			d.itemStart, i = -1, end
		case ')':
			d.itemStart, d.repeated = -1, false
			if n := len(d.openGroups) - 1; n >= 0 {
				d.itemStart, d.openGroups = d.openGroups[n], d.openGroups[:n]
			}
			d.to.WriteByte(c)
		case '|':
			d.itemStart = -1
			d.to.WriteByte(c)
		case '*', '+', '?':
			i = d.rewriteRepetition(d.pattern[i:i+1], i)
		case '{':
			end, f := countEnd(d.pattern, i)
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

// writeItem writes an item that may be repeated.
func (d *patternRewriter) writeItem(text string) {
	if len(text) == 1 && text[0]&0xc0 == 0x80 { // continuation byte of a character
		d.to.WriteString(text)
		return
	}
	d.itemStart, d.repeated = d.to.Len(), false
	d.to.WriteString(text)
}

// rewriteRepetition writes a repetition that ends at a position of the pattern, and returns its end, including a mark
// for lazy matching.
func (d *patternRewriter) rewriteRepetition(op string, end int) int {
	if strings.HasPrefix(d.pattern[end+1:], "?") {
		op, end = op+"?", end+1
	}
	if d.itemStart < 0 {
		d.to.WriteString(op)
		return end
	}
	all := d.to.String()
	before, item := all[:d.itemStart], all[d.itemStart:]
	if d.repeated {
		item = "(?:" + item + ")"
	}
	d.to.Reset()
	d.to.WriteString(before + d.repetition(item, op))
	d.repeated = true
	return end
}

// repetition writes an item with a repetition, in several steps if the count is too large for Go's engine.
func (d *patternRewriter) repetition(item, op string) string {
	const most, longest = 1000, 1 << 12 // limit of one count; bytes of a pattern
	step := most
	if d.nested && strings.Contains(item, "{") {
		step = 1
	}
	count, isCount := strings.CutPrefix(strings.TrimSuffix(op, "?"), "{")
	low, high, ranged := strings.Cut(strings.TrimSuffix(count, "}"), ",")
	least, err := strconv.Atoi(low)
	limit := least
	if ranged && high != "" {
		limit, _ = strconv.Atoi(high) // digits, or a number that is too large anyway
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

// escape rewrites an escape for Go's engine.
func escape(text string) string {
	switch {
	case wordBoundaryEnd(text, 0) > 0:
		return `\b`
	case strings.HasPrefix(text, `\u{`), strings.HasPrefix(text, `\U{`):
		return `\x` + text[2:]
	}
	return text
}

// unnamedGroup returns the start of a group without its name, because a repetition in
// steps writes the group several times.
func unnamedGroup(start string) string {
	if strings.HasPrefix(start, "(?P<") || strings.HasPrefix(start, "(?<") && !strings.HasPrefix(start, "(?<=") && !strings.HasPrefix(start, "(?<!") {
		return "("
	}
	return start
}

package search

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// compile makes an expression of a pattern as ripgrep reads it. What our engine
// has not, or writes differently, is rewritten: repetitions of repetitions, those
// of more than a thousand, places at the edge of a word, characters by number.
func compile(pattern, flags string) (*regexp.Regexp, error) {
	if flags != "" {
		flags = "(?" + flags + ")"
	}
	re, err := regexp.Compile(flags + pattern)
	var plain syntax.Error
	if e := new(syntax.Error); errors.As(err, &e) {
		plain = *e
	}
	d := dialect{from: pattern, item: -1, nested: plain.Code == syntax.ErrInvalidRepeatSize}
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

// dialect rewrites one pattern.
type dialect struct {
	from string
	to   strings.Builder
	open []int // where the groups around begin in to
	item int   // where what may be repeated begins in to; -1 = there is nothing
	done bool  // it is repeated already

	nested bool // counts within counts are too much together
}

func (d *dialect) rewrite() {
	for i := 0; i < len(d.from); i++ {
		switch c := d.from[i]; c {
		case '\\':
			end := edge(d.from, i)
			if end == 0 {
				end = escaped(d.from, i)
			}
			d.part(escape(d.from[i : end+1]))
			i = end
		case '[':
			end := min(classEnd(d.from, i), len(d.from)-1)
			d.part(d.from[i : end+1])
			i = end
		case '(':
			end := groupStart(d.from, i)
			d.open = append(d.open, d.to.Len())
			d.to.WriteString(unnamed(d.from[i : end+1]))
			d.item, i = -1, end
		case ')':
			d.item, d.done = -1, false
			if n := len(d.open) - 1; n >= 0 {
				d.item, d.open = d.open[n], d.open[:n]
			}
			d.to.WriteByte(c)
		case '|':
			d.item = -1
			d.to.WriteByte(c)
		case '*', '+', '?':
			i = d.repeat(d.from[i:i+1], i)
		case '{':
			end, f := counted(d.from, i)
			if f != nil || d.item < 0 {
				d.part("{")
				continue
			}
			i = d.repeat(strings.ReplaceAll(d.from[i:end+1], " ", ""), end)
		default:
			d.part(d.from[i : i+1])
		}
	}
}

// part writes something that may be repeated.
func (d *dialect) part(text string) {
	if len(text) == 1 && text[0]&0xc0 == 0x80 { // the rest of a character
		d.to.WriteString(text)
		return
	}
	d.item, d.done = d.to.Len(), false
	d.to.WriteString(text)
}

// repeat writes a repetition that ends at a place of the pattern, and returns
// where it ends with the mark of a lazy one.
func (d *dialect) repeat(op string, end int) int {
	if strings.HasPrefix(d.from[end+1:], "?") {
		op, end = op+"?", end+1
	}
	if d.item < 0 {
		d.to.WriteString(op)
		return end
	}
	all := d.to.String()
	before, item := all[:d.item], all[d.item:]
	if d.done {
		item = "(?:" + item + ")"
	}
	d.to.Reset()
	d.to.WriteString(before + d.times(item, op))
	d.done = true
	return end
}

// times is an item with a repetition, in several steps where our engine cannot
// count so far.
func (d *dialect) times(item, op string) string {
	const most, longest = 1000, 1 << 12 // of one count; bytes of a pattern
	step := most
	if d.nested && strings.Contains(item, "{") {
		step = 1
	}
	count, isCount := strings.CutPrefix(strings.TrimSuffix(op, "?"), "{")
	low, high, ranged := strings.Cut(strings.TrimSuffix(count, "}"), ",")
	least, err := strconv.Atoi(low)
	limit := least
	if ranged && high != "" {
		limit, _ = strconv.Atoi(high) // digits, or it is too much anyway
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

// escape is an escape as our engine writes it.
func escape(text string) string {
	switch {
	case edge(text, 0) > 0:
		return `\b`
	case strings.HasPrefix(text, `\u{`), strings.HasPrefix(text, `\U{`):
		return `\x` + text[2:]
	}
	return text
}

// unnamed is the beginning of a group without a name: what is repeated in steps
// stands there more than once.
func unnamed(start string) string {
	if strings.HasPrefix(start, "(?P<") || strings.HasPrefix(start, "(?<") && !strings.HasPrefix(start, "(?<=") && !strings.HasPrefix(start, "(?<!") {
		return "("
	}
	return start
}

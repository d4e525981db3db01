package parity

import (
	"fmt"
	"strings"
)

// Change is what became of one place between two versions, over all cases.
type Change struct {
	// Path names the place by event and key, as [Difference] does.
	Path string `json:"path"`
	// Before and After are the two sides in the first case; empty = there is nothing.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Cases are those in which it shows.
	Cases []string `json:"cases"`
}

// Changelog makes the report that of two versions of the real CLI: what differs,
// place by place in the order of first sight, in the place of case by case.
func (r *Report) Changelog(before, after string) {
	r.Between = []string{before, after}
	r.Changes = []Change{}
	at := map[string]int{} // mark and path → index
	for _, v := range r.Cases {
		for _, d := range v.Differences {
			c := Change{Path: d.Path, Before: d.Ours, After: d.Real}
			key := c.mark() + c.Path
			i, ok := at[key]
			if !ok {
				i, at[key] = len(r.Changes), len(r.Changes)
				r.Changes = append(r.Changes, c)
			}
			r.Changes[i].Cases = append(r.Changes[i].Cases, v.Case)
		}
	}
}

// mark says whether something is new, gone, or another.
func (c *Change) mark() string {
	switch {
	case c.Before == "":
		return "+"
	case c.After == "":
		return "-"
	}
	return "~"
}

// changelog returns the two versions and a line for each change.
func (r *Report) changelog() []string {
	lines := []string{fmt.Sprintf("%s → %s\n", r.Between[0], r.Between[1])}
	for i := range r.Changes {
		c := &r.Changes[i]
		lines = append(lines, fmt.Sprintf("%s %s: %s (%s)\n", c.mark(), c.Path, c.what(), some(c.Cases)))
	}
	return lines
}

// what is the change in a few words.
func (c *Change) what() string {
	gone, isList := strings.CutPrefix(c.Before, onlyHere)
	come, isListToo := strings.CutPrefix(c.After, onlyHere)
	switch {
	case c.mark() == "+":
		return oneLine(c.After)
	case c.mark() == "-":
		return oneLine(c.Before)
	case isList && isListToo:
		var words []string
		for w := range strings.FieldsSeq(gone) {
			words = append(words, "-"+w)
		}
		for w := range strings.FieldsSeq(come) {
			words = append(words, "+"+w)
		}
		return oneLine(strings.Join(words, " "))
	}
	return oneLine(c.Before) + " → " + oneLine(c.After)
}

// oneLine is the beginning of a value.
func oneLine(s string) string {
	const most = 120
	s = strings.ReplaceAll(s, "\n", `\n`)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// some are the first names of a list, and how many there are.
func some(names []string) string {
	const most = 3
	if len(names) == 1 {
		return names[0]
	}
	more := ""
	if len(names) > most {
		more = ", …"
	}
	return fmt.Sprintf("%d cases: %s%s", len(names), strings.Join(names[:min(most, len(names))], ", "), more)
}

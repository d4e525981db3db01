package parity

import (
	"fmt"
	"strings"
)

// Change is a difference at one path between two versions, over all cases.
type Change struct {
	// Path names the event and key, like the path of a [Difference].
	Path string `json:"path"`
	// Before and After are the values in the first case; empty = absent.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Cases are the cases with this difference.
	Cases []string `json:"cases"`
}

// Changelog turns the report into one about two versions of the real CLI: it lists
// the differences by path, in order of first occurrence, instead of by case.
func (r *Report) Changelog(before, after string) {
	r.Versions = []string{before, after}
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

// mark returns whether the value is new, removed, or changed.
func (c *Change) mark() string {
	switch {
	case c.Before == "":
		return "+"
	case c.After == "":
		return "-"
	}
	return "~"
}

// changelog returns a header with the two versions and a line for each change.
func (r *Report) changelog() []string {
	lines := []string{fmt.Sprintf("%s → %s\n", r.Versions[0], r.Versions[1])}
	for i := range r.Changes {
		c := &r.Changes[i]
		lines = append(lines, fmt.Sprintf("%s %s: %s (%s)\n", c.mark(), c.Path, c.summary(), firstNames(c.Cases)))
	}
	return lines
}

// summary describes the change in a few words.
func (c *Change) summary() string {
	gone, isList := strings.CutPrefix(c.Before, onlyHerePrefix)
	come, isListToo := strings.CutPrefix(c.After, onlyHerePrefix)
	switch {
	case c.mark() == "+":
		return truncate(c.After)
	case c.mark() == "-":
		return truncate(c.Before)
	case isList && isListToo:
		var words []string
		for w := range strings.FieldsSeq(gone) {
			words = append(words, "-"+w)
		}
		for w := range strings.FieldsSeq(come) {
			words = append(words, "+"+w)
		}
		return truncate(strings.Join(words, " "))
	}
	return truncate(c.Before) + " → " + truncate(c.After)
}

// truncate returns the beginning of a value.
func truncate(s string) string {
	const most = 120
	s = strings.ReplaceAll(s, "\n", `\n`)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// firstNames returns the first names of a list and their total number.
func firstNames(names []string) string {
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

// Package textdiff compares two texts line by line and returns the differences as hunks of a unified diff.
package textdiff

import (
	"slices"
	"strings"
)

// Hunk is one changed region with its context. OldStart and NewStart count from 1, even if there are no lines on that
// side. Lines begin with ' ', '-' or '+', or are the remark that the last line has no newline.
type Hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"`
}

const noNewlineMarker = `\ No newline at end of file`

// maxEdits bounds the search for the shortest edit script. If texts differ more, everything from the first to the last
// difference is replaced.
const maxEdits = 1000

// Hunks compares before and after with the given lines of context. For equal texts it returns an empty, non-nil list.
func Hunks(before, after string, contextLines int) []Hunk {
	a, b := splitLinesKeepingEnds(before), splitLinesKeepingEnds(after)
	d := differ{a: a, b: b}
	d.findCommonPrefixAndSuffix()
	d.markChanges()
	return d.buildHunks(max(contextLines, 0))
}

func splitLinesKeepingEnds(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// differ finds the lines that only one of the two texts has.
type differ struct {
	a, b           []string
	prefix, suffix int
	removed, added []bool
}

func (d *differ) findCommonPrefixAndSuffix() {
	d.removed, d.added = make([]bool, len(d.a)), make([]bool, len(d.b))
	n := min(len(d.a), len(d.b))
	for d.prefix < n && d.a[d.prefix] == d.b[d.prefix] {
		d.prefix++
	}
	for d.suffix < n-d.prefix && d.a[len(d.a)-1-d.suffix] == d.b[len(d.b)-1-d.suffix] {
		d.suffix++
	}
}

// markChanges runs Myers' greedy algorithm on the lines between the common beginning and end.
func (d *differ) markChanges() {
	a, b := d.a[d.prefix:len(d.a)-d.suffix], d.b[d.prefix:len(d.b)-d.suffix]
	removed, created := d.removed[d.prefix:], d.added[d.prefix:]
	trace, ok := findEditPath(a, b)
	if !ok {
		copy(removed, slices.Repeat([]bool{true}, len(a)))
		copy(created, slices.Repeat([]bool{true}, len(b)))
		return
	}
	x, y := len(a), len(b)
	for edits := len(trace) - 1; edits > 0; edits-- {
		before, adds := positionBeforeEdit(trace[edits-1], x-y)
		if adds {
			x, y = before, before-(x-y+1)
			created[y] = true
		} else {
			x, y = before, before-(x-y-1)
			removed[x] = true
		}
	}
}

// findEditPath returns how far each diagonal of the edit graph reaches after 0, 1, 2, … edits; ok is false above maxEdits.
func findEditPath(a, b []string) (trace [][]int, ok bool) {
	for edits := 0; edits <= min(len(a)+len(b), maxEdits); edits++ {
		front := make([]int, 2*edits+1) // diagonal k is at index k+edits
		for k := -edits; k <= edits; k += 2 {
			x := 0
			if edits > 0 {
				var adds bool
				if x, adds = positionBeforeEdit(trace[edits-1], k); !adds {
					x++
				}
			}
			y := x - k
			for x >= 0 && y >= 0 && x < len(a) && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			front[k+edits] = x
			if x >= len(a) && y >= len(b) {
				return append(trace, front), true
			}
		}
		trace = append(trace, front)
	}
	return nil, false
}

// positionBeforeEdit returns the furthest position that front reaches on diagonal k-1 or k+1. One more edit leads from there to
// diagonal k: adds is true if it adds a line of b, and false if it removes a line of a.
func positionBeforeEdit(front []int, k int) (x int, adds bool) {
	reach := func(k int) int { // -1 means that front does not contain the diagonal
		if i := k + len(front)/2; i >= 0 && i < len(front) {
			return front[i]
		}
		return -1
	}
	removal, addition := reach(k-1), reach(k+1)
	return max(removal, addition), removal < addition
}

// region is a maximal run of changed lines: [oldFrom, oldTo) became [newFrom, newTo).
type region struct{ oldFrom, oldTo, newFrom, newTo int }

func (d *differ) changedRegions() []region {
	var out []region
	i, j := 0, 0
	for i < len(d.a) || j < len(d.b) {
		r := region{oldFrom: i, newFrom: j}
		for i < len(d.a) && d.removed[i] {
			i++
		}
		for j < len(d.b) && d.added[j] {
			j++
		}
		r.oldTo, r.newTo = i, j
		if r.oldTo > r.oldFrom || r.newTo > r.newFrom {
			out = append(out, r)
			continue
		}
		i, j = i+1, j+1
	}
	return out
}

func (d *differ) buildHunks(context int) []Hunk {
	out := []Hunk{}
	regions := d.changedRegions()
	for len(regions) > 0 {
		n := 1
		for n < len(regions) && regions[n].oldFrom-regions[n-1].oldTo <= 2*context {
			n++
		}
		out = append(out, d.buildHunk(regions[:n], context))
		regions = regions[n:]
	}
	return out
}

func (d *differ) buildHunk(regions []region, context int) Hunk {
	first, last := regions[0], regions[len(regions)-1]
	lead := min(context, first.oldFrom)
	tail := min(context, len(d.a)-last.oldTo)
	h := Hunk{OldStart: first.oldFrom - lead + 1, OldLines: last.oldTo + tail - first.oldFrom + lead, NewStart: first.newFrom - lead + 1, NewLines: last.newTo + tail - first.newFrom + lead}
	at := first.oldFrom - lead
	for _, r := range regions {
		h.addLines(' ', d.a[at:r.oldFrom])
		h.addLines('-', d.a[r.oldFrom:r.oldTo])
		h.addLines('+', d.b[r.newFrom:r.newTo])
		at = r.oldTo
	}
	h.addLines(' ', d.a[at:last.oldTo+tail])
	h.Lines = slices.Clip(h.Lines)
	return h
}

func (h *Hunk) addLines(sign byte, lines []string) {
	for _, l := range lines {
		text, complete := strings.CutSuffix(l, "\n")
		h.Lines = append(h.Lines, string(sign)+text)
		if !complete {
			h.Lines = append(h.Lines, noNewlineMarker)
		}
	}
}

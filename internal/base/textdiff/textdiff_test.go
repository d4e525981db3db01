package textdiff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHunks(t *testing.T) {
	numbers := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintln(&b, i)
		}
		return b.String()
	}
	tests := []struct {
		name, before, after string
		want                []Hunk
	}{
		{"equal", "a\n", "a\n", []Hunk{}},
		{"both empty", "", "", []Hunk{}},
		// Golden tool-edit.
		{"one line", "line one\nline two\nline three\n", "line one\nLINE 2\nline three\n", []Hunk{
			{OldStart: 1, OldLines: 3, NewStart: 1, NewLines: 3, Lines: []string{" line one", "-line two", "+LINE 2", " line three"}},
		}},
		{"from nothing", "", "a\nb\n", []Hunk{{OldStart: 1, NewStart: 1, NewLines: 2, Lines: []string{"+a", "+b"}}}},
		{"to nothing", "a\n", "", []Hunk{{OldStart: 1, OldLines: 1, NewStart: 1, Lines: []string{"-a"}}}},
		{"newline added", "a\nb", "a\nb\n", []Hunk{
			{OldStart: 1, OldLines: 2, NewStart: 1, NewLines: 2, Lines: []string{" a", "-b", noNewlineMarker, "+b"}},
		}},
		{"context cut", numbers(1, 20), strings.Replace(numbers(1, 20), "10\n", "ten\n", 1), []Hunk{
			{OldStart: 7, OldLines: 7, NewStart: 7, NewLines: 7, Lines: []string{" 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13"}},
		}},
		{
			"two hunks", numbers(1, 20),
			"0\n" + strings.Replace(numbers(1, 20), "15\n", "", 1),
			[]Hunk{
				{OldStart: 1, OldLines: 3, NewStart: 1, NewLines: 4, Lines: []string{"+0", " 1", " 2", " 3"}},
				{OldStart: 12, OldLines: 7, NewStart: 13, NewLines: 6, Lines: []string{" 12", " 13", " 14", "-15", " 16", " 17", " 18"}},
			},
		},
		{"six lines between are one hunk", numbers(1, 8), "x\n" + numbers(2, 7) + "y\n", []Hunk{
			{OldStart: 1, OldLines: 8, NewStart: 1, NewLines: 8, Lines: []string{"-1", "+x", " 2", " 3", " 4", " 5", " 6", " 7", "-8", "+y"}},
		}},
		{"shortest", "a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", []Hunk{{
			OldStart: 1, OldLines: 7, NewStart: 1, NewLines: 6,
			Lines: []string{"-a", "-b", " c", "+b", " a", " b", "-b", " a", "+c"},
		}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Hunks(tt.before, tt.after, 3)); diff != "" {
				t.Errorf("hunks (-want +got):\n%s", diff)
			}
		})
	}
}

// Texts that differ by more than the bound get a correct but coarse patch.
func TestHunksBeyondBound(t *testing.T) {
	var a, b strings.Builder
	for i := range 3 * maxEdits {
		fmt.Fprintf(&a, "a%d\n", i)
		fmt.Fprintf(&b, "b%d\n", i)
	}
	checkApply(t, a.String(), "first\n"+b.String(), 3)
}

// apply rebuilds the new text from the old one and the hunks.
func apply(t *testing.T, before string, hunks []Hunk) string {
	t.Helper()
	lines := splitLinesKeepingEnds(before)
	var out strings.Builder
	next := 0
	for _, h := range hunks {
		for next < h.OldStart-1 {
			out.WriteString(lines[next])
			next++
		}
		for i, l := range h.Lines {
			end := "\n"
			if i+1 < len(h.Lines) && h.Lines[i+1] == noNewlineMarker {
				end = ""
			}
			switch l[0] {
			case ' ', '-':
				if next >= len(lines) || lines[next] != l[1:]+end {
					t.Fatalf("hunk line %q does not stand at old line %d", l, next+1)
				}
				next++
				if l[0] == ' ' {
					out.WriteString(l[1:] + end)
				}
			case '+':
				out.WriteString(l[1:] + end)
			}
		}
	}
	for _, l := range lines[next:] {
		out.WriteString(l)
	}
	return out.String()
}

func checkApply(t *testing.T, before, after string, context int) {
	t.Helper()
	hunks := Hunks(before, after, context)
	if got := apply(t, before, hunks); got != after {
		t.Fatalf("applying the hunks of %q -> %q gives %q", before, after, got)
	}
	for _, h := range hunks {
		olds, news := 0, 0
		for _, l := range h.Lines {
			switch l[0] {
			case ' ':
				olds, news = olds+1, news+1
			case '-':
				olds++
			case '+':
				news++
			}
		}
		if olds != h.OldLines || news != h.NewLines {
			t.Fatalf("hunk counts %d/%d lines, says %d/%d", olds, news, h.OldLines, h.NewLines)
		}
	}
}

func FuzzHunks(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nc\nd\n", 3)
	f.Add("", "x", 0)
	f.Add("x\n\\ No", "x\ny", 1)
	f.Add("a\nb\na\nb\na\nb", "b\na\nb\na\n", 2)
	f.Fuzz(func(t *testing.T, before, after string, context int) {
		checkApply(t, before, after, context%10)
	})
}

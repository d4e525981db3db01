package book

import (
	"flag"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	cellsBefore = flag.String("before", "", "directory of captured pages to compare with those of -after")
	cellsAfter  = flag.String("after", "", "directory of captured pages, such as those of the simulated claude")
)

// TestCellsOfBooks prints for each page of two books how many characters are the same.
func TestCellsOfBooks(t *testing.T) {
	if *cellsBefore == "" || *cellsAfter == "" {
		t.Skip("no -before and -after")
	}
	before, err := List(*cellsBefore)
	if err != nil {
		t.Fatal(err)
	}
	after, err := List(*cellsAfter)
	if err != nil {
		t.Fatal(err)
	}
	var total cellCount
	for _, a := range before {
		for _, b := range after {
			if a.Renderer != b.Renderer || a.Tmux != b.Tmux || a.Cols != b.Cols || a.Rows != b.Rows {
				continue
			}
			counts, err := compareCells(a, b)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range counts {
				t.Logf("%-36s %-20s %s", n.Page, n.State, n)
				total = total.Add(n)
			}
		}
	}
	t.Logf("all: %s", total)
}

// compareCells ignores cells that are empty in both pages, and cells that depend on the run.
func TestCells(t *testing.T) {
	t.Parallel()
	books := make([]Book, 2)
	for i, text := range []string{
		"one  two\n /tmp/claudeless-screens-1/project\n" + "x\n",
		"one\n /tmp/claudeless-screens-22/project\n" + "  ⎿  Tip: ask\ny\n",
	} {
		books[i] = New(t.TempDir(), BookID{Version: "1", Renderer: RendererInline, Cols: 40, Rows: 5})
		p := Page{Tape: "t", Name: "p", State: "idle/start", Text: text}
		p.Slots = FindSlots(p.Lines(), nil)
		if err := books[i].Write(&p); err != nil {
			t.Fatal(err)
		}
	}
	got, err := compareCells(books[0], books[1])
	if err != nil {
		t.Fatal(err)
	}
	// The same: "one" and the masked directory; different: "two", x, y.
	want := []cellCount{{Page: "t.p", State: "idle/start", Same: 3 + len("<dir>"), Total: 3 + 3 + len("<dir>") + 2, Rows: []int{0, 2, 3}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := compareCells(books[0], books[0]); err != nil || got[0].Same != got[0].Total {
		t.Errorf("a book against itself: %v, %v", got, err)
	}
	if text := want[0].String(); text != "    8/   13  61.5 %" {
		t.Errorf("%q", text)
	}
}

// cellCount counts the cells of a page that are the same in two books, after masking. Cells that are empty in both
// are not counted.
type cellCount struct {
	Page  string `json:"page"` // TAPE.PAGE
	State string `json:"state"`
	Same  int    `json:"same"`
	Total int    `json:"all"`
	Rows  []int  `json:"rows,omitempty"` // rows that differ, from 0
}

// Add returns the sum of two counts.
func (c cellCount) Add(d cellCount) cellCount {
	return cellCount{Same: c.Same + d.Same, Total: c.Total + d.Total}
}

// String returns the counts and the percentage of equal cells. It is 100 % only if all cells are equal.
func (c cellCount) String() string {
	percent := 100.0
	if c.Total > 0 {
		percent = float64(1000*c.Same/c.Total) / 10
	}
	return fmt.Sprintf("%5d/%5d %5.1f %%", c.Same, c.Total, percent)
}

// compareCells compares the pages that both books contain, cell by cell.
func compareCells(a, b Book) ([]cellCount, error) {
	before, after, err := readPages(a, b)
	if err != nil {
		return nil, err
	}
	byName := pagesByName(after)
	var counts []cellCount
	for i := range before {
		if p := byName[before[i].TapeDotName()]; p != nil {
			counts = append(counts, countCells(&before[i], p))
		}
	}
	return counts, nil
}

func countCells(a, b *Page) cellCount {
	c := cellCount{Page: a.TapeDotName(), State: a.State}
	before, after := a.MaskedWithoutLogoAndTips(), b.MaskedWithoutLogoAndTips()
	rows := max(len(before), len(after))
	before, after = append(before, make([]string, rows-len(before))...), append(after, make([]string, rows-len(after))...)
	for row := range rows {
		x, y := []rune(before[row]), []rune(after[row])
		differs := false
		for col := range max(len(x), len(y)) {
			m, n := runeAt(x, col), runeAt(y, col)
			switch {
			case m == ' ' && n == ' ':
				continue
			case m == n:
				c.Same++
			default:
				differs = true
			}
			c.Total++
		}
		if differs {
			c.Rows = append(c.Rows, row)
		}
	}
	return c
}

// runeAt returns the character in a column; a row that is shorter continues with spaces.
func runeAt(row []rune, col int) rune {
	if col < len(row) {
		return row[col]
	}
	return ' '
}

package book

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// CompareCells ignores cells that are empty in both pages, and cells that depend on the run.
func TestCells(t *testing.T) {
	t.Parallel()
	books := make([]Book, 2)
	for i, text := range []string{
		"one  two\n /tmp/claudeless-screens-1/project\n" + "x\n",
		"one\n /tmp/claudeless-screens-22/project\n" + "  ⎿  Tip: ask\ny\n",
	} {
		books[i] = New(t.TempDir(), Key{Version: "1", Renderer: Inline, Cols: 40, Rows: 5})
		p := Page{Tape: "t", Name: "p", State: "idle/start", Text: text}
		p.Slots = FindSlots(p.Lines(), nil)
		if err := books[i].Write(&p); err != nil {
			t.Fatal(err)
		}
	}
	got, err := CompareCells(books[0], books[1])
	if err != nil {
		t.Fatal(err)
	}
	// The same: "one" and the masked directory; different: "two", x, y.
	want := []CellCount{{Page: "t.p", State: "idle/start", Same: 3 + len("<dir>"), Total: 3 + 3 + len("<dir>") + 2, Rows: []int{0, 2, 3}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := CompareCells(books[0], books[0]); err != nil || got[0].Same != got[0].Total {
		t.Errorf("a book against itself: %v, %v", got, err)
	}
	if text := want[0].String(); text != "    8/   13  61.5 %" {
		t.Errorf("%q", text)
	}
}

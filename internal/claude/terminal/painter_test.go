package terminal

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plainTerminal understands the sequences of the inline painter.
type plainTerminal struct {
	lines    []string // rows of the screen
	row, col int
}

func (p *plainTerminal) Write(data []byte) (int, error) {
	sequence := regexp.MustCompile(`^\x1b\[(\d*)([ABGHJK])`)
	for text := string(data); text != ""; {
		if m := sequence.FindStringSubmatch(text); m != nil {
			text = text[len(m[0]):]
			n, _ := strconv.Atoi(m[1])
			p.control(m[2], n)
			continue
		}
		switch text[0] {
		case '\r':
			p.col = 0
		case '\n':
			if p.row++; p.row == len(p.lines) {
				p.lines, p.row = append(p.lines[1:], ""), p.row-1
			}
		default:
			line := fmt.Sprintf("%-*s", p.col+1, p.lines[p.row])
			p.lines[p.row] = line[:p.col] + text[:1] + line[p.col+1:]
			p.col++
		}
		text = text[1:]
	}
	return len(data), nil
}

func (p *plainTerminal) control(name string, n int) {
	switch name {
	case "A":
		p.row = max(0, p.row-n)
	case "B":
		p.row = min(len(p.lines)-1, p.row+n)
	case "G":
		p.col = n - 1
	case "H":
		p.row, p.col = 0, 0
	case "J", "K":
		p.lines[p.row] = p.lines[p.row][:min(p.col, len(p.lines[p.row]))]
		if name == "J" {
			clear(p.lines[p.row+1:])
		}
	}
}

// TestInlinePainter: the terminal shows the end of the frame. If a row that has scrolled away changes, or if all rows fit
// again, it shows all that fits.
func TestInlinePainter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		const cols, rows = 20, 8
		screen := &plainTerminal{lines: make([]string, rows)}
		p := painter{w: screen}
		var all []string
		hidden := 0 // rows above the top of the terminal
		for step := range 40 {
			before := all
			all = append([]string{}, all[:random.IntN(len(all)+1)]...)
			for range 1 + random.IntN(rows) {
				all = append(all, strings.Repeat(fmt.Sprint(random.IntN(10)), 1+random.IntN(cols)))
			}
			same := 0
			for same < min(len(before), len(all)) && before[same] == all[same] {
				same++
			}
			if same < hidden || hidden > 0 && len(all) < rows {
				hidden = 0
			}
			hidden = max(hidden, len(all)-(rows-1))
			f := screenFrame{rows: all, bottomIndex: -1, cursorRow: random.IntN(len(all)), cursorCol: 1}
			if err := p.paint(f, cols, rows); err != nil {
				t.Fatal(err)
			}
			want := slices.Concat(all[hidden:], make([]string, rows-len(all)+hidden))
			if diff := cmp.Diff(want, screen.lines); diff != "" {
				t.Fatalf("seed %d, step %d (-want +got):\n%s", seed, step, diff)
			}
			if want := max(0, f.cursorRow-hidden); screen.row != want {
				t.Fatalf("seed %d, step %d: the cursor is in row %d, want %d", seed, step, screen.row, want)
			}
		}
	}
}

// TestInlineFooter: the text at the right end of the footer gets its own row if the row of the footer has too little room.
func TestInlineFooter(t *testing.T) {
	t.Parallel()
	for cols, want := range map[int][]string{
		20: {"  footer     right"},
		16: {"  footer right"},
		15: {"  footer", "        right"},
		6:  {"  foo…", "right"},
	} {
		if diff := cmp.Diff(want, inlineFooterRows("  footer", "right", cols)); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", cols, diff)
		}
	}
}

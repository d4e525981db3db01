package simtest

import (
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/screens/tape"
)

// Terminal runs claude in a pseudo-terminal; see [Claude.Terminal]. A failed method ends the test and shows the screen.
type Terminal struct {
	tb       testing.TB
	terminal *tape.ProgramInTerminal
}

// Screen is the content of a terminal at one moment.
type Screen struct {
	Text       string   // has one line for each row, without trailing spaces
	Cells      [][]Cell // contains one element for each row; a wide character is one cell of width 2
	Title      string
	Cols, Rows int
	// CursorCol and CursorRow are counted from 0.
	CursorCol, CursorRow int
	CursorVisible        bool
	Alternate            bool // the alternate screen is shown
}

// Cell is one character on the screen.
type Cell struct {
	Text  string // a space if the cell is empty
	Width int    // columns: 1 or 2
	Style string // escape sequence that selects the style; empty means the default
}

// Terminal starts the interactive claude with these arguments in a pseudo-terminal of 110 columns and 36 rows. The
// terminal is closed at the end of the test.
func (c *Claude) Terminal(args ...string) *Terminal {
	tb := c.script.tb
	tb.Helper()
	terminal, err := tape.StartProgramInTerminal(tb.Context(), tape.ProgramInTerminalOptions{
		Path: c.Path, Args: args, Env: c.Env(), Cols: 110, Rows: 36, Clock: realTerminalClock{},
	})
	if err != nil {
		tb.Fatalf("simtest: starting claude in a terminal: %v", err)
	}
	tb.Cleanup(func() { terminal.StopProgram() }) // claude must exit before the end of the test checks the run
	return &Terminal{tb: tb, terminal: terminal}
}

// WaitFor waits until the screen contains text, for 30 seconds at most.
func (t *Terminal) WaitFor(text string) {
	t.tb.Helper()
	t.failOnError(t.terminal.PerformStep(t.tb.Context(), tape.Step{Wait: text, TimeoutMS: 30_000}))
}

// Type types text and waits until the screen shows it, for 3 seconds at most.
func (t *Terminal) Type(text string) {
	t.tb.Helper()
	t.failOnError(t.terminal.PerformStep(t.tb.Context(), tape.Step{Type: text}))
}

// Press presses keys such as "Enter", "Down", "Esc", "C-c" and "BTab", or characters.
func (t *Terminal) Press(keys ...string) {
	t.tb.Helper()
	t.failOnError(t.terminal.PerformStep(t.tb.Context(), tape.Step{Key: strings.Join(keys, " ")}))
}

// Resize changes the size of the terminal.
func (t *Terminal) Resize(cols, rows int) {
	t.tb.Helper()
	t.failOnError(t.terminal.Resize(cols, rows))
}

// Screen returns the current content of the terminal.
func (t *Terminal) Screen() Screen {
	s := t.terminal.Screen()
	screen := Screen{
		Text: s.TextWithAllRows(), Title: s.Title, Cols: s.Cols, Rows: s.Rows, Alternate: s.Alternate,
		CursorCol: s.Cursor.Col, CursorRow: s.Cursor.Row, CursorVisible: s.Cursor.Visible,
	}
	for _, row := range s.Cells {
		cells := make([]Cell, len(row))
		for i, c := range row {
			cells[i] = Cell(c)
		}
		screen.Cells = append(screen.Cells, cells)
	}
	return screen
}

func (t *Terminal) failOnError(err error) {
	t.tb.Helper()
	if err != nil {
		t.tb.Fatalf("simtest: terminal: %v", err)
	}
}

type realTerminalClock struct{}

func (realTerminalClock) Now() time.Time { return time.Now() }

func (realTerminalClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

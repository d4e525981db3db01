// Package emulator interprets the output of a terminal program and keeps the screen that a user would see.
// [StartProgram] runs such a program in a pseudo-terminal, as its controlling terminal.
//
// The terminal itself is a library that only this package uses. An [Emulator] has only five methods, so that the
// library can be replaced. A filter in front of it removes control strings (OSC, DCS, APC, PM, SOS) and bytes that are
// not UTF-8, keeps titles, and makes the result independent of how the output is divided into writes. One difference
// from tmux is known: the library loses a wide character that does not fit into the last column.
package emulator

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

const maxUnreadReplyBytes = 4 << 10

// Emulator is a terminal without a display. All methods may be called concurrently. Its memory is bounded: lines that
// scroll off the main screen are not kept, and the library keeps at most 10,000 lines of the alternate screen.
type Emulator struct {
	mu            sync.Mutex
	terminal      *vt.Emulator
	filter        outputFilter
	modes         map[ansi.Mode]bool
	cursorVisible bool
	replies       []byte
}

// New returns an emulator with an empty screen of this size.
func New(cols, rows int) *Emulator {
	e := &Emulator{terminal: vt.NewEmulator(cols, rows), modes: map[ansi.Mode]bool{}, cursorVisible: true}
	e.terminal.SetScrollbackSize(1)
	if replies, ok := e.terminal.InputPipe().(io.Closer); ok {
		_ = replies.Close() // the library blocks until its replies are read
	}
	e.terminal.SetCallbacks(vt.Callbacks{
		CursorVisibility: func(visible bool) { e.cursorVisible = visible },
		EnableMode:       func(mode ansi.Mode) { e.modes[mode] = true },
		DisableMode:      func(mode ansi.Mode) { delete(e.modes, mode) },
	})
	e.filter.terminal = e.terminal // fails only after Close, which is never called
	e.registerQueryHandlers()
	return e
}

func (e *Emulator) registerQueryHandlers() {
	reply := func(cmd int, text func(params ansi.Params) string) {
		e.terminal.RegisterCsiHandler(cmd, func(params ansi.Params) bool {
			if t := text(params); len(e.replies)+len(t) <= maxUnreadReplyBytes {
				e.replies = append(e.replies, t...)
			}
			return true
		})
	}
	reply('c', func(ansi.Params) string { return "\x1b[?1;2c" }) // a VT100 with advanced video, as tmux says
	reply(ansi.Command('>', 0, 'c'), func(ansi.Params) string { return "\x1b[>84;0;0c" })
	reply(ansi.Command('>', 0, 'q'), func(ansi.Params) string { return "" })
	reply('n', func(params ansi.Params) string {
		switch n, _, _ := params.Param(0, 0); n {
		case 5:
			return "\x1b[0n"
		case 6:
			at := e.terminal.CursorPosition()
			return fmt.Sprintf("\x1b[%d;%dR", at.Y+1, at.X+1)
		}
		return ""
	})
}

// Write interprets output of the program. It accepts any bytes and never fails.
func (e *Emulator) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.filter.write(p)
	return len(p), nil
}

// Resize changes the size of the screen.
func (e *Emulator) Resize(cols, rows int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.filter.flush()
	e.terminal.Resize(cols, rows)
}

// TakeReplies returns the terminal's answers to the program's queries since the last call of Replies; nil means none. The
// caller passes them to the program's input.
func (e *Emulator) TakeReplies() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.replies
	e.replies = nil
	return r
}

// Modes returns the modes that the program has set for the terminal's input.
func (e *Emulator) Modes() Modes {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Modes{
		BracketedPaste: e.modes[ansi.ModeBracketedPaste], CursorKeys: e.modes[ansi.ModeCursorKeys], Focus: e.modes[ansi.ModeFocusEvent],
		Mouse: e.modes[ansi.ModeMouseNormal] || e.modes[ansi.ModeMouseButtonEvent] || e.modes[ansi.ModeMouseAnyEvent],
	}
}

// Modes are terminal modes that a program sets. They determine which bytes keys, pastes and the mouse send.
type Modes struct {
	BracketedPaste bool // pastes are marked
	CursorKeys     bool // cursor keys send ESC O instead of ESC [
	Mouse          bool // the mouse is reported
	Focus          bool // focus and its loss are reported
}

// Screen returns a copy of the screen.
func (e *Emulator) Screen() Screen {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.filter.flush()
	at := e.terminal.CursorPosition()
	s := Screen{
		Cols: e.terminal.Width(), Rows: e.terminal.Height(), Title: e.filter.title, Alternate: e.terminal.IsAltScreen(),
		Cursor: Cursor{Col: at.X, Row: at.Y, Visible: e.cursorVisible},
	}
	s.Cells = make([][]Cell, s.Rows)
	for y := range s.Cells {
		s.Cells[y] = e.row(y, s.Cols)
	}
	return s
}

func (e *Emulator) row(y, cols int) []Cell {
	row := make([]Cell, 0, cols)
	for x := 0; x < cols; {
		cell := e.terminal.CellAt(x, y)
		c := Cell{Text: " ", Width: 1}
		if cell != nil && cell.Width > 0 {
			c = Cell{Text: cell.Content, Width: cell.Width}
			if !cell.Style.IsZero() {
				c.Style = cell.Style.String()
			}
			if strings.TrimSpace(c.Text) == "" && c.Width == 1 && c.Text != "\u00a0" {
				c.Text = " "
			}
		}
		row = append(row, c)
		x += c.Width
	}
	return row
}

// Screen is the content of a terminal at one moment.
type Screen struct {
	Cols      int    `json:"cols"`
	Rows      int    `json:"rows"`
	Cursor    Cursor `json:"cursor"`
	Title     string `json:"title"`
	Alternate bool   `json:"alternate"` // the alternate screen is shown
	// Cells has Rows rows. A wide character is one cell of width 2, so a row may have fewer than Cols cells.
	Cells [][]Cell `json:"cells"`
}

// Cursor is a position on the screen, counted from 0.
type Cursor struct {
	Col     int  `json:"col"`
	Row     int  `json:"row"`
	Visible bool `json:"visible"`
}

// Cell is one character on the screen.
type Cell struct {
	Text  string `json:"text"`  // one grapheme; a space for an empty cell
	Width int    `json:"width"` // columns: 1 or 2
	Style string `json:"style"` // the SGR sequence that selects its style; empty means none
}

// Line returns a row as text, without the spaces at its end.
func (s Screen) Line(row int) string {
	var b strings.Builder
	for _, c := range s.Cells[row] {
		b.WriteString(c.Text)
	}
	return strings.TrimRight(b.String(), " ")
}

// Lines returns all rows as text.
func (s Screen) Lines() []string {
	lines := make([]string, len(s.Cells))
	for y := range s.Cells {
		lines[y] = s.Line(y)
	}
	return lines
}

// TextWithAllRows returns the screen as tmux capture-pane -p prints it: a line for each row.
func (s Screen) TextWithAllRows() string { return strings.Join(s.Lines(), "\n") + "\n" }

// TextForMessages returns the screen for messages: a bar precedes each row, and empty rows at the end are left out.
func (s Screen) TextForMessages() string {
	return "  | " + strings.ReplaceAll(strings.TrimRight(s.TextWithAllRows(), "\n"), "\n", "\n  | ") + "\n"
}

// ANSI returns the screen as text with SGR sequences, one line per row. No style continues from one line to the next.
func (s Screen) ANSI() string {
	const reset = "\x1b[m"
	var b strings.Builder
	for _, row := range s.Cells {
		end := len(row)
		for end > 0 && row[end-1] == (Cell{Text: " ", Width: 1}) {
			end--
		}
		style := ""
		for _, c := range row[:end] {
			if c.Style != style {
				if style != "" {
					b.WriteString(reset)
				}
				b.WriteString(c.Style)
				style = c.Style
			}
			b.WriteString(c.Text)
		}
		if style != "" {
			b.WriteString(reset)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// painter writes frames to a terminal. It writes only what has changed.
type painter struct {
	w     io.Writer
	full  bool // the alternate screen is on
	title string

	last     []string // the rows of the screen if full, otherwise the live rows
	row, col int      // of the cursor in last
}

const (
	enterScreen = "\x1b[?1049h\x1b[2J\x1b[H"
	leaveScreen = "\x1b[?1049l"
	keysOn      = "\x1b[?2004h\x1b[?25l"
	keysOff     = "\x1b[?2004l\x1b[?25h"
)

// open prepares the terminal: pasted texts are marked, and the cursor is hidden.
func (p *painter) open() error { return p.write(keysOn) }

// enterFull switches to the alternate screen.
func (p *painter) enterFull() error {
	p.full, p.last = true, nil
	return p.write(enterScreen)
}

// close restores what open and enterFull have changed. Inline rows stay.
func (p *painter) close() error {
	var b strings.Builder
	if p.full {
		b.WriteString(leaveScreen)
	} else if len(p.last) > 0 {
		p.moveBelow(&b)
	}
	b.WriteString(keysOff)
	if p.title != "" {
		b.WriteString("\x1b]0;\a")
	}
	p.full, p.last = false, nil
	return p.write(b.String())
}

// moveBelow moves the cursor to a new row after the inline rows.
func (p *painter) moveBelow(b *strings.Builder) {
	if down := len(p.last) - 1 - p.row; down > 0 {
		fmt.Fprintf(b, "\x1b[%dB", down)
	}
	b.WriteString("\r\n")
}

// forget makes the next frame draw everything, as after a change of size.
func (p *painter) forget() { p.last = nil }

// setTitle sets the title of the window.
func (p *painter) setTitle(title string) error {
	if title == p.title {
		return nil
	}
	p.title = title
	return p.write("\x1b]0;" + title + "\a")
}

// paint shows a frame on a terminal of this size.
func (p *painter) paint(f frame, cols, rows int) error {
	if p.full {
		return p.paintFull(f, cols, rows)
	}
	return p.paintInline(f, rows)
}

// paintFull draws all rows of the screen: the end of the text, and the input field on the
// last rows.
func (p *painter) paintFull(f frame, cols, rows int) error {
	all := append(append([]string{}, f.done...), f.live...)
	row, bottom := f.row+len(f.done), len(all)
	if f.bottom >= 0 {
		bottom = len(f.done) + f.bottom
	}
	if over := len(all) - rows; over > 0 {
		all, row = all[over:], max(0, row-over)
		if f.blankTop && (strings.HasPrefix(all[0], answerGlyph) || strings.HasPrefix(all[0], promptGlyph)) {
			all[0] = "" // as the real CLI draws it
		}
	} else {
		if row >= bottom {
			row -= over
		}
		all = slices.Insert(all, bottom, make([]string, -over)...)
	}
	var b strings.Builder
	for i, text := range all {
		if i >= len(p.last) || p.last[i] != text {
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[K%s", i+1, cut(text, cols)) // after a full row, the sequence would erase its last column
		}
	}
	if b.Len() == 0 && p.row == row && p.col == f.col {
		return nil
	}
	fmt.Fprintf(&b, "\x1b[%d;%dH", row+1, min(f.col, cols-1)+1)
	p.last, p.row, p.col = all, row, f.col
	return p.write(b.String())
}

// paintInline draws the settled rows once and the live ones below them.
func (p *painter) paintInline(f frame, rows int) error {
	live, row := f.live, f.row
	if over := len(live) - rows + 1; over > 0 {
		live, row = live[over:], max(0, row-over)
	}
	if len(f.done) == 0 && p.row == row && p.col == f.col && slices.Equal(live, p.last) {
		return nil
	}
	var b strings.Builder
	if p.row > 0 && len(p.last) > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.row)
	}
	b.WriteString("\r\x1b[J")
	for _, text := range f.done {
		b.WriteString(text + "\r\n")
	}
	b.WriteString(strings.Join(live, "\r\n"))
	if up := len(live) - 1 - row; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	fmt.Fprintf(&b, "\x1b[%dG", f.col+1)
	p.last, p.row, p.col = live, row, f.col
	return p.write(b.String())
}

func (p *painter) write(text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(p.w, text)
	return err
}

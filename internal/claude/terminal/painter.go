package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// painter writes frames to a terminal. It writes only what has changed.
type painter struct {
	w          io.Writer
	fullScreen bool // the alternate screen is on
	title      string

	lastRows             []string // all rows of a full screen, otherwise the live rows
	cursorRow, cursorCol int      // position of the cursor in lastRows
}

const (
	enterScreen     = "\x1b[?1049h\x1b[2J\x1b[H"
	leaveScreen     = "\x1b[?1049l"
	keysOnSequence  = "\x1b[?2004h\x1b[?25l"
	keysOffSequence = "\x1b[?2004l\x1b[?25h"
)

// open prepares the terminal: it enables the marking of pasted text and hides the cursor.
func (p *painter) open() error { return p.write(keysOnSequence) }

func (p *painter) enterFull() error {
	p.fullScreen, p.lastRows = true, nil
	return p.write(enterScreen)
}

// close restores the settings that open and enterFull have changed. Inline rows stay on the terminal.
func (p *painter) close() error {
	var b strings.Builder
	if p.fullScreen {
		b.WriteString(leaveScreen)
	} else if len(p.lastRows) > 0 {
		p.moveBelow(&b)
	}
	b.WriteString(keysOffSequence)
	if p.title != "" {
		b.WriteString("\x1b]0;\a")
	}
	p.fullScreen, p.lastRows = false, nil
	return p.write(b.String())
}

// moveBelow moves the cursor to a new row after the inline rows.
func (p *painter) moveBelow(b *strings.Builder) {
	if down := len(p.lastRows) - 1 - p.cursorRow; down > 0 {
		fmt.Fprintf(b, "\x1b[%dB", down)
	}
	b.WriteString("\r\n")
}

// redrawAll makes the next frame draw every row, as after a change of size.
func (p *painter) redrawAll() { p.lastRows = nil }

func (p *painter) setTitle(title string) error {
	if title == p.title {
		return nil
	}
	p.title = title
	return p.write("\x1b]0;" + title + "\a")
}

func (p *painter) paint(f frame, cols, rows int) error {
	if p.fullScreen {
		return p.paintFull(f, cols, rows)
	}
	return p.paintInline(f, rows)
}

// paintFull draws all rows of the screen: the last rows of the text, and the input field at the bottom.
func (p *painter) paintFull(f frame, cols, rows int) error {
	all := append(append([]string{}, f.settledRows...), f.liveRows...)
	row, bottom := f.cursorRow+len(f.settledRows), len(all)
	if f.bottomIndex >= 0 {
		bottom = len(f.settledRows) + f.bottomIndex
	}
	if over := len(all) - rows; over > 0 {
		all, row = all[over:], max(0, row-over)
		if f.blankTop && (strings.HasPrefix(all[0], answerGlyph) || strings.HasPrefix(all[0], promptGlyph)) {
			all[0] = "" // the real CLI draws this row empty
		}
	} else {
		if row >= bottom {
			row -= over
		}
		all = slices.Insert(all, bottom, make([]string, -over)...)
	}
	var b strings.Builder
	for i, text := range all {
		if i >= len(p.lastRows) || p.lastRows[i] != text {
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[K%s", i+1, truncate(text, cols)) // after a full row, the sequence would erase its last column
		}
	}
	if b.Len() == 0 && p.cursorRow == row && p.cursorCol == f.cursorCol {
		return nil
	}
	fmt.Fprintf(&b, "\x1b[%d;%dH", row+1, min(f.cursorCol, cols-1)+1)
	p.lastRows, p.cursorRow, p.cursorCol = all, row, f.cursorCol
	return p.write(b.String())
}

// paintInline draws each settled row once and the live rows below them.
func (p *painter) paintInline(f frame, rows int) error {
	live, row := f.liveRows, f.cursorRow
	if over := len(live) - rows + 1; over > 0 {
		live, row = live[over:], max(0, row-over)
	}
	if len(f.settledRows) == 0 && p.cursorRow == row && p.cursorCol == f.cursorCol && slices.Equal(live, p.lastRows) {
		return nil
	}
	var b strings.Builder
	if p.cursorRow > 0 && len(p.lastRows) > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.cursorRow)
	}
	b.WriteString("\r\x1b[J")
	for _, text := range f.settledRows {
		b.WriteString(text + "\r\n")
	}
	b.WriteString(strings.Join(live, "\r\n"))
	if up := len(live) - 1 - row; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	fmt.Fprintf(&b, "\x1b[%dG", f.cursorCol+1)
	p.lastRows, p.cursorRow, p.cursorCol = live, row, f.cursorCol
	return p.write(b.String())
}

func (p *painter) write(text string) error {
	_, err := io.WriteString(p.w, text)
	return err
}

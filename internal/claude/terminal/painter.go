package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

type painter struct {
	w          io.Writer
	fullScreen bool // the alternate screen is on
	title      string

	lastRows             []string
	cursorRow, cursorCol int  // position of the cursor in lastRows
	hiddenRows           int  // inline rows that have scrolled away
	resized              bool // the size of the terminal has changed
}

const (
	enterScreenSequence       = "\x1b[?1049h\x1b[2J\x1b[H"
	leaveScreenSequence       = "\x1b[?1049l"
	bracketedPasteOnSequence  = "\x1b[?2004h\x1b[?25l"
	bracketedPasteOffSequence = "\x1b[?2004l\x1b[?25h"
)

func (p *painter) enableBracketedPaste() error { return p.writeToTerminal(bracketedPasteOnSequence) }

func (p *painter) enterFullScreen() error {
	p.fullScreen, p.lastRows = true, nil
	return p.writeToTerminal(enterScreenSequence)
}

func (p *painter) restoreTerminalState() error {
	var b strings.Builder
	if p.fullScreen {
		b.WriteString(leaveScreenSequence)
	} else if len(p.lastRows) > 0 {
		fmt.Fprintf(&b, "\x1b[%dB\r", len(p.lastRows)-p.cursorRow)
	}
	b.WriteString(bracketedPasteOffSequence)
	if p.title != "" {
		b.WriteString("\x1b]0;\a")
	}
	p.fullScreen, p.lastRows = false, nil
	return p.writeToTerminal(b.String())
}

func (p *painter) setTitle(title string) error {
	if title == p.title {
		return nil
	}
	p.title = title
	return p.writeToTerminal("\x1b]0;" + title + "\a")
}

func (p *painter) paint(f screenFrame, cols, rows int) error {
	if p.fullScreen {
		return p.paintChangedFullScreenRows(f, cols, rows)
	}
	return p.paintInline(f, cols, rows)
}

// paintChangedFullScreenRows draws all rows of the screen: the last rows of the text, and the input field at the bottom.
func (p *painter) paintChangedFullScreenRows(f screenFrame, cols, rows int) error {
	all := slices.Clone(f.rows)
	row, bottom := f.cursorRow, len(all)
	if f.bottomIndex >= 0 {
		bottom = f.bottomIndex
	}
	if covered := min(len(all)-rows, f.overlayRows); covered > 0 {
		all, bottom, row = slices.Delete(all, bottom-covered, bottom), bottom-covered, row-covered
	}
	if over := len(all) - rows; over > 0 {
		all, row = all[over:], max(0, row-over)
		if slices.Contains(f.blocks, over+1) {
			all[0] = "" // the real CLI does not draw the last row of a block alone
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
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[K%s", i+1, truncateRow(text, cols)) // erasing a full row later would clear its last column
		}
	}
	if b.Len() == 0 && p.cursorRow == row && p.cursorCol == f.cursorCol {
		return nil
	}
	fmt.Fprintf(&b, "\x1b[%d;%dH", row+1, min(f.cursorCol, cols-1)+1)
	p.lastRows, p.cursorRow, p.cursorCol = all, row, f.cursorCol
	return p.writeToTerminal(b.String())
}

// paintInline draws the changed rows below the earlier content of the terminal. If a row that has scrolled out must
// change, or if all rows fit on the screen again, it clears the screen and draws all rows.
func (p *painter) paintInline(f screenFrame, cols, rows int) error {
	before, first, row := p.lastRows, 0, max(f.cursorRow, p.hiddenRows)
	for first < min(len(before), len(f.rows)) && before[first] == f.rows[first] {
		first++
	}
	if first == len(before) && first == len(f.rows) && p.cursorRow == row && p.cursorCol == f.cursorCol {
		return nil
	}
	var b strings.Builder
	switch {
	case p.resized || first < p.hiddenRows || p.hiddenRows > 0 && len(f.rows) < rows:
		b.WriteString("\x1b[H\x1b[J")
		before, first, p.hiddenRows = nil, 0, 0
	case first < p.cursorRow:
		fmt.Fprintf(&b, "\x1b[%dA", p.cursorRow-first)
	case first > p.cursorRow:
		fmt.Fprintf(&b, "\x1b[%dB", first-p.cursorRow)
	}
	b.WriteString("\r")
	for i, text := range f.rows[first:] {
		if i += first; i >= len(before) || before[i] != text {
			b.WriteString("\x1b[K" + truncateRow(text, cols))
		}
		b.WriteString("\r\n")
	}
	b.WriteString("\x1b[J")
	p.hiddenRows = max(p.hiddenRows, len(f.rows)-rows+1) // the cursor needs one more row
	row = max(f.cursorRow, p.hiddenRows)
	fmt.Fprintf(&b, "\x1b[%dA\x1b[%dG", len(f.rows)-row, min(f.cursorCol, cols-1)+1)
	p.lastRows, p.cursorRow, p.cursorCol, p.resized = f.rows, row, f.cursorCol, false
	return p.writeToTerminal(b.String())
}

func (p *painter) writeToTerminal(text string) error {
	_, err := io.WriteString(p.w, text)
	return err
}

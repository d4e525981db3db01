package emulator

import "strings"

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

// Text returns the screen as tmux capture-pane -p prints it: a line for each row.
func (s Screen) Text() string { return strings.Join(s.Lines(), "\n") + "\n" }

// Frame returns the rows down to the last one that is not empty, each with a bar in front of it, for messages.
func (s Screen) Frame() string {
	lines := s.Lines()
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return "  | " + strings.Join(lines, "\n  | ") + "\n"
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

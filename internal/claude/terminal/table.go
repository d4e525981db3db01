package terminal

import (
	"regexp"
	"slices"
	"strings"
)

type markdownTable struct {
	header []string
	align  []string // delimiters of the columns, such as ":-:" for centered cells
	body   [][]string
}

// countTableLines returns the number of lines of the table at the start of lines; 0 means none.
func countTableLines(lines []string) int {
	delimiter := regexp.MustCompile(`^ *\|? *:?-+:? *(\| *:?-+:? *)*\|? *$`)
	if len(lines) < 2 || !strings.Contains(lines[0], "|") || !delimiter.MatchString(lines[1]) || len(tableCells(lines[0])) != len(tableCells(lines[1])) {
		return 0
	}
	n := 2
	for n < len(lines) && strings.Contains(lines[n], "|") {
		n++
	}
	return n
}

func tableCells(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(removeMarkdownFromLine(strings.ReplaceAll(cells[i], "\x00", "|")))
	}
	return cells
}

func parseMarkdownTable(lines []string) *markdownTable {
	t := &markdownTable{header: tableCells(lines[0]), align: tableCells(lines[1])}
	for _, line := range lines[2:] {
		cells := append(tableCells(line), make([]string, len(t.header))...)
		t.body = append(t.body, cells[:len(t.header)])
	}
	return t
}

func (t *markdownTable) columnWidths(width int) []int {
	room := width - 1 - 3*len(t.header)
	words, full := make([]int, len(t.header)), make([]int, len(t.header))
	var sumWords, sumFull int
	const least = 3
	for i := range t.header {
		words[i], full[i] = least, least
		for _, row := range append([][]string{t.header}, t.body...) {
			full[i] = max(full[i], textWidth(row[i]))
			for word := range strings.FieldsSeq(row[i]) {
				words[i] = max(words[i], textWidth(word))
			}
		}
		sumWords, sumFull = sumWords+words[i], sumFull+full[i]
	}
	switch {
	case sumFull <= room:
		return full
	case sumWords > room:
		return shareWidthFairly(words, room)
	}
	for i := range words {
		words[i] += (full[i] - words[i]) * (room - sumWords) / (sumFull - sumWords)
	}
	return words
}

func shareWidthFairly(wanted []int, room int) []int {
	widths := slices.Clone(wanted)
	sorted := slices.Sorted(slices.Values(wanted))
	for i, w := range sorted {
		if fair := max(3, room/(len(sorted)-i)); w > fair {
			for j := range widths {
				widths[j] = min(widths[j], fair)
			}
			break
		}
		room -= w
	}
	return widths
}

func (t *markdownTable) rows(cols int) []string {
	const maxCellRows, margin = 4, 4
	widths := t.columnWidths(cols - margin)
	line := func(left, middle, right string) string {
		var parts []string
		for _, w := range widths {
			parts = append(parts, strings.Repeat(ruleGlyph, w+2))
		}
		return left + strings.Join(parts, middle) + right
	}
	rows := []string{line("┌", "┬", "┐")}
	for i, cells := range append([][]string{t.header}, t.body...) {
		if i > 0 {
			rows = append(rows, line("├", "┼", "┤"))
		}
		drawn := t.drawRow(cells, widths, i == 0)
		if len(drawn) > maxCellRows {
			return t.rowsWithoutColumns(cols - margin)
		}
		rows = append(rows, drawn...)
	}
	return append(rows, line("└", "┴", "┘"))
}

func (t *markdownTable) drawRow(cells []string, widths []int, isHeader bool) []string {
	var columns [][]string
	height := 0
	for i, cell := range cells {
		columns = append(columns, wrapCell(cell, widths[i]))
		height = max(height, len(columns[i]))
	}
	rows := make([]string, height)
	for i, column := range columns {
		above := (height - len(column)) / 2
		for row := range rows {
			text := ""
			if at := row - above; at >= 0 && at < len(column) {
				text = column[at]
			}
			rows[row] += "│ " + alignCell(text, t.align[i], widths[i], isHeader) + " "
		}
	}
	for i := range rows {
		rows[i] += "│"
	}
	return rows
}

// wrapCell breaks a cell into rows. As in the real CLI, the space at a break stays at the end of its row, if it fits.
func wrapCell(text string, width int) []string {
	rows := []string{""}
	last := &rows[0]
	add := func(part string) {
		if textWidth(*last)+textWidth(part) > width && *last != "" {
			rows = append(rows, "")
			last = &rows[len(rows)-1]
		}
		*last += part
	}
	for i, word := range strings.Fields(text) {
		if i > 0 {
			add(" ")
		}
		if textWidth(word) <= width {
			add(word)
			continue
		}
		for _, r := range word {
			add(string(r))
		}
	}
	return rows
}

func alignCell(text, align string, width int, isHeader bool) string {
	room := max(0, width-textWidth(text))
	left := 0
	switch {
	case isHeader || strings.HasPrefix(align, ":") && strings.HasSuffix(align, ":"):
		left = room / 2
	case strings.HasSuffix(align, ":"):
		left = room
	}
	return strings.Repeat(" ", left) + text + strings.Repeat(" ", room-left)
}

// rowsWithoutColumns draws a table without columns: each cell follows the header of its column.
func (t *markdownTable) rowsWithoutColumns(width int) (rows []string) {
	const longestRule, more = 40, "  "
	for i, cells := range t.body {
		if i > 0 {
			rows = append(rows, strings.Repeat(ruleGlyph, min(width-1, longestRule)))
		}
		for j, cell := range cells {
			label := t.header[j] + ":"
			first := wrapText(cell, width-textWidth(label)-2)[0]
			rows = append(rows, strings.TrimSpace(label+" "+first))
			if rest := strings.TrimSpace(strings.TrimPrefix(cell, first)); rest != "" {
				rows = append(rows, wrapWithFirstPrefix(more, rest, width-1)...)
			}
		}
	}
	return rows
}

// markdownWithoutMarks returns a reply as a screen shows it: without the marks of Markdown, and with tables in boxes.
func markdownWithoutMarks(text string, maxTableCols int) string {
	var rows []string
	fence := ""
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		table := countTableLines(lines[i:])
		switch mark := strings.TrimSpace(line); {
		case fence != "" && mark == fence:
			fence = ""
		case fence != "":
			rows = append(rows, line)
		case strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~"):
			fence = mark[:3]
		case table > 0:
			rows = append(rows, parseMarkdownTable(lines[i:i+table]).rows(maxTableCols)...)
			i += table - 1
		default:
			rows = append(rows, removeMarkdownFromLine(line))
		}
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n ")
}

// removeMarkdownFromLine removes the marks of Markdown from a line. The line must not be part of a code block.
func removeMarkdownFromLine(line string) string {
	if !strings.ContainsAny(line, "#*_+>`[\\") {
		return line
	}
	for _, mark := range [][2]string{{`^#{1,6} +`, ""}, {`^(\s*)[*+] +`, "$1- "}, {`^> ?`, "▎ "}} {
		line = regexp.MustCompile(mark[0]).ReplaceAllString(line, mark[1])
	}
	parts := strings.Split(line, "`")
	for i := 0; i < len(parts); i += 2 { // the other parts are code
		for _, mark := range [][2]string{
			{`\[([^\]]+)\]\(([^)\s]+)\)`, "$1 ($2)"},
			{`(\*\*|__)(\S(?:.*?\S)?)(\*\*|__)`, "$2"},
			{`(^|[^\\*])\*(\w(?:[^*]*\w)?)\*`, "$1$2"},
			{`(^|\W)_(\w(?:[^_]*\w)?)_($|\W)`, "$1$2$3"},
			{`\\([*_#>\[\]])`, "$1"},
		} {
			parts[i] = regexp.MustCompile(mark[0]).ReplaceAllString(parts[i], mark[1])
		}
	}
	return strings.Join(parts, "")
}

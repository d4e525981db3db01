package terminal

import (
	"regexp"
	"slices"
	"strings"
)

// plainMarkdown returns a reply as the screen shows it: without the marks of headings, emphasis and code, and with tables
// drawn in boxes.
func plainMarkdown(text string) string {
	var rows []string
	fence := ""
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch mark := strings.TrimSpace(line); {
		case fence != "" && mark == fence:
			fence = ""
		case fence != "":
			rows = append(rows, line)
		case strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~"):
			fence = mark[:3]
		case i+1 < len(lines) && strings.Contains(line, "|") && len(tableAligns(lines[i+1])) == len(tableCells(line)):
			end := i + 2
			for end < len(lines) && strings.Contains(lines[end], "|") {
				end++
			}
			rows = append(rows, drawTable(lines[i:end])...)
			i = end - 1
		default:
			rows = append(rows, plainLine(line))
		}
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n ")
}

// plainLine removes the marks of a line outside of code blocks.
func plainLine(line string) string {
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

func tableCells(line string) []string {
	cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|"), "|")
	for i := range cells {
		cells[i] = plainLine(strings.TrimSpace(cells[i]))
	}
	return cells
}

// tableAligns returns the alignment of each column ('l', 'c', 'r'); nil means that the line does not follow a table's header.
func tableAligns(line string) (aligns []byte) {
	for _, cell := range tableCells(line) {
		if !regexp.MustCompile(`^:?-+:?$`).MatchString(cell) {
			return nil
		}
		switch left, right := strings.HasPrefix(cell, ":"), strings.HasSuffix(cell, ":"); {
		case left && right:
			aligns = append(aligns, 'c')
		case right:
			aligns = append(aligns, 'r')
		default:
			aligns = append(aligns, 'l')
		}
	}
	return aligns
}

// drawTable draws a table with lines between its rows. Headers are centered.
func drawTable(lines []string) (rows []string) {
	aligns := tableAligns(lines[1])
	const minWidth = 3
	widths := slices.Repeat([]int{minWidth}, len(aligns))
	var table [][]string
	for i, line := range lines {
		if cells := tableCells(line); i != 1 {
			table = append(table, append(cells, make([]string, len(aligns))...)[:len(aligns)])
			for col, cell := range table[len(table)-1] {
				widths[col] = max(widths[col], textWidth(cell))
			}
		}
	}
	rule := func(left, middle, right string) string {
		var parts []string
		for _, n := range widths {
			parts = append(parts, strings.Repeat(ruleGlyph, n+2))
		}
		return left + strings.Join(parts, middle) + right
	}
	rows = []string{rule("┌", "┬", "┐")}
	for i, cells := range table {
		for col, cell := range cells {
			free := widths[col] - textWidth(cell)
			before := map[byte]int{'c': free / 2, 'r': free}[aligns[col]]
			if i == 0 {
				before = free / 2
			}
			cells[col] = " " + strings.Repeat(" ", before) + cell + strings.Repeat(" ", free-before) + " "
		}
		rows = append(rows, "│"+strings.Join(cells, "│")+"│", rule("├", "┼", "┤"))
	}
	rows[len(rows)-1] = rule("└", "┴", "┘")
	return rows
}

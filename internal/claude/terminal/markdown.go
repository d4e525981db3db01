package terminal

import (
	"regexp"
	"strings"
)

// plainMarkdown returns a reply as a screen shows it: without the marks of Markdown, and with tables in boxes.
func plainMarkdown(text string, cols int) string {
	var rows []string
	fence := ""
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		table := tableLength(lines[i:])
		switch mark := strings.TrimSpace(line); {
		case fence != "" && mark == fence:
			fence = ""
		case fence != "":
			rows = append(rows, line)
		case strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~"):
			fence = mark[:3]
		case table > 0:
			rows = append(rows, newTable(lines[i:i+table]).rows(cols)...)
			i += table - 1
		default:
			rows = append(rows, plainLine(line))
		}
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n ")
}

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

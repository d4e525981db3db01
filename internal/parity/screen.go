package parity

import (
	"fmt"
	"strings"
)

const (
	// screenLines is the number of lines for items that need attention.
	screenLines = 20
	// minItemLines is the minimum number of lines of an item.
	minItemLines = 4
	// screenWidth is the length at which a line is truncated.
	screenWidth = 160
)

// OneScreen shortens the texts of a report to one screen: it truncates long lines and long texts, and counts the
// omitted texts.
func OneScreen(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	each := max(minItemLines, screenLines/len(texts))
	var b strings.Builder
	used, cut := 0, false
	for i, text := range texts {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if used += min(len(lines), each); used > screenLines {
			fmt.Fprintf(&b, "… %d more like these\n", len(texts)-i)
			cut = true
			break
		}
		for j, line := range lines {
			if j == each-1 && len(lines) > each {
				fmt.Fprintf(&b, "  … %d more lines\n", len(lines)-j)
				cut = true
				break
			}
			if r := []rune(line); len(r) > screenWidth {
				line, cut = string(r[:screenWidth])+"…", true
			}
			b.WriteString(line + "\n")
		}
	}
	if cut {
		b.WriteString("hint: -v prints the whole report\n")
	}
	return b.String()
}

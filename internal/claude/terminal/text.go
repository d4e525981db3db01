package terminal

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// emptyColumnsRightOfErrorOrLabel is the number of empty columns after an error of the API or a truncated label.
const emptyColumnsRightOfErrorOrLabel = 8

func runeWidth(r rune) int {
	switch {
	case r < 0x20 || r >= 0x7f && r < 0xa0 || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x1100:
		return 1
	}
	return displaywidth.Rune(r)
}

func textWidth(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

// withoutControlCharacters replaces tabs with spaces and removes other control characters except line breaks, to protect the terminal.
func withoutControlCharacters(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// wrapText breaks a text into rows of at most cols columns, at spaces if possible.
func wrapText(text string, cols int) []string {
	cols = max(cols, 1)
	var rows []string
	for line := range strings.SplitSeq(text, "\n") {
		rows = append(rows, wrapLine(withoutControlCharacters(expandTabs(line)), cols)...)
	}
	return rows
}

// expandTabs replaces the tabs of a line with spaces up to the next multiple of eight columns.
func expandTabs(line string) string {
	const tabWidth = 8
	var b strings.Builder
	col := 0
	for i, part := range strings.Split(line, "\t") {
		if i > 0 {
			part = strings.Repeat(" ", tabWidth-col%tabWidth) + part
		}
		b.WriteString(part)
		col += textWidth(part)
	}
	return b.String()
}

func wrapLine(line string, cols int) []string {
	var rows []string
	for textWidth(line) > cols {
		end, space, used := 0, 0, 0
		for i, r := range line {
			if used += runeWidth(r); r == ' ' {
				space = i + 1
			}
			if used > cols {
				break
			}
			end = i + len(string(r))
		}
		switch {
		case space > 0 && strings.TrimSpace(line[:space]) != "" && !shouldStartLongWordInRow(line[space:], cols, cols-textWidth(line[:space])):
			end = space
		case end == 0: // a character that is wider than the row
			end = len(string([]rune(line)[0]))
		}
		rows = append(rows, strings.TrimRight(line[:end], " "))
		line = line[end:]
	}
	return append(rows, line)
}

// shouldStartLongWordInRow reports whether the first word of text should begin in the remaining restColumns columns of
// the current row. This is so if the word is longer than a row, and needs more rows when it begins in a new row.
func shouldStartLongWordInRow(text string, cols, restColumns int) bool {
	word, _, _ := strings.Cut(text, " ")
	n := textWidth(word)
	return n > cols && 1+(n-restColumns-1)/cols <= (n-1)/cols
}

// wrapWithFirstPrefix wraps a text. The first row begins with first, and all other rows with spaces of the same width.
func wrapWithFirstPrefix(first, text string, cols int) []string {
	n := textWidth(first)
	rows := wrapText(text, cols-n)
	for i := range rows {
		rows[i] = first + rows[i]
		first = strings.Repeat(" ", n)
	}
	return rows
}

func wrapKeepingIndent(text string, cols int) []string {
	words := strings.TrimLeft(text, " ")
	return wrapWithFirstPrefix(text[:len(text)-len(words)], words, cols)
}

func truncateRow(row string, cols int) string {
	if textWidth(row) <= cols {
		return row
	}
	used := 0
	for i, r := range row {
		if used += runeWidth(r); used > cols-1 {
			return row[:i] + "…"
		}
	}
	return row
}

func withoutPasteTags(prompts []string) (plain []string) {
	for _, text := range prompts {
		plain = append(plain, strings.TrimSpace(protocol.WithoutPasteTags(text)))
	}
	return plain
}

func countWithNoun(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func informationalSystemEvent(text, level string) *protocol.SystemEvent {
	return &protocol.SystemEvent{Subtype: "informational", Fields: []protocol.Field{{Key: "content", Value: text}, {Key: "level", Value: level}}}
}

func rowsCutToWidthBetweenRules(rule string, body []string, cols int) []string {
	rows := []string{rule}
	for _, text := range body {
		rows = append(rows, truncateRow(withoutControlCharacters(text), cols))
	}
	return append(rows, rule)
}

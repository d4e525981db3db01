package terminal

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/claudeless/claudeless/internal/base/textdiff"
)

type shownToolInput struct {
	Command     string `json:"command"`
	Description string `json:"description"`
	FilePath    string `json:"file_path"`
	Content     string `json:"content"`
	OldString   string `json:"old_string"`
	NewString   string `json:"new_string"`
	URL         string `json:"url"`
	Prompt      string `json:"prompt"`
	Query       string `json:"query"`
	Skill       string `json:"skill"`
	ReplaceAll  bool   `json:"replace_all"`

	SubagentType string `json:"subagent_type"`
}

func (in shownToolInput) webSearchText() string { return fmt.Sprintf("Web Search(%q)", in.Query) }

func parseShownToolInput(raw json.RawMessage) (in shownToolInput) {
	_ = json.Unmarshal(raw, &in) // a key with a value of another type is ignored
	return in
}

func boxedRows(rows []string, minWidth int) []string {
	const sides = 4
	inner := minWidth - sides
	for _, row := range rows {
		inner = max(inner, textWidth(row))
	}
	box := []string{"╭" + strings.Repeat(ruleGlyph, inner+2) + "╮"}
	for _, row := range rows {
		box = append(box, "│ "+row+strings.Repeat(" ", inner-textWidth(row))+" │")
	}
	return append(box, "╰"+strings.Repeat(ruleGlyph, inner+2)+"╯")
}

func addedAndRemovedLinesText(rows []string) string {
	var added, removed int
	for _, row := range rows {
		switch _, text, _ := strings.Cut(row, " "); {
		case strings.HasPrefix(text, "+"):
			added++
		case strings.HasPrefix(text, "-"):
			removed++
		}
	}
	switch {
	case added == 0:
		return "Removed " + countWithNoun(removed, "line")
	case removed == 0:
		return "Added " + countWithNoun(added, "line")
	}
	return "Added " + countWithNoun(added, "line") + ", removed " + countWithNoun(removed, "line")
}

func prefixLinesWithNumbers(text string) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range lines {
		lines[i] = fmt.Sprintf("%*d %s", len(fmt.Sprint(len(lines))), i+1, lines[i])
	}
	return lines
}

func rowsOfEdit(in shownToolInput) []string {
	raw, err := os.ReadFile(in.FilePath)
	before, count := string(raw), 1
	switch {
	case err == nil && strings.Contains(before, in.OldString) && in.OldString != "":
	case err == nil && strings.Contains(before, in.NewString): // the change was already made
		before = strings.Replace(before, in.NewString, in.OldString, 1)
	default:
		before = in.OldString
	}
	if in.ReplaceAll {
		count = -1
	}
	return diffRows(before, strings.Replace(before, in.OldString, in.NewString, count))
}

func diffRows(before, after string) []string {
	const around = 3
	return hunkRows(textdiff.Hunks(before, after, around))
}

func hunkRows(hunks []textdiff.Hunk) []string {
	width := 1
	for _, h := range hunks {
		width = len(fmt.Sprint(max(h.OldStart+h.OldLines, h.NewStart+h.NewLines) - 1))
	}
	var rows []string
	for _, h := range hunks {
		before, after := h.OldStart, h.NewStart
		for _, line := range h.Lines {
			n := &after
			switch line[0] {
			case '-':
				n = &before
			case ' ':
				before++
			case '\\': // such as "\ No newline at end of file"
				rows = append(rows, strings.Repeat(" ", width+1)+line)
				continue
			}
			rows = append(rows, fmt.Sprintf("%*d %s", width, *n, line))
			*n++
		}
	}
	return rows
}

func rowsOfWrite(in shownToolInput) (rows []string, overwrites bool) {
	before, err := os.ReadFile(in.FilePath)
	if err != nil || string(before) == in.Content {
		return prefixLinesWithNumbers(in.Content), false
	}
	return diffRows(string(before), in.Content), true
}

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
	Plan        string `json:"plan"`
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

func countAddedAndRemovedRows(rows []string) (added, removed int) {
	for _, row := range rows {
		switch _, text, _ := strings.Cut(strings.TrimLeft(row, " "), " "); {
		case strings.HasPrefix(text, "+"):
			added++
		case strings.HasPrefix(text, "-"):
			removed++
		}
	}
	return added, removed
}

func addedAndRemovedLinesText(rows []string) string {
	added, removed := countAddedAndRemovedRows(rows)
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

// firstPlaceOfEdit returns the lines around the first place that an edit changes, and how many places it changes in the file if
// some are not among these lines; otherwise 0.
func firstPlaceOfEdit(in shownToolInput) (rows []string, places int) {
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
	lines, start := strings.SplitAfter(before, "\n"), max(0, strings.Index(before, in.OldString))
	first := strings.Count(before[:start], "\n")
	from, to := max(0, first-contextLines), min(len(lines), first+strings.Count(in.OldString, "\n")+contextLines+1)
	shown := strings.Join(lines[from:to], "")
	hunks := textdiff.Hunks(shown, strings.Replace(shown, in.OldString, in.NewString, count), contextLines)
	for i := range hunks {
		hunks[i].OldStart, hunks[i].NewStart = hunks[i].OldStart+from, hunks[i].NewStart+from
	}
	if places = strings.Count(before, in.OldString); !in.ReplaceAll || in.OldString == "" || places == strings.Count(shown, in.OldString) {
		places = 0
	}
	return hunkRows(hunks), places
}

// contextLines is the number of lines around a change. omittedLinesRow separates the hunks of [hunkRows].
const contextLines, omittedLinesRow = 3, "..."

func hunkRows(hunks []textdiff.Hunk) []string {
	var rows []string
	for i, h := range hunks {
		if i > 0 {
			rows = append(rows, omittedLinesRow)
		}
		width := len(fmt.Sprint(max(h.OldStart+h.OldLines, h.NewStart+h.NewLines) - 1))
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

func changedLineEntry(row string) transcriptEntry {
	glyph := "      "
	if row == omittedLinesRow {
		glyph = glyph[1:]
	}
	return transcriptEntry{glyph: glyph, text: row, hasNoGapBefore: true}
}

func rowsOfWrite(in shownToolInput) (rows []string, overwrites bool) {
	before, err := os.ReadFile(in.FilePath)
	if err != nil || string(before) == in.Content {
		return prefixLinesWithNumbers(in.Content), false
	}
	return hunkRows(textdiff.Hunks(string(before), in.Content, contextLines)), true
}

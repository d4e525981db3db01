package terminal

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type historyLine struct {
	Display   string   `json:"display"`
	Pasted    struct{} `json:"pastedContents"` // Display contains pasted texts
	Timestamp int64    `json:"timestamp"`      // Unix time in milliseconds
	Project   string   `json:"project"`
	SessionID string   `json:"sessionId"`
}

func historyPath(plan *launch.Plan) string { return filepath.Join(plan.State, "history.jsonl") }

// readHistory returns the prompts of all projects, the oldest first. Broken lines are ignored.
func readHistory(plan *launch.Plan) (lines []historyLine) {
	data, _ := os.ReadFile(historyPath(plan)) // a missing file has no prompts
	for text := range bytes.Lines(data) {
		var line historyLine
		if json.Unmarshal(text, &line) == nil && line.Display != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// savePrompt adds a prompt to history.jsonl. Nothing is reported if that fails: the prompt is sent all the same.
func savePrompt(plan *launch.Plan, session, text string) {
	line, err := protocol.Marshal(historyLine{Display: text, Timestamp: plan.Clock.Now().UnixMilli(), Project: plan.CWD, SessionID: session})
	if err != nil {
		return
	}
	if file, err := os.OpenFile(historyPath(plan), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = file.Write(append(line, '\n'))
		_ = file.Close()
	}
}

// historyDialog searches the prompts of all projects. The selected one becomes the draft.
func historyDialog(plan *launch.Plan, s *screen) *dialog {
	list := &searchList{isBelow: true, hint: "Filter history…", empty: "  No prompts match", room: s.rows}
	list.foot[0] = "  ↑/↓ to navigate · Enter to use · Esc to cancel"
	for _, line := range readHistory(plan) {
		list.all = append(list.all, option{label: strings.ReplaceAll(line.Display, "\n", " "), value: line.Display, truncate: true})
	}
	d := &dialog{state: StateMenu, kind: "history", indent: 2, topRule: ruleGlyph, head: []string{"  Search prompts · everywhere", ""}, options: list.all, search: list}
	d.selected = max(0, len(d.options)-1)
	d.owner = chooserFunc(func(c choice) *dialog {
		if !c.cancelled && len(d.options) > 0 {
			s.composer.set(d.options[c.index].value)
		}
		return nil
	})
	return d
}

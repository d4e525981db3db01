package terminal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func resumeSessionDialog(plan *launch.Plan, currentID string, screenRows int, chooseID func(id string)) *dialog {
	list := &searchList{screenRows: screenRows, hintText: "Search…", head: "    " + filepath.Base(plan.CWD), emptyText: "  No sessions in this project yet"}
	list.foot = [2]string{"  Type to search · Enter to resume · Esc to close", "  Type to search · Enter to select · Esc to clear"}
	for _, s := range launch.SavedSessions(plan) {
		if s.ID != currentID {
			about := fmt.Sprintf("%s · %s · %.1fKB", timeAgo(plan.Clock.Now().Sub(s.Changed)), s.Branch, float64(s.Size)/1024)
			list.allOptions = append(list.allOptions, dialogOption{label: s.Title, detail: about, secondLine: " ", ownerValue: s.ID, truncate: true})
		}
	}
	if len(list.allOptions) == 0 {
		list.foot[0] = "  Esc to close"
	}
	d := &dialog{state: StateCommandPage, kind: "resume", indent: 2, topRuleGlyph: ruleGlyph, head: []string{"  Resume session"}, options: list.allOptions, search: list}
	d.owner = choiceHandlerFunc(func(c dialogChoice) *dialog {
		id := ""
		if !c.cancelled && c.key == 0 {
			id = d.options[c.index].ownerValue
		}
		chooseID(id)
		return nil
	})
	return d
}

// timeAgo returns how long ago something happened, such as "5 minutes ago".
func timeAgo(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		noun   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d >= unit.length {
			return countWithNoun(int(d/unit.length), unit.noun) + " ago"
		}
	}
	return "now"
}

// ChooseSession shows a full-screen dialog that asks which saved session to continue, for --resume
// without a value. The error is [ErrStartDeclined] if the user selects no session.
func ChooseSession(ctx context.Context, c *Console, plan *launch.Plan) (id string, err error) {
	if err = c.painter.enterFullScreen(); err == nil {
		err = c.showDialogsUntilAnswered(ctx, resumeSessionDialog(plan, "", c.screen.rows, func(chosen string) { id = chosen }))
	}
	if err == nil && id == "" {
		err = ErrStartDeclined
	}
	c.painter.fullScreen, c.painter.lastRows = false, nil
	return id, cmp.Or(err, c.painter.writeToTerminal(leaveScreenSequence))
}

const historyFileName = "history.jsonl" // contains the prompts of all sessions

type historyLine struct {
	Display   string   `json:"display"`
	Pasted    struct{} `json:"pastedContents"` // always empty, because Display contains the pasted texts
	Timestamp int64    `json:"timestamp"`      // Unix time in milliseconds
	Project   string   `json:"project"`
	SessionID string   `json:"sessionId"`
}

func readPromptHistoryOfAllProjects(plan *launch.Plan) (lines []historyLine) {
	data, _ := os.ReadFile(filepath.Join(plan.State, historyFileName)) // a missing file has no prompts
	for text := range bytes.Lines(data) {
		var line historyLine
		if json.Unmarshal(text, &line) == nil && line.Display != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func appendPromptToHistoryFile(plan *launch.Plan, sessionID, text string) {
	line, _ := protocol.Marshal(historyLine{Display: text, Timestamp: plan.Clock.Now().UnixMilli(), Project: plan.CWD, SessionID: sessionID})
	if file, err := os.OpenFile(filepath.Join(plan.State, historyFileName), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = file.Write(append(line, '\n'))
		_ = file.Close()
	}
}

func newPromptHistoryDialog(plan *launch.Plan, s *screen) *dialog {
	list := &searchList{isFieldBelowOptions: true, hintText: "Filter history…", emptyText: "  No prompts match", screenRows: s.rows}
	list.foot[0] = "  ↑/↓ to navigate · Enter to use · Esc to cancel"
	for _, line := range readPromptHistoryOfAllProjects(plan) {
		list.allOptions = append(list.allOptions, dialogOption{label: strings.ReplaceAll(line.Display, "\n", " "), ownerValue: line.Display, truncate: true})
	}
	d := &dialog{state: StateCommandPage, kind: "history", indent: 2, topRuleGlyph: ruleGlyph, head: []string{"  Search prompts · everywhere", ""}, options: list.allOptions, search: list}
	d.selected = max(0, len(d.options)-1)
	d.owner = choiceHandlerFunc(func(c dialogChoice) *dialog {
		if !c.cancelled && len(d.options) > 0 {
			s.composer.setText(d.options[c.index].ownerValue)
		}
		return nil
	})
	return d
}

// ResumeHint returns lines that explain how to resume the session, or "" if the session had no prompt or is not saved.
func (t *Terminal) ResumeHint() string {
	if t.player.session.LastResult() == nil || t.plan.Transcript.NoPersist {
		return ""
	}
	words := []string{"claude"}
	for i, word := range t.commandLine {
		switch {
		case word == "--permission-mode" && i+1 < len(t.commandLine):
			words = append(words, word, t.commandLine[i+1])
		case word == "--dangerously-skip-permissions":
			words = append(words, word)
		}
	}
	return fmt.Sprintf("\nResume this session with:\n%s --resume %s\n", strings.Join(words, " "), t.player.session.ID())
}

package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// callView is how the transcript shows a tool call.
type callView struct {
	use          protocol.ToolUse
	input        callInput
	extraEntries int      // transcript entries that follow the announcement
	fileRows     []string // changed lines of the file that the call edits
}

// beginCall announces a call. A command is shown until its result arrives.
func (v *eventView) beginCall(use protocol.ToolUse) []entry {
	c := &callView{use: use, input: parseCallInput(use.DisplayInput())}
	dot := answerGlyph + " "
	planFile, _ := v.player.session.PlanFile()
	at := entry{glyph: dot, callID: use.ID}
	v.runningCalls = append(v.runningCalls, c)
	switch {
	case use.Name == "AskUserQuestion" || use.Name == "ExitPlanMode":
		return nil // the dialog already shows it
	case use.Name == "Bash":
		c.extraEntries = 1
		at.text = inProgress(c.input.Description)
		return []entry{at, {glyph: "  " + resultGlyph + "  ", text: "$ " + c.input.Command, noGap: true}}
	case use.Name == "Edit":
		c.fileRows = editRows(c.input)
		at.text = "Update(" + shortPath(v.cwd, c.input.FilePath) + ")"
	case use.Name == "Write" && c.input.FilePath == planFile:
		at.text = "Updated plan"
	case use.Name == "Write":
		c.fileRows = numberedRows(c.input.Content)
		at.text = "Write(" + shortPath(v.cwd, c.input.FilePath) + ")"
	case use.Name == "WebFetch":
		at.text = "Fetch(" + c.input.URL + ")"
	case use.Name == "Read":
		at.text = "Reading 1 file…"
	case use.Name == "Agent":
		at.text = "Agent(" + c.input.Description + ")"
	case c.server() != "":
		at.text = "Calling " + c.server() + "…"
	case c.input.FilePath != "":
		at.text = use.Name + "(" + shortPath(v.cwd, c.input.FilePath) + ")"
	default:
		at.text = use.Name
	}
	return []entry{at}
}

// server returns the MCP server of the call; empty = the tool is built in.
func (c *callView) server() string {
	server, _, ok := strings.Cut(strings.TrimPrefix(c.use.Name, "mcp__"), "__")
	if !ok || !strings.HasPrefix(c.use.Name, "mcp__") {
		return ""
	}
	return server
}

// title returns the description of a call that did not run.
func (c *callView) title() string {
	if server := c.server(); server != "" {
		var in []string
		for _, row := range inputRows(c.use.DisplayInput()) {
			in = append(in, strings.TrimSpace(row))
		}
		_, tool, _ := strings.Cut(strings.TrimPrefix(c.use.Name, "mcp__"), "__")
		return server + " - " + tool + " (MCP)(" + strings.Join(in, ", ") + ")"
	}
	return "$ " + c.input.Command
}

// takeCall removes and returns a running call; nil = unknown.
func (v *eventView) takeCall(id string) *callView {
	at := slices.IndexFunc(v.runningCalls, func(c *callView) bool { return c.use.ID == id })
	if at < 0 {
		return nil
	}
	c := v.runningCalls[at]
	v.runningCalls = slices.Delete(v.runningCalls, at, at+1)
	return c
}

// endCall shows the result of a call under its announcement.
func (v *eventView) endCall(result protocol.ToolResultBlock, refused bool) {
	s := v.screen
	c := v.takeCall(result.ToolUseID)
	if c == nil {
		return
	}
	at := slices.IndexFunc(s.entries, func(e entry) bool { return e.callID == result.ToolUseID })
	if at < 0 {
		v.endQuestion(c, result, refused)
		return
	}
	e := &s.entries[at]
	e.callID = ""
	failed, quiet, rows := result.IsError != nil && *result.IsError, entry{glyph: "  "}, []entry{*e}
	under := func(text string) { rows = append(rows, entry{glyph: resultPrefix, text: text, noGap: true}) }
	text := shortResult(result.Content.Plain())
	switch collapses := c.use.Name == "Bash" || c.server() != ""; {
	case collapses && (refused || s.isInterrupted()):
		quiet.text = "No result recorded for 1 call"
		if s.progress != nil && s.progress.endsWithRefusal {
			quiet.text = "Did not run 1 call"
		}
		rows = []entry{quiet}
		under(c.title())
	case c.use.Name == "Bash":
		quiet.text = "Ran 1 shell command"
		rows = []entry{quiet}
	case collapses:
		quiet.text = "Called " + c.server()
		rows = []entry{quiet}
	case c.use.Name == "Read" && !failed && !refused:
		quiet.text = "Read 1 file"
		rows = []entry{quiet}
	case e.text == "Updated plan":
		under("/plan to preview")
	case (c.use.Name == "Edit" || c.use.Name == "Write") && (refused || !failed):
		v.refusalShown = v.refusalShown || refused
		under(c.changeTitle(shortPath(v.cwd, c.input.FilePath), refused))
		for _, row := range c.fileRows {
			rows = append(rows, entry{glyph: "      ", text: row, noGap: true})
		}
	case refused || strings.HasPrefix(text, "[Request interrupted"): // the end of the turn shows it
	case c.use.Name == "Agent" && strings.HasPrefix(text, "Async agent launched"):
		under("Backgrounded agent (↓ to manage · ctrl+o to expand)")
	case text != "":
		under(text)
	}
	s.entries = slices.Replace(s.entries, at, at+1+c.extraEntries, rows...)
}

// changeTitle describes how a call changed a file.
func (c *callView) changeTitle(name string, refused bool) string {
	switch {
	case refused && c.use.Name == "Edit":
		return "Rejected update to " + name
	case refused:
		return "Rejected write to " + name
	case c.use.Name == "Write":
		return "Wrote " + lineCount(len(c.fileRows)) + " to " + name
	}
	return changeSummary(c.fileRows)
}

// endQuestion shows the result of a call that a dialog has asked about.
func (v *eventView) endQuestion(c *callView, result protocol.ToolResultBlock, refused bool) {
	text := result.Content.Plain()
	failed := result.IsError != nil && *result.IsError
	var title string
	var rows []string
	switch file, plan := v.player.session.PlanFile(); {
	case c.use.Name == "ExitPlanMode" && refused:
		v.refusalShown = true
		title := "Rejected Claude's plan:"
		v.appendNote(title + "\n" + strings.Join(drawBox(planRows("", plan), textWidth(title)), "\n"))
		return
	case c.use.Name == "ExitPlanMode" && !failed:
		title = "Approved Claude's plan"
		rows = append(rows, "Plan saved to: "+file+" · /plan to edit")
		rows = append(rows, planRows("", cmp.Or(c.input.Plan, plan))...)
	case c.use.Name == "AskUserQuestion" && refused:
		v.refusalShown = true
		title, rows = "Declined to answer Claude's questions:", questionRows(c.use.DisplayInput(), nil)
	case c.use.Name == "AskUserQuestion" && !failed:
		answers := map[string]string{}
		for _, m := range regexp.MustCompile(`"([^"]*)"="([^"]*)"`).FindAllStringSubmatch(text, -1) {
			answers[m[1]] = m[2]
		}
		title, rows = "Answered Claude's questions:", questionRows(c.use.DisplayInput(), answers)
	default:
		return
	}
	v.screen.entries = append(v.screen.entries, entry{glyph: answerGlyph + " ", text: title})
	v.appendNote(strings.Join(rows, "\n"))
}

// drawBox draws a box around rows. The box is at least width columns wide.
func drawBox(rows []string, width int) []string {
	const sides = 4
	inner := width - sides
	for _, row := range rows {
		inner = max(inner, textWidth(row))
	}
	box := []string{"╭" + strings.Repeat(ruleGlyph, inner+2) + "╮"}
	for _, row := range rows {
		box = append(box, "│ "+row+strings.Repeat(" ", inner-textWidth(row))+" │")
	}
	return append(box, "╰"+strings.Repeat(ruleGlyph, inner+2)+"╯")
}

// lineCount returns a number of lines in words.
func lineCount(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}

// changeSummary says how many lines an edit added and removed.
func changeSummary(rows []string) string {
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
		return "Removed " + lineCount(removed)
	case removed == 0:
		return "Added " + lineCount(added)
	}
	return "Added " + lineCount(added) + ", removed " + lineCount(removed)
}

// numberedRows returns the lines of a text with their numbers, at most as many as a dialog shows.
func numberedRows(text string) []string {
	lines := markedLines("", text)
	for i := range lines {
		lines[i] = fmt.Sprintf("%*d %s", len(fmt.Sprint(len(lines))), i+1, lines[i])
	}
	return lines
}

// editRows returns the lines that an edit changes, with their numbers and those around them.
func editRows(in callInput) []string {
	const around = 3
	raw, err := os.ReadFile(in.FilePath)
	before := string(raw)
	if at := strings.Index(before, in.OldString); err != nil || at < 0 || in.OldString == "" {
		if at = strings.Index(before, in.NewString); err != nil || at < 0 {
			before = in.OldString
		} else { // it was carried out already
			before = before[:at] + in.OldString + before[at+len(in.NewString):]
		}
	}
	from := strings.Index(before, in.OldString)
	after := before[:from] + in.NewString + before[from+len(in.OldString):]
	first := strings.Count(before[:from], "\n")
	old, changed := strings.Split(strings.TrimSuffix(before, "\n"), "\n"), strings.Split(strings.TrimSuffix(after, "\n"), "\n")
	last := first + strings.Count(in.OldString, "\n")
	lastNew := first + strings.Count(in.NewString, "\n")
	width := len(fmt.Sprint(max(len(old), len(changed))))
	var rows []string
	add := func(n int, mark string, lines []string) {
		if n < len(lines) {
			rows = append(rows, fmt.Sprintf("%*d %s%s", width, n+1, mark, lines[n]))
		}
	}
	for n := max(0, first-around); n < first; n++ {
		add(n, " ", old)
	}
	for n := first; n <= last; n++ {
		add(n, "-", old)
	}
	for n := first; n <= lastNew; n++ {
		add(n, "+", changed)
	}
	for n := lastNew + 1; n <= lastNew+around; n++ {
		add(n, " ", changed)
	}
	return rows
}

// inProgress returns a description as work in progress: "Making the directory" for "Make the
// directory".
func inProgress(description string) string {
	word, rest, _ := strings.Cut(description, " ")
	if word == "" {
		return "Running a command"
	}
	last := word[len(word)-1]
	switch {
	case strings.HasSuffix(word, "ing"):
	case last == 'e' && !strings.HasSuffix(word, "ee"):
		word = word[:len(word)-1] + "ing"
	case len(word) == 3 && strings.ContainsRune("aeiou", rune(word[1])) && !strings.ContainsRune("aeiouwxy", rune(last)):
		word += string(last) + "ing"
	default:
		word += "ing"
	}
	return strings.TrimSpace(word + " " + rest)
}

// questionRows returns the questions of a call with their answers, or with their choices.
func questionRows(input json.RawMessage, answers map[string]string) []string {
	var in struct{ Questions []formQuestion }
	_ = json.Unmarshal(input, &in) // an input without questions has no rows
	var rows []string
	for _, q := range in.Questions {
		var choices []string
		for _, o := range q.Options {
			choices = append(choices, o.Label)
		}
		if answer, ok := answers[q.Question]; ok {
			rows = append(rows, "· "+q.Question+" → "+answer)
			continue
		}
		rows = append(rows, "· "+q.Question+" ("+strings.Join(choices, " / ")+")")
	}
	return rows
}

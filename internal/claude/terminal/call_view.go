package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/textdiff"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type callView struct {
	use          protocol.ToolUse
	input        shownToolInput
	extraEntries int                    // entries of the transcript that follow the announcement of the call and belong to it
	fileRows     []string               // lines of the file that the call changes
	overwrites   bool                   // the file had other content before, and fileRows are only the lines that differ
	changes      *filesChangedByCommand // changes that a command made in auto mode; nil means none
}

const rejectedCallText = "Not run · rejected"

const maxShownLinesPerCall, maxCommandColumnsInAnnouncement = 10, 50

// countsForSummaryLine returns what a finished call adds to a line such as "Read 2 files"; nil means that it has its own entry.
func (c *callView) countsForSummaryLine() *callCounts {
	switch {
	case c.use.Name == "Read":
		return &callCounts{read: 1}
	case c.use.Name == "Glob" || c.use.Name == "Grep":
		return &callCounts{searched: 1}
	case c.use.Name != "Bash":
		return nil
	}
	var n callCounts
	for _, word := range c.programNamesInCommand() {
		switch {
		case slices.Contains([]string{"find", "grep", "rg", "ag", "ack", "locate", "which", "whereis"}, word):
			n.searched = 1
		case slices.Contains([]string{"cat", "head", "tail", "less", "more", "wc", "stat", "file", "strings", "jq", "awk", "cut", "sort", "uniq", "tr"}, word):
			n.read = 1
		case slices.Contains([]string{"ls", "tree", "du"}, word):
			n.listed = 1
		case !slices.Contains([]string{"", "echo", "printf", "true", "false", ":"}, word):
			return &callCounts{ran: 1}
		}
	}
	switch {
	case n.listed > 0:
		n = callCounts{listed: 1}
	case n.searched > 0:
		n = callCounts{searched: 1}
	case n.read == 0:
		n.ran = 1
	}
	return &n
}

// programNamesInCommand returns the first word of each part of the command.
func (c *callView) programNamesInCommand() []string {
	parts := strings.FieldsFunc(c.input.Command, func(r rune) bool { return strings.ContainsRune("|;&\n", r) })
	for i, part := range parts {
		parts[i], _, _ = strings.Cut(strings.TrimSpace(part), " ")
	}
	return parts
}

func (c *callView) shownCommand(maxLines int) string {
	lines := strings.Split(c.input.Command, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	if len(lines) > maxLines {
		return "$ " + strings.Join(lines[:maxLines], "\n") + "…"
	}
	return "$ " + strings.Join(lines, "\n")
}

func (v *eventView) beginCall(use protocol.ToolUse) []transcriptEntry {
	c := &callView{use: use, input: parseShownToolInput(use.InputForHooksAndHosts())}
	v.runningCalls = append(v.runningCalls, c)
	planFile, _ := v.player.session.PlanModeFile()
	at := transcriptEntry{glyph: answerGlyph + " ", callID: use.ID, blinks: use.Name == "Bash" || use.Name == "Read"}
	switch {
	case use.Name == "AskUserQuestion" || use.Name == "ExitPlanMode":
		return nil // the dialog for the call already shows it
	case v.screen.isInline && c.isCommandShownByInlineRenderer():
		c.extraEntries = 1
		at.glyph, at.text = answerGlyph+" Bash", c.shortenedCommandInParentheses()
		return []transcriptEntry{at, {glyph: resultPrefix, text: runningText, hasNoGapBefore: true}}
	case use.Name == "Bash":
		at.text = cmp.Or(changeFirstVerbToIngForm(c.input.Description), "Running "+truncateRow(c.input.Command, maxCommandColumnsInAnnouncement))
		return v.entriesOfRunningCall(c, at, c.shownCommand(maxShownLinesPerCall))
	case use.Name == "Edit":
		c.fileRows, _ = firstPlaceOfEdit(c.input)
		at.text = "Update(" + relativePathIfInside(v.cwd, c.input.FilePath) + ")"
	case use.Name == "Write" && c.input.FilePath == planFile:
		at.text = "Updated plan"
	case use.Name == "Write":
		c.fileRows, c.overwrites = rowsOfWrite(c.input)
		at.text = "Write(" + relativePathIfInside(v.cwd, c.input.FilePath) + ")"
	case use.Name == "WebFetch":
		at.text = "Fetch(" + c.input.URL + ")"
	case use.Name == "Read":
		name := relativePathIfInside(v.cwd, c.input.FilePath)
		at.text = "Reading " + name
		return v.entriesOfRunningCall(c, at, name)
	case c.mcpServerName() != "":
		at.text, at.hasExpandHint = "Calling "+c.mcpServerName()+"…", true
	case use.Name == "Agent":
		at.text = cmp.Or(strings.TrimPrefix(c.input.SubagentType, "general-purpose"), "Agent") + "(" + c.input.Description + ")"
	case use.Name == "Skill":
		at.text = "Skill(" + c.input.Skill + ")"
	case use.Name == "WebSearch":
		at.text = c.input.webSearchText()
	case c.input.FilePath != "":
		at.text = use.Name + "(" + relativePathIfInside(v.cwd, c.input.FilePath) + ")"
	default:
		at.text = use.Name
	}
	return []transcriptEntry{at}
}

// mcpServerName returns the MCP server of the call; empty means the tool is built in.
func (c *callView) mcpServerName() string {
	server, _, ok := strings.Cut(strings.TrimPrefix(c.use.Name, "mcp__"), "__")
	if !ok || !strings.HasPrefix(c.use.Name, "mcp__") {
		return ""
	}
	return server
}

func (c *callView) mcpOrBashCallText() string {
	if server := c.mcpServerName(); server != "" {
		_, tool, _ := strings.Cut(strings.TrimPrefix(c.use.Name, "mcp__"), "__")
		return server + " - " + tool + " (MCP)(" + strings.TrimSpace(strings.Join(toolInputRows(c.use.InputForHooksAndHosts()), ",")) + ")"
	}
	return c.shownCommand(2)
}

// takeCall removes and returns a running call; nil means unknown.
func (v *eventView) takeCall(id string) *callView {
	at := slices.IndexFunc(v.runningCalls, func(c *callView) bool { return c.use.ID == id })
	if at < 0 {
		return nil
	}
	c := v.runningCalls[at]
	v.runningCalls = slices.Delete(v.runningCalls, at, at+1)
	return c
}

func (v *eventView) setChangedFileRowsOfCall(id string, output any) {
	var change struct {
		Type            string                 `json:"type"`
		StructuredPatch []textdiff.Hunk        `json:"structuredPatch"`
		CommandChanges  *filesChangedByCommand `json:"bashEditDiff"`
	}
	at := slices.IndexFunc(v.runningCalls, func(c *callView) bool { return c.use.ID == id })
	if raw, err := json.Marshal(output); at < 0 || err != nil || json.Unmarshal(raw, &change) != nil {
		return
	}
	switch c := v.runningCalls[at]; {
	case change.CommandChanges != nil && !change.CommandChanges.IsUnknown:
		c.changes = change.CommandChanges
	case len(change.StructuredPatch) > 0 && (c.use.Name == "Edit" || c.use.Name == "Write"):
		c.fileRows, c.overwrites = hunkRows(change.StructuredPatch), true
	case c.use.Name == "Write" && change.Type != "":
		c.fileRows, c.overwrites = prefixLinesWithNumbers(c.input.Content), false
	}
}

func (v *eventView) endCall(result protocol.ToolResultBlock, refused bool) {
	s := v.screen
	c := v.takeCall(result.ToolUseID)
	if c == nil {
		return
	}
	text, failed := firstLinesOfResult(result.Content.Plain()), result.IsError != nil && *result.IsError
	at := slices.IndexFunc(s.entries, func(e transcriptEntry) bool { return e.callID == result.ToolUseID })
	if at < 0 {
		v.showResultOfDialogCall(c, result, refused)
		return
	}
	s.entries[at].callID = ""
	rows := v.summaryEntriesOfCall(c, failed, refused)
	switch {
	case failed && c.countsForSummaryLine() == nil && strings.HasPrefix(text, "Error: No such tool available"):
		rows = []transcriptEntry{noteEntry(text)}
	case c.changes != nil && !failed:
		s.entries[at].glyph, s.entries[at].text = answerGlyph+" Bash", c.shortenedCommandInParentheses()
		rows = append([]transcriptEntry{s.entries[at]}, v.commandOutputAndChangeEntries(c, result.Content.Plain())...)
	case rows == nil && s.isInline && c.isCommandShownByInlineRenderer() && s.isRunningTurnStoppedByUser():
		rows = []transcriptEntry{s.entries[at]}
	case rows == nil && s.isInline && c.isCommandShownByInlineRenderer():
		rows = []transcriptEntry{s.entries[at], noteEntry(c.shortOutput(result.Content.Plain(), failed, s.cols))}
		if refused {
			rows[1] = noteEntry(rejectedCallText)
		}
	case rows == nil:
		rows = v.resultEntriesOfCall(c, s.entries[at], text, failed, refused)
	}
	s.entries = slices.Replace(s.entries, at, at+1+c.extraEntries, rows...)
	s.mergeSummaries()
}

// summaryEntriesOfCall returns the entries that replace a finished call with a summary; nil means that the call stays visible.
func (v *eventView) summaryEntriesOfCall(c *callView, failed, refused bool) []transcriptEntry {
	s, counts := v.screen, c.countsForSummaryLine()
	switch collapses := c.use.Name == "Bash" && !s.isInline || c.mcpServerName() != ""; {
	case s.isInline && c.isCommandShownByInlineRenderer():
		return nil
	case collapses && (refused || s.isRunningTurnStoppedByUser()):
		amended, text := refused && !s.isRunningTurnStoppedByUser(), "No result recorded for 1 call"
		if amended || s.progress != nil && s.progress.endsWithRefusal {
			text = "Did not run 1 call"
		}
		rows := []transcriptEntry{{glyph: "  ", text: text, hasExpandHint: true}, noteEntry(c.mcpOrBashCallText())}
		if amended {
			rows = append(rows, noteEntry(rejectedCallText))
		}
		return rows
	case counts != nil && (!refused || s.isInline && s.isRunningTurnStoppedByUser()):
		if failed && !s.isRunningTurnStoppedByUser() {
			counts.failed = 1
		}
		return []transcriptEntry{{glyph: "  ", text: counts.summaryLine(), summedCounts: counts}}
	case c.mcpServerName() != "":
		return []transcriptEntry{{glyph: "  ", text: "Called " + c.mcpServerName() + map[bool]string{true: " · 1 failed"}[failed && !refused], hasExpandHint: true}}
	}
	return nil
}

func (v *eventView) resultEntriesOfCall(c *callView, announcement transcriptEntry, text string, failed, refused bool) []transcriptEntry {
	switch changes := c.use.Name == "Edit" || c.use.Name == "Write"; {
	case c.use.Name == "Skill" && !failed:
		text = "Loaded skill"
	case announcement.text == "Updated plan":
		text = "/plan to preview"
	case changes && (refused || !failed):
		v.refusalShown = v.refusalShown || refused
		return append([]transcriptEntry{announcement, noteEntry(c.fileChangeOutcomeText(relativePathIfInside(v.cwd, c.input.FilePath), refused))}, c.changedLineEntries()...)
	case changes && strings.HasPrefix(text, "File does not exist"):
		text = "File not found"
	case changes:
		text = "Couldn't " + strings.ToLower(c.use.Name) + " file"
	case refused || text == "" || strings.HasPrefix(text, "[Request interrupted"): // the end of the turn shows this text
		return []transcriptEntry{announcement}
	case failed && !strings.HasPrefix(text, "Error: "):
		text = "Error: " + text
	case c.use.Name == "Agent" && strings.HasPrefix(text, "Async agent launched"):
		text = "Backgrounded agent (↓ to manage · ctrl+o to expand)"
	}
	return []transcriptEntry{announcement, noteEntry(text)}
}

// commandOutputAndChangeEntries shows the output of a command, and the files that changed while it ran (observed with 2.1.330).
func (v *eventView) commandOutputAndChangeEntries(c *callView, output string) (entries []transcriptEntry) {
	if text := c.shortOutput(output, false, v.screen.cols); text != c.doneOrNoOutputText() {
		if !v.screen.isInline {
			text = strings.TrimSuffix(text, expandHint)
		}
		entries = append(entries, noteEntry(text))
	}
	for _, f := range c.changes.Files {
		rows := hunkRows(f.Hunks)
		entries = append(entries, noteEntry(fileChangeTitle(f, relativePathIfInside(v.cwd, f.Path), rows)))
		for _, row := range rows {
			entries = append(entries, changedLineEntry(row))
		}
	}
	if more := c.changes.MoreFiles; more > 0 {
		entries = append(entries, noteEntry(v.namesOfMoreFiles(c.changes, more)))
	}
	if !v.commandChangesExplained {
		v.commandChangesExplained = true
		entries = append(entries, noteEntry("(files that changed while the command ran; other processes may have changed some of them)"))
	}
	return entries
}

func (c *callView) changedLineEntries() (rows []transcriptEntry) {
	for i, row := range c.fileRows {
		if i == maxShownLinesPerCall && c.use.Name == "Write" && !c.overwrites {
			return append(rows, transcriptEntry{glyph: "     ", text: fmt.Sprintf("… +%d lines", len(c.fileRows)-i), hasNoGapBefore: true})
		}
		rows = append(rows, changedLineEntry(row))
	}
	return rows
}

func (c *callView) fileChangeOutcomeText(shownPath string, isRefused bool) string {
	switch {
	case isRefused && c.use.Name == "Edit":
		return "Rejected update to " + shownPath
	case isRefused:
		return "Rejected write to " + shownPath
	case c.use.Name == "Write" && !c.overwrites:
		return "Wrote " + countWithNoun(len(c.fileRows), "line") + " to " + shownPath
	}
	return addedAndRemovedLinesText(c.fileRows)
}

func (v *eventView) showResultOfDialogCall(c *callView, result protocol.ToolResultBlock, refused bool) {
	text := result.Content.Plain()
	failed := result.IsError != nil && *result.IsError
	var title string
	var rows []string
	switch _, plan := v.player.session.PlanModeFile(); {
	case c.use.Name == "ExitPlanMode" && refused:
		v.refusalShown = true
		title := "Rejected Claude's plan:"
		v.appendNote(title + "\n" + strings.Join(boxedRows(planRows("", cmp.Or(plan, c.input.Plan, "No plan found")), textWidth(title)), "\n"))
		return
	case c.use.Name == "ExitPlanMode" && !failed && plan == "":
		title = "Exited plan mode"
	case c.use.Name == "ExitPlanMode" && !failed:
		title = "Approved Claude's plan"
		rows = append(rows, "Plan saved to: "+session.ShownPlanPath(v.player.session)+" · /plan to edit")
		rows = append(rows, planRows("", plan)...)
	case c.use.Name == "AskUserQuestion" && failed && !strings.HasPrefix(text, "<tool_use_error>"):
		v.refusalShown = true
		title, rows = "Declined to answer Claude's questions:", questionRows(c.use.InputForHooksAndHosts(), nil)
	case c.use.Name == "AskUserQuestion" && !failed:
		answers := map[string]string{}
		for _, m := range regexp.MustCompile(`"([^"]*)"="([^"]*)"`).FindAllStringSubmatch(text, -1) {
			answers[m[1]] = m[2]
		}
		title, rows = "Answered Claude's questions:", questionRows(c.use.InputForHooksAndHosts(), answers)
	default:
		return
	}
	v.screen.entries = append(v.screen.entries, transcriptEntry{glyph: answerGlyph + " ", text: title, isOneBlock: true})
	if rows != nil {
		v.appendNote(strings.Join(rows, "\n"))
	}
}

func changeFirstVerbToIngForm(description string) string {
	word, rest, _ := strings.Cut(description, " ")
	if word == "" {
		return ""
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
	first, n := utf8.DecodeRuneInString(word)
	return strings.TrimSpace(string(unicode.ToUpper(first)) + word[n:] + " " + rest)
}

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

// isCommandShownByInlineRenderer reports whether the inline renderer shows the command and the
// start of its output. In full screen, only the number of commands is shown.
func (c *callView) isCommandShownByInlineRenderer() bool {
	return c.use.Name == "Bash" && c.countsForSummaryLine().ran > 0
}

func (c *callView) shortenedCommandInParentheses() string {
	const maxLines, maxCharacters = 2, 160
	lines := strings.SplitN(c.input.Command, "\n", maxLines+1)
	text := []rune(strings.Join(lines[:min(len(lines), maxLines)], "\n"))
	short := strings.TrimSpace(string(text[:min(len(text), maxCharacters)]))
	if len(lines) > maxLines || len(text) > maxCharacters {
		short += "…"
	}
	return "(" + short + ")"
}

func (c *callView) shortOutput(output string, failed bool, cols int) string {
	maxLines := 3
	output = strings.Trim(withoutToolErrorTags(output), "\n")
	switch {
	case failed:
		output, maxLines = "Error: "+output, maxShownLinesPerCall
	case strings.HasPrefix(output, "Command running in background"):
		return "Running in the background (↓ to manage)"
	case output == "" || output == "(Bash completed with no output)":
		return c.doneOrNoOutputText()
	}
	var rows []string
	for line := range strings.SplitSeq(output, "\n") {
		runes := []rune(withoutControlCharacters(expandTabs(line)))
		for part := range slices.Chunk(runes, max(1, cols-maxShownLinesPerCall)) {
			rows = append(rows, strings.TrimRight(string(part), " "))
		}
		if len(runes) == 0 {
			rows = append(rows, "")
		}
	}
	if more := len(rows) - maxLines; more > 1 {
		rows = append(rows[:maxLines], fmt.Sprintf("… +%d lines%s", more, expandHint))
	}
	return strings.Join(rows, "\n")
}

// doneOrNoOutputText returns "Done" if all programs of the command, such as mkdir, print nothing; otherwise "(No output)".
func (c *callView) doneOrNoOutputText() string {
	quiet := []string{"mv", "cp", "rm", "mkdir", "rmdir", "chmod", "chown", "chgrp", "touch", "ln", "cd", "export", "unset", "wait"}
	if slices.ContainsFunc(c.programNamesInCommand(), func(name string) bool { return !slices.Contains(quiet, name) }) {
		return "(No output)"
	}
	return "Done"
}

func (v *eventView) entriesOfRunningCall(c *callView, announcement transcriptEntry, detail string) []transcriptEntry {
	c.extraEntries = 1
	if v.screen.isInline {
		announcement.text, announcement.hasExpandHint = strings.NewReplacer("Searched", "Searching", "Read", "Reading", "Listed", "Listing").Replace(c.countsForSummaryLine().summaryLine())+"…", true
	}
	return []transcriptEntry{announcement, {glyph: "  " + resultGlyph + "  ", text: detail, hasNoGapBefore: true}}
}

// filesChangedByCommand are the changes that a command made in its repository, as in the structured result of Bash.
type filesChangedByCommand struct {
	Files        []fileChange `json:"files"`
	MoreFiles    int          `json:"moreFiles"` // number of changed files that are not in Files
	ChangedFiles []string     `json:"changedFiles"`
	IsUnknown    bool         `json:"unavailable"`
}

type fileChange struct {
	Path    string          `json:"filePath"`
	Hunks   []textdiff.Hunk `json:"hunks"`
	Created bool            `json:"created"`
	Deleted bool            `json:"deleted"`
}

func fileChangeTitle(f fileChange, shownPath string, rows []string) string {
	title := "Updated " + shownPath
	if f.Created {
		title = "Created " + shownPath
	} else if f.Deleted {
		title = "Deleted " + shownPath
	}
	added, removed := countAddedAndRemovedRows(rows)
	if added > 0 {
		title += fmt.Sprintf(" +%d", added)
	}
	if removed > 0 {
		title += fmt.Sprintf(" -%d", removed)
	}
	return title
}

func (v *eventView) namesOfMoreFiles(d *filesChangedByCommand, count int) string {
	const maxNames = 3
	rows := []string{fmt.Sprintf("… +%d files changed", count)}
	for _, path := range d.ChangedFiles {
		switch {
		case slices.ContainsFunc(d.Files, func(f fileChange) bool { return f.Path == path }):
		case len(rows) > maxNames:
			return strings.Join(append(rows, fmt.Sprintf("+%d more", count-maxNames)), "\n")
		default:
			rows = append(rows, relativePathIfInside(v.cwd, path))
		}
	}
	return strings.Join(rows, "\n")
}

package terminal

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// transcriptEntry is a paragraph of the transcript. The glyph precedes its first row.
type transcriptEntry struct {
	glyph, text    string
	isError        bool        // the entry is an error of the API
	blinks         bool        // the glyph blinks while the call runs
	hasExpandHint  bool        // the inline renderer appends a hint about the key that shows more
	hasNoGapBefore bool        // no empty row precedes the entry
	isOneBlock     bool        // the entry and the details below it form one block, like a summary of calls
	callID         string      // id of the running call that the entry shows; empty means none
	summedCounts   *callCounts // calls that the entry sums up; nil means none
}

// callCounts counts calls, and blocks of thinking between them.
type callCounts struct {
	searched, read, listed, ran, failed, thoughts int
	thinkingTime                                  time.Duration
}

func (n *callCounts) add(m *callCounts) {
	n.searched, n.read, n.listed, n.ran, n.failed = n.searched+m.searched, n.read+m.read, n.listed+m.listed, n.ran+m.ran, n.failed+m.failed
	n.thoughts, n.thinkingTime = n.thoughts+m.thoughts, n.thinkingTime+m.thinkingTime
}

// summaryLine returns the summary of the calls, such as "Read 2 files, ran 1 shell command".
func (n *callCounts) summaryLine() string {
	var parts []string
	if n.thoughts > 0 {
		parts = append(parts, fmt.Sprintf("thought for %s", max(n.thinkingTime, time.Second).Round(time.Second)))
	}
	for _, kind := range []struct {
		count      int
		verb, noun string
	}{{n.searched, "searched for", "pattern"}, {n.read, "read", "file"}, {n.listed, "listed", "directory"}, {n.ran, "ran", "shell command"}} {
		if kind.count > 0 {
			parts = append(parts, kind.verb+" "+strings.Replace(countWithNoun(kind.count, kind.noun), "ys", "ies", 1))
		}
	}
	text := strings.Join(parts, ", ")
	if n.failed > 0 {
		text += fmt.Sprintf(" · %d failed", n.failed)
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// mergeSummaries merges adjacent summaries into one line.
func (s *screen) mergeSummaries() {
	for i := len(s.entries) - 1; i > 0; i-- {
		if n, next := s.entries[i-1].summedCounts, s.entries[i].summedCounts; n != nil && next != nil {
			n.add(next)
			s.entries[i-1].text, s.entries = n.summaryLine(), slices.Delete(s.entries, i, i+1)
		}
	}
}

// screen is the content of the screen, independent of the renderer. It belongs to the goroutine of [Terminal.Run].
type screen struct {
	cols, rows int
	isInline   bool // the renderer draws the input field after the text, not at the bottom
	inTmux     bool
	header     []string
	entries    []transcriptEntry
	composer   composer
	queued     []string
	dialog     *dialog
	progress   *turnProgress // the running turn; nil means no turn is running
	mode       string
	screenHints
	background           backgroundView
	commandMenu          commandMenu
	mentionMenu          fileMentionMenu
	interruptedTurn      int
	composerHint         string // shown in the empty input field; empty means none
	effort               string
	agentsMentionedUntil time.Time // the footer mentions agents until then
	effortShownUntil     time.Time // the effort is shown above the input field until then
	faults               faultSet
	labels               screenLabels
}

type screenHints struct {
	sessionTitle  string // title that the user gave to the session; empty means none
	notice        string // replaces the footer
	aboveInput    string // replaces the text above the input field
	hint          string // shown above the input field until hintUntil
	hintUntil     time.Time
	showShortcuts bool
	hasPasted     bool   // the last key other than text has inserted a placeholder for pasted text
	lastPaste     string // pasted text that the last key replaced with a placeholder; empty means none
}

type turnProgress struct {
	startedAt              time.Time
	dialogShownAt          time.Time                             // when the last dialog of the turn appeared; startedAt if there was none
	verbs                  [2]string                             // verb of the running turn, verb of the finished turn
	spinnerFrame           int                                   // index of the spinner's glyph
	retry                  *protocol.FailedAPIRequestBeforeRetry // replaces the verb; nil means no retry
	retryAt                time.Time
	hasReply               bool
	approximateReplyTokens int      // approximate tokens of the replies
	prompts                []string // prompts of the turn; nil means that background work started it
	turnNumber             int
	runsShell              bool // a shell command of the user runs
	hadQueuedPrompts       bool // prompts were waiting when the turn was interrupted
	endsWithRefusal        bool // an answer of the user ends the turn
}

func (s *screen) isRunningTurnStoppedByUser() bool {
	return s.progress != nil && (s.progress.endsWithRefusal || s.progress.turnNumber == s.interruptedTurn)
}

func (s *screen) windowTitle() string {
	if s.progress == nil && len(s.background.agents()) == 0 || s.dialog != nil || s.inTmux {
		return idleWindowGlyph + cmp.Or(s.sessionTitle, defaultWindowTitle)
	}
	glyph := "◑ "
	if s.progress != nil {
		glyph = []string{"◐ ", "◑ "}[s.progress.spinnerFrame/4%2]
	}
	return glyph + cmp.Or(s.sessionTitle, defaultWindowTitle)
}

type screenFrame struct {
	rows                 []string
	bottomIndex          int   // index of the first row that a full screen keeps at its bottom; -1 means none
	overlayRows          int   // number of rows from bottomIndex on that cover the text instead of moving it up
	cursorRow, cursorCol int   // position of the cursor in rows
	blocks               []int // first row of each part of the transcript, then the end of the transcript
}

func (s *screen) renderFrame(now time.Time) screenFrame {
	f := screenFrame{bottomIndex: -1, rows: slices.Clone(s.header)}
	isGroup := false
	for _, e := range s.entries {
		if !e.hasNoGapBefore || e.glyph == resultPrefix && !isGroup {
			f.blocks = append(f.blocks, len(f.rows))
		}
		if !e.hasNoGapBefore {
			f.rows, isGroup = append(f.rows, ""), e.isOneBlock || e.glyph == "  "
		}
		cols := s.cols
		if e.blinks && e.callID != "" && (s.dialog == nil || !s.isInline) && s.progress != nil && s.progress.spinnerFrame/framesPerBlink%2 == 1 {
			e.glyph = strings.Replace(e.glyph, answerGlyph, " ", 1)
		}
		switch {
		case s.isInline && (e.hasExpandHint || e.summedCounts != nil):
			e.text += expandHint
		case e.text == runningText && s.dialog != nil:
			e.text = "Waiting…"
		}
		if e.isError {
			cols -= emptyColumnsRightOfErrorOrLabel
		}
		f.rows = append(f.rows, wrapWithFirstPrefix(e.glyph, e.text, cols)...)
	}
	f.blocks = append(f.blocks, len(f.rows))
	if s.dialog != nil {
		s.drawDialog(&f)
		return f
	}
	f.rows = append(f.rows, s.queuedRows()...)
	if !s.isInline {
		f.bottomIndex = len(f.rows)
	}
	f.rows = append(f.rows, s.activityRows(now)...)
	if s.isInline {
		f.rows = append(f.rows, "")
	}
	s.drawComposer(&f, now)
	return f
}

func (s *screen) drawDialog(f *screenFrame) {
	s.dialog.screenRows = s.rows
	rows, at := s.dialog.rows(s.cols)
	if s.isInline && s.dialog.commandLine != "" {
		f.rows = append(f.rows, "", promptGlyph+" "+s.dialog.commandLine)
	}
	if (s.dialog.state != StateQuestion || s.dialog.kind == "review") && !s.dialog.isOverlay && (s.dialog.kind != "model" || f.rows[len(f.rows)-1] != "") {
		f.rows = append(f.rows, "")
	}
	if (s.dialog.kind == "auto" || s.dialog.kind == "exit" || s.dialog.state == StateCommandPage) && !s.isInline {
		f.bottomIndex = len(f.rows)
	}
	hidden := len(rows) - s.rows
	if s.dialog.state == StateQuestion {
		hidden = 0 // no row is hidden, because the options scroll
	}
	if hidden > 0 && !s.isInline && len(s.dialog.foot) > 1 {
		rows[len(rows)-len(s.dialog.foot)] = fmt.Sprintf(" ↑ %d more lines", hidden)
	}
	f.cursorRow, f.cursorCol = len(f.rows)+at, s.dialog.indent
	f.rows = append(f.rows, rows...)
}

func (s *screen) queuedRows() []string {
	var rows []string
	for _, text := range s.queued {
		rows = append(rows, "")
		rows = append(rows, wrapWithFirstPrefix(promptGlyph+" ", text, s.cols)...)
	}
	if rows != nil {
		rows = append(rows, "  "+resultGlyph+"  Queued · ctrl+x ctrl+s to send now")
	}
	return rows
}

// expandHint is the end of a shortened text in the inline renderer. runningText is shown below a running command.
const (
	expandHint  = " (ctrl+o to expand)"
	runningText = "Running…"

	hintDuration = 6 * time.Second
	// framesPerBlink is the number of spinner frames for which the glyph of a running call is shown, and then hidden.
	framesPerBlink        = 5
	minTurnDurationToShow = 30 * time.Second // how long a turn runs before the screen shows its duration in seconds
)

// retryText says why and when a request is sent again. The first attempts omit the API's message; a long message is cut off.
func (p *turnProgress) retryText(now time.Time, cols int) string {
	why := fmt.Sprintf("%d %s", p.retry.Status, p.retry.Message)
	if p.retry.Attempt < 3 {
		why = "API error"
	} else if p.retry.Status == 0 {
		why = "Connection dropped (ECONNRESET)"
	}
	end := fmt.Sprintf(" · retrying in %.0fs · attempt %d/%d", max(1, math.Ceil(p.retryAt.Sub(now).Seconds())), p.retry.Attempt, p.retry.MaxRetries)
	return truncateRow(why, cols-textWidth(end)) + end
}

func (s *screen) activityRows(now time.Time) []string {
	if s.progress == nil || s.progress.runsShell {
		return nil
	}
	rows := []string{""}
	glyphs := []string{"✢", "✳", "✶", "✻", "✽", "*", "·"}
	switch elapsed := now.Sub(s.progress.startedAt).Truncate(time.Second); {
	case s.faults[faultTurnShownOnlyInTitle]:
		return rows[:len(rows)-1]
	case s.progress.retry != nil:
		text := s.progress.retryText(now, s.cols-2*textWidth("✻ "))
		if s.faults[faultMultiRowRetryMessage] {
			text = strings.Repeat(text+" · ", 4) + "the request is sent again"
		}
		rows = append(rows, wrapWithFirstPrefix("✻ ", text, s.cols)...)
	default:
		row := fmt.Sprintf("%s %s…", glyphs[s.progress.spinnerFrame%len(glyphs)], s.progress.verbs[0])
		if s.progress.approximateReplyTokens > 0 {
			row += fmt.Sprintf(" (%s · ↓ %d tokens)", elapsed, s.progress.approximateReplyTokens)
		} else if elapsed >= minTurnDurationToShow {
			row += fmt.Sprintf(" (%s)", elapsed)
		}
		rows = append(rows, row)
	}
	last := len(s.entries) - 1
	calls := s.progress.hasReply && last >= 0 && s.entries[last].glyph == answerGlyph+" " || slices.ContainsFunc(s.entries, func(e transcriptEntry) bool { return e.callID != "" })
	if tip := s.labels.pages.tipRowOfRunningTurn(); tip != "" && s.progress.retry == nil && !calls {
		rows = append(rows, truncateRow(tip, s.cols))
	}
	return rows
}

// openListRows returns the rows of the open list of commands or files; nil means that no list is open.
func (s *screen) openListRows() []string {
	switch {
	case s.commandMenu.isOpen() && s.isInline:
		return s.commandMenu.rows(&s.labels, s.cols, s.rows)
	case s.commandMenu.isOpen():
		return s.commandMenu.rows(&s.labels, s.cols, 0)
	case s.mentionMenu.isOpen():
		return s.mentionMenu.rows(s.cols)
	}
	return nil
}

func (s *screen) drawComposer(f *screenFrame, now time.Time) {
	rule, bottom := strings.Repeat(ruleGlyph, s.cols), len(f.rows)
	list := s.openListRows()
	switch {
	case s.isInline:
	case list != nil:
		f.rows, f.overlayRows = append(append(f.rows, ""), list...), 1+len(list)
	default:
		aside := s.hintRowAboveInput(now)
		f.rows = append(f.rows, strings.TrimRight(strings.Repeat(" ", max(0, s.cols-textWidth(aside)-2))+aside, " "))
	}
	top := rule
	if c := &s.composer; c.isShowingUnchangedHistoryDraft() {
		title := fmt.Sprintf("%s History %d/%d ", strings.Repeat(ruleGlyph, 3), c.historyIndex+1, len(c.history))
		top = title + strings.Repeat(ruleGlyph, max(0, s.cols-textWidth(title)))
	} else if s.sessionTitle != "" {
		title := " " + truncateRow(s.sessionTitle, s.cols-3) + " " + ruleGlyph
		top = strings.Repeat(ruleGlyph, max(0, s.cols-textWidth(title))) + title
	}
	f.rows = append(f.rows, top)
	const margin = 2
	rows, row, col := s.composer.rows(s.cols - margin - 1)
	if most := max(1, s.rows/2-2); len(rows) > most { // the rows around the cursor
		from := min(max(0, row-most+1), len(rows)-most)
		rows, row = rows[from:from+most], row-from
	}
	f.cursorRow, f.cursorCol = len(f.rows)+row, margin+col
	first := promptGlyph
	if s.composer.isShellCommand() && strings.HasPrefix(rows[0], shellCommandPrefix) {
		first, rows[0] = shellCommandPrefix, strings.TrimPrefix(rows[0], shellCommandPrefix)
		if row == 0 {
			f.cursorCol = max(margin, f.cursorCol-1)
		}
	}
	for i, text := range rows {
		glyph := "  "
		if i == 0 {
			glyph = first + noBreakSpace
		}
		if i == 0 && s.composer.isEmpty() {
			if text = s.composerHint; len(s.queued) > 0 {
				text = "Press up to edit queued messages"
			}
		}
		f.rows = append(f.rows, glyph+text)
	}
	f.rows = append(f.rows, rule)
	switch {
	case list != nil && s.isInline:
		f.rows = append(f.rows, list...)
	case s.showShortcuts:
		f.rows = append(f.rows, s.labels.shortcutHelpRows(s.cols)...)
	default:
		aside := ""
		if s.isInline && s.notice == "" {
			aside = s.hintRowAboveInput(now)
		}
		f.rows = append(f.rows, inlineFooterRows(truncateRow("  "+s.footerText(now), s.cols-2), aside, s.cols)...)
		f.rows = append(f.rows, s.agentRows(len(f.rows)-bottom, now)...)
	}
}

// agentRows returns the list of agents. Together with the input field, it fills at most half of a full screen.
func (s *screen) agentRows(inputRows int, now time.Time) []string {
	rows := s.background.agentRows(s.cols, now)
	if s.isInline {
		return rows
	}
	return rows[:min(len(rows), max(0, s.rows/2-inputRows))]
}

func (s *screen) hintRowAboveInput(now time.Time) string {
	switch {
	case s.aboveInput != "":
		return s.aboveInput
	case slices.Contains(s.composer.draft, '\n'):
		return "ctrl+g to edit in Vim"
	case s.hint != "" && now.Before(s.hintUntil):
		return s.hint
	}
	var parts []string
	if s.effort != "" && now.Before(s.effortShownUntil) {
		parts = append(parts, "◐ "+s.effort+" · /effort")
	}
	if s.composer.stashedDraft != "" {
		parts = append(parts, "draft stashed")
	}
	return strings.Join(parts, " · ")
}

func (s *screen) footerText(now time.Time) string {
	if s.notice != "" {
		return s.notice
	}
	switch {
	case s.faults[faultFooterHintsHidden]:
		return ""
	case s.composer.isShellCommand():
		return shellCommandPrefix + " for shell mode"
	}
	text := s.labels.modeText(s.mode)
	shells, tasks, manage := s.background.footerTexts()
	if shells != "" {
		text = strings.TrimSuffix(text, modeCycleHint) + shells
	}
	text += tasks
	switch {
	case s.hasPasted:
		return "paste again to expand"
	case !s.composer.isEmpty():
		return text
	case s.progress != nil && !s.faults[faultTurnShownOnlyInTitle]:
		text += " · " + s.labels.findLabelOrPrefix("busy", "esc to interrupt")
	case (s.mode == "default" || s.mode == "") && tasks == "":
		text += " · ? for shortcuts"
	}
	if now.Before(s.agentsMentionedUntil) {
		text += " · ← for agents"
	}
	return text + manage
}

func inlineFooterRows(footer, rightText string, cols int) []string {
	room := cols - textWidth(rightText) - len(overlayMargin)
	gap := room - textWidth(footer)
	switch {
	case rightText == "":
		return []string{truncateRow(footer, cols)}
	case gap > 0:
		return []string{footer + strings.Repeat(" ", gap) + rightText}
	}
	return []string{truncateRow(footer, cols), strings.Repeat(" ", max(0, room)) + rightText}
}

const overlayMargin = "  "

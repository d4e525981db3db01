package terminal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

type eventView struct {
	screen                  *screen
	player                  *turnPlayer
	clock                   interface{ Now() time.Time }
	verbRand                *rand.Rand // selects the verbs of the spinner; nil (no seed) means that they are used in order
	verbIndex               int
	cwd                     string
	runningCalls            []*callView
	stepStartedAt           time.Time // when the model was last asked
	refusalShown            bool      // the transcript already shows the refusal with which the turn ends
	commandChangesExplained bool      // an entry already says how changes of commands are found
}

func (v *eventView) showMailboxMessage(message any) {
	s := v.screen
	switch m := message.(type) {
	case turnStarted:
		v.beginTurn(m.prompts, m.turn)
	case shellEnded:
		v.showUserShellOutput(m)
	case turnEnded:
		v.endTurnOrRestorePrompt()
	case promptsTakenIntoRunningTurn:
		s.queued = withoutPasteTags(v.player.prompts.waitingTexts())
		v.showPrompts(m.prompts)
	case protocol.Event:
		v.showEvent(m)
	}
}

func (v *eventView) beginTurn(prompts []string, turn int) {
	s := v.screen
	s.queued = withoutPasteTags(v.player.prompts.waitingTexts())
	s.progress = &turnProgress{startedAt: v.clock.Now(), dialogShownAt: v.clock.Now(), verbs: v.nextSpinnerVerbs(), prompts: withoutPasteTags(prompts), turnNumber: turn}
	_, s.progress.runsShell = shellCommandOfSinglePrompt(prompts)
	s.composerHint, v.refusalShown, v.stepStartedAt = "", false, v.clock.Now()
	v.showPrompts(prompts)
}

func (v *eventView) nextSpinnerVerbs() [2]string {
	all := [][2]string{{"Thinking", "Thought"}, {"Working", "Worked"}, {"Brewing", "Brewed"}, {"Cooking", "Cooked"}, {"Baking", "Baked"}, {"Churning", "Churned"}}
	if v.verbIndex = (v.verbIndex + 1) % len(all); v.verbRand != nil {
		v.verbIndex = v.verbRand.IntN(len(all))
	}
	return all[v.verbIndex]
}

func (v *eventView) showPrompts(prompts []string) {
	for _, text := range withoutPasteTags(prompts) {
		command, isShell := strings.CutPrefix(text, shellCommandPrefix)
		if !isShell {
			v.screen.entries = append(v.screen.entries, transcriptEntry{glyph: promptGlyph + " ", text: text})
			v.screen.entries = append(v.screen.entries, notesAboutMentionedFiles(v.cwd, text)...)
			continue
		}
		v.screen.entries = append(v.screen.entries, transcriptEntry{glyph: shellCommandPrefix + " ", text: command}, transcriptEntry{glyph: resultPrefix, text: runningText, hasNoGapBefore: true, callID: callIDForUserShellCommands})
	}
}

func notesAboutMentionedFiles(dir, prompt string) (notes []transcriptEntry) {
	for _, m := range regexp.MustCompile(`(?:^|\s)@(\S+)`).FindAllStringSubmatch(prompt, -1) {
		path := filepath.Join(dir, m[1])
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			notes = append(notes, noteEntry("Listed directory "+strings.TrimSuffix(m[1], "/")+"/"))
		} else if text, err := os.ReadFile(path); err == nil {
			notes = append(notes, noteEntry(fmt.Sprintf("Read %s (%s)", m[1], countWithNoun(strings.Count(strings.TrimSuffix(string(text), "\n"), "\n")+1, "line"))))
		}
	}
	return notes
}

const callIDForUserShellCommands = shellCommandPrefix

func (v *eventView) showUserShellOutput(m shellEnded) {
	s := v.screen
	at := slices.IndexFunc(s.entries, func(e transcriptEntry) bool { return e.callID == callIDForUserShellCommands })
	if at < 0 || s.progress == nil {
		return
	}
	var rows []transcriptEntry
	for _, text := range []string{m.stdout, m.stderr} {
		if text = strings.Trim(text, "\n"); text != "" {
			rows = append(rows, noteEntry(text))
		}
	}
	s.progress.runsShell = false
	switch {
	case s.isRunningTurnStoppedByUser():
		rows = nil
	case rows == nil:
		rows = []transcriptEntry{noteEntry("(No output)")}
	}
	s.progress.hasReply = rows != nil
	s.entries = slices.Replace(s.entries, at, at+1, rows...)
}

// endTurnOrRestorePrompt shows the end of a turn. After an interrupt before the first reply, the prompt returns to the input field.
func (v *eventView) endTurnOrRestorePrompt() {
	s := v.screen
	busy := s.progress
	if busy == nil {
		return
	}
	interrupted := s.isRunningTurnStoppedByUser()
	s.progress = nil
	switch {
	case interrupted && !busy.hasReply && !busy.hadQueuedPrompts && busy.prompts != nil && s.composer.isEmpty():
		prompt := strings.TrimPrefix(busy.prompts[0], shellCommandPrefix)
		for i, e := range slices.Backward(s.entries) {
			if e.text == prompt {
				s.entries = s.entries[:i]
				break
			}
		}
		s.composer.setText(strings.Join(busy.prompts, "\n"))
	case interrupted && !v.refusalShown:
		v.appendNote("Interrupted · What should Claude do instead?")
	}
}

func noteEntry(text string) transcriptEntry {
	return transcriptEntry{glyph: resultPrefix, text: text, hasNoGapBefore: true}
}

func (v *eventView) appendNote(text string) {
	v.screen.entries = append(v.screen.entries, noteEntry(text))
}

func (v *eventView) showEvent(ev protocol.Event) {
	s := v.screen
	switch ev := ev.(type) {
	case *protocol.InitEvent:
		s.mode = string(ev.PermissionMode)
	case *protocol.AssistantEvent:
		if s.progress != nil {
			s.progress.retry = nil
		}
		if ev.ParentToolUseID == nil {
			v.showReply(ev)
		}
	case *protocol.UserEvent:
		if ev.ParentToolUseID == nil {
			v.stepStartedAt = v.clock.Now()
			v.showToolResults(ev)
		}
	case *protocol.FailedAPIRequestBeforeRetry:
		if s.progress != nil {
			s.progress.retry, s.progress.retryAt = ev, v.clock.Now().Add(time.Duration(ev.RetryInMS)*time.Millisecond)
		}
	case *protocol.SystemEvent:
		v.showSystem(ev)
	case *protocol.Frame:
		if ev.Type == "conversation_reset" {
			s.entries = nil
			if s.progress != nil {
				v.showPrompts(s.progress.prompts)
			}
		}
	case *protocol.ResultEvent:
		v.showDurationOfSuccessfulTurn(ev)
	}
}

func (v *eventView) showReply(ev *protocol.AssistantEvent) {
	s := v.screen
	for _, block := range ev.Message.Content {
		switch block := block.(type) {
		case protocol.ThinkingBlock:
			counts := &callCounts{thoughts: 1, thinkingTime: v.clock.Now().Sub(v.stepStartedAt)}
			s.entries = append(s.entries, transcriptEntry{glyph: "  ", text: counts.summaryLine(), summedCounts: counts})
			s.mergeSummaries()
		case protocol.TextBlock:
			v.addEstimatedReplyTokens(len(block.Text))
			if ev.LocalCommandSource != "" || ev.LocalCommandRun != nil {
				v.appendNote(block.Text)
				continue
			}
			failed := ev.Error != "" || ev.IsAPIErrorMessage
			switch {
			case !failed:
				block.Text = markdownWithoutMarks(block.Text, s.cols)
			case !strings.HasPrefix(block.Text, "API Error"):
				s.composerHint = "Once fixed, resend your message"
				v.appendNote(apiErrorTextOnScreen(block.Text))
				continue
			case !strings.Contains(block.Text, "limit of this workspace"):
				s.composerHint = "Resend your message to try again"
			}
			s.entries = append(s.entries, transcriptEntry{glyph: answerGlyph + " ", text: block.Text, isError: failed})
		case protocol.ToolUse:
			v.addEstimatedReplyTokens(len(block.Input))
			s.entries = append(s.entries, v.beginCall(block)...)
		}
	}
}

func apiErrorTextOnScreen(errorText string) string {
	switch {
	case errorText == "Credit balance is too low":
		return "Credit balance too low · Add funds: https://platform.claude.com/settings/billing"
	case strings.HasPrefix(errorText, "Prompt is too long"):
		return errorText + " · /clear to start fresh"
	}
	return errorText
}

func (v *eventView) addEstimatedReplyTokens(replyBytes int) {
	const bytesPerToken = 4
	if busy := v.screen.progress; busy != nil {
		busy.hasReply, busy.approximateReplyTokens = true, busy.approximateReplyTokens+replyBytes/bytesPerToken+1
	}
}

func (v *eventView) showToolResults(ev *protocol.UserEvent) {
	for i, block := range ev.Message.Content.Blocks {
		switch block := block.(type) {
		case protocol.TextBlock:
			if i > 0 { // the text that the user typed when permitting the call
				v.showPrompts([]string{block.Text})
			}
		case protocol.ToolResultBlock:
			v.setChangedFileRowsOfCall(block.ToolUseID, ev.ToolUseResult)
			v.endCall(block, slices.ContainsFunc(ev.ToolResultMeta, func(m protocol.ToolResultMeta) bool {
				return m.ID == block.ToolUseID && m.NonExecutionKind == "user-rejected"
			}))
		}
	}
}

func withoutToolErrorTags(text string) string {
	return strings.TrimSuffix(strings.TrimPrefix(text, "<tool_use_error>"), "</tool_use_error>")
}

func firstLinesOfResult(text string) string {
	const most = 4
	text = withoutToolErrorTags(strings.TrimSpace(text))
	lines := strings.Split(text, "\n")
	if len(lines) <= most {
		return text
	}
	return strings.Join(lines[:most], "\n") + fmt.Sprintf("\n… +%d lines", len(lines)-most)
}

func relativePathIfInside(cwd, path string) string {
	if rel, err := filepath.Rel(cwd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

func (v *eventView) showSystem(ev *protocol.SystemEvent) {
	s := v.screen
	switch ev.Subtype {
	case "task_started", "task_notification":
		if text := s.background.updateTasksForEvent(ev, v.clock.Now()); text != "" {
			for i, e := range s.entries {
				if e.glyph == turnEndGlyph && strings.HasSuffix(e.text, stillRunning) {
					s.entries[i].text = e.text[:strings.LastIndex(e.text, " · ")] + s.background.runningShellsText()
				}
			}
			s.entries = append(s.entries, transcriptEntry{glyph: answerGlyph + " ", text: text})
		}
	case "compact_boundary":
		if meta, _ := ev.FieldValue("compact_metadata").(protocol.CompactMetadata); s.isInline && meta.Trigger == "manual" {
			s.entries = append([]transcriptEntry{{glyph: "✻ ", text: "Conversation compacted (ctrl+o for the summary)\nEarlier messages are saved in " + v.player.session.Transcript().Path() + "\n"}}, s.entries[max(0, len(s.entries)-1):]...) // the last one is /compact
		}
		v.appendNote("Compacted (ctrl+o to see full summary)")
	case "status":
		if mode, ok := ev.FieldValue("permissionMode").(protocol.PermissionMode); ok {
			s.mode = string(mode)
		}
	}
}

func (v *eventView) showDurationOfSuccessfulTurn(ev *protocol.ResultEvent) {
	s := v.screen
	s.mode = string(v.player.session.Policy().Mode())
	if s.progress == nil || s.isRunningTurnStoppedByUser() || ev.IsError || ev.LocalCommand != "" || ev.NumTurns == 0 {
		return
	}
	now := v.clock.Now()
	if agents := len(s.background.agents()); agents > 0 {
		s.entries = append(s.entries, transcriptEntry{glyph: "✻ ", text: "Waiting for " + countWithNoun(agents, "background agent") + " to finish"})
		return
	}
	v.appendTurnDuration(now.Sub(s.progress.startedAt), now, s.progress.verbs)
	s.entries[len(s.entries)-1].text += s.background.runningShellsText()
}

func (v *eventView) appendTurnDuration(took time.Duration, at time.Time, verbs [2]string) {
	text := fmt.Sprintf("%s for %s · done %s", verbs[1], took.Truncate(time.Second), at.Format("3:04 PM"))
	v.screen.entries = append(v.screen.entries, transcriptEntry{glyph: turnEndGlyph, text: text})
}

func (v *eventView) showRestoredMessage(role string, content protocol.Content) {
	blocks := content.Blocks
	if blocks == nil {
		blocks = []protocol.Block{protocol.Text(content.Text)}
	}
	if role == "assistant" {
		reply := &protocol.AssistantEvent{}
		reply.Message.Content = blocks
		v.showReply(reply)
		return
	}
	for _, block := range blocks {
		switch block := block.(type) {
		case protocol.TextBlock:
			if text := strings.TrimSpace(block.Text); text != "" && !strings.HasPrefix(text, "<") { // texts meant for the model begin with a tag
				v.screen.entries = append(v.screen.entries, transcriptEntry{glyph: promptGlyph + " ", text: text})
			}
		case protocol.ToolResultBlock:
			v.endCall(block, false)
		}
	}
}

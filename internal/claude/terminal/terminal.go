package terminal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Terminal plays a session on a console.
type Terminal struct {
	console             *Console
	player              *turnPlayer
	view                *eventView
	prompter            *prompter
	plan                launch.Plan
	commandLine         []string // arguments without the program's name, for the hint about how to resume
	spinnerTicker       *time.Ticker
	armedKey            keyName     // key that was just pressed, if a second press has another effect; 0 means none
	disarmTimer         *time.Timer // resets armedKey
	interruptNextTurn   bool        // the user has interrupted a turn that is about to start
	quitRequested       bool
	exitCommandPromptID string // id of the command that has ended the session; empty means none
	NextSessionID       string // id of the session that the user wants to continue; empty means none
	usesDefaultModel    bool   // the user has selected no model
	autoModeExplained   bool   // auto mode was explained, is about to be, or is the default mode
	pasteID             string // id in the tags around pasted texts; empty means that pasted texts get no tags
}

// Open builds the session of a plan for a console. It starts nothing. words are the arguments of the command line.
func Open(plan launch.Plan, console *Console, words []string) (*Terminal, error) {
	inbox, screen := newMailbox(), &console.screen
	p := &turnPlayer{screenMailbox: inbox, prompts: &promptQueue{wake: make(chan struct{}, 1), screenMailbox: inbox}}
	s, err := session.Open(plan, sessionHostWithDialogs{promptQueue: p.prompts, screenMailbox: inbox})
	if err != nil {
		return nil, err
	}
	p.session, p.prompts.recordOperation = s, func(operation, text string) { session.RecordQueueChange(s, operation, text) }
	for _, line := range console.answeredDialogs {
		s.JournalAndWarningWriter().WriteJournal(line)
	}
	console.answeredDialogs = nil
	t := &Terminal{
		console: console, player: p, plan: plan, commandLine: words, pasteID: s.ID()[:4],
		view:     &eventView{screen: screen, player: p, clock: plan.Clock, verbRand: plan.Clock.NewRandFromRunSeed(), cwd: plan.CWD},
		prompter: &prompter{screen: screen, player: p, cwd: plan.CWD},
	}
	forbidden := plan.Settings.Permissions.DisableAuto
	t.prompter.auto.ignoresPlans, t.prompter.auto.isUnavailable = plan.Settings.Permissions.NoClassifierInPlanMode, forbidden || !claudecode.FactsOfModel(claudecode.ResolveModel(s.Model())).HasAutoMode()
	screen.entries, screen.queued, screen.dialog, screen.progress, screen.composer = nil, nil, nil, nil, composer{} // left by the previous session
	for _, m := range s.Transcript().ResumedHistory() {
		t.view.showRestoredMessage(m.Role, m.Content)
		if m.Turn != nil {
			at, _ := time.Parse(time.RFC3339, m.Turn.Timestamp) // cannot fail, because the CLI wrote the time
			t.view.appendTurnDuration(time.Duration(m.Turn.DurationMS)*time.Millisecond, at.Local(), t.view.nextSpinnerVerbs())
		}
	}
	screen.isInline = plan.Settings.Merged()["tui"] == "default"
	screen.mode = string(plan.Permission.Mode)
	t.autoModeExplained = plan.Permission.Mode == protocol.ModeAuto && !slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "--permission-mode") })
	for _, line := range readPromptHistoryOfAllProjects(&plan) {
		if line.Project == plan.CWD {
			screen.composer.appendToHistory(line.Display)
		}
	}
	screen.mentionMenu.dir = plan.CWD
	screen.commandMenu.commands, t.usesDefaultModel = slashCommands(&plan), !plan.Model.IsExplicit
	screen.effort = cmp.Or(plan.Model.Effort, "medium")
	t.showHeader()
	return t, nil
}

// Session returns the session. The caller of Open closes it.
func (t *Terminal) Session() *session.Session { return t.player.session }

// Run runs the session until the user exits. first is a prompt to send at once; empty means none. The error comes
// from the session, or is the cause of the cancellation of ctx.
func (t *Terminal) Run(ctx context.Context, firstPrompt string) error {
	c := t.console
	c.updateSizeAndFaults()
	if !c.screen.isInline {
		if err := c.painter.enterFullScreen(); err != nil {
			return err
		}
	}
	if err := t.player.session.Start(ctx); err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	defer end()
	var group sync.WaitGroup
	group.Go(func() { t.player.playPrompts(life) })
	defer group.Wait()
	defer end()
	c.screen.agentsMentionedUntil = t.plan.Clock.Now().Add(startHintDuration)
	c.screen.effortShownUntil = c.screen.agentsMentionedUntil
	defer time.AfterFunc(startHintDuration, func() { t.player.screenMailbox.addMessage(nil) }).Stop()
	t.spinnerTicker = time.NewTicker(spinnerPeriod)
	defer t.spinnerTicker.Stop()
	t.disarmTimer = time.NewTimer(time.Hour)
	defer t.disarmTimer.Stop()
	if firstPrompt != "" {
		t.addToHistoryAndRunOrSend(firstPrompt, firstPrompt)
	}
	err := c.bufferKeysUntil(ctx, c.lastAnswerAt.Add(claudecode.DelayFromLastDialogAnswerToInputField)) // in the past if no dialog was shown
	if c.screen.composer.setText(strings.TrimSpace(c.earlyText)); err == nil {
		err = t.runEventLoop(ctx)
	}
	end()
	group.Wait()
	session.RecordUserExitInTranscript(t.player.session, t.exitCommandPromptID)
	if errors.Is(err, errUserExit) {
		err = nil
	}
	return err
}

const (
	startHintDuration = 10 * time.Second
	spinnerPeriod     = 120 * time.Millisecond

	// Time limits for a second Ctrl-C or Ctrl-D, which exits, and for a second Esc, which clears the draft.
	exitKeyWindow                = 2 * time.Second
	maxTimeBetweenEscapesToClear = time.Second
)

type inputDelayedByEchoFault struct{ data []byte }

var errUserExit = errors.New("the user ended the session")

func (t *Terminal) runEventLoop(ctx context.Context) error {
	c := t.console
	for {
		if err := t.drawScreen(); err != nil {
			return err
		}
		if t.quitRequested {
			return errUserExit
		}
		var ticks <-chan time.Time
		if c.screen.progress != nil && !t.plan.Clock.IsReproducible() {
			ticks = t.spinnerTicker.C
		}
		var keys []key
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.player.screenMailbox.wake:
		case data, ok := <-c.input:
			if !ok {
				return causeOrHangUpError(ctx)
			}
			if c.screen.faults[faultEchoLate] {
				time.AfterFunc(delayOfFaultEchoLate, func() { t.player.screenMailbox.addMessage(inputDelayedByEchoFault{data}) })
				break
			}
			keys = c.decodeKeysAndSetEscapeTimer(data)
		case <-c.escapeTimer.C:
			keys = c.keys.dropPendingAndReturnLoneEscape()
		case <-ticks:
			c.screen.progress.spinnerFrame++
		case <-t.disarmTimer.C:
			t.armedKey, c.screen.notice, c.screen.aboveInput = 0, "", ""
		case signal := <-c.resized:
			if c.painter.lastRows, c.painter.resized = nil, true; signal.String() == "continued" { // the shell has changed the terminal
				if err := c.continueAfterSuspend(); err != nil {
					return err
				}
			}
		}
		if err := t.dispatchWaitingMessages(); err != nil {
			return err
		}
		t.handleKeys(keys) // keys are handled last, because they refer to the screen after the messages
		t.explainAutoModeSoon()
	}
}

// dispatchWaitingMessages handles the messages of the mailbox. The error comes from the session.
func (t *Terminal) dispatchWaitingMessages() (sessionError error) {
	for _, message := range t.player.screenMailbox.takeAll() {
		switch m := message.(type) {
		case sessionRunFailed:
			return m.err
		case inputDelayedByEchoFault:
			t.handleKeys(t.console.decodeKeysAndSetEscapeTimer(m.data))
		case autoModeExplanationDue:
			t.explainAutoModeOncePerUser()
		case contextUsageRequested:
			t.showContextUsage(m.commandLine)
		}
		t.prompter.updatePendingRequests(message)
		t.view.showMailboxMessage(message)
		if _, started := message.(turnStarted); started && t.interruptNextTurn {
			t.interruptNextTurn = false
			t.interruptRunningTurn()
		}
	}
	return nil
}

func (t *Terminal) drawScreen() error {
	c := t.console
	c.updateSizeAndFaults()
	c.setDialog(c.screen.dialog)
	c.screen.sessionTitle = t.player.session.State().SessionStateSnapshot().Title
	f := c.screen.renderFrame(t.plan.Clock.Now())
	if err := c.painter.setTitle(c.screen.windowTitle()); err != nil {
		return err
	}
	return c.painter.paint(f, c.screen.cols, c.screen.rows)
}

func (t *Terminal) handleKeys(keys []key) {
	for _, k := range keys {
		if t.quitRequested {
			return
		}
		t.handleKey(k)
	}
}

func (t *Terminal) handleKey(k key) {
	s := &t.console.screen
	if s.dialog != nil {
		if s.dialog.ignoresKeyPressedTooSoon(k, t.console.sys.Now()) {
			return
		}
		shownAt := s.dialog.shownAt
		if next, done := s.dialog.handleKey(k); done {
			if s.dialog = next; next != nil {
				next.shownAt = shownAt // another page of the same dialog
			}
			if next == nil {
				t.prompter.showNextPermissionRequest()
			}
		}
		return
	}
	again := t.armedKey == k.name && t.armedKey != 0
	if t.armedKey != 0 {
		t.armedKey, s.notice, s.aboveInput = 0, "", ""
		t.disarmTimer.Stop()
	}
	if s.showShortcuts && (k.name == keyBackspace || k.name == keyEscape || k.text == "?") {
		s.showShortcuts = false
		return
	}
	completed, handled := s.commandMenu.handleKey(k.name)
	if completed != "" {
		s.composer.setText(completed)
	}
	if !handled {
		if completed, handled = s.mentionMenu.handleKey(k.name); completed != "" {
			s.mentionMenu.insertPath(&s.composer, completed)
		}
	}
	if !handled {
		t.editDraftOrRunShortcut(k, again)
	}
	s.commandMenu.updateForDraft(s.composer.text())
	s.commandMenu.closed = s.commandMenu.closed || s.composer.isShowingUnchangedHistoryDraft()
	s.mentionMenu.updateFromMentionAtCursor(&s.composer)
}

func (t *Terminal) editDraftOrRunShortcut(k key, isSecondPress bool) {
	s := &t.console.screen
	pasted := s.lastPaste
	s.showShortcuts, s.lastPaste, s.hasPasted = false, "", s.hasPasted && k.name == keyText
	switch k.name {
	case keyText:
		if s.showShortcuts = k.text == "?" && s.composer.isEmpty(); !s.showShortcuts {
			s.composer.insert(k.text)
		}
	case keyPaste:
		s.lastPaste = s.composer.paste(k.text, pasted)
		s.hasPasted = s.lastPaste != ""
	case keyEnter:
		t.submitDraftOrInsertNewline()
	case keyCtrlR:
		s.dialog = newPromptHistoryDialog(&t.plan, s)
	case keyUp:
		t.moveUpOrRecallPrompt()
	case keyDown:
		if !s.composer.moveCursorByLine(1) {
			s.composer.showDraftFromHistory(1)
		}
	case keyCtrlU:
		const minDeleted = 3 // minimum number of deleted characters for which the real CLI shows the hint
		if s.composer.cutToLineStartOrJoinLines() && len(s.composer.killBuffer) >= minDeleted {
			t.showHint("ctrl+y to paste deleted text")
		}
	case keyTab:
		if s.composer.isEmpty() {
			t.showHint("Use alt+t to toggle thinking")
		}
	case keyEscape:
		t.interruptOrClearDraft(isSecondPress)
	case keyBackTab:
		t.switchToNextPermissionMode()
	case keyCtrlZ:
		t.quitRequested = t.console.suspend() != nil
	case keyCtrlC:
		t.interruptClearDraftOrQuit(isSecondPress)
	case keyCtrlD:
		switch {
		case isSecondPress:
			t.quitRequested = true
		case s.composer.isEmpty():
			t.armSecondPress(keyCtrlD, exitKeyWindow).notice = "Press Ctrl-D again to exit"
		default:
			s.composer.deleteForward()
		}
	default:
		s.composer.editDraftWithKey(k.name)
	}
}

func (t *Terminal) moveUpOrRecallPrompt() {
	c := &t.console.screen.composer
	if c.moveCursorByLine(-1) || t.moveQueuedPromptsToInputField() {
		return
	}
	if c.showDraftFromHistory(-1); c.historyIndex < len(c.history)-1 {
		t.showHint("ctrl+r to search history")
	}
}

func (t *Terminal) showHint(text string) {
	s, now := &t.console.screen, t.plan.Clock.Now()
	if s.hint, s.hintUntil = text, now.Add(hintDuration); now.Before(s.effortShownUntil) {
		s.effortShownUntil = s.hintUntil.Add(startHintDuration) // the effort is shown again
	}
}

func (t *Terminal) interruptOrClearDraft(repeated bool) {
	switch s := &t.console.screen; {
	case t.interruptRunningOrNextTurn():
	case repeated:
		s.composer.moveDraftToHistory()
	case s.composer.isShellCommand() && len(s.composer.draft) == 1:
		s.composer.setText("")
	case !s.composer.isEmpty():
		t.armSecondPress(keyEscape, maxTimeBetweenEscapesToClear).aboveInput = "esc again to clear"
	}
}

func (t *Terminal) interruptClearDraftOrQuit(repeated bool) {
	s := &t.console.screen
	switch {
	case repeated:
		t.quitRequested = true
	case t.interruptRunningOrNextTurn():
	default:
		shell := s.composer.isShellCommand()
		if s.composer.moveDraftToHistory(); shell {
			s.composer.setText(shellCommandPrefix)
		}
		t.armSecondPress(keyCtrlC, exitKeyWindow).notice = "Press Ctrl-C again to exit"
	}
}

// interruptRunningOrNextTurn interrupts the turn that is running or about to start. It returns false if there is none.
func (t *Terminal) interruptRunningOrNextTurn() (hasTurn bool) {
	switch s := &t.console.screen; {
	case s.progress != nil:
		t.interruptRunningTurn()
	case len(s.queued) == 0:
		return false
	default:
		t.interruptNextTurn = !t.moveQueuedPromptsToInputField()
	}
	return true
}

func (t *Terminal) interruptRunningTurn() {
	s := &t.console.screen
	s.progress.hadQueuedPrompts = len(s.queued) > 0
	cause := session.ErrInterruptedByKey
	if p := s.progress; !p.hasReply && !p.hadQueuedPrompts && p.prompts != nil && s.composer.isEmpty() {
		cause = session.ErrWithdrawn
	}
	if slices.ContainsFunc(s.entries, func(e transcriptEntry) bool { return e.callID != "" }) {
		t.player.prompts.RecordDequeuedBeforeFinalReply()
	}
	s.interruptedTurn = t.player.interruptRunningTurn(cause)
}

func (t *Terminal) armSecondPress(awaitedKey keyName, window time.Duration) *screen {
	t.armedKey = awaitedKey
	t.disarmTimer.Reset(window)
	return &t.console.screen
}

func (t *Terminal) submitDraftOrInsertNewline() {
	s := &t.console.screen
	c := &s.composer
	if c.cursor > 0 && c.draft[c.cursor-1] == '\\' { // a backslash before Enter is a new line
		c.deleteRuneBeforeCursor()
		c.insert("\n")
		return
	}
	text := strings.TrimSpace(c.textWithPastesExpanded(""))
	if text == "" || text == shellCommandPrefix {
		return
	}
	prompt := text
	if tagged := c.textWithPastesExpanded(t.pasteID); strings.Contains(tagged, "<pasted_content") && !strings.ContainsAny(text[:1], "/!") {
		prompt = tagged
	}
	c.setText(c.stashedDraft)
	s.hint, c.stashedDraft = "", ""
	t.addToHistoryAndRunOrSend(text, prompt)
	if s.faults[faultSentPromptStaysInInput] {
		c.setText(text)
	}
}

// addToHistoryAndRunOrSend runs a command or sends a prompt. taggedPrompt is the text with tags around pasted texts.
func (t *Terminal) addToHistoryAndRunOrSend(text, taggedPrompt string) {
	s := &t.console.screen
	s.composerHint = ""
	if s.composer.appendToHistory(text); !t.plan.Transcript.NoPersist {
		appendPromptToHistoryFile(&t.plan, t.player.session.ID(), text)
	}
	word, _, _ := strings.Cut(text, " ")
	if word == "/exit" || word == "/quit" {
		if t.quitRequested = true; s.progress == nil {
			t.exitCommandPromptID = t.plan.Clock.NewID()
		} else if len(t.view.runningCalls) == 0 {
			t.player.interruptRunningTurn(session.ErrSuperseded) // the transcript gets no line about the interrupt
		}
		return
	}
	if t.runPageCommand(text) {
		return
	}
	if said, refused := unsupportedCommand(word); refused {
		t.showAndRecordDismissedCommand(text, said)
		return
	}
	if s.commandMenu.isUnknownCommand(word) {
		t.showAndRecordNotice("Unknown command: "+word, "warning")
		if args := strings.TrimSpace(strings.TrimPrefix(text, word)); args != "" {
			t.showAndRecordNotice("Args from unknown skill: "+args, "warning")
		}
		return
	}
	if s.progress != nil || len(s.queued) > 0 {
		t.player.prompts.pushDuringTurn(taggedPrompt)
	} else {
		t.player.prompts.pushSentWhileIdle(taggedPrompt)
	}
	s.queued = append(s.queued, text) // kept until its turn starts, so that Ctrl-C finds it
}

// moveQueuedPromptsToInputField moves the queued prompts back to the input field. It returns false if the queue is empty.
func (t *Terminal) moveQueuedPromptsToInputField() (hasMoved bool) {
	s := &t.console.screen
	texts := withoutPasteTags(t.player.prompts.removeAll())
	s.queued = nil
	if len(texts) == 0 {
		return false
	}
	if draft := s.composer.text(); draft != "" {
		texts = append(texts, draft)
	}
	s.composer.setText(strings.Join(texts, "\n"))
	return true
}

func (t *Terminal) switchToNextPermissionMode() {
	policy := t.player.session.Policy()
	modes := []protocol.PermissionMode{protocol.ModeDefault, protocol.ModeAcceptEdits, protocol.ModePlan, protocol.ModeBypass, protocol.ModeAuto}
	at := slices.Index(modes, policy.Mode())
	for i := range modes {
		next := modes[(at+1+i)%len(modes)]
		if next == protocol.ModeAuto && t.prompter.auto.isUnavailable {
			continue
		}
		if policy.SetMode(next) == nil {
			break
		}
	}
	t.console.screen.mode = string(policy.Mode())
}

package terminal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Terminal plays a session on a console.
type Terminal struct {
	console  *Console
	player   *player
	view     *eventView
	prompter *prompter
	plan     launch.Plan
	words    []string // of the command line, for the hint how to resume
	ticks    *time.Ticker
	armed    keyName     // the key that has another effect if it is pressed again; 0 = none
	disarm   *time.Timer // forgets armed
	quit     bool
}

// Open builds the session of a plan for a console. It starts nothing. words are those of
// the command line after the program's name, and before are the answers of [Startup].
func Open(plan launch.Plan, console *Console, words []string, before Answers) (*Terminal, error) {
	inbox, screen := newMailbox(), &console.screen
	p := &player{inbox: inbox, prompts: newPromptQueue(inbox)}
	s, err := session.Open(plan, host{promptQueue: p.prompts, inbox: inbox})
	if err != nil {
		return nil, err
	}
	p.session = s
	for _, line := range before.lines {
		s.Log().Note(line)
	}
	t := &Terminal{
		console: console, player: p, plan: plan, words: words,
		view:     &eventView{screen: screen, player: p, clock: plan.Clock, chance: plan.Clock.Rand(), cwd: plan.CWD},
		prompter: &prompter{screen: screen, player: p, cwd: plan.CWD},
	}
	for _, m := range s.History() {
		t.view.restore(m.Role, m.Content)
	}
	screen.inline = plan.Settings.Merged()["tui"] == "default"
	screen.mode = string(plan.Permission.Mode)
	screen.settled, screen.menu.all = -1, slashCommands(&plan)
	screen.effort = plan.Model.Effort
	if screen.effort == "" {
		screen.effort = "medium"
	}
	screen.header = screen.labels.pages.header(map[string]string{"version": plan.Version, "dir": plan.CWD, "model": modelName(s.Model())})
	if screen.header == nil {
		screen.header = []string{
			"", " Claude Code v" + plan.Version, " " + modelName(s.Model()) + " · API Usage Billing", " " + plan.CWD, "",
		}
	}
	return t, nil
}

// Session returns the session. The caller of Open closes it.
func (t *Terminal) Session() *session.Session { return t.player.session }

// Run plays the session until the user ends it. first is a prompt that is sent at once;
// empty = none. The error is that of the session or the cause of ctx's end.
func (t *Terminal) Run(ctx context.Context, first string) error {
	c := t.console
	c.measure()
	if !c.screen.inline {
		if err := c.paint.enterFull(); err != nil {
			return err
		}
	}
	if err := t.player.session.Start(ctx); err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	defer end()
	var group sync.WaitGroup
	group.Go(func() { t.player.play(life) })
	defer group.Wait()
	defer end()
	t.ticks = time.NewTicker(spinnerPeriod)
	defer t.ticks.Stop()
	t.disarm = time.NewTimer(time.Hour)
	defer t.disarm.Stop()
	if first != "" {
		t.submit(first)
	}
	err := t.loop(ctx)
	end()
	group.Wait()
	if errors.Is(err, errLeave) {
		err = nil
	}
	return err
}

// spinnerPeriod is the time between two pictures of the spinner.
const spinnerPeriod = 120 * time.Millisecond

// exitWindow is the time within which a second press of a key ends the run; clearWindow is the time within which a
// second Esc clears the draft.
const (
	exitWindow  = 2 * time.Second
	clearWindow = time.Second
)

// lateInput is typed text whose processing is delayed.
type lateInput struct{ data []byte }

// errLeave ends the loop because the user has ended the run.
var errLeave = errors.New("the user has ended the run")

// loop draws the screen after each message, key and tick.
func (t *Terminal) loop(ctx context.Context) error {
	c := t.console
	for {
		if err := t.draw(); err != nil {
			return err
		}
		if t.quit {
			return errLeave
		}
		var ticks <-chan time.Time
		if c.screen.busy != nil && !t.plan.Clock.IsRepeatable() {
			ticks = t.ticks.C
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.player.inbox.wake:
			for _, message := range t.player.inbox.take() {
				switch m := message.(type) {
				case runFailed:
					return m.err
				case lateInput:
					t.pressAll(c.decode(m.data))
				}
				t.prompter.receive(message)
				t.view.receive(message)
			}
		case data, ok := <-c.input:
			if !ok {
				return hungUp(ctx)
			}
			if late := c.screen.faults.echoLate; late > 0 {
				time.AfterFunc(late, func() { t.player.inbox.put(lateInput{data}) })
				break
			}
			t.pressAll(c.decode(data))
		case <-c.escape.C:
			t.pressAll(c.keys.flush())
		case <-ticks:
			c.screen.busy.frame++
		case <-t.disarm.C:
			t.armed, c.screen.notice, c.screen.aside = 0, "", ""
		case <-c.resized:
			c.paint.forget()
		}
	}
}

// draw shows the screen as it is now.
func (t *Terminal) draw() error {
	c := t.console
	c.measure()
	if c.paint.full {
		c.screen.settled = -1
	}
	f := c.screen.draw(t.plan.Clock.Now())
	if err := c.paint.setTitle(c.screen.title()); err != nil {
		return err
	}
	return c.paint.paint(f, c.screen.cols, c.screen.rows)
}

func (t *Terminal) pressAll(keys []key) {
	for _, k := range keys {
		if t.quit {
			return
		}
		t.press(k)
	}
}

// press handles a key.
func (t *Terminal) press(k key) {
	s := &t.console.screen
	if s.dialog != nil {
		if next, done := s.dialog.press(k); done {
			s.dialog = next
			if next == nil {
				t.prompter.showNext()
			}
		}
		return
	}
	again := t.armed == k.name && t.armed != 0
	if t.armed != 0 {
		t.armed, s.notice, s.aside = 0, "", ""
		t.disarm.Stop()
	}
	if s.shortcuts && (k.name == keyBackspace || k.name == keyEscape) {
		s.shortcuts = false
		return
	}
	completed, handled := s.menu.press(k.name)
	if completed != "" {
		s.composer.set(completed)
	}
	if !handled {
		t.pressInField(k, again)
	}
	s.menu.update(s.composer.text())
}

// pressInField handles a key that neither a dialog nor the menu takes. again reports that the
// key before was the same, and was announced to have another effect if it is pressed again.
func (t *Terminal) pressInField(k key, again bool) {
	s := &t.console.screen
	pasted := s.pasted
	s.shortcuts, s.pasted = false, ""
	switch k.name {
	case keyText:
		if k.text == "?" && s.composer.empty() {
			s.shortcuts = true
			return
		}
		s.composer.insert(k.text)
	case keyPaste:
		s.pasted = s.composer.paste(k.text, pasted)
	case keyEnter:
		t.enter()
	case keyUp:
		t.pressUp()
	case keyDown:
		if !s.composer.moveLine(1) {
			s.composer.recall(1)
		}
	case keyCtrlU:
		const worth = 3 // characters that the real CLI offers to insert again
		if s.composer.clearLine() && len(s.composer.killed) >= worth {
			s.deleted = t.plan.Clock.Now()
		}
	case keyEscape:
		t.pressEscape(again)
	case keyBackTab:
		t.cycleMode()
	case keyCtrlC:
		t.pressCtrlC(again)
	case keyCtrlD:
		switch {
		case again:
			t.quit = true
		case s.composer.empty():
			t.announce(keyCtrlD, exitWindow).notice = "Press Ctrl-D again to exit"
		default:
			s.composer.deleteForward()
		}
	default:
		s.composer.press(k.name)
	}
}

// pressUp moves up in the draft. On its first line it returns queued prompts to the input field or, if there are
// none, shows the previous draft.
func (t *Terminal) pressUp() {
	c := &t.console.screen.composer
	if !c.moveLine(-1) && !t.takeBack() {
		c.recall(-1)
	}
}

// pressEscape interrupts the turn, else clears the draft when it is pressed twice.
func (t *Terminal) pressEscape(again bool) {
	switch s := &t.console.screen; {
	case s.busy != nil:
		t.interrupt()
	case again:
		s.composer.remember()
	case !s.composer.empty():
		t.announce(keyEscape, clearWindow).aside = "esc again to clear"
	}
}

// pressCtrlC interrupts the turn, else clears the draft and announces the end.
func (t *Terminal) pressCtrlC(again bool) {
	s := &t.console.screen
	switch {
	case again:
		t.quit = true
	case s.busy != nil:
		t.interrupt()
	default:
		s.composer.remember()
		t.announce(keyCtrlC, exitWindow).notice = "Press Ctrl-C again to exit"
	}
}

// interrupt ends the running turn.
func (t *Terminal) interrupt() {
	s := &t.console.screen
	s.busy.queued = len(s.queued) > 0
	s.cut = t.player.interrupt()
}

// announce gives the next press of a key another effect for a limited time. It returns the screen, on which the
// caller announces that.
func (t *Terminal) announce(by keyName, window time.Duration) *screen {
	t.armed = by
	t.disarm.Reset(window)
	return &t.console.screen
}

// enter sends the draft.
func (t *Terminal) enter() {
	s := &t.console.screen
	c := &s.composer
	if c.cursor > 0 && c.draft[c.cursor-1] == '\\' { // a backslash before Enter is a new line
		c.backspace()
		c.insert("\n")
		return
	}
	text := strings.TrimSpace(c.full())
	if text == "" {
		return
	}
	c.remember()
	t.submit(text)
	if s.faults.draftBack {
		c.set(text)
	}
}

// submit sends a prompt, or carries out a command of the terminal.
func (t *Terminal) submit(text string) {
	s := &t.console.screen
	s.hint = ""
	word, _, _ := strings.Cut(text, " ")
	if word == "/exit" || word == "/quit" {
		t.quit = true
		return
	}
	if said, refused := refuseCommand(word); refused {
		s.entries = append(s.entries, entry{glyph: promptGlyph + " ", text: text}, entry{glyph: resultPrefix, text: said, close: true})
		return
	}
	t.player.prompts.push(text)
	s.queued = t.player.prompts.list()
}

// takeBack returns the queued prompts to the input field. It returns false if the queue is empty.
func (t *Terminal) takeBack() bool {
	s := &t.console.screen
	texts := t.player.prompts.takeBack()
	s.queued = nil
	if len(texts) == 0 {
		return false
	}
	if draft := s.composer.text(); draft != "" {
		texts = append(texts, draft)
	}
	s.composer.set(strings.Join(texts, "\n"))
	return true
}

// cycleMode switches to the next permission mode.
func (t *Terminal) cycleMode() {
	policy := t.player.session.Policy()
	modes := []protocol.PermissionMode{protocol.ModeDefault, protocol.ModeAcceptEdits, protocol.ModePlan, protocol.ModeBypass, protocol.ModeAuto}
	at := slices.Index(modes, policy.Mode())
	for i := range modes {
		if next := modes[(at+1+i)%len(modes)]; policy.SetMode(next) == nil {
			break
		}
	}
	t.console.screen.mode = string(policy.Mode())
}

// ResumeHint returns the lines that explain how to resume the session; empty if it had no prompt.
func (t *Terminal) ResumeHint() string {
	if t.player.session.LastResult() == nil || t.plan.Transcript.NoPersist {
		return ""
	}
	words := []string{"claude"}
	for i := 0; i < len(t.words); i++ {
		switch word := t.words[i]; {
		case word == "--permission-mode" && i+1 < len(t.words):
			words = append(words, word, t.words[i+1])
			i++
		case word == "--dangerously-skip-permissions":
			words = append(words, word)
		}
	}
	return fmt.Sprintf("\nResume this session with:\n%s --resume %s\n", strings.Join(words, " "), t.player.session.ID())
}

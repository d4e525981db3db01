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
	exitBy   keyName     // the key that ends the run if it is pressed again; 0 = none
	disarm   *time.Timer // forgets exitBy
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
	screen.inline = plan.Settings.Merged()["tui"] == "default"
	screen.mode = string(plan.Permission.Mode)
	screen.settled = -1
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

// exitWindow is how long the second press of a key ends the run.
const exitWindow = 2 * time.Second

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
		if c.screen.busy != nil && !t.plan.Clock.Repeatable() {
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
			t.exitBy, c.screen.notice = 0, ""
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
	if armed := t.exitBy; armed != 0 {
		t.exitBy, s.notice = 0, ""
		t.disarm.Stop()
		if armed == k.name {
			t.quit = true
			return
		}
	}
	switch k.name {
	case keyText, keyPaste:
		s.composer.insert(k.text)
	case keyNewline:
		s.composer.insert("\n")
	case keyBackspace:
		s.composer.backspace()
	case keyCtrlU:
		s.composer.clearLine()
	case keyLeft:
		s.composer.move(-1)
	case keyRight:
		s.composer.move(1)
	case keyUp:
		t.takeBack()
	case keyEnter:
		t.enter()
	case keyEscape:
		t.player.interrupt()
	case keyBackTab:
		t.cycleMode()
	case keyCtrlC:
		t.pressCtrlC()
	case keyCtrlD:
		if s.composer.empty() {
			t.armExit(keyCtrlD, "Press Ctrl-D again to exit")
		}
	case keyUnknown, keyTab, keyDown:
	}
}

// pressCtrlC interrupts the turn, else clears the draft, else announces the end.
func (t *Terminal) pressCtrlC() {
	switch s := &t.console.screen; {
	case s.busy != nil:
		t.player.interrupt()
	case !s.composer.empty():
		s.composer.set("")
	default:
		t.armExit(keyCtrlC, "Press Ctrl-C again to exit")
	}
}

// armExit makes the next press of a key end the run.
func (t *Terminal) armExit(by keyName, notice string) {
	t.exitBy, t.console.screen.notice = by, notice
	t.disarm.Reset(exitWindow)
}

// enter sends the draft.
func (t *Terminal) enter() {
	s := &t.console.screen
	text := strings.TrimSpace(s.composer.text())
	if text == "" {
		return
	}
	if rest, ok := strings.CutSuffix(text, `\`); ok { // a backslash before Enter is a new line
		s.composer.set(rest + "\n")
		return
	}
	s.composer.set("")
	t.submit(text)
	if s.faults.draftBack {
		s.composer.set(text)
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

// takeBack returns the queued prompts to the input field.
func (t *Terminal) takeBack() {
	s := &t.console.screen
	texts := t.player.prompts.takeBack()
	s.queued = nil
	if len(texts) == 0 {
		return
	}
	if draft := s.composer.text(); draft != "" {
		texts = append(texts, draft)
	}
	s.composer.set(strings.Join(texts, "\n"))
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

package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type turnPlayer struct {
	session       *session.Session
	prompts       *promptQueue
	screenMailbox *mailbox

	mu         sync.Mutex
	turnNumber int                     // number of the last turn; the first is 1
	cancelTurn context.CancelCauseFunc // interrupts the running turn; nil means that no turn is running
}

// These types are the messages in the mailbox that are not events of the session.
type (
	turnStarted struct {
		prompts []string // nil means that background work started the turn
		turn    int
	}
	turnEnded                   struct{}
	shellEnded                  struct{ stdout, stderr string }
	promptsTakenIntoRunningTurn struct{ prompts []string } // reports prompts that became part of the running turn
	contextUsageRequested       struct{ commandLine string }
	sessionRunFailed            struct{ err error }
	permissionRequestWithdrawn  struct{ request *pendingPermissionRequest }
)

// interruptRunningTurn ends the running turn and returns its number; 0 means no turn is running. cause is
// [session.ErrInterruptedByKey] or [session.ErrWithdrawn].
func (p *turnPlayer) interruptRunningTurn(cause error) (turnNumber int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancelTurn == nil {
		return 0
	}
	p.cancelTurn(cause)
	return p.turnNumber
}

func (p *turnPlayer) playPrompts(ctx context.Context) {
	defer p.session.WaitUntilServersSettled()
	for ctx.Err() == nil {
		session.WriteDelayedTranscriptChanges(p.session)
		if texts, waited := p.prompts.takePromptsOfNextTurn(); len(texts) > 0 {
			if word, _, _ := strings.Cut(texts[0], " "); word == "/context" {
				p.screenMailbox.addMessage(contextUsageRequested{texts[0]})
				continue
			}
			in := userMessage(strings.Join(texts, "\n"))
			if waited {
				in.Queued = texts
			}
			if !p.playTurn(ctx, in, texts) {
				return
			}
			continue
		}
		if busy, _ := p.session.BackgroundState(); !busy {
			select {
			case <-p.prompts.wake:
			case <-ctx.Done():
			}
			continue
		}
		if !p.playBackgroundWorkUntilPrompt(ctx) {
			return
		}
	}
}

// playBackgroundWorkUntilPrompt shows events of background work until a prompt arrives, and plays the turn the work requests.
func (p *turnPlayer) playBackgroundWorkUntilPrompt(ctx context.Context) (canContinue bool) {
	until, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan bool, 1)
	go func() { done <- p.passEventsToScreen(p.session.BackgroundEventsUntilTurnNeeded(until)) }() // ends when until is cancelled
	select {
	case ok := <-done:
		done <- ok
	case <-p.prompts.wake:
	case <-ctx.Done():
	}
	stop()
	if !<-done {
		return false
	}
	if ctx.Err() != nil || p.prompts.CountWaitingUserPrompts() > 0 {
		return true
	}
	if message, ok := p.session.TakePromptAboutBackgroundWork(); ok {
		return p.playTurn(ctx, message, nil)
	}
	return true
}

// playTurn plays the prompts of one turn. It returns false if the run has failed.
func (p *turnPlayer) playTurn(ctx context.Context, in protocol.UserMessage, shownPrompts []string) (canContinue bool) {
	turn, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	p.mu.Lock()
	p.cancelTurn = cut
	p.turnNumber++
	p.screenMailbox.addMessage(turnStarted{shownPrompts, p.turnNumber})
	p.mu.Unlock()
	err, ok := p.session.WaitUntilTurnMayStart(turn), true
	switch {
	case turn.Err() != nil: // interrupted before the turn began
	case err != nil:
		p.screenMailbox.addMessage(sessionRunFailed{err})
		return false
	default:
		if command, isShell := shellCommandOfSinglePrompt(shownPrompts); isShell {
			in = p.runUserShellCommand(turn, command)
		}
		if turn.Err() == nil {
			ok = p.passEventsToScreen(p.session.Turn(turn, in))
		}
	}
	p.mu.Lock()
	p.cancelTurn = nil
	p.mu.Unlock()
	p.screenMailbox.addMessage(turnEnded{})
	return ok
}

func shellCommandOfSinglePrompt(prompts []string) (command string, isShellCommand bool) {
	if len(prompts) != 1 {
		return "", false
	}
	return strings.CutPrefix(prompts[0], shellCommandPrefix)
}

func (p *turnPlayer) runUserShellCommand(ctx context.Context, command string) protocol.UserMessage {
	stdout, stderr := session.RunShell(ctx, p.session, command)
	p.screenMailbox.addMessage(shellEnded{stdout, stderr})
	return protocol.UserMessage{Verbatim: true, Typed: shellCommandPrefix + command, Content: protocol.Content{Blocks: []protocol.Block{
		protocol.Text("<bash-input>" + command + "</bash-input>"),
		protocol.Text("<bash-stdout>" + stdout + "</bash-stdout><bash-stderr>" + stderr + "</bash-stderr>"),
	}}}
}

// passEventsToScreen passes events to the screen. It returns false after an error.
func (p *turnPlayer) passEventsToScreen(events session.Events) (canContinue bool) {
	for ev, err := range events {
		if err != nil {
			p.screenMailbox.addMessage(sessionRunFailed{err})
			return false
		}
		p.screenMailbox.addMessage(ev)
	}
	return true
}

type promptQueue struct {
	wake          chan struct{} // receives a value when a prompt is added; capacity 1
	screenMailbox *mailbox      // receives the prompts that a running turn has taken
	// recordOperation records that prompts enter or leave the queue; see [session.RecordQueueChange]. nil means that nothing is recorded.
	recordOperation func(operation, text string)

	mu                 sync.Mutex
	waiting            []string
	firstSentWhenIdle  bool // the first waiting prompt was sent while no turn was running
	recordedAsDequeued int  // number of waiting prompts for which the transcript already has the line that they left the queue
}

// pushSentWhileIdle adds prompts, and wakes the player. Without prompts, the player only writes pending lines of the transcript.
func (q *promptQueue) pushSentWhileIdle(texts ...string) {
	q.mu.Lock()
	q.firstSentWhenIdle = q.firstSentWhenIdle || len(q.waiting) == 0 && len(texts) > 0
	q.addUnlockAndWakePlayer(texts...)
}

func (q *promptQueue) pushDuringTurn(text string) {
	q.mu.Lock()
	q.recordOperationForEach("enqueue", text)
	q.addUnlockAndWakePlayer(text)
}

// addUnlockAndWakePlayer adds prompts and wakes the player. The caller has locked the mutex; addUnlockAndWakePlayer unlocks it.
func (q *promptQueue) addUnlockAndWakePlayer(texts ...string) {
	q.waiting = append(q.waiting, texts...)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *promptQueue) recordOperationForEach(operation string, texts ...string) {
	if q.recordOperation != nil {
		for _, text := range texts {
			q.recordOperation(operation, text)
		}
	}
}

// takePromptsOfNextTurn removes and returns the prompts of the next turn: one slash or shell command, or all prompts
// before the first such command. waited reports whether they have waited for the end of a turn.
func (q *promptQueue) takePromptsOfNextTurn() (texts []string, waited bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.countTextsOfNextTurn()
	texts, q.waiting, waited = append([]string(nil), q.waiting[:n]...), q.waiting[n:], !q.firstSentWhenIdle
	if q.firstSentWhenIdle = q.firstSentWhenIdle && n == 0; waited {
		q.recordOperationForEach("dequeue", make([]string, max(0, n-q.recordedAsDequeued))...)
	}
	q.recordedAsDequeued = 0
	return texts, waited
}

// RecordDequeuedBeforeFinalReply records in the transcript that the prompts of the next turn leave the queue. As in the
// real CLI, this precedes the reply, or the interrupted call, that ends the turn.
func (q *promptQueue) RecordDequeuedBeforeFinalReply() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.countTextsOfNextTurn(); !q.firstSentWhenIdle && q.recordedAsDequeued == 0 {
		q.recordOperationForEach("dequeue", make([]string, n)...)
		q.recordedAsDequeued = n
	}
}

// countTextsOfNextTurn returns the number of prompts that the next turn takes. The caller holds the mutex.
func (q *promptQueue) countTextsOfNextTurn() int {
	n := slices.IndexFunc(q.waiting, isSlashOrShellCommand)
	if n < 0 {
		return len(q.waiting)
	}
	return max(n, 1)
}

// isSlashOrShellCommand reports whether a prompt is a slash or shell command, which is not merged with other prompts.
func isSlashOrShellCommand(text string) bool {
	return strings.HasPrefix(text, "/") || strings.HasPrefix(text, shellCommandPrefix)
}

func (q *promptQueue) removeAll() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	texts := q.waiting
	if q.waiting = nil; !q.firstSentWhenIdle {
		q.recordOperationForEach("popAll", texts...)
	}
	q.firstSentWhenIdle, q.recordedAsDequeued = false, 0
	return texts
}

func (q *promptQueue) waitingTexts() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]string(nil), q.waiting...)
}

// TakeJoiningPrompts removes and returns the prompts that join the running turn: those before the first command.
func (q *promptQueue) TakeJoiningPrompts() []protocol.UserMessage {
	q.mu.Lock()
	n := slices.IndexFunc(append(slices.Clone(q.waiting), "/"), isSlashOrShellCommand)
	texts := slices.Clone(q.waiting[:n])
	q.waiting = q.waiting[n:]
	q.mu.Unlock()
	var messages []protocol.UserMessage
	for _, text := range texts {
		messages = append(messages, userMessage(text))
	}
	if len(texts) > 0 {
		q.screenMailbox.addMessage(promptsTakenIntoRunningTurn{texts})
	}
	return messages
}

// CountWaitingUserPrompts returns the number of prompts that wait for a turn.
func (q *promptQueue) CountWaitingUserPrompts() int { return len(q.waitingTexts()) }

// IsClosedForNewPrompts reports false, because users can type until the session ends.
func (q *promptQueue) IsClosedForNewPrompts() bool { return false }

func userMessage(text string) protocol.UserMessage {
	return protocol.UserMessage{Content: protocol.Content{Text: text}}
}

// mailbox passes messages from other goroutines to the goroutine of the screen, in order.
type mailbox struct {
	wake chan struct{} // receives a value when a message is added; capacity 1

	mu       sync.Mutex
	messages []any
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) addMessage(message any) {
	m.mu.Lock()
	m.messages = append(m.messages, message)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mailbox) takeAll() []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	messages := m.messages
	m.messages = nil
	return messages
}

// sessionHostWithDialogs is the [session.Host] of the terminal: it answers permission questions and holds the queued prompts.
type sessionHostWithDialogs struct {
	*promptQueue
	screenMailbox *mailbox
}

type pendingPermissionRequest struct {
	request   protocol.PermissionRequest
	answers   chan protocol.PermissionAnswer // capacity 1
	delayOver bool                           // the dialog may be shown
}

// Ask implements [session.Host]: it shows a dialog and waits for the user's answer.
func (h sessionHostWithDialogs) Ask(ctx context.Context, r protocol.PermissionRequest) (protocol.PermissionAnswer, error) {
	protocol.NoteRequestSent(ctx)
	q := &pendingPermissionRequest{request: r, answers: make(chan protocol.PermissionAnswer, 1)}
	h.screenMailbox.addMessage(q)
	select {
	case answer := <-q.answers:
		return answer, nil
	case <-ctx.Done():
		h.screenMailbox.addMessage(permissionRequestWithdrawn{q})
		return protocol.PermissionAnswer{}, ctx.Err()
	}
}

var errNoHost = errors.New("the request needs an SDK host, which an interactive session does not have")

// CallHook implements [session.Host].
func (h sessionHostWithDialogs) CallHook(context.Context, string, json.RawMessage, string) (noAnswer json.RawMessage, noHostError error) {
	return nil, errNoHost
}

// SendToServer implements [session.Host].
func (h sessionHostWithDialogs) SendToServer(context.Context, string, json.RawMessage) (noAnswer json.RawMessage, noHostError error) {
	return nil, errNoHost
}

// Elicit implements [session.Host]. Forms of MCP servers are not simulated: the question is cancelled.
func (h sessionHostWithDialogs) Elicit(context.Context, mcp.ElicitRequest) (cancelledAnswer mcp.ElicitAnswer) {
	return mcp.ElicitAnswer{}
}

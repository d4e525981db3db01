package terminal

import (
	"context"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// player runs the turns of a session and puts their events into the mailbox.
type player struct {
	session *session.Session
	prompts *promptQueue
	inbox   *mailbox

	mu         sync.Mutex
	turn       int                // number of the last turn; the first is 1
	cancelTurn context.CancelFunc // interrupts the running turn; nil means that no turn is running
}

// Messages of the mailbox other than events of the session.
type (
	turnStarted struct {
		prompts []string // nil means it follows from background work
		turn    int      // number of the turn
	}
	turnEnded struct{}
	// promptsAbsorbed reports prompts that became part of the running turn.
	promptsAbsorbed   struct{ prompts []string }
	runFailed         struct{ err error }
	questionWithdrawn struct{ question *pendingQuestion }
)

// interrupt ends the running turn and returns its number; 0 means no turn is running.
func (p *player) interrupt() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancelTurn == nil {
		return 0
	}
	p.cancelTurn()
	return p.turn
}

// playPrompts runs the turns of the prompts, one after the other, until ctx ends.
func (p *player) playPrompts(ctx context.Context) {
	defer p.session.WaitStarted()
	for ctx.Err() == nil {
		if texts := p.prompts.pop(); len(texts) > 0 {
			if !p.playTurn(ctx, userMessage(strings.Join(texts, "\n")), texts) {
				return
			}
			continue
		}
		if busy, _ := p.session.Background(); !busy {
			select {
			case <-p.prompts.wake:
			case <-ctx.Done():
			}
			continue
		}
		if !p.playBackground(ctx) {
			return
		}
	}
}

// playBackground shows the events of background work until a prompt arrives, and plays the turn that the work requests.
// It returns false if the run has failed.
func (p *player) playBackground(ctx context.Context) bool {
	until, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan bool, 1)
	go func() { done <- p.showEvents(p.session.BackgroundEvents(until)) }() // returns when until is cancelled
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
	if ctx.Err() != nil || p.prompts.Waiting() > 0 {
		return true
	}
	if message, ok := p.session.TakeNotice(); ok {
		return p.playTurn(ctx, message, nil)
	}
	return true
}

// playTurn plays the prompts of one turn. It returns false if the run has failed.
func (p *player) playTurn(ctx context.Context, in protocol.UserMessage, shown []string) bool {
	turn, cut := context.WithCancel(ctx)
	defer cut()
	p.mu.Lock()
	p.cancelTurn = cut
	p.turn++
	p.inbox.put(turnStarted{shown, p.turn})
	p.mu.Unlock()
	err, ok := p.session.WaitReady(turn), true
	switch {
	case turn.Err() != nil: // interrupted before the turn began
	case err != nil:
		p.inbox.put(runFailed{err})
		return false
	default:
		ok = p.showEvents(p.session.Turn(turn, in))
	}
	p.mu.Lock()
	p.cancelTurn = nil
	p.mu.Unlock()
	p.inbox.put(turnEnded{})
	return ok
}

// showEvents passes events to the screen. It returns false after an error.
func (p *player) showEvents(events session.Events) bool {
	for ev, err := range events {
		if err != nil {
			p.inbox.put(runFailed{err})
			return false
		}
		p.inbox.put(ev)
	}
	return true
}

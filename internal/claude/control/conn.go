// Package control implements the SDK control protocol on stdin and stdout: it reads the host's frames, passes its
// requests to the session, queues its prompts and sends control requests to the host.
//
// Stdin is read until it ends, even while a turn is running or while the host does not read stdout. Every request of
// the host is answered at most once, and prompts are run in order. Package host implements the requests themselves.
package control

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Conn is the connection to one host. The methods that send requests to the host may be called from many goroutines.
// Before [Conn.Serve] they fail with [ErrClosed].
type Conn struct {
	*promptScheduler
	hostMCPServers
	in              io.Reader
	backgroundLimit time.Duration
	out             *frameWriter
	requestsToHost  *outgoingRequests
	requestsOfHost  *incomingRequests
	initialConnect  serverConnectPhaseOfInitialize
	session         Session       // set by Serve before it starts reading
	lastInitialize  chan struct{} // closed when the latest initialize request is answered; used only by the goroutine that reads lines
	idlePending     bool          // a turn has ended, and the idle state is not reported yet; used only by runTurnsUntilNoPrompt
}

// New returns a connection. It reads and writes nothing before [Conn.Serve].
func New(o Options) *Conn {
	out := &frameWriter{lines: newUnstartedLineWriter(o.Out), metadata: o.Metadata, stateEvents: o.StateEvents, echoesPromptsAndResponses: o.Replay}
	asked := &outgoingRequests{out: out, pending: map[string]*outgoingRequest{}}
	work := &incomingRequests{cancels: map[string]context.CancelFunc{}}
	d := &promptScheduler{out: out, queue: promptQueue{seenUUIDs: map[string]bool{}}, requestsToHost: asked, requestsOfHost: work, awaitInitialize: o.AwaitInitialize, separateTurns: o.SeparateTurns, wake: make(chan struct{}, 1)}
	d.input.linesHandled = sync.NewCond(&d.mu)
	return &Conn{in: o.In, backgroundLimit: o.BackgroundLimit, out: out, requestsToHost: asked, requestsOfHost: work, promptScheduler: d}
}

// EventWriter returns the writer for the events of turns. Each call of Write takes one line. Write
// blocks while too much output waits for the host, so that the turn waits, too.
func (p *Conn) EventWriter() io.Writer { return p.out.lines }

// WriteEventOutsideTurn sets the ids of an event that does not belong to a turn and writes it to stdout.
func (p *Conn) WriteEventOutsideTurn(ev protocol.Event) { p.out.writeEventsOutsideTurn(ev) }

// CurrentSessionState returns the session's state: idle, running, or requires_action while a permission request is unanswered.
func (p *Conn) CurrentSessionState() string {
	switch {
	case len(p.requestsToHost.pendingPermissions()) > 0:
		return "requires_action"
	case p.hasTurnOrWaitingFirstPrompt():
		return "running"
	}
	return "idle"
}

// CancelQueuedPrompt removes a queued prompt and returns events to write. It returns false if the prompt is not in the queue.
func (p *Conn) CancelQueuedPrompt(promptUUID string) (eventsToWrite []protocol.Event, wasQueued bool) {
	gone := p.removeQueuedPrompt(promptUUID)
	if gone == nil {
		return nil, false
	}
	return gone.lifecycleEventPerUUID("cancelled"), true
}

// Serve runs the host's prompts until stdin is at EOF and all of them are done. The error is an [*InvalidStdinLineError], an
// error of a turn or of stdout, or the cause of the cancellation of ctx. Serve may be called only once. When it
// returns, all goroutines have returned, except one that may still be blocked in a read of stdin.
func (p *Conn) Serve(ctx context.Context, s Session) error {
	life, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	p.session = s
	defer context.AfterFunc(life, func() {
		if err := context.Cause(life); process.SignalErrorOr(life, nil) == nil { // after a signal, the results of killed commands are still shown
			p.out.lines.failWaitingAndLaterTurnWrites(err)
		}
	})()
	go p.out.lines.writeLinesUntilClosed() // run returns after close, or when its writer fails
	p.requestsToHost.markStdinOpen()
	p.requestsOfHost.setAcceptsNew(true)
	p.openInputWithFirstPrompt(s.PromptForDeferredCall())
	go func() { // returns at EOF
		if err := p.readAndDispatchLines(life); err != nil {
			fail(err)
			p.setLinesPending(false)
		}
	}()
	err := p.runTurnsUntilNoPrompt(life)
	p.closeInputAndRejectRequests()
	if err != nil {
		p.requestsOfHost.cancelAll()
	}
	fail(err)
	p.requestsOfHost.group.Wait()
	if flushed := p.out.lines.flushAndClose(ctx); err == nil {
		err = flushed
	}
	return err
}

// closeInputAndRejectRequests handles EOF on stdin: no more requests can start, and no answers can arrive.
func (p *Conn) closeInputAndRejectRequests() {
	p.requestsOfHost.setAcceptsNew(false)
	p.requestsToHost.rejectPendingAndLaterRequests()
	p.closeInput()
}

func (p *Conn) runTurnsUntilNoPrompt(ctx context.Context) error {
	for {
		in, err := p.streamBackgroundUntilNextPrompt(ctx)
		if in == nil || err != nil {
			return err
		}
		if err := p.session.WaitUntilTurnMayStart(ctx); err != nil {
			return err
		}
		if err := p.runTurnOfPrompt(ctx, in); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// streamBackgroundUntilNextPrompt waits for the prompt of the next turn. It returns nil if no prompt can follow and no background work is
// left, or if the time limit for background work has passed.
func (p *Conn) streamBackgroundUntilNextPrompt(ctx context.Context) (*queuedPrompt, error) {
	var deadline <-chan time.Time // limit for background work after the last prompt
	for {
		in, more := p.takeNextPrompt()
		if in != nil {
			return in, nil
		}
		p.showIdleIfPending()
		busy, _ := p.session.BackgroundState()
		switch {
		case !more && !busy:
			return nil, nil
		case !more && deadline == nil:
			timer := time.NewTimer(p.backgroundLimit)
			defer timer.Stop()
			deadline = timer.C
		}
		if !busy {
			select {
			case <-p.wake:
				continue
			case <-p.session.AsyncHookFrameAdded():
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		if in, over, err := p.streamBackgroundWorkUntilPromptOrDeadline(ctx, deadline); in != nil || over || err != nil {
			return in, err
		}
	}
}

// showIdleIfPending writes the idle state after a turn, unless another turn follows from background work.
func (p *Conn) showIdleIfPending() {
	if _, anotherTurnFollows := p.session.BackgroundState(); p.idlePending && !anotherTurnFollows {
		p.idlePending = false
		p.writeIdleUnlessPromptsWait()
	}
}

// streamBackgroundWorkUntilPromptOrDeadline streams the events of background work. It returns when a prompt arrives, when the
// work ends or needs a turn, or when the deadline passes. promptNeededByWork is the prompt of the turn that the work needs, if
// any. hasDeadlinePassed is true if the deadline has passed.
func (p *Conn) streamBackgroundWorkUntilPromptOrDeadline(ctx context.Context, deadline <-chan time.Time) (promptNeededByWork *queuedPrompt, hasDeadlinePassed bool, err error) {
	until, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- p.session.StreamBackgroundEvents(ctx, until) }() // the goroutine ends when the context until is cancelled
	select {
	case err = <-done:
		done <- err
	case <-p.wake:
	case <-deadline:
		hasDeadlinePassed = true
	case <-ctx.Done():
	}
	stop()
	switch err = <-done; {
	case ctx.Err() != nil:
		return nil, false, context.Cause(ctx)
	case hasDeadlinePassed || err != nil:
		return nil, hasDeadlinePassed, err
	}
	if message, ok := p.session.TakePromptAboutBackgroundWork(); ok {
		promptNeededByWork = p.makeNoticeNextTurnPrompt(message)
	}
	return promptNeededByWork, false, nil
}

func (p *Conn) runTurnOfPrompt(ctx context.Context, turnPrompt *queuedPrompt) error {
	interrupt, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	p.recordTurnStarted(cut, ctx.Done())
	for _, part := range turnPrompt.mergedPrompts[:max(0, len(turnPrompt.mergedPrompts)-1)] {
		p.out.echoPromptIfReplaying(part)
	}
	if !turnPrompt.startEventWritten {
		p.out.writeEventsOutsideTurn(turnPrompt.lifecycleEventPerUUID("started")...)
	}
	p.out.writeStateIfChanged("running")
	completed, err := p.session.Turn(ctx, interrupt, turnPrompt.message)
	p.clearRunningTurn()
	if err != nil {
		return err
	}
	if turnPrompt.cancelled || !completed {
		p.out.writeEventsOutsideTurn(turnPrompt.lifecycleEventPerUUID("cancelled")...)
	} else {
		p.out.writeEventsOutsideTurn(turnPrompt.lifecycleEventPerUUID("completed")...)
	}
	p.idlePending = true
	p.showIdleIfPending()
	return nil
}

// Go runs f in a goroutine that [Conn.Serve] waits for. Request handlers use it.
func (p *Conn) Go(f func()) { p.requestsOfHost.group.Go(f) }

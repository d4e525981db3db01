// Package control implements the SDK control protocol on stdin and stdout: it
// reads the host's frames, passes its requests on, queues its prompts and sends
// outgoingRequests to the host.
//
// Stdin is read until it ends, even while a turn is running or the host does
// not read stdout. Every request of the host is answered at most once, and
// prompts are played in order. The meaning of requests is defined in package
// host.
package control

import (
	"context"
	"io"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Conn speaks with one host. Its asking methods may be called from many
// goroutines, before [Conn.Serve] as well: then they fail with [ErrClosed].
type Conn struct {
	in              io.Reader
	backgroundLimit time.Duration
	out             *frameWriter
	outgoing        *outgoingRequests
	pending         *pendingRequests
	scheduler       *scheduler
	hostServers     hostServers
	initialConnect  initialConnect
	session         Session // set by Serve before anything is read
}

// New makes a peer; nothing is read or written before [Conn.Serve].
func New(o Options) *Conn {
	out := &frameWriter{lines: newLineWriter(o.Out), metadata: o.Metadata, stateEvents: o.StateEvents, replay: o.Replay}
	asked := &outgoingRequests{out: out, pending: map[string]*outgoingRequest{}}
	work := &pendingRequests{cancels: map[string]context.CancelFunc{}}
	return &Conn{in: o.In, backgroundLimit: o.BackgroundLimit, out: out, outgoing: asked, pending: work, scheduler: newScheduler(o, out, asked, work)}
}

// Events is where the events of turns are written, each line in one call of
// Write. It slows down a turn whose host does not read.
func (p *Conn) Events() io.Writer { return p.out.lines }

// Show puts an event that belongs to no turn on stdout, stamped.
func (p *Conn) Show(ev protocol.Event) { p.out.showEvents(ev) }

// State is the session's state as the host is told of it: idle, running, or
// requires_action while a permission question waits.
func (p *Conn) State() string {
	switch {
	case len(p.outgoing.pendingPermissions()) > 0:
		return "requires_action"
	case p.scheduler.active():
		return "running"
	}
	return "idle"
}

// TurnStarted tells whether a turn has begun so far.
func (p *Conn) TurnStarted() bool { return p.scheduler.turnStarted() }

// EndInput takes no more prompts: what was sent so far comes to its end, as it
// does at the end of stdin.
func (p *Conn) EndInput() { p.scheduler.endInput() }

// CancelPrompt takes a prompt away that has not begun and returns what tells of that;
// false = there is none with this uuid.
func (p *Conn) CancelPrompt(uuid string) ([]protocol.Event, bool) {
	gone := p.scheduler.cancel(uuid)
	if gone == nil {
		return nil, false
	}
	return gone.lifecycleEvents("cancelled"), true
}

// ConnectingServers tells whether servers that initialize names are being connected.
func (p *Conn) ConnectingServers() bool { return p.scheduler.connectingServers() }

// ParkHandshakes answers what servers inside the host are asked at first from what it has
// heard of them already, by the server's name.
func (p *Conn) ParkHandshakes(handshakes map[string]Handshake) {
	p.hostServers.parkHandshakes(handshakes)
}

// HoldServerMessages keeps servers inside the host that are not connected from being spoken
// to until release is called.
func (p *Conn) HoldServerMessages(connected func(server string) bool) (release func()) {
	return p.hostServers.holdMessages(connected)
}

// Go runs f in a goroutine that [Conn.Serve] waits for. It is for handlers of
// requests.
func (p *Conn) Go(f func()) { p.pending.group.Go(f) }

// Serve plays the host's prompts until stdin has ended and all of them are
// done. The error is an [*InputError], that of a turn, of stdout, or the cause
// of ctx's end. It returns after every goroutine but a read of stdin that never
// comes back has ended, and may be called once.
func (p *Conn) Serve(ctx context.Context, s Session) error {
	life, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	p.session = s
	defer context.AfterFunc(life, func() { p.out.lines.halt(context.Cause(life)) })()
	go p.out.lines.run() // ends with close, or with its writer
	p.outgoing.begin()
	p.pending.begin()
	p.scheduler.begin(s.FirstPrompt())
	go func() { // ends with stdin
		if err := p.readLines(life); err != nil {
			fail(err)
			p.scheduler.setBursting(false)
		}
	}()
	err := p.playPrompts(life)
	p.shutDown(err)
	fail(err)
	p.pending.group.Wait()
	if flushed := p.out.lines.close(ctx); err == nil {
		err = flushed
	}
	return err
}

// shutDown ends everything that waits for the host or works for it. After an
// error nothing more is taken.
func (p *Conn) shutDown(err error) {
	p.closeInput()
	if err != nil {
		p.pending.cancelAll()
	}
}

// closeInput is the end of stdin.
func (p *Conn) closeInput() {
	p.pending.close()
	p.outgoing.close()
	p.scheduler.closeInput()
}

// startTurn is the loop over prompts.
func (p *Conn) playPrompts(ctx context.Context) error {
	for {
		in, err := p.nextPrompt(ctx)
		if in == nil || err != nil {
			return err
		}
		if err := p.session.WaitReady(ctx); err != nil {
			return err
		}
		if err := p.playTurn(ctx, in); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// nextPrompt waits for a prompt that may be played; nil when there will be none.
func (p *Conn) nextPrompt(ctx context.Context) (*prompt, error) {
	var deadline <-chan time.Time // of background work after the last prompt
	for {
		in, more := p.scheduler.takeNext()
		if in != nil {
			return in, nil
		}
		busy := p.session.Busy()
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
			case <-p.scheduler.wake:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			continue
		}
		in, over, err := p.runBackground(ctx, deadline)
		if in != nil || over || err != nil {
			return in, err
		}
	}
}

// runBackground shows background work until a prompt or a notice comes.
func (p *Conn) runBackground(ctx context.Context, deadline <-chan time.Time) (in *prompt, over bool, err error) {
	until, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- p.session.StreamBackground(ctx, until) }() // ends with until
	select {
	case err = <-done:
		done <- err
	case <-p.scheduler.wake:
	case <-deadline:
		over = true
	case <-ctx.Done():
	}
	stop()
	switch err = <-done; {
	case ctx.Err() != nil:
		return nil, false, context.Cause(ctx)
	case over || err != nil:
		return nil, over, err
	}
	if message, ok := p.session.TakeNotice(); ok {
		in = p.scheduler.insertNotice(message)
	}
	return in, false, nil
}

// playTurn plays a prompt and tells how far it is.
func (p *Conn) playTurn(ctx context.Context, in *prompt) error {
	interrupt, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	p.scheduler.startTurn(cut)
	for _, part := range in.parts[:max(0, len(in.parts)-1)] {
		p.out.repeatPrompt(part)
	}
	if !in.startShown {
		p.out.showEvents(in.lifecycleEvents("started")...)
	}
	p.out.showState("running")
	completed, err := p.session.Turn(ctx, interrupt, in.message)
	p.scheduler.endTurn()
	if err != nil {
		return err
	}
	if in.cancelled || !completed {
		p.out.showEvents(in.lifecycleEvents("cancelled")...)
	} else {
		p.out.showEvents(in.lifecycleEvents("completed")...)
	}
	p.scheduler.showIdle()
	return nil
}

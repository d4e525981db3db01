// Package control implements the SDK control protocol on stdin and stdout: it
// reads the host's frames, passes its requests on, queues its prompts and sends
// questions to the host.
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
	in      io.Reader
	ceiling time.Duration
	out     *frameWriter
	asked   *questions
	errands *pendingRequests
	desk    *scheduler
	guests  hostServers
	intro   serverHandshakes
	s       Session // set by Serve before anything is read
}

// New makes a peer; nothing is read or written before [Conn.Serve].
func New(o Options) *Conn {
	out := &frameWriter{lines: newLines(o.Out), stamps: o.Stamps, states: o.States, replay: o.Replay}
	asked := &questions{out: out, pending: map[string]*question{}}
	work := &pendingRequests{cancel: map[string]context.CancelFunc{}}
	return &Conn{in: o.In, ceiling: o.Ceiling, out: out, asked: asked, errands: work, desk: newDesk(o, out, asked, work)}
}

// Events is where the events of turns are written, each line in one call of
// Write. It slows down a turn whose host does not read.
func (p *Conn) Events() io.Writer { return p.out.lines }

// Show puts an event that belongs to no turn on stdout, stamped.
func (p *Conn) Show(ev protocol.Event) { p.out.show(ev) }

// State is the session's state as the host is told of it: idle, running, or
// requires_action while a permission question waits.
func (p *Conn) State() string {
	switch {
	case len(p.asked.permissions()) > 0:
		return "requires_action"
	case p.desk.active():
		return "running"
	}
	return "idle"
}

// Begun tells whether a turn has begun so far.
func (p *Conn) Begun() bool { return p.desk.begun() }

// Finish takes no more prompts: what was sent so far comes to its end, as it
// does at the end of stdin.
func (p *Conn) Finish() { p.desk.finish() }

// Cancel takes a prompt away that has not begun and returns what tells of that;
// false = there is none with this uuid.
func (p *Conn) Cancel(uuid string) ([]protocol.Event, bool) {
	gone := p.desk.cancel(uuid)
	if gone == nil {
		return nil, false
	}
	return gone.lifecycle("cancelled"), true
}

// Introducing tells whether servers that initialize names are being connected.
func (p *Conn) Introducing() bool { return p.desk.introducing() }

// Park answers what servers inside the host are asked at first from what it has
// heard of them already, by the server's name.
func (p *Conn) Park(handshakes map[string]Handshake) { p.guests.park(handshakes) }

// Silence keeps servers inside the host that are not connected from being spoken
// to until release is called.
func (p *Conn) Silence(connected func(server string) bool) (release func()) {
	return p.guests.silence(connected)
}

// Beside runs f in a goroutine that [Conn.Serve] waits for. It is for handlers of
// requests.
func (p *Conn) Beside(f func()) { p.errands.group.Go(f) }

// Serve plays the host's prompts until stdin has ended and all of them are
// done. The error is an [*InputError], that of a turn, of stdout, or the cause
// of ctx's end. It returns after every goroutine but a read of stdin that never
// comes back has ended, and may be called once.
func (p *Conn) Serve(ctx context.Context, s Session) error {
	life, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	p.s = s
	defer context.AfterFunc(life, func() { p.out.lines.halt(context.Cause(life)) })()
	go p.out.lines.run() // ends with close, or with its writer
	p.asked.begin()
	p.errands.begin()
	p.desk.begin(s.First())
	go func() { // ends with stdin
		if err := p.read(life); err != nil {
			fail(err)
			p.desk.burst(false)
		}
	}()
	err := p.play(life)
	p.hangUp(err)
	fail(err)
	p.errands.group.Wait()
	if flushed := p.out.lines.close(ctx); err == nil {
		err = flushed
	}
	return err
}

// hangUp ends everything that waits for the host or works for it. After an
// error nothing more is taken.
func (p *Conn) hangUp(err error) {
	p.close()
	if err != nil {
		p.errands.stop()
	}
}

// close is the end of stdin.
func (p *Conn) close() {
	p.errands.close()
	p.asked.close()
	p.desk.close()
}

// play is the loop over prompts.
func (p *Conn) play(ctx context.Context) error {
	for {
		in, err := p.next(ctx)
		if in == nil || err != nil {
			return err
		}
		if err := p.s.Ready(ctx); err != nil {
			return err
		}
		if err := p.turn(ctx, in); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// next waits for a prompt that may be played; nil when there will be none.
func (p *Conn) next(ctx context.Context) (*prompt, error) {
	var deadline <-chan time.Time // of background work after the last prompt
	for {
		in, more := p.desk.take()
		if in != nil {
			return in, nil
		}
		busy := p.s.Busy()
		switch {
		case !more && !busy:
			return nil, nil
		case !more && deadline == nil:
			timer := time.NewTimer(p.ceiling)
			defer timer.Stop()
			deadline = timer.C
		}
		if !busy {
			select {
			case <-p.desk.wake:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			continue
		}
		in, over, err := p.idle(ctx, deadline)
		if in != nil || over || err != nil {
			return in, err
		}
	}
}

// idle shows background work until a prompt or a notice comes.
func (p *Conn) idle(ctx context.Context, deadline <-chan time.Time) (in *prompt, over bool, err error) {
	until, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- p.s.Idle(ctx, until) }() // ends with until
	select {
	case err = <-done:
		done <- err
	case <-p.desk.wake:
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
	if message, ok := p.s.Notice(); ok {
		in = p.desk.insert(message)
	}
	return in, false, nil
}

// turn plays a prompt and tells how far it is.
func (p *Conn) turn(ctx context.Context, in *prompt) error {
	interrupt, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	p.desk.play(cut)
	for _, part := range in.parts[:max(0, len(in.parts)-1)] {
		p.out.repeat(part)
	}
	if !in.begun {
		p.out.show(in.lifecycle("started")...)
	}
	p.out.state("running")
	completed, err := p.s.Turn(ctx, interrupt, in.message)
	p.desk.played()
	if err != nil {
		return err
	}
	if in.cancelled || !completed {
		p.out.show(in.lifecycle("cancelled")...)
	} else {
		p.out.show(in.lifecycle("completed")...)
	}
	p.desk.rest()
	return nil
}

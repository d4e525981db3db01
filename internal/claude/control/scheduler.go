package control

import (
	"context"
	"slices"
	"sync"

	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// scheduler is where prompts lie until they are played, and what keeps them there.
type scheduler struct {
	out             *frameWriter
	outgoing        *outgoingRequests
	pending         *pendingRequests
	awaitInitialize bool          // the first turn waits for an initialize request
	separateTurns   bool          // prompts are never joined
	wake            chan struct{} // cap 1: something that the player waits for has changed

	mu          sync.Mutex // guards what follows
	queue       queue
	firstPrompt *prompt // endTurn before all others, once; nil = none
	turn        runningTurn
	input       input
	initialize  initializeState
}

// runningTurn is the turn that is played.
type runningTurn struct {
	prompt    *prompt                 // nil = none
	interrupt context.CancelCauseFunc // interrupts it; nil = it has not begun
	count     int                     // turns begun so far
}

// input is what is known of stdin.
type input struct {
	open       bool       // it has not ended
	ended      bool       // no more prompts are taken
	bursting   bool       // whole lines wait to be looked at
	burstEnded *sync.Cond // bursting has ended
}

// initializeState are the initialize requests of the host.
type initializeState struct {
	unanswered int             // without an answer: other requests wait
	connecting int             // without effect so far: no turn may start
	answered   bool            // one has been answered
	postponed  []incomingFrame // requests that came meanwhile
}

func newScheduler(o Options, out *frameWriter, asked *outgoingRequests, work *pendingRequests) *scheduler {
	d := &scheduler{out: out, outgoing: asked, pending: work, awaitInitialize: o.AwaitInitialize, separateTurns: o.SeparateTurns, wake: make(chan struct{}, 1)}
	d.input.burstEnded = sync.NewCond(&d.mu)
	return d
}

func (d *scheduler) notify() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *scheduler) begin(first *protocol.UserMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.input.open = true
	if first == nil {
		return
	}
	d.firstPrompt = &prompt{message: *first, startShown: true}
	d.out.showState("running")
	d.out.showEvents(d.firstPrompt.lifecycleEvents("started")...)
}

// setBursting notes whether whole lines are there that have not been looked at: lines
// that came together are all known before the next turn begins.
func (d *scheduler) setBursting(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.input.bursting = on
	if !on {
		d.input.burstEnded.Broadcast()
		d.notify()
	}
}

// closeInput is the end of stdin.
func (d *scheduler) closeInput() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.input.open = false
	d.notify()
}

// endInput lets what was sent so far come to its end, as the end of stdin does.
func (d *scheduler) endInput() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.input.ended = true
	d.notify()
}

// enqueue takes a prompt, unless one with its uuid was taken before: that is
// only repeated, and only if it does not wait any more.
func (d *scheduler) enqueue(in *prompt) {
	d.mu.Lock()
	if d.queue.markSeen(in.message.UUID) {
		waits := d.queue.contains(in.message.UUID)
		d.mu.Unlock()
		if !waits {
			d.out.repeatPrompt(in.message)
		}
		return
	}
	defer d.mu.Unlock()
	if d.initialize.unanswered > 0 {
		in.unannounced = true
	} else {
		d.announce(in)
	}
	in.startsAtOnce = d.turn.prompt == nil && len(d.queue.waiting) == 0
	d.queue.push(in)
	if in.priority > 0 && d.turn.prompt != nil && d.turn.interrupt != nil {
		d.supersedeTurn()
	}
	d.notify()
}

// announce tells that a prompt was taken, which ends the idle state; d.mu is
// held.
func (d *scheduler) announce(in *prompt) {
	in.unannounced = false
	d.out.showState("running")
	d.out.showEvents(in.lifecycleEvents("queued")...)
}

// supersedeTurn ends the running turn for a prompt that is to be answered now; d.mu
// is held.
func (d *scheduler) supersedeTurn() {
	defer d.out.lines.hold()()
	d.turn.prompt.cancelled = true
	d.turn.interrupt(simulator.ErrSuperseded)
	d.outgoing.withdrawAbandoned()
}

// takeNext gives the next prompt that may be played now; more tells whether there
// can be others later.
func (d *scheduler) takeNext() (in *prompt, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	more = d.input.open && !d.input.ended
	g := d.initialize
	held := d.input.bursting || g.connecting > 0 || g.unanswered > 0 || d.awaitInitialize && !g.answered && more
	switch {
	case held:
	case d.firstPrompt != nil && (g.answered || len(d.queue.waiting) > 0 || !more):
		in = d.firstPrompt
		d.firstPrompt, d.turn.prompt = nil, in
	case len(d.queue.waiting) > 0:
		in = d.queue.pop(!d.separateTurns)
		d.turn.prompt = in
	}
	return in, more || held || d.pending.hasActive()
}

// insertNotice gives a prompt that is none of the host's its turn.
func (d *scheduler) insertNotice(message protocol.UserMessage) *prompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn.prompt = &prompt{message: message}
	return d.turn.prompt
}

// startTurn begins the turn of the prompt that was taken; cut interrupts it.
func (d *scheduler) startTurn(cut context.CancelCauseFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn.interrupt = cut
	d.turn.count++
	if in := d.turn.prompt; in.interrupted {
		in.cancelled = true
		cut(nil)
	}
}

// endTurn ends it.
func (d *scheduler) endTurn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn.prompt, d.turn.interrupt = nil, nil
}

// showIdle shows that nothing waits, if so.
func (d *scheduler) showIdle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue.waiting) == 0 {
		d.out.showState("idle")
	}
}

// interrupt ends the current turn, or the next one if it has been sent already;
// clear takes the prompts behind it away, too. Tell is called before anything
// else happens, with those that still wait and those that are gone.
func (d *scheduler) interrupt(drop bool, tell func(still, gone []*prompt)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turn.interrupt != nil {
		d.turn.prompt.cancelled = true
		d.turn.interrupt(nil)
	}
	d.outgoing.withdrawAbandoned()
	switch {
	case d.turn.prompt != nil && d.turn.interrupt == nil:
		d.turn.prompt.interrupted = true
	case d.turn.prompt == nil && len(d.queue.waiting) > 0:
		d.queue.waiting[0].interrupted = true
	}
	var gone []*prompt
	if drop {
		gone = d.queue.clear()
	}
	for _, in := range gone {
		d.out.showEvents(in.lifecycleEvents("cancelled")...)
	}
	tell(slices.DeleteFunc(slices.Clone(d.queue.waiting), func(in *prompt) bool { return in.interrupted }), gone)
}

// cancels takes a prompt away that has not begun; nil = there is none with this
// uuid.
func (d *scheduler) cancel(uuid string) *prompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queue.remove(uuid)
}

// takeMergeable takes the prompts that become part of the running turn.
func (d *scheduler) absorb() []protocol.UserMessage {
	if d.separateTurns {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.input.bursting && d.input.open {
		d.input.burstEnded.Wait()
	}
	var messages []protocol.UserMessage
	for _, in := range d.queue.takeMergeable() {
		messages = append(messages, in.message)
	}
	return messages
}

// countWaiting counts the prompts of people that wait for a turn.
func (d *scheduler) countWaiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, in := range d.queue.waiting {
		if in.message.Origin != nil {
			n++
		}
	}
	return n
}

// active tells whether a prompt is played or about to be.
func (d *scheduler) active() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.turn.prompt != nil || d.firstPrompt != nil
}

// startShown tells whether a turn has begun so far.
func (d *scheduler) turnStarted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.turn.count > 0
}

// beginInitialize begins an initialize request: other requests wait until [scheduler.nextPostponed]
// tells of no more, turns until [scheduler.endConnecting]. Begun tells whether a turn
// has begun, again whether this is not the first such request or is too late.
func (d *scheduler) beginInitialize() (begun, again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.initialize.unanswered++
	d.initialize.connecting++
	begun = d.turn.count > 0 || d.turn.prompt != nil
	return begun, begun || d.initialize.answered || d.initialize.unanswered > 1
}

// endConnecting is the end of what an initialize request connects.
func (d *scheduler) endConnecting() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.initialize.connecting--
}

// connectingServers tells whether servers that initialize names are being connected.
func (d *scheduler) connectingServers() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.initialize.connecting > 0
}

// postpone keeps a request that came while initialize is under way.
func (d *scheduler) postpone(f incomingFrame) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.initialize.unanswered > 0 {
		d.initialize.postponed = append(d.initialize.postponed, f)
	}
	return d.initialize.unanswered > 0
}

// nextPostponed gives the requests that have waited for the answer to initialize, one
// a call. With none left, prompts that came meanwhile are announced.
func (d *scheduler) nextPostponed() (incomingFrame, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := &d.initialize; len(g.postponed) > 0 && g.unanswered == 1 {
		f := g.postponed[0]
		g.postponed = g.postponed[1:]
		return f, true
	}
	d.initialize.unanswered--
	d.initialize.answered = true
	for _, in := range d.queue.waiting {
		if in.unannounced {
			d.announce(in)
		}
	}
	d.notify()
	return incomingFrame{}, false
}

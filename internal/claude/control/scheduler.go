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
	out      *frameWriter
	asked    *questions
	errands  *pendingRequests
	await    bool          // the first turn waits for an initialize request
	oneByOne bool          // prompts are never joined
	wake     chan struct{} // cap 1: something that the player waits for has changed

	mu        sync.Mutex // guards what follows
	queue     queue
	first     *prompt // played before all others, once; nil = none
	turn      runningTurn
	input     input
	greetings initialization
}

// runningTurn is the turn that is played.
type runningTurn struct {
	prompt *prompt                 // nil = none
	cut    context.CancelCauseFunc // interrupts it; nil = it has not begun
	begun  int                     // turns begun so far
}

// input is what is known of stdin.
type input struct {
	open     bool       // it has not ended
	ended    bool       // no more prompts are taken
	bursting bool       // whole lines wait to be looked at
	calm     *sync.Cond // bursting has ended
}

// initialization are the initialize requests of the host.
type initialization struct {
	open  int        // without an answer: other requests wait
	holds int        // without effect so far: no turn may start
	done  bool       // one has been answered
	later []incoming // requests that came meanwhile
}

func newDesk(o Options, out *frameWriter, asked *questions, work *pendingRequests) *scheduler {
	d := &scheduler{out: out, asked: asked, errands: work, await: o.AwaitInitialize, oneByOne: o.OneByOne, wake: make(chan struct{}, 1)}
	d.input.calm = sync.NewCond(&d.mu)
	return d
}

func (d *scheduler) stir() {
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
	d.first = &prompt{message: *first, begun: true}
	d.out.state("running")
	d.out.show(d.first.lifecycle("started")...)
}

// burst notes whether whole lines are there that have not been looked at: lines
// that came together are all known before the next turn begins.
func (d *scheduler) burst(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.input.bursting = on
	if !on {
		d.input.calm.Broadcast()
		d.stir()
	}
}

// close is the end of stdin.
func (d *scheduler) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.input.open = false
	d.stir()
}

// finish lets what was sent so far come to its end, as the end of stdin does.
func (d *scheduler) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.input.ended = true
	d.stir()
}

// enqueue takes a prompt, unless one with its uuid was taken before: that is
// only repeated, and only if it does not wait any more.
func (d *scheduler) enqueue(in *prompt) {
	d.mu.Lock()
	if d.queue.known(in.message.UUID) {
		waits := d.queue.waits(in.message.UUID)
		d.mu.Unlock()
		if !waits {
			d.out.repeat(in.message)
		}
		return
	}
	defer d.mu.Unlock()
	if d.greetings.open > 0 {
		in.unannounced = true
	} else {
		d.announce(in)
	}
	in.alone = d.turn.prompt == nil && len(d.queue.waiting) == 0
	d.queue.push(in)
	if in.priority > 0 && d.turn.prompt != nil && d.turn.cut != nil {
		d.supersede()
	}
	d.stir()
}

// announce tells that a prompt was taken, which ends the idle state; d.mu is
// held.
func (d *scheduler) announce(in *prompt) {
	in.unannounced = false
	d.out.state("running")
	d.out.show(in.lifecycle("queued")...)
}

// supersede ends the running turn for a prompt that is to be answered now; d.mu
// is held.
func (d *scheduler) supersede() {
	defer d.out.lines.hold()()
	d.turn.prompt.cancelled = true
	d.turn.cut(simulator.ErrSuperseded)
	d.asked.withdrawEnded()
}

// take gives the next prompt that may be played now; more tells whether there
// can be others later.
func (d *scheduler) take() (in *prompt, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	more = d.input.open && !d.input.ended
	g := d.greetings
	held := d.input.bursting || g.holds > 0 || g.open > 0 || d.await && !g.done && more
	switch {
	case held:
	case d.first != nil && (g.done || len(d.queue.waiting) > 0 || !more):
		in = d.first
		d.first, d.turn.prompt = nil, in
	case len(d.queue.waiting) > 0:
		in = d.queue.pop(!d.oneByOne)
		d.turn.prompt = in
	}
	return in, more || held || d.errands.any()
}

// insert gives a prompt that is none of the host's its turn.
func (d *scheduler) insert(message protocol.UserMessage) *prompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn.prompt = &prompt{message: message}
	return d.turn.prompt
}

// play begins the turn of the prompt that was taken; cut interrupts it.
func (d *scheduler) play(cut context.CancelCauseFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn.cut = cut
	d.turn.begun++
	if in := d.turn.prompt; in.interrupted {
		in.cancelled = true
		cut(nil)
	}
}

// played ends it.
func (d *scheduler) played() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn.prompt, d.turn.cut = nil, nil
}

// rest shows that nothing waits, if so.
func (d *scheduler) rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue.waiting) == 0 {
		d.out.state("idle")
	}
}

// interrupt ends the current turn, or the next one if it has been sent already;
// drop takes the prompts behind it away, too. Tell is called before anything
// else happens, with those that still wait and those that are gone.
func (d *scheduler) interrupt(drop bool, tell func(still, gone []*prompt)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turn.cut != nil {
		d.turn.prompt.cancelled = true
		d.turn.cut(nil)
	}
	d.asked.withdrawEnded()
	switch {
	case d.turn.prompt != nil && d.turn.cut == nil:
		d.turn.prompt.interrupted = true
	case d.turn.prompt == nil && len(d.queue.waiting) > 0:
		d.queue.waiting[0].interrupted = true
	}
	var gone []*prompt
	if drop {
		gone = d.queue.drop()
	}
	for _, in := range gone {
		d.out.show(in.lifecycle("cancelled")...)
	}
	tell(slices.DeleteFunc(slices.Clone(d.queue.waiting), func(in *prompt) bool { return in.interrupted }), gone)
}

// cancel takes a prompt away that has not begun; nil = there is none with this
// uuid.
func (d *scheduler) cancel(uuid string) *prompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queue.remove(uuid)
}

// absorb takes the prompts that become part of the running turn.
func (d *scheduler) absorb() []protocol.UserMessage {
	if d.oneByOne {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.input.bursting && d.input.open {
		d.input.calm.Wait()
	}
	var messages []protocol.UserMessage
	for _, in := range d.queue.absorb() {
		messages = append(messages, in.message)
	}
	return messages
}

// waiting counts the prompts of people that wait for a turn.
func (d *scheduler) waiting() int {
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
	return d.turn.prompt != nil || d.first != nil
}

// begun tells whether a turn has begun so far.
func (d *scheduler) begun() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.turn.begun > 0
}

// greet begins an initialize request: other requests wait until [scheduler.greeted]
// tells of no more, turns until [scheduler.introduced]. Begun tells whether a turn
// has begun, again whether this is not the first such request or is too late.
func (d *scheduler) greet() (begun, again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.greetings.open++
	d.greetings.holds++
	begun = d.turn.begun > 0 || d.turn.prompt != nil
	return begun, begun || d.greetings.done || d.greetings.open > 1
}

// introduced is the end of what an initialize request connects.
func (d *scheduler) introduced() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.greetings.holds--
}

// introducing tells whether servers that initialize names are being connected.
func (d *scheduler) introducing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.greetings.holds > 0
}

// postpone keeps a request that came while initialize is under way.
func (d *scheduler) postpone(f incoming) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.greetings.open > 0 {
		d.greetings.later = append(d.greetings.later, f)
	}
	return d.greetings.open > 0
}

// greeted gives the requests that have waited for the answer to initialize, one
// a call. With none left, prompts that came meanwhile are announced.
func (d *scheduler) greeted() (incoming, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := &d.greetings; len(g.later) > 0 && g.open == 1 {
		f := g.later[0]
		g.later = g.later[1:]
		return f, true
	}
	d.greetings.open--
	d.greetings.done = true
	for _, in := range d.queue.waiting {
		if in.unannounced {
			d.announce(in)
		}
	}
	d.stir()
	return incoming{}, false
}

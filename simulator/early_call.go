package simulator

import (
	"context"
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// startedCall is a call that runs while its message is still streamed. The stream waits for it until the call has a
// result or calls [ContinueStream], so that the order of events does not depend on time.
type startedCall struct {
	cancel     context.CancelFunc
	done       chan executedCall // cap 1
	ended      chan struct{}     // closed when the call has returned
	yields     chan bool         // tells the stream to continue; true means that it pauses again after its next event
	nextEvent  chan struct{}     // receives a value after that event
	messageEnd chan struct{}     // closed at the end of the message
	hasYielded bool              // used only by the goroutine of the call
}

type startedCallKey struct{}

// ContinueStream lets the stream of the message continue, because the call now waits for a process, the host or an
// agent. Only the first use of ContinueStream in a call has an effect.
func ContinueStream(ctx context.Context) {
	if c, _ := ctx.Value(startedCallKey{}).(*startedCall); c != nil && !c.hasYielded {
		c.hasYielded = true
		c.yields <- false
	}
}

// AwaitStreamEvent waits for the next event of the message's stream, unless the call has let the stream continue.
func AwaitStreamEvent(ctx context.Context) {
	if c, _ := ctx.Value(startedCallKey{}).(*startedCall); c != nil && !c.hasYielded {
		c.yields <- true
		select {
		case <-c.nextEvent:
		case <-ctx.Done():
		}
	}
}

// AwaitMessageEnd waits until the message has ended, if ctx is of a call that has used [ContinueStream].
func AwaitMessageEnd(ctx context.Context) {
	if c, _ := ctx.Value(startedCallKey{}).(*startedCall); c != nil && c.hasYielded {
		select {
		case <-c.messageEnd:
		case <-ctx.Done():
		}
	}
}

// startCall starts a call whose message is still streamed.
func (d *toolRound) startCall(ctx context.Context, c preparedCall) *startedCall {
	ctx, cancel := context.WithCancel(ctx)
	if d.messageEnd == nil {
		d.messageEnd = make(chan struct{})
	}
	run := &startedCall{cancel: cancel, done: make(chan executedCall, 1), ended: make(chan struct{}), yields: make(chan bool, 2), nextEvent: make(chan struct{}, 1), messageEnd: d.messageEnd}
	ctx = context.WithValue(context.WithValue(ctx, startedCallKey{}, run), earlyEventsKey{}, d.earlyEvents())
	d.started = append(d.started, run)
	go func() { // the goroutine returns when the call does, which ctx limits; endStartedCalls waits for it
		defer close(run.ended)
		run.done <- d.execute(ctx, 0, c)
	}()
	return run
}

// earlyEvents returns the channel for events of running calls; it is nil if the output must be repeatable.
func (d *toolRound) earlyEvents() chan earlyEvent {
	if d.events == nil && !d.sim.options.Display.OrderedResults {
		d.events = make(chan earlyEvent)
	}
	return d.events
}

// showCallEvents shows the events of a started call until it has a result, lets the stream continue, or pauses.
func (d *toolRound) showCallEvents(ctx context.Context, run *startedCall) (result *executedCall, pauses bool) {
	for !d.out.stopped {
		select {
		case r := <-run.done:
			return &r, false
		case pauses := <-run.yields:
			d.background.emitTaskEvents(task.PhaseInTurn)
			return nil, pauses
		case e := <-d.events:
			d.showEarly(e)
		case <-d.background.taskEventSignal():
			d.background.emitTaskEvents(task.PhaseInTurn)
		case <-ctx.Done():
			return nil, false
		}
	}
	return nil, false
}

// startHooks starts the hooks of a call that waits for an earlier call, before the result of the earlier call is shown.
func (d *toolRound) startHooks(ctx context.Context, c *preparedCall) {
	if d.events == nil || c.earlyResult != nil || d.sim.options.Tools.FirstEffect(ctx, c.toolUse) != (Effect{BeforeBlockStop, true}) {
		return
	}
	d.precheck(ctx, c)
	c.started = d.startCall(ctx, *c)
	if r, _ := d.showCallEvents(ctx, c.started); r != nil {
		c.started.done <- *r
	}
}

// releaseStartedCalls lets started calls continue after their message.
func (d *toolRound) releaseStartedCalls() {
	if d.messageEnd != nil {
		close(d.messageEnd)
		d.messageEnd = nil
	}
}

// endStartedCalls cancels started calls whose results are not needed, and waits for them.
func (d *toolRound) endStartedCalls() {
	for _, run := range d.started {
		run.cancel()
		<-run.ended
	}
	d.started = nil
}

// mayStart reports whether a call may start before its message is complete: earlier calls of the message have results,
// or they can run in parallel with it.
func (m *message) mayStart(c preparedCall) bool {
	return m.round.earlyEvents() != nil && !slices.ContainsFunc(m.calls, func(other preparedCall) bool {
		return other.earlyResult == nil && (!other.canRunInParallel() || !c.canRunInParallel())
	})
}

// mayRefuse reports whether a call may be refused while its message is still streamed. If its tool is known, all
// earlier calls of the message must already have results. If its tool is unknown, earlier calls without a result are
// allowed too if they can run in parallel.
func (m *message) mayRefuse(isKnownTool bool) bool {
	return !slices.ContainsFunc(m.calls, func(c preparedCall) bool { return c.earlyResult == nil && (isKnownTool || !c.canRunInParallel()) })
}

// reachStreamPoint starts or refuses the last call if point is that of the call's first effect, or a later one.
func (m *message) reachStreamPoint(ctx context.Context, point StreamPoint) error {
	e, last := m.effect, len(m.calls)-1
	if e.Point == AfterMessage || e.Point > point {
		return nil
	}
	m.effect = Effect{}
	use := &m.calls[last].toolUse
	use.Siblings, use.Round = len(m.final.Calls)-1, m.sim.history.rounds+1
	switch {
	case e.Starts && e.Point >= InNextBlock:
		if e.Point == LaterInNextBlock {
			m.dueFuncs = append(m.dueFuncs, func() {})
		}
		m.dueFuncs = append(m.dueFuncs, func() { m.startCall(ctx, last) })
	case e.Starts:
		m.startCall(ctx, last)
	default:
		r, err := m.round.refuseCall(ctx, &m.calls[last])
		if err != nil {
			return err
		}
		call := m.calls[last]
		m.dueFuncs = append(m.dueFuncs, func() { m.round.emitDenial(r) }, func() { m.round.emitOutcome(call, r) })
		if e.Point < InNextBlock {
			m.callAllDue()
		}
	}
	return m.out.checkOpen()
}

func (m *message) startCall(ctx context.Context, i int) {
	m.round.precheck(ctx, &m.calls[i])
	m.calls[i].started = m.round.startCall(ctx, m.calls[i])
	m.followCall(ctx, i)
}

// followCall waits until a started call has a result or lets the stream continue, and emits its events.
func (m *message) followCall(ctx context.Context, i int) {
	c := &m.calls[i]
	run := c.started
	switch r, pauses := m.round.showCallEvents(ctx, run); {
	case pauses:
		m.dueFuncs = append(m.dueFuncs, func() {
			run.nextEvent <- struct{}{}
			m.followCall(ctx, i)
		})
	case r != nil && (r.err != nil || r.result.Stop != nil): // runCalls ends the turn
		run.done <- *r
	case r != nil:
		c.earlyResult, c.started = r, nil
		m.round.emitResult(*c, *r)
	}
}

// callNextDue calls the first function in m.due. It is called after each event of the stream.
func (m *message) callNextDue() {
	if len(m.dueFuncs) > 0 {
		next := m.dueFuncs[0]
		m.dueFuncs = m.dueFuncs[1:]
		next()
	}
}

func (m *message) callAllDue() {
	for len(m.dueFuncs) > 0 && !m.out.stopped {
		m.callNextDue()
	}
}

// earlyEvent is an event of a running call. The channel shown is closed when the event has been shown.
type earlyEvent struct {
	event protocol.Event
	shown chan struct{}
}

// earlyEventsKey is the key of the channel for early events in the context of a call.
type earlyEventsKey struct{}

// CanShowEarly reports whether [ShowEarly] can show the events of a call. ctx is the context of the call.
func CanShowEarly(ctx context.Context) bool {
	events, _ := ctx.Value(earlyEventsKey{}).(chan earlyEvent)
	return events != nil
}

// ShowEarly shows an event of a call that is still running, and returns when it has been shown. ctx is the context of
// the call. It returns false if the event can only be shown together with the result.
func ShowEarly(ctx context.Context, ev protocol.Event) bool {
	events, _ := ctx.Value(earlyEventsKey{}).(chan earlyEvent)
	if events == nil {
		return false
	}
	e := earlyEvent{ev, make(chan struct{})}
	select {
	case events <- e:
		<-e.shown
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *toolRound) showEarly(e earlyEvent) {
	d.out.emitAll([]protocol.Event{e.event})
	close(e.shown)
}

package simulator

import (
	"context"
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// callStartedWhileStreaming is a call that runs while its message is still streamed. The stream pauses until the call
// has a result or uses [LetMessageStreamContinue]. Therefore, the order of events does not depend on time.
type callStartedWhileStreaming struct {
	cancel               context.CancelFunc
	done                 chan executedCall // cap 1
	ended                chan struct{}     // closed when the call has returned
	yields               chan bool         // tells the stream to continue; true means that it pauses again after its next event
	nextEvent            chan struct{}     // receives a value after the next event, if yields has sent true
	messageEnd           chan struct{}     // closed at the end of the message
	hasLetStreamContinue bool              // used only by the goroutine of the call
}

type callStartedWhileStreamingKey struct{}

// LetMessageStreamContinue lets the stream of the message continue, because the call now waits for a process, the host or an
// agent. Only the first use of LetMessageStreamContinue in a call has an effect.
func LetMessageStreamContinue(callCtx context.Context) {
	if c, _ := callCtx.Value(callStartedWhileStreamingKey{}).(*callStartedWhileStreaming); c != nil && !c.hasLetStreamContinue {
		c.hasLetStreamContinue = true
		c.yields <- false
	}
}

// PauseCallUntilNextStreamEvent waits for the next event of the message's stream, unless the call has let the stream continue.
func PauseCallUntilNextStreamEvent(callCtx context.Context) {
	if c, _ := callCtx.Value(callStartedWhileStreamingKey{}).(*callStartedWhileStreaming); c != nil && !c.hasLetStreamContinue {
		c.yields <- true
		select {
		case <-c.nextEvent:
		case <-callCtx.Done():
		}
	}
}

// WaitForMessageStreamEnd waits until the message has ended, if the call of callCtx has used [LetMessageStreamContinue].
func WaitForMessageStreamEnd(callCtx context.Context) {
	if c, _ := callCtx.Value(callStartedWhileStreamingKey{}).(*callStartedWhileStreaming); c != nil && c.hasLetStreamContinue {
		select {
		case <-c.messageEnd:
		case <-callCtx.Done():
		}
	}
}

func (d *toolCallRunner) startCallInGoroutine(ctx context.Context, c preparedCall) *callStartedWhileStreaming {
	ctx, cancel := context.WithCancel(ctx)
	if d.messageEnd == nil {
		d.messageEnd = make(chan struct{})
	}
	run := &callStartedWhileStreaming{cancel: cancel, done: make(chan executedCall, 1), ended: make(chan struct{}), yields: make(chan bool, 2), nextEvent: make(chan struct{}, 1), messageEnd: d.messageEnd}
	ctx = context.WithValue(context.WithValue(ctx, callStartedWhileStreamingKey{}, run), runningCallEventsKey{}, d.runningCallEventChannel())
	d.startedCalls = append(d.startedCalls, run)
	go func() { // the goroutine returns when the call returns, and ctx limits the call; cancelAndAwaitStartedCalls waits for it
		defer close(run.ended)
		run.done <- d.executeAndTimeCall(ctx, 0, c)
	}()
	return run
}

// runningCallEventChannel returns the channel for events of running calls, or nil if the output must be repeatable.
func (d *toolCallRunner) runningCallEventChannel() chan runningCallEvent {
	if d.events == nil && !d.sim.options.Display.OrderedResults {
		d.events = make(chan runningCallEvent)
	}
	return d.events
}

// showCallEventsUntilResultOrStreamContinues shows the events of a started call until the call has a result or
// lets the stream continue. waitsForNextStreamEvent is true if the call waits for the next event of the stream.
func (d *toolCallRunner) showCallEventsUntilResultOrStreamContinues(ctx context.Context, run *callStartedWhileStreaming) (result *executedCall, waitsForNextStreamEvent bool) {
	for !d.out.consumerStopped {
		select {
		case r := <-run.done:
			return &r, false
		case pauses := <-run.yields:
			d.background.emitTaskEventsAndEnforceBudget(task.ConversationPhaseInTurn)
			return nil, pauses
		case e := <-d.events:
			d.showRunningCallEvent(e)
		case <-d.background.taskEventQueuedSignal():
			d.background.emitTaskEventsAndEnforceBudget(task.ConversationPhaseInTurn)
		case <-ctx.Done():
			return nil, false
		}
	}
	return nil, false
}

// startWaitingCallIfHooksDue starts the hooks of a call that waits for an earlier call, before the result of the earlier call is shown.
func (d *toolCallRunner) startWaitingCallIfHooksDue(ctx context.Context, waitingCall *preparedCall) {
	if d.events == nil || waitingCall.earlyResult != nil || d.sim.options.Tools.FirstVisibleEffectOfCall(ctx, waitingCall.toolUse) != (CallStartOrRefusal{Point: StreamPointBeforeBlockStop, Starts: true}) {
		return
	}
	d.precheckAndUpdateCall(ctx, waitingCall)
	waitingCall.started = d.startCallInGoroutine(ctx, *waitingCall)
	if r, _ := d.showCallEventsUntilResultOrStreamContinues(ctx, waitingCall.started); r != nil {
		waitingCall.started.done <- *r
	}
}

func (d *toolCallRunner) letStartedCallsContinueAfterMessage() {
	if d.messageEnd != nil {
		close(d.messageEnd)
		d.messageEnd = nil
	}
}

// cancelAndAwaitStartedCalls cancels started calls whose results are not needed, and waits for them.
func (d *toolCallRunner) cancelAndAwaitStartedCalls() {
	for _, run := range d.startedCalls {
		run.cancel()
		<-run.ended
	}
	d.startedCalls = nil
}

// canStartCallWhileStreaming reports whether a call may start before its message is complete: earlier calls of the message have
// results, or they can run in parallel with it.
func (m *streamedMessage) canStartCallWhileStreaming(call preparedCall) bool {
	return m.round.runningCallEventChannel() != nil && !slices.ContainsFunc(m.calls, func(other preparedCall) bool {
		return other.earlyResult == nil && (!other.canRunInParallel() || !call.canRunInParallel())
	})
}

// startOrRefuseLastCallIfDue starts or refuses the last call if the stream has reached the point of its first effect.
func (m *streamedMessage) startOrRefuseLastCallIfDue(ctx context.Context, reachedPoint StreamPoint) error {
	e, last := m.lastCallFirstEffect, len(m.calls)-1
	if e.Point == StreamPointAfterMessage || e.Point > reachedPoint {
		return nil
	}
	m.lastCallFirstEffect = CallStartOrRefusal{}
	use := &m.calls[last].toolUse
	use.Siblings, use.Round = len(m.summary.Calls)-1, m.sim.history.toolRounds+1
	switch {
	case e.Starts && e.Point >= StreamPointOneEventAfterBlockStop:
		if e.Point == StreamPointTwoEventsAfterBlockStop {
			m.funcsQueuedForStreamEvents = append(m.funcsQueuedForStreamEvents, func() {})
		}
		m.funcsQueuedForStreamEvents = append(m.funcsQueuedForStreamEvents, func() { m.startCallAndEmitEvents(ctx, last) })
	case e.Starts:
		m.startCallAndEmitEvents(ctx, last)
	default:
		m.round.precheckAndUpdateCall(ctx, &m.calls[last]) // the tools will refuse the call
		r := m.round.executeAndTimeCall(ctx, 0, m.calls[last])
		m.calls[last].earlyResult = &r
		if r.err != nil {
			return r.err
		}
		call := m.calls[last]
		m.funcsQueuedForStreamEvents = append(m.funcsQueuedForStreamEvents, func() { m.round.emitPreResultEventsAndAddContext(r) }, func() { m.round.emitResultAndCountIfDenied(call, r) })
		if e.Point < StreamPointOneEventAfterBlockStop {
			m.runAllFuncsQueuedForStreamEvents()
		}
	}
	return m.out.errorIfConsumerStopped()
}

func (m *streamedMessage) startCallAndEmitEvents(ctx context.Context, i int) {
	m.round.precheckAndUpdateCall(ctx, &m.calls[i])
	m.calls[i].started = m.round.startCallInGoroutine(ctx, m.calls[i])
	m.emitStartedCallEventsAndResult(ctx, i)
}

// emitStartedCallEventsAndResult waits until a started call has a result or lets the stream continue, and emits its events.
func (m *streamedMessage) emitStartedCallEventsAndResult(ctx context.Context, callIndex int) {
	c := &m.calls[callIndex]
	run := c.started
	switch r, pauses := m.round.showCallEventsUntilResultOrStreamContinues(ctx, run); {
	case pauses:
		m.funcsQueuedForStreamEvents = append(m.funcsQueuedForStreamEvents, func() {
			run.nextEvent <- struct{}{}
			m.emitStartedCallEventsAndResult(ctx, callIndex)
		})
	case r != nil && (r.err != nil || r.result.Stop != nil): // runCallsAndEmitResults ends the turn
		run.done <- *r
	case r != nil:
		c.earlyResult, c.started = r, nil
		m.round.emitEventsAndResultOfCall(*c, *r)
	}
}

// runNextFuncQueuedForStreamEvent calls the first queued function, if any. It is called after each event of the stream.
func (m *streamedMessage) runNextFuncQueuedForStreamEvent() {
	if len(m.funcsQueuedForStreamEvents) > 0 {
		next := m.funcsQueuedForStreamEvents[0]
		m.funcsQueuedForStreamEvents = m.funcsQueuedForStreamEvents[1:]
		next()
	}
}

func (m *streamedMessage) runAllFuncsQueuedForStreamEvents() {
	for len(m.funcsQueuedForStreamEvents) > 0 && !m.out.consumerStopped {
		m.runNextFuncQueuedForStreamEvent()
	}
}

// runningCallEvent is an event of a running call. closedWhenShown is closed when the event has been shown.
type runningCallEvent struct {
	event           protocol.Event
	closedWhenShown chan struct{}
}

type runningCallEventsKey struct{}

// CanShowRunningCallEvents reports whether [ShowRunningCallEventAndWait] can show the events of a call. callCtx is the context of the call.
func CanShowRunningCallEvents(callCtx context.Context) bool {
	events, _ := callCtx.Value(runningCallEventsKey{}).(chan runningCallEvent)
	return events != nil
}

// ShowRunningCallEventAndWait shows an event of a call that is still running, and returns when the event has been shown. callCtx is the
// context of the call. The result is false if the event can only be shown together with the call's result.
func ShowRunningCallEventAndWait(callCtx context.Context, ev protocol.Event) bool {
	events, _ := callCtx.Value(runningCallEventsKey{}).(chan runningCallEvent)
	if events == nil {
		return false
	}
	e := runningCallEvent{ev, make(chan struct{})}
	select {
	case events <- e:
		<-e.closedWhenShown
		return true
	case <-callCtx.Done():
		return false
	}
}

func (d *toolCallRunner) showRunningCallEvent(e runningCallEvent) {
	d.out.assignIDsAndEmitAll([]protocol.Event{e.event})
	close(e.closedWhenShown)
}

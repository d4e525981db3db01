package control

import (
	"context"
	"slices"
	"sync"

	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// promptScheduler queues prompts and decides when the next turn may start.
type promptScheduler struct {
	out             *frameWriter
	requestsToHost  *outgoingRequests
	requestsOfHost  *incomingRequests
	awaitInitialize bool          // the first turn waits for an initialize request
	separateTurns   bool          // prompts are never merged
	wake            chan struct{} // capacity 1; signals that the queue or the input has changed

	mu                    sync.Mutex // guards the following fields
	queue                 promptQueue
	hostAssistantMessages []protocol.HostAssistantMessage // messages of the host that precede the next prompt in the conversation
	firstPrompt           *queuedPrompt                   // run before all others; nil means none
	turn                  runningTurn
	input                 stdinState
	initialize            initializeState
}

type runningTurn struct {
	prompt      *queuedPrompt           // nil means none
	interrupt   context.CancelCauseFunc // nil means the turn has not started
	count       int                     // turns started so far
	processEnds <-chan struct{}         // closed when the process must end
}

type stdinState struct {
	stdinOpen    bool
	ended        bool       // no more prompts are accepted
	linesPending bool       // complete lines are buffered but not handled yet
	linesHandled *sync.Cond // signals that linesPending has become false
}

type initializeState struct {
	unanswered int // number of initialize requests without an answer; other requests wait for them
	connecting int // number of initialize requests whose servers are still connecting; turns wait for them
	answered   bool
	succeeded  bool            // an initialize request was answered without an error
	postponed  []incomingFrame // requests of other kinds that wait for the answer to initialize
}

func (d *promptScheduler) wakeTurnLoop() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *promptScheduler) openInputWithFirstPrompt(first *protocol.UserMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.input.stdinOpen = true
	if first == nil {
		return
	}
	d.firstPrompt = &queuedPrompt{message: *first, startEventWritten: true}
	d.out.writeStateIfChanged("running")
	d.out.writeEventsOutsideTurn(d.firstPrompt.lifecycleEventPerUUID("started")...)
}

// setLinesPending records whether stdin has complete lines that are not handled yet. The next turn waits for them.
func (d *promptScheduler) setLinesPending(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.input.linesPending = on
	if !on {
		d.input.linesHandled.Broadcast()
		d.wakeTurnLoop()
	}
}

func (d *promptScheduler) closeInput() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.input.stdinOpen = false
	d.wakeTurnLoop()
}

// StopAcceptingNewPrompts stops accepting prompts. Prompts received so far are still run, as after EOF on stdin.
func (d *promptScheduler) StopAcceptingNewPrompts() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.input.ended = true
	d.wakeTurnLoop()
}

// enqueueIfNewInterruptingIfUrgent queues a prompt if its uuid is new. A prompt with a known uuid is only echoed, or ignored if the earlier
// prompt with this uuid is still waiting.
func (d *promptScheduler) enqueueIfNewInterruptingIfUrgent(in *queuedPrompt) {
	d.mu.Lock()
	if d.queue.recordSeenUUID(in.message.UUID) {
		waits := slices.ContainsFunc(d.queue.waiting, func(p *queuedPrompt) bool { return p.message.UUID == in.message.UUID })
		d.mu.Unlock()
		if !waits {
			d.out.echoPromptIfReplaying(in.message)
		}
		return
	}
	defer d.mu.Unlock()
	if d.initialize.unanswered > 0 {
		in.arrivedDuringInitialize = true
	} else {
		d.writePromptQueuedEvents(in)
	}
	in.startsAtOnce = d.turn.prompt == nil && len(d.queue.waiting) == 0
	d.queue.insertByPriority(in)
	if in.priority > 0 && d.turn.prompt != nil && d.turn.interrupt != nil {
		d.cancelRunningTurnForUrgentPrompt()
	}
	d.wakeTurnLoop()
}

// writePromptQueuedEvents writes the events for a queued prompt. They also end the idle state. The caller holds d.mu.
func (d *promptScheduler) writePromptQueuedEvents(queuedPrompt *queuedPrompt) {
	queuedPrompt.arrivedDuringInitialize = false
	d.out.writeStateIfChanged("running")
	d.out.writeEventsOutsideTurn(queuedPrompt.lifecycleEventPerUUID("queued")...)
}

// cancelRunningTurnForUrgentPrompt stops the running turn in favour of a prompt with priority "now"; d.mu is held.
func (d *promptScheduler) cancelRunningTurnForUrgentPrompt() {
	defer d.out.lines.delayTurnOutputUntilRelease()()
	d.turn.prompt.cancelled = true
	d.turn.interrupt(simulator.SupersededError{ProcessEnds: d.turn.processEnds})
	d.requestsToHost.withdrawAbandonedAndElicitations()
}

// takeNextPrompt removes and returns the next playable prompt, or nil. moreMayFollow reports whether more may follow.
func (d *promptScheduler) takeNextPrompt() (in *queuedPrompt, moreMayFollow bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	moreMayFollow = d.input.stdinOpen && !d.input.ended
	g := d.initialize
	held := d.input.linesPending || g.connecting > 0 || g.unanswered > 0 || d.awaitInitialize && !g.answered && moreMayFollow
	switch {
	case held:
	case d.firstPrompt != nil && (g.answered || len(d.queue.waiting) > 0 || !moreMayFollow):
		in = d.firstPrompt
		d.firstPrompt, d.turn.prompt = nil, in
	case len(d.queue.waiting) > 0:
		in = d.queue.takeNextWithMerged(!d.separateTurns)
		d.turn.prompt = in
	}
	return in, moreMayFollow || held || d.requestsOfHost.hasActive()
}

// makeNoticeNextTurnPrompt makes a message from background work the prompt of the next turn. The prompt is not queued.
func (d *promptScheduler) makeNoticeNextTurnPrompt(notice protocol.UserMessage) *queuedPrompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn.prompt = &queuedPrompt{message: notice}
	return d.turn.prompt
}

// recordTurnStarted records that the turn of the prompt taken last has started. interrupt is the function that interrupts this turn.
func (d *promptScheduler) recordTurnStarted(interrupt context.CancelCauseFunc, processEnds <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn.interrupt, d.turn.processEnds = interrupt, processEnds
	d.turn.count++
	in := d.turn.prompt
	if in.message.Assistant, d.hostAssistantMessages = d.hostAssistantMessages, nil; in.interruptedBeforeStart {
		in.cancelled = true
		interrupt(nil)
	}
}

// queueAssistantMessageIfNew adds a message to the conversation, before the next prompt. It ignores a message with a known uuid.
func (d *promptScheduler) queueAssistantMessageIfNew(host protocol.HostAssistantMessage) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if host.Message.Get("content") != nil && !d.queue.recordSeenUUID(host.UUID) {
		d.hostAssistantMessages = append(d.hostAssistantMessages, host)
	}
}

func (d *promptScheduler) clearRunningTurn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turn.prompt, d.turn.interrupt = nil, nil
}

func (d *promptScheduler) writeIdleUnlessPromptsWait() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue.waiting) == 0 {
		d.out.writeStateIfChanged("idle")
	}
}

// interruptTurnOrNextPrompt interrupts the running turn. If no turn is running but a prompt has arrived, it interrupts
// the turn of that prompt. If dropQueued is set, it also removes all other waiting prompts. It calls report with the
// prompts that still wait and the removed prompts, before the next prompt can be taken.
func (d *promptScheduler) interruptTurnOrNextPrompt(dropQueued bool, report func(stillQueued, dropped []*queuedPrompt)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.turn.interrupt != nil {
		d.turn.prompt.cancelled = true
		d.turn.interrupt(nil)
	}
	d.requestsToHost.withdrawAbandonedAndElicitations()
	switch {
	case d.turn.prompt != nil && d.turn.interrupt == nil:
		d.turn.prompt.interruptedBeforeStart = true
	case d.turn.prompt == nil && len(d.queue.waiting) > 0:
		d.queue.waiting[0].interruptedBeforeStart = true
	}
	var gone []*queuedPrompt
	if dropQueued {
		gone = d.queue.takeMatching(func(in *queuedPrompt) bool { return !in.interruptedBeforeStart }) // the turn of an interrupted prompt must still start and end
	}
	for _, in := range gone {
		d.out.writeEventsOutsideTurn(in.lifecycleEventPerUUID("cancelled")...)
	}
	report(slices.DeleteFunc(slices.Clone(d.queue.waiting), func(in *queuedPrompt) bool { return in.interruptedBeforeStart }), gone)
}

func (d *promptScheduler) removeQueuedPrompt(uuid string) *queuedPrompt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queue.removeByUUID(uuid)
}

// TakeJoiningPrompts removes the prompts that join the running turn from the queue and returns them; see [simulator.PromptQueue].
func (d *promptScheduler) TakeJoiningPrompts() []protocol.UserMessage {
	if d.separateTurns {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.input.linesPending && d.input.stdinOpen {
		d.input.linesHandled.Wait()
	}
	var messages []protocol.UserMessage
	for _, in := range d.queue.takeMatching(func(in *queuedPrompt) bool { return in.priority == 0 && in.isMergeable() }) {
		messages = append(messages, in.message)
	}
	return messages
}

// CountWaitingUserPrompts counts the queued prompts that users wrote; see [simulator.PromptQueue].
func (d *promptScheduler) CountWaitingUserPrompts() (queuedUserPrompts int) {
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

// IsClosedForNewPrompts reports whether no more prompts can arrive; see [simulator.PromptQueue].
func (d *promptScheduler) IsClosedForNewPrompts() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.input.stdinOpen || d.input.ended
}

func (d *promptScheduler) hasTurnOrWaitingFirstPrompt() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.turn.prompt != nil || d.firstPrompt != nil
}

func (d *promptScheduler) hasUnstartedPrompt() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.turn.interrupt == nil && (d.turn.prompt != nil || len(d.queue.waiting) > 0)
}

// HasAnyTurnStarted reports whether a turn has started yet.
func (d *promptScheduler) HasAnyTurnStarted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.turn.count > 0
}

// beginInitialize records an initialize request. From now on, other requests wait until
// [promptScheduler.takePostponedRequestOrEndInitialize] returns false, and turns wait until
// [promptScheduler.recordInitializeServersConnected] is called. isRepeatedOrLate is true if a turn has already started or
// another initialize request has succeeded or is not answered yet.
func (d *promptScheduler) beginInitialize() (isRepeatedOrLate bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.initialize.unanswered++
	d.initialize.connecting++
	return d.turn.count > 0 || d.turn.prompt != nil || d.initialize.succeeded || d.initialize.unanswered > 1
}

// recordInitializedAndQueuePrompt also queues the prompt that runs before those of the host, unless it is empty.
func (d *promptScheduler) recordInitializedAndQueuePrompt(firstPrompt string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.initialize.succeeded = true
	if firstPrompt != "" {
		first := &queuedPrompt{message: protocol.UserMessage{Content: protocol.Content{Text: firstPrompt}}, startsAtOnce: true, arrivedDuringInitialize: true}
		d.queue.waiting = slices.Insert(d.queue.waiting, 0, first)
	}
}

func (d *promptScheduler) recordInitializeServersConnected() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.initialize.connecting--
}

// IsConnectingServers reports whether the servers listed in initialize are still being connected.
func (d *promptScheduler) IsConnectingServers() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.initialize.connecting > 0
}

// postponeUntilInitializeAnswered stores a request for later if an initialize request is unanswered, and reports whether it did.
func (d *promptScheduler) postponeUntilInitializeAnswered(request incomingFrame) (isPostponed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.initialize.unanswered > 0 {
		d.initialize.postponed = append(d.initialize.postponed, request)
	}
	return d.initialize.unanswered > 0
}

// takePostponedRequestOrEndInitialize returns the requests that waited for the answer to initialize, one per call. After the
// last one, it announces the prompts that arrived in the meantime, and requests no longer wait.
func (d *promptScheduler) takePostponedRequestOrEndInitialize() (postponedRequest incomingFrame, wasFound bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := &d.initialize; len(g.postponed) > 0 && g.unanswered == 1 {
		f := g.postponed[0]
		g.postponed = g.postponed[1:]
		return f, true
	}
	d.initialize.unanswered--
	d.initialize.answered = d.initialize.unanswered == 0
	for _, in := range d.queue.waiting {
		if d.initialize.answered && in.arrivedDuringInitialize {
			d.writePromptQueuedEvents(in)
		}
	}
	d.wakeTurnLoop()
	return incomingFrame{}, false
}

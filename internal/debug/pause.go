package debug

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// openPauseLocked opens a pause; h.mu must be held.
func (h *Hub) openPauseLocked(k *runningCall, phase CallPhase, breakpoint string, r *CallOutcome) *openPause {
	p := &openPause{
		id: h.options.NewID(), call: k, phase: phase, data: k.data, pausedAt: h.options.Now(), outcome: r,
		decided: make(chan struct{}),
	}
	p.data.PauseInfo = PauseInfo{Phase: phase, Reason: "breakpoint", Breakpoint: breakpoint, Capabilities: k.caller.Actions(phase)}
	if r != nil {
		p.data.PrettyResult, p.data.Exception = r.Result, r.Exception
		if r.Failed {
			p.data.Reason = "exception"
		}
	}
	k.pause = p
	h.pauses.openPauses[p.id] = p
	h.pauses.order = append(h.pauses.order, p)
	// A lease limits how long a pause lasts without a poll of the caller. Before a call, a lease that the caller sets starts with
	// the first poll. After a call, it starts now, because a caller that does not poll at once will never poll.
	if k.lease == 0 || r != nil {
		h.restartTimerThatAbandonsPause(p)
	}
	if h.options.PauseTimeout > 0 && h.options.OnTimeout != PolicyWaitForever {
		p.expiryTimer = time.AfterFunc(h.options.PauseTimeout, func() { h.endPauseByTimeoutPolicy(p) }) // stopped when the pause ends
	}
	h.publishLocked(Event{Kind: EventPaused, PauseID: p.id, MethodName: p.data.MethodName, Reason: p.data.Reason, PausedAt: unixSeconds(p.pausedAt)})
	return p
}

// Pauses lists the paused calls, the oldest first.
func (h *Hub) Pauses() []Pause {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Pause, 0, len(h.pauses.order))
	for _, p := range h.pauses.order {
		all = append(all, p.publicState())
	}
	return all
}

// PauseByID returns one paused call.
func (h *Hub) PauseByID(id string) (Pause, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, err := h.findOpenPause(id)
	if err != nil {
		return Pause{}, err
	}
	return p.publicState(), nil
}

// findOpenPause returns an open pause; h.mu must be held.
func (h *Hub) findOpenPause(id string) (*openPause, error) {
	if p, ok := h.pauses.openPauses[id]; ok {
		return p, nil
	}
	if _, ok := h.pauses.recentDecisions[id]; ok {
		return nil, NewError(CodePauseResumed, "the call was already resumed", "pause_id", id)
	}
	return nil, NewError(CodePauseNotFound, "", "pause_id", id)
}

// Wait waits until a pause has a decision, and returns the decision. If ctx ends first, decided is false. Wait may be
// called repeatedly, even after the decision. The pause's lease (time limit) does not run while a caller waits.
func (h *Hub) Wait(ctx context.Context, pauseID string) (d Decision, decided bool, err error) {
	h.mu.Lock()
	p, ok := h.pauses.openPauses[pauseID]
	if !ok {
		d, ok := h.pauses.recentDecisions[pauseID]
		h.mu.Unlock()
		if !ok {
			return Decision{}, false, NewError(CodePauseNotFound, "", "pause_id", pauseID)
		}
		return d, true, nil
	}
	p.waitingCallers++
	stopAndClearTimer(&p.leaseTimer)
	h.mu.Unlock()

	select {
	case <-p.decided:
	case <-ctx.Done():
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	p.waitingCallers--
	select {
	case <-p.decided:
		return p.decision, true, nil
	default:
	}
	if p.waitingCallers == 0 {
		h.restartTimerThatAbandonsPause(p)
	}
	return Decision{}, false, nil
}

// restartTimerThatAbandonsPause restarts the timer that ends a pause when its caller stops polling; h.mu must be held.
func (h *Hub) restartTimerThatAbandonsPause(p *openPause) {
	stopAndClearTimer(&p.leaseTimer)
	d := cmp.Or(p.call.lease, h.options.Lease)
	var mine *time.Timer
	mine = time.AfterFunc(d, func() { // stopped when the pause ends
		h.mu.Lock()
		defer h.mu.Unlock()
		if p.leaseTimer == mine {
			h.endPauseWithDecision(p, Decision{Action: ActionEndedWithoutDecision})
		}
	})
	p.leaseTimer = mine
}

// AbandonPause ends a pause because its caller has disconnected. An unknown pause is ignored.
func (h *Hub) AbandonPause(pauseID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p, ok := h.pauses.openPauses[pauseID]; ok {
		h.endPauseWithDecision(p, Decision{Action: ActionEndedWithoutDecision})
	}
}

func (h *Hub) endPauseByTimeoutPolicy(p *openPause) {
	d := Decision{Action: ActionContinue}
	if h.options.OnTimeout == PolicyFail {
		d = Decision{
			Action: ActionRaise, Type: "TimeoutError",
			Message: "the breakpoint on " + p.data.MethodName + " was not resumed within " + h.options.PauseTimeout.String(),
		}
		if !slices.Contains(p.data.Capabilities, ActionRaise) {
			d = Decision{Action: ActionContinue}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endPauseWithDecision(p, d)
}

// endPauseWithDecision ends a pause with a decision if the pause is still open. h.mu must be held.
func (h *Hub) endPauseWithDecision(p *openPause, d Decision) (wasStillOpen bool) {
	if _, ok := h.pauses.openPauses[p.id]; !ok {
		return false
	}
	p.call.pause = nil
	delete(h.pauses.openPauses, p.id)
	h.pauses.order = slices.DeleteFunc(h.pauses.order, func(o *openPause) bool { return o == p })
	stopAndClearTimer(&p.leaseTimer)
	stopAndClearTimer(&p.expiryTimer)
	if d.Encoded == nil {
		if wire, err := p.call.caller.Encode(d); err == nil { // decisions that no front end requested can always be encoded
			d.Encoded = wire
		}
	}
	p.decision = d
	h.pauses.storeDecision(p.id, d)
	if p.phase == PhaseBefore {
		p.call.action = d.Action
		p.call.pausedTime += h.options.Now().Sub(p.pausedAt)
		if d.Action == ActionModify && d.Input != nil {
			p.call.originalInput = p.call.data.Input()
			p.call.data.Values = ClaudelessCallInput{d.Input, d.InputCID}
		}
		if d.Action == ActionEndedWithoutDecision {
			h.calls.remove(p.call)
		}
	}
	if p.phase == PhaseAfterCall {
		p.call.record.AfterAction = d.Action
		p.call.record.FinalResult = ValueOrTruncationMarker(d.replacementResult(), "")
	}
	for _, id := range p.sessions {
		if s, ok := h.byID[id]; ok {
			h.closeREPLSessionLocked(s)
		}
	}
	close(p.decided)
	h.publishLocked(Event{Kind: EventResumed, PauseID: p.id, MethodName: p.data.MethodName, Action: string(d.Action)})
	return true
}

// Close ends all pauses, timers and subscriptions. The hub then refuses new calls. Close may be called more than once.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for len(h.pauses.order) > 0 {
		h.endPauseWithDecision(h.pauses.order[0], Decision{Action: ActionEndedWithoutDecision})
	}
	for s := range h.observers {
		h.unsubscribeLocked(s)
	}
}

// Resume decides about a paused call. Only the first decision is used. A later decision, or one that the caller cannot
// execute, is refused and has no effect.
func (h *Hub) Resume(ctx context.Context, pauseID string, r ResumeRequest) error {
	h.mu.Lock()
	p, err := h.findOpenPause(pauseID)
	h.mu.Unlock()
	if err != nil {
		return err
	}
	d, err := h.decisionFromResumeRequest(ctx, p, r)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.endPauseWithDecision(p, d) {
		return NewError(CodePauseResumed, "the call was already resumed", "pause_id", pauseID)
	}
	return nil
}

func (h *Hub) decisionFromResumeRequest(ctx context.Context, p *openPause, r ResumeRequest) (Decision, error) {
	action, err := p.parseAction(r)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Action: action, Request: &r}
	if _, ok := p.call.caller.(Evaluator); ok && action == ActionModify && r.ModifiedInputExpr != "" {
		return d, NewError(CodeUnsupportedAction, "cannot set the input with an expression here: the client that made this call evaluates expressions itself")
	}
	switch action {
	case ActionModify:
		if p.call.isNativeInput {
			err = h.setModifiedInputOrResult(ctx, p, &d, r)
		}
	case ActionSkip:
		d.Result = r.FakeResult
		if r.ModifiedResultExpr != "" && p.call.isNativeInput {
			d.Result, err = h.evaluateToJSON(ctx, p, r.ModifiedResultExpr)
		}
	case ActionRaise:
		d.Type, d.Message = r.ExceptionType, r.messageOfRaisedFailure()
	case ActionRunOtherTool:
		if d.Tool = r.ReplacementFunction; p.call.isNativeInput {
			h.mu.Lock()
			d.Tool = h.canonicalNameOfToolSpelling(d.Tool)
			h.mu.Unlock()
		}
	default: // only the action
	}
	if err == nil {
		d.Encoded, err = p.call.caller.Encode(d)
	}
	d.Request = nil
	return d, err
}

func (p *openPause) parseAction(r ResumeRequest) (PauseDecisionAction, error) {
	action := cmp.Or(PauseDecisionAction(r.Action), ActionContinue)
	edited := r.ModifiedArgs != nil || r.ModifiedKwargs != nil || r.ModifiedInputExpr != ""
	if p.phase == PhaseAfterCall {
		edited = hasNonSpaceBytes(r.ModifiedResult) || r.ModifiedResultExpr != ""
	}
	switch {
	case r.ReplacementFunction != "":
		action = ActionRunOtherTool
	case action == ActionContinue && edited:
		action = ActionModify
	case action == ActionRunOtherTool:
		return "", NewError(CodeMissingParameter, "replacement_function required", "parameter", "replacement_function")
	case action == ActionModify && !edited:
		return "", NewError(CodeInvalidArguments, "modify needs new values")
	}
	switch action {
	case ActionContinue, ActionModify, ActionSkip, ActionRaise, ActionRunOtherTool:
	default:
		return "", NewError(CodeInvalidAction, "action must be one of continue, modify, skip, raise, replace", "action", r.Action)
	}
	if !slices.Contains(p.data.Capabilities, action) {
		return "", NewError(CodeUnsupportedAction, "this action is not possible for this call", "action", string(action), "supported", p.data.Capabilities)
	}
	return action, nil
}

func hasNonSpaceBytes(v json.RawMessage) bool { return len(bytes.TrimSpace(v)) > 0 }

func (h *Hub) setModifiedInputOrResult(ctx context.Context, p *openPause, decision *Decision, request ResumeRequest) (err error) {
	if p.phase == PhaseAfterCall {
		decision.Result = request.ModifiedResult
		if request.ModifiedResultExpr != "" {
			decision.Result, err = h.evaluateToJSON(ctx, p, request.ModifiedResultExpr)
		}
		return err
	}
	switch {
	case request.ModifiedInputExpr != "":
		decision.Input, err = h.evaluateToJSON(ctx, p, request.ModifiedInputExpr)
	case request.ModifiedKwargs != nil:
		if request.ModifiedArgs != nil && len(*request.ModifiedArgs) > 0 {
			return NewError(CodeInvalidArguments, "give modified_kwargs or modified_args, not both")
		}
		decision.Input, err = protocol.Marshal(*request.ModifiedKwargs)
	case len(*request.ModifiedArgs) == 1:
		decision.Input = (*request.ModifiedArgs)[0]
	default:
		return NewError(CodeInvalidArguments, "modified_args of a tool must have exactly one element: the whole input")
	}
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(decision.Input), []byte("{")) {
		return NewError(CodeInvalidArguments, "the input of a tool must be a JSON object")
	}
	cid, canonical, err := h.store.PutJSON(decision.Input)
	if canonical == nil {
		return NewError(CodeInvalidArguments, err.Error())
	}
	decision.InputCID = cid // Put returns an id even for an input that is too large to store
	return nil
}

func (r ResumeRequest) messageOfRaisedFailure() string {
	if r.ExceptionMessage != "" {
		return r.ExceptionMessage
	}
	var text string
	if json.Unmarshal(r.Exception, &text) == nil && text != "" {
		return text
	}
	if hasNonSpaceBytes(r.Exception) && !bytes.Equal(bytes.TrimSpace(r.Exception), []byte("null")) {
		return string(r.Exception)
	}
	return cmp.Or(r.ExceptionType, "the debugger made the call fail")
}

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

// begin begins a pause; h.mu is held.
func (h *Hub) begin(k *call, phase Phase, breakpoint string, r *Outcome) *pause {
	p := &pause{
		id: h.o.NewID(), call: k, phase: phase, data: k.data, at: h.o.Now(), o: r,
		done: make(chan struct{}),
	}
	p.data.Halt = Halt{Phase: phase, Reason: "breakpoint", Breakpoint: breakpoint, Capabilities: k.caller.Can(phase)}
	if r != nil {
		p.data.PrettyResult, p.data.Exception = r.Result, r.Exception
		if r.Failed {
			p.data.Reason = "exception"
		}
	}
	k.pause = p
	h.pauses.open[p.id] = p
	h.pauses.order = append(h.pauses.order, p)
	// A caller with a lease of its own may take its time before a call only; what
	// it does not ask about after it, it never will.
	if k.lease == 0 || r != nil {
		h.startLease(p)
	}
	if h.o.PauseTimeout > 0 && h.o.OnTimeout != PolicyWait {
		p.expiry = time.AfterFunc(h.o.PauseTimeout, func() { h.expire(p) }) // ends with the pause
	}
	h.publish(Event{
		Kind: EventPaused, PauseID: p.id, MethodName: p.data.MethodName, Reason: p.data.Reason, PausedAt: seconds(p.at),
	})
	return p
}

// Paused lists the paused calls, the oldest first.
func (h *Hub) Paused() []Pause {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Pause, 0, len(h.pauses.order))
	for _, p := range h.pauses.order {
		all = append(all, p.view())
	}
	return all
}

// Pause returns one paused call.
func (h *Hub) Pause(id string) (Pause, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, err := h.find(id)
	if err != nil {
		return Pause{}, err
	}
	return p.view(), nil
}

// find returns an open pause; h.mu is held.
func (h *Hub) find(id string) (*pause, error) {
	if p, ok := h.pauses.open[id]; ok {
		return p, nil
	}
	if _, ok := h.pauses.decided[id]; ok {
		return nil, Refuse(CodePauseResumed, "the call was resumed already", "pause_id", id)
	}
	return nil, Refuse(CodePauseNotFound, "", "pause_id", id)
}

// Wait returns the decision about a pause, at once or as soon as it is made.
// When ctx ends first, decided is false. It may be asked again and again; while
// somebody waits the lease does not run.
func (h *Hub) Wait(ctx context.Context, pauseID string) (d Decision, decided bool, err error) {
	h.mu.Lock()
	p, ok := h.pauses.open[pauseID]
	if !ok {
		d, ok := h.pauses.decided[pauseID]
		h.mu.Unlock()
		if !ok {
			return Decision{}, false, Refuse(CodePauseNotFound, "", "pause_id", pauseID)
		}
		return d, true, nil
	}
	p.waiters++
	stopTimer(&p.lease)
	h.mu.Unlock()

	select {
	case <-p.done:
	case <-ctx.Done():
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	p.waiters--
	select {
	case <-p.done:
		return p.decision, true, nil
	default:
	}
	if p.waiters == 0 {
		h.startLease(p)
	}
	return Decision{}, false, nil
}

// startLease begins a pause's lease anew; h.mu is held.
func (h *Hub) startLease(p *pause) {
	stopTimer(&p.lease)
	d := cmp.Or(p.call.lease, h.o.Lease)
	var mine *time.Timer
	mine = time.AfterFunc(d, func() { // stopped when the pause ends
		h.mu.Lock()
		defer h.mu.Unlock()
		if p.lease == mine {
			h.settle(p, Decision{Action: ActionAbandon})
		}
	})
	p.lease = mine
}

// Abandon ends a pause whose caller is gone; an unknown one is fine.
func (h *Hub) Abandon(pauseID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p, ok := h.pauses.open[pauseID]; ok {
		h.settle(p, Decision{Action: ActionAbandon})
	}
}

// expire ends a pause that nobody decided about in time.
func (h *Hub) expire(p *pause) {
	d := Decision{Action: ActionContinue}
	if h.o.OnTimeout == PolicyFail {
		d = Decision{
			Action: ActionRaise, Type: "TimeoutError",
			Message: "the breakpoint on " + p.data.MethodName + " was not resumed within " + h.o.PauseTimeout.String(),
		}
		if !slices.Contains(p.data.Capabilities, ActionRaise) {
			d = Decision{Action: ActionContinue}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settle(p, d)
}

// settle decides about a pause and ends it; of several decisions the first
// counts. It reports whether this one did. h.mu is held.
func (h *Hub) settle(p *pause, d Decision) bool {
	if _, ok := h.pauses.open[p.id]; !ok {
		return false
	}
	p.call.pause = nil
	delete(h.pauses.open, p.id)
	h.pauses.order = slices.DeleteFunc(h.pauses.order, func(o *pause) bool { return o == p })
	stopTimer(&p.lease)
	stopTimer(&p.expiry)
	if d.Wire == nil {
		if wire, err := p.call.caller.Encode(d); err == nil { // what nobody wished can be written
			d.Wire = wire
		}
	}
	p.decision = d
	h.pauses.remember(p.id, d)
	if p.phase == Before {
		p.call.action = d.Action
		p.call.paused += h.o.Now().Sub(p.at)
		if d.Action == ActionModify && d.Input != nil {
			p.call.original = p.call.data.Input()
			p.call.data.Values = Input{d.Input, d.InputCID}
		}
		if d.Action == ActionAbandon {
			h.calls.drop(p.call)
		}
	}
	if p.phase == After {
		p.call.record.AfterAction = d.Action
		p.call.record.FinalResult = Shorten(d.final(), "")
	}
	h.closeAll(p.sessions)
	close(p.done)
	h.publish(Event{Kind: EventResumed, PauseID: p.id, MethodName: p.data.MethodName, Action: string(d.Action)})
	return true
}

// Close abandons all pauses, stops all timers and ends all subscriptions. It
// may be called more than once; the hub refuses new calls afterwards.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for len(h.pauses.order) > 0 {
		h.settle(h.pauses.order[0], Decision{Action: ActionAbandon})
	}
	for s := range h.observers {
		h.unsubscribe(s)
	}
}

// Resume decides about a paused call. The first decision counts; a later one
// is refused, as is one that the caller cannot carry out, and changes nothing.
func (h *Hub) Resume(ctx context.Context, pauseID string, r Resume) error {
	h.mu.Lock()
	p, err := h.find(pauseID)
	h.mu.Unlock()
	if err != nil {
		return err
	}
	d, err := h.decide(ctx, p, r)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.settle(p, d) {
		return Refuse(CodePauseResumed, "the call was resumed already", "pause_id", pauseID)
	}
	return nil
}

// decide turns a front's wish into a decision for p's caller.
func (h *Hub) decide(ctx context.Context, p *pause, r Resume) (Decision, error) {
	action, err := p.action(r)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Action: action, Wish: &r}
	if _, ok := p.call.caller.(Evaluator); ok && action == ActionModify && r.ModifiedInputExpr != "" {
		return d, Refuse(CodeUnsupportedAction, "expressions of this call are evaluated by its client")
	}
	switch action {
	case ActionModify:
		if p.call.own {
			err = h.modification(ctx, p, &d, r)
		}
	case ActionSkip:
		d.Result = r.FakeResult
		if r.ModifiedResultExpr != "" && p.call.own {
			d.Result, err = h.value(ctx, p, r.ModifiedResultExpr)
		}
	case ActionRaise:
		d.Type, d.Message = r.ExceptionType, r.failure()
	case ActionReplace:
		if d.Tool = r.ReplacementFunction; p.call.own {
			h.mu.Lock()
			d.Tool = h.canonical(d.Tool)
			h.mu.Unlock()
		}
	default: // nothing beside the action
	}
	if err == nil {
		d.Wire, err = p.call.caller.Encode(d)
	}
	d.Wish = nil
	return d, err
}

// action checks the action a front wants.
func (p *pause) action(r Resume) (Action, error) {
	action := cmp.Or(Action(r.Action), ActionContinue)
	edited := r.ModifiedArgs != nil || r.ModifiedKwargs != nil || r.ModifiedInputExpr != ""
	if p.phase == After {
		edited = present(r.ModifiedResult) || r.ModifiedResultExpr != ""
	}
	switch {
	case r.ReplacementFunction != "":
		action = ActionReplace
	case action == ActionContinue && edited:
		action = ActionModify
	case action == ActionReplace:
		return "", Refuse(CodeMissingParameter, "replacement_function required", "parameter", "replacement_function")
	case action == ActionModify && !edited:
		return "", Refuse(CodeInvalidArguments, "modify needs new values")
	}
	switch action {
	case ActionContinue, ActionModify, ActionSkip, ActionRaise, ActionReplace:
	default:
		return "", Refuse(CodeInvalidAction, "action must be one of continue, modify, skip, raise, replace", "action", r.Action)
	}
	if !slices.Contains(p.data.Capabilities, action) {
		return "", Refuse(CodeUnsupportedAction, "this call cannot do that here", "action", string(action), "supported", p.data.Capabilities)
	}
	return action, nil
}

func present(v json.RawMessage) bool { return len(bytes.TrimSpace(v)) > 0 }

// modification is the new input or result of a modify.
func (h *Hub) modification(ctx context.Context, p *pause, d *Decision, r Resume) (err error) {
	if p.phase == After {
		d.Result = r.ModifiedResult
		if r.ModifiedResultExpr != "" {
			d.Result, err = h.value(ctx, p, r.ModifiedResultExpr)
		}
		return err
	}
	switch {
	case r.ModifiedInputExpr != "":
		d.Input, err = h.value(ctx, p, r.ModifiedInputExpr)
	case r.ModifiedKwargs != nil:
		if r.ModifiedArgs != nil && len(*r.ModifiedArgs) > 0 {
			return Refuse(CodeInvalidArguments, "give modified_kwargs or modified_args, not both")
		}
		d.Input, err = protocol.Marshal(*r.ModifiedKwargs)
	case len(*r.ModifiedArgs) == 1:
		d.Input = (*r.ModifiedArgs)[0]
	default:
		return Refuse(CodeInvalidArguments, "modified_args of a tool has one element, the whole input")
	}
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(d.Input), []byte("{")) {
		return Refuse(CodeInvalidArguments, "the input of a tool is a JSON object")
	}
	cid, canonical, err := h.store.PutJSON(d.Input)
	if canonical == nil {
		return Refuse(CodeInvalidArguments, err.Error())
	}
	d.InputCID = cid // an input too large to keep has one all the same
	return nil
}

// failure is the text of a raise.
func (r Resume) failure() string {
	if r.ExceptionMessage != "" {
		return r.ExceptionMessage
	}
	var text string
	if json.Unmarshal(r.Exception, &text) == nil && text != "" {
		return text
	}
	if present(r.Exception) && !bytes.Equal(bytes.TrimSpace(r.Exception), []byte("null")) {
		return string(r.Exception)
	}
	if r.ExceptionType != "" {
		return r.ExceptionType
	}
	return "the call was failed by the debugger"
}

package debug

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Pause is a call that waits for a decision.
type Pause struct {
	ID       string   `json:"id"`
	CallData CallData `json:"call_data"`
	PausedAt float64  `json:"paused_at"` // Unix seconds
	Sessions []string `json:"repl_sessions"`
}

// pause is guarded by Hub.mu; it changes in begin, settle and leases only.
type pause struct {
	id    string
	call  *call
	phase Phase
	data  CallData
	at    time.Time
	o     *Outcome // how the call went; nil before it ran

	done     chan struct{} // closed when decided
	decision Decision
	waiters  int         // questions that are being answered now
	lease    *time.Timer // nil = does not run
	expiry   *time.Timer // nil = no limit
	sessions []string
}

// pauses are the open ones, and what was decided about those that are over.
type pauses struct {
	open       map[string]*pause
	order      []*pause            // oldest first
	decided    map[string]Decision // of closed pauses
	decidedIDs []string            // oldest first
	size       int                 // bytes of decided
}

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

func (p *pause) view() Pause {
	return Pause{ID: p.id, CallData: p.data, PausedAt: seconds(p.at), Sessions: append([]string{}, p.sessions...)}
}

// find returns an open pause; h.mu is held.
func (h *Hub) find(id string) (*pause, error) {
	if p, ok := h.pauses.open[id]; ok {
		return p, nil
	}
	if _, ok := h.pauses.decided[id]; ok {
		return nil, refuse(CodePauseResumed, "the call was resumed already", "pause_id", id)
	}
	return nil, refuse(CodePauseNotFound, "", "pause_id", id)
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
			return Decision{}, false, refuse(CodePauseNotFound, "", "pause_id", pauseID)
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

// remember keeps the decision about a pause for its caller, which may ask late;
// of too many the oldest are forgotten.
func (p *pauses) remember(id string, d Decision) {
	p.decided[id] = d
	p.decidedIDs = append(p.decidedIDs, id)
	p.size += d.size()
	for n := len(p.decidedIDs); n > maxClosedPauses || n > 1 && p.size > maxDecidedBytes; n-- {
		p.size -= p.decided[p.decidedIDs[0]].size()
		delete(p.decided, p.decidedIDs[0])
		p.decidedIDs = p.decidedIDs[1:]
	}
}

// final is what the agent is given in place of its call's result; nil = that.
func (d Decision) final() json.RawMessage {
	switch d.Action {
	case ActionModify:
		return d.Result
	case ActionRaise:
		if text, err := protocol.Marshal(d.Message); err == nil {
			return text
		}
	default: // it stays
	}
	return nil
}

func (d Decision) size() int { return len(d.Input) + len(d.Result) + len(d.Message) + len(d.Wire) }

func stopTimer(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

package debug

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/claudeless/claudeless/internal/base/cas"
)

// Start tells the hub of a call about to run. A call that is stopped begins
// its pause here; it goes on existing whether or not somebody waits for it.
func (h *Hub) Start(ctx context.Context, c Call) (StartedCall, error) {
	if c.Tool == "" {
		return StartedCall{}, Refuse(CodeMissingParameter, "method_name required", "parameter", "method_name")
	}
	k, err := h.newCall(c)
	if err != nil {
		return StartedCall{}, err
	}
	if err := h.admit(k); err != nil {
		return StartedCall{}, err
	}
	begun := StartedCall{CallID: k.data.CallID, Decision: Decision{Action: ActionContinue}}
	hit, stopped := h.examine(ctx, k, Before, nil)
	if hit == nil {
		return begun, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case stopped && (h.closed || len(h.pauses.open) >= maxPauses):
		h.calls.drop(k)
		return StartedCall{}, Refuse(CodeLimit, "too many paused calls")
	case stopped:
		begun.PauseID = h.begin(k, Before, hit.Name, nil).id
	case hit.Replacement != "" && slices.Contains(k.caller.Can(Before), ActionReplace):
		begun.Decision = Decision{Action: ActionReplace, Tool: h.canonical(hit.Replacement)}
		k.action = ActionReplace
	}
	return begun, nil
}

// admit gives a call its id and remembers it.
func (h *Hub) admit(k *call) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return Refuse(CodeClosed, "the debugger is closing")
	}
	if k.data.Signature == "" {
		k.data.Signature = h.functions[k.data.MethodName].Signature
	}
	k.data.StartedAt = seconds(h.o.Now())
	k.data.CallID = h.callID(k.data.StartedAt)
	h.calls.keep(k)
	return nil
}

// newCall makes the shown form of a call and keeps its input.
func (h *Hub) newCall(c Call) (*call, error) {
	k := &call{caller: nativeCaller(c.Client), vars: map[string]any{}, data: CallData{
		MethodName: c.Tool, Client: c.Client, SessionID: c.Session, ToolUseID: c.ToolUseID, CallSite: c.Site,
		Signature: c.Signature, Process: NewProcess(c.PID, c.Started), Evaluator: "local",
	}}
	if o := c.Other; o != nil {
		k.caller, k.lease, k.data.Values = o.Caller, o.Lease, o.Values
		_, k.own = o.Values.(Input)
		if _, ok := o.Caller.(Evaluator); ok {
			k.data.Evaluator = "client"
		}
		return k, nil
	}
	input := c.Input
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	canonical, err := cas.Canonical(input)
	if err != nil {
		return nil, Refuse(CodeInvalidPayload, "input: "+err.Error())
	}
	if canonical[0] != '{' {
		return nil, Refuse(CodeInvalidPayload, "input must be a JSON object")
	}
	// An input too large to keep has its CID all the same.
	cid, _ := h.store.Put(canonical)
	k.data.Values, k.own = Input{input, cid}, true
	return k, nil
}

// Running lists the calls that have begun and are not paused, the oldest first.
// Older clients may never tell how theirs went.
func (h *Hub) Running() []CallData {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := []CallData{}
	for _, id := range h.calls.order {
		if k, ok := h.calls.byID[id]; ok && k.pause == nil {
			all = append(all, k.data)
		}
	}
	return all
}

// Complete records how a call went and may stop it once more; then it returns
// the id of that pause. A call the hub does not know is no error: older clients
// complete calls of a server that was restarted.
func (h *Hub) Complete(ctx context.Context, c Completion) (pauseID string, err error) {
	r, err := resultOf(h.store, c.Outcome)
	if err != nil {
		return "", err
	}
	k := h.finish(c, r)
	if k == nil || k.denied() {
		return "", nil
	}
	hit, stopped := h.examine(ctx, k, After, &r)
	if !stopped {
		return "", nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.pauses.open) >= maxPauses {
		return "", nil
	}
	return h.begin(k, After, hit.Name, &r).id, nil
}

// finish records how a call went; nil = it is not known.
func (h *Hub) finish(c Completion, r Outcome) *call {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.CallID == "" {
		c.CallID = h.calls.byToolUse[toolUse{c.Session, c.ToolUseID}]
	}
	k, ok := h.calls.byID[c.CallID]
	if !ok {
		return nil
	}
	if k.pause != nil { // its caller did not wait for a decision
		h.settle(k.pause, Decision{Action: ActionAbandon})
	}
	h.calls.drop(k)
	h.record(k, r)
	return k
}

// Before is [Hub.Start] and waiting for the decision. When ctx ends the pause
// is abandoned.
func (h *Hub) Before(ctx context.Context, c Call) (string, Decision, error) {
	begun, err := h.Start(ctx, c)
	if err != nil || begun.PauseID == "" {
		return begun.CallID, begun.Decision, err
	}
	d, err := h.await(ctx, begun.PauseID)
	return begun.CallID, d, err
}

// After is [Hub.Complete] and waiting for the decision.
func (h *Hub) After(ctx context.Context, callID string, o Outcome) (Decision, error) {
	pauseID, err := h.Complete(ctx, Completion{CallID: callID, Outcome: o})
	if err != nil || pauseID == "" {
		return Decision{Action: ActionContinue}, err
	}
	return h.await(ctx, pauseID)
}

func (h *Hub) await(ctx context.Context, pauseID string) (Decision, error) {
	d, _, err := h.Wait(ctx, pauseID)
	d.Pause = pauseID
	if ctx.Err() != nil {
		h.Abandon(pauseID)
		return Decision{}, ctx.Err()
	}
	if err == nil && d.Action == ActionAbandon {
		err = Refuse(CodeClosed, "the debugger is closing")
	}
	return d, err
}

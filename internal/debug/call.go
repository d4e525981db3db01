package debug

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/internal/cas"
	"github.com/claudeless/claudeless/internal/debug/item"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Client is the kind of a caller; it decides what may be done to its calls.
type Client string

// The callers. ClientForeign are the older clients, in Python and JavaScript.
const (
	ClientForeign  Client = ""
	ClientRun      Client = "claudeless"
	ClientHook     Client = "hook"
	ClientProxy    Client = "proxy"
	ClientExternal Client = "mcp_client" // calls made through the hub itself
)

// Call is a tool call that is about to run.
type Call struct {
	Tool      string          // canonical name
	Input     json.RawMessage // a JSON object; older clients have Foreign instead
	Session   string          // of the agent; empty = unknown
	ToolUseID string          // empty = unknown
	Client    Client
	Site      json.RawMessage // where the call comes from; nil = unknown
	PID       int             // of the caller's process; 0 = unknown
	Started   float64         // of the caller's process, Unix seconds
	Foreign   *Foreign        // nil unless Client is ClientForeign
}

// Foreign is what only the older clients send of a call. The bytes of its
// items are in the store already.
type Foreign struct {
	Target    *item.Item
	Args      []item.Item
	Kwargs    map[string]item.Item
	Signature string
	PageURL   string
	Preferred item.Format // what new values are to be written in
}

// Begun is the hub's answer to a call about to run.
type Begun struct {
	CallID string
	// PauseID is set when the call is stopped: the decision is got from Wait.
	PauseID string
	// Decision is ActionContinue or ActionReplace when the call is not stopped.
	Decision Decision
}

// Outcome is how a call went.
type Outcome struct {
	Failed bool
	// Result is what the tool gave: a string for a plain text, else the
	// content as JSON. nil = null.
	Result json.RawMessage
	// Error tells why a failed call failed; ErrorType and Traceback are the
	// older clients'.
	Error, ErrorType, Traceback string
	// ResultItem and ErrorItem are the values of the older clients; their
	// bytes are in the store already.
	ResultItem, ErrorItem *item.Item
}

// Completion is an outcome and the call it is of, by its id or by the agent's
// session and tool use.
type Completion struct {
	CallID, Session, ToolUseID string
	Outcome
}

type toolUse struct{ session, id string }

// call is one call from Start to Complete. It is guarded by Hub.mu.
type call struct {
	data     CallData
	client   Client
	foreign  *Foreign
	vars     map[string]any // of evaluations at its pauses
	sessions []string
	original json.RawMessage // input before it was changed; nil = it was not
	// action is what was decided before the call; empty = it was not stopped.
	action Action
	record *Record // once it is over
	pause  *pause  // nil = it is not paused
}

// CallData is a call as fronts see it. Values of it are never changed once
// they are shown.
type CallData struct {
	MethodName   string               `json:"method_name"`
	CallID       string               `json:"call_id"`
	Client       Client               `json:"client,omitempty"`
	Phase        Phase                `json:"phase,omitempty"`
	Reason       string               `json:"pause_reason,omitempty"` // breakpoint, exception
	Breakpoint   string               `json:"breakpoint,omitempty"`   // the one that stopped it
	Input        json.RawMessage      `json:"input,omitempty"`
	InputCID     string               `json:"input_cid,omitempty"`
	SessionID    string               `json:"session_id,omitempty"`
	ToolUseID    string               `json:"tool_use_id,omitempty"`
	Target       *item.Item           `json:"target,omitempty"`
	Args         []item.Item          `json:"args"`
	Kwargs       map[string]item.Item `json:"kwargs"`
	PrettyTarget json.RawMessage      `json:"pretty_target,omitempty"`
	PrettyArgs   []json.RawMessage    `json:"pretty_args"`
	PrettyKwargs json.RawMessage      `json:"pretty_kwargs"` // an object
	PrettyResult json.RawMessage      `json:"pretty_result,omitempty"`
	Exception    json.RawMessage      `json:"exception,omitempty"`
	Signature    string               `json:"signature,omitempty"`
	CallSite     json.RawMessage      `json:"call_site,omitempty"`
	PageURL      string               `json:"page_url,omitempty"`
	Preferred    item.Format          `json:"preferred_format,omitempty"`
	PID          int                  `json:"process_pid"`
	ProcessStart float64              `json:"process_start_time"`
	ProcessKey   string               `json:"process_key,omitempty"`
	Evaluator    string               `json:"evaluator,omitempty"`    // local, client
	Capabilities []Action             `json:"capabilities,omitempty"` // what may be decided
	StartedAt    float64              `json:"started_at"`
}

// Start tells the hub of a call about to run. A call that is stopped begins
// its pause here; it goes on existing whether or not somebody waits for it.
func (h *Hub) Start(ctx context.Context, c Call) (Begun, error) {
	if c.Tool == "" {
		return Begun{}, refuse(CodeMissingParameter, "method_name required", "parameter", "method_name")
	}
	k := &call{client: c.Client, foreign: c.Foreign, vars: map[string]any{}}
	if err := h.fill(k, c); err != nil {
		return Begun{}, err
	}
	if err := h.admit(k); err != nil {
		return Begun{}, err
	}
	begun := Begun{CallID: k.data.CallID, Decision: Decision{Action: ActionContinue}}
	hit, stopped := h.examine(ctx, k, Before, nil)
	if hit == nil {
		return begun, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case stopped && (h.closed || len(h.open) >= maxPauses):
		h.dropCall(k)
		return Begun{}, refuse(CodeLimit, "too many paused calls")
	case stopped:
		begun.PauseID = h.pause(k, Before, hit.Name, nil).id
	case hit.Replacement != "" && slices.Contains(capabilities(c.Client, Before), ActionReplace):
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
		return refuse(CodeClosed, "the debugger is closing")
	}
	if k.data.Signature == "" {
		k.data.Signature = h.functions[k.data.MethodName].Signature
	}
	h.seq++
	k.data.StartedAt = seconds(h.o.Now())
	k.data.CallID = fmt.Sprintf("%.6f-%03d", k.data.StartedAt, h.seq)
	h.keepCall(k)
	return nil
}

// fill makes the shown form of a call and keeps its values.
func (h *Hub) fill(k *call, c Call) error {
	d := &k.data
	d.MethodName, d.Client, d.SessionID, d.ToolUseID = c.Tool, c.Client, c.Session, c.ToolUseID
	d.CallSite, d.PID, d.ProcessStart = c.Site, c.PID, c.Started
	d.Args, d.Kwargs, d.PrettyArgs = []item.Item{}, map[string]item.Item{}, []json.RawMessage{}
	if c.PID != 0 || c.Started != 0 {
		d.ProcessKey = fmt.Sprintf("%.6f+%d", c.Started, c.PID)
	}
	if c.Foreign != nil {
		return h.fillForeign(d, c.Foreign)
	}
	input := c.Input
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	canonical, err := cas.Canonical(input)
	if err != nil {
		return refuse(CodeInvalidPayload, "input: "+err.Error())
	}
	if canonical[0] != '{' {
		return refuse(CodeInvalidPayload, "input must be a JSON object")
	}
	// An input too large to keep has its CID all the same.
	d.InputCID, _ = h.store.Put(canonical)
	d.Input, d.PrettyKwargs = input, input
	d.Evaluator = "local"
	return nil
}

func (h *Hub) fillForeign(d *CallData, f *Foreign) error {
	d.Target, d.Signature, d.PageURL, d.Preferred = f.Target, f.Signature, f.PageURL, f.Preferred
	d.Evaluator = "client"
	if f.Target != nil {
		d.PrettyTarget = item.Pretty(h.store, *f.Target)
	}
	if len(f.Args) > 0 {
		d.Args = f.Args
	}
	for _, a := range f.Args {
		d.PrettyArgs = append(d.PrettyArgs, item.Pretty(h.store, a))
	}
	pretty := map[string]json.RawMessage{}
	for name, v := range f.Kwargs {
		pretty[name] = item.Pretty(h.store, v)
	}
	if len(f.Kwargs) > 0 {
		d.Kwargs = f.Kwargs
	}
	var err error
	d.PrettyKwargs, err = protocol.Marshal(pretty)
	return err
}

// keepCall remembers a call until it completes; of too many the oldest are
// forgotten. h.mu is held.
func (h *Hub) keepCall(k *call) {
	h.calls[k.data.CallID] = k
	h.callOrder = append(h.callOrder, k.data.CallID)
	if k.data.ToolUseID != "" {
		h.byToolUse[toolUse{k.data.SessionID, k.data.ToolUseID}] = k.data.CallID
	}
	for len(h.callOrder) > maxCalls {
		if old, ok := h.calls[h.callOrder[0]]; ok {
			h.dropCall(old)
		}
		h.callOrder = h.callOrder[1:]
	}
}

func (h *Hub) dropCall(k *call) {
	delete(h.calls, k.data.CallID)
	delete(h.byToolUse, toolUse{k.data.SessionID, k.data.ToolUseID})
	if len(h.calls) == 0 {
		h.callOrder = nil
	}
}

// Running lists the calls that have begun and are not paused, the oldest first.
// Older clients may never tell how theirs went.
func (h *Hub) Running() []CallData {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := []CallData{}
	for _, id := range h.callOrder {
		if k, ok := h.calls[id]; ok && k.pause == nil {
			all = append(all, k.data)
		}
	}
	return all
}

// examine finds the first rule or else breakpoint whose condition holds for a
// call in a phase, and whether it stops the call; nil = none. Conditions run
// without the lock held.
func (h *Hub) examine(ctx context.Context, k *call, phase Phase, r *result) (hit *breakpoint, stopped bool) {
	if n := h.rule(ctx, k, phase, r); n != nil {
		return &breakpoint{Breakpoint: Breakpoint{Name: n.Name}}, true
	}
	h.mu.Lock()
	hits := h.hits(k.data.MethodName)
	for i, b := range hits {
		b := *b
		hits[i] = &b
	}
	fallback := h.behavior
	h.mu.Unlock()
	failed := r != nil && r.Failed
	for _, b := range hits {
		if b.when != nil {
			ok, err := h.holds(ctx, b.when, k, phase, r)
			if err != nil {
				h.conditionFailed(b.Name, err)
			}
			if !ok {
				continue
			}
		}
		return b, b.stops(phase, failed, fallback)
	}
	return nil, false
}

// conditionFailed makes a breakpoint show why its condition could not be run.
func (h *Hub) conditionFailed(name string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b := h.breakpoint(name); b != nil {
		b.ConditionError = err.Error()
	}
}

// Complete records how a call went and may stop it once more; then it returns
// the id of that pause. A call the hub does not know is no error: older clients
// complete calls of a server that was restarted.
func (h *Hub) Complete(ctx context.Context, c Completion) (pauseID string, err error) {
	r, err := h.resultOf(c.Outcome)
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
	if h.closed || len(h.open) >= maxPauses {
		return "", nil
	}
	return h.pause(k, After, hit.Name, &r).id, nil
}

// denied tells of a call that an agent's hook refused: all that its agent sees is
// the reason, so there is nothing more to decide.
func (k *call) denied() bool {
	return k.client == ClientHook && (k.action == ActionSkip || k.action == ActionRaise)
}

// finish records how a call went; nil = it is not known.
func (h *Hub) finish(c Completion, r result) *call {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.CallID == "" {
		c.CallID = h.byToolUse[toolUse{c.Session, c.ToolUseID}]
	}
	k, ok := h.calls[c.CallID]
	if !ok {
		return nil
	}
	if k.pause != nil { // its caller did not wait for a decision
		h.settle(k.pause, Decision{Action: ActionAbandon})
	}
	h.dropCall(k)
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
		err = refuse(CodeClosed, "the debugger is closing")
	}
	return d, err
}

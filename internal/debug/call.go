package debug

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/claudeless/claudeless/internal/base/eval"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type toolUse struct{ session, id string }

// call is one call from Start to Complete. It is guarded by the hub's lock.
type call struct {
	// own says that the caller is one of ours, whose input is one object. It is
	// fixed at creation and may be read without the lock.
	own bool

	data     CallData
	caller   Caller
	lease    time.Duration  // 0 = the hub's
	vars     map[string]any // of evaluations at its pauses
	sessions []string
	original json.RawMessage // input before it was changed; nil = it was not
	// action is what was decided before the call; empty = it was not stopped.
	action Action
	paused time.Duration // before the call
	record *Record       // once it is over
	pause  *pause        // nil = it is not paused
	size   int           // bytes it keeps
}

// calls are those begun and not completed.
type calls struct {
	byID      map[string]*call
	order     []string           // ids, oldest first; some may be gone
	byToolUse map[toolUse]string // ids
	bytes     int                // of byID
}

// keep remembers a call until it completes; of too many the oldest are
// forgotten.
func (c *calls) keep(k *call) {
	k.size = callOverhead + k.data.bytes()
	c.bytes += k.size
	c.byID[k.data.CallID] = k
	c.order = append(c.order, k.data.CallID)
	if k.data.ToolUseID != "" {
		c.byToolUse[toolUse{k.data.SessionID, k.data.ToolUseID}] = k.data.CallID
	}
	for len(c.order) > maxCalls || c.bytes > maxCallBytes && len(c.order) > 1 {
		if old, ok := c.byID[c.order[0]]; ok {
			c.drop(old)
		}
		c.order = c.order[1:]
	}
}

func (c *calls) drop(k *call) {
	if _, ok := c.byID[k.data.CallID]; ok {
		c.bytes -= k.size
	}
	delete(c.byID, k.data.CallID)
	delete(c.byToolUse, toolUse{k.data.SessionID, k.data.ToolUseID})
	if len(c.byID) == 0 {
		c.order = nil
	}
}

// bytes are those of the values of a call.
func (d CallData) bytes() int {
	n := len(d.PrettyResult) + len(d.Exception) + len(d.CallSite)
	if v, ok := d.Values.(interface{ Size() int }); ok {
		return n + v.Size()
	}
	return n + len(d.Input())
}

// denied tells of a call that an agent's hook refused: all that its agent sees is
// the reason, so there is nothing more to decide.
func (k *call) denied() bool {
	return k.data.Client == ClientHook && (k.action == ActionSkip || k.action == ActionRaise)
}

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

func (p *pause) view() Pause {
	return Pause{ID: p.id, CallData: p.data, PausedAt: seconds(p.at), Sessions: append([]string{}, p.sessions...)}
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

func (d Decision) size() int { return len(d.Input) + len(d.Result) + len(d.Message) + len(d.Wire) }

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

func stopTimer(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

// holds runs a condition; one that fails does not hold.
func (c *core) holds(ctx context.Context, when *eval.Program, k *call, phase Phase, r *Outcome) (bool, error) {
	c.mu.Lock()
	data := k.data
	c.mu.Unlock()
	// Its steps are bounded; that the caller is gone does not change its value.
	ok, err := when.Bool(context.WithoutCancel(ctx), c.names(k, data, phase, r))
	return err == nil && ok, err
}

// names are the values an expression sees.
func (c *core) names(k *call, d CallData, phase Phase, r *Outcome) map[string]any {
	c.mu.Lock()
	vars := maps.Clone(k.vars)
	c.mu.Unlock()
	m := map[string]any{
		"tool": d.MethodName, "phase": string(phase), "session": d.SessionID, "vars": vars,
		"input": decode(d.Input()), "result": nil, "error": nil,
		"call": map[string]any{
			"id": d.CallID, "client": string(d.Client), "tool_use_id": d.ToolUseID, "started_at": d.StartedAt,
			"site": decode(d.CallSite), "breakpoint": d.Breakpoint,
		},
	}
	if r != nil {
		m["result"] = decode(r.Result)
		if r.Failed {
			m["error"] = decode(r.Exception)
		}
	}
	return m
}

// decode reads JSON for expressions: whole numbers are int where they fit.
func decode(raw json.RawMessage) any {
	v, err := plainjson.Decode(raw)
	if err != nil {
		return nil
	}
	return numbers(v)
}

func numbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(x), 10, 0); err == nil {
			return int(n)
		}
		f, err := x.Float64()
		if err != nil {
			return math.Inf(1)
		}
		return f
	case []any:
		for i := range x {
			x[i] = numbers(x[i])
		}
	case map[string]any:
		for key := range x {
			x[key] = numbers(x[key])
		}
	}
	return v
}

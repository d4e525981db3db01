package debug

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/claudeless/claudeless/internal/base/eval"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type toolUseKey struct{ session, id string }

// runningCall is the state of a tool call in the hub. Hub.mu guards it.
type runningCall struct {
	// isNativeInput is true if the input of the call is one JSON object, as claudeless's own callers send it. The field
	// never changes, so it may be read without the lock.
	isNativeInput bool

	data          CallData
	caller        DecisionEncoder
	lease         time.Duration  // 0 means the hub's default
	vars          map[string]any // variables assigned by evaluations while the call was paused
	sessions      []string
	originalInput json.RawMessage     // input before it was changed; nil means not changed
	action        PauseDecisionAction // the decision before the call; empty means the call was not stopped
	pausedTime    time.Duration       // time for which the call was paused before it ran
	record        *CallRecord         // set when the call has ended
	pause         *openPause          // nil means not paused
	size          int                 // bytes of the call's values
}

// runningCalls holds the calls that have started and are not completed.
type runningCalls struct {
	byID       map[string]*runningCall
	order      []string              // ids of the calls, oldest first; may contain ids of completed calls
	byToolUse  map[toolUseKey]string // ids of the calls that have a tool use id
	totalBytes int                   // size of the values in byID
}

// addAndDropOldest stores a call. It then drops the oldest calls until the number of calls and the size of their values are within
// the limits.
func (c *runningCalls) addAndDropOldest(k *runningCall) {
	k.size = callOverheadBytes + k.data.sizeInBytes()
	c.totalBytes += k.size
	c.byID[k.data.CallID] = k
	c.order = append(c.order, k.data.CallID)
	if k.data.ToolUseID != "" {
		c.byToolUse[toolUseKey{k.data.SessionID, k.data.ToolUseID}] = k.data.CallID
	}
	for len(c.order) > maxUncompletedCalls || c.totalBytes > maxTotalBytesOfUncompletedCalls && len(c.order) > 1 {
		if old, ok := c.byID[c.order[0]]; ok {
			c.remove(old)
		}
		c.order = c.order[1:]
	}
}

func (c *runningCalls) remove(k *runningCall) {
	if _, ok := c.byID[k.data.CallID]; ok {
		c.totalBytes -= k.size
	}
	delete(c.byID, k.data.CallID)
	delete(c.byToolUse, toolUseKey{k.data.SessionID, k.data.ToolUseID})
	if len(c.byID) == 0 {
		c.order = nil
	}
}

func (d CallData) sizeInBytes() int {
	n := len(d.PrettyResult) + len(d.Exception) + len(d.CallSite)
	if v, ok := d.Values.(interface{ Size() int }); ok {
		return n + v.Size()
	}
	return n + len(d.Input())
}

// Pause is a call that waits for a decision.
type Pause struct {
	ID       string   `json:"id"`
	CallData CallData `json:"call_data"`
	PausedAt float64  `json:"paused_at"` // Unix seconds
	Sessions []string `json:"repl_sessions"`
}

// openPause is the hub's state of a [Pause]. Hub.mu guards it.
type openPause struct {
	id       string
	call     *runningCall
	phase    CallPhase
	data     CallData
	pausedAt time.Time
	outcome  *CallOutcome // the outcome of the call; nil before it ran

	decided        chan struct{} // closed when decided
	decision       Decision
	waitingCallers int
	leaseTimer     *time.Timer // nil means not running
	expiryTimer    *time.Timer // nil means no limit
	sessions       []string
}

type pauseStore struct {
	openPauses      map[string]*openPause
	order           []*openPause        // oldest first
	recentDecisions map[string]Decision // decisions of closed pauses
	decidedIDs      []string            // oldest first
	decisionBytes   int                 // size of decisions in bytes
}

func (p *openPause) publicState() Pause {
	return Pause{ID: p.id, CallData: p.data, PausedAt: unixSeconds(p.pausedAt), Sessions: append([]string{}, p.sessions...)}
}

// storeDecision keeps the decision about an ended pause for later calls of Wait. It drops the oldest decisions if there
// are too many or they are too large.
func (p *pauseStore) storeDecision(id string, d Decision) {
	p.recentDecisions[id] = d
	p.decidedIDs = append(p.decidedIDs, id)
	p.decisionBytes += d.bytesOfPayloadFields()
	for n := len(p.decidedIDs); n > maxClosedPauses || n > 1 && p.decisionBytes > maxTotalBytesOfStoredDecisions; n-- {
		p.decisionBytes -= p.recentDecisions[p.decidedIDs[0]].bytesOfPayloadFields()
		delete(p.recentDecisions, p.decidedIDs[0])
		p.decidedIDs = p.decidedIDs[1:]
	}
}

func (d Decision) bytesOfPayloadFields() int {
	return len(d.Input) + len(d.Result) + len(d.Message) + len(d.Encoded)
}

// replacementResult returns what the agent receives instead of the call's result; nil means the result is unchanged.
func (d Decision) replacementResult() json.RawMessage {
	switch d.Action {
	case ActionModify:
		return d.Result
	case ActionRaise:
		if text, err := protocol.Marshal(d.Message); err == nil {
			return text
		}
	default: // the result is unchanged
	}
	return nil
}

func stopAndClearTimer(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

// evaluateCondition evaluates a condition. If the evaluation fails, it returns false and the error.
func (c *hubState) evaluateCondition(ctx context.Context, condition *eval.Program, call *runningCall, phase CallPhase, outcome *CallOutcome) (bool, error) {
	c.mu.Lock()
	data := call.data
	c.mu.Unlock()
	// Cancelling ctx must not change the value. The evaluation ends anyway, because its number of steps is limited.
	ok, err := condition.Bool(context.WithoutCancel(ctx), c.expressionVariables(call, data, phase, outcome))
	return err == nil && ok, err
}

func (c *hubState) expressionVariables(call *runningCall, data CallData, phase CallPhase, outcome *CallOutcome) map[string]any {
	c.mu.Lock()
	vars := maps.Clone(call.vars)
	c.mu.Unlock()
	m := map[string]any{
		"tool": data.MethodName, "phase": string(phase), "session": data.SessionID, "vars": vars,
		"input": plainjson.DecodeForExpressions(data.Input()), "result": nil, "error": nil,
		"call": map[string]any{
			"id": data.CallID, "client": string(data.Client), "tool_use_id": data.ToolUseID, "started_at": data.StartedAt,
			"site": plainjson.DecodeForExpressions(data.CallSite), "breakpoint": data.Breakpoint,
		},
	}
	if outcome != nil {
		m["result"] = plainjson.DecodeForExpressions(outcome.Result)
		if outcome.Failed {
			m["error"] = plainjson.DecodeForExpressions(outcome.Exception)
		}
	}
	return m
}

// Package debug is the breakpoint hub: it holds breakpoints on tool names, pauses calls before or after they run,
// receives decisions about paused calls, and records all calls.
//
// A pause is decided exactly once, by the first decision that arrives. All front ends show the same state, because they
// use one [Hub]. [PageHandler] serves the web page.
//
// # Callers
//
// A caller asks a [ToolCallGate] before and after each tool call; [Middleware] does this for an executor. [Hub] is a gate for callers in the
// same process, and rest.Client is a gate that sends requests to a hub over HTTP. The decisions of [ScriptedGate] come from a scenario.
//
// A [DecisionEncoder] lists a caller's actions and encodes decisions for it. This package implements it for claudeless's
// own callers. Package compat implements it for older clients, which also have their own [CallArguments] and [Evaluator].
//
// # Front ends
//
// Front ends use the methods of [Hub] and of its fields BreakpointSet and Records. Any number of goroutines may call them.
// The front ends are in the subpackages rest (the HTTP routes), mcpserver (the MCP server) and compat (older clients).
// [ExternalServers] connects external MCP servers.
//
// Errors are *[Error] with a code of the wire format. Events are delivered through bounded queues: a slow observer
// loses events, receives their number, and does not delay others.
//
// # Time
//
// A pause may have a lease, which its caller renews by asking for the decision; when it expires, the pause is
// abandoned. Options.PauseTimeout limits how long a pause waits for a decision.
package debug

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/claudeless/claudeless/internal/base/cas"
)

// Hub holds all state of the debugger, divided into parts that share one lock. Create it with [New].
type Hub struct {
	*hubState
	*functionRegistry
	BreakpointSet *breakpointSet
	Records       *callRecordStore // finished calls
	*replSessionStore
	calls  runningCalls
	pauses pauseStore
}

// New creates a hub, which starts timers for its pauses. Close stops them.
func New(o Options) (*Hub, error) {
	if o.Now == nil || o.NewID == nil {
		return nil, errors.New("debug: Now and NewID must be set")
	}
	switch o.OnTimeout {
	case "":
		o.OnTimeout = PolicyWaitForever
	case PolicyWaitForever, PolicyContinue, PolicyFail:
	default:
		return nil, fmt.Errorf("unknown policy %q for pauses that time out: expected wait, continue or fail", o.OnTimeout)
	}
	if o.PauseTimeout < 0 {
		return nil, fmt.Errorf("the pause timeout must be 0 or more, not %s", o.PauseTimeout)
	}
	o.Lease = cmp.Or(o.Lease, defaultPauseLease)
	o.MaxRecords = cmp.Or(o.MaxRecords, defaultMaxKeptCallRecords)
	c := &hubState{options: o, store: cmp.Or(o.Store, cas.New(cas.Options{})), observers: map[*Subscription]struct{}{}}
	tools := &functionRegistry{hubState: c, functions: map[string]RegisteredFunction{}, aliases: map[string]string{}}
	at := &breakpointSet{hubState: c, functions: tools, defaultBehavior: BehaviorStop}
	return &Hub{
		hubState: c, functionRegistry: tools, BreakpointSet: at,
		Records:          &callRecordStore{hubState: c, breakpoints: at, maxRecords: o.MaxRecords},
		replSessionStore: &replSessionStore{hubState: c, byID: map[string]*liveREPLSession{}},
		calls:            runningCalls{byID: map[string]*runningCall{}, byToolUse: map[toolUseKey]string{}},
		pauses:           pauseStore{openPauses: map[string]*openPause{}, recentDecisions: map[string]Decision{}},
	}, nil
}

// Status holds the current totals.
type Status struct {
	Breakpoints   int                `json:"breakpoints"`
	Paused        int                `json:"paused"`
	TotalCalls    int                `json:"total_calls"`
	DroppedCalls  int                `json:"dropped_calls"` // records dropped to free space
	Functions     int                `json:"functions"`
	Behavior      BreakpointBehavior `json:"behavior"`
	ActiveCalls   int                `json:"active_calls"`
	Store         cas.Stats          `json:"store"`
	EventsDropped int                `json:"events_dropped"` // number of events that current slow observers have missed
}

// Status returns the current totals.
func (h *Hub) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Status{
		Breakpoints: len(h.BreakpointSet.breakpoints), Paused: len(h.pauses.openPauses), TotalCalls: h.Records.total,
		DroppedCalls: h.Records.total - len(h.Records.keptRecords), Functions: len(h.functions),
		Behavior: h.BreakpointSet.defaultBehavior, ActiveCalls: len(h.calls.byID), Store: h.store.Stats(),
	}
	for o := range h.observers {
		s.EventsDropped += o.totalMissed
	}
	return s
}

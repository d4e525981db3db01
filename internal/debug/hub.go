// Package debug is the breakpoint hub: it holds breakpoints on tool names, pauses calls before or after they run,
// receives decisions about paused calls, and records all calls.
//
// A pause is decided exactly once, by the first decision that arrives. All front ends show the same state, because they
// use one [Hub]. [PageHandler] serves the web page.
//
// # Callers
//
// A caller asks a [Gate] before and after each tool call; [Middleware] does so around an executor. [Hub] is the local gate,
// rest.Client the one over HTTP. BeforeCall and AfterCall combine [Hub.Start], [Hub.Wait] and
// [Hub.RecordCallOutcomeAndPauseIfStopped].
//
// The [CallerAdapter] specifies a caller's actions and how decisions are encoded. This package has the implementation
// for claudeless's own callers; package compat the one for older clients, with their own [CallValues] and [Evaluator].
//
// # Front ends
//
// Front ends use only these methods, which any number of goroutines may call:
//
//	breakpoints  Breakpoints, SetBreakpoint, RemoveBreakpoint, SetReplacementToolOfBreakpoint, Default, SetDefault
//	scripts      Rules, AddRule, Variables
//	tools        Functions, AddOrReplaceFunction
//	pauses       Paused, Pause, Resume
//	values       Evaluate, StartSession, Session, Sessions, CloseSession, Value
//	records      Calls, History, Status
//	events       Subscribe
//
// Other gates are [ScenarioBreakpointGate], whose decisions come from a scenario, and rest.Client. [ServerManager] connects
// external MCP servers. The subpackages are rest (the HTTP routes), mcpserver (the MCP server) and compat (older clients).
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

// Hub holds all state of the debugger, divided into parts that share one lock. Make it with New; it starts nothing.
type Hub struct {
	*hubState
	*registry
	BreakpointSet *breakpointSet
	Records       *records // finished calls
	*sessions
	calls  calls
	pauses pauses
}

// New creates a hub. Close stops its timers.
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
	store := o.Store
	store = cmp.Or(store, cas.New(cas.Options{}))
	c := &hubState{options: o, store: store, observers: map[*Subscription]struct{}{}}
	tools := &registry{hubState: c, functions: map[string]RegisteredFunction{}, aliases: map[string]string{}}
	at := &breakpointSet{hubState: c, tools: tools, behavior: BehaviorStop}
	return &Hub{
		hubState: c, registry: tools, BreakpointSet: at,
		Records:  &records{hubState: c, breakpoints: at, maxRecords: o.MaxRecords},
		sessions: &sessions{hubState: c, byID: map[string]*session{}},
		calls:    calls{byID: map[string]*call{}, byToolUse: map[toolUseKey]string{}},
		pauses:   pauses{open: map[string]*pause{}, decisions: map[string]Decision{}},
	}, nil
}

// Status holds the current totals.
type Status struct {
	Breakpoints   int          `json:"breakpoints"`
	Paused        int          `json:"paused"`
	TotalCalls    int          `json:"total_calls"`
	DroppedCalls  int          `json:"dropped_calls"` // records dropped to free space
	Functions     int          `json:"functions"`
	Behavior      StopBehavior `json:"behavior"`
	ActiveCalls   int          `json:"active_calls"`
	Store         cas.Stats    `json:"store"`
	EventsDropped int          `json:"events_dropped"` // number of events that current slow observers have missed
}

// Status returns the current totals.
func (h *Hub) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Status{
		Breakpoints: len(h.BreakpointSet.breakpoints), Paused: len(h.pauses.open), TotalCalls: h.Records.total,
		DroppedCalls: h.Records.total - len(h.Records.list), Functions: len(h.functions),
		Behavior: h.BreakpointSet.behavior, ActiveCalls: len(h.calls.byID), Store: h.store.Stats(),
	}
	for o := range h.observers {
		s.EventsDropped += o.totalMissed
	}
	return s
}

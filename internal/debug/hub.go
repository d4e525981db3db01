package debug

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/cas"
)

// Policy says what becomes of a pause that nobody decides about.
type Policy string

// The policies; the zero value is PolicyWait.
const (
	PolicyWait     Policy = "wait"     // for ever
	PolicyContinue Policy = "continue" // the call goes on as it was
	PolicyFail     Policy = "fail"     // the call fails with a text that says so
)

// Options configure a Hub. The zero value needs Now and NewID.
type Options struct {
	Now   func() time.Time
	NewID func() string // a fresh UUID
	Store *cas.Store    // nil = one with default limits
	// PauseTimeout ends a pause that nobody decides about, by OnTimeout. 0 =
	// never.
	PauseTimeout time.Duration
	OnTimeout    Policy
	// Lease is how long a pause outlives the last sign of life of a caller of
	// ours; 0 = 8 s. ForeignLease is the same for the older clients, which do
	// not promise to ask often; 0 = 5 min, counted from their first question, and
	// after a call from the beginning of the pause.
	Lease, ForeignLease time.Duration
	MaxRecords          int // call records kept; 0 = 10000
}

const (
	defaultLease        = 8 * time.Second
	defaultForeignLease = 5 * time.Minute
	defaultRecords      = 10_000
	maxBreakpoints      = 1000
	maxFunctions        = 10_000
	maxCalls            = 10_000 // begun and not completed
	maxPauses           = 10_000 // open at once
	maxClosedPauses     = 16_384 // whose decision is remembered
	maxDecidedBytes     = 128 << 20
	maxSessions         = 1000
	maxTranscript       = 1000
	maxTranscriptBytes  = 32 << 20 // over all sessions
	maxComErrors        = 500
)

// Hub holds all state of the debugger. Make it with New; it starts nothing.
type Hub struct {
	o     Options
	store *cas.Store

	mu          sync.Mutex
	closed      bool
	seq         int // of call ids
	breakpoints []*breakpoint
	rules       []*rule // before all breakpoints
	behavior    Behavior
	functions   map[string]Function
	aliases     map[string]string // "server/tool" → canonical name
	calls       map[string]*call
	callOrder   []string           // ids of calls, oldest first; some may be gone
	byToolUse   map[toolUse]string // call ids
	open        map[string]*pause
	openOrder   []*pause            // oldest first
	decided     map[string]Decision // of closed pauses
	decidedIDs  []string            // oldest first
	decidedSize int                 // bytes
	sessions    map[string]*session
	sessionIDs  []string // oldest first
	transcripts int      // bytes of all sessions' transcripts
	lastSession time.Time
	evals       map[string]*relayed // questions to older clients, by eval id
	records     records
	comErrors   []ComError
	observers   map[*Subscription]struct{}
}

// New makes a hub. Its timers end with Close.
func New(o Options) (*Hub, error) {
	if o.Now == nil || o.NewID == nil {
		return nil, errors.New("debug: Now and NewID must be set")
	}
	switch o.OnTimeout {
	case "":
		o.OnTimeout = PolicyWait
	case PolicyWait, PolicyContinue, PolicyFail:
	default:
		return nil, fmt.Errorf("unknown policy %q: it is wait, continue or fail", o.OnTimeout)
	}
	if o.PauseTimeout < 0 {
		return nil, fmt.Errorf("pause timeout %s is negative", o.PauseTimeout)
	}
	o.Lease = cmp.Or(o.Lease, defaultLease)
	o.ForeignLease = cmp.Or(o.ForeignLease, defaultForeignLease)
	o.MaxRecords = cmp.Or(o.MaxRecords, defaultRecords)
	store := o.Store
	if store == nil {
		store = cas.New(cas.Options{})
	}
	return &Hub{
		o: o, store: store, behavior: Stop,
		functions: map[string]Function{}, aliases: map[string]string{},
		calls: map[string]*call{}, byToolUse: map[toolUse]string{},
		open: map[string]*pause{}, decided: map[string]Decision{},
		sessions: map[string]*session{}, evals: map[string]*relayed{},
		records: records{max: o.MaxRecords}, observers: map[*Subscription]struct{}{},
	}, nil
}

// Store is where the hub keeps values.
func (h *Hub) Store() *cas.Store { return h.store }

// Now is the time of the hub's clock.
func (h *Hub) Now() time.Time { return h.o.Now() }

// Close abandons all pauses, stops all timers and ends all subscriptions. It
// may be called more than once; the hub refuses new calls afterwards.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for len(h.openOrder) > 0 {
		h.settle(h.openOrder[0], Decision{Action: ActionAbandon})
	}
	for s := range h.observers {
		h.unsubscribe(s)
	}
}

// Error is a refusal. Code is a word of the wire; Detail are further members
// of the answer.
type Error struct {
	Code    string
	Message string
	Detail  map[string]any
}

func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + ": " + e.Message
}

// The codes of refusals.
const (
	CodeMissingParameter   = "missing_parameter"
	CodeInvalidBehavior    = "invalid_behavior"
	CodeInvalidCondition   = "invalid_condition"
	CodeInvalidPattern     = "invalid_pattern"
	CodeInvalidAction      = "invalid_action"
	CodeInvalidArguments   = "invalid_arguments"
	CodeInvalidLimit       = "invalid_limit"
	CodeInvalidPayload     = "invalid_payload"
	CodeInvalidPause       = "invalid_pause"
	CodeInvalidSession     = "invalid_session_id"
	CodeBreakpointNotFound = "breakpoint_not_found"
	CodeSignatureMismatch  = "signature_mismatch"
	CodePauseNotFound      = "pause_not_found"
	CodePauseResumed       = "pause_already_resumed"
	CodeUnsupportedAction  = "unsupported_action"
	CodeMissingExpression  = "missing_expression"
	CodeSessionNotFound    = "session_not_found"
	CodeSessionClosed      = "session_closed"
	CodeEvalNotFound       = "eval_not_found"
	CodeEvalTimeout        = "eval_timeout"
	CodeCIDNotFound        = "cid_not_found"
	CodeLimit              = "limit_reached"
	CodeClosed             = "closed"
)

func refuse(code, message string, detail ...any) *Error {
	e := &Error{Code: code, Message: message}
	for i := 0; i+1 < len(detail); i += 2 {
		if e.Detail == nil {
			e.Detail = map[string]any{}
		}
		e.Detail[fmt.Sprint(detail[i])] = detail[i+1]
	}
	return e
}

// seconds is the older system's form of a time.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// Status counts what there is.
type Status struct {
	Breakpoints   int       `json:"breakpoints"`
	Paused        int       `json:"paused"`
	TotalCalls    int       `json:"total_calls"`
	DroppedCalls  int       `json:"dropped_calls"` // records given up for room
	Functions     int       `json:"functions"`
	Behavior      Behavior  `json:"behavior"`
	ActiveCalls   int       `json:"active_calls"`
	Store         cas.Stats `json:"store"`
	EventsDropped int       `json:"events_dropped"` // of slow observers there are now
}

// Status tells how much there is of everything now.
func (h *Hub) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Status{
		Breakpoints: len(h.breakpoints), Paused: len(h.open), TotalCalls: h.records.total,
		DroppedCalls: h.records.total - len(h.records.list), Functions: len(h.functions),
		Behavior: h.behavior, ActiveCalls: len(h.calls), Store: h.store.Stats(),
	}
	for o := range h.observers {
		s.EventsDropped += o.lost
	}
	return s
}

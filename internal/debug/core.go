package debug

import (
	"fmt"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/cas"
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
	// Lease is how long a pause outlives the last sign of life of its caller; 0 =
	// 8 s.
	Lease      time.Duration
	MaxRecords int // call records kept; 0 = 10000
}

const (
	defaultLease       = 8 * time.Second
	defaultRecords     = 10_000
	maxBreakpoints     = 1000
	maxFunctions       = 10_000
	maxCalls           = 10_000 // begun and not completed
	maxPauses          = 10_000 // open at once
	maxClosedPauses    = 16_384 // whose decision is remembered
	maxDecidedBytes    = 8 << 20
	callOverhead       = 1 << 10  // what a call costs beside its values
	maxCallBytes       = 16 << 20 // of the calls begun and not completed
	maxFunctionBytes   = 16 << 20 // of all signatures and metadata
	maxSessions        = 1000
	maxTranscript      = 1000
	maxTranscriptBytes = 8 << 20 // over all sessions
)

// core is what all parts share. Everything of theirs is guarded by mu.
type core struct {
	o     Options
	store *cas.Store

	mu        sync.Mutex
	closed    bool
	seq       int // of call ids
	observers map[*Subscription]struct{}
}

// Store is where the hub keeps values.
func (c *core) Store() *cas.Store { return c.store }

// NewID is a fresh UUID.
func (c *core) NewID() string { return c.o.NewID() }

// Now is the time of the hub's clock.
func (c *core) Now() time.Time { return c.o.Now() }

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

// Refuse is a refusal with names and values of its details.
func Refuse(code, message string, detail ...any) *Error {
	e := &Error{Code: code, Message: message}
	for i := 0; i+1 < len(detail); i += 2 {
		if e.Detail == nil {
			e.Detail = map[string]any{}
		}
		e.Detail[fmt.Sprint(detail[i])] = detail[i+1]
	}
	return e
}

// Missing refuses what came without a parameter.
func Missing(parameter string) *Error {
	return Refuse(CodeMissingParameter, parameter+" required", "parameter", parameter)
}

// seconds is the older system's form of a time.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// Value returns the bytes of a stored value, which must not be changed.
func (c *core) Value(cid string) ([]byte, error) {
	if !cas.IsCID(cid) {
		return nil, Refuse(CodeCIDNotFound, "not a CID", "cid", cid)
	}
	data, ok := c.store.Get(cid)
	if !ok {
		return nil, Refuse(CodeCIDNotFound, "", "cid", cid)
	}
	return data, nil
}

// callID makes the id of a call that begins now; c.mu is held.
func (c *core) callID(now float64) string {
	c.seq++
	return fmt.Sprintf("%.6f-%03d", now, c.seq)
}

// Kind is what an Event is about.
type Kind string

// The kinds of events.
const (
	EventPaused    Kind = "execution_paused"
	EventResumed   Kind = "execution_resumed"
	EventCompleted Kind = "call_completed"
	EventChanged   Kind = "changed" // what is configured; Topic says what
)

// Topics of EventChanged.
const (
	TopicBreakpoints = "breakpoints"
	TopicBehavior    = "behavior"
	TopicFunctions   = "functions"
	TopicServers     = "servers"
	TopicErrors      = "com_errors"
)

// Event is one change of the hub. Which fields are set depends on Kind.
type Event struct {
	Kind       Kind
	PauseID    string  // paused, resumed
	CallID     string  // completed
	MethodName string  // all but changed
	Reason     string  // paused: "breakpoint" or "exception"
	PausedAt   float64 // paused: Unix seconds
	Action     string  // resumed
	Status     string  // completed: "success" or "exception"
	Topic      string  // changed
	// Missed counts the events dropped just before this one because the
	// observer was slow.
	Missed int
}

// Params are the parameters of the event's notification.
func (e Event) Params() map[string]any {
	switch e.Kind {
	case EventPaused:
		return map[string]any{"pause_id": e.PauseID, "method_name": e.MethodName, "pause_reason": e.Reason, "paused_at": e.PausedAt}
	case EventResumed:
		return map[string]any{"pause_id": e.PauseID, "method_name": e.MethodName, "action": e.Action}
	case EventCompleted:
		return map[string]any{"call_id": e.CallID, "method_name": e.MethodName, "status": e.Status}
	default:
		return map[string]any{"topic": e.Topic}
	}
}

// Subscription receives the events from its making on, in order.
type Subscription struct {
	// C gives the events; it is closed by Close and when the hub closes.
	C   <-chan Event
	c   chan Event
	hub *core

	missed, lost int // under hub.mu: since the last event that fitted; altogether
}

const defaultQueue = 256

// Subscribe adds an observer. Of its events at most queue wait for it (0 =
// 256); what comes beyond that is dropped and counted. Reading the hub's state
// while handling an event is fine.
func (c *core) Subscribe(queue int) *Subscription {
	if queue <= 0 {
		queue = defaultQueue
	}
	s := &Subscription{c: make(chan Event, queue), hub: c}
	s.C = s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		close(s.c)
		return s
	}
	c.observers[s] = struct{}{}
	return s
}

// Close ends the subscription; closing it again does nothing.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.unsubscribe(s)
}

func (c *core) unsubscribe(s *Subscription) {
	if _, ok := c.observers[s]; ok {
		delete(c.observers, s)
		close(s.c)
	}
}

// Announce tells all observers that something outside of the hub changed, such
// as the external servers.
func (c *core) Announce(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.publish(Event{Kind: EventChanged, Topic: topic})
}

// publish hands e to all observers without waiting for any; c.mu is held,
// which keeps the events in order.
func (c *core) publish(e Event) {
	for s := range c.observers {
		e.Missed = s.missed
		select {
		case s.c <- e:
			s.missed = 0
		default:
			s.missed++
			s.lost++
		}
	}
}

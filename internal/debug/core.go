package debug

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/cas"
)

// NoDecisionPolicy specifies what happens to a pause that gets no decision.
type NoDecisionPolicy string

// What happens to a call that waits at a breakpoint for a long time; the default is PolicyWaitForever.
const (
	PolicyWaitForever NoDecisionPolicy = "wait"     // the call waits forever
	PolicyContinue    NoDecisionPolicy = "continue" // the call continues unchanged
	PolicyFail        NoDecisionPolicy = "fail"     // the call fails with a message about the missing decision
)

// Options configure a Hub. Now and NewID must be set.
type Options struct {
	Now   func() time.Time
	NewID func() string // a fresh UUID
	Store *cas.Store    // nil means one with default limits
	// PauseTimeout is the time after which a pause without a decision ends according to OnTimeout. 0 means never.
	PauseTimeout time.Duration
	OnTimeout    NoDecisionPolicy
	Lease        time.Duration // how long a pause stays open after the last request of its caller; 0 means 8 s
	MaxRecords   int           // call records kept; 0 means 10000
}

const (
	defaultPauseLease                  = 8 * time.Second
	defaultMaxKeptCallRecords          = 10_000
	maxBreakpoints                     = 1000
	maxRegisteredFunctions             = 10_000
	maxUncompletedCalls                = 10_000 // maximum number of calls that are not completed
	maxOpenPauses                      = 10_000
	maxClosedPauses                    = 16_384
	maxTotalBytesOfStoredDecisions     = 8 << 20
	callOverheadBytes                  = 1 << 10
	maxTotalBytesOfUncompletedCalls    = 16 << 20 // maximum size of the calls that are not completed
	maxTotalBytesOfRegisteredFunctions = 16 << 20 // maximum size of all signatures and metadata
	maxSessions                        = 1000
	maxTranscriptEntries               = 1000
	maxTotalBytesOfSessionTranscripts  = 8 << 20
)

// hubState is the state that all parts of the hub share. mu guards it and the state of these parts.
type hubState struct {
	options Options
	store   *cas.Store

	mu        sync.Mutex
	closed    bool
	callCount int
	observers map[*Subscription]struct{}
}

func (c *hubState) Store() *cas.Store { return c.store }

func (c *hubState) NewID() string { return c.options.NewID() }

// Now returns the time of the hub's clock.
func (c *hubState) Now() time.Time { return c.options.Now() }

// Error is the error of a refused request. Code is part of the wire format; Detail holds additional members of the response.
type Error struct {
	Code, Message string
	Detail        map[string]any
}

func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + ": " + e.Message
}

// ErrorResponseMembers returns the members of the response that reports an error.
func ErrorResponseMembers(err error) map[string]any {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return map[string]any{"error": "internal", "message": err.Error()}
	}
	f := map[string]any{"error": e.Code}
	if e.Message != "" {
		f["message"] = e.Message
	}
	maps.Copy(f, e.Detail)
	return f
}

// The codes of errors.
const (
	CodeMissingParameter          = "missing_parameter"
	CodeInvalidBehavior           = "invalid_behavior"
	CodeInvalidCondition          = "invalid_condition"
	CodeInvalidPattern            = "invalid_pattern"
	CodeInvalidAction             = "invalid_action"
	CodeInvalidArguments          = "invalid_arguments"
	CodeInvalidLimit              = "invalid_limit"
	CodeInvalidPayload            = "invalid_payload"
	CodeInvalidSession            = "invalid_session_id"
	CodeBreakpointNotFound        = "breakpoint_not_found"
	CodeReplacementSchemaMismatch = "signature_mismatch"
	CodePauseNotFound             = "pause_not_found"
	CodePauseResumed              = "pause_already_resumed"
	CodeUnsupportedAction         = "unsupported_action"
	CodeMissingExpression         = "missing_expression"
	CodeSessionNotFound           = "session_not_found"
	CodeSessionClosed             = "session_closed"
	CodeEvalNotFound              = "eval_not_found"
	CodeEvalTimeout               = "eval_timeout"
	CodeContentIDNotFound         = "cid_not_found"
	CodeLimit                     = "limit_reached"
	CodeHubClosed                 = "closed"
)

// NewError returns an error with details, given as names and values.
func NewError(code, message string, detailPairs ...any) *Error {
	e := &Error{Code: code, Message: message}
	for i := 0; i+1 < len(detailPairs); i += 2 {
		if e.Detail == nil {
			e.Detail = map[string]any{}
		}
		e.Detail[fmt.Sprint(detailPairs[i])] = detailPairs[i+1]
	}
	return e
}

// NewMissingParameterError returns the error for a request without a required parameter.
func NewMissingParameterError(parameter string) *Error {
	return NewError(CodeMissingParameter, parameter+" required", "parameter", parameter)
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// StoredValueByContentID returns the bytes of a stored value. The caller must not change them.
func (c *hubState) StoredValueByContentID(contentID string) (storedBytes []byte, lookupError error) {
	if !cas.IsCID(contentID) {
		return nil, NewError(CodeContentIDNotFound, "not a CID", "cid", contentID)
	}
	data, ok := c.store.Get(contentID)
	if !ok {
		return nil, NewError(CodeContentIDNotFound, "", "cid", contentID)
	}
	return data, nil
}

// newCallID returns the id of a call that starts now; c.mu must be held.
func (c *hubState) newCallID(now float64) string {
	c.callCount++
	return fmt.Sprintf("%.6f-%03d", now, c.callCount)
}

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events.
const (
	EventPaused               EventKind = "execution_paused"
	EventResumed              EventKind = "execution_resumed"
	EventCompleted            EventKind = "call_completed"
	EventConfigurationChanged EventKind = "changed" // a configuration changed; Topic says which
)

// Topics of EventConfigurationChanged.
const (
	TopicBreakpoints               = "breakpoints"
	TopicBehavior                  = "behavior"
	TopicRegisteredFunctions       = "functions"
	TopicExternalMCPServers        = "servers"
	TopicClientCommunicationErrors = "com_errors"
)

// Event is one change of the hub. The fields that are set depend on Kind.
type Event struct {
	Kind       EventKind
	PauseID    string  // for paused and resumed events
	CallID     string  // for completed events
	MethodName string  // for all events except "changed"
	Reason     string  // for paused events: "breakpoint" or "exception"
	PausedAt   float64 // for paused events: Unix seconds
	Action     string  // for resumed events
	Status     string  // for completed events: "success" or "exception"
	Topic      string  // for changed events
	Missed     int     // counts the events dropped just before this one because the observer was slow
}

// Params returns the parameters of the event's notification.
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

// Subscription receives the events that happen after it was made, in order.
type Subscription struct {
	// C delivers the events; it is closed by Close and when the hub closes.
	C   <-chan Event
	c   chan Event
	hub *hubState

	missed, totalMissed int // guarded by hub.mu: events missed since the last delivered one, and in total
}

const defaultEventQueueLength = 256

// Subscribe adds an observer. At most queueLength events wait for it (0 means 256); further ones are dropped and
// counted. An observer may read the hub's state while it handles an event.
func (c *hubState) Subscribe(queueLength int) *Subscription {
	if queueLength <= 0 {
		queueLength = defaultEventQueueLength
	}
	s := &Subscription{c: make(chan Event, queueLength), hub: c}
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
	s.hub.unsubscribeLocked(s)
}

func (c *hubState) unsubscribeLocked(s *Subscription) {
	if _, ok := c.observers[s]; ok {
		delete(c.observers, s)
		close(s.c)
	}
}

// PublishChange notifies all observers that something outside the hub changed, such as the external servers.
func (c *hubState) PublishChange(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.publishLocked(Event{Kind: EventConfigurationChanged, Topic: topic})
}

// publishLocked queues e for all observers without waiting; c.mu must be held, to keep the events in order.
func (c *hubState) publishLocked(e Event) {
	for s := range c.observers {
		e.Missed = s.missed
		select {
		case s.c <- e:
			s.missed = 0
		default:
			s.missed++
			s.totalMissed++
		}
	}
}

package debug

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
	hub *Hub

	missed, lost int // under hub.mu: since the last event that fitted; altogether
}

const defaultQueue = 256

// Subscribe adds an observer. Of its events at most queue wait for it (0 =
// 256); what comes beyond that is dropped and counted. Reading the hub's state
// while handling an event is fine.
func (h *Hub) Subscribe(queue int) *Subscription {
	if queue <= 0 {
		queue = defaultQueue
	}
	s := &Subscription{c: make(chan Event, queue), hub: h}
	s.C = s.c
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(s.c)
		return s
	}
	h.observers[s] = struct{}{}
	return s
}

// Close ends the subscription; closing it again does nothing.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.unsubscribe(s)
}

func (h *Hub) unsubscribe(s *Subscription) {
	if _, ok := h.observers[s]; ok {
		delete(h.observers, s)
		close(s.c)
	}
}

// Announce tells all observers that something outside of the hub changed, such
// as the external servers.
func (h *Hub) Announce(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publish(Event{Kind: EventChanged, Topic: topic})
}

// publish hands e to all observers without waiting for any; h.mu is held,
// which keeps the events in order.
func (h *Hub) publish(e Event) {
	for s := range h.observers {
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

package connection

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// subscription keeps the stream of subscriptions/listen open, on which a server
// of the newer era sends its notifications.
type subscription struct {
	// listen opens the stream and returns when it ends; nil = the server ended
	// it with a result.
	listen func(ctx context.Context, filter wire.SubscriptionFilter) error
	// resumed is called when the server acknowledged a stream that was opened
	// again: changes may have been missed.
	resumed  func()
	debug    Log
	pause    time.Duration // before the first attempt to open it again
	patience time.Duration // how long an acknowledgement may take

	acknowledged chan struct{} // has a token when the server acknowledged
	refiltered   chan struct{} // has a token when the filter changed

	mu     sync.Mutex
	filter wire.SubscriptionFilter
}

// Observed with 2.1.330: a stream that breaks off is opened again after 1, 2 and
// 4 s and then no more; after one that the server ended it takes 5 s longer.
const (
	reopenPause    = time.Second
	maxReopenings  = 3
	gracefulPauses = 5
	// ackShare is the share of the time to connect that an acknowledgement may
	// take.
	ackShare = 0.7
)

var (
	errNotAcknowledged = errors.New("the server did not acknowledge subscriptions/listen")
	errRefiltered      = errors.New("the subscription changed")
)

// newSubscription makes the subscription to the lists whose changes a server
// announces. pause is that of subscription, 0 = reopenPause; connect is how long
// connecting may take.
func newSubscription(capabilities json.RawMessage, pause, connect time.Duration) *subscription {
	type list struct {
		Changed bool `json:"listChanged"`
	}
	var declared struct{ Tools, Prompts, Resources list }
	_ = json.Unmarshal(capabilities, &declared) // what cannot be read is not declared
	s := &subscription{
		pause: pause, patience: time.Duration(float64(connect) * ackShare),
		acknowledged: make(chan struct{}, 1), refiltered: make(chan struct{}, 1),
	}
	if s.pause == 0 {
		s.pause = reopenPause
	}
	s.filter.ToolsListChanged = declared.Tools.Changed
	s.filter.PromptsListChanged = declared.Prompts.Changed
	s.filter.ResourcesListChanged = declared.Resources.Changed
	return s
}

// run keeps the stream open until ctx ends. A stream that breaks off too often
// stays closed until the filter changes. run calls settled once, with the outcome
// of the first attempt: whether the server acknowledged it.
func (s *subscription) run(ctx context.Context, settled func(acknowledged bool)) {
	attempts, opened := 0, false
	onAck := func() {
		if opened {
			s.resumed()
		} else if attempts == 0 {
			settled(true)
		}
		opened = true
	}
	for reopened := 0; ; reopened++ {
		err := s.stream(ctx, onAck)
		if attempts == 0 && !opened {
			settled(false)
		}
		attempts++
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errRefiltered):
			reopened = -1
			continue
		}
		if !s.rest(ctx, s.pauseAfter(err, reopened)) {
			return
		}
	}
}

// pauseAfter is how long to wait before a stream that ended with err is opened
// again, after it was reopened so many times before.
func (s *subscription) pauseAfter(err error, reopened int) time.Duration {
	if reopened >= maxReopenings {
		s.debug.Printf("notifications ended for good: %v", err)
		return forever
	}
	pause := s.pause << reopened
	if err == nil {
		pause += s.pause * gracefulPauses
	}
	s.debug.Printf("notifications ended, opening them again in %v: %v", pause, err)
	return pause
}

// forever is longer than any connection lives.
const forever = time.Duration(math.MaxInt64)

// rest waits and reports whether ctx still lives. A changed filter ends it early.
func (s *subscription) rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.refiltered:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// stream opens the stream once and returns when it ended: nil, errRefiltered or
// what went wrong.
func (s *subscription) stream(ctx context.Context, onAck func()) error {
	filter := s.wanted()
	if filter.IsEmpty() {
		s.rest(ctx, forever)
		return errRefiltered
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan error, 1)
	go func() { ended <- s.listen(ctx, filter) }() // ends with ctx
	late := time.NewTimer(s.patience)
	defer late.Stop()
	for {
		select {
		case <-s.acknowledged:
			late.Stop()
			onAck()
		case <-late.C:
			stop(errNotAcknowledged)
		case <-s.refiltered:
			stop(errRefiltered)
		case err := <-ended:
			select {
			case <-s.acknowledged: // just before
				onAck()
			default:
			}
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
	}
}

func (s *subscription) wanted() wire.SubscriptionFilter {
	s.mu.Lock()
	defer s.mu.Unlock()
	filter := s.filter
	filter.ResourceSubscriptions = slices.Clone(filter.ResourceSubscriptions)
	return filter
}

// want adds a resource to the subscription, or takes it out, and opens the
// stream again if that changed anything.
func (s *subscription) want(uri string, wanted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uris := &s.filter.ResourceSubscriptions
	if slices.Contains(*uris, uri) == wanted {
		return
	}
	if wanted {
		*uris = append(*uris, uri)
	} else {
		*uris = slices.DeleteFunc(*uris, func(other string) bool { return other == uri })
	}
	notify(s.refiltered)
}

package connection

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// subscription keeps the subscriptions/listen stream open, where a server of revision 2026-07-28 sends notifications.
type subscription struct {
	openStream       func(ctx context.Context, filter wire.SubscriptionFilter) error // opens the stream and returns when it ends; nil means the server ended it with a result
	onResumed        func()                                                          // called when the server acknowledged a reopened stream: changes may have been missed
	debug            DebugLog
	firstReopenPause time.Duration // pause before the first attempt to reopen the stream
	ackTimeout       time.Duration // how long an acknowledgement may take

	acknowledged  chan struct{} // holds a token after the server has acknowledged the subscription
	filterChanged chan struct{} // holds a token after the filter changed

	mu     sync.Mutex
	filter wire.SubscriptionFilter
}

// Pauses before a broken stream is reopened: 1, 2 and 4 s; after three attempts the stream stays closed. If the server ended
// the stream, each pause is 5 s longer: extraReopenPausesAfterServerEndedStream times the first pause (observed with 2.1.330).
const (
	reopenPause                             = time.Second
	maxReopenings                           = 3
	extraReopenPausesAfterServerEndedStream = 5
	ackTimeoutShareOfConnectTimeout         = 0.7 // the share of the connect timeout that an acknowledgement may take
)

var (
	errSubscriptionNotAcknowledged = errors.New("the server did not acknowledge subscriptions/listen")
	errFilterChanged               = errors.New("the subscription changed")
)

// newSubscription returns a subscription to the lists whose changes the server announces. firstPause precedes the first
// reopening of the stream; 0 means reopenPause. A share of connectTimeout bounds the wait for the acknowledgement.
func newSubscription(capabilities json.RawMessage, firstPause, connectTimeout time.Duration) *subscription {
	type list struct {
		Changed bool `json:"listChanged"`
	}
	declared := plainjson.DecodeIgnoringErrors[struct{ Tools, Prompts, Resources list }](capabilities)
	s := &subscription{
		firstReopenPause: cmp.Or(firstPause, reopenPause), ackTimeout: time.Duration(float64(connectTimeout) * ackTimeoutShareOfConnectTimeout),
		acknowledged: make(chan struct{}, 1), filterChanged: make(chan struct{}, 1),
	}
	s.filter.ToolsListChanged = declared.Tools.Changed
	s.filter.PromptsListChanged = declared.Prompts.Changed
	s.filter.ResourcesListChanged = declared.Resources.Changed
	return s
}

// keepStreamOpen keeps the stream open until ctx ends. If it breaks too often, it stays closed until the filter
// changes. onFirstOutcome is called once, after the first attempt; acknowledged reports whether the server confirmed it.
func (s *subscription) keepStreamOpen(ctx context.Context, onFirstOutcome func(acknowledged bool)) {
	var opened bool
	var first sync.Once
	onAck := func() {
		if opened {
			s.onResumed()
		}
		opened = true
		first.Do(func() { onFirstOutcome(true) })
	}
	for reopened := 0; ctx.Err() == nil; reopened++ {
		err := s.openStreamOnceUntilItEnds(ctx, onAck)
		first.Do(func() { onFirstOutcome(false) })
		if errors.Is(err, errFilterChanged) {
			reopened = -1
		} else if ctx.Err() == nil {
			s.waitForPauseOrFilterChange(ctx, s.pauseBeforeReopeningStream(err, reopened))
		}
	}
}

// pauseBeforeReopeningStream returns the pause before the stream is reopened. If the server ended it, streamEndError is nil.
func (s *subscription) pauseBeforeReopeningStream(streamEndError error, reopenCount int) time.Duration {
	if reopenCount >= maxReopenings {
		s.debug.Printf("the notification stream ended and will not be reopened: %v", streamEndError)
		return unlimitedPause
	}
	pause := s.firstReopenPause << reopenCount
	if streamEndError == nil {
		pause += s.firstReopenPause * extraReopenPausesAfterServerEndedStream
	}
	s.debug.Printf("the notification stream ended and is opened again in %v: %v", pause, streamEndError)
	return pause
}

const unlimitedPause = time.Duration(math.MaxInt64)

// waitForPauseOrFilterChange waits for the duration pause. It returns early if ctx ends or the filter changes.
func (s *subscription) waitForPauseOrFilterChange(ctx context.Context, pause time.Duration) {
	select {
	case <-time.After(pause):
	case <-s.filterChanged:
	case <-ctx.Done():
	}
}

// openStreamOnceUntilItEnds opens the stream once and waits until it ends. It returns nil if the server ended it,
// errFilterChanged if the filter changed, or the error of a failure.
func (s *subscription) openStreamOnceUntilItEnds(ctx context.Context, onAcknowledged func()) error {
	filter := s.currentFilter()
	if filter.IsEmpty() {
		s.waitForPauseOrFilterChange(ctx, unlimitedPause)
		return errFilterChanged
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan error, 1)
	go func() { ended <- s.openStream(ctx, filter) }() // returns when ctx is cancelled
	late := time.NewTimer(s.ackTimeout)
	defer late.Stop()
	for {
		select {
		case <-s.acknowledged:
			late.Stop()
			onAcknowledged()
		case <-late.C:
			stop(errSubscriptionNotAcknowledged)
		case <-s.filterChanged:
			stop(errFilterChanged)
		case err := <-ended:
			select {
			case <-s.acknowledged: // acknowledged just before the timer fired
				onAcknowledged()
			default:
			}
			return cmp.Or(context.Cause(ctx), err)
		}
	}
}

func (s *subscription) currentFilter() wire.SubscriptionFilter {
	s.mu.Lock()
	defer s.mu.Unlock()
	filter := s.filter
	filter.ResourceSubscriptions = slices.Clone(filter.ResourceSubscriptions)
	return filter
}

func (s *subscription) addURI(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if uris := &s.filter.ResourceSubscriptions; !slices.Contains(*uris, uri) {
		*uris = append(*uris, uri)
		signalWithoutBlocking(s.filterChanged)
	}
}

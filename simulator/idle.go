package simulator

import (
	"context"
	"iter"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// Idle yields what work in the background shows while no turn runs. It ends
// when ctx does, when no task is left, or when a task has ended of which the
// model is to be told: then [Simulator.Notice] has the prompt of the next turn.
// It must not overlap a turn.
func (s *Simulator) Idle(ctx context.Context) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		tasks := s.main.Tasks
		if tasks == nil {
			return
		}
		o := &out{s: s, yield: yield}
		b := &behind{s: s, out: o, ledger: &ledger{s: s}}
		for b.drain(task.BetweenTurns) == nil && !tasks.Pending() && tasks.Busy() {
			tasks.Advance()
			select {
			case <-ctx.Done():
				return
			case <-tasks.Ready():
			}
		}
		// A task may have ended since the queue was looked at.
		_ = b.drain(task.BetweenTurns) // the only error is a consumer that has left
	}
}

// Notice takes the prompt of the extra turn that tells the model about ended
// background work; false = there is none.
func (s *Simulator) Notice() (protocol.UserMessage, bool) {
	if s.main.Tasks == nil {
		return protocol.UserMessage{}, false
	}
	n, ok := s.main.Tasks.NextNotice()
	return protocol.UserMessage{Content: protocol.Content{Text: n.Text}, Origin: n.Origin, Source: sourceSystem}, ok
}

// Busy tells whether background work runs or the model is still to be told of
// its end.
func (s *Simulator) Busy() bool {
	return s.main.Tasks != nil && (s.main.Tasks.Busy() || s.main.Tasks.Pending())
}

// Settle waits for background work as the real CLI does before it exits: it
// yields what the work shows and the turns that follow from it, until nothing
// is left or, from now on, ceiling is over. Cancelling ctx ends it and
// interrupts such a turn.
func (s *Simulator) Settle(ctx context.Context, ceiling time.Duration) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		limited, cancel := context.WithTimeout(ctx, ceiling)
		defer cancel()
		for limited.Err() == nil && s.Busy() {
			for ev, err := range s.Idle(limited) {
				if !yield(ev, err) {
					return
				}
			}
			prompt, ok := s.Notice()
			if !ok {
				continue
			}
			for ev, err := range s.Turn(ctx, prompt) {
				if !yield(ev, err) {
					return
				}
			}
		}
	}
}

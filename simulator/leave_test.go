package simulator_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// A consumer may stop at any event, whether or not the turn is cancelled at that moment. It is not called again (an
// iterator would panic), and events that it did not receive are not recorded.
func TestConsumerLeavesAnywhere(t *testing.T) {
	replies := []scenarios.Reply{callReply(`Read {}`, `Slow {}`, `Write {}`, `Fail {}`), {Failure: &scenarios.Failure{Type: scenarios.FailRateLimit}}}
	for _, cancelled := range []bool{false, true} {
		for leave, left := 1, true; left; leave++ {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				kept, seen := 0, 0
				s := newSimulator(t, simulator.Options{
					Model: &fakeModel{replies: append([]scenarios.Reply{}, replies...)}, Display: simulator.DisplayOptions{PartialMessages: true}, Limits: simulator.Limits{Retries: 2},
					Main: &simulator.MainOptions{Transcript: transcriptFunc(func(protocol.Event) { kept++ })},
				})
				left = false
				for _, err := range s.RunTurn(ctx, protocol.UserMessage{Content: protocol.Content{Text: "go"}}) {
					if err != nil {
						t.Fatal(err)
					}
					if seen++; seen == leave {
						if left = true; cancelled {
							cancel()
						}
						break
					}
				}
				if kept != seen {
					t.Errorf("cancelled %t: left after %d events, %d are kept", cancelled, seen, kept)
				}
			})
		}
	}
}

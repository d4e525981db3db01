package connection

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	wire "github.com/mark3labs/mcp-go/mcp"
)

type noLog struct{}

func (noLog) LogMessage(string, string, string) {}
func (noLog) Printf(string, ...any)             {}
func (noLog) Redact(text string) string         { return text }

// TestSubscriptionPauses checks that an interrupted stream is opened again after 1, 2 and 4 s, and a stream that the
// server ended after five times as long, at most three times (N4, O8). A changed filter reopens it immediately.
func TestSubscriptionPauses(t *testing.T) {
	broken := errors.New("broken off")
	for name, test := range map[string]struct {
		end  error
		want []time.Duration
	}{
		"broken": {broken, []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, time.Hour}},
		"ended":  {nil, []time.Duration{0, 6 * time.Second, 13 * time.Second, 22 * time.Second, time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, resumed := time.Now(), 0
				var opened []time.Duration
				s := newSubscription([]byte(`{"tools":{"listChanged":true}}`), 0, 30*time.Second)
				s.debug = noLog{}
				s.onResumed = func() { resumed++ }
				s.openStream = func(context.Context, wire.SubscriptionFilter) error {
					opened = append(opened, time.Since(began))
					s.acknowledged <- struct{}{}
					return test.end
				}
				ctx, stop := context.WithCancel(t.Context())
				outcomes := make(chan bool, 2)
				done := make(chan struct{})
				go func() {
					defer close(done)
					s.keepStreamOpen(ctx, func(acknowledged bool) { outcomes <- acknowledged })
				}()
				time.Sleep(time.Hour)
				s.addURI("file:///a")
				synctest.Wait()
				stop()
				<-done
				if diff := cmp.Diff(test.want, opened); diff != "" {
					t.Error(diff)
				}
				if len(outcomes) != 1 || !<-outcomes || resumed != len(test.want)-1 {
					t.Errorf("%d outcomes, resumed %d times", len(outcomes), resumed)
				}
			})
		})
	}
}

// TestSubscriptionUnacknowledged: the wait for an acknowledgement ends after a part of the connect timeout, and the
// subscription is tried again later (N4, N7).
func TestSubscriptionUnacknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var opened []time.Duration
		s := newSubscription([]byte(`{"prompts":{"listChanged":true}}`), 0, 4*time.Second)
		s.debug = noLog{}
		s.openStream = func(ctx context.Context, _ wire.SubscriptionFilter) error {
			opened = append(opened, time.Since(began))
			<-ctx.Done()
			return ctx.Err()
		}
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		s.keepStreamOpen(ctx, func(acknowledged bool) {
			if acknowledged || time.Since(began) != 2800*time.Millisecond {
				t.Errorf("%v after %v", acknowledged, time.Since(began))
			}
		})
		if diff := cmp.Diff([]time.Duration{0, 3800 * time.Millisecond}, opened); diff != "" {
			t.Error(diff)
		}
	})
}

// TestProbeTimeout checks the timeouts of O3.
func TestProbeTimeout(t *testing.T) {
	for _, test := range []struct {
		connect         time.Duration
		process, remote time.Duration
	}{
		{30 * time.Second, 3 * time.Second, 5 * time.Second},
		{2 * time.Second, 600 * time.Millisecond, 666666666},
	} {
		if p, r := revisionProbeTimeout(test.connect, false), revisionProbeTimeout(test.connect, true); p != test.process || r != test.remote {
			t.Errorf("%v: %v, %v", test.connect, p, r)
		}
	}
}

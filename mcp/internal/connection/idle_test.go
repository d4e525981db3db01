package connection

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatch: pings are 30 s apart with a limit of 5 s. Three misses in a row are a loss; an answer or a running call
// resets the count; a refusal counts as an answer; the end of the context is not a loss (S40).
func TestWatch(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, test := range map[string]struct {
		ping func(n int) func(context.Context) error
		busy func(n int) bool
		lost time.Duration // 0 means never, which is an hour here
	}{
		"answers":    {ping: func(int) func(context.Context) error { return func(context.Context) error { return nil } }},
		"refuses":    {ping: func(int) func(context.Context) error { return func(context.Context) error { return errors.New("no") } }},
		"is silent":  {ping: func(int) func(context.Context) error { return hang }, lost: 3 * 35 * time.Second},
		"is working": {ping: func(int) func(context.Context) error { return hang }, busy: func(int) bool { return true }},
		"recovers": {ping: func(n int) func(context.Context) error {
			if n%3 == 2 {
				return func(context.Context) error { return nil }
			}
			return hang
		}},
		"works now and then": {
			ping: func(int) func(context.Context) error { return hang },
			busy: func(n int) bool { return n == 2 }, lost: (2*35 + 30 + 3*35) * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				pings, looks := 0, 0
				ping := func(ctx context.Context) error { pings++; return test.ping(pings - 1)(ctx) }
				busy := func() bool { looks++; return test.busy != nil && test.busy(looks-1) }
				before := time.Now()
				lost := watchIdle(ctx, 0, busy, ping)
				want := test.lost
				if want == 0 {
					want = time.Hour
				}
				if took := time.Since(before); lost != (test.lost > 0) || took != want {
					t.Errorf("lost %v after %v, want %v", lost, took, want)
				}
			})
		})
	}
}

// TestNoStorm: after a late ping, the next one follows a whole interval later (S40: a machine that was suspended).
func TestNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 11*time.Hour)
		defer stop()
		var at []time.Time
		watchIdle(ctx, 0, func() bool { return false }, func(context.Context) error {
			at = append(at, time.Now())
			if len(at) == 1 {
				time.Sleep(10 * time.Hour) // the machine sleeps
			}
			return nil
		})
		if gap := at[2].Sub(at[1]); gap != 30*time.Second {
			t.Errorf("next ping after %v", gap)
		}
	})
}

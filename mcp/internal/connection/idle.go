package connection

import (
	"context"
	"errors"
	"time"
)

// Settings for watching an idle connection: a ping is sent every defaultPing, and its response may take a sixth of
// that. After maxMissedPings pings without an answer the connection counts as lost.
const (
	defaultPing     = 30 * time.Second
	pingsPerTimeout = 6
	maxMissedPings  = 3
)

// watchIdle pings a server until too many pings remain unanswered (it returns true) or ctx ends (false). every is the
// time between one ping and the next, so a machine that was suspended does not send a burst; 0 means defaultPing. Any
// error of ping counts as an answer, except the expiry of its context, because a server that refuses a ping is still
// running. No ping is sent while another request is in progress (busy).
func watchIdle(ctx context.Context, every time.Duration, busy func() bool, ping func(context.Context) error) (lost bool) {
	if every == 0 {
		every = defaultPing
	}
	answers := func() bool {
		limit, stop := context.WithTimeout(ctx, every/pingsPerTimeout)
		defer stop()
		err := ping(limit)
		return err == nil || limit.Err() == nil || !errors.Is(err, limit.Err())
	}
	timer := time.NewTimer(every)
	defer timer.Stop()
	for missed := 0; missed < maxMissedPings; timer.Reset(every) {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
		if busy() || answers() {
			missed = 0
		} else {
			missed++
		}
	}
	return ctx.Err() == nil
}

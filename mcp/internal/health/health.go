// Package health pings an idle connection.
//
// At most one ping is in progress. The next one starts a full interval after
// the last one ended, so a machine that was suspended does not send a burst.
package health

import (
	"context"
	"errors"
	"time"
)

// Options configure Watch. Server is required.
type Options struct {
	Every time.Duration // between the end of one ping and the next; 0 = 30 s
	Limit time.Duration // for one answer; 0 = 5 s
	// Misses is how many pings in a row may remain unanswered before the connection counts as lost; 0 = 3.
	Misses int
	Server Server
}

// Server is the connection to be watched.
type Server interface {
	// Ping sends one ping. Any error except the end of ctx counts as an answer: a server that refuses is alive.
	Ping(ctx context.Context) error
	// Busy reports whether another request is in progress, which makes a ping unnecessary.
	Busy() bool
}

const (
	defaultEvery  = 30 * time.Second
	defaultLimit  = 5 * time.Second
	defaultMisses = 3
)

// Watch pings the server until too many pings remain unanswered (it returns true) or ctx ends (false).
func Watch(ctx context.Context, o Options) (lost bool) {
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	if o.Misses <= 0 {
		o.Misses = defaultMisses
	}
	timer := time.NewTimer(o.Every)
	defer timer.Stop()
	for missed := 0; missed < o.Misses; timer.Reset(o.Every) {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
		switch {
		case o.Server.Busy(), o.ping(ctx):
			missed = 0
		default:
			missed++
		}
	}
	return ctx.Err() == nil
}

func (o *Options) ping(ctx context.Context) bool {
	limit, stop := context.WithTimeout(ctx, o.Limit)
	defer stop()
	err := o.Server.Ping(limit)
	return err == nil || limit.Err() == nil || !errors.Is(err, limit.Err())
}

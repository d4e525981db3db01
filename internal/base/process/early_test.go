//go:build unix

package process_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/claudeless/claudeless/internal/base/process"
)

// TestEarlySignal: a signal that arrives before a handler is registered ends the run once, like a later signal.
// Handlers of other signals do not receive it.
func TestEarlySignal(t *testing.T) {
	early := make(chan os.Signal, 1)
	early <- syscall.SIGINT
	s := (&process.System{}).WithEarlySignals(early)
	other := make(chan os.Signal, 1)
	s.Notify(other, syscall.SIGUSR1)()
	full := make(chan os.Signal) // no goroutine receives from it
	ctx, signals := s.WatchSignals(t.Context())
	defer signals.StopAndCancelContext()
	s.Notify(full, syscall.SIGINT)()
	<-ctx.Done()
	var end *process.SignalError
	if !errors.As(context.Cause(ctx), &end) || end.Signal != syscall.SIGINT {
		t.Errorf("ended with %v", context.Cause(ctx))
	}
	if len(other) != 0 || len(early) != 0 {
		t.Errorf("%d for others, %d left", len(other), len(early))
	}
}

// TestEarlySignalUnread: an early signal that is not received is dropped and does not block.
func TestEarlySignalUnread(t *testing.T) {
	early := make(chan os.Signal, 1)
	early <- syscall.SIGTERM
	s := (&process.System{}).WithEarlySignals(early)
	s.Notify(make(chan os.Signal), syscall.SIGINT, syscall.SIGTERM)()
	if len(early) != 0 {
		t.Error("it waits still")
	}
}

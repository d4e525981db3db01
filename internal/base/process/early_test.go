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

// TestEarlySignal: a signal that came before anybody asked for it ends the run as a
// later one does, once; who asks for other signals gets none of it.
func TestEarlySignal(t *testing.T) {
	early := make(chan os.Signal, 1)
	early <- syscall.SIGINT
	s := (&process.System{}).WithEarly(early)
	other := make(chan os.Signal, 1)
	s.Notify(other, syscall.SIGUSR1)()
	full := make(chan os.Signal) // nothing waits for it
	ctx, signals := s.Watch(t.Context())
	defer signals.Stop()
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

// TestEarlySignalUnread: one that its reader cannot take is dropped, and holds up
// nothing else.
func TestEarlySignalUnread(t *testing.T) {
	early := make(chan os.Signal, 1)
	early <- syscall.SIGTERM
	s := (&process.System{}).WithEarly(early)
	s.Notify(make(chan os.Signal), syscall.SIGINT, syscall.SIGTERM)()
	if len(early) != 0 {
		t.Error("it waits still")
	}
}

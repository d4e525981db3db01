//go:build unix

package earlysignal_test

import (
	"syscall"
	"testing"

	"github.com/claudeless/claudeless/internal/base/earlysignal"
)

// Signals that arrive before their handler is registered are kept, and the handler gets them in order of arrival (A9).
// Without the subscription at the start of the program, such a signal would kill this process.
func TestReceived(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		if got := <-earlysignal.TerminationSignals(); got != sig {
			t.Errorf("received %v, want %v", got, sig)
		}
	}
}

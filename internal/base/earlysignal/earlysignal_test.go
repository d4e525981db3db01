//go:build unix

package earlysignal_test

import (
	"syscall"
	"testing"

	"github.com/claudeless/claudeless/internal/base/earlysignal"
)

// A signal that arrives before its handler is registered waits for it, in order of arrival (A9). Without the
// subscription at the start it would end this process.
func TestReceived(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		if got := <-earlysignal.Received(); got != sig {
			t.Errorf("received %v, want %v", got, sig)
		}
	}
}

package process_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudeless/claudeless/internal/base/process"
)

// signalCapture is a lifetime that sends no signals. It stores the channel for signals, so that the test can send them.
type signalCapture struct {
	process.SignalsAndParent
	notified *chan<- os.Signal
}

func (r signalCapture) Notify(c chan<- os.Signal, _ ...os.Signal) func() {
	*r.notified = c
	return func() {}
}

// A write that is never read waits until a signal arrives, and then one second. A write that is read in time is
// complete; after an abandoned write no other write is attempted.
func TestStreamsGiveUpAfterASignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var relay chan<- os.Signal
		r, w := io.Pipe()
		var stderr bytes.Buffer
		system := &process.System{Stdout: w, Stderr: &stderr, Lifetime: signalCapture{notified: &relay}}
		_, signals := system.WatchSignals(t.Context())
		defer signals.StopAndCancelContext()
		defer r.Close()
		system = signals.WithWriteTimeoutAfterSignal(system)
		failed := make(chan error, 1)
		go func() {
			_, err := system.Stdout.Write([]byte("one"))
			failed <- err
		}()
		time.Sleep(time.Hour)
		select {
		case err := <-failed:
			t.Fatal("given up without a signal:", err)
		default:
		}
		relay <- syscall.SIGTERM
		began := time.Now()
		if err := <-failed; !errors.Is(err, io.ErrClosedPipe) || time.Since(began) != time.Second {
			t.Errorf("error %v after %s", err, time.Since(began))
		}
		if _, err := system.Stdout.Write([]byte("two")); !errors.Is(err, io.ErrClosedPipe) || time.Since(began) != time.Second {
			t.Errorf("the next write: error %v after %s", err, time.Since(began))
		}
		if _, err := system.Stderr.Write([]byte("last words")); err != nil || stderr.String() != "last words" {
			t.Errorf("stderr %q, error %v", stderr.String(), err)
		}
	})
}

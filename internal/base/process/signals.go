package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Lifetime is how the end of a process comes from outside, by signals or with the process that started it.
type Lifetime interface {
	// Notify relays signals to c until the returned function is called.
	Notify(c chan<- os.Signal, signals ...os.Signal) (stop func())
	// Kill makes this very process die of a signal; it returns only if that failed.
	Kill(sig syscall.Signal) error
	// Parent is the id of the process that started this one, now.
	Parent() int
}

// processLifetime is that of the process we are in.
type processLifetime struct {
	// early are signals that were received before anybody asked for them; nil = none were.
	early chan os.Signal
}

// Notify implements [Lifetime]. The first to ask for a signal also gets those of the kind
// that came before.
func (f processLifetime) Notify(c chan<- os.Signal, signals ...os.Signal) func() {
	signal.Notify(c, signals...)
	if f.early != nil && slices.Contains(signals, os.Signal(syscall.SIGINT)) {
		for _, sig := range taken(f.early) {
			select {
			case c <- sig:
			default: // as many wait there already as its reader can take
			}
		}
	}
	return func() { signal.Stop(c) }
}

// taken ends the receiving of signals in a channel and returns those in it.
func taken(early chan os.Signal) []os.Signal {
	signal.Stop(early)
	var all []os.Signal
	for {
		select {
		case sig := <-early:
			all = append(all, sig)
		default:
			return all
		}
	}
}

// WithEarly is the system with the signals that were received in early before anybody
// asked for them.
func (s *System) WithEarly(early chan os.Signal) *System {
	out := *s
	out.Fate = processLifetime{early}
	return &out
}

// Redeliver gives signals that were received early the effect that they have without a
// handler.
func Redeliver(early chan os.Signal) {
	for _, sig := range taken(early) {
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Signal(sig) // Windows has none
		}
	}
}

func (processLifetime) Parent() int { return os.Getppid() }

// Kill ends the process by a signal. Go's runtime would answer most signals in its own way, some with a trace and exit code
// 2, so a shell that takes our place, pid and all, dies of them.
func (processLifetime) Kill(sig syscall.Signal) error {
	if sig == syscall.SIGKILL {
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		return self.Kill()
	}
	script := fmt.Sprintf("ulimit -c 0; kill -%d $$; exit %d", sig, 128+sig)
	return syscall.Exec("/bin/sh", []string{"sh", "-c", script}, os.Environ())
}

// Notify relays signals to c until the returned function is called; without a [Lifetime] there are none.
func (s *System) Notify(c chan<- os.Signal, signals ...os.Signal) (stop func()) {
	if s.Fate == nil {
		return func() {}
	}
	return s.Fate.Notify(c, signals...)
}

// Signals turns signals into the ends of a run: SIGINT interrupts the turn if there is one, everything else ends the run
// with its own exit code.
type Signals struct {
	interrupt atomic.Pointer[context.CancelFunc]
	stop      func()
	first     sync.Once
	arrived   chan struct{} // closed at the first signal
}

// Watch relays signals until [Signals.Stop]. The context ends with a [SignalError] as its cause.
func (s *System) Watch(ctx context.Context) (context.Context, *Signals) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Signals{arrived: make(chan struct{})}
	if s.Fate == nil {
		w.stop = func() { cancel(nil) }
		return ctx, w
	}
	arrived := make(chan os.Signal, 4)
	done := make(chan struct{})
	unsubscribe := s.Notify(arrived, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() { // ends when done is closed
		for {
			select {
			case <-done:
				return
			case sig := <-arrived:
				w.first.Do(func() { close(w.arrived) })
				interrupt := w.interrupt.Swap(nil)
				if sig == syscall.SIGINT && interrupt != nil {
					(*interrupt)()
					continue
				}
				cancel(&SignalError{Signal: sig})
			}
		}
	}()
	w.stop = func() { unsubscribe(); close(done); cancel(nil) }
	return ctx, w
}

// Stop ends the relaying and the context of [System.Watch].
func (w *Signals) Stop() { w.stop() }

// Interrupts has the next SIGINT call cancel instead of ending the run.
func (w *Signals) Interrupts(cancel context.CancelFunc) { w.interrupt.Store(&cancel) }

// Interrupted tells whether that has happened; from here on a SIGINT ends the run again.
func (w *Signals) Interrupted() bool { return w.interrupt.Swap(nil) == nil }

// farewell is how long a write may still take once a signal has come.
const farewell = time.Second

// Streams is the system with a stdout and a stderr that let nobody wait for a reader who does not read: a write that a
// signal finds waiting, or that begins after it, fails with [io.ErrClosedPipe] after a second, and so do all that follow.
func (w *Signals) Streams(s *System) *System {
	if s.Fate == nil {
		return s
	}
	out := *s
	out.Stdout, out.Stderr = &limitedWriter{w: s.Stdout, asked: w.arrived}, &limitedWriter{w: s.Stderr, asked: w.arrived}
	return &out
}

// limitedWriter is a writer that gives up.
type limitedWriter struct {
	w     io.Writer
	asked <-chan struct{} // closed when writes may not take long any more

	mu   sync.Mutex // one write at a time
	dead bool
}

// Unwrap is the stream itself.
func (m *limitedWriter) Unwrap() io.Writer { return m.w }

func (m *limitedWriter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return 0, io.ErrClosedPipe
	}
	type written struct {
		n   int
		err error
	}
	done, own := make(chan written, 1), slices.Clone(p)
	go func() { // ends with the write; one that was given up ends with the process
		n, err := m.w.Write(own)
		done <- written{n, err}
	}()
	select {
	case r := <-done:
		return r.n, r.err
	case <-m.asked:
	}
	select {
	case r := <-done:
		return r.n, r.err
	case <-time.After(farewell):
		m.dead = true
		return 0, io.ErrClosedPipe
	}
}

// OrSignal prefers the signal that ended ctx to the error it led to.
func OrSignal(ctx context.Context, err error) error {
	if sig, ok := errors.AsType[*SignalError](context.Cause(ctx)); ok {
		return sig
	}
	return err
}

// UntilSignal ends the context at a signal that asks the process to end, without an error of its own.
func (s *System) UntilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if s.Fate == nil {
		return ctx, cancel
	}
	signals := make(chan os.Signal, 1)
	release := s.Notify(signals, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
	go func() { // ends with ctx
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { release(); cancel() }
}

// UntilOrphan ends the context soon after the process that started this one has ended: a server of a test outlives no
// test.
func (s *System) UntilOrphan(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if s.Fate == nil {
		return ctx, cancel
	}
	parent := s.Fate.Parent()
	go func() { // ends with ctx
		const pause = 500 * time.Millisecond
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		for s.Fate.Parent() == parent {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
		cancel()
	}()
	return ctx, cancel
}

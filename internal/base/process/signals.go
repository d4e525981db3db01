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

// SignalsAndParent reports what may end this process: signals, and the end of the parent process.
type SignalsAndParent interface {
	// Notify relays signals to c until the returned function is called.
	Notify(c chan<- os.Signal, signals ...os.Signal) (stop func())
	// Kill ends this process by a signal; it returns only on failure.
	Kill(sig syscall.Signal) error
	// ParentPID returns the id of the current parent process.
	ParentPID() int
}

type currentProcessSignalsAndParent struct {
	signalsBeforeFirstHandler chan os.Signal // holds signals that arrived before a handler was registered; nil means none
}

// Notify implements [SignalsAndParent]. The first handler of SIGINT also receives the signals that arrived before.
func (f currentProcessSignalsAndParent) Notify(c chan<- os.Signal, signals ...os.Signal) func() {
	signal.Notify(c, signals...)
	if f.signalsBeforeFirstHandler != nil && slices.Contains(signals, os.Signal(syscall.SIGINT)) {
		for _, sig := range stopAndDrainSignals(f.signalsBeforeFirstHandler) {
			select {
			case c <- sig:
			default: // the channel is full
			}
		}
	}
	return func() { signal.Stop(c) }
}

// stopAndDrainSignals stops receiving signals in a channel and returns the queued ones.
func stopAndDrainSignals(early chan os.Signal) []os.Signal {
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

// WithEarlySignals returns a copy of s whose first handler of SIGINT also receives the signals in the channel early.
func (s *System) WithEarlySignals(early chan os.Signal) *System {
	out := *s
	out.Lifetime = currentProcessSignalsAndParent{early}
	return &out
}

// RedeliverSignals sends the signals in the channel early to this process again. They now have their default effect.
func RedeliverSignals(early chan os.Signal) {
	for _, sig := range stopAndDrainSignals(early) {
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Signal(sig) // Windows has no signals
		}
	}
}

func (currentProcessSignalsAndParent) ParentPID() int { return os.Getppid() }

// Kill ends the process by a signal. Go's runtime would handle most signals itself, some with a trace and exit code 2.
// Therefore a shell replaces this process with the same pid and sends the signal to itself.
func (currentProcessSignalsAndParent) Kill(sig syscall.Signal) error {
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

// OnSignals calls handle for each signal, in one goroutine, until stop is called; calling stop again does nothing.
// Without a [SignalsAndParent], OnSignals does nothing.
func OnSignals(l SignalsAndParent, handle func(os.Signal), signals ...os.Signal) (stop func()) {
	if l == nil {
		return func() {}
	}
	arrived, done := make(chan os.Signal, 8), make(chan struct{})
	unsubscribe := l.Notify(arrived, signals...)
	go func() { // returns when done is closed
		for {
			select {
			case <-done:
				return
			case sig := <-arrived:
				handle(sig)
			}
		}
	}()
	return sync.OnceFunc(func() { unsubscribe(); close(done) })
}

// Notify relays signals to c until the returned function is called. Without a [SignalsAndParent] it does nothing.
func (s *System) Notify(c chan<- os.Signal, signals ...os.Signal) (stop func()) {
	if s.Lifetime == nil {
		return func() {}
	}
	return s.Lifetime.Notify(c, signals...)
}

// SignalHandler applies signals to a run. A SIGINT interrupts a running turn. Other signals end the run, each with its exit code.
type SignalHandler struct {
	interrupt atomic.Pointer[context.CancelFunc]
	stop      func()
	first     sync.Once
	arrived   chan struct{} // closed at the first signal
}

// WatchSignals handles signals until [SignalHandler.StopAndCancelContext]. A signal cancels the context; the cause is a [SignalError].
func (s *System) WatchSignals(ctx context.Context) (context.Context, *SignalHandler) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &SignalHandler{arrived: make(chan struct{})}
	unsubscribe := OnSignals(s.Lifetime, func(sig os.Signal) {
		w.first.Do(func() { close(w.arrived) })
		if interrupt := w.interrupt.Swap(nil); sig == syscall.SIGINT && interrupt != nil {
			(*interrupt)()
			return
		}
		cancel(&SignalError{Signal: sig})
	}, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	w.stop = func() { unsubscribe(); cancel(nil) }
	return ctx, w
}

// StopAndCancelContext stops the relaying and cancels the context of [System.WatchSignals].
func (w *SignalHandler) StopAndCancelContext() { w.stop() }

// CancelOnInterrupt arranges that the next SIGINT calls cancel and does not end the run. The returned function reports whether that has
// happened. After the returned function is called, every SIGINT ends the run again.
func (w *SignalHandler) CancelOnInterrupt(cancel context.CancelFunc) (interrupted func() bool) {
	w.interrupt.Store(&cancel)
	return func() bool { return w.interrupt.Swap(nil) == nil }
}

const maxBlockedWriteAfterSignal = time.Second

// WithWriteTimeoutAfterSignal returns the system with a stdout and a stderr that do not block forever if the reader stops reading. After a
// signal, a blocked write fails with [io.ErrClosedPipe] after one second, and so do all later writes. After the reader has closed
// the pipe, writes succeed without an effect.
func (w *SignalHandler) WithWriteTimeoutAfterSignal(s *System) *System {
	if s.Lifetime == nil {
		return s
	}
	out := *s
	out.Stdout, out.Stderr = &writerWithTimeoutAfterSignal{output: s.Stdout, signalArrived: w.arrived}, &writerWithTimeoutAfterSignal{output: s.Stderr, signalArrived: w.arrived}
	return &out
}

type writerWithTimeoutAfterSignal struct {
	output        io.Writer
	signalArrived <-chan struct{} // closed when the time limit of writes begins to apply

	mu          sync.Mutex
	hasTimedOut bool
	isClosed    bool // by the reader
}

func (m *writerWithTimeoutAfterSignal) Unwrap() io.Writer { return m.output }

func (m *writerWithTimeoutAfterSignal) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hasTimedOut {
		return 0, io.ErrClosedPipe
	}
	if m.isClosed {
		return len(p), nil
	}
	type written struct {
		n   int
		err error
	}
	done, own := make(chan written, 1), slices.Clone(p)
	go func() { // returns after the write, or, if the write is abandoned, when the process exits
		n, err := m.output.Write(own)
		done <- written{n, err}
	}()
	select {
	case r := <-done:
		if m.isClosed = errors.Is(r.err, syscall.EPIPE); m.isClosed {
			return len(p), nil
		}
		return r.n, r.err
	case <-m.signalArrived:
	}
	select {
	case r := <-done:
		return r.n, r.err
	case <-time.After(maxBlockedWriteAfterSignal):
		m.hasTimedOut = true
		return 0, io.ErrClosedPipe
	}
}

// SignalErrorOr returns the signal that cancelled ctx, or err if no signal did.
func SignalErrorOr(ctx context.Context, err error) error {
	if sig, ok := errors.AsType[*SignalError](context.Cause(ctx)); ok {
		return sig
	}
	return err
}

// ContextUntilSignal returns a context that SIGTERM, SIGHUP or an interrupt cancels; [context.Cause] does not tell which.
func (s *System) ContextUntilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	release := OnSignals(s.Lifetime, func(os.Signal) { cancel() }, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
	return ctx, func() { release(); cancel() }
}

// ContextUntilOrphaned returns a context that is cancelled within 500 ms after the parent process
// exits, so that a server does not outlive the test that started it.
func (s *System) ContextUntilOrphaned(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if s.Lifetime == nil {
		return ctx, cancel
	}
	parent := s.Lifetime.ParentPID()
	go func() { // returns when ctx is cancelled
		const pause = 500 * time.Millisecond
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		for s.Lifetime.ParentPID() == parent {
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

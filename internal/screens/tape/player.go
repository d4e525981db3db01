package tape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/screens/emulator"
)

// Program is a program with a terminal, such as [emulator.Program].
type Program interface {
	io.ReadWriter
	// Done returns a channel that is closed when the program has exited. From then on, Exit does not block.
	Done() <-chan struct{}
	Exit() proc.Exit
}

// Clock is the time of a player.
type Clock interface {
	Now() time.Time
	// After sends the time after d.
	After(d time.Duration) <-chan time.Time
}

// Page is a labelled screen.
type Page struct {
	Name, State, Enter string
	Screen             emulator.Screen
	// Offset is how many bytes of output led to the screen.
	Offset int
	// Step is the step that took the page.
	Step *Step
}

// Event is output of the program or input for it.
type Event struct {
	At    time.Duration // since the player started
	Input bool
	Data  []byte // valid until Record returns
}

// Recorder receives events.
type Recorder interface{ Record(Event) }

// Player plays tapes with a program. Program, Screen and Clock are required.
type Player struct {
	Program Program
	Screen  *emulator.Emulator
	Clock   Clock
	// Recorder receives the input and output of the program, from one goroutine at a time; nil means no recording.
	Recorder Recorder
	// Page receives each page; an error ends the tape.
	Page func(Page) error
	// OpenGate opens a gate of the scenario; nil means the tape may not have gates.
	OpenGate func(name string) error
}

// How long a player waits.
const (
	defaultTimeout        = 15 * time.Second
	echoTimeout           = 3 * time.Second
	settleTime            = 250 * time.Millisecond
	maxWaitForQuietOutput = 1500 * time.Millisecond
	keyQuietTime          = 40 * time.Millisecond  // minimum time without output before the next key
	maxKeyWait            = 400 * time.Millisecond // longest wait before the next key
)

// StepError reports which step of a tape failed and what the screen showed.
type StepError struct {
	Tape   string
	Step   int // number of the step, from 1
	Line   int
	Reason string
	Screen emulator.Screen
}

// Error returns the reason and the place, without the screen.
func (e *StepError) Error() string {
	return fmt.Sprintf("tape %s: step %d (line %d): %s", e.Tape, e.Step, e.Line, e.Reason)
}

// Play plays a tape to its end. The program may still run. The error is a [*StepError] or from ctx, Page or OpenGate.
func (p *Player) Play(ctx context.Context, t *Tape) error {
	b := p.Start()
	for i := range t.Steps {
		s := &t.Steps[i]
		err := b.DoStep(ctx, s)
		if failed, ok := errors.AsType[*StepError](err); ok {
			failed.Tape, failed.Step, failed.Line = t.Name, i+1, s.Line
			return failed
		}
		if err != nil {
			return fmt.Errorf("tape %s: step %d (line %d): %w", t.Name, i+1, s.Line, err)
		}
	}
	return nil
}

// Start returns a [Playback], which performs steps. From then on, the output of the program is read until the program
// closes its terminal. Start may be called only once.
func (p *Player) Start() *Playback {
	r := &Playback{Player: p, startedAt: p.Clock.Now(), changed: make(chan struct{}, 1)}
	go r.copyProgramOutputToScreen() // returns when the program has closed its terminal
	return r
}

// DoStep performs one step, which is from a tape or from [CompileStepOutsideTape]. If the step fails, the error is a
// [*StepError] without a position. Other errors come from ctx, Page or OpenGate.
func (r *Playback) DoStep(ctx context.Context, s *Step) error {
	err := r.performStep(ctx, s)
	if reason, ok := errors.AsType[tapeError](err); ok {
		return &StepError{Reason: string(reason), Screen: r.Screen.Screen()}
	}
	return err
}

// Playback does steps with a running program. It is used by one goroutine at a time.
type Playback struct {
	*Player
	startedAt time.Time
	changed   chan struct{} // receives a token when output has arrived

	mu          sync.Mutex
	outputBytes int       // bytes of output
	lastOutput  time.Time // time of the last output
	closed      bool      // the program has closed its terminal
}

func (r *Playback) copyProgramOutputToScreen() {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Program.Read(buf)
		if n > 0 {
			r.mu.Lock()
			r.passToRecorder(false, buf[:n])
			_, _ = r.Screen.Write(buf[:n]) // never fails
			r.outputBytes, r.lastOutput = r.outputBytes+n, r.Clock.Now()
			r.mu.Unlock()
			if replies := r.Screen.Replies(); replies != nil {
				_, _ = r.Program.Write(replies) // the program may have exited
			}
		}
		if err != nil {
			r.mu.Lock()
			r.closed = true
			r.mu.Unlock()
		}
		select {
		case r.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// passToRecorder passes an event to the recorder; the caller holds mu.
func (r *Playback) passToRecorder(isInput bool, data []byte) {
	if r.Recorder != nil {
		r.Recorder.Record(Event{At: r.Clock.Now().Sub(r.startedAt), Input: isInput, Data: data})
	}
}

func (r *Playback) sendInputToProgram(text string) error {
	r.mu.Lock()
	r.passToRecorder(true, []byte(text))
	r.mu.Unlock()
	if _, err := io.WriteString(r.Program, text); err != nil {
		return fmt.Errorf("sending keys to the program: %w", err)
	}
	return nil
}

func (r *Playback) timeOfLastOutput() (lastOutputAt time.Time, hasProgramClosedTerminal bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastOutput, r.closed
}

var errTimeout = errors.New("timeout")

func (r *Playback) waitUntil(ctx context.Context, limit time.Duration, ok func() bool) error {
	deadline := r.Clock.After(limit)
	for {
		_, closed := r.timeOfLastOutput()
		if ok() {
			return nil
		}
		if closed {
			return io.EOF
		}
		select {
		case <-r.changed:
		case <-deadline:
			return errTimeout
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *Playback) waitUntilQuiet(ctx context.Context, quiet, limit time.Duration) error {
	deadline, began := r.Clock.After(limit), r.Clock.Now()
	for {
		last, closed := r.timeOfLastOutput()
		if last.Before(began) {
			last = began
		}
		left := quiet - r.Clock.Now().Sub(last)
		if left <= 0 || closed {
			return nil
		}
		select {
		case <-r.Clock.After(left):
		case <-deadline:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

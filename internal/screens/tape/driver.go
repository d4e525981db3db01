package tape

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/screens/emulator"
)

// ProgramInTerminalOptions describe a program and its terminal. TMUX and TMUX_PANE are removed from the environment, because the
// program does not run inside tmux.
type ProgramInTerminalOptions struct {
	Path       string   // path of the program, or its name on PATH
	Args       []string // without the program's name
	Env        []string // the complete environment
	Cols, Rows int      // the size of the terminal
	Clock      Clock
}

// ProgramInTerminal is a running program and its screen, for one goroutine at a time. The caller must call StopProgram.
type ProgramInTerminal struct {
	program  *emulator.RunningProgram
	screen   *emulator.Emulator
	playback *Playback
}

// StartProgramInTerminal starts a program. ctx bounds only the start.
func StartProgramInTerminal(ctx context.Context, o ProgramInTerminalOptions) (*ProgramInTerminal, error) {
	size := emulator.Size{Cols: o.Cols, Rows: o.Rows}
	command := proc.Command{Path: o.Path, Args: o.Args}
	command.Env = slices.DeleteFunc(slices.Clone(o.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "TMUX" || name == "TMUX_PANE" || name == "TERM"
	})
	command.Env = append(command.Env, "TERM=xterm-256color")
	program, err := emulator.StartProgram(ctx, emulator.ProgramOptions{Command: command, Size: size})
	if err != nil {
		return nil, err
	}
	player := Player{Program: program, Screen: emulator.New(o.Cols, o.Rows), Clock: o.Clock}
	return &ProgramInTerminal{program, player.Screen, player.StartPlayback()}, nil
}

// quietMSBeforeKeys is how many milliseconds must have passed since the last output before keys are sent. Without this pause,
// keys might arrive immediately after a dialog appears, and the real CLI ignores such keys.
const quietMSBeforeKeys = 150

// PerformStep performs a step: it waits, types, or presses keys. The error shows the screen.
func (t *ProgramInTerminal) PerformStep(ctx context.Context, s Step) error {
	if s.Type+s.Paste+s.Key != "" {
		s.SettleMS = quietMSBeforeKeys
	}
	step, err := CompileStepOutsideTape(s)
	if err != nil {
		return err
	}
	err = t.playback.PerformStep(ctx, step)
	if failed, ok := errors.AsType[*StepError](err); ok {
		return errors.New(failed.Reason + "; the screen shows\n" + strings.TrimRight(failed.Screen.TextForMessages(), "\n"))
	}
	return err
}

// Screen returns the current screen.
func (t *ProgramInTerminal) Screen() emulator.Screen { return t.screen.Screen() }

// Resize changes the size of the terminal and notifies the program.
func (t *ProgramInTerminal) Resize(cols, rows int) error {
	size := emulator.Size{Cols: cols, Rows: rows}
	if err := t.program.Resize(size); err != nil {
		return err
	}
	t.screen.Resize(cols, rows)
	return nil
}

// StopProgram ends the program.
func (t *ProgramInTerminal) StopProgram() {
	const grace = 3 * time.Second
	t.program.Stop(grace)
}

// KeySequence returns the bytes that a key sends to a program. Names are as in tmux: "Enter", "Up", "C-c", "M-x"; a
// single character is the key of that character.
func KeySequence(name string) (sends string, ok bool) {
	if sends, ok = namedKeys()[name]; ok {
		return sends, true
	}
	prefix, rest, _ := strings.Cut(name, "-")
	switch {
	case utf8.RuneCountInString(name) == 1:
		return name, true
	case prefix == "M" && rest != "":
		sends, ok = KeySequence(rest)
		return "\x1b" + sends, ok
	case prefix == "C" && len(rest) == 1 && rest[0]|0x20 >= 'a' && rest[0]|0x20 <= 'z':
		return string(rest[0] & 0x1f), true
	}
	return "", false
}

func namedKeys() map[string]string {
	return map[string]string{
		"Enter": "\r", "Esc": "\x1b", "Escape": "\x1b", "Tab": "\t", "BTab": "\x1b[Z", "Space": " ", "BSpace": "\x7f",
		"Up": "\x1b[A", "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D", "Home": "\x1b[H", "End": "\x1b[F",
		"PgUp": "\x1b[5~", "PgDn": "\x1b[6~", "Insert": "\x1b[2~", "Delete": "\x1b[3~",
	}
}

// testDriverRequest is one request of a test, a line of JSON. Its optional parts are executed in the order of the fields.
type testDriverRequest struct {
	Wait      string `json:"wait"`       // wait until the screen contains this text
	Gone      string `json:"gone"`       // wait until the screen does not contain this text
	Type      string `json:"type"`       // type this text, and wait for its echo
	Paste     string `json:"paste"`      // paste this text
	Press     string `json:"press"`      // press these keys: "Down Enter"
	Resize    string `json:"resize"`     // change the size: COLSxROWS
	Exit      *int   `json:"exit"`       // wait until the program ends, with this exit code
	TimeoutMS int    `json:"timeout_ms"` // bounds each wait; 0 means 15000
	Screen    bool   `json:"screen"`     // answer with the screen
}

type responseToDriver struct {
	Error  string         `json:"error,omitempty"`
	Screen *screenContent `json:"screen,omitempty"`
}

type screenContent struct {
	emulator.Screen
	Text string `json:"text"`
}

// AnswerTerminalRequests reads requests from requestLines, one line of JSON each, and executes them. It writes each
// answer as a line to answerLines. It returns when requestLines ends.
func AnswerTerminalRequests(ctx context.Context, terminal *ProgramInTerminal, requestLines io.Reader, answerLines io.Writer) error {
	lines := bufio.NewReader(requestLines)
	enc := json.NewEncoder(answerLines)
	enc.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := enc.Encode(terminal.executeRequestOfTest(ctx, line)); err != nil {
				return fmt.Errorf("writing a response to stdout: %w", err)
			}
		}
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("reading requests from stdin: %w", err)
		}
	}
}

func (t *ProgramInTerminal) executeRequestOfTest(ctx context.Context, line []byte) responseToDriver {
	var r testDriverRequest
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	err := dec.Decode(&r)
	if err == nil {
		err = t.PerformStep(ctx, Step{Wait: r.Wait, Gone: r.Gone, Type: r.Type, Paste: r.Paste, Key: r.Press, Exit: r.Exit, TimeoutMS: r.TimeoutMS})
	}
	if err == nil && r.Resize != "" {
		var size emulator.Size
		if size, err = emulator.ParseSize(r.Resize); err == nil {
			err = t.Resize(size.Cols, size.Rows)
		}
	}
	var a responseToDriver
	if err != nil {
		a.Error = err.Error()
	}
	if r.Screen {
		s := t.Screen()
		a.Screen = &screenContent{s, s.TextWithAllRows()}
	}
	return a
}

// Program is a program with a terminal, such as [emulator.RunningProgram].
type Program interface {
	io.ReadWriter
	// Done returns a channel that is closed when the program has exited. From then on, Exit does not block.
	Done() <-chan struct{}
	WaitExit() proc.ExitStatus
}

// Clock provides the time for a player.
type Clock interface {
	Now() time.Time
	// After returns a channel that receives the time after the duration d.
	After(d time.Duration) <-chan time.Time
}

// CapturedScreen is a captured screen, labelled with the state that it shows.
type CapturedScreen struct {
	Name, State, Enter string
	Screen             emulator.Screen
	Offset             int // the number of bytes that the program wrote before the screen was captured
}

// IOEvent is output of the program or input for it.
type IOEvent struct {
	At    time.Duration // since the player started
	Input bool
	Data  []byte // valid until Record returns
}

// Recorder receives the input and output of a program while a tape (script of keys) is played.
type Recorder interface{ Record(IOEvent) }

// Player plays tapes: it sends the keys of a script to a program. Program, Screen and Clock are required.
type Player struct {
	Program  Program
	Screen   *emulator.Emulator
	Clock    Clock
	Recorder Recorder                   // receives the input and output of the program, from one goroutine at a time; nil means no recording
	Page     func(CapturedScreen) error // receives each captured screen; an error that it returns ends the tape
	// OpenGate releases a gate, at which a step of the scenario waits. If it is nil, the script of keys may not name gates.
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

// StepError reports which step of a script of keys failed and what the screen showed.
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

// Play plays a tape; the program may still run afterwards. The error is a [*StepError] or from ctx, Page or OpenGate.
func (p *Player) Play(ctx context.Context, t *Tape) error {
	b := p.StartPlayback()
	for i := range t.Steps {
		s := &t.Steps[i]
		err := b.PerformStep(ctx, s)
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

// StartPlayback returns a [Playback], which performs steps. From then on, the output of the program is read until the program
// closes its terminal. Start may be called only once.
func (p *Player) StartPlayback() *Playback {
	r := &Playback{Player: p, startedAt: p.Clock.Now(), changed: make(chan struct{}, 1)}
	go r.copyProgramOutputToScreen() // returns when the program has closed its terminal
	return r
}

// PerformStep performs one step, which is from a tape or from [CompileStepOutsideTape]. If the step fails, the error is a
// [*StepError] without a position. Other errors come from ctx, Page or OpenGate.
func (r *Playback) PerformStep(ctx context.Context, s *Step) error {
	err := r.performAllActionsOfStep(ctx, s)
	if reason, ok := errors.AsType[stepReasonError](err); ok {
		return &StepError{Reason: string(reason), Screen: r.Screen.Screen()}
	}
	return err
}

// Playback performs steps on a running program. It is used by one goroutine at a time.
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
		r.mu.Lock()
		if r.closed = err != nil; n > 0 {
			r.passToRecorder(false, buf[:n])
			_, _ = r.Screen.Write(buf[:n]) // never fails
			r.outputBytes, r.lastOutput = r.outputBytes+n, r.Clock.Now()
		}
		r.mu.Unlock()
		if replies := r.Screen.TakeReplies(); replies != nil {
			_, _ = r.Program.Write(replies) // the program may have exited
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

// passToRecorder passes input or output of the program to the recorder; r.mu must be held.
func (r *Playback) passToRecorder(isInput bool, data []byte) {
	if r.Recorder != nil {
		r.Recorder.Record(IOEvent{At: r.Clock.Now().Sub(r.startedAt), Input: isInput, Data: data})
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

func (r *Playback) waitUntil(ctx context.Context, limit time.Duration, isSatisfied func() bool) error {
	deadline := r.Clock.After(limit)
	for {
		_, closed := r.timeOfLastOutput()
		if isSatisfied() {
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

func (r *Playback) waitUntilQuietOrLimit(ctx context.Context, quiet, limit time.Duration) error {
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

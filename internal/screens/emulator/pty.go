package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/creack/pty"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// ErrUnsupported means that this system has no pseudo-terminals.
var ErrUnsupported = pty.ErrUnsupported

// The limits for the size of a terminal.
const (
	MinCols = 20
	MinRows = 5
	MaxCols = 500
	MaxRows = 200
)

// Size is the size of a terminal in characters.
type Size struct{ Cols, Rows int }

// String returns "COLSxROWS".
func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Cols, s.Rows) }

// ParseSize reads "COLSxROWS".
func ParseSize(text string) (Size, error) {
	var s Size
	var rest string
	n, _ := fmt.Sscanf(text+" ", "%dx%d%s", &s.Cols, &s.Rows, &rest) // n is the number of values that were read
	if n != 2 || text != s.String() || s.Cols < MinCols || s.Rows < MinRows || s.Cols > MaxCols || s.Rows > MaxRows {
		return Size{}, fmt.Errorf("invalid size %q: write COLSxROWS, from %dx%d to %dx%d", text, MinCols, MinRows, MaxCols, MaxRows)
	}
	return s, nil
}

// TerminalPair is a pseudo-terminal. The caller closes both files.
type TerminalPair struct {
	Controller *os.File // our side: bytes written to it are typed into the terminal
	Terminal   *os.File // the program's side of the pseudo-terminal
}

// OpenTerminalPair creates a pseudo-terminal of this size.
func OpenTerminalPair(size Size) (TerminalPair, error) {
	controller, terminal, err := pty.Open()
	if err != nil {
		return TerminalPair{}, fmt.Errorf("creating a pseudo-terminal: %w", err)
	}
	p := TerminalPair{Controller: controller, Terminal: terminal}
	if err := p.Resize(size); err != nil {
		return TerminalPair{}, errors.Join(err, p.Close())
	}
	return p, nil
}

// Resize changes the size of the terminal and notifies the program.
func (p TerminalPair) Resize(size Size) error {
	if size.Cols < 1 || size.Rows < 1 || size.Cols > MaxCols || size.Rows > MaxRows {
		return fmt.Errorf("invalid terminal size %s: write COLSxROWS, from 1x1 to %dx%d", size, MaxCols, MaxRows)
	}
	err := pty.Setsize(p.Controller, &pty.Winsize{Cols: uint16(size.Cols), Rows: uint16(size.Rows)})
	if err != nil {
		return fmt.Errorf("setting the size of the pseudo-terminal: %w", err)
	}
	return nil
}

// Close closes both files; a second call is harmless.
func (p TerminalPair) Close() error {
	err := errors.Join(p.Terminal.Close(), p.Controller.Close())
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// SizeOf returns the size of a terminal; ok is false if the file is not a terminal.
func SizeOf(f *os.File) (s Size, ok bool) {
	size, err := pty.GetsizeFull(f)
	if err != nil || size.Cols == 0 || size.Rows == 0 {
		return Size{}, false
	}
	return Size{Cols: int(size.Cols), Rows: int(size.Rows)}, true
}

// ProgramOptions describe a program for [StartProgram].
type ProgramOptions struct {
	proc.Command
	Size   Size
	Stderr io.Writer // receives standard error; nil means it goes to the terminal
}

// RunningProgram is a program in a pseudo-terminal. The caller must call Stop, even if the program has exited.
type RunningProgram struct {
	*proc.ForegroundCommand
	pair TerminalPair
}

// StartProgram runs a program. ctx bounds only the start.
func StartProgram(ctx context.Context, o ProgramOptions) (*RunningProgram, error) {
	pair, err := OpenTerminalPair(o.Size)
	if err != nil {
		return nil, err
	}
	attach := proc.ForegroundOptions{Command: o.Command, Stdin: pair.Terminal, Stdout: pair.Terminal, Stderr: pair.Terminal, OwnTerminal: true}
	if o.Stderr != nil {
		attach.Stderr = o.Stderr
	}
	attached, err := proc.StartForegroundCommand(ctx, attach)
	if err != nil {
		return nil, errors.Join(err, pair.Close())
	}
	_ = pair.Terminal.Close() // the program has its own handle of the terminal
	return &RunningProgram{attached, pair}, nil
}

// Read returns output. It returns an error after every process has closed the terminal, or after Stop.
func (p *RunningProgram) Read(b []byte) (int, error) { return p.pair.Controller.Read(b) }

// Write types bytes into the terminal.
func (p *RunningProgram) Write(typedBytes []byte) (int, error) {
	return p.pair.Controller.Write(typedBytes)
}

// Resize changes the size of the terminal.
func (p *RunningProgram) Resize(size Size) error { return p.pair.Resize(size) }

// Stop sends SIGTERM to the program and its process group. Processes that still run after grace get SIGKILL. Then Stop
// closes the terminal, which sends SIGHUP to processes of other groups.
func (p *RunningProgram) Stop(grace time.Duration) {
	p.StopGroupAndReclaimTerminal(grace)
	_ = p.pair.Close() // the program has exited, so an error has no effect
}

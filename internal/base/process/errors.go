package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/internal/base/diag"
)

// The exit codes of the program. A bad command line also exits with 1, never with 2.
const (
	ExitOK               = 0
	ExitFailed           = 1
	ExitUnmetExpectation = 3 // --expect: an expectation of the scenario was not met
	exitHangup           = 129
	ExitInterrupted      = 130 // Ctrl-C before the first screen
	exitSIGTERM          = 143
)

// VerbatimError is an error with the real CLI's text, printed unchanged, without the prefix "claudeless: error:".
type VerbatimError struct{ Text string }

func (e *VerbatimError) Error() (printedText string) { return e.Text }

// Verbatimf creates an [VerbatimError].
func Verbatimf(format string, args ...any) error {
	return &VerbatimError{Text: fmt.Sprintf(format, args...)}
}

type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }

// WithHint returns an error with a hint about what to do.
func WithHint(message, hint string) error { return &hintError{err: errors.New(message), hint: hint} }

// ExitError ends the program with the exit code Code. A nil Err means that nothing is printed.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// SignalError is the cause of a context that a signal cancelled.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return e.Signal.String() }

// EndsProcess marks a cause that ends the process, unlike the interrupt of a turn.
func (*SignalError) EndsProcess() {}

// PrintErrorReturningExitCode prints err to w and returns the exit code.
//
// Errors of claudeless are printed as "claudeless: error: …" and "hint: …" lines in lower case without a full stop.
// Texts of the real CLI and diagnostics are printed unchanged; a signal prints nothing.
func PrintErrorReturningExitCode(w io.Writer, err error) int {
	var (
		code     *ExitError
		sig      *SignalError
		usage    *argv.Error
		verbatim *VerbatimError
		faults   diag.List
		hint     *hintError
	)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &sig):
		switch sig.Signal {
		case syscall.SIGTERM:
			return exitSIGTERM
		case syscall.SIGHUP:
			return exitHangup
		default: // as in the real CLI, also after an interrupt
			return ExitOK
		}
	case errors.As(err, &code):
		if code.Err != nil {
			PrintErrorReturningExitCode(w, code.Err)
		}
		return code.Code
	case errors.Is(err, context.Canceled):
		return ExitOK
	case errors.As(err, &usage):
		fmt.Fprintln(w, usage.Text)
	case errors.As(err, &verbatim):
		fmt.Fprintln(w, verbatim.Text)
	case errors.As(err, &faults):
		diag.Render(w, faults)
	default:
		fmt.Fprintf(w, "claudeless: error: %v\n", err)
		if errors.As(err, &hint) {
			fmt.Fprintf(w, "hint: %s\n", hint.hint)
		}
	}
	return ExitFailed
}

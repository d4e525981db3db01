package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/claudeless/claudeless/internal/argv"
	"github.com/claudeless/claudeless/internal/diag"
)

// The exit codes of the program. A bad command line is 1 as well, never 2.
const (
	exitOK      = 0
	exitFailed  = 1
	exitExpect  = 3 // --expect: an expectation of the scenario was missed
	exitHangup  = 129
	exitSIGTERM = 143
)

// claudeError is an error in the real CLI's words: printed as it stands, without our prefix.
type claudeError struct{ text string }

func (e *claudeError) Error() string { return e.text }

func claudeErrorf(format string, args ...any) error {
	return &claudeError{text: fmt.Sprintf(format, args...)}
}

// hintError is an error with a line that says what to do.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }

func hinted(message, hint string) error { return &hintError{err: errors.New(message), hint: hint} }

// exitError ends the program with a code of its own. A nil err means that all there is to say was said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// signalError is the cause of a context that a signal ended.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return e.signal.String() }

// exit writes what err has to say to w and returns the exit code.
//
// Our own errors are "claudeless: error: …" and "hint: …" lines in lower case without a full stop; texts of the real CLI
// and diagnostics pass unchanged; signals say nothing.
func exit(w io.Writer, err error) int {
	var (
		code     *exitError
		sig      *signalError
		usage    *argv.Error
		verbatim *claudeError
		faults   diag.List
		hint     *hintError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &sig):
		return signalCode(sig.signal)
	case errors.As(err, &code):
		if code.err != nil {
			exit(w, code.err)
		}
		return code.code
	case errors.Is(err, context.Canceled):
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintln(w, usage.Text)
	case errors.As(err, &verbatim):
		fmt.Fprintln(w, verbatim.text)
	case errors.As(err, &faults):
		diag.Render(w, faults)
	default:
		fmt.Fprintf(w, "claudeless: error: %v\n", err)
		if errors.As(err, &hint) {
			fmt.Fprintf(w, "hint: %s\n", hint.hint)
		}
	}
	return exitFailed
}

// signalCode is what the real CLI exits with: an interrupt is a normal end.
func signalCode(s os.Signal) int {
	switch s {
	case syscall.SIGTERM:
		return exitSIGTERM
	case syscall.SIGHUP:
		return exitHangup
	default:
		return exitOK
	}
}

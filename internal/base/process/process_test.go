package process_test

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/process"
)

func TestGetenvTakesTheLast(t *testing.T) {
	s := &process.System{Environ: []string{"A=1", "AB=2", "A=3=4", "BROKEN"}}
	if s.Getenv("A") != "3=4" || s.Getenv("BROKEN") != "" || s.Getenv("C") != "" {
		t.Errorf("A=%q BROKEN=%q C=%q", s.Getenv("A"), s.Getenv("BROKEN"), s.Getenv("C"))
	}
}

func TestExit(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		code int
		text string
	}{
		"nothing":       {nil, 0, ""},
		"ours":          {errors.New("it broke"), 1, "claudeless: error: it broke\n"},
		"hint":          {fmt.Errorf("loading: %w", process.WithHint("it broke", "fix it")), 1, "claudeless: error: loading: it broke\nhint: fix it\n"},
		"usage":         {&argv.Error{Text: "error: x"}, 1, "error: x\n"},
		"real words":    {process.Verbatimf("Error: %d", 7), 1, "Error: 7\n"},
		"diagnostics":   {diag.List{{Pos: diag.Position{File: "f", Line: 1, Col: 2}, Message: "bad"}}, 1, "f:1:2: bad\n"},
		"code":          {&process.ExitError{Code: process.ExitUnmetExpectation}, 3, ""},
		"code and text": {&process.ExitError{Code: process.ExitUnmetExpectation, Err: errors.New("missed")}, 3, "claudeless: error: missed\n"},
		"interrupt":     {&process.SignalError{Signal: syscall.SIGINT}, 0, ""},
		"terminate":     {fmt.Errorf("reading: %w", &process.SignalError{Signal: syscall.SIGTERM}), 143, ""},
		"hang up":       {&process.SignalError{Signal: syscall.SIGHUP}, 129, ""},
	} {
		var w bytes.Buffer
		if code := process.PrintErrorReturningExitCode(&w, tt.err); code != tt.code || w.String() != tt.text {
			t.Errorf("%s: exit code %d, text %q; want %d, %q", name, code, w.String(), tt.code, tt.text)
		}
	}
}

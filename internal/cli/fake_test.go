package cli

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/base/process"
)

// fakeSystem is a process of an ordinary user in a new directory, without a terminal and without environment variables.
func fakeSystem(t *testing.T, args ...string) (s *process.System, stdout, stderr *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return &process.System{
		Args:       append([]string{"/usr/bin/claudeless"}, args...),
		Stdin:      strings.NewReader(""),
		Stdout:     stdout,
		Stderr:     stderr,
		Getwd:      func() (string, error) { return dir, nil },
		Executable: func() (string, error) { return "/usr/bin/claudeless", nil },
		Now:        func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		NewID:      func() string { return "00000000-0000-4000-8000-000000000001" },
		UID:        1000,
		Lifetime:   noSignals{},
	}, stdout, stderr
}

// noSignals receives no signal.
type noSignals struct{ process.SignalsAndParent }

func (noSignals) Notify(chan<- os.Signal, ...os.Signal) func() { return func() {} }

func (noSignals) ParentPID() int { return 1 }

// forbiddenStdin is a stdin that must not be read.
type forbiddenStdin struct{ t *testing.T }

func (u forbiddenStdin) Read([]byte) (int, error) {
	u.t.Error("stdin was read")
	return 0, io.EOF
}

// Package process gives a program its arguments, environment, standard streams,
// clock and signals, and defines exit codes and the format of errors.
//
// All access to the process goes through a [System], so a test can run the
// program many times within one process.
package process

import (
	"bytes"
	"io"
	"log"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"golang.org/x/term"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// System is the process as the program sees it. Every field but Fate must be set; [Real] makes the real one.
type System struct {
	Args           []string // with the program's name first
	Environ        []string // KEY=value; of several with one key the last counts
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getwd          func() (string, error)
	Executable     func() (string, error)
	Now            func() time.Time
	NewID          func() string // a fresh UUID
	StdinIsTTY     bool
	StdoutIsTTY    bool
	StderrIsTTY    bool
	UID            int // -1 where there is none
	PID            int
	// Lifetime is what may end the process from outside; nil = nothing does.
	Fate Lifetime
}

// Real is the process we are in. A reader of stdout that has gone is from here on an error of the write, not the end of the
// process; ignoring the signal instead would pass on to the programs we start.
func Real() *System {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	log.SetOutput(libraryLog{os.Stderr})
	return &System{
		Args:        os.Args,
		Environ:     os.Environ(),
		Stdin:       os.Stdin,
		Stdout:      os.Stdout,
		Stderr:      os.Stderr,
		Getwd:       os.Getwd,
		Executable:  os.Executable,
		Now:         time.Now,
		NewID:       uuid.NewString,
		StdinIsTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		StdoutIsTTY: term.IsTerminal(int(os.Stdout.Fd())),
		StderrIsTTY: term.IsTerminal(int(os.Stderr.Fd())),
		UID:         os.Getuid(),
		PID:         os.Getpid(),
		Fate:        processLifetime{},
	}
}

// Name is the program's name as its user typed it.
func (s *System) Name() string {
	if len(s.Args) == 0 {
		return "claudeless"
	}
	return strings.TrimSuffix(filepath.Base(s.Args[0]), ".exe")
}

// AsClaude reports whether the program was called claude, so that only what the real CLI has is recognised.
func (s *System) AsClaude() bool { return s.Name() == "claude" }

// Getenv returns the value of an environment variable, "" when it is not set.
func (s *System) Getenv(key string) string { return proc.Getenv(s.Environ, key) }

// With is the same process with more in its environment.
func (s *System) With(env map[string]string) *System {
	if len(env) == 0 {
		return s
	}
	out := *s
	out.Environ = slices.Clone(s.Environ)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out.Environ = append(out.Environ, name+"="+env[name])
	}
	return &out
}

// ManagedDir is where the machine's own settings are; CLAUDELESS_MANAGED_DIR
// names another place.
func (s *System) ManagedDir() string {
	if dir := s.Getenv("CLAUDELESS_MANAGED_DIR"); dir != "" {
		return dir
	}
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/ClaudeCode"
	}
	return "/etc/claude-code"
}

// OwnChild reports whether a run of ours started this process: ${CLAUDELESS_BIN} of a server configuration may well be
// called claude.
func (s *System) OwnChild() bool { return s.Getenv("CLAUDELESS_BIN") != "" }

// Progress is where a passing line about what is being waited for may be shown; nil = nowhere.
func (s *System) Progress() io.Writer {
	if s.StderrIsTTY {
		return s.Stderr
	}
	return nil
}

// MayBypass is the refusal to let everything run as the superuser; nil = it may.
func (s *System) MayBypass() error {
	if s.UID == 0 && s.Getenv("IS_SANDBOX") != "1" {
		return Verbatimf("--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons")
	}
	return nil
}

// On tells whether the value of a variable switches something on.
func On(value string) bool { return value != "" && value != "0" && value != "false" }

// libraryLog is where the standard library logs to by itself: what net/http says of
// MCP servers that answer what nobody asked is no business of the user's.
type libraryLog struct{ w io.Writer }

// Write implements io.Writer for one line at a time.
func (l libraryLog) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("Unsolicited response received on idle HTTP channel")) {
		return len(line), nil
	}
	return l.w.Write(line)
}

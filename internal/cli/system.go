// Package cli is the binary: it reads the command line, builds the parts that do the work, connects them to the process
// and turns the outcome into texts and an exit code.
//
// It has two grammars. The claude face is read by internal/argv from a table (options.go), because clients match on the
// exact error texts and on commander's treatment of variadic and optional values, which kong does not offer, and because
// building a kong parser costs more than a whole short run may. Our own commands (grammar.go) are kong structs.
//
// Invariant: the process (arguments, environment, standard streams, clock, signals) is touched only through System, so
// that Run can be called any number of times in one test process. The package holds no behaviour of the simulated agent;
// nothing imports it but package main.
package cli

import (
	"context"
	"fmt"
	"io"
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
)

// System is the process as the program sees it. Every field must be set; Main builds the real one.
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
	// Kill makes this very process die of a signal; it returns only if that failed.
	Kill func(sig syscall.Signal) error
	// Notify relays signals to c until the returned function is called.
	Notify func(c chan<- os.Signal, signals ...os.Signal) (stop func())
}

// die ends the process by a signal. Go's runtime would answer most signals in its own way, some with a trace and exit code
// 2, so a shell that takes our place, pid and all, dies of them.
func die(sig syscall.Signal) error {
	if sig == syscall.SIGKILL {
		return syscall.Kill(os.Getpid(), sig)
	}
	script := fmt.Sprintf("ulimit -c 0; kill -%d $$; exit %d", sig, 128+sig)
	return syscall.Exec("/bin/sh", []string{"sh", "-c", script}, os.Environ())
}

// Main runs the program on the real process and returns its exit code.
func Main() int {
	// A reader that has gone is an error of the write, not the end of the process. Ignoring the signal instead would
	// pass on to the programs we start.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return Run(context.Background(), &System{
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
		Kill:        die,
		Notify: func(c chan<- os.Signal, signals ...os.Signal) func() {
			signal.Notify(c, signals...)
			return func() { signal.Stop(c) }
		},
	})
}

// Run is the whole program. It returns the exit code after everything it started has ended, except a read from Stdin that
// never comes back.
func Run(ctx context.Context, s *System) int {
	return exit(s.Stderr, dispatch(ctx, s))
}

func dispatch(ctx context.Context, s *System) error {
	var words []string
	if len(s.Args) > 1 {
		words = s.Args[1:]
	}
	if len(words) > 0 && !asksPrint(words) {
		if run := command(s, words[0]); run != nil {
			return run(ctx, s, words[1:])
		}
	}
	f, err := parseFlags(s, words)
	switch {
	case err != nil:
		return err
	case f.version:
		return printVersion(s, f)
	case f.help:
		return printHelp(s)
	case !printMode(s, f):
		return hinted("interactive terminal mode is not simulated", `give a prompt with -p: `+s.name()+` -p "…"`)
	}
	if err := checkFlags(s, f); err != nil {
		return err
	}
	if f.InputFormat == "stream-json" {
		return runStream(ctx, s, f)
	}
	return runPrint(ctx, s, f)
}

// asksPrint reports whether -p stands among the words before "--": then even a command's name is a prompt.
func asksPrint(words []string) bool {
	if end := slices.Index(words, "--"); end >= 0 {
		words = words[:end]
	}
	return slices.Contains(words, "-p") || slices.Contains(words, "--print")
}

// printMode holds where the real CLI answers and exits: asked to, or not on a terminal.
func printMode(s *System, f *Flags) bool {
	return f.Print || !s.StdoutIsTTY || f.InputFormat == "stream-json"
}

// name is the program's name as its user typed it.
func (s *System) name() string {
	if len(s.Args) == 0 {
		return "claudeless"
	}
	return strings.TrimSuffix(filepath.Base(s.Args[0]), ".exe")
}

// asClaude reports whether the program was called claude, so that only what the real CLI has is recognised.
func (s *System) asClaude() bool { return s.name() == "claude" }

// Getenv returns the value of an environment variable, "" when it is not set.
func (s *System) Getenv(key string) string {
	for _, entry := range slices.Backward(s.Environ) {
		if name, value, ok := strings.Cut(entry, "="); ok && name == key {
			return value
		}
	}
	return ""
}

// with is the same process with more in its environment.
func (s *System) with(env map[string]string) *System {
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

// managedDir is where the machine's own settings are; CLAUDELESS_MANAGED_DIR
// names another place.
func (s *System) managedDir() string {
	if dir := s.Getenv("CLAUDELESS_MANAGED_DIR"); dir != "" {
		return dir
	}
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/ClaudeCode"
	}
	return "/etc/claude-code"
}

// workdir is the absolute working directory of the run: --cwd, or that of the process.
func (s *System) workdir(f *Flags) (string, error) {
	if filepath.IsAbs(f.CWD) {
		return filepath.Clean(f.CWD), nil
	}
	dir, err := s.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	return filepath.Join(dir, f.CWD), nil
}

// abs makes a path of the command line absolute.
func (s *System) abs(f *Flags, path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	dir, err := s.workdir(f)
	return filepath.Join(dir, path), err
}

// Package process gives a program its arguments, environment, standard streams, clock and signals, and defines exit
// codes and the format of errors.
//
// All access to the process goes through a [System], so a test can run the program many times within one process.
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
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/proc"

	"github.com/google/uuid"
	"golang.org/x/term"
)

// System is the process as the program sees it. Every field except Lifetime must be
// set; [NewSystem] returns the real one.
type System struct {
	Args           []string // including the program's name
	Environ        []string // KEY=value; of duplicate keys the last counts
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getwd          func() (string, error)
	Executable     func() (string, error)
	Now            func() time.Time
	NewID          func() string // returns a new UUID
	StdinIsTTY     bool
	StdoutIsTTY    bool
	StderrIsTTY    bool
	// Terminal is the terminal of stdin and stdout; nil means that one of them is not a terminal.
	Terminal Terminal
	UID      int // -1 on systems without user ids
	PID      int
	// Lifetime reports what may end this process: signals, and the end of the parent process; nil reports nothing.
	Lifetime Lifetime
}

// NewSystem returns the current process. From then on, writing to a closed stdout returns an error and does not end the
// process. SIGPIPE is handled and not ignored, because child processes would inherit an ignored signal.
func NewSystem() *System {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	log.SetOutput(logFilter{os.Stderr})
	return &System{
		Args:        os.Args,
		Environ:     normalizeEnviron(os.Environ(), runtime.GOOS),
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
		Terminal:    openTerminal(),
		UID:         os.Getuid(),
		PID:         os.Getpid(),
		Lifetime:    processLifetime{},
	}
}

// normalizeEnviron returns the environment variables env of a process on the system goos. On Windows the case of names
// is ignored, so they are converted to capitals. There HOME, unless it is set, is the directory of the user's profile.
func normalizeEnviron(env []string, goos string) []string {
	if goos != "windows" {
		return env
	}
	out := make([]string, len(env), len(env)+1)
	for i, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok {
			kv = strings.ToUpper(name) + "=" + value
		}
		out[i] = kv
	}
	if profile := proc.Getenv(out, "USERPROFILE"); profile != "" && proc.Getenv(out, "HOME") == "" {
		out = append(out, "HOME="+profile)
	}
	return out
}

// Name returns the program's name as the user typed it.
func (s *System) Name() string {
	if len(s.Args) == 0 {
		return "claudeless"
	}
	return strings.TrimSuffix(filepath.Base(s.Args[0]), ".exe")
}

// CalledAsClaude reports whether the program was called as claude. It then accepts only
// the command line of the real CLI.
func (s *System) CalledAsClaude() bool { return s.Name() == "claude" }

// Getenv returns the value of an environment variable, "" when it is not set.
func (s *System) Getenv(key string) string { return proc.Getenv(s.Environ, key) }

// WithEnv returns the same process with additional environment variables.
func (s *System) WithEnv(env map[string]string) *System {
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

// ManagedSettingsDir returns the directory of the managed settings; CLAUDELESS_MANAGED_DIR overrides it.
func (s *System) ManagedSettingsDir() string {
	if dir := s.Getenv("CLAUDELESS_MANAGED_DIR"); dir != "" {
		return dir
	}
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/ClaudeCode"
	}
	return "/etc/claude-code"
}

// StartedByClaudeless reports whether a claudeless process started this one. All commands are then available even under
// the name claude, because the program at ${CLAUDELESS_BIN} in a server configuration may have this name.
func (s *System) StartedByClaudeless() bool { return s.Getenv("CLAUDELESS_BIN") != "" }

// Progress returns the writer for temporary progress messages; nil means that none are shown.
func (s *System) Progress() io.Writer {
	if s.StderrIsTTY {
		return s.Stderr
	}
	return nil
}

// PermissionBypassError returns an error if the superuser may not bypass permissions; nil = allowed.
func (s *System) PermissionBypassError() error {
	if s.UID == 0 && s.Getenv("IS_SANDBOX") != "1" {
		return Verbatimf("--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons")
	}
	return nil
}

// IsEnabled reports whether the value of a variable enables something.
func IsEnabled(value string) bool { return value != "" && value != "0" && value != "false" }

// logFilter receives the log of the standard library. It drops messages of net/http about unexpected responses of
// MCP servers, which do not concern the user.
type logFilter struct{ w io.Writer }

// Write implements io.Writer for one line at a time.
func (l logFilter) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("Unsolicited response received on idle HTTP channel")) {
		return len(line), nil
	}
	return l.w.Write(line)
}

// DelayGarbageCollection delays the first garbage collection until the heap exceeds what a run with a file of size
// bytes needs, because most processes exit before that. It is called once in a process. The first collection restores
// the usual percentage.
func DelayGarbageCollection(size int64) {
	percent := gcPercent(size)
	if usual := debug.SetGCPercent(percent); usual != percent {
		runtime.AddCleanup(new([16]byte), func(usual int) { debug.SetGCPercent(usual) }, usual)
	}
}

// gcPercent returns the percentage for [debug.SetGCPercent] with which a scenario file of size bytes is loaded
// without a collection. The heap may grow to 4 MiB for each 100 percent. A byte of the file takes about 12 bytes of heap.
func gcPercent(size int64) int {
	const (
		smallest = 400
		largest  = 1600 // lets the heap grow to 64 MiB; while a bigger file is loaded, the collector runs
		perMiB   = 400
	)
	return int(min(smallest+size*perMiB>>20, largest))
}

// DecodeStream decodes bytes as a JavaScript program does when it reads a stream: each
// maximal invalid part of a UTF-8 sequence becomes U+FFFD (observed with 2.1.329).
func DecodeStream(data []byte) []byte {
	if utf8.Valid(data) {
		return data
	}
	out := make([]byte, 0, len(data)+len(data)/2)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		for r == utf8.RuneError && size < len(data) && size < utf8.UTFMax && !utf8.FullRune(data[:size+1]) {
			size++
		}
		out = utf8.AppendRune(out, r)
		data = data[size:]
	}
	return out
}

// DecodeArguments decodes the words of a command line as a JavaScript program does: each byte
// that is not valid UTF-8 becomes U+FFFD.
func DecodeArguments(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = word
		if !utf8.ValidString(word) {
			out[i] = string([]rune(word))
		}
	}
	return out
}

// Package process gives a program its arguments, environment, streams, clock, signals, exit codes and error format.
//
// All access to the process goes through a [System], so a test can run the program many times within one process.
package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// System is the process as the program sees it. Every field except Lifetime must be set; [InitSystemSIGPIPEAndLog] returns the real one.
type System struct {
	Args                                 []string // including the program's name
	Environ                              []string // KEY=value; of duplicate keys the last counts
	Stdin                                io.Reader
	Stdout, Stderr                       io.Writer
	Getwd                                func() (string, error)
	Executable                           func() (string, error)
	Now                                  func() time.Time
	NewID                                func() string // returns a new UUID
	StdinIsTTY, StdoutIsTTY, StderrIsTTY bool
	Terminal                             Terminal // terminal of stdin and stdout; nil means that one of them is not a terminal
	UID                                  int      // -1 on systems without user ids
	PID                                  int
	Lifetime                             SignalsAndParent // reports what may end this process: signals, and the end of the parent process; nil reports nothing
}

// InitSystemSIGPIPEAndLog returns the current process. From then on, writing to a closed stdout returns an error and does not end the process, because
// SIGPIPE is handled. SIGPIPE is not ignored, because child processes would inherit an ignored signal.
func InitSystemSIGPIPEAndLog() *System {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	log.SetOutput(logWriterDroppingUnsolicitedHTTPResponses{os.Stderr})
	s := &System{
		Args: os.Args, Environ: uppercaseNamesAndAddHomeOnWindows(os.Environ(), runtime.GOOS), Stdin: os.Stdin,
		Stdout: os.Stdout, Stderr: os.Stderr, Getwd: os.Getwd, Executable: os.Executable, Now: time.Now,
		NewID: uuid.NewString, StdinIsTTY: term.IsTerminal(int(os.Stdin.Fd())),
		StdoutIsTTY: term.IsTerminal(int(os.Stdout.Fd())), StderrIsTTY: term.IsTerminal(int(os.Stderr.Fd())),
		UID: os.Getuid(), PID: os.Getpid(),
		Lifetime: currentProcessSignalsAndParent{},
	}
	if s.StdinIsTTY && s.StdoutIsTTY {
		s.Terminal = standardTerminal{os.Stdin, os.Stdout}
	}
	return s
}

// uppercaseNamesAndAddHomeOnWindows returns the environment variables environ of a process on operatingSystem. On
// Windows it converts the names to capitals, because their case does not matter there. It also adds HOME with the
// directory of the user's profile, if HOME is not set.
func uppercaseNamesAndAddHomeOnWindows(environ []string, operatingSystem string) []string {
	if operatingSystem != "windows" {
		return environ
	}
	out := make([]string, len(environ), len(environ)+1)
	for i, kv := range environ {
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

// InvokedProgramName returns the program's name as the user typed it.
func (s *System) InvokedProgramName() string {
	if len(s.Args) == 0 {
		return "claudeless"
	}
	return strings.TrimSuffix(filepath.Base(s.Args[0]), ".exe")
}

// CalledAsClaude reports whether the program was called as claude. It then accepts only the real CLI's command line.
func (s *System) CalledAsClaude() bool { return s.InvokedProgramName() == "claude" }

// Getenv returns the value of an environment variable, "" when it is not set.
func (s *System) Getenv(key string) string { return proc.Getenv(s.Environ, key) }

// WithEnv returns a copy of s with additional environment variables.
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

// PrintIndentedJSON prints a value as indented JSON on stdout.
func (s *System) PrintIndentedJSON(value any) error {
	encoder := json.NewEncoder(s.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
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

// StartedByClaudeless reports whether a claudeless process started this one. If so, all commands are available even if this
// program is called as claude, because the program at ${CLAUDELESS_BIN} in a server configuration may have this name.
func (s *System) StartedByClaudeless() bool { return s.Getenv("CLAUDELESS_BIN") != "" }

// ProgressTerminalOrNil returns the writer for temporary progress messages; nil means that none are shown.
func (s *System) ProgressTerminalOrNil() io.Writer {
	if s.StderrIsTTY {
		return s.Stderr
	}
	return nil
}

// PermissionBypassError returns an error if this user is the superuser and may not bypass permissions, otherwise nil.
func (s *System) PermissionBypassError() error {
	if s.UID == 0 && s.Getenv("IS_SANDBOX") != "1" {
		return Verbatimf("--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons")
	}
	return nil
}

// IsSetAndNotFalse reports whether a variable with this value enables something. All values except "", "0" and "false" do.
func IsSetAndNotFalse(value string) bool { return value != "" && value != "0" && value != "false" }

// logWriterDroppingUnsolicitedHTTPResponses receives the log of the standard library. It drops messages of net/http about
// unexpected responses of MCP servers, which do not concern the user.
type logWriterDroppingUnsolicitedHTTPResponses struct{ remainingLog io.Writer }

// Write implements io.Writer for one line at a time.
func (l logWriterDroppingUnsolicitedHTTPResponses) Write(logLine []byte) (int, error) {
	if bytes.Contains(logLine, []byte("Unsolicited response received on idle HTTP channel")) {
		return len(logLine), nil
	}
	return l.remainingLog.Write(logLine)
}

// DelayGarbageCollection delays the first garbage collection, so that most runs with a scenario file of scenarioFileSize bytes
// end without one. The first collection restores the usual percentage. A process calls it only once.
func DelayGarbageCollection(scenarioFileSize int64) {
	percent := gcPercentGrowingWithFileSize(scenarioFileSize)
	if usual := debug.SetGCPercent(percent); usual != percent {
		runtime.AddCleanup(new([16]byte), func(usual int) { debug.SetGCPercent(usual) }, usual)
	}
}

// gcPercentGrowingWithFileSize returns the [debug.SetGCPercent] value with which a scenario of this size is loaded without
// garbage collection. Each 100 percent allows 4 MiB of heap. Loading takes about 12 bytes of heap for each byte of the file.
func gcPercentGrowingWithFileSize(scenarioFileBytes int64) int {
	const (
		smallest = 400
		largest  = 1600 // lets the heap grow to 64 MiB without a collection; the collector runs only while a bigger file is loaded
		perMiB   = 400
	)
	return int(min(smallest+scenarioFileBytes*perMiB>>20, largest))
}

// ReplaceInvalidUTF8LikeJavaScriptStream decodes bytes as a JavaScript program does when it reads a stream. Each invalid byte
// becomes U+FFFD, and the bytes of an incomplete UTF-8 sequence become one U+FFFD together (observed with 2.1.329).
func ReplaceInvalidUTF8LikeJavaScriptStream(streamBytes []byte) []byte {
	if utf8.Valid(streamBytes) {
		return streamBytes
	}
	out := make([]byte, 0, len(streamBytes)+len(streamBytes)/2)
	for len(streamBytes) > 0 {
		r, size := utf8.DecodeRune(streamBytes)
		for r == utf8.RuneError && size < len(streamBytes) && size < utf8.UTFMax && !utf8.FullRune(streamBytes[:size+1]) {
			size++
		}
		out = utf8.AppendRune(out, r)
		streamBytes = streamBytes[size:]
	}
	return out
}

// ReplaceInvalidUTF8InCommandLineWords decodes the words of a command line as a JavaScript program does: each byte
// that is not valid UTF-8 becomes U+FFFD.
func ReplaceInvalidUTF8InCommandLineWords(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = word
		if !utf8.ValidString(word) {
			out[i] = string([]rune(word))
		}
	}
	return out
}

// Terminal is the terminal on which an interactive run reads keys and draws its screen.
type Terminal interface {
	io.Reader
	io.Writer
	// MakeRaw switches off echo, line editing and keys that send signals. The returned function restores the modes.
	MakeRaw() (restore func() error, err error)
	// Size returns the numbers of columns and rows; zeros means unknown.
	Size() (cols, rows int)
}

type standardTerminal struct{ in, out *os.File }

func (t standardTerminal) Read(p []byte) (int, error)  { return t.in.Read(p) }
func (t standardTerminal) Write(p []byte) (int, error) { return t.out.Write(p) }

func (t standardTerminal) MakeRaw() (func() error, error) {
	state, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return nil, err
	}
	return func() error { return term.Restore(int(t.in.Fd()), state) }, nil
}

func (t standardTerminal) Size() (cols, rows int) {
	cols, rows, err := term.GetSize(int(t.out.Fd()))
	if err != nil {
		return 0, 0
	}
	return cols, rows
}

const (
	maxPipedStdinBytes = 10 << 20
	stdinWaitLimit     = 3 * time.Second // how long a pipe may stay silent before the run continues without it
)

// ReadPipedStdinUnlessSilent returns all of a piped stdin, decoded by [ReplaceInvalidUTF8LikeJavaScriptStream]. It returns "" if stdin is a terminal.
// If the pipe stays silent for too long, it prints a warning and returns "". An input that is too large is an error. After a silence, a
// goroutine stays blocked in Read until the pipe is closed or the process exits.
func (s *System) ReadPipedStdinUnlessSilent(ctx context.Context) (string, error) {
	if s.StdinIsTTY || s.Stdin == nil {
		return "", nil
	}
	in := &backgroundStdinReader{r: s.Stdin, started: make(chan struct{}), done: make(chan error, 1)}
	go in.readToEndAndSendError()
	patience := time.NewTimer(stdinWaitLimit)
	defer patience.Stop()
	for started := in.started; ; {
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-started:
			started = nil
			patience.Stop()
		case <-patience.C:
			fmt.Fprintln(s.Stderr, "Warning: no stdin data received in 3s, proceeding without it. "+
				"If piping from a slow command, redirect stdin explicitly: < /dev/null to skip, or wait longer.")
			return "", nil
		case err := <-in.done:
			return string(ReplaceInvalidUTF8LikeJavaScriptStream(in.buffered.Bytes())), err
		}
	}
}

// ReadSecret reads a line from the terminal without echo.
func (s *System) ReadSecret(prompt string) (string, error) {
	terminal, ok := s.Stdin.(interface{ Fd() uintptr })
	if !ok || !s.StdinIsTTY {
		return "", errors.New("stdin is not a terminal")
	}
	fmt.Fprint(s.Stderr, prompt)
	line, err := term.ReadPassword(int(terminal.Fd()))
	fmt.Fprintln(s.Stderr)
	return string(line), err
}

// backgroundStdinReader reads r to the end in a goroutine. buffered may be read only after done has received a value.
type backgroundStdinReader struct {
	r        io.Reader
	started  chan struct{} // closed at the first byte
	done     chan error
	buffered bytes.Buffer
}

func (in *backgroundStdinReader) readToEndAndSendError() {
	first := make([]byte, 1)
	if n, _ := io.ReadFull(in.r, first); n == 0 { // a stdin that cannot be read at all, such as a closed one, counts as empty
		in.done <- nil
		return
	}
	close(in.started)
	in.buffered.Write(first)
	_, err := in.buffered.ReadFrom(io.LimitReader(in.r, maxPipedStdinBytes))
	if err == nil && in.buffered.Len() > maxPipedStdinBytes {
		err = Verbatimf("Error: piped stdin input exceeds 10MB. Pass large content as a file path in your prompt instead.")
	}
	in.done <- err
}

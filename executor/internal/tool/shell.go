package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// ShellOptions configure a Shell. CWD is required.
type ShellOptions struct {
	CWD string // initial directory; absolute
	// Dirs are other directories that the shell may stay in.
	Dirs    []string
	Environ []string // environment of the commands ("K=V"); PWD is added
	// Script is shell code that runs before each command, in its shell. If it
	// fails, the command does not run. Nil means none.
	Script func() string
}

// Shell is the shell of one session. Its methods may be called from many goroutines.
type Shell struct {
	options ShellOptions

	mu             sync.Mutex
	startDir       string // the directory that the shell returns to
	dir            string // the directory of the next command
	backgroundJobs []*proc.Job
	closed         bool
}

// NewShell creates a shell. It starts nothing and touches no file.
func NewShell(o ShellOptions) *Shell { return &Shell{options: o, startDir: o.CWD, dir: o.CWD} }

// Dir returns the current directory.
func (s *Shell) Dir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dir
}

// Path returns the absolute form of a path. Relative paths are relative to the current directory, and "~/" is the home
// directory.
func (s *Shell) Path(p string) string {
	p = strings.TrimSpace(p)
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		if home := s.Getenv("HOME"); home != "" {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(s.Dir(), p)
}

// Getenv returns a variable of the environment of commands; of duplicates the last counts.
func (s *Shell) Getenv(key string) string { return proc.Getenv(s.options.Environ, key) }

// SetRoot changes the current directory to dir and the root directory to root.
func (s *Shell) SetRoot(root, dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startDir, s.dir = root, dir
}

// Close ends the background processes of finished commands. Running commands must be stopped by their callers. It may
// be called more than once; a closed shell starts no commands.
func (s *Shell) Close() {
	s.mu.Lock()
	left := s.backgroundJobs
	s.backgroundJobs, s.closed = nil, true
	s.mu.Unlock()
	for _, j := range left {
		j.Stop()
	}
}

// ShellCommand is a command that is running or has exited. Its caller waits for Done or calls Stop, then calls
// ExitCode once and, if the output is no longer needed, RemoveOutput.
type ShellCommand struct {
	shell  *Shell
	job    *proc.Job
	output *os.File
	dir    string // directory in which the command ended; "" means unknown
}

// cwdFD is the descriptor on which a command reports the directory it ended in: above the numbers that commands use,
// below those that bash uses for process substitution.
const cwdFD = 40

// shellWrapper runs the texts in $3 and $1 as a script, once its input reports that a guard is running. After a
// successful script it writes the directory to the file $2. It is one line, because messages of the shell count lines
// from it.
const shellWrapper = `read -r __claudeless_go || exit; exec </dev/null; __claudeless_cwd=$2 __claudeless_cmd=$1 __claudeless_pre=$3; set --; ` +
	`eval "$__claudeless_pre" && eval "$__claudeless_cmd" </dev/null && pwd -P >"$__claudeless_cwd"`

// Start runs a command line in the shell's directory. Its output goes to the file
// output, which is created; empty means a private file. ctx bounds only the start.
func (s *Shell) Start(ctx context.Context, line, output string) (*ShellCommand, error) {
	if err := checkSystem(runtime.GOOS); err != nil {
		return nil, err
	}
	if s.isClosed() {
		return nil, errors.New("the session is closed")
	}
	file, err := create(output)
	if err != nil {
		return nil, err
	}
	script := ""
	if s.options.Script != nil {
		script = s.options.Script()
	}
	job, err := run(ctx, s.command(), file, line, fmt.Sprintf("/dev/fd/%d", cwdFD), script)
	if err != nil {
		file.Close()
		return nil, err
	}
	return &ShellCommand{shell: s, job: job, output: file}, nil
}

func (s *Shell) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Stream runs a command line to its end, independently of the shell's state: it starts in the current directory and
// does not change it. Its output is written to w as it arrives; standard error is returned. When ctx ends, the
// command and all its processes end.
func (s *Shell) Stream(ctx context.Context, line string, w io.Writer) (code int, errs string, err error) {
	const most = 1 << 20 // limit of standard error
	o := proc.RunOptions{Command: s.command(), Tee: w, Limit: most}
	var res proc.Result
	for _, sh := range shells() {
		o.Path, o.Args = sh, []string{"-c", line}
		if res, err = proc.Run(ctx, o); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return exitCode(res.Exit), string(res.Stderr), err
}

// checkSystem returns an error on a system where commands cannot report the directory in which they ended.
func checkSystem(goos string) error {
	if goos == "windows" {
		return errors.New(`the Bash tool needs Linux or macOS; on Windows give the call a canned result: tool_calls = [{ tool = "Bash", input = {…}, result = "…" }]`)
	}
	return nil
}

// shells lists the shells, in the order to try them.
func shells() []string { return []string{"bash", "/bin/bash", "sh", "/bin/sh"} }

// command returns the command of a new shell, in the last directory if that still exists.
func (s *Shell) command() proc.Command {
	s.mu.Lock()
	dir, root := s.dir, s.startDir
	s.mu.Unlock()
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = root
	}
	return proc.Command{Env: append(slices.Clone(s.options.Environ), "PWD="+dir), Dir: dir}
}

// run starts the wrapper with the first available shell.
func run(ctx context.Context, c proc.Command, output *os.File, args ...string) (job *proc.Job, err error) {
	for _, sh := range shells() {
		c.Path, c.Args = sh, append([]string{"-c", shellWrapper, "/bin/bash"}, args...)
		if job, err = proc.StartJob(ctx, proc.JobOptions{Command: c, Output: output, NoteFD: cwdFD}); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return job, err
}

// create creates a file for appended output.
func create(path string) (*os.File, error) {
	if path == "" {
		file, err := os.CreateTemp("", "claudeless-")
		if err == nil {
			_ = os.Remove(file.Name()) // processes that have opened it can still use it
		}
		return file, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644)
}

// Done is closed when the command has exited.
func (c *ShellCommand) Done() <-chan struct{} { return c.job.Done() }

// Stop ends the command and all processes that it has started.
func (c *ShellCommand) Stop() { c.job.Stop() }

// Output returns the first limit bytes of the output so far.
func (c *ShellCommand) Output(limit int64) string {
	data, _ := io.ReadAll(io.NewSectionReader(c.output, 0, limit)) // read as much as possible
	return string(data)
}

// End waits for the end of the command and returns its exit code. Processes that
// the command has started run until the shell is closed.
func (c *ShellCommand) End() int {
	exit, note, left := c.job.Leave()
	c.dir = strings.TrimSuffix(string(note), "\n") // empty: the command failed or replaced the shell
	if left && !c.shell.addBackgroundJob(c.job) {
		c.job.Stop()
	}
	return exitCode(exit)
}

// addBackgroundJob stores the background processes of a finished command and drops those that have exited. It returns
// false if the shell is closed.
func (s *Shell) addBackgroundJob(job *proc.Job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.backgroundJobs = append(slices.DeleteFunc(s.backgroundJobs, (*proc.Job).AllEnded), job)
	return true
}

// Close closes the output file without removing it.
func (c *ShellCommand) Close() { c.output.Close() }

// Discard removes the output.
func (c *ShellCommand) Discard() {
	c.output.Close()
	_ = os.Remove(c.output.Name()) // the file may no longer exist
}

// exitCode returns the exit code that the real CLI shows: 1 if a signal killed the shell itself, and a special code
// for SIGTERM (observed with 2.1.329).
func exitCode(e proc.Exit) int {
	switch e.Signal {
	case "":
		return e.Code
	case "terminated":
		return 144
	}
	return 1
}

// Follow changes the shell's directory to the one in which the command ended, if the shell may be there. Otherwise
// the shell returns to its root, and reset is true. A failed command changes nothing. Call Follow only for commands
// for which the session has waited.
func (c *ShellCommand) Follow() (reset bool) {
	if c.dir == "" {
		return false
	}
	s := c.shell
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, root := range append([]string{s.startDir}, s.options.Dirs...) {
		for _, base := range []string{root, resolveLinks(root)} {
			if rel, err := filepath.Rel(base, c.dir); err == nil && filepath.IsLocal(rel) {
				s.dir = filepath.Join(root, rel)
				return false
			}
		}
	}
	s.dir = s.startDir
	return true
}

func resolveLinks(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// Package shell runs the shell commands of a session one after another. Each
// command starts in the directory in which the previous one ended, and
// background processes of earlier commands keep running.
//
// [Shell.Close] ends everything that the shell has started.
package shell

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

// Options says where commands run. CWD is required.
type Options struct {
	CWD string // where the session began; absolute
	// Dirs are directories that the shell may stay in beside CWD.
	Dirs    []string
	Environ []string // environment of the commands ("K=V"); PWD is added
	// Script is shell code that runs before each command, in its shell: where it
	// fails, the command does not run. Nil = none.
	Script func() string
}

// Shell is the shell of one session. Its methods may be called from many
// goroutines.
type Shell struct {
	o Options

	mu     sync.Mutex
	root   string // where the shell goes back to
	dir    string // where the next command begins
	left   []*proc.Job
	closed bool
}

// New makes a shell. It starts nothing and touches no file.
func New(o Options) *Shell { return &Shell{o: o, root: o.CWD, dir: o.CWD} }

// Dir is the directory the shell is in now.
func (s *Shell) Dir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dir
}

// Path makes a path absolute: it starts from where the shell is, and "~/" is the
// home directory.
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

// Getenv reads a variable of the environment of commands; the last one counts.
func (s *Shell) Getenv(key string) string { return proc.Getenv(s.o.Environ, key) }

// Enter moves the shell into dir, and makes root the directory that it stays in
// from there on.
func (s *Shell) Enter(root, dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.root, s.dir = root, dir
}

// Close ends what commands have left behind. Commands that still run are their
// callers' to stop. It may be called more than once; a closed shell starts
// nothing.
func (s *Shell) Close() {
	s.mu.Lock()
	left := s.left
	s.left, s.closed = nil, true
	s.mu.Unlock()
	for _, j := range left {
		j.Stop()
	}
}

// Command is a command that runs or has ended. Its caller waits for Done or
// stops it, and then calls End once and, if it wants no more of the output,
// Discard.
type Command struct {
	shell  *Shell
	job    *proc.Job
	output *os.File
	dir    string // where the command ended; "" = not known
}

// cwdFD is where a command leaves the directory it ended in: above what
// commands use by their own numbers, below what bash takes for process
// substitution.
const cwdFD = 40

// wrapper runs the texts in $3 and $1 as if they were the script, once it is told that somebody ends what they start. Behind
// a text that succeeds it leaves the directory in the file $2. It is one line: messages of the shell count lines from it.
const wrapper = `read -r __claudeless_go || exit; exec </dev/null; __claudeless_cwd=$2 __claudeless_cmd=$1 __claudeless_pre=$3; set --; ` +
	`eval "$__claudeless_pre" && eval "$__claudeless_cmd" </dev/null && pwd -P >"$__claudeless_cwd"`

// Start runs a command line in the shell's directory. What it prints goes to
// the file output, which is made; empty = one that nobody else sees. ctx bounds
// only the starting.
func (s *Shell) Start(ctx context.Context, line, output string) (*Command, error) {
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
	if s.o.Script != nil {
		script = s.o.Script()
	}
	job, err := run(ctx, s.command(), file, line, fmt.Sprintf("/dev/fd/%d", cwdFD), script)
	if err != nil {
		file.Close()
		return nil, err
	}
	return &Command{shell: s, job: job, output: file}, nil
}

func (s *Shell) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Stream runs a command line to its end, beside the shell: it begins where the
// shell is and moves nothing. What it prints goes to w as it comes, and what it
// says of errors is returned. The end of ctx ends it with all it has started.
func (s *Shell) Stream(ctx context.Context, line string, w io.Writer) (code int, errs string, err error) {
	const most = 1 << 20 // of what it says of errors
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

// Git runs git in a directory, beside the shell, and returns what it prints. The
// error of a git that fails is what it says.
func (s *Shell) Git(ctx context.Context, dir string, args ...string) (string, error) {
	res, err := proc.Run(ctx, proc.RunOptions{
		Command: proc.Command{Path: "git", Args: args, Dir: dir, Env: append(slices.Clone(s.o.Environ), "PWD="+dir)},
	})
	if err == nil && exitCode(res.Exit) != 0 {
		err = fmt.Errorf("git: %s", strings.TrimSpace(string(res.Stderr)))
	}
	return string(res.Stdout), err
}

// checkSystem returns an error on a system where commands cannot hand back the directory that they ended in.
func checkSystem(goos string) error {
	if goos == "windows" {
		return errors.New(`the Bash tool needs Linux or macOS; on Windows give the call a canned result: tool_calls = [{ tool = "Bash", input = {…}, result = "…" }]`)
	}
	return nil
}

// shells are tried in this order.
func shells() []string { return []string{"bash", "/bin/bash", "sh", "/bin/sh"} }

// command is a shell to come, where the last one ended if that still exists.
func (s *Shell) command() proc.Command {
	s.mu.Lock()
	dir, root := s.dir, s.root
	s.mu.Unlock()
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = root
	}
	return proc.Command{Env: append(slices.Clone(s.o.Environ), "PWD="+dir), Dir: dir}
}

// run starts the wrapper with the first shell there is.
func run(ctx context.Context, c proc.Command, output *os.File, args ...string) (job *proc.Job, err error) {
	for _, sh := range shells() {
		c.Path, c.Args = sh, append([]string{"-c", wrapper, "/bin/bash"}, args...)
		if job, err = proc.StartJob(ctx, proc.JobOptions{Command: c, Output: output, Aside: cwdFD}); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return job, err
}

// create makes a file for output that is only added to.
func create(path string) (*os.File, error) {
	if path == "" {
		file, err := os.CreateTemp("", "claudeless-")
		if err == nil {
			_ = os.Remove(file.Name()) // who has it open keeps it
		}
		return file, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644)
}

// Done is closed when the command has ended.
func (c *Command) Done() <-chan struct{} { return c.job.Done() }

// Stop ends the command with all that it has started.
func (c *Command) Stop() { c.job.Stop() }

// Output is the first limit bytes of what the command has printed so far.
func (c *Command) Output(limit int64) string {
	data, _ := io.ReadAll(io.NewSectionReader(c.output, 0, limit)) // what can be read
	return string(data)
}

// End waits for the end of the command and returns its exit code. What the
// command has started lives on until the shell is closed.
func (c *Command) End() int {
	exit, note, left := c.job.Leave()
	c.dir = strings.TrimSuffix(string(note), "\n") // empty: the command failed or replaced the shell
	if left && !c.shell.keep(c.job) {
		c.job.Stop()
	}
	return exitCode(exit)
}

// keep notes what a command has left behind, and forgets what has ended of what others have; false = nobody would end it.
func (s *Shell) keep(left *proc.Job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.left = append(slices.DeleteFunc(s.left, (*proc.Job).Over), left)
	return true
}

// Close closes the output, which stays where it is.
func (c *Command) Close() { c.output.Close() }

// Discard removes the output.
func (c *Command) Discard() {
	c.output.Close()
	_ = os.Remove(c.output.Name()) // it may be gone
}

// exitCode is the code that the real CLI shows: a signal to the shell itself
// is a 1, and SIGTERM a code of its own (observed with 2.1.329).
func exitCode(e proc.Exit) int {
	switch e.Signal {
	case "":
		return e.Code
	case "terminated":
		return 144
	}
	return 1
}

// Follow moves the shell to where the ended command was at last, if that is one
// of its directories; else the shell goes back to its root, and reset tells so. A command that failed moves nothing. It is for commands that
// the session has waited for.
func (c *Command) Follow() (reset bool) {
	if c.dir == "" {
		return false
	}
	s := c.shell
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, root := range append([]string{s.root}, s.o.Dirs...) {
		for _, base := range []string{root, resolved(root)} {
			if rel, err := filepath.Rel(base, c.dir); err == nil && filepath.IsLocal(rel) {
				s.dir = filepath.Join(root, rel)
				return false
			}
		}
	}
	s.dir = s.root
	return true
}

func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

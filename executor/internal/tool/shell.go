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
	"github.com/claudeless/claudeless/simulator/protocol"
)

// ShellOptions configure a Shell. CWD is required.
type ShellOptions struct {
	CWD     string   // initial directory; absolute
	Dirs    []string // other directories that the shell may change to
	Environ []string // environment of commands ("K=V"); PWD is added
	// Script returns shell code to run before each command. If it fails, the command does not run. Nil means no code.
	Script func() string
}

// Shell runs the commands of one session. Many goroutines may call its methods.
type Shell struct {
	options ShellOptions

	mu             sync.Mutex
	startDir       string // directory to which the shell returns after a command has left the allowed directories
	dir            string // directory of the next command
	backgroundJobs []*proc.Job
	closed         bool
}

// NewShell creates a shell. It starts no process and accesses no file.
func NewShell(o ShellOptions) *Shell { return &Shell{options: o, startDir: o.CWD, dir: o.CWD} }

// Dir returns the current directory.
func (s *Shell) Dir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dir
}

// Path returns an absolute path. A relative path is relative to the current directory, and "~" is the home directory.
func (s *Shell) Path(p string) string {
	p = protocol.TrimWhiteSpaceAroundPath(p)
	if rest, ok := strings.CutPrefix(p+"/", "~/"); ok {
		if home := s.Getenv("HOME"); home != "" {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(s.Dir(), p)
}

// Getenv returns an environment variable of commands. If it occurs several times, the last value counts.
func (s *Shell) Getenv(key string) string { return proc.Getenv(s.options.Environ, key) }

// SetDirs sets the current directory to dir. After leaving the allowed directories, the shell returns to startDir.
func (s *Shell) SetDirs(startDir, dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startDir, s.dir = startDir, dir
}

// Close stops the background processes of finished commands. Callers must stop running commands. Close may be called
// more than once. A closed shell starts no command.
func (s *Shell) Close() {
	s.mu.Lock()
	left := s.backgroundJobs
	s.backgroundJobs, s.closed = nil, true
	s.mu.Unlock()
	for _, j := range left {
		j.TerminateAndWait()
	}
}

// ShellCommand is a command that runs or has exited. The caller must first wait for Done or call Stop, then call Wait
// once, and finally call Close to keep the output file, or CloseAndRemoveOutput to remove it.
type ShellCommand struct {
	shell    *Shell
	job      *proc.Job
	output   *os.File
	startDir string // working directory in which the command started
	dir      string // working directory after the command has run; "" means unknown
}

// cwdFD is the file descriptor to which the shell writes its directory after a command. The number is above those that
// commands usually use, and below those that bash uses for process substitution.
const cwdFD = 40

// shellWrapper is the shell code around a command. It first waits for a line on standard input, which means that a guard process runs.
// Then it runs the scripts $3 and $1. If both succeed, it writes the current directory to the file $2. As in the real CLI, grep -r skips
// binary files and .git, and in ".", it prints the names of files without "./". It is a single line, because the shell counts its lines in
// the line numbers of messages.
const shellWrapper = `read -r __claudeless_go || exit; exec </dev/null; __claudeless_cwd=$2 __claudeless_cmd=$1 __claudeless_pre=$3; set --; ` +
	`grep() { local a n=$# p=0 r=; for a; do shift; n=$((n-1)); case $a in --recursive|-[rR]*|-[!-]*[rR]*) r=1;; [!-]*) p=$((p+1));; esac; ` +
	`[ "$n$r$a" = 01. ] && [ "$p" -gt 1 ] || set -- "$@" "$a"; done; ` +
	`[ -z "$r" ] || { command grep -I --exclude-dir=.git x </dev/null >/dev/null 2>&1; [ $? -gt 1 ] || set -- -I --exclude-dir=.git "$@"; }; command grep "$@"; }; ` +
	`eval "$__claudeless_pre" && eval "$__claudeless_cmd" </dev/null && pwd -P >"$__claudeless_cwd"`

// Start runs a command line in the shell's directory. The command writes to the file outputPath, which Start creates; empty means a
// temporary file. Cancelling ctx does not stop a command that has started.
func (s *Shell) Start(ctx context.Context, line, outputPath string) (*ShellCommand, error) {
	if err := checkSystemSupportsBash(runtime.GOOS); err != nil {
		return nil, err
	}
	if s.isClosed() {
		return nil, errors.New("cannot start the command: the session is closed")
	}
	file, err := openCommandOutputFile(outputPath)
	if err != nil {
		return nil, err
	}
	script := ""
	if s.options.Script != nil {
		script = s.options.Script()
	}
	command := s.newCommand()
	job, err := startWithDirectoryReport(ctx, command, file, line, fmt.Sprintf("/dev/fd/%d", cwdFD), script)
	if err != nil {
		file.Close()
		return nil, err
	}
	return &ShellCommand{shell: s, job: job, output: file, startDir: resolveLinksIfPathExists(command.Dir)}, nil
}

func (s *Shell) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// RunStreamingStdout runs a command line in the shell's directory until it exits. The command cannot change that directory. Standard output
// is written to stdout as it arrives; standard error is returned as stderr. If ctx is cancelled, all processes of the command are stopped.
func (s *Shell) RunStreamingStdout(ctx context.Context, commandLine string, stdout io.Writer) (exitStatus int, stderr string, err error) {
	const most = 1 << 20 // limit of standard error in bytes
	o := proc.RunOptions{Command: s.newCommand(), Tee: stdout, Limit: most}
	var res proc.Result
	for _, sh := range bashAndShExecutables(o.Env) {
		o.Path, o.Args = sh, []string{"-c", commandLine}
		if res, err = proc.Run(ctx, o); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return realCLIExitCode(res.Exit), string(res.Stderr), err
}

// checkSystemSupportsBash returns an error on systems on which commands cannot report their directory.
func checkSystemSupportsBash(goos string) error {
	if goos == "windows" {
		return errors.New(`the Bash tool needs Linux or macOS; on Windows give the call a canned result: tool_calls = [{ tool = "Bash", input = {…}, result = "…" }]`)
	}
	return nil
}

// bashAndShExecutables returns the shells to try, in order. The first one is $SHELL if it is a bash.
func bashAndShExecutables(environ []string) []string {
	shells := []string{"bash", "/bin/bash", "sh", "/bin/sh"}
	if path := proc.Getenv(environ, "SHELL"); filepath.Base(path) == "bash" {
		shells = append([]string{path}, shells...)
	}
	return shells
}

// newCommand returns a command that runs in the shell's directory or, if that no longer exists, in startDir.
func (s *Shell) newCommand() proc.Command {
	s.mu.Lock()
	dir, root := s.dir, s.startDir
	s.mu.Unlock()
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = root
	}
	env := append(slices.Clone(s.options.Environ), "PWD="+dir)
	shell := "/bin/bash"
	for _, path := range []string{s.Getenv("SHELL"), s.Getenv("CLAUDE_CODE_SHELL")} {
		if name := filepath.Base(path); name == "bash" || name == "zsh" { // the shells of the real CLI
			shell = path
		}
	}
	env = append(env, "SHELL="+shell)
	return proc.Command{Env: env, Dir: dir}
}

func startWithDirectoryReport(ctx context.Context, c proc.Command, output *os.File, args ...string) (job *proc.Job, err error) {
	for _, sh := range bashAndShExecutables(c.Env) {
		c.Path, c.Args = sh, append([]string{"-c", shellWrapper, "/bin/bash"}, args...)
		if job, err = proc.StartJob(ctx, proc.JobOptions{Command: c, Output: output, NoteFD: cwdFD}); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return job, err
}

func openCommandOutputFile(pathOrEmptyForTemp string) (*os.File, error) {
	if pathOrEmptyForTemp == "" {
		file, err := os.CreateTemp("", "claudeless-")
		if err == nil {
			_ = os.Remove(file.Name()) // processes that have opened it can still use it
		}
		return file, err
	}
	if err := os.MkdirAll(filepath.Dir(pathOrEmptyForTemp), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(pathOrEmptyForTemp, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o644)
}

// Done returns a channel that is closed when the command has exited.
func (c *ShellCommand) Done() <-chan struct{} { return c.job.Done() }

// Stop stops the command and all processes that it has started.
func (c *ShellCommand) Stop() { c.job.TerminateAndWait() }

// Output returns the first limit bytes of the output so far.
func (c *ShellCommand) Output(limit int64) string {
	data, _ := io.ReadAll(io.NewSectionReader(c.output, 0, limit)) // after an error, the output read so far is returned
	return string(data)
}

// Wait waits until the command exits and returns its exit code. Its background processes run until the shell closes.
func (c *ShellCommand) Wait() int {
	exit, note, left := c.job.WaitExit()
	c.dir = strings.TrimSuffix(string(note), "\n") // the note is empty if the command failed or replaced the shell
	if left && !c.shell.addBackgroundJobUnlessClosed(c.job) {
		c.job.TerminateAndWait()
	}
	return realCLIExitCode(exit)
}

// addBackgroundJobUnlessClosed stores the job of a command that left processes running. It returns false if the shell is closed.
func (s *Shell) addBackgroundJobUnlessClosed(job *proc.Job) (isAdded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.backgroundJobs = append(slices.DeleteFunc(s.backgroundJobs, (*proc.Job).ReleaseIfAllEnded), job)
	return true
}

// Close closes the output file and keeps it.
func (c *ShellCommand) Close() { c.output.Close() }

// CloseAndRemoveOutput closes and removes the output file.
func (c *ShellCommand) CloseAndRemoveOutput() {
	c.output.Close()
	_ = os.Remove(c.output.Name()) // the file may no longer exist
}

// realCLIExitCode returns e.Code; after a signal, it returns 144 for SIGTERM and 1 for others (observed with 2.1.329).
func realCLIExitCode(e proc.ExitStatus) int {
	switch e.Signal {
	case "":
		return e.Code
	case "terminated":
		return 144
	}
	return 1
}

// MoveShellToCommandEndDir moves the shell to the directory in which the command ended. If the shell may not enter this
// directory, it returns to its start directory, and the result is the forbidden directory. A command that failed or stayed where
// it started does not move the shell, because another command may have moved it in the meantime. MoveShellToCommandEndDir must
// not be called for a command that ran in the background.
func (c *ShellCommand) MoveShellToCommandEndDir() (forbiddenDir string) {
	if c.dir == "" || c.dir == c.startDir {
		return ""
	}
	s := c.shell
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, root := range append([]string{s.startDir}, s.options.Dirs...) {
		for _, base := range []string{root, resolveLinksIfPathExists(root)} {
			if rel, err := filepath.Rel(base, c.dir); err == nil && filepath.IsLocal(rel) {
				s.dir = filepath.Join(root, rel)
				return ""
			}
		}
	}
	s.dir = s.startDir
	return c.dir
}

func resolveLinksIfPathExists(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

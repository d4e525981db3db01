package procio

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // for environment_variables.txt
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// Supervise observes the process s, which runs as claude. The process must use watched instead of s, so that its streams and
// signals are recorded. When the process ends, the caller passes its error to the function end. This function writes the last
// lines of the journal and returns the exit code. commands are the subcommands of claudeless itself.
func Supervise(s *process.System, commands []string) (watched *process.System, end func(error) int) {
	fault, s := faultFromFlagOrEnvironment(s)
	w := &supervisor{sys: s, path: journalPathFromFlagOrEnv(s), judgesItself: needsToCheckOwnSetUp(s)}
	w.openJournalAndRecordStart(commands, fault)
	w.wrapper = New(Options{
		System: w.sys, Journal: w.journal, Fault: fault,
		RecordOutput: w.journal != nil && process.IsSetAndNotFalse(s.Getenv("CLAUDELESS_CAPTURE_OUTPUT")),
	})
	w.watchedSystem = w.wrapper.WrappedSystem()
	return w.watchedSystem, w.reportErrorRecordExitAndClose
}

type supervisor struct {
	sys           *process.System
	path          string // path of the journal; empty means none
	judgesItself  bool   // this process itself applies the rules of --strict
	realCacheDir  string // directory of the real claude's logs; empty means claude is simulated
	wrapper       *StreamWrapper
	watchedSystem *process.System // sys, but its streams and signals pass through wrapper
	file          *os.File
	journal       *journal.Journal // nil means none
	temp          *proc.TempDir    // directory of a temporary journal; nil means that the journal is kept
}

// openJournalAndRecordStart opens the requested journal and writes the first line. Without a request, it opens a temporary journal if this
// process applies the rules of --strict. It ignores errors, because the run reports them.
func (w *supervisor) openJournalAndRecordStart(commands []string, fault *Fault) {
	if w.path == "" && w.judgesItself {
		dir, err := proc.MakeTempDir("claudeless-strict-")
		if err != nil {
			w.judgesItself = false
			return
		}
		w.path, w.temp = filepath.Join(dir.Path, "journal.jsonl"), dir
		w.sys = w.sys.WithEnv(map[string]string{"CLAUDELESS_CAPTURE": w.path})
	}
	if w.path == "" {
		return
	}
	var err error
	if w.file, err = os.OpenFile(w.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return
	}
	w.journal = journal.New(journal.Options{W: w.file, Now: w.sys.Now, PID: w.sys.PID, Environ: w.sys.Environ})
	line := DescribeStart(w.sys, commands)
	line.LogCache = w.realCacheDir
	if fault != nil {
		line.Fault = fault.Name
	}
	w.journal.Write(line)
}

func (w *supervisor) reportErrorRecordExitAndClose(runError error) (exitCode int) {
	code := w.wrapper.ApplyFaultAndRecordExit(process.PrintErrorReturningExitCode(w.watchedSystem.Stderr, runError), flags.RefusalMessageOrEmpty(runError))
	if w.journal != nil && w.judgesItself {
		code = cmp.Or(code, w.reportStrictSetUpFindings())
	}
	if w.file != nil {
		_ = w.file.Close() // everything has been written
	}
	_ = w.temp.Remove() // a leftover directory is removed later
	return code
}

// reportStrictSetUpFindings applies the rules of --strict to the set-up of this process and prints each violation on stderr.
func (w *supervisor) reportStrictSetUpFindings() (exitCode int) {
	in := verdict.Input{Environ: w.sys.Environ, OnlyProcess: w.sys.PID}
	if err := in.ReadJournalsAndLoadScenarios([]string{w.path}, ""); err != nil {
		fmt.Fprintf(w.sys.Stderr, "claudeless: error: --strict: %v\n", err)
		return verdict.ExitSetUpFinding
	}
	report := verdict.Judge(in)
	code := 0
	for _, f := range report.SetUpErrorsAndUnmetExpectations() {
		w.journal.Write(f.JournalLine(w.sys.Now()))
		fmt.Fprintf(w.sys.Stderr, "claudeless: strict: %s\n", f)
		code = verdict.ExitSetUpFinding
	}
	return code
}

// needsToCheckOwnSetUp reports whether the process checks its own set-up: strict mode is on, and no other process checks it.
func needsToCheckOwnSetUp(s *process.System) bool {
	asked := process.IsSetAndNotFalse(s.Getenv("CLAUDELESS_STRICT")) || !s.CalledAsClaude() && slices.Contains(s.Args, "--strict")
	return asked && s.Getenv("CLAUDELESS_EXPECT") != "defer"
}

// faultFromFlagOrEnvironment returns the fault that the command line or the environment requests; nil means none. forModel is s,
// changed to request only effects on API requests and on the screen. Other effects are applied elsewhere.
func faultFromFlagOrEnvironment(s *process.System) (fault *Fault, forModel *process.System) {
	name, at, end := lastValueOfOption(s.Args, "--failure")
	if at == 0 {
		name = s.Getenv(failureEnvironmentVariable)
	}
	fault = FaultByName(name)
	if fault == nil {
		return nil, s
	}
	more := map[string]string{failureEnvironmentVariable: fault.Effects.Failure}
	if fault.Interface == "screen" {
		more["CLAUDELESS_SCREEN_FAULT"] = fault.Name
	}
	s = s.WithEnv(more)
	if at > 0 && !s.CalledAsClaude() {
		s.Args = slices.Concat(s.Args[:at], s.Args[end:])
	}
	return fault, s
}

// lastValueOfOption returns the value of the last option with this name. The option and its value are args[at:end]; at is 0 if
// the option is missing.
func lastValueOfOption(args []string, name string) (value string, at, end int) {
	for i, word := range args {
		if after, found := strings.CutPrefix(word, name+"="); found {
			value, at, end = after, i, i+1
		} else if word == name && i+1 < len(args) {
			value, at, end = args[i+1], i, i+2
		}
	}
	return value, at, end
}

const failureEnvironmentVariable = "CLAUDELESS_FAILURE"

// journalPathFromFlagOrEnv returns the journal that the command line or the environment requests. It is determined before the
// command line is parsed, because refused command lines are also recorded.
func journalPathFromFlagOrEnv(s *process.System) string {
	if path, at, _ := lastValueOfOption(s.Args, "--capture"); at > 0 && !s.CalledAsClaude() {
		return path
	}
	return s.Getenv("CLAUDELESS_CAPTURE")
}

// WithShimEnvFile returns s with the settings of a shim, which are in the file claude.env next to the binary. A line K=V sets a variable,
// and ?K=V sets it only if the caller has not. s is returned unchanged if the process is not called claude, or if the file does not exist.
func WithShimEnvFile(s *process.System) (systemWithShimVariables *process.System) {
	if !s.CalledAsClaude() {
		return s
	}
	self, err := s.Executable()
	if err != nil {
		return s
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(self), "claude.env"))
	if err != nil {
		return s
	}
	more := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line, byDefault := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "?")
		if name, value, ok := strings.Cut(line, "="); ok && (!byDefault || s.Getenv(name) == "") {
			more[name] = strings.NewReplacer(`\\`, "\\", `\n`, "\n").Replace(value)
		}
	}
	return s.WithEnv(more)
}

// RealClaudeCommandLine returns the command line of the real claude and the name of the fault to apply. The command line includes
// the options that the shim adds. argv is nil if this process is not a shim for a real claude.
func RealClaudeCommandLine(s *process.System) (argv []string, faultToApply string) {
	claude := s.Getenv("CLAUDELESS_REAL")
	if claude == "" || !s.CalledAsClaude() {
		return nil, ""
	}
	argv = []string{claude}
	for config := range strings.SplitSeq(s.Getenv("CLAUDELESS_MCP_CONFIG"), "\n") {
		if config != "" {
			argv = append(argv, "--mcp-config="+config)
		}
	}
	return append(argv, s.Args[1:]...), s.Getenv(failureEnvironmentVariable)
}

// DescribeStart returns the first journal line of a process, which describes how the process was
// started. commands are the subcommands of claudeless itself.
func DescribeStart(s *process.System, commands []string) journal.Start {
	line := journal.Start{Argv: s.Args, PPID: os.Getppid(), SecretArguments: secretArguments(s.Args, s.Environ)}
	line.CWD, _ = s.Getwd() // empty if the directory no longer exists
	line.Parent, line.SuggestedCommand = processName(line.PPID), SuggestedSubcommand(s, commands)
	if len(s.Args) > 1 && slices.Contains(claudecode.Subcommands(), s.Args[1]) {
		line.Subcommand = s.Args[1]
	}
	for _, kv := range s.Environ {
		name, value, _ := strings.Cut(kv, "=")
		// The real CLI sets these variables for its children. They must not reach a new session.
		if value != "" && (name == "CLAUDECODE" || name == "CLAUDE_CODE_SESSION_ID") {
			line.InheritedVariables = append(line.InheritedVariables, name)
		}
	}
	line.UnknownVariables = UnknownClaudelessVariables(s.Environ)
	slices.Sort(line.InheritedVariables)
	return line
}

// ClaudeSubcommandsShellPattern returns the subcommands of claude as a pattern for a shell's case statement: "agents|attach|…".
func ClaudeSubcommandsShellPattern() string { return strings.Join(claudecode.Subcommands(), "|") }

// UnknownClaudelessVariables returns the unknown CLAUDELESS_ variables in order, each with the name that was probably intended.
func UnknownClaudelessVariables(environ []string) (unknownWithSuggestions []string) {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if value == "" || !strings.HasPrefix(name, "CLAUDELESS_") || slices.Contains(strings.Fields(claudelessEnvironmentVariables), name) {
			continue
		}
		if near := diag.SimilarOtherName(name, strings.Fields(claudelessEnvironmentVariables)); near != "" {
			name += ", did you mean " + near + "?"
		}
		unknownWithSuggestions = append(unknownWithSuggestions, name)
	}
	slices.Sort(unknownWithSuggestions)
	return unknownWithSuggestions
}

// SuggestedSubcommand returns the subcommand that the first argument probably misspells. It returns an empty
// text if the argument resembles no subcommand and is therefore a prompt.
func SuggestedSubcommand(s *process.System, subcommands []string) string {
	own := s.Args
	if end := slices.Index(own, "--"); end >= 0 {
		own = own[:end] // the rest belongs to the command that exec runs
	}
	if s.CalledAsClaude() || len(own) < 2 || slices.Contains(own, "-p") || slices.Contains(own, "--print") {
		return ""
	}
	if word := s.Args[1]; !strings.HasPrefix(word, "-") && !strings.Contains(word, " ") {
		return diag.SimilarOtherName(word, subcommands)
	}
	return ""
}

// claudelessEnvironmentVariables contains all environment variables that claudeless reads.
//
//go:embed environment_variables.txt
var claudelessEnvironmentVariables string

// secretArguments returns the arguments that certainly contain a secret, as "argv[N]". These are arguments with a key
// in a known format such as sk-ant-…, or with the value of a secret environment variable.
func secretArguments(args, environ []string) (positions []string) {
	shape := regexp.MustCompile(`\b(sk-ant-[A-Za-z0-9_-]{8,}|claudeless-canary-[0-9a-f]+|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16})`)
	secret := strings.Fields("ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN OPENAI_API_KEY GITHUB_TOKEN GH_TOKEN NPM_TOKEN AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN")
	var values []string
	for _, kv := range environ {
		if name, value, _ := strings.Cut(kv, "="); len(value) >= 12 && slices.Contains(secret, name) {
			values = append(values, value)
		}
	}
	var found []string
	for i, arg := range args {
		if shape.MatchString(arg) || slices.ContainsFunc(values, func(v string) bool { return strings.Contains(arg, v) }) {
			found = append(found, fmt.Sprintf("argv[%d]", i))
		}
	}
	return found
}

// processName returns the name of a process; empty if the system does not report it.
func processName(pid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// ExecOrRunRealClaude records the start of the real claude in the journal and runs it with the command line argv. Normally the real
// claude replaces this process, so that ExecOrRunRealClaude does not return. This process stays the parent of claude, and returns its
// exit code, in four cases: a fault changes claude's output, signals or exit; the exit must be recorded
// (FaultStayParentToRecordExit); claude will probably refuse the command line; the system cannot replace a process.
func ExecOrRunRealClaude(ctx context.Context, s *process.System, fault string, argv []string) (int, error) {
	f := FaultByName(fault)
	if f == nil && fault != "" && fault != FaultNone && fault != FaultStayParentToRecordExit || len(argv) == 0 {
		return 0, fmt.Errorf("cannot start the real claude: no command was given, or the fault %q is unknown", fault)
	}
	if f != nil && f.Interface != "cli" {
		f = nil // faults of the API are applied by its server
	}
	as := *s
	as.Args = argv
	w := &supervisor{sys: &as, path: s.Getenv("CLAUDELESS_CAPTURE"), realCacheDir: realClaudeLogCacheDir(s)}
	w.openJournalAndRecordStart(nil, f)
	if w.file != nil {
		defer w.file.Close()
	}
	refusal := ""
	if len(argv) == 1 || !slices.Contains(claudecode.Subcommands(), argv[1]) {
		refusal = flags.CommandLineRefusal(as, argv[1:])
	}
	if f == nil && fault != FaultStayParentToRecordExit && refusal == "" {
		if err := proc.ReplaceProcess(proc.Command{Path: argv[0], Args: argv[1:], Env: s.Environ}); !errors.Is(err, errors.ErrUnsupported) {
			return 0, err
		}
	}
	e := New(Options{System: s, Journal: w.journal, Fault: f})
	if f == nil {
		return runAsForegroundChild(ctx, s, e, argv, refusal)
	}
	return runChildWithFault(ctx, s, e, argv)
}

// realClaudeLogCacheDir returns the directory in which a real claude with this environment keeps logs.
func realClaudeLogCacheDir(s *process.System) string {
	const name = "claude-cli-nodejs"
	switch home := s.Getenv("HOME"); runtime.GOOS {
	case "windows":
		return filepath.Join(s.Getenv("LOCALAPPDATA"), name, "Cache")
	case "darwin":
		return filepath.Join(home, "Library", "Caches", name)
	default:
		return filepath.Join(cmp.Or(s.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), name)
	}
}

// runAsForegroundChild runs the command as a child with the streams of this process, and returns its exit code. If a signal ended the
// child, this process kills itself with the same signal. If claude writes expectedRefusal to stderr, the output is recorded as the refusal.
func runAsForegroundChild(ctx context.Context, s *process.System, e *StreamWrapper, argv []string, expectedRefusal string) (int, error) {
	var said bytes.Buffer
	stderr := s.Stderr
	if expectedRefusal != "" {
		stderr = io.MultiWriter(s.Stderr, &said)
	}
	a, err := proc.StartForegroundCommand(ctx, proc.ForegroundOptions{
		Command: proc.Command{Path: argv[0], Args: argv[1:], Env: s.Environ}, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: stderr, Terminal: s.StdinIsTTY,
	})
	if err != nil {
		return 0, err
	}
	inner := e.WrappedSystem()
	exit := forwardSignalsThenKillGroup(a, inner)
	if exit.Signal != "" && inner.Lifetime != nil {
		if err := inner.Lifetime.Kill(syscall.Signal(exit.Code - 128)); err != nil {
			return exit.Code, err
		}
	}
	refusal := ""
	if firstLine, _, _ := strings.Cut(expectedRefusal, "\n"); exit.Code != 0 && strings.Contains(said.String(), firstLine) {
		refusal = strings.TrimSpace(said.String())
	}
	return e.ApplyFaultAndRecordExit(exit.Code, refusal), nil
}

// forwardSignalsThenKillGroup forwards signals to the child until it exits, and then kills the rest of its process group.
func forwardSignalsThenKillGroup(a *proc.ForegroundCommand, s *process.System) (childExit proc.ExitStatus) {
	stop := process.OnSignals(s.Lifetime, func(sig os.Signal) {
		if sig, ok := sig.(syscall.Signal); ok {
			a.SignalGroup(sig)
		}
	}, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	exit := a.WaitExit()
	stop()
	a.StopGroupAndReclaimTerminal(0)
	return exit
}

func runChildWithFault(ctx context.Context, s *process.System, e *StreamWrapper, argv []string) (int, error) {
	inner := e.WrappedSystem()
	from, to, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer from.Close()
	// stderr also needs a pipe: node makes its streams non-blocking, which also affects other users of the open file.
	loud := struct{ io.Writer }{s.Stderr}
	a, err := proc.StartForegroundCommand(ctx, proc.ForegroundOptions{
		Command: proc.Command{Path: argv[0], Args: argv[1:], Env: s.Environ}, Stdin: s.Stdin, Stdout: to, Stderr: loud, Terminal: s.StdinIsTTY,
	})
	if err := errors.Join(err, to.Close()); err != nil {
		return 0, err
	}
	copied := make(chan struct{})
	go func() { // returns when all writers have closed the pipe
		defer close(copied)
		_ = copyJSONLineByLine(inner.Stdout, from) // the reader does not read the rest
	}()
	exit := forwardSignalsThenKillGroup(a, inner)
	<-copied
	return e.ApplyFaultAndRecordExit(exit.Code, ""), nil
}

// copyJSONLineByLine copies each JSON line with its own write, and other output with a single write, because the wrapper examines the
// bytes of one write at a time.
func copyJSONLineByLine(to io.Writer, from io.Reader) error {
	var kept []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		kept = append(kept, buf[:n]...)
		for bytes.HasPrefix(kept, []byte("{")) {
			end := bytes.IndexByte(kept, '\n') + 1
			if end == 0 {
				break
			}
			if _, err := to.Write(kept[:end]); err != nil {
				return err
			}
			kept = kept[end:]
		}
		if err != nil {
			if len(kept) > 0 {
				_, err = to.Write(kept)
			}
			return err
		}
	}
}

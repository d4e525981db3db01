// Package execcmd implements the commands for a program under test: exec, shim, verify, journal and gates. Each
// command turns its flags into the options of one other package.
package execcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/procio"
	"github.com/claudeless/claudeless/internal/exec/runner"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// ReportFlags are the flags that also write the verdict as JUnit XML, JSON, HTML or annotations.
type ReportFlags struct {
	JUnit  string `name:"junit" placeholder:"FILE" help:"Write the verdict as JUnit XML to FILE"`
	GitHub bool   `name:"github" help:"Write GitHub Actions annotations to stderr, and add the result to the step summary"`
	JSON   string `name:"json" placeholder:"FILE" help:"Write the verdict as JSON to FILE"`
	HTML   string `name:"html" placeholder:"FILE" help:"Write the verdict and everything that happened as one HTML page to FILE"`
}

func (f *ReportFlags) outputFilesFromFlags(s *process.System) verdict.OutputFiles {
	r := verdict.OutputFiles{JUnit: f.JUnit, JSON: f.JSON, HTML: f.HTML, GitHub: f.GitHub, Environ: s.Environ}
	if f.GitHub {
		r.Summary = s.Getenv("GITHUB_STEP_SUMMARY")
	}
	return r
}

// ScenarioFlags are the flags that configure claude.
type ScenarioFlags struct {
	Scenario  string   `short:"s" placeholder:"FILE" help:"Scenario that replaces the model: a file, or the name of a built-in scenario"`
	MCPConfig []string `name:"mcp-config" sep:"none" placeholder:"FILE" help:"MCP configuration to add to every claude process: a file or a JSON string"`
	Capture   string   `placeholder:"FILE" help:"Overwrite FILE with the journal of all processes"`
	Strict    bool     `help:"Also fail on warnings about the scenario, such as a rule that answered no prompt"`
	Lenient   bool     `help:"Do not report findings about the test set-up (ids S01, S02, …)"`
}

// runnerSetup returns the options with absolute paths, because claude may be started in other directories.
func (f *ScenarioFlags) runnerSetup(s *process.System) (runner.ClaudeSetup, error) {
	dir, err := s.Getwd()
	if err != nil {
		return runner.ClaudeSetup{}, fmt.Errorf("finding the working directory: %w", err)
	}
	self, err := s.Executable()
	if err != nil {
		return runner.ClaudeSetup{}, fmt.Errorf("finding the path of the claudeless binary: %w", err)
	}
	out := runner.ClaudeSetup{Executable: self, Scenario: resolveFileArg(dir, f.Scenario), Lenient: f.Lenient}
	for _, c := range f.MCPConfig {
		out.MCPConfig = append(out.MCPConfig, resolveFileArg(dir, c))
	}
	return out, nil
}

// resolveFileArg makes the file name of a scenario or an MCP configuration absolute. A library name, or JSON, stays as it is.
func resolveFileArg(dir, name string) string {
	if name == "" || filepath.IsAbs(name) || strings.HasPrefix(strings.TrimSpace(name), "{") {
		return name
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil && !strings.ContainsAny(name, `/\`) && filepath.Ext(name) == "" {
		return name
	}
	return path
}

// Exec runs a command with claudeless as claude.
type Exec struct {
	ScenarioFlags       `embed:""`
	ReportFlags         `embed:""`
	AddMissingRulesFlag `embed:""`

	Guard         string         `default:"path" placeholder:"off|path|strict" help:"Block access to a real claude: off, path (with shims and a proxy; default) or strict (with a network namespace; Linux)"`
	Faults        []string       `placeholder:"NAME|all" help:"Run the command once with each of these simulated faults of claude, and report which ones it survived"`
	Real          realClaudeFlag `name:"real" placeholder:"PATH" help:"Run the real claude with the scenario as its model: --real=FILE, or CLAUDE_BIN, or the claude on PATH"`
	Pace          string         `enum:",instant,real" default:"" placeholder:"instant|real" help:"Speed of the simulated claude: without waiting (instant, the default), or no faster than the real claude (real)"`
	TerminalFlags `embed:""`
	JudgeLater    bool     `help:"Write the journal (--capture) but do not check the run; check it later with claudeless verify"`
	FreshHome     bool     `help:"Give the command an empty home directory"`
	NoRuns        bool     `name:"allow-no-runs" help:"Accept a command that never starts claude"`
	EnvFor        []string `placeholder:"NAME" help:"Also set the environment variable that tells a program where claude is: NAME is the program, such as vscode, or the name of the variable"`
	Inside        bool     `hidden:""` // this process is a helper: it prepares a watched run, then becomes the command
	OwnNetwork    bool     `hidden:""` // the run has its own network namespace
	Spoil         string   `hidden:""` // this process is a helper: it runs the real claude with this process fault; "none" means no fault
	Command       []string `arg:"" optional:"" passthrough:"" help:"Command to run and its arguments, after --"`
}

type realClaudeFlag struct {
	isSet          bool
	executablePath string // empty means that PATH is searched
}

// IsBool tells kong that the flag needs no value.
func (l *realClaudeFlag) IsBool() bool { return true }

// Decode reads the value after an equals sign.
func (l *realClaudeFlag) Decode(ctx *kong.DecodeContext) error {
	l.isSet = true
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		return ctx.Scan.PopValueInto("path", &l.executablePath)
	}
	return nil
}

// Run runs the command to its end and exits with the verdict.
func (c *Exec) Run(ctx context.Context, s *process.System) error {
	process.DelayGarbageCollection(0)
	if done, err := c.runHiddenModeIfRequested(ctx, s); done || err != nil {
		return err
	}
	if err := errors.Join(c.checkFlagsAllowJudgeLater(), c.rejectScenarioAsCommand()); err != nil {
		return err
	}
	level, err := runner.ParseGuard(c.Guard)
	if err != nil {
		return err
	}
	setup, err := c.runnerSetup(s)
	if err != nil {
		return err
	}
	if c.Pace != "" {
		if c.Real.isSet {
			return process.WithHint("--pace works only with the simulated claude", "remove --pace: the real claude starts and answers at its own speed")
		}
		setup.ExtraVariables = []string{"CLAUDELESS_PACE=" + c.Pace}
	}
	terminal, err := c.terminalOptionsOrNil(s, c.Real.isSet, len(c.Faults) > 0)
	if err != nil {
		return err
	}
	if c.Real.isSet {
		if setup.Real.Path, err = runner.FindRealClaude(c.Real.executablePath, s.Getenv, setup.Executable); err != nil {
			return err
		}
	}
	if setup.FirstStart, err = c.firstStartOptionsFromFlags(s); err != nil {
		return err
	}
	run := runner.Run
	if len(c.Faults) > 0 {
		run = runner.TryFaults
	}
	judged, in, err := run(ctx, runner.Options{
		Command: dropDoubleDash(c.Command), Setup: setup, Capture: c.Capture, RecordOutput: c.HTML != "", Guard: level,
		Rules: verdictRules(c.Strict, c.NoRuns), JudgeLater: c.JudgeLater, FreshHome: c.FreshHome, EnvFor: c.EnvFor, Faults: c.Faults, Terminal: terminal, System: s,
	})
	if judged == nil {
		return err
	}
	if !c.JudgeLater {
		in = cmp.Or(in, &verdict.Input{})
		err = errors.Join(err, c.outputFilesFromFlags(s).Write(judged, in.Entries, s.Stderr), c.writeMissingRulesIfAccepted(ctx, s, judged.Unmatched))
	}
	if code := judged.ExitCode(); code != 0 {
		return &process.ExitError{Code: code, Err: err}
	}
	return err
}

// runHiddenModeIfRequested does the work of a helper process of exec. If Inside is set, the process becomes the command of a watched
// run. If Spoil names a fault, it runs the real claude with this fault. done is false if the process is not a helper.
func (c *Exec) runHiddenModeIfRequested(ctx context.Context, s *process.System) (done bool, err error) {
	words := dropDoubleDash(c.Command)
	if c.Inside && len(words) > 1 {
		enter := runner.ExecGuarded
		if c.OwnNetwork {
			enter = runner.ExecGuardedInOwnNetwork
		}
		if err := enter(words, s.Environ); err != nil {
			return true, err
		}
		return true, &process.ExitError{Code: process.ExitFailed}
	}
	if c.Spoil == "" {
		return false, nil
	}
	if code, err := procio.ExecOrRunRealClaude(ctx, s, c.Spoil, words); code != 0 || err != nil {
		return true, &process.ExitError{Code: cmp.Or(code, process.ExitFailed), Err: err}
	}
	return true, nil
}

func (c *Exec) rejectScenarioAsCommand() error {
	if len(c.Command) == 0 || c.Scenario != "" || !slices.Contains([]string{".toml", ".json"}, filepath.Ext(c.Command[0])) {
		return nil
	}
	return process.WithHint(fmt.Sprintf("%s is a scenario, not a command", c.Command[0]), "name the scenario with -s: exec -s "+c.Command[0]+" -- CMD…")
}

// checkFlagsAllowJudgeLater refuses --judge-later together with flags that need a verdict immediately.
func (c *Exec) checkFlagsAllowJudgeLater() error {
	switch {
	case !c.JudgeLater:
		return nil
	case c.Capture == "":
		return process.WithHint("--judge-later needs --capture", "add --capture FILE, and run claudeless verify FILE later")
	case c.JUnit != "" || c.JSON != "" || c.HTML != "" || c.GitHub || c.Accept || len(c.Faults) > 0:
		return process.WithHint("--judge-later postpones the verdict, so there is nothing to report yet", "give --junit, --json, --html, --github and --accept to claudeless verify; --faults always checks the runs itself")
	}
	return nil
}

func dropDoubleDash(words []string) []string {
	if len(words) > 0 && words[0] == "--" {
		return words[1:]
	}
	return words
}

// CreateShim creates only the shim directory, for users who set PATH themselves.
type CreateShim struct {
	Dir           string `arg:"" help:"Directory to create; put it first on PATH"`
	ScenarioFlags `embed:""`
}

// Run creates the directory and prints the shell command that sets PATH.
func (c *CreateShim) Run(s *process.System) error {
	setup, err := c.runnerSetup(s)
	if err != nil {
		return err
	}
	wd, err := s.Getwd()
	if err != nil {
		return err
	}
	dir := diag.JoinUnlessAbsolute(wd, c.Dir)
	setup.Config, setup.Journal = filepath.Join(dir, ".claudeless", "config"), filepath.Join(dir, "journal.jsonl")
	if c.Capture != "" {
		setup.Journal = diag.JoinUnlessAbsolute(wd, c.Capture)
	}
	if err := runner.MakeShims(dir, setup, s.Getenv("PATH")); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Stdout, "export PATH='%s':\"$PATH\"\n", strings.ReplaceAll(dir, "'", `'\''`))
	return err
}

func verdictRules(strict, allowNoRuns bool) verdict.JudgingOptions {
	rules := verdict.JudgingOptions{Strict: strict, AllowNoRuns: allowNoRuns}
	rules.Lint.Tools = builtin.Definitions()
	return rules
}

// CheckForRepeatedScenarioOrUnknownFlag returns an error for mistakes that kong accepts: an unknown flag in place of the command
// to run, and a second scenario, which would silently replace the first.
func CheckForRepeatedScenarioOrUnknownFlag(c *kong.Context) error {
	scenarios := 0
	for _, p := range c.Path {
		if p.Flag != nil && p.Flag.Name == "scenario" {
			scenarios++
		}
	}
	if scenarios > 1 {
		return fmt.Errorf("--scenario was given %d times: join the files with `include` in one of them", scenarios)
	}
	for _, arg := range cmp.Or(c.Selected(), c.Model.Node).Positional {
		if words, _ := arg.Target.Interface().([]string); arg.Passthrough && len(words) > 0 && words[0] != "--" && strings.HasPrefix(words[0], "-") {
			return unknownFlagError(words[0], c.Flags())
		}
	}
	return nil
}

func unknownFlagError(word string, flags []*kong.Flag) error {
	word, _, _ = strings.Cut(word, "=")
	var names []string
	for _, f := range flags {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	}
	text := "unknown flag " + word
	if near := diag.SimilarOtherName(word, names); near != "" {
		text += fmt.Sprintf(", did you mean %q?", near)
	}
	return errors.New(text)
}

// TerminalFlags contains the flags of exec for the interactive claude.
type TerminalFlags struct {
	TTY      bool     `name:"tty" help:"Run the command in a new pseudo-terminal, for an interactive claude"`
	Size     string   `placeholder:"COLSxROWS" help:"Size of the pseudo-terminal, 20x5 to 500x200 (default: that of this terminal, or 110x36)"`
	Renderer string   `placeholder:"inline|fullscreen" help:"How claude draws its screen: inline or fullscreen (default)"`
	Fresh    []string `placeholder:"DIALOG|all" help:"Show these dialogs, as on a first start: trust, key, mcp, bypass, auto"`
	Trust    []string `sep:"none" placeholder:"DIR" help:"Also trust this directory; the working directory is always trusted, except with --fresh trust"`
	Screens  string   `placeholder:"DIR" help:"Write the screens and a recording (asciicast) to DIR, with secrets masked (with --tty)"`
}

func (f *TerminalFlags) terminalOptionsOrNil(s *process.System, withReal, withFaults bool) (*runner.TerminalSettings, error) {
	switch {
	case f.TTY && withFaults:
		return nil, usageError("--tty cannot be used with --faults", "run the command once without --faults")
	case !f.TTY && (f.Size != "" || f.Screens != ""):
		return nil, usageError("--size and --screens need --tty", "add --tty")
	case !withReal && !f.TTY && f.Renderer != "":
		return nil, usageError("--renderer needs --tty or --real", "add --tty to run claude in a pseudo-terminal, or --real to run the real claude")
	case f.Renderer != "" && f.Renderer != "inline" && f.Renderer != "fullscreen":
		return nil, usageError(fmt.Sprintf("unknown renderer %q", f.Renderer), "use --renderer=inline or --renderer=fullscreen")
	case !f.TTY:
		return nil, nil
	}
	screens := f.Screens
	if screens != "" && !filepath.IsAbs(screens) {
		dir, err := s.Getwd()
		if err != nil {
			return nil, fmt.Errorf("finding the working directory: %w", err)
		}
		screens = filepath.Join(dir, screens)
	}
	t, err := runner.ParseTerminalSettings(f.Size, screens)
	if err != nil {
		return nil, usageError("--size: "+err.Error(), "for example --size 110x36")
	}
	return t, nil
}

func (f *TerminalFlags) firstStartOptionsFromFlags(s *process.System) (*runner.ClaudeFirstStart, error) {
	cwd, err := s.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	start := &runner.ClaudeFirstStart{Dialogs: f.Fresh, Inline: f.Renderer == "inline", TrustedDirs: []string{cwd}}
	for _, dir := range f.Trust {
		start.TrustedDirs = append(start.TrustedDirs, diag.JoinUnlessAbsolute(cwd, dir))
	}
	if err := runner.CheckFirstStartDialogNames(f.Fresh); err != nil {
		return nil, &process.ExitError{Code: exitUsage, Err: err}
	}
	return start, nil
}

// exitUsage is the exit code for invalid combinations of terminal flags.
const exitUsage = 2

func usageError(message, hint string) error {
	return &process.ExitError{Code: exitUsage, Err: process.WithHint(message, hint)}
}

// VerifyJournalsCommand judges existing journals.
type VerifyJournalsCommand struct {
	Journals []string `arg:"" name:"journal" help:"Journals of one run or of its shards, in any order"`
	Scenario string   `short:"s" placeholder:"FILE" help:"Check every run against this scenario (default: the scenario of each run)"`
	Runs     int      `placeholder:"N" help:"Fail unless the journals contain exactly N runs of claude"`
	Shards   int      `placeholder:"N" help:"Fail unless N different journals are given"`
	Strict   bool     `help:"Also fail on warnings about the scenario, such as a rule that answered no prompt"`
	Lenient  bool     `help:"Do not report findings about the test set-up (ids S01, S02, …)"`
	NoRuns   bool     `name:"allow-no-runs" help:"Accept a journal in which claude was never started"`
	Sweep    string   `placeholder:"RUN" help:"Kill processes left over from the run whose CLAUDELESS_RUN is this id, and report each as a finding"`

	ReportFlags         `embed:""`
	AddMissingRulesFlag `embed:""`
}

// Run exits with the code that exec would have returned.
func (c *VerifyJournalsCommand) Run(ctx context.Context, s *process.System) error {
	in := verdict.Input{Environ: s.Environ, Lenient: c.Lenient, JudgingOptions: verdictRules(c.Strict, c.NoRuns), RequiredRuns: c.Runs, RequiredJournals: c.Shards}
	if c.Sweep != "" {
		runner.KillLeftoverClaudesAndServers(c.Sweep, &in)
	}
	if err := in.ReadJournalsAndLoadScenarios(c.Journals, c.Scenario); err != nil {
		return err
	}
	report := verdict.Judge(in)
	err := errors.Join(c.outputFilesFromFlags(s).Write(&report, in.Entries, s.Stderr), c.writeMissingRulesIfAccepted(ctx, s, report.Unmatched))
	if code := report.ExitCode(); code != 0 {
		return &process.ExitError{Code: code, Err: err}
	}
	return err
}

// AddMissingRulesFlag is the flag --accept, which adds missing rules.
type AddMissingRulesFlag struct {
	Accept bool `help:"For each prompt that no rule matched, add a rule to the scenario, with a placeholder answer"`
}

// writeMissingRulesIfAccepted adds rules for the unmatched prompts of a report to their scenarios, and prints what it did.
func (f *AddMissingRulesFlag) writeMissingRulesIfAccepted(ctx context.Context, s *process.System, unmatched []verdict.UnmatchedPrompt) error {
	if !f.Accept {
		return nil
	}
	prompts := map[string][]string{} // prompts by file
	for _, u := range unmatched {
		if u.File != "" {
			prompts[u.File] = append(prompts[u.File], u.Prompt)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(prompts)) {
		if err := verdict.WriteMissingRules(ctx, file, prompts[file]); err != nil {
			return fmt.Errorf("--accept: %w", err)
		}
		for _, prompt := range prompts[file] {
			fmt.Fprintf(s.Stderr, "claudeless: accepted: %s: added a rule for %q; write its answer\n", file, prompt)
		}
	}
	return nil
}

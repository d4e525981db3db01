package screenscmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/runner"
	"github.com/claudeless/claudeless/internal/screens/emulator"
	"github.com/claudeless/claudeless/internal/screens/tape"
)

type screenDetector struct {
	Name    string `toml:"name,required"`
	Command string `toml:"command,required"` // a shell command, run in Dir
	// Input is how the command receives a page. text, ansi and raw are forms of the page on stdin; with tmux, a tmux
	// pane displays the page.
	Input string `toml:"input" enum:"text,ansi,raw,tmux"`
	// Each specifies how often the command runs: once for each page, or once with a line for each page.
	Each string `toml:"each" enum:"process,lines"`
	// Answers maps the detector's answers to states. The keys are regular expressions; the first match is used.
	Answers map[string]string `toml:"answers"`
	// Accept maps states of pages to the correct answers. Pages with other states are not passed to the detector.
	Accept map[string][]string `toml:"accept"`

	// Dir is the directory of the detector's file.
	Dir string `toml:"-"`

	answers []answerPattern
}

type answerPattern struct {
	pattern *regexp.Regexp
	state   string
}

func parseDetector(file string, text []byte) (*screenDetector, diag.List) {
	ix := diag.IndexTOML(file, text)
	if problem := ix.FirstProblem(); problem != nil {
		return nil, diag.List{*problem}
	}
	d := &screenDetector{Dir: filepath.Dir(file), Input: "text", Each: "process"}
	list := ix.Bind(d)
	add := func(hint, message string, path ...any) {
		p := ix.DiagnosticAt(path, message)
		p.Hint = hint
		list = append(list, p)
	}
	for _, word := range ix.Keys(diag.Path{"answers"}) {
		pattern, err := regexp.Compile(word)
		if err != nil {
			add("", "invalid regular expression: "+err.Error(), "answers", word)
			continue
		}
		d.answers = append(d.answers, answerPattern{pattern, d.Answers[word]})
		checkState(d.Answers[word], func(hint, message string) { add(hint, message, "answers", word) })
	}
	for _, state := range ix.Keys(diag.Path{"accept"}) {
		checkState(state, func(hint, message string) { add(hint, message, "accept", state) })
		for i, right := range d.Accept[state] {
			checkState(right, func(hint, message string) { add(hint, message, "accept", state, i) })
		}
	}
	if list.Err() == nil && d.Input == "tmux" && d.Each == "lines" {
		add("a pane shows one page at a time", "`each` cannot be \"lines\" with input = \"tmux\"", "each")
	}
	list.Sort()
	return d, list
}

func checkState(state string, add func(hint, message string)) {
	if kind, _, _ := strings.Cut(state, "/"); !slices.Contains(tape.PageStates(), kind) {
		add(diag.NameHint(kind, tape.PageStates()), fmt.Sprintf("unknown state `%s`", state))
	}
}

func (d *screenDetector) stateOf(answer string) string {
	for _, a := range d.answers {
		if a.pattern.MatchString(answer) {
			return a.state
		}
	}
	return ""
}

// acceptedStates returns the correct answers for a page with this state. asked is false if the detector has no rule for
// the page, so that it is not run. A rule for a subkind (permission/bash) takes precedence over the rule for its state.
func (d *screenDetector) acceptedStates(state string) (right []string, asked bool) {
	if right, asked = d.Accept[state]; asked {
		return right, true
	}
	kind, _, _ := strings.Cut(state, "/")
	right, asked = d.Accept[kind]
	return right, asked
}

// Drive runs a program in a pseudo-terminal for a test.
type Drive struct {
	Size    string   `default:"110x36" placeholder:"COLSxROWS" help:"Size of the terminal (default 110x36)"`
	Real    bool     `help:"Write settings into CLAUDE_CONFIG_DIR that skip the first-start dialogs of the real claude"`
	Command []string `arg:"" passthrough:"" help:"The program and its arguments"`
}

// Run executes the requests on stdin, one line of JSON each, and stops the program at the end of stdin.
func (c *Drive) Run(ctx context.Context, s *process.System) error {
	size, err := emulator.ParseSize(c.Size)
	if err != nil {
		return inputError("--size: "+err.Error(), "for example --size 110x36")
	}
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return inputError("missing command", "for example: claudeless screens drive -- claude")
	}
	if c.Real {
		if err := writeFirstStartSettings(s); err != nil {
			return err
		}
	}
	ctx, signals := s.WatchSignals(ctx)
	defer signals.Stop()
	t, err := tape.StartTerminal(ctx, tape.TerminalOptions{
		Path: command[0], Args: command[1:], Env: s.Environ, Cols: size.Cols, Rows: size.Rows, Clock: machineClock{s},
	})
	if err != nil {
		return exitWith(exitScreensDiffer, fmt.Errorf("starting %s: %w", command[0], err))
	}
	defer t.Stop()
	served := make(chan error, 1)
	go func() { served <- tape.ServeTerminal(ctx, t, s.Stdin, s.Stdout) }() // returns at EOF of stdin or when this process exits
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	return process.SignalErrorOr(ctx, err)
}

// writeFirstStartSettings writes the settings of a user who has started claude before and trusts the working directory.
// If a configuration file exists, it writes nothing.
func writeFirstStartSettings(s *process.System) error {
	dir := s.Getenv("CLAUDE_CONFIG_DIR")
	if dir == "" {
		return inputError("--real needs CLAUDE_CONFIG_DIR", "set it to an empty directory")
	}
	if _, err := os.Stat(filepath.Join(dir, ".claude.json")); err == nil {
		return nil
	}
	cwd, err := s.Getwd()
	if err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	if err := (runner.FirstStart{TrustedDirs: []string{cwd}}).Write(dir, s.Getenv("ANTHROPIC_API_KEY")); err != nil {
		return fmt.Errorf("writing the settings of claude: %w", err)
	}
	return nil
}

// Package screenscmd implements the command screens: it captures the screens of the real CLI on this machine, compares them, and
// checks programs that read screens.
package screenscmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/runner"
	"github.com/claudeless/claudeless/internal/parity/suite"
	"github.com/claudeless/claudeless/internal/screens/book"
	"github.com/claudeless/claudeless/internal/screens/capture"
	"github.com/claudeless/claudeless/internal/screens/emulator"
	"github.com/claudeless/claudeless/internal/screens/tape"
)

// Screens is the command "claudeless screens".
type Screens struct {
	Capture Capture                  `cmd:"" help:"Capture the screens of the real claude by running tapes (scripts of key presses)"`
	List    List                     `cmd:"" help:"List the captured versions of claude, or the captured pages of one version"`
	Show    Show                     `cmd:"" help:"Print one captured page"`
	Where   PrintBooksDirectory      `cmd:"" help:"Print the directory of the captured pages"`
	Diff    Diff                     `cmd:"" help:"Compare the screens of two versions"`
	Check   Check                    `cmd:"" help:"Check a program that detects the state of claude from its screen"`
	Drive   Drive                    `cmd:"" help:"Run a program in a pseudo-terminal and control it with lines of JSON on stdin"`
	Anchors ListOrWriteScreenAnchors `cmd:"" help:"List the anchors of a version (short labels that identify its screens)"`
}

const (
	exitScreensDiffer  = 1
	exitBadInput       = 2
	exitPagesMisjudged = 3
)

func badInputExitError(message, hint string) error {
	return &process.ExitError{Code: exitBadInput, Err: process.WithHint(message, hint)}
}

func newExitError(code int, err error) error { return &process.ExitError{Code: code, Err: err} }

// Capture is the command that plays tapes (scripts of keys) and stores the screens that they lead to.
type Capture struct {
	Claude   string   `placeholder:"PATH|npm:VERSION|simulated" help:"The claude to capture: a program, a version from npm, or the simulated claude (default: CLAUDE_BIN, or the one on PATH)"`
	Size     []string `default:"110x36" placeholder:"COLSxROWS" help:"Sizes of the terminal (default 110x36)"`
	Renderer string   `default:"fullscreen" enum:"fullscreen,inline,both" placeholder:"MODE" help:"Rendering mode of claude: fullscreen (default), inline or both"`
	In       string   `default:"terminal" enum:"terminal,tmux,both" placeholder:"PLACE" help:"Capture claude in a terminal (default), in tmux, or in both"`
	Jobs     int      `default:"2" help:"Number of tapes to run at the same time (default 2)"`
	JSON     bool     `name:"json" help:"Print the results as JSON"`
	Tapes    []string `arg:"" optional:"" name:"tape" help:"Names of tapes, or files that end in .toml (default: all tapes)"`
}

// Run captures screens and prints how many it captured, and the seconds that this took.
func (c *Capture) Run(ctx context.Context, s *process.System) error {
	list, err := c.loadTapes(s)
	if err != nil {
		return err
	}
	self, err := s.Executable()
	if err != nil {
		return fmt.Errorf("finding the path of the claudeless binary: %w", err)
	}
	program, err := findOrFetchClaude(ctx, s, c.Claude, self)
	if err != nil {
		return newExitError(exitBadInput, err)
	}
	keys, err := c.bookIDsToCapture(program.Version)
	if err != nil {
		return err
	}
	root := book.CacheRoot(s.Environ)
	if books, err := book.List(root); err == nil && len(books) == 0 {
		fmt.Fprintf(s.Stderr, "screens are stored in %s; their text belongs to the vendor, so you decide whether to commit them\n", root)
	}
	began := s.Now()
	results, err := capture.Run(ctx, capture.Options{
		Self: self, Claude: program.Path, Root: root, Environ: s.Environ, Books: keys, Tapes: list, Clock: processSystemClock{s}, Parallel: c.Jobs, Progress: s.Stderr,
	})
	if err != nil {
		return err
	}
	return c.printResultsFailIfTapeFailed(s, results, program.Version, s.Now().Sub(began).Seconds())
}

const simulatedName = "simulated"

// findOrFetchClaude returns the claude whose screens are captured. For the simulated claude, the result has no path.
func findOrFetchClaude(ctx context.Context, s *process.System, path, excludedPath string) (suite.Program, error) {
	if version, ok := strings.CutPrefix(path, "npm:"); ok {
		return suite.FetchClaude(ctx, s, version)
	}
	if path == simulatedName {
		return suite.Program{Version: simulatedName}, nil
	}
	return suite.FindClaude(ctx, s, path, excludedPath)
}

func (c *Capture) loadTapes(s *process.System) ([]*tape.Tape, error) {
	names := c.Tapes
	if len(names) == 0 {
		names = capture.TapeNames()
	}
	var all []*tape.Tape
	var problems diag.List
	for _, name := range names {
		if !strings.HasSuffix(name, ".toml") {
			t, err := capture.LoadEmbeddedTape(name)
			if err != nil {
				return nil, newExitError(exitBadInput, err)
			}
			all = append(all, t)
			continue
		}
		text, err := diag.ReadRegularFile(name)
		if err != nil {
			return nil, newExitError(exitBadInput, fmt.Errorf("reading the tape: %w", err))
		}
		t, list := tape.Parse(name, text)
		problems = append(problems, list...)
		if t != nil {
			all = append(all, t)
		}
	}
	if problems.Err() != nil {
		diag.Render(s.Stderr, problems)
		return nil, newExitError(exitBadInput, fmt.Errorf("%d errors in tapes", len(problems)))
	}
	for _, t := range all {
		if lines := t.LinesOfSleepsOutsideMenus(); len(lines) > 0 && slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, ".toml") }) {
			fmt.Fprintf(s.Stderr, "claudeless: warning: tape %s sleeps on lines %s: wait for a text instead, or hold the step at a gate\n", t.Name, strings.Trim(fmt.Sprint(lines), "[]"))
		}
	}
	return all, nil
}

func (c *Capture) bookIDsToCapture(version string) ([]book.BookID, error) {
	renderers, places := []string{c.Renderer}, []bool{c.In == "tmux"}
	if c.Renderer == "both" {
		renderers = []string{book.RendererFullscreen, book.RendererInline}
	}
	if c.In == "both" {
		places = []bool{false, true}
	}
	var keys []book.BookID
	for _, text := range c.Size {
		size, err := emulator.ParseSize(text)
		if err != nil {
			return nil, badInputExitError("--size: "+err.Error(), "for example --size 110x36,80x24")
		}
		for _, renderer := range renderers {
			for _, tmux := range places {
				keys = append(keys, book.BookID{Version: version, Renderer: renderer, Tmux: tmux, Cols: size.Cols, Rows: size.Rows})
			}
		}
	}
	return keys, nil
}

// printResultsFailIfTapeFailed prints a summary or, with --json, all results. It fails, after printing why, if a tape failed.
func (c *Capture) printResultsFailIfTapeFailed(s *process.System, results []capture.Result, version string, seconds float64) error {
	pages, failed := 0, 0
	for i := range results {
		r := &results[i]
		pages += r.Pages - len(r.Wrong)
		if !r.Failed() {
			continue
		}
		failed++
		if r.Failure != "" {
			fmt.Fprintf(s.Stderr, "claudeless: error: %s: %s\n%s", r.Book, r.Failure, r.Details)
		}
		for _, wrong := range r.Wrong {
			fmt.Fprintf(s.Stderr, "claudeless: error: %s: %s (kept as %s)\n", r.Book, wrong, book.RejectedSuffix)
		}
	}
	if c.JSON {
		if err := s.PrintIndentedJSON(results); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(s.Stdout, "captured %d pages of %s with %d tapes in %.0f s, %d failed\n", pages, version, len(results), seconds, failed)
	}
	if failed > 0 {
		return newExitError(exitScreensDiffer, fmt.Errorf("%d of %d tapes failed", failed, len(results)))
	}
	return nil
}

// List is the command that lists books (the captured screens of a version), or the screens of a book.
type List struct {
	JSON    bool   `name:"json" help:"Print JSON"`
	Version string `arg:"" optional:"" help:"Version or directory whose pages are listed"`
}

// Run prints a line for each book of captured screens, or for each screen.
func (c *List) Run(s *process.System) error {
	root := book.CacheRoot(s.Environ)
	if c.Version == "" {
		books, err := book.List(root)
		if err != nil {
			return err
		}
		type row struct {
			book.BookID
			Pages int    `json:"pages"`
			Dir   string `json:"dir"`
		}
		rows := []row{}
		for _, b := range books {
			names, err := b.PageNames()
			if err != nil {
				return err
			}
			rows = append(rows, row{b.BookID, len(names), b.Dir})
		}
		if c.JSON {
			return s.PrintIndentedJSON(rows)
		}
		if len(rows) == 0 {
			fmt.Fprintln(s.Stderr, "no screens have been captured yet")
		}
		for _, r := range rows {
			fmt.Fprintf(s.Stdout, "%-36s %3d pages\n", r.BookID, r.Pages)
		}
		return nil
	}
	books, err := findBooks(s, c.Version)
	if err != nil {
		return err
	}
	all := []book.Page{}
	for _, b := range books {
		pages, err := b.Pages()
		if err != nil {
			return err
		}
		all = append(all, pages...)
	}
	if c.JSON {
		return s.PrintIndentedJSON(all)
	}
	for i := range all {
		fmt.Fprintf(s.Stdout, "%-30s %-22s %s\n", all[i].TapeDotName(), all[i].State, all[i].BookID)
	}
	return nil
}

func findBooks(s *process.System, name string) ([]book.Book, error) {
	books, err := book.Find(book.CacheRoot(s.Environ), name)
	if err != nil {
		return nil, err
	}
	if len(books) == 0 {
		return nil, badInputExitError(fmt.Sprintf("no screens of %s have been captured", name), "capture them first: claudeless screens capture --claude npm:"+name)
	}
	return books, nil
}

// Show is the command that prints a captured screen.
type Show struct {
	ANSI    bool   `name:"ansi" help:"Print the page with its colours and styles"`
	Version string `placeholder:"VERSION" help:"Version or directory (default: the newest captured version)"`
	Page    string `arg:"" help:"Page to print: TAPE.PAGE, or the file of a page"`
}

// Run prints the screen as it was captured from the newest version that has it.
func (c *Show) Run(s *process.System) error {
	books, err := book.List(book.CacheRoot(s.Environ))
	if c.Version != "" {
		books, err = findBooks(s, c.Version)
	}
	if err != nil {
		return err
	}
	if len(books) == 0 {
		return badInputExitError("no screens have been captured", "capture them first: claudeless screens capture --claude npm:VERSION")
	}
	var names []string
	for _, b := range slices.Backward(books) {
		all, err := b.PageNames()
		if err != nil {
			return err
		}
		names = append(names, all...)
		if !slices.Contains(all, c.Page) {
			continue
		}
		p, err := b.Read(c.Page)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(s.Stdout, map[bool]string{true: p.ANSI, false: p.Text}[c.ANSI])
		return err
	}
	return badInputExitError(fmt.Sprintf("no captured page is called %q", c.Page), diag.DidYouMean(c.Page, names))
}

// PrintBooksDirectory is the command that prints the directory of the captured screens.
type PrintBooksDirectory struct{}

// Run prints the directory in which books of captured screens are stored.
func (PrintBooksDirectory) Run(s *process.System) error {
	root := book.CacheRoot(s.Environ)
	if _, err := os.Stat(root); err != nil {
		fmt.Fprintln(s.Stderr, "no screens have been captured yet")
	}
	_, err := fmt.Fprintln(s.Stdout, root)
	return err
}

type processSystemClock struct{ system *process.System }

func (c processSystemClock) Now() time.Time { return c.system.Now() }

// After returns a channel that receives the time after d.
func (processSystemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

type screenDetector struct {
	Name    string `toml:"name,required"`
	Command string `toml:"command,required"` // a shell command, run in Dir
	// Input is how the command receives a captured screen. text, ansi and raw are forms of the screen on stdin; with tmux, a
	// tmux pane displays it.
	Input string `toml:"input" enum:"text,ansi,raw,tmux"`
	// Each specifies how often the command runs: once for each screen, or once with a line for each screen.
	Each string `toml:"each" enum:"process,lines"`
	// Answers maps the detector's answers to states. The keys are regular expressions; the first match is used.
	Answers map[string]string `toml:"answers"`
	// Accept maps the state that a captured screen shows to the answers that are correct for it. Screens with other states
	// are not passed to the detector.
	Accept map[string][]string `toml:"accept"`

	Dir string `toml:"-"` // directory of the detector's file

	answers []answerPatternWithState
}

type answerPatternWithState struct {
	pattern *regexp.Regexp
	state   string
}

func parseDetector(file string, text []byte) (*screenDetector, diag.List) {
	ix := diag.IndexTOML(file, text)
	if problem := ix.FirstPossibleProblem(); problem != nil {
		return nil, diag.List{*problem}
	}
	d := &screenDetector{Dir: filepath.Dir(file), Input: "text", Each: "process"}
	list := ix.BindFileTo(d)
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
		d.answers = append(d.answers, answerPatternWithState{pattern, d.Answers[word]})
		reportUnknownPageState(d.Answers[word], func(hint, message string) { add(hint, message, "answers", word) })
	}
	for _, state := range ix.Keys(diag.Path{"accept"}) {
		reportUnknownPageState(state, func(hint, message string) { add(hint, message, "accept", state) })
		for i, right := range d.Accept[state] {
			reportUnknownPageState(right, func(hint, message string) { add(hint, message, "accept", state, i) })
		}
	}
	if list.Err() == nil && d.Input == "tmux" && d.Each == "lines" {
		add("a pane shows one page at a time", "`each` cannot be \"lines\" with input = \"tmux\"", "each")
	}
	list.Sort()
	return d, list
}

func reportUnknownPageState(state string, addProblem func(hint, message string)) {
	if kind, _, _ := strings.Cut(state, "/"); !slices.Contains(tape.PageStates(), kind) {
		addProblem(diag.NameHint(kind, tape.PageStates()), fmt.Sprintf("unknown state `%s`", state))
	}
}

func (d *screenDetector) stateForDetectorAnswer(answer string) string {
	for _, a := range d.answers {
		if a.pattern.MatchString(answer) {
			return a.state
		}
	}
	return ""
}

// acceptedStatesForPage returns the correct answers for a screen with this state. hasRule is false if the detector has no rule
// and is therefore not run. A rule for a subkind (permission/bash) takes precedence over the rule for its state.
func (d *screenDetector) acceptedStatesForPage(pageState string) (accepted []string, hasRule bool) {
	kind, _, _ := strings.Cut(pageState, "/")
	if accepted, hasRule = d.Accept[pageState]; !hasRule {
		accepted, hasRule = d.Accept[kind]
	}
	return accepted, hasRule
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
		return badInputExitError("--size: "+err.Error(), "for example --size 110x36")
	}
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return badInputExitError("missing command", "for example: claudeless screens drive -- claude")
	}
	if c.Real {
		if err := writeFirstStartSettingsIfNone(s); err != nil {
			return err
		}
	}
	ctx, signals := s.WatchSignals(ctx)
	defer signals.StopAndCancelContext()
	t, err := tape.StartProgramInTerminal(ctx, tape.ProgramInTerminalOptions{
		Path: command[0], Args: command[1:], Env: s.Environ, Cols: size.Cols, Rows: size.Rows, Clock: processSystemClock{s},
	})
	if err != nil {
		return newExitError(exitScreensDiffer, fmt.Errorf("starting %s: %w", command[0], err))
	}
	defer t.StopProgram()
	served := make(chan error, 1)
	go func() { served <- tape.AnswerTerminalRequests(ctx, t, s.Stdin, s.Stdout) }() // returns at EOF of stdin or when this process exits
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	return process.SignalErrorOr(ctx, err)
}

// writeFirstStartSettingsIfNone writes settings of a user who trusts the working directory, unless a configuration file exists.
func writeFirstStartSettingsIfNone(s *process.System) error {
	dir := s.Getenv("CLAUDE_CONFIG_DIR")
	if dir == "" {
		return badInputExitError("--real needs CLAUDE_CONFIG_DIR", "set it to an empty directory")
	}
	if _, err := os.Stat(filepath.Join(dir, ".claude.json")); err == nil {
		return nil
	}
	cwd, err := s.Getwd()
	if err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	if err := (runner.ClaudeFirstStart{TrustedDirs: []string{cwd}}).Write(dir, s.Getenv("ANTHROPIC_API_KEY")); err != nil {
		return fmt.Errorf("writing the settings of claude: %w", err)
	}
	return nil
}

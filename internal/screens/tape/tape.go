// Package tape reads and plays tapes. A tape is a TOML file that leads an interactive program to its screens: it types,
// waits for text on the screen, opens gates of the scenario, and captures labelled screens, which are called pages.
//
// [Parse] reports all errors of a file. [Player.Play] drives any terminal program, usually an [emulator.RunningProgram].
package tape

import (
	"errors"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// Tape is one file with a script of keys. All its lists and strings may be empty.
type Tape struct {
	Name string // name of the file, without its extension

	Doc      string   `toml:"doc"`
	Scenario string   `toml:"scenario"` // the text of a scenario, or the name of a file
	Args     []string `toml:"args"`     // the arguments of the program
	Dialogs  []string `toml:"fresh"`    // names the dialogs of a first start that the program is to show; "all" means every dialog
	// Settings and MCP are the JSON of settings.json and .mcp.json; $BIN is the path of this binary.
	Settings string            `toml:"settings"`
	MCP      string            `toml:"mcp"`
	Env      []string          `toml:"env"`   // sets variables (K=V) and removes them (-K)
	Setup    string            `toml:"setup"` // a shell command that runs in the working directory first
	Files    map[string]string `toml:"files"` // files of the working directory, by path
	// Slots are the texts on the screens of this tape that depend on the run, by name: "command", "answer", "prompt". When
	// screens are compared, the name replaces the text.
	Slots map[string]string `toml:"slots"`
	Steps []Step            `toml:"steps,required"`
}

// Step is one step of a script of keys. Its parts are executed in the order of the fields; all are optional.
type Step struct {
	Line int // line in the file

	Wait   string `toml:"wait"`    // wait until the screen contains this text
	WaitRE string `toml:"wait_re"` // wait until this regular expression matches the screen
	Gone   string `toml:"gone"`    // wait until the screen does not contain this text

	SleepMS  int    `toml:"sleep_ms" min:"0"`  // wait this long
	Type     string `toml:"type"`              // type this text, and wait for its echo
	Paste    string `toml:"paste"`             // paste this text
	Select   string `toml:"select"`            // press Down until the option that begins with this text is selected
	Key      string `toml:"key"`               // press these keys: "Down Down Enter"
	Gate     string `toml:"gate"`              // open this gate of the scenario
	SettleMS int    `toml:"settle_ms" min:"0"` // wait until no output arrives for this long; 250 by default before a capture

	Snapshot string `toml:"snapshot"` // capture the screen under this name
	State    string `toml:"state"`    // the state that the screen shows
	Enter    string `toml:"enter" enum:"sends,accepts,refuses,quits,nothing"`

	Exit      *int `toml:"exit"`               // wait until the program ends, with this exit code
	TimeoutMS int  `toml:"timeout_ms" min:"0"` // bounds each wait of the step; 0 means 15000

	pattern *regexp.Regexp // compiled WaitRE
	option  *regexp.Regexp // compiled Select
	keys    []string       // bytes that the keys of Key send
}

// PageStates returns the states that a screen may show. A subkind may follow after a slash: permission/bash.
func PageStates() []string {
	return []string{"idle", "busy", "permission", "question", "plan", "dialog", "menu", "error", "ended"}
}

// FirstStartDialogs returns the names of the dialogs of a first start. A tape may list them in its key `fresh`.
func FirstStartDialogs() []string { return []string{"trust", "key", "mcp", "bypass", "auto"} }

// Parse reads a tape, which is a script of keys in TOML. The list contains every problem; if it is empty, the tape is usable.
func Parse(file string, text []byte) (*Tape, diag.List) {
	ix := diag.IndexTOML(file, text)
	if problem := ix.FirstPossibleProblem(); problem != nil {
		return nil, diag.List{*problem}
	}
	t := &Tape{Name: strings.TrimSuffix(filepath.Base(file), ".toml")}
	c := tapeChecker{index: ix, list: ix.BindFileTo(t)}
	c.compileTapeAddingProblems(t)
	c.list.Sort()
	return t, c.list
}

type tapeChecker struct {
	index *diag.SourceIndex
	list  diag.List
}

func (c *tapeChecker) addProblem(hint, message string, path ...any) {
	d := c.index.DiagnosticAt(path, message)
	d.Hint = hint
	c.list = append(c.list, d)
}

func (c *tapeChecker) compileTapeAddingProblems(t *Tape) {
	for i, name := range t.Dialogs {
		switch {
		case name == "onboarding":
			c.addProblem("remove it from the list", "`fresh` cannot contain \"onboarding\": claude would contact the vendor and exit with 1", "fresh", i)
		case name != "all" && !slices.Contains(FirstStartDialogs(), name):
			c.addProblem(diag.NameHint(name, append(FirstStartDialogs(), "all")), "`fresh` names an unknown dialog: "+backquote(name), "fresh", i)
		}
	}
	for i, kv := range t.Env {
		if name, _, ok := strings.Cut(kv, "="); name == "" || ok == strings.HasPrefix(kv, "-") {
			c.addProblem("write \"NAME=VALUE\" to set a variable, or \"-NAME\" to remove it", "`env` has the invalid entry "+backquote(kv), "env", i)
		}
	}
	pages := map[string]bool{}
	for i := range t.Steps {
		s := &t.Steps[i]
		s.Line = c.index.Pos(diag.Path{"steps", i}).Line
		c.compileStepAddingProblems(s, i)
		if s.Snapshot != "" && pages[s.Snapshot] {
			c.addProblem("choose another name", "an earlier step already has the snapshot "+backquote(s.Snapshot), "steps", i, "snapshot")
		}
		pages[s.Snapshot] = true
	}
}

func (c *tapeChecker) compileStepAddingProblems(s *Step, i int) {
	s.compile(func(key, hint, message string) { c.addProblem(hint, message, "steps", i, key) })
	if s.Snapshot != "" && !regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`).MatchString(s.Snapshot) {
		c.addProblem(`use lower-case letters, digits and "-"`, "invalid snapshot name: "+backquote(s.Snapshot), "steps", i, "snapshot")
	}
	kind, _, _ := strings.Cut(s.State, "/")
	switch {
	case s.Snapshot == "" && s.State != "":
		c.addProblem("add snapshot = \"NAME\"", "`state` requires `snapshot` in the same step", "steps", i, "state")
	case s.Snapshot != "" && s.State == "":
		c.addProblem("add state = …, one of "+strings.Join(PageStates(), ", "), "the snapshot "+s.Snapshot+" needs a `state`", "steps", i)
	case s.State != "" && !slices.Contains(PageStates(), kind):
		c.addProblem(diag.NameHint(kind, PageStates()), "unknown state "+backquote(s.State), "steps", i, "state")
	}
}

func (s *Step) compile(add func(key, hint, message string)) {
	var err error
	if s.pattern, err = regexp.Compile(s.WaitRE); err != nil {
		add("wait_re", "", "`wait_re`: "+err.Error())
	}
	s.option = regexp.MustCompile(`❯ (\d+\. )?` + regexp.QuoteMeta(s.Select))
	for name := range strings.FieldsSeq(s.Key) {
		sends, ok := KeySequence(name)
		if !ok {
			add("key", diag.DidYouMean(name, slices.Sorted(maps.Keys(namedKeys()))), "unknown key name "+backquote(name))
		}
		s.keys = append(s.keys, sends)
	}
}

// CompileStepOutsideTape checks and compiles a step that does not come from a file, for [Playback.PerformStep].
func CompileStepOutsideTape(step Step) (*Step, error) {
	var err error
	step.compile(func(_, hint, message string) {
		if hint != "" {
			message += "; " + hint
		}
		err = errors.Join(err, errors.New(message))
	})
	return &step, err
}

func backquote(s string) string { return "`" + s + "`" }

// LinesOfSleepsOutsideMenus returns the lines of the steps that sleep, except those that capture menus. These steps are a
// problem: on a busy machine a fixed sleep is too short, and the screen is captured too early.
func (t *Tape) LinesOfSleepsOutsideMenus() []int {
	var lines []int
	for _, s := range t.Steps {
		if s.SleepMS > 0 && s.State != "menu" {
			lines = append(lines, s.Line)
		}
	}
	return lines
}

package screenscmd

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/screens/tape"
)

type detector struct {
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

func parseDetector(file string, text []byte) (*detector, diag.List) {
	ix := diag.IndexTOML(file, text)
	if problem := ix.FirstProblem(); problem != nil {
		return nil, diag.List{*problem}
	}
	d := &detector{Dir: filepath.Dir(file), Input: "text", Each: "process"}
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
	kind, _, _ := strings.Cut(state, "/")
	if !slices.Contains(tape.PageStates(), kind) {
		add(diag.NameHint(kind, tape.PageStates()), fmt.Sprintf("unknown state `%s`", state))
	}
}

func (d *detector) stateOf(answer string) string {
	for _, a := range d.answers {
		if a.pattern.MatchString(answer) {
			return a.state
		}
	}
	return ""
}

// acceptedStates returns the correct answers for a page with this state. asked is false if the detector has no rule for
// the page, so that it is not run. A rule for a subkind (permission/bash) takes precedence over the rule for its state.
func (d *detector) acceptedStates(state string) (right []string, asked bool) {
	if right, asked = d.Accept[state]; asked {
		return right, true
	}
	kind, _, _ := strings.Cut(state, "/")
	right, asked = d.Accept[kind]
	return right, asked
}

package simtest

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/exec/runner"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// judge fails the test with the verdict, unless the test has already failed.
func (s *scenarioScript) judge() {
	if s.tb.Failed() || s.tb.Skipped() {
		return
	}
	for _, problem := range s.problems() {
		s.tb.Error(problem)
	}
}

// problems returns the problems of the run, one text each.
func (s *scenarioScript) problems() []string {
	in := verdict.Input{Rules: verdict.Rules{Tools: builtin.Definitions()}}
	runner.Sweep(s.runID(), &in)
	if err := in.ReadFiles([]string{s.journal()}, s.scenario()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []string{"simtest: " + err.Error()}
	}
	if in.Scenario == nil {
		loaded, err := verdict.LoadScenario(s.scenario())
		if err != nil {
			return []string{"simtest: " + err.Error()}
		}
		in.Scenario = loaded
	}
	report := verdict.Judge(in)
	var all []string
	for _, x := range report.Expectations {
		if !x.Met {
			all = append(all, s.positionText(x.File, x.Line)+x.Text+withSuffix(": ", x.Got))
		}
	}
	for _, f := range report.Findings {
		if f.Level == "error" {
			all = append(all, fmt.Sprintf("%s%s [%s]%s", s.positionText(f.File, f.Line), f.Text, f.ID, withSuffix("\n\t", f.Advice)))
		}
	}
	for _, u := range report.Unmatched {
		if said := strings.Join(all, "\n"); !strings.Contains(said, u.Prompt) {
			all = append(all, fmt.Sprintf("%s: no rule for the prompt %q%s", s.position, u.Prompt, withSuffix("\n\t", strings.Join(u.Nearest, "\n\t"))))
		}
	}
	return all
}

func withSuffix(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + text
}

// positionText returns the position of a finding: the line of the test that wrote the rule, or the line of the
// file.
func (s *scenarioScript) positionText(file string, line int) string {
	switch {
	case file == "":
		return s.position + ": "
	case s.file != "":
		return fmt.Sprintf("%s:%d: ", file, line)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := line - firstRuleLine; i >= 0 && i < len(s.rules) {
		return s.rules[i].position + ": "
	}
	return s.position + ": "
}

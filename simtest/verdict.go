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

// judge fails the test with the verdict, unless it has failed for itself.
func (s *script) judge() {
	if s.tb.Failed() || s.tb.Skipped() {
		return
	}
	for _, problem := range s.problems() {
		s.tb.Error(problem)
	}
}

// problems returns the problems of the run, one text each.
func (s *script) problems() []string {
	in := verdict.Input{Rules: verdict.Rules{Tools: builtin.Definitions()}}
	runner.Sweep(s.run(), &in)
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
			all = append(all, s.at(x.File, x.Line)+x.Text+suffix(": ", x.Got))
		}
	}
	for _, f := range report.Findings {
		if f.Level == "error" {
			all = append(all, fmt.Sprintf("%s%s [%s]%s", s.at(f.File, f.Line), f.Text, f.ID, suffix("\n\t", f.Advice)))
		}
	}
	for _, u := range report.Unmatched {
		if said := strings.Join(all, "\n"); !strings.Contains(said, u.Prompt) {
			all = append(all, fmt.Sprintf("%s: no rule for the prompt %q%s", s.place, u.Prompt, suffix("\n\t", strings.Join(u.Nearest, "\n\t"))))
		}
	}
	return all
}

func suffix(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + text
}

// at is the position of a finding: the line of the test that wrote the rule, or that
// of the file.
func (s *script) at(file string, line int) string {
	switch {
	case file == "":
		return s.place + ": "
	case s.file != "":
		return fmt.Sprintf("%s:%d: ", file, line)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := line - firstRule; i >= 0 && i < len(s.rules) {
		return s.rules[i].place + ": "
	}
	return s.place + ": "
}

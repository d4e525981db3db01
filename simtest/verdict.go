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

func (s *scenarioScript) failTestWithRunProblems() {
	if s.tb.Failed() || s.tb.Skipped() {
		return
	}
	problems, warnings := s.findProblemsOfRun()
	for _, warning := range warnings {
		s.tb.Log("warning: " + warning)
	}
	for _, problem := range problems {
		s.tb.Error(problem)
	}
}

func (s *scenarioScript) findProblemsOfRun() (testFailures, warnings []string) {
	in := verdict.Input{Rules: verdict.Rules{Tools: builtin.Definitions()}}
	runner.KillLeftovers(s.claudelessRunID(), &in)
	if err := in.ReadFiles([]string{s.journalPath()}, s.scenarioPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []string{"simtest: " + err.Error()}, nil
	}
	if in.Scenario == nil {
		loaded, err := verdict.LoadScenario(s.scenarioPath())
		if err != nil {
			return []string{"simtest: " + err.Error()}, nil
		}
		in.Scenario = loaded
	}
	report := verdict.Judge(in)
	for _, x := range report.Expectations {
		if !x.Met {
			testFailures = append(testFailures, s.positionText(x.File, x.Line)+x.Text+prefixNonEmpty(": ", x.Got))
		}
	}
	for _, f := range report.Findings {
		text := fmt.Sprintf("%s%s [%s]%s", s.positionText(f.File, f.Line), f.Text, f.ID, prefixNonEmpty("\n\t", f.Advice))
		switch f.Level {
		case "error":
			testFailures = append(testFailures, text)
		case "warn":
			warnings = append(warnings, text)
		}
	}
	for _, u := range report.Unmatched {
		if text := strings.Join(testFailures, "\n"); !strings.Contains(text, u.Prompt) {
			testFailures = append(testFailures, fmt.Sprintf("%s: no rule for the prompt %q%s", s.position, u.Prompt, prefixNonEmpty("\n\t", strings.Join(u.Nearest, "\n\t"))))
		}
	}
	return testFailures, warnings
}

func prefixNonEmpty(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// positionText returns where a finding about a line of the scenario is. If the test has a scenario file, it is that
// line; otherwise it is the line of the test that defined the rule.
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

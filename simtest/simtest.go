// Package simtest provides a scripted claude for Go tests. It prints the real CLI's events, but needs no tokens.
//
//	func TestTriage(t *testing.T) {
//		claude := simtest.New(t, simtest.Call("Bash", map[string]any{"command": "git log -1"}), "Parser bug.")
//		out, err := exec.Command(claude.Path, "-p", "triage", "--allowedTools", "Bash").Output()
//		…
//		claude.Tools() // the calls that ran
//	}
//
// The import is enough: the claude on PATH is the test binary, which runs as claude if CLAUDELESS_SIMTEST is set.
//
// When the test ends, claudeless checks the run. The test fails if a step was not reached, a prompt matched no rule, an
// expectation was not met, or the real CLI would fail. Each message contains the line that defined the rule.
//
// A script becomes a scenario, and claude behaves like the claudeless binary. `claudeless verify` makes the same checks.
package simtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/exec/runner"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// Claude is a scripted claude executable for one test. Many goroutines may call its methods.
type Claude struct {
	// Path is the path of the executable. Unless the test is parallel, it is the first claude on PATH.
	Path string

	script     *testRun
	refusalURL string // base URL of the server of newBypassRefusalServer
}

// Tool is a tool call that ran.
type Tool struct {
	Name  string
	Input json.RawMessage // an object
}

// Prompt is a prompt that the model received.
type Prompt struct {
	Text, SessionID string
	PID             int
}

// New creates a scripted claude. The steps answer the first prompt that any of its processes receives. A string is a
// text; [Call], [Say] and [Fail] create other steps. Without steps, the rules come from [Claude.On].
//
// New puts the claude first on PATH in the environment of the test, and sets a home directory, a configuration
// directory and an API key. In a parallel test it cannot change the environment: pass [Claude.Env] to commands instead.
func New(tb testing.TB, steps ...any) *Claude {
	tb.Helper()
	c := newClaude(tb, newTestRun(tb, callerPosition(), ""))
	if len(steps) > 0 {
		c.script.addRuleWithSteps(rule{pattern: map[string]any{"type": "any"}, once: true, position: c.script.position}, steps)
	}
	c.script.writeScenario()
	return c
}

// File creates a claude that uses a scenario file. Errors in it fail the test, with messages of `claudeless check`.
func File(tb testing.TB, scenarioFile string) (simulatedClaude *Claude) {
	tb.Helper()
	abs, err := filepath.Abs(scenarioFile)
	if err != nil {
		tb.Fatalf("simtest: %v", err)
	}
	if _, err := verdict.LoadScenario(abs); err != nil {
		tb.Fatalf("simtest: the scenario has mistakes\n%v", err)
	}
	return newClaude(tb, newTestRun(tb, callerPosition(), abs))
}

// On adds a rule: prompts that contain the string, or match the *regexp.Regexp, are answered with these steps.
func (c *Claude) On(prompt any, steps ...any) *Claude {
	c.script.tb.Helper()
	c.script.addRuleForPrompt(prompt, steps, callerPosition())
	c.script.writeScenario()
	return c
}

// Env returns the environment for commands that start claude ("K=V"): that of the process, and the test's variables.
func (c *Claude) Env() []string { return append(os.Environ(), c.variablesSetForTest()...) }

// Prompts returns the prompts that the model has received, in order.
func (c *Claude) Prompts() []Prompt { return c.script.prompts() }

// Tools returns the calls that have run, in the order of the model's messages. Calls of one message run concurrently.
func (c *Claude) Tools() (executedCalls []Tool) { return c.script.executedCalls() }

func newClaude(tb testing.TB, s *testRun) *Claude {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatalf("simtest: finding the test binary: %v", err)
	}
	bin := filepath.Join(s.dir, "bin")
	c := &Claude{Path: filepath.Join(bin, "claude"), script: s}
	if runtime.GOOS == "windows" {
		c.Path += ".exe"
	}
	setup := runner.ClaudeSetup{
		Executable: self, Scenario: s.scenarioPath(), Journal: s.journalPath(), Config: filepath.Join(s.dir, "config"),
		RunID: s.claudelessRunID(), ExtraVariables: []string{runAsClaudeVariable + "=1"},
	}
	if err := errors.Join(runner.MakeShims(bin, setup, os.Getenv("PATH")), os.Mkdir(c.home(), 0o700)); err != nil {
		tb.Fatalf("simtest: %v", err)
	}
	refusals := newBypassRefusalServer(s)
	tb.Cleanup(func() {
		refusals.Close() // Close waits for open requests, so that their findings are in the journal
		s.killLeftoversAndReportProblems()
	})
	c.refusalURL = refusals.URL
	c.setVariablesForTestProcess()
	return c
}

func (c *Claude) home() string { return filepath.Join(c.script.dir, "home") }

// variablesSetForTest returns the environment that New sets. It sets GOPATH and GOCACHE, whose defaults depend on HOME.
func (c *Claude) variablesSetForTest() []string {
	env := []string{
		"PATH=" + filepath.Dir(c.Path) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + c.home(),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(c.script.dir, "config"),
		"ANTHROPIC_API_KEY=claudeless-canary-" + filepath.Base(c.script.dir),
		"ANTHROPIC_BASE_URL=" + c.refusalURL,
		"CLAUDELESS_ENVIRONMENT=no-traffic",
		"GOPATH=" + build.Default.GOPATH,
	}
	if cache, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
		env = append(env, "GOCACHE="+filepath.Join(cache, "go-build"))
	}
	return env
}

// setVariablesForTestProcess sets the variables for the test. In a parallel test it does nothing, because Setenv panics there.
func (c *Claude) setVariablesForTestProcess() {
	defer func() { _ = recover() }()
	for _, kv := range c.variablesSetForTest() {
		name, value, _ := strings.Cut(kv, "=")
		c.script.tb.Setenv(name, value)
	}
}

func (s *testRun) killLeftoversAndReportProblems() {
	if s.tb.Failed() || s.tb.Skipped() {
		return
	}
	problems, warnings := s.killLeftoversAndFindProblems()
	for _, warning := range warnings {
		s.tb.Log("warning: " + warning)
	}
	for _, problem := range problems {
		s.tb.Error(problem)
	}
}

func (s *testRun) killLeftoversAndFindProblems() (testFailures, warnings []string) {
	var in verdict.Input
	in.Lint.Tools = builtin.Definitions()
	runner.KillLeftoverClaudesAndServers(s.claudelessRunID(), &in)
	if err := in.ReadJournalsAndLoadScenarios([]string{s.journalPath()}, s.scenarioPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
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

// positionText returns the position of a finding: a line of the scenario file or, if the test has no scenario file, the
// line of the test that defined the rule.
func (s *testRun) positionText(file string, line int) string {
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

package simtest

import (
	"encoding/json"
	"errors"
	"go/build"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/internal/exec/runner"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// Claude is a scripted claude executable for one test. Many goroutines may call its methods.
type Claude struct {
	// Path is the path of the executable. Unless the test is parallel, it is the first claude on PATH.
	Path string

	script     *scenarioScript
	refusalURL string // base URL of the server of newRefusalServer
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

// New creates a claude that answers one prompt with these steps: the first prompt that any of its processes receives. A
// string is a text; [Call], [Say] and [Fail] create other steps. Without steps, the rules come from [Claude.On].
//
// New puts the claude first on PATH in the environment of the test, and sets a home directory, a configuration
// directory and an API key. In a parallel test it cannot change the environment: pass [Claude.Env] to commands instead.
func New(tb testing.TB, steps ...any) *Claude {
	tb.Helper()
	c := newClaude(tb, newScenarioScript(tb, callerPosition(), ""))
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
	return newClaude(tb, newScenarioScript(tb, callerPosition(), abs))
}

// On adds a rule: prompts that contain the string, or match the *regexp.Regexp, are answered by these steps.
func (c *Claude) On(prompt any, steps ...any) *Claude {
	c.script.tb.Helper()
	c.script.addSteps(prompt, steps, callerPosition())
	c.script.writeScenario()
	return c
}

// Env returns the environment for commands that start claude ("K=V"): that of the process, and the test's variables.
func (c *Claude) Env() []string { return append(os.Environ(), c.variablesSetForTest()...) }

// Prompts returns the prompts that the model has received, in order.
func (c *Claude) Prompts() []Prompt { return c.script.prompts() }

// Tools returns the calls that have run, in the order of the model's messages. Calls of one message run concurrently.
func (c *Claude) Tools() (executedCalls []Tool) { return c.script.tools() }

func newClaude(tb testing.TB, s *scenarioScript) *Claude {
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
	refusals := newRefusalServer(s)
	tb.Cleanup(func() {
		refusals.Close() // Close waits for open requests, so that their findings are in the journal
		s.failTestWithRunProblems()
	})
	c.refusalURL = refusals.URL
	c.setVariablesForTestProcess()
	return c
}

func (c *Claude) home() string { return filepath.Join(c.script.dir, "home") }

// variablesSetForTest returns the environment that New sets. It fixes GOPATH and GOCACHE, which would otherwise change with HOME.
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

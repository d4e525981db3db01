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

// Claude is the claude of one test. Its methods may be called from many goroutines.
type Claude struct {
	// Path is the program: the first claude on PATH, where PATH was set.
	Path string

	script     *scenarioScript
	refusalURL string // the base URL: an address where every client is refused
}

// Tool is a call that ran.
type Tool struct {
	Name  string
	Input json.RawMessage // an object
}

// Prompt is a prompt that the model received.
type Prompt struct {
	Text      string
	SessionID string
	PID       int
}

// New creates a claude that answers one prompt of any process with these steps: a string is a text, and [Call], [Say]
// and [Fail] create the other steps. Without steps, the rules come from [Claude.On].
//
// New puts it first on PATH in the environment of the test, and sets a home directory, a configuration directory and
// an API key. In a parallel test it does not change the environment; pass [Claude.Env] to commands instead.
func New(tb testing.TB, steps ...any) *Claude {
	tb.Helper()
	c := open(tb, newScript(tb, callerPosition(), ""))
	if len(steps) > 0 {
		c.script.add(map[string]any{"type": "any"}, steps, onlyOnce, c.script.position)
	}
	c.script.write()
	return c
}

// File creates a claude that plays a scenario. Mistakes in the file fail the test, with the messages of `claudeless
// check`.
func File(tb testing.TB, path string) *Claude {
	tb.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		tb.Fatalf("simtest: %v", err)
	}
	if _, err := verdict.LoadScenario(abs); err != nil {
		tb.Fatalf("simtest: the scenario has mistakes\n%v", err)
	}
	return open(tb, newScript(tb, callerPosition(), abs))
}

// On adds a rule: a prompt that contains the text (or matches a *regexp.Regexp) is answered by these steps.
func (c *Claude) On(prompt any, steps ...any) *Claude {
	c.script.tb.Helper()
	c.script.addSteps(prompt, steps, callerPosition())
	c.script.write()
	return c
}

// Env returns the environment for a command that starts claude ("K=V"): the environment of this process, overridden
// by the variables of the test.
func (c *Claude) Env() []string { return append(os.Environ(), c.variables()...) }

// Prompts returns the prompts that the model has received, in order.
func (c *Claude) Prompts() []Prompt { return c.script.prompts() }

// Tools returns the calls that have run, in the order of the model's messages. Calls of one message run at the same
// time.
func (c *Claude) Tools() []Tool { return c.script.tools() }

func open(tb testing.TB, s *scenarioScript) *Claude {
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
	setup := runner.Setup{
		Self: self, Scenario: s.scenario(), Journal: s.journal(), Config: filepath.Join(s.dir, "config"),
		RunID: s.runID(), ExtraVariables: []string{playClaudeVariable + "=1"},
	}
	if err := errors.Join(runner.MakeShims(bin, setup, os.Getenv("PATH")), os.Mkdir(c.home(), 0o700)); err != nil {
		tb.Fatalf("simtest: %v", err)
	}
	refusals := newRefusalServer(s)
	tb.Cleanup(func() {
		refusals.Close() // every finding is in the journal
		s.judge()
	})
	c.refusalURL = refusals.URL
	c.setenv()
	return c
}

func (c *Claude) home() string { return filepath.Join(c.script.dir, "home") }

// variables returns the variables that New sets. The directories of the go command are kept, because they would
// otherwise change with HOME.
func (c *Claude) variables() []string {
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

// setenv sets the variables, unless the test is parallel: package testing refuses that.
func (c *Claude) setenv() {
	defer func() { _ = recover() }()
	for _, kv := range c.variables() {
		name, value, _ := strings.Cut(kv, "=")
		c.script.tb.Setenv(name, value)
	}
}

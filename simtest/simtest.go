package simtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/claudeless/claudeless/internal/harness"
	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/verdict"
)

// Claude is the claude of one test. Its methods may be called from many
// goroutines.
type Claude struct {
	// Path is the program: the first claude on PATH, where PATH was set.
	Path string

	tb    testing.TB
	dir   string
	file  string // of a scenario that is a file; empty = the rules are the scenario
	place string

	mu    sync.Mutex
	rules []*rule
}

// Tool is a call that ran.
type Tool struct {
	Name  string
	Input json.RawMessage // an object
}

// Prompt is what the model was asked.
type Prompt struct {
	Text      string
	SessionID string
	PID       int
}

// New makes a claude that answers one prompt with these steps, whichever process
// asks: a string is a text, the others are made by [Call], [Say] and [Fail].
// Without steps it has the rules of [Claude.On].
//
// The test's environment has it first on PATH, with a home directory, a
// configuration directory and a key of its own; in a test that is parallel
// already nothing is set, and [Claude.Env] is for its commands.
func New(tb testing.TB, script ...any) *Claude {
	tb.Helper()
	c := open(tb, caller(), "")
	if len(script) > 0 {
		c.add(map[string]any{"type": "any"}, script, true, c.place)
	}
	c.write()
	return c
}

// File makes a claude that plays a scenario; mistakes of the file fail the test
// as `claudeless check` shows them.
func File(tb testing.TB, path string) *Claude {
	tb.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		tb.Fatalf("simtest: %v", err)
	}
	if _, err := verdict.LoadScenario(abs); err != nil {
		tb.Fatalf("simtest: the scenario has mistakes\n%v", err)
	}
	return open(tb, caller(), abs)
}

// On adds a rule: a prompt that contains the text (or matches a *regexp.Regexp)
// is answered by these steps.
func (c *Claude) On(prompt any, script ...any) *Claude {
	c.tb.Helper()
	c.mustScript("On")
	c.add(c.pattern(prompt), script, false, caller())
	c.write()
	return c
}

// Env are the variables of a command that starts claude: those of this process
// and, over them, the test's own, as "K=V".
func (c *Claude) Env() []string {
	return append(os.Environ(), c.variables()...)
}

// Prompts are what the model was asked so far, in order.
func (c *Claude) Prompts() []Prompt {
	var all []Prompt
	for _, e := range c.entries() {
		if e.Prompt != nil && !e.Prompt.Injected {
			all = append(all, Prompt{Text: e.Prompt.Prompt, SessionID: e.SessionID, PID: e.PID})
		}
	}
	return all
}

// Tools are the calls that ran so far, in order.
func (c *Claude) Tools() []Tool {
	var all []Tool
	for _, e := range c.entries() {
		if e.Tool != nil {
			all = append(all, Tool{Name: e.Tool.Tool, Input: e.Tool.Input})
		}
	}
	return all
}

func open(tb testing.TB, place, file string) *Claude {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatalf("simtest: finding the test binary: %v", err)
	}
	c := &Claude{tb: tb, dir: tb.TempDir(), file: file, place: place}
	bin := filepath.Join(c.dir, "bin")
	c.Path = filepath.Join(bin, "claude")
	if runtime.GOOS == "windows" {
		c.Path += ".exe"
	}
	setup := harness.Setup{
		Self: self, Scenario: c.scenario(), Journal: c.journal(), Config: filepath.Join(c.dir, "config"),
		Run: filepath.Base(c.dir), Extra: []string{playClaude + "=1"},
	}
	if err := errors.Join(harness.MakeShims(bin, setup, os.Getenv("PATH")), os.Mkdir(c.home(), 0o700)); err != nil {
		tb.Fatalf("simtest: %v", err)
	}
	c.setenv()
	tb.Cleanup(c.judge)
	return c
}

func (c *Claude) home() string     { return filepath.Join(c.dir, "home") }
func (c *Claude) journal() string  { return filepath.Join(c.dir, "journal.jsonl") }
func (c *Claude) scenario() string { return cmp.Or(c.file, filepath.Join(c.dir, "scenario.json")) }

// variables are what New sets. Go's own places are kept, because without HOME
// they would move.
func (c *Claude) variables() []string {
	env := []string{
		"PATH=" + filepath.Dir(c.Path) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + c.home(),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(c.dir, "config"),
		"ANTHROPIC_API_KEY=claudeless-canary-" + filepath.Base(c.dir),
		"ANTHROPIC_BASE_URL=http://127.0.0.1:9", // nobody listens there
		"GOPATH=" + build.Default.GOPATH,
	}
	if cache, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
		env = append(env, "GOCACHE="+filepath.Join(cache, "go-build"))
	}
	return env
}

// setenv sets the variables, unless the test is parallel: then testing refuses.
func (c *Claude) setenv() {
	defer func() { _ = recover() }()
	for _, kv := range c.variables() {
		name, value, _ := strings.Cut(kv, "=")
		c.tb.Setenv(name, value)
	}
}

func (c *Claude) mustScript(what string) {
	c.tb.Helper()
	if c.file != "" {
		c.tb.Fatalf("simtest: %s: the script of this test is the file %s; a second scenario in one test is not possible", what, c.file)
	}
}

func (c *Claude) pattern(prompt any) map[string]any {
	c.tb.Helper()
	switch p := prompt.(type) {
	case string:
		return map[string]any{"type": "contains", "text": p}
	case *regexp.Regexp:
		return map[string]any{"type": "regex", "pattern": p.String()}
	}
	c.tb.Fatalf("simtest: a prompt is a string or a *regexp.Regexp, not %#v", prompt)
	return nil
}

func (c *Claude) add(pattern map[string]any, script []any, once bool, place string) {
	c.tb.Helper()
	list, err := steps(script)
	if err == nil && len(list) == 0 {
		err = errors.New("what does the model answer? Give it a step")
	}
	if err != nil {
		c.tb.Fatalf("simtest: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules = append(c.rules, &rule{pattern: pattern, steps: list, once: once, place: place})
}

// write writes the scenario beside and renames it: a claude may be reading it.
func (c *Claude) write() {
	c.tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := scenario(c.rules)
	if err == nil {
		err = os.WriteFile(c.scenario()+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(c.scenario()+".new", c.scenario())
	}
	if err != nil {
		c.tb.Fatalf("simtest: writing the scenario: %v", err)
	}
}

// entries are the lines of the journal so far; half a line is left out.
func (c *Claude) entries() []journal.Entry {
	c.tb.Helper()
	var in verdict.Input
	err := in.ReadFiles([]string{c.journal()}, c.scenario())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.tb.Errorf("simtest: %v", err)
	}
	return in.Entries
}

// judge fails the test with the verdict, unless it has failed for itself.
func (c *Claude) judge() {
	if c.tb.Failed() || c.tb.Skipped() {
		return
	}
	for _, problem := range c.problems() {
		c.tb.Error(problem)
	}
}

// caller is the file and line outside of this package that called it.
func caller() string {
	_, here, _, _ := runtime.Caller(0)
	for depth := 1; ; depth++ {
		_, file, line, ok := runtime.Caller(depth)
		if !ok {
			return "simtest"
		}
		if filepath.Dir(file) != filepath.Dir(here) || strings.HasSuffix(file, "_test.go") {
			return fmt.Sprintf("%s:%d", filepath.Base(file), line)
		}
	}
}

package flags

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/process"
)

// fakeSystem is a process without environment variables in a new directory, run by an ordinary user.
func fakeSystem(t *testing.T) (s *process.System, stderr *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	stderr = new(bytes.Buffer)
	return &process.System{
		Args: []string{"/usr/bin/claudeless"}, Stderr: stderr, UID: 1000, Getwd: func() (string, error) { return dir, nil },
	}, stderr
}

// mustParse parses a valid command line.
func mustParse(t *testing.T, args ...string) *Flags {
	t.Helper()
	s, stderr := fakeSystem(t)
	f, err := Parse(s, args)
	if err == nil {
		err = f.CheckAndNormalize(s)
	}
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	if stderr.Len() > 0 {
		t.Errorf("%q: stderr %q", args, stderr)
	}
	return f
}

func words(line string) []string {
	list := strings.Fields(line)
	for i := range list {
		if list[i] == "''" {
			list[i] = ""
		}
	}
	return list
}

// Errors in the keys of an agent, in the order of the real CLI (observed with 2.1.329).
func TestAgentFaults(t *testing.T) {
	const head = `{"x":{"description":"d","prompt":"p",`
	for raw, want := range map[string]string{
		`{"x":{"description":3,"prompt":3,"tools":3,"disallowedTools":3,"model":3,"effort":[],"permissionMode":3,"mcpServers":3,"hooks":3,` +
			`"maxTurns":"x","skills":3,"initialPrompt":3,"memory":3,"background":3,"isolation":3,"color":3}}`: `x.description: Invalid input: expected string, received number
x.tools: Invalid input: expected array, received number
x.disallowedTools: Invalid input: expected array, received number
x.prompt: Invalid input: expected string, received number
x.model: Invalid input: expected string, received number
x.effort: Invalid input
x.permissionMode: Invalid option: expected one of "acceptEdits"|"auto"|"bypassPermissions"|"default"|"dontAsk"|"plan"
x.mcpServers: Invalid input: expected array, received number
x.hooks: Invalid input: expected record, received number
x.maxTurns: Invalid input: expected number, received string
x.skills: Invalid input: expected array, received number
x.initialPrompt: Invalid input: expected string, received number
x.memory: Invalid option: expected one of "user"|"project"|"local"
x.background: Invalid input: expected boolean, received number
x.isolation: Invalid option: expected one of "worktree"|"remote"`,
		`{"x":null}`:                                `x: Invalid input: expected object, received null`,
		`{"x":{"description":"","prompt":""}}`:      `x.description: Description cannot be empty`,
		head + `"tools":["a",3]}}`:                  `x.tools.1: Invalid input: expected string, received number`,
		head + `"skills":[3,"a",null]}}`:            "x.skills.0: Invalid input: expected string, received number\nx.skills.2: Invalid input: expected string, received null",
		head + `"model":" "}}`:                      `x.model: Model cannot be empty`,
		head + `"maxTurns":1.5}}`:                   `x.maxTurns: Invalid input: expected int, received number`,
		head + `"maxTurns":0}}`:                     `x.maxTurns: Too small: expected number to be >0`,
		head + `"effort":3.5}}`:                     `x.effort: Invalid input`,
		head + `"effort":-1}}`:                      ``,
		head + `"effort":"max","color":"wibble"}}`:  ``,
		head + `"permissionMode":"manual","z":[]}}`: ``,
	} {
		if diff := cmp.Diff(want, strings.Join(AgentsProblems([]byte(raw)), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

// A value of --agents that is not an object is the name of a file.
func TestAgentsFile(t *testing.T) {
	dir := t.TempDir()
	for content, want := range map[string]string{
		`{"x":{"description":"d","prompt":"p"}}`: "",
		`[]`:                                     "Error: Invalid --agents configuration:\nInvalid input: expected record, received array\n(read from " + dir + "/a.json)",
	} {
		if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s, _ := fakeSystem(t)
		f := &Flags{CustomizationFlags: CustomizationFlags{Agents: filepath.Join(dir, "a.json")}}
		got := ""
		if err := loadAndCheckAgentsFlag(s, f); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(want, got); diff != "" || f.Agents != content {
			t.Errorf("agents %s (-want +got):\n%s", f.Agents, diff)
		}
	}
}

// Values that look wrong but are accepted without a warning.
func TestAccepted(t *testing.T) {
	for _, args := range []string{
		"-p hi --max-turns 0", "-p hi --max-turns -1", "-p hi --add-dir /does/not/exist", "-p hi --fork-session",
		"-p hi --model m --fallback-model m", "-p hi --allowedTools=NoSuchTool", "-p hi --permission-prompt-tool nope",
		"-p hi --setting-sources=", "-p hi --json-schema {}", `-p hi --agents {"a":{"description":"d","prompt":"p"}}`, "-p hi --agents ''", "-p hi --json-schema ''",
		"-p hi -c --fork-session --session-id 0F0E0D0C-0000-4000-8000-000000000000", "-p hi --effort xhigh", "-p hi --resume-session-at x -r y",
	} {
		mustParse(t, words(args)...)
	}
}

// A value of --betas is one beta; unknown ones are reported and ignored (observed with 2.1.330).
// Flags that need another program end the run: with -p with a message of the real CLI (2.1.330), otherwise as not simulated.
func TestFlagsOfOtherPrograms(t *testing.T) {
	for line, want := range map[string]string{
		"hi --bg":           "the flag --bg of claude is not simulated",
		"hi --background":   "the flag --bg of claude is not simulated",
		"-p hi --bg":        "--bg and --print conflict",
		"-p hi --cloud":     "Error: --cloud cannot be combined with --print.",
		"-p hi --desktop":   "--desktop opens the Claude Desktop app and can't run non-interactively",
		"hi --teleport x":   "the flag --teleport of claude is not simulated",
		"-p hi --file id:a": "Error: Session token required for file downloads.",
	} {
		s, _ := fakeSystem(t)
		f, err := Parse(s, words(line))
		if err == nil {
			err = f.CheckAndNormalize(s)
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func TestBetas(t *testing.T) {
	s, stderr := fakeSystem(t)
	f, err := Parse(s, []string{"-p", "hi", "--betas", knownBeta, "a," + knownBeta, "", "--betas", knownBeta})
	if err == nil {
		err = f.CheckAndNormalize(s)
	}
	if want := []string{knownBeta, knownBeta}; err != nil || !slices.Equal(f.Betas, want) {
		t.Errorf("betas %q, error %v", f.Betas, err)
	}
	if got := stderr.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "'a,"+knownBeta+"'") || !strings.Contains(got, "''") {
		t.Errorf("stderr %q", got)
	}
}

// Numbers are read as JavaScript reads them (observed with 2.1.330).
func TestNumbers(t *testing.T) {
	const bad = -1
	for value, want := range map[string]struct{ turns, budget int }{
		"":         {0, bad},
		" ":        {0, bad},
		" 2 ":      {2, 2},
		"+1":       {1, 1},
		"1e3":      {1000, 1000},
		"1.5":      {1, bad},
		"0x10":     {16, 16},
		"0B11":     {3, 3},
		"1e400":    {1e15, bad},
		"Infinity": {1e15, bad},
		"1e20":     {1e15, 1e15},
		"NaN":      {bad, bad},
		"inf":      {bad, bad},
		"1_0":      {bad, bad},
		"0x1p3":    {bad, bad},
		"-0x10":    {bad, bad},
		"+":        {bad, bad},
		"5x":       {bad, bad},
	} {
		for flag, want := range map[string]int{"max-turns": want.turns, "max-thinking-tokens": want.turns, "task-budget": want.budget} {
			s, _ := fakeSystem(t)
			got := bad
			if f, err := Parse(s, []string{"-p", "hi", "--" + flag + "=" + value}); err == nil {
				got = map[string]int{"max-turns": f.MaxTurns, "max-thinking-tokens": numberOrZero(f.MaxThinkingTokens), "task-budget": f.TaskBudget}[flag]
			}
			if got != want {
				t.Errorf("--%s %q: %d, want %d (-1 = refused)", flag, value, got, want)
			}
		}
	}
}

func TestWarningsDoNotEndTheRun(t *testing.T) {
	for _, args := range []string{"-p hi --effort bogus", "-p hi --betas bogus"} {
		s, stderr := fakeSystem(t)
		f, err := Parse(s, words(args))
		if err == nil {
			err = f.CheckAndNormalize(s)
		}
		if err != nil || !strings.HasPrefix(stderr.String(), "Warning: ") || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: error %v, stderr %q", args, err, stderr)
		}
	}
}

func TestRootMayNotSkipPermissions(t *testing.T) {
	const refusal = "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons"
	for _, tt := range []struct {
		args, env string
		uid       int
		want      string
	}{
		{"-p hi --dangerously-skip-permissions", "", 0, refusal},
		{"-p hi --allow-dangerously-skip-permissions", "", 0, refusal},
		{"-p hi --permission-mode bypassPermissions", "", 0, refusal},
		{"-p hi --permission-mode bypass-permissions", "", 0, refusal},
		{"-p hi --dangerously-skip-permissions", "IS_SANDBOX=0", 0, refusal},
		{"-p hi --dangerously-skip-permissions", "IS_SANDBOX=1", 0, ""},
		{"-p hi --dangerously-skip-permissions", "", 1000, ""},
		{"-p hi --permission-mode plan", "", 0, ""},
	} {
		s, _ := fakeSystem(t)
		s.UID, s.Environ = tt.uid, []string{tt.env}
		f, err := Parse(s, words(tt.args))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := f.CheckAndNormalize(s); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s as %d with %q: %q, want %q", tt.args, tt.uid, tt.env, got, tt.want)
		}
	}
}

func TestCompatAllowsStreamWithoutVerbose(t *testing.T) {
	s, _ := fakeSystem(t)
	s.Environ = []string{"CLAUDELESS_COMPAT=claudeless-rs"}
	f, err := Parse(s, words("-p hi --output-format stream-json"))
	if err == nil {
		err = f.CheckAndNormalize(s)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestSystemPromptFiles(t *testing.T) {
	s, _ := fakeSystem(t)
	dir, _ := s.Getwd()
	if err := os.WriteFile(filepath.Join(dir, "p.txt"), []byte("from file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string][2]string{
		"--system-prompt-file p.txt":                                      {"from file", ""},
		"--system-prompt inline --system-prompt-file p.txt":               {"inline\nfrom file", ""},
		"--append-system-prompt a --append-system-prompt-file p.txt":      {"", "a\nfrom file"},
		"--system-prompt a --append-system-prompt-file " + dir + "/p.txt": {"a", "from file"},
	} {
		f, err := Parse(s, words(args))
		if err == nil {
			err = f.CheckAndNormalize(s)
		}
		if got := [2]string{f.SystemPrompt, f.AppendSystemPrompt}; err != nil || got != want {
			t.Errorf("%s: %q, error %v, want %q", args, got, err, want)
		}
	}
}

// BenchmarkStart measures the start-up cost of every run.
func BenchmarkStart(b *testing.B) {
	s := &process.System{Args: []string{"claudeless", "-p", "hi", "--output-format", "json", "--model=x"}, Stdout: io.Discard, Stderr: io.Discard, UID: 1}
	for b.Loop() {
		f, err := Parse(s, s.Args[1:])
		if err == nil {
			err = f.CheckAndNormalize(s)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func numberOrZero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

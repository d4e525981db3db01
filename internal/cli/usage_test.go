package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const noInput = "Error: Input must be provided either through stdin or as a prompt argument when using --print\n"

// Usage errors are on stderr, word for word, with an empty stdout and exit code 1, under both names (checklist row 4).
func TestUsageErrors(t *testing.T) {
	const uuid = "0f0e0d0c-0000-4000-8000-000000000000"
	tests := []struct {
		args string // words at blanks; '' is an empty word
		want string
	}{
		{"--frobnicate", "error: unknown option '--frobnicate'\n"},
		{"-p hi --frobnicate=1", "error: unknown option '--frobnicate=1'\n"},
		{"--outputs-format json", "error: unknown option '--outputs-format'\n(Did you mean --output-format?)\n"},
		{"--output-format", "error: option '--output-format <format>' argument missing\n"},
		{"-p hi --output-format xml", "error: option '--output-format <format>' argument 'xml' is invalid. Allowed choices are text, json, stream-json.\n"},
		{"-p hi --input-format=xml", "error: option '--input-format <format>' argument 'xml' is invalid. Allowed choices are text, stream-json.\n"},
		{"-p hi --permission-mode bogus", "error: option '--permission-mode <mode>' argument 'bogus' is invalid. Allowed choices are acceptEdits, auto, bypassPermissions, manual, dontAsk, plan.\n"},
		{"-p hi --max-turns abc", "error: option '--max-turns <turns>' argument 'abc' is invalid. must be a number\n"},
		{"-p hi --max-budget-usd -1", "error: option '--max-budget-usd <amount>' argument '-1' is invalid. --max-budget-usd must be a number greater than 0\n"},
		{"-p hi --max-budget-usd 0", "error: option '--max-budget-usd <amount>' argument '0' is invalid. --max-budget-usd must be a number greater than 0\n"},
		{"-p hi --max-budget-usd=x", "error: option '--max-budget-usd <amount>' argument 'x' is invalid. --max-budget-usd must be a number greater than 0\n"},
		{"mcp frobnicate", "error: unknown command 'frobnicate'\n"},
		{"-p hi --output-format stream-json", "Error: When using --print, --output-format=stream-json requires --verbose\n"},
		{"hi --output-format=stream-json", "Error: When using --print, --output-format=stream-json requires --verbose\n"},
		{"-p --input-format stream-json", "Error: --input-format=stream-json requires output-format=stream-json.\n"},
		{"-p --input-format stream-json --output-format json", "Error: --input-format=stream-json requires output-format=stream-json.\n"},
		{"-p hi --include-partial-messages", "Error: --include-partial-messages requires --print and --output-format=stream-json.\n"},
		{"-p hi --include-partial-messages --output-format json", "Error: --include-partial-messages requires --print and --output-format=stream-json.\n"},
		{"-p hi --replay-user-messages", "Error: --replay-user-messages requires both --input-format=stream-json and --output-format=stream-json.\n"},
		{"-p hi --replay-user-messages --output-format stream-json --verbose", "Error: --replay-user-messages requires both --input-format=stream-json and --output-format=stream-json.\n"},
		{"-p hi --session-id nope", "Error: Invalid session ID. Must be a valid UUID.\n"},
		{"-p hi -c --session-id " + uuid, "Error: --session-id with --continue or --resume also needs --fork-session.\n"},
		{"-p hi --resume x --session-id " + uuid, "Error: --session-id with --continue or --resume also needs --fork-session.\n"},
		{"-p hi --resume-session-at x", "Error: --resume-session-at requires --resume\n"},
		{"-p hi --setting-sources user,bogus", "Error processing --setting-sources: Invalid setting source: bogus. Valid options are: user, project, local\n"},
		{"-p hi --json-schema []", "Error: --json-schema must be a JSON object\n"},
		{"-p hi --json-schema true", "Error: --json-schema must be a JSON object\n"},
		{"-p hi --system-prompt-file nope.txt", "Error: System prompt file not found: DIR/nope.txt\n"},
		{"-p hi --agents []", "Error: Invalid --agents configuration:\nInvalid input: expected record, received array\n"},
		{`-p hi --agents {`, "Error: Invalid --agents configuration:\ninvalid JSON: JSON Parse error: Expected '}'\n"},
		{"-p hi --agents null", "Error: --agents file not found: DIR/null (a value that is not a JSON object is read as a file path)\n"},
		{`-p hi --json-schema {`, "Error: --json-schema is not valid JSON: JSON Parse error: Expected '}'\n"},
		{`-p hi --json-schema ./s.json`, "Error: --json-schema is not valid JSON: JSON Parse error: Unexpected token '.'\n"},
	}
	for _, program := range []string{"/opt/bin/claude", "claudeless"} {
		for _, tt := range tests {
			t.Run(filepath.Base(program)+" "+tt.args, func(t *testing.T) {
				s, stdout, stderr := fakeSystem(t, words(tt.args)...)
				s.Args[0] = program
				s.Stdin = untouchable{t}
				code := Run(context.Background(), s)
				dir, _ := s.Getwd()
				got := strings.ReplaceAll(stderr.String(), dir, "DIR")
				if diff := cmp.Diff(tt.want, got); diff != "" || code != 1 || stdout.Len() > 0 {
					t.Errorf("exit code %d, stdout %q, stderr (-want +got):\n%s", code, stdout, diff)
				}
			})
		}
	}
}

func words(line string) []string {
	list := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' })
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], "\u00a0", " ")
		if list[i] == "''" {
			list[i] = ""
		}
	}
	return list
}

// Texts of which only the beginning was recorded.
func TestUsageErrorsByPrefix(t *testing.T) {
	for args, want := range map[string]string{
		`-p hi --agents {"a":{"prompt":"x"}}`: "Error: Invalid --agents configuration:\na.description: ",
		`-p hi --resume`:                      "Error: --resume requires a valid session ID or session title when used with --print. ",
	} {
		s, stdout, stderr := fakeSystem(t, words(args)...)
		code := Run(context.Background(), s)
		if code != 1 || stdout.Len() > 0 || !strings.HasPrefix(stderr.String(), want) || !strings.HasSuffix(stderr.String(), "\n") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", args, code, stdout, stderr, want)
		}
	}
}

// The keys of an agent, in the order of the real CLI (observed with 2.1.329).
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
		head + `"model":" "}}`:                      `x.model: Model cannot be empty`,
		head + `"maxTurns":1.5}}`:                   `x.maxTurns: Invalid input: expected int, received number`,
		head + `"maxTurns":0}}`:                     `x.maxTurns: Too small: expected number to be >0`,
		head + `"effort":3.5}}`:                     `x.effort: Invalid input`,
		head + `"effort":-1}}`:                      ``,
		head + `"effort":"max","color":"wibble"}}`:  ``,
		head + `"permissionMode":"manual","z":[]}}`: ``,
	} {
		if diff := cmp.Diff(want, strings.Join(agentsFaults([]byte(raw)), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

// A value of --agents that is no object is the name of a file.
func TestAgentsFile(t *testing.T) {
	dir := t.TempDir()
	for content, want := range map[string]string{
		`{"x":{"description":"d","prompt":"p"}}`: "",
		`[]`:                                     "Error: Invalid --agents configuration:\nInvalid input: expected record, received array\n(read from " + dir + "/a.json)",
	} {
		if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s, _, _ := fakeSystem(t)
		f := &Flags{Agents: filepath.Join(dir, "a.json")}
		got := ""
		if err := checkAgents(s, f); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(want, got); diff != "" || f.Agents != content {
			t.Errorf("agents %s (-want +got):\n%s", f.Agents, diff)
		}
	}
}

// What looks wrong and is accepted without a word.
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

func TestWarningsDoNotEndTheRun(t *testing.T) {
	for _, args := range []string{"-p hi --effort bogus", "-p hi --betas bogus"} {
		s, _, stderr := fakeSystem(t)
		f, err := parseFlags(s, words(args))
		if err == nil {
			err = checkFlags(s, f)
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
		s, _, _ := fakeSystem(t)
		s.UID, s.Environ = tt.uid, []string{tt.env}
		f, err := parseFlags(s, words(tt.args))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := checkFlags(s, f); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s as %d with %q: %q, want %q", tt.args, tt.uid, tt.env, got, tt.want)
		}
	}
}

func TestCompatAllowsStreamWithoutVerbose(t *testing.T) {
	s, _, _ := fakeSystem(t)
	s.Environ = []string{"CLAUDELESS_COMPAT=claudeless-rs"}
	f, err := parseFlags(s, words("-p hi --output-format stream-json"))
	if err == nil {
		err = checkFlags(s, f)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestSystemPromptFiles(t *testing.T) {
	s, _, _ := fakeSystem(t)
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
		f, err := parseFlags(s, words(args))
		if err == nil {
			err = checkFlags(s, f)
		}
		if got := [2]string{f.SystemPrompt, f.AppendSystemPrompt}; err != nil || got != want {
			t.Errorf("%s: %q, error %v, want %q", args, got, err, want)
		}
	}
}

func TestFixedTexts(t *testing.T) {
	for want, err := range map[string]error{
		"Session ID x is already in use.":                    sessionInUse("x"),
		"--agent 'nosuch' not found. Available agents: a, b": agentNotFound("nosuch", []string{"a", "b"}),
	} {
		if got := strings.TrimPrefix(err.Error(), "Error: "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

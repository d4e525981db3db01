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
		`-p hi --json-schema {`:                   "Error: --json-schema is not valid JSON: ",
		`-p hi --json-schema ''`:                  "Error: --json-schema is not valid JSON: ",
		`-p hi --json-schema schema.json`:         "Error: --json-schema is not valid JSON: ",
		`-p hi --json-schema {"type":"nope"}`:     "Error: --json-schema is not a valid JSON Schema: ",
		`-p hi --json-schema {"$ref":"file:///"}`: "Error: --json-schema is not a valid JSON Schema: ",
		`-p hi --agents {`:                        "Error: Invalid --agents configuration:\ninvalid JSON: ",
		`-p hi --agents {"a":{"prompt":"x"}}`:     "Error: Invalid --agents configuration:\na.description: ",
		`-p hi --resume`:                          "Error: --resume requires a valid session ID or session title when used with --print. ",
	} {
		s, stdout, stderr := fakeSystem(t, words(args)...)
		code := Run(context.Background(), s)
		if code != 1 || stdout.Len() > 0 || !strings.HasPrefix(stderr.String(), want) || !strings.HasSuffix(stderr.String(), "\n") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", args, code, stdout, stderr, want)
		}
	}
}

// What looks wrong and is accepted without a word.
func TestAccepted(t *testing.T) {
	for _, args := range []string{
		"-p hi --max-turns 0", "-p hi --max-turns -1", "-p hi --add-dir /does/not/exist", "-p hi --fork-session",
		"-p hi --model m --fallback-model m", "-p hi --allowedTools=NoSuchTool", "-p hi --permission-prompt-tool nope",
		"-p hi --setting-sources=", "-p hi --json-schema {}", `-p hi --agents {"a":{"description":"d","prompt":"p"}}`, "-p hi --agents ''",
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

package cli

import (
	"context"
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
		{"-p hi --prompt-suggestions foo", "error: option '--prompt-suggestions [value]' argument 'foo' is invalid. Allowed choices are true, false, 1, 0, yes, no, on, off.\n"},
		{"-p hi --system-prompt-snapshot foo", "error: option '--system-prompt-snapshot <on|off>' argument 'foo' is invalid. Allowed choices are on, off.\n"},
		{"-p hi --autocompact 99k", "error: option '--autocompact <auto|tokens>' argument '99k' is invalid. It must be 'auto', or at least 100k (e.g. 500k, 200000, or 200 as shorthand)\n"},
		{"-p hi --prompt-suggestions", "Error: --prompt-suggestions requires --print and --output-format=stream-json (prompt_suggestion messages only appear in stream-json output).\n"},
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
		{"-p hi --forward-subagent-text", "Error: --forward-subagent-text requires --print and --output-format=stream-json.\n"},
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
				s.Stdin = forbiddenStdin{t}
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

// Error texts of which only the beginning was recorded.
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

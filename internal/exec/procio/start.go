package procio

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// DescribeStart returns the first journal line of a process: how it was started. commands are the subcommands of
// claudeless itself.
func DescribeStart(s *process.System, commands []string) journal.Start {
	line := journal.Start{Argv: s.Args, PPID: os.Getppid(), SecretArguments: secretArguments(s.Args, s.Environ)}
	line.CWD, _ = s.Getwd() // empty if the directory no longer exists
	line.Parent, line.SuggestedCommand = processName(line.PPID), SuggestCommand(s, commands)
	if len(s.Args) > 1 && slices.Contains(claudecode.Subcommands(), s.Args[1]) {
		line.Subcommand = s.Args[1]
	}
	for _, kv := range s.Environ {
		name, value, _ := strings.Cut(kv, "=")
		if value != "" && slices.Contains(inheritedVariables(), name) {
			line.InheritedVariables = append(line.InheritedVariables, name)
		}
	}
	line.UnknownVariables = UnknownVariables(s.Environ)
	slices.Sort(line.InheritedVariables)
	return line
}

// SubcommandPattern returns a pattern for the shell's case that matches the subcommands of claude.
func SubcommandPattern() string { return strings.Join(claudecode.Subcommands(), "|") }

// UnknownVariables returns the unknown variables that begin with CLAUDELESS_, in order, each with the name that was
// probably intended.
func UnknownVariables(environ []string) (unknown []string) {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if value == "" || !strings.HasPrefix(name, "CLAUDELESS_") || slices.Contains(KnownVariables(), name) {
			continue
		}
		if near := diag.Nearest(name, KnownVariables()); near != "" {
			name += ", did you mean " + near + "?"
		}
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	return unknown
}

// SuggestCommand returns the subcommand that the first argument almost spells; empty means it is a prompt.
func SuggestCommand(s *process.System, commands []string) string {
	if s.CalledAsClaude() || len(s.Args) < 2 || slices.Contains(s.Args, "-p") || slices.Contains(s.Args, "--print") {
		return ""
	}
	if word := s.Args[1]; !strings.HasPrefix(word, "-") && !strings.Contains(word, " ") {
		return diag.Nearest(word, commands)
	}
	return ""
}

// inheritedVariables are variables that the real CLI sets for its child processes and that must not reach a new
// session.
func inheritedVariables() []string { return []string{"CLAUDECODE", "CLAUDE_CODE_SESSION_ID"} }

// KnownVariables returns all environment variables that claudeless reads.
func KnownVariables() []string {
	return []string{
		"CLAUDELESS_BIN", "CLAUDELESS_CAPTURE", "CLAUDELESS_CAPTURE_OUTPUT", "CLAUDELESS_CLAUDE_VERSION", "CLAUDELESS_COMPACT_DELAY_MS", "CLAUDELESS_COMPAT",
		"CLAUDELESS_CONFIG_DIR", "CLAUDELESS_CWD", "CLAUDELESS_DEBUGGER", "CLAUDELESS_DEBUGGER_TOKEN", "CLAUDELESS_ENVIRONMENT", "CLAUDELESS_EXIT_HINT_TIMEOUT_MS", "CLAUDELESS_EXPECT",
		"CLAUDELESS_FAILURE", "CLAUDELESS_GATES", "CLAUDELESS_HOOK_TIMEOUT_MS", "CLAUDELESS_IDENTIFY", "CLAUDELESS_INTEROP", "CLAUDELESS_MANAGED_DIR",
		"CLAUDELESS_MCP_CLIENTS_CONFIG", "CLAUDELESS_MCP_CONFIG", "CLAUDELESS_MCP_DEBUG", "CLAUDELESS_MCP_REQUIRE", "CLAUDELESS_MCP_TIMEOUT_MS", "CLAUDELESS_MERGE_PROMPTS",
		"CLAUDELESS_PACE", "CLAUDELESS_PART", "CLAUDELESS_REAL", "CLAUDELESS_REQUEST_ID", "CLAUDELESS_RESPONSE_DELAY_MS", "CLAUDELESS_RETRY_SCALE", "CLAUDELESS_RUN", "CLAUDELESS_SCENARIO", "CLAUDELESS_SCREEN_FAULT", "CLAUDELESS_SIMTEST",
		"CLAUDELESS_SIMTEST", "CLAUDELESS_STATE_DIR", "CLAUDELESS_STRICT", "CLAUDELESS_STRICT_MCP", "CLAUDELESS_TOOL",
	}
}

// secretArguments returns the arguments that certainly contain a secret: a text in the form of a key, or the value of a
// variable with a secret.
func secretArguments(args, environ []string) []string {
	shape := regexp.MustCompile(`\b(sk-ant-[A-Za-z0-9_-]{8,}|claudeless-canary-[0-9a-f]+|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16})`)
	var values []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if len(value) >= 12 && slices.Contains(secretVariables(), name) {
			values = append(values, value)
		}
	}
	var found []string
	for i, arg := range args {
		if shape.MatchString(arg) || slices.ContainsFunc(values, func(v string) bool { return strings.Contains(arg, v) }) {
			found = append(found, fmt.Sprintf("argv[%d]", i))
		}
	}
	return found
}

func secretVariables() []string {
	return []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "GITHUB_TOKEN", "GH_TOKEN",
		"NPM_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	}
}

// processName returns the name of a process; empty if the system does not report it.
func processName(pid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

package cli

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
)

// Checklist row 1: -v prints a version that starts with X.Y.Z and does not touch stdin.
func TestVersion(t *testing.T) {
	for _, tt := range []struct {
		program, args, env, want string
	}{
		{"/x/claude", "-v", "", "2.1.330 (Claude Code)\n"},
		{"claude.exe", "--version", "", "2.1.330 (Claude Code)\n"},
		{"claude", "-p --version --frobnicate", "", "2.1.330 (Claude Code)\n"},
		{"claude", "-v", "CLAUDELESS_CLAUDE_VERSION=2.1.29", "2.1.29 (Claude Code)\n"},
		{"claude", "-v --claude-version 3.0.0", "", "2.1.330 (Claude Code)\n"},
		{"claudeless", "-v", "", "2.1.330 (Claude Code; simulated by claudeless " + claudelessVersion() + ")\n"},
		{"claudeless", "-pv", "", "2.1.330 (Claude Code; simulated by claudeless " + claudelessVersion() + ")\n"},
		{"claudeless", "-v", "CLAUDELESS_CLAUDE_VERSION=2.1.29", "2.1.29 (Claude Code)\n"},
		{"claudeless", "--claude-version 3.0.0 -v", "CLAUDELESS_CLAUDE_VERSION=2.1.29", "3.0.0 (Claude Code)\n"},
		{"claudeless", "-v --claude-version=3.0.0", "", "3.0.0 (Claude Code)\n"},
	} {
		s, stdout, stderr := fakeSystem(t, words(tt.args)...)
		s.Args[0], s.Environ, s.Stdin = tt.program, []string{tt.env}, forbiddenStdin{t}
		if code := Run(context.Background(), s); code != 0 || stderr.Len() > 0 || stdout.String() != tt.want {
			t.Errorf("%s %s: exit code %d, stderr %q, stdout %q, want %q", tt.program, tt.args, code, stderr, stdout, tt.want)
		}
	}
}

func TestFirstWordSelectsTheCommand(t *testing.T) {
	for _, tt := range []struct {
		program, args string
		command       bool
	}{
		{"claudeless", "check x", true},
		{"claudeless", "mcp", true},
		{"claudeless", "check x -- -p", true},
		{"claudeless", "check -p", false},
		{"claudeless", "mcp --print", false},
		{"claudeless", "checks", false},
		{"claudeless", "--verbose check", false},
		{"claudeless", "doctor", true},
		{"claude", "mcp", true},
		{"claude", "check", false},
		{"claude", "doctor", true},
		{"claude", "doctor -p", false},
		{"claude", "frobnicate", false},
	} {
		s, _, _ := fakeSystem(t)
		s.Args[0] = tt.program
		list := words(tt.args)
		if got := !hasPrintFlag(list) && commandOfWord(s, list[0]) != nil; got != tt.command {
			t.Errorf("%s %s: command %v, want %v", tt.program, tt.args, got, tt.command)
		}
	}
}

func TestMissingCommandsOfClaude(t *testing.T) {
	for _, word := range unsimulatedRealCLICommandNames() {
		s, stdout, stderr := fakeSystem(t, word)
		s.Args[0] = "claude"
		code := Run(context.Background(), s)
		if want := `claudeless: error: the command "` + word + `" of claude is not simulated` + "\n"; code != 1 || stdout.Len() > 0 || stderr.String() != want {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", word, code, stdout, stderr)
		}
	}
}

// TestWithoutPromptOrTerminal: without -p and without a terminal a prompt is required.
func TestWithoutPromptOrTerminal(t *testing.T) {
	s, stdout, stderr := fakeSystem(t)
	code := Run(context.Background(), s)
	if want := "Error: Input must be provided either through stdin or as a prompt argument when using --print\n"; code != 1 || stdout.Len() > 0 || !strings.HasSuffix(stderr.String(), want) {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestHelpOfACommand(t *testing.T) {
	s, stdout, stderr := fakeSystem(t, "check", "--help")
	if code := Run(context.Background(), s); code != 0 || stderr.Len() > 0 || !strings.HasPrefix(stdout.String(), "Usage: claudeless check ") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	s, stdout, stderr = fakeSystem(t, "check", "--jso", "x")
	if code := Run(context.Background(), s); code != 1 || stdout.Len() > 0 || !strings.HasPrefix(stderr.String(), "claudeless: error: ") || !strings.Contains(stderr.String(), "\nhint: ") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// TestUsageOfACommand: the usage line comes from the command table, and a command to run follows "--".
func TestUsageOfACommand(t *testing.T) {
	for args, want := range map[string]string{
		"exec":          "Usage: claudeless exec [-s FILE] -- CMD…\n",
		"verify":        "Usage: claudeless verify JOURNAL…\n",
		"debug":         "Usage: claudeless debug [serve|hook|proxy]\n",
		"debug proxy":   "Usage: claudeless debug proxy --debugger=URL --server=NAME [flags] -- CMD…\n",
		"fixture clone": "Usage: claudeless fixture clone <out> [flags] [-- CMD…]\n",
		"gates release": "Usage: claudeless gates release <name> [flags]\n",
	} {
		s, stdout, stderr := fakeSystem(t, words(args+" --help")...)
		if code := Run(context.Background(), s); code != 0 || stderr.Len() > 0 || !strings.HasPrefix(stdout.String(), want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

func TestCheckMCPConfigs(t *testing.T) {
	for name, tt := range map[string]struct {
		src  string
		code int
		want string // in stderr
	}{
		"good":        {`{"mcpServers":{"a":{"command":"x"}}}`, 0, ""},
		"broken JSON": {"{\n\"mcpServers\": {\n  nope\n}}", 1, "m.json:3:3: "},
		"bad entry":   {"{\"mcpServers\": {\n  \"a\": {\"type\": \"pigeon\"},\n  \"b\": {\"command\": \"x\"}\n}}", 1, "m.json:2:3: "},
		"no servers":  {`{"mcpServers": []}`, 1, "m.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("m.json", []byte(tt.src), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, flag := range []string{"", "--json"} {
				s, stdout, stderr := fakeSystem(t, words("check m.json "+flag)...)
				s.Getwd = os.Getwd
				code := Run(context.Background(), s)
				out := stderr
				if flag != "" {
					out = stdout
				}
				if flag == "" && !strings.Contains(out.String(), tt.want) || code != tt.code {
					t.Errorf("%s: exit code %d, stdout %q, stderr %q", flag, code, stdout, stderr)
				}
			}
		})
	}
	s, stdout, stderr := fakeSystem(t, "check", "/does/not/exist.toml")
	if code := Run(context.Background(), s); code != 1 || stdout.Len() > 0 || stderr.String() != "/does/not/exist.toml: no such file or directory\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// The flags of the real CLI: those in its --help, and those that it accepts but does not list.
const (
	listedFlags = `--add-dir --agent --agents --allow-dangerously-skip-permissions --allowedTools --allowed-tools
		--append-system-prompt --autocompact --ax-screen-reader --bg --background --bare --betas --brief --chrome --cloud -c
		--continue --dangerously-skip-permissions -d --debug --debug-file --desktop --disable-slash-commands
		--disallowedTools --disallowed-tools --effort --environment --exclude-dynamic-system-prompt-sections
		--fallback-model --file --fork-session --forward-subagent-text --from-pr -h --help --ide --include-hook-events
		--include-partial-messages --input-format --json-schema --max-budget-usd --mcp-config --model -n --name --no-chrome
		--no-session-persistence --output-format --permission-mode --permission-prompts --plugin-dir --plugin-url -p
		--print --prompt-suggestions --remote-control --remote-control-session-name-prefix --replay-user-messages
		--restricted -r --resume --safe-mode --session-id --setting-sources --settings --strict-mcp-config
		--system-prompt --system-prompt-snapshot --teleport --tmux --tools --verbose -v --version -w --worktree`
	unlistedFlags = `--max-turns --permission-prompt-tool --system-prompt-file --append-system-prompt-file
		--max-thinking-tokens --thinking --task-budget --debug-to-stderr --init --resume-session-at --resume-drops-turn
		--session-mirror --await-initialize --await-claim --initialize-fields --managed-settings
		--managed-settings-in-initialize --plugin-dir-no-mcp --channels --project-config-root --thinking-display`
	ownFlags = `--scenario --failure --capture --expect --mcp-debug --mcp-require --debugger --cwd --claude-version`
)

func TestHelpNamesWhatTheRealHelpNames(t *testing.T) {
	for _, program := range []string{"claude", "claudeless"} {
		s, stdout, stderr := fakeSystem(t, "--frobnicate", "--help")
		s.Args[0] = program
		if code := Run(context.Background(), s); code != 0 || stderr.Len() > 0 {
			t.Fatalf("exit code %d, stderr %q", code, stderr)
		}
		words := strings.FieldsFunc(stdout.String(), func(r rune) bool { return r == ' ' || r == ',' || r == '\n' })
		for flag := range strings.FieldsSeq(listedFlags) {
			if !slices.Contains(words, flag) {
				t.Errorf("help of %s lacks %s", program, flag)
			}
		}
		for flag := range strings.FieldsSeq(unlistedFlags) {
			if slices.Contains(words, flag) {
				t.Errorf("help of %s names %s", program, flag)
			}
		}
		for flag := range strings.FieldsSeq(ownFlags) {
			if slices.Contains(words, flag) != (program == "claudeless") {
				t.Errorf("help of %s on %s is wrong", program, flag)
			}
		}
	}
}

// An SDK reads the choices of an option from --help and refuses other values (F2).
func TestHelpNamesChoices(t *testing.T) {
	s, stdout, _ := fakeSystem(t, "--help")
	s.Args[0] = "claude"
	Run(context.Background(), s)
	text := strings.Join(strings.Fields(stdout.String()), " ")
	for _, want := range []string{
		`(choices: "acceptEdits", "auto", "bypassPermissions", "manual", "dontAsk", "plan")`, `(choices: "text", "json", "stream-json")`,
		`(choices: "text", "stream-json")`, `(choices: "host", "none", default: "host")`, `(choices: "on", "off")`,
		`(choices: "true", "false", "1", "0", "yes", "no", "on", "off", preset: "true")`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("help lacks %s", want)
		}
	}
}

// Hosts run these commands when they start, and expect these texts (F4).
func TestProbes(t *testing.T) {
	for args, want := range map[string]string{
		"auth status --json": `"loggedIn": true`, "auth status": `"configDirectory": "/h/.claudeless"`, "auth status --text": "API key: ANTHROPIC_API_KEY",
		"doctor": "No installation issues found.", "plugin list": "No plugins installed.", "plugins list --json": "[]\n",
		"update": "Claude Code is up to date (2.1.330)", "upgrade": "Current version: 2.1.330",
	} {
		s, stdout, stderr := fakeSystem(t, words(args)...)
		s.Args[0], s.Environ = "claude", []string{"HOME=/h"}
		if code := Run(context.Background(), s); code != 0 || stderr.Len() > 0 || !strings.Contains(stdout.String(), want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", args, code, stdout, stderr, want)
		}
	}
	for args, want := range map[string]string{
		"stop": "Usage: claude stop <id>\n", "kill x": "No session matching 'x'. Run 'claude agents' to list running sessions.\n",
		"rm x y": "warning: extra arguments ignored: y\nNo session matching 'x'\n", "respawn": "usage: claude respawn <id>|--all\n",
	} {
		s, stdout, stderr := fakeSystem(t, words(args)...)
		s.Args[0] = "claude"
		if code := Run(context.Background(), s); code != 1 || stdout.Len() > 0 || stderr.String() != want {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", args, code, stdout, stderr, want)
		}
	}
	for _, args := range []string{"auth login", "plugin marketplace add owner/repo", "plugin tag"} {
		s, _, stderr := fakeSystem(t, words(args)...)
		s.Args[0] = "claude"
		if code := Run(context.Background(), s); code != 1 || !strings.Contains(stderr.String(), "is not simulated") {
			t.Errorf("%s: exit code %d, stderr %q", args, code, stderr)
		}
	}
}

func TestMCPAlonePrintsHelpOnStderr(t *testing.T) {
	s, stdout, stderr := fakeSystem(t, "mcp")
	if code := Run(context.Background(), s); code != 1 || stdout.Len() > 0 || !strings.HasPrefix(stderr.String(), "Usage: claudeless mcp ") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/claudeless/claudeless/internal/argv"
	"github.com/claudeless/claudeless/internal/diag"
)

// Checklist row 1: -v prints a version that starts with X.Y.Z and does not touch stdin.
func TestVersion(t *testing.T) {
	for _, tt := range []struct {
		program, args, env, want string
	}{
		{"/x/claude", "-v", "", "2.1.329 (Claude Code)\n"},
		{"claude.exe", "--version", "", "2.1.329 (Claude Code)\n"},
		{"claude", "-p --version --frobnicate", "", "2.1.329 (Claude Code)\n"},
		{"claude", "-v", "CLAUDELESS_CLAUDE_VERSION=2.1.29", "2.1.29 (Claude Code)\n"},
		{"claude", "-v --claude-version 3.0.0", "", "2.1.329 (Claude Code)\n"},
		{"claudeless", "-v", "", "2.1.329 (Claude Code; simulated by claudeless " + version + ")\n"},
		{"claudeless", "-pv", "", "2.1.329 (Claude Code; simulated by claudeless " + version + ")\n"},
		{"claudeless", "-v", "CLAUDELESS_CLAUDE_VERSION=2.1.29", "2.1.29 (Claude Code)\n"},
		{"claudeless", "--claude-version 3.0.0 -v", "CLAUDELESS_CLAUDE_VERSION=2.1.29", "3.0.0 (Claude Code)\n"},
		{"claudeless", "-v --claude-version=3.0.0", "", "3.0.0 (Claude Code)\n"},
	} {
		s, stdout, stderr := fakeSystem(t, words(tt.args)...)
		s.Args[0], s.Environ, s.Stdin = tt.program, []string{tt.env}, untouchable{t}
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
		{"claudeless", "doctor", false},
		{"claude", "mcp", true},
		{"claude", "check", false},
		{"claude", "doctor", true},
		{"claude", "doctor -p", false},
		{"claude", "frobnicate", false},
	} {
		s, _, _ := fakeSystem(t)
		s.Args[0] = tt.program
		list := words(tt.args)
		if got := !asksPrint(list) && command(s, list[0]) != nil; got != tt.command {
			t.Errorf("%s %s: command %v, want %v", tt.program, tt.args, got, tt.command)
		}
	}
}

func TestMissingCommandsOfClaude(t *testing.T) {
	for _, word := range realCommands() {
		s, stdout, stderr := fakeSystem(t, word)
		s.Args[0] = "claude"
		code := Run(context.Background(), s)
		if want := `claudeless: error: the command "` + word + `" of claude is not simulated` + "\n"; code != 1 || stdout.Len() > 0 || stderr.String() != want {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", word, code, stdout, stderr)
		}
	}
}

func TestTerminalIsNotSimulated(t *testing.T) {
	s, stdout, stderr := fakeSystem(t, "hi")
	s.StdoutIsTTY, s.StdinIsTTY = true, true
	code := Run(context.Background(), s)
	if want := "claudeless: error: interactive terminal mode is not simulated\nhint: give a prompt with -p: claudeless -p \"…\"\n"; code != 1 || stdout.Len() > 0 || stderr.String() != want {
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

func TestMCPAlonePrintsHelpOnStderr(t *testing.T) {
	s, stdout, stderr := fakeSystem(t, "mcp")
	if code := Run(context.Background(), s); code != 1 || stdout.Len() > 0 || !strings.HasPrefix(stderr.String(), "Usage: claudeless mcp ") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestExit(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		code int
		text string
	}{
		"nothing":       {nil, 0, ""},
		"ours":          {errors.New("it broke"), 1, "claudeless: error: it broke\n"},
		"hint":          {fmt.Errorf("loading: %w", hinted("it broke", "fix it")), 1, "claudeless: error: loading: it broke\nhint: fix it\n"},
		"usage":         {&argv.Error{Text: "error: x"}, 1, "error: x\n"},
		"real words":    {claudeErrorf("Error: %d", 7), 1, "Error: 7\n"},
		"diagnostics":   {diag.List{{Pos: diag.Position{File: "f", Line: 1, Col: 2}, Message: "bad"}}, 1, "f:1:2: bad\n"},
		"code":          {&exitError{code: exitExpect}, 3, ""},
		"code and text": {&exitError{code: exitExpect, err: errors.New("missed")}, 3, "claudeless: error: missed\n"},
		"interrupt":     {&signalError{syscall.SIGINT}, 0, ""},
		"terminate":     {fmt.Errorf("reading: %w", &signalError{syscall.SIGTERM}), 143, ""},
		"hang up":       {&signalError{syscall.SIGHUP}, 129, ""},
	} {
		var w bytes.Buffer
		if code := exit(&w, tt.err); code != tt.code || w.String() != tt.text {
			t.Errorf("%s: exit code %d, text %q; want %d, %q", name, code, w.String(), tt.code, tt.text)
		}
	}
}

func TestFlagTable(t *testing.T) {
	limits := flagLimits()
	for _, o := range claudeOptions(&Flags{}) {
		if _, ok := limits[o.Name()]; !ok && o.Set == nil {
			t.Errorf("--%s has no effect and is not listed", o.Name())
		}
		delete(limits, o.Name())
	}
	for name := range limits {
		t.Errorf("--%s is listed and no flag", name)
	}
	for _, row := range FlagTable() {
		if (row.Status == "full") != (row.Note == "") || row.Status != "full" && row.Status != "partial" && row.Status != "accepted" {
			t.Errorf("bad row %+v", row)
		}
	}
}

func TestFileKind(t *testing.T) {
	for keys, want := range map[string]string{
		"":                       "scenario",
		"name responses":         "scenario",
		"name default_response":  "scenario",
		"mcpServers":             "mcp",
		"servers":                "mcp",
		"name version tools":     "fixture",
		"prompts":                "fixture",
		"name mcp responses":     "scenario",
		"tools default_response": "scenario",
		"typo":                   "scenario",
	} {
		if got := fileKind(strings.Fields(keys)); got != want {
			t.Errorf("%q: %s, want %s", keys, got, want)
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

func TestGetenvTakesTheLast(t *testing.T) {
	s := &System{Environ: []string{"A=1", "AB=2", "A=3=4", "BROKEN"}}
	if s.Getenv("A") != "3=4" || s.Getenv("BROKEN") != "" || s.Getenv("C") != "" {
		t.Errorf("A=%q BROKEN=%q C=%q", s.Getenv("A"), s.Getenv("BROKEN"), s.Getenv("C"))
	}
}

// BenchmarkStart is what every run pays before it does anything.
func BenchmarkStart(b *testing.B) {
	s := &System{Args: []string{"claudeless", "-p", "hi", "--output-format", "json", "--model=x"}, Stdout: io.Discard, Stderr: io.Discard, UID: 1}
	for b.Loop() {
		f, err := parseFlags(s, s.Args[1:])
		if err == nil {
			err = checkFlags(s, f)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
)

// resolve returns the plan of a command line that an ordinary user runs in a directory.
func resolve(t *testing.T, dir string, env []string, line string) Plan {
	t.Helper()
	s := &process.System{
		Args: append([]string{"claudeless"}, strings.Fields(line)...), Environ: env, Stderr: t.Output(), UID: 1000,
		Getwd:      func() (string, error) { return dir, nil },
		Executable: func() (string, error) { return "/usr/bin/claudeless", nil },
		Now:        func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		NewID:      func() string { return "00000000-0000-4000-8000-000000000001" },
	}
	f, err := flags.Parse(s, s.Args[1:])
	if err == nil {
		err = f.CheckAndNormalize(s)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := Resolve(s, f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// If a value is set in several places, the most specific place takes precedence.
func TestPrecedence(t *testing.T) {
	const scenario = "default_model = \"of-scenario\"\npermission_mode = \"plan\"\nclaude_version = \"1.0.1\"\n[timeouts]\nmcp_timeout_ms = 7\n"
	const settings = `{"model":"of-settings","permissions":{"defaultMode":"acceptEdits"},"env":{"ANTHROPIC_DEFAULT_OPUS_MODEL":"of-alias"}}`
	for name, tt := range map[string]struct {
		scenario, settings, line string
		env                      []string
		want                     []string // model, mode, version, time limit of MCP tools
	}{
		"nothing":       {want: []string{"claude-opus-5-5", "default", "2.1.330", "0s"}},
		"scenario":      {scenario: scenario, want: []string{"of-scenario", "plan", "1.0.1", "7ms"}},
		"settings":      {scenario: scenario, settings: settings, want: []string{"of-settings", "plan", "1.0.1", "7ms"}},
		"settings only": {settings: settings, want: []string{"of-settings", "acceptEdits", "2.1.330", "0s"}},
		"environment": {
			scenario: scenario, settings: settings, env: []string{"ANTHROPIC_MODEL=of-env", "CLAUDELESS_CLAUDE_VERSION=1.0.2", "MCP_TOOL_TIMEOUT=2000"},
			want: []string{"of-env", "plan", "1.0.2", "2s"},
		},
		"flags": {
			scenario: scenario, settings: settings, env: []string{"ANTHROPIC_MODEL=of-env", "CLAUDELESS_CLAUDE_VERSION=1.0.2"},
			line: "--model opus --permission-mode dontAsk --claude-version 1.0.3", want: []string{"of-alias", "dontAsk", "1.0.3", "7ms"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, home := t.TempDir(), t.TempDir()
			if tt.scenario != "" {
				write(t, filepath.Join(dir, "claudeless.toml"), tt.scenario)
			}
			if tt.settings != "" {
				write(t, filepath.Join(home, ".claudeless", "settings.json"), tt.settings)
			}
			p := resolve(t, dir, append(tt.env, "HOME="+home), "-p hi "+tt.line)
			got := []string{p.Model.Name, string(p.Permission.Mode), p.Version, p.Servers.Client.ToolTimeout.String()}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// M3: a run starts the servers of user and local scope, unless they are excluded.
func TestScopes(t *testing.T) {
	home := t.TempDir()
	project := t.TempDir()
	text := `{"mcpServers":{"u":{"command":"x"}},"projects":{"` + project + `":{"mcpServers":{"l":{"command":"x"}}},"/other":{"mcpServers":{"o":{"command":"x"}}}}}`
	if err := os.WriteFile(filepath.Join(home, ".claude.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"":                             {"user", "local"},
		"--strict-mcp-config":          nil,
		"--bare":                       nil,
		"--setting-sources=":           nil,
		"--setting-sources=user":       {"user"},
		"--setting-sources=local":      {"local"},
		"--setting-sources user,local": {"user", "local"},
	} {
		var got []string
		for _, server := range resolve(t, project, []string{"HOME=" + home}, "-p hi "+line).Servers.Configs {
			got = append(got, server.Source)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: scopes (-want +got):\n%s", line, diff)
		}
	}
}

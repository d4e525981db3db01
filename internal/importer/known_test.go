package importer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/importer/session"
)

// The values that are replaced wherever they occur come from files of the project, of the recorded project and of the user.
func TestKnownFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"project/.env":                        "# A=commented-0\nexport TOKEN='from-env-1'\nMODE=production\nPORT=8080\nSHORT=a1\nEMPTY\nSITE=https://example.org/path\nDB=https://user:db-pass-2@host/x\n",
		"project/.env.local":                  "API=https://longusername3@host/x\nOTHER=https://short@host/x\n",
		"project/.mcp.json":                   `{"mcpServers":{"s":{"env":{"K":"mcp-env-4"},"headers":{"Authorization":"Bearer mcp-head-5","X-Key":"mcp-head-6"}}}}`,
		"project/.claude/settings.json":       `{"env":{"S":"settings-7"}}`,
		"project/.claude/settings.local.json": `{"env":`,
		"recorded/.git/config":                "[remote \"o\"]\n\turl = https://x:git-pass-8@h/r\n\tpushurl = ssh://git@h/r\n[http]\n\textraheader = Authorization: Basic git-head-9\n",
		"home/.netrc":                         "machine h login me password netrc-10\n",
		"home/.aws/credentials":               "[default]\naws_secret_access_key = aws+secret/11\n",
		"home/.claude/settings.json":          `{"env":{"H":"home-set-12"}}`,
		".env":                                "TOKEN=of-no-directory-13\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	recorded := &session.Session{CWD: filepath.Join(dir, "recorded")}
	place := Environment{Dir: filepath.Join(dir, "project"), Home: filepath.Join(dir, "home")}
	environ, values := knownFiles(place, []*session.Session{recorded, {}, recorded})
	slices.Sort(values)
	if diff := cmp.Diff([]string{
		"aws+secret/11", "db-pass-2", "from-env-1", "git-head-9", "git-pass-8", "home-set-12", "longusername3", "mcp-env-4", "mcp-head-5", "mcp-head-6", "netrc-10", "settings-7",
	}, values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	slices.Sort(environ)
	if diff := cmp.Diff([]string{
		"Authorization=mcp-head-5", "H=home-set-12", "K=mcp-env-4", "MODE=production", "PORT=8080", "S=settings-7", "SHORT=a1", "TOKEN=from-env-1", "X-Key=mcp-head-6",
		"aws_secret_access_key=aws+secret/11",
	}, environ); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// No text of a session keeps a secret.
func TestHideEverywhere(t *testing.T) {
	const secret = "pl4nted-Value-9x7z"
	with := func(text string) string { return text + " " + secret + " end" }
	agent := &session.Agent{Prompt: with("agent"), Messages: []*session.Message{{Blocks: []session.Block{{Text: with("of the agent")}}}}}
	s := &session.Session{Tools: []string{"mcp__" + secret + "__t"}, Prompts: []*session.Prompt{{
		Text: with("prompt"), Hooks: []session.Hook{{Name: with("hook")}},
		Messages: []*session.Message{
			{Failure: &session.Failure{Text: with("failure")}},
			{Blocks: []session.Block{{Text: with("text")}, {Thinking: true, Text: with("thinking")}, {Call: &session.Call{
				Tool: "mcp__s__" + secret, Input: json.RawMessage(`{"k":"` + secret + `","` + secret + `":1}`), Agent: agent,
				Result: &session.Result{Text: with("result"), Raw: json.RawMessage(`{"content":"` + secret + `"}`), File: &session.File{Path: "/w/" + secret, Content: with("file")}},
			}}}},
		},
	}}}
	NewRedactor(Environment{Environ: []string{"MY_TOKEN=" + secret}}, nil).Hide([]*session.Session{s})
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if at := strings.Index(string(out), "9x7z"); at >= 0 {
		t.Errorf("a secret is left: …%s", out[max(0, at-80):min(len(out), at+20)])
	}
	for _, word := range []string{"prompt", "hook", "failure", "text", "thinking", "result", "file", "agent", "of the agent"} {
		if !strings.Contains(string(out), word+" ") {
			t.Errorf("%q is lost", word)
		}
	}
}

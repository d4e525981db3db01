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

// The values that are replaced everywhere come from files of the project, of the recorded project and of the user.
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
	place := CurrentEnvironment{Dir: filepath.Join(dir, "project"), Home: filepath.Join(dir, "home")}
	environ, values := readSecretsFromFiles(place, []*session.Session{recorded, {}, recorded})
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

// After redaction, no text of a session contains a secret.
func TestHideEverywhere(t *testing.T) {
	const secret = "pl4nted-Value-9x7z"
	with := func(text string) string { return text + " " + secret + " end" }
	agent := &session.Agent{Prompt: with("agent"), Messages: []*session.Message{{Blocks: []session.Block{{Text: with("of the agent")}}}}}
	s := &session.Session{Tools: []string{"mcp__" + secret + "__t"}, Prompts: []*session.Prompt{{
		Text: with("prompt"), Hooks: []session.HookRun{{Name: with("hook")}},
		Messages: []*session.Message{
			{Failure: &session.Failure{Text: with("failure")}},
			{Blocks: []session.Block{{Text: with("text")}, {Thinking: true, Text: with("thinking")}, {Call: &session.Call{
				Tool: "mcp__s__" + secret, Input: json.RawMessage(`{"k":"` + secret + `","` + secret + `":1}`), Agent: agent,
				Result: &session.Result{Text: with("result"), Raw: json.RawMessage(`{"content":"` + secret + `"}`), File: &session.PrintedFilePart{Path: "/w/" + secret, Content: with("file")}},
			}}}},
		},
	}}}
	NewRedactorReadingSecretFiles(CurrentEnvironment{Environ: []string{"MY_TOKEN=" + secret}}, nil).RedactSessions([]*session.Session{s})
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

// A secret that is split over texts of a message is replaced in the first of them and removed from the others.
func TestHideSplitSecrets(t *testing.T) {
	const secret = "pl4nted-Value-9x7z"
	for name, tt := range map[string]struct{ texts, want []string }{
		"in one":           {[]string{"a " + secret + " b"}, []string{"a REDACTED_MY_TOKEN_1 b"}},
		"in two":           {[]string{"a " + secret[:5], secret[5:] + " b"}, []string{"a REDACTED_MY_TOKEN_1", " b"}},
		"in three":         {[]string{"a " + secret[:5], secret[5:9], secret[9:] + " b"}, []string{"a REDACTED_MY_TOKEN_1", "", " b"}},
		"in the last two":  {[]string{"before", "a " + secret[:5], secret[5:] + " b"}, []string{"before", "a REDACTED_MY_TOKEN_1", " b"}},
		"in the first two": {[]string{secret[:5], secret[5:], "after"}, []string{"REDACTED_MY_TOKEN_1", "", "after"}},
		"two of them":      {[]string{secret[:5], secret[5:] + " " + secret[:7], secret[7:]}, []string{"REDACTED_MY_TOKEN_1", " REDACTED_MY_TOKEN_1", ""}},
		"whole and split":  {[]string{secret + " " + secret[:7], secret[7:] + " " + secret}, []string{"REDACTED_MY_TOKEN_1 REDACTED_MY_TOKEN_1", " REDACTED_MY_TOKEN_1"}},
		"at the boundary":  {[]string{"a ", secret, " b"}, []string{"a ", "REDACTED_MY_TOKEN_1", " b"}},
	} {
		m := &session.Message{}
		for i, text := range tt.texts {
			if i == 1 {
				m.Blocks = append(m.Blocks, session.Block{Call: &session.Call{Input: json.RawMessage("{}")}})
			}
			m.Blocks = append(m.Blocks, session.Block{Text: text})
		}
		s := &session.Session{Prompts: []*session.Prompt{{Messages: []*session.Message{m}}}}
		NewRedactorReadingSecretFiles(CurrentEnvironment{Environ: []string{"MY_TOKEN=" + secret}}, nil).RedactSessions([]*session.Session{s})
		var got []string
		for _, b := range m.Blocks {
			if b.Call == nil {
				got = append(got, b.Text)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The homes of the user, of the recorded process and of the files are replaced, and so are the names of the users.
// Directories that exist on every machine are not replaced.
func TestHideHomes(t *testing.T) {
	s := &session.Session{
		CWD: "/home/anna/proj", Files: []string{"/Users/berta/x.jsonl", "relative.jsonl"}, Environ: []string{"HOME=/srv/people/carla", "USER=dora"},
		Prompts: []*session.Prompt{{Text: "/home/anna/a /Users/berta/b /srv/people/carla/c /opt/emil/d by anna, berta, carla, dora and emil; /root/e /f root"}},
	}
	NewRedactorReadingSecretFiles(CurrentEnvironment{Home: "/opt/emil"}, []*session.Session{s, {Environ: []string{"HOME=/root"}}, {Environ: []string{"HOME=/"}}}).RedactSessions([]*session.Session{s})
	want := HomePlaceholder + "/a " + HomePlaceholder + "/b " + HomePlaceholder + "/c " + HomePlaceholder +
		"/d by REDACTED_USER_1, REDACTED_USER_2, REDACTED_USER_3, REDACTED_USER_4 and REDACTED_USER_5; /root/e /f root"
	if diff := cmp.Diff(want, s.Prompts[0].Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// If there are too many prompts for the index, patterns are words that occur in only one prompt, or several words.
func TestPatternsOfLongPrompts(t *testing.T) {
	long := strings.Repeat("filler words of it ", 5<<20/19)
	p := newPatternChooser([]string{long, "say alpha now", "say beta now", "say the same now", "say the same now"}, nil, false)
	got := map[string]promptPattern{}
	for _, prompt := range []string{"say alpha now", "say beta now", "say the same now"} {
		got[prompt] = p.choosePatternOfPrompt(prompt, prompt)
	}
	want := map[string]promptPattern{
		"say alpha now": {"contains", "text", "alpha"}, "say beta now": {"contains", "text", "beta"}, "say the same now": {"contains", "text", "say the same now"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(promptPattern{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTruncate(t *testing.T) {
	for most, want := range map[int]string{
		3: "abc" + truncationMark + "4 bytes; --big keeps them]",
		4: "abc" + truncationMark + "3 bytes; --big keeps them]", // not half a character
		5: "abcé" + truncationMark + "2 bytes; --big keeps them]",
	} {
		if diff := cmp.Diff(want, TruncateLongWithNote("abcéde", most)); diff != "" {
			t.Errorf("%d (-want +got):\n%s", most, diff)
		}
	}
}

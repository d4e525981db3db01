package mcpcmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/tests/mcptest"
)

// TestMain lets the test binary act as the servers that the tests connect to.
func TestMain(m *testing.M) {
	if mode := os.Getenv("MCPTEST_MODE"); mode != "" {
		os.Exit(mcptest.Serve(mcptest.Options{Mode: mode, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	status := m.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// testHome is a home directory and a project in it.
type testHome struct {
	t       *testing.T
	o       Options
	home    string
	project string
	stdout  bytes.Buffer
	stderr  bytes.Buffer
}

func newTestHome(t *testing.T) *testHome {
	t.Helper()
	dir := t.TempDir()
	b := &testHome{t: t, home: dir, project: filepath.Join(dir, "p")}
	if err := os.Mkdir(b.project, 0o755); err != nil {
		t.Fatal(err)
	}
	b.o = Options{
		Name: "claudeless", Extended: true, Store: Store{File: filepath.Join(dir, ".claude.json"), CWD: b.project},
		Client: mcp.Options{CWD: b.project, Environ: os.Environ()},
		Stdin:  strings.NewReader(""), Stdout: &b.stdout, Stderr: &b.stderr,
	}
	return b
}

// run returns the stdout of a command, its stderr or error text, and whether it succeeded. Directories are replaced
// by $HOME and $PROJECT.
func (b *testHome) run(words ...string) (stdout, stderr string, ok bool) {
	b.t.Helper()
	b.stdout.Reset()
	b.stderr.Reset()
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "$SELF", os.Args[0])
	}
	err := Run(b.t.Context(), b.o, words)
	text := b.stderr.String()
	var verbatim *process.VerbatimError
	var printed *process.ExitError
	var line *argv.Error
	switch {
	case errors.As(err, &verbatim):
		text += verbatim.Text
	case errors.As(err, &line):
		text += line.Text
	case hintOf(err) != "":
		text += err.Error()
	case err != nil && !errors.As(err, &printed):
		text += "internal: " + err.Error()
	}
	names := strings.NewReplacer(b.project, "$PROJECT", b.home, "$HOME", os.Args[0], "$SELF")
	return names.Replace(b.stdout.String()), names.Replace(text), err == nil
}

// hintOf returns the hint with which an error is printed; empty means none.
func hintOf(err error) string {
	var b strings.Builder
	process.PrintErrorReturningExitCode(&b, err)
	_, hint, _ := strings.Cut(b.String(), "\nhint: ")
	return strings.TrimSpace(hint)
}

// add configures a server of mcptest.
func (b *testHome) add(mode string, flags ...string) {
	b.t.Helper()
	words := append([]string{"add", mode, "-e", "MCPTEST_MODE=" + mode}, flags...)
	if _, stderr, ok := b.run(append(words, "--", "$SELF")...); !ok {
		b.t.Fatal(stderr)
	}
}

type step struct {
	words  []string
	stdout string
	stderr string
	fails  bool
}

func (b *testHome) steps(all []step) {
	b.t.Helper()
	for _, s := range all {
		stdout, stderr, ok := b.run(s.words...)
		if diff := cmp.Diff([2]string{s.stdout, s.stderr}, [2]string{stdout, stderr}); diff != "" || ok == s.fails {
			b.t.Errorf("%q: success %v, stdout and stderr (-want +got):\n%s", s.words, ok, diff)
		}
	}
}

// TestConfigure checks the commands mcp add, get, list and remove (spec: cli-observed 6), and names
// and duplicates (S6, C8–C12).
func TestConfigure(t *testing.T) {
	b := newTestHome(t)
	b.steps([]step{
		{words: []string{"list"}, stdout: "No MCP servers configured. Use `claude mcp add` to add a server.\n"},
		{words: []string{"get", "nope"}, stderr: "No MCP server named \"nope\". Run `claude mcp add` to add one.", fails: true},
		{
			words:  []string{"add", "fs", "-e", "A=1=2", "B=", "--", "npx", "-y", "server-fs", "--flag"},
			stdout: "Added stdio MCP server fs with command: npx -y server-fs --flag to local config\nFile modified: $HOME/.claude.json [project: $PROJECT]\n",
		},
		{words: []string{"add", "fs", "x"}, stderr: "MCP server fs already exists in local config", fails: true},
		{
			words:  []string{"add", "-s", "user", "--transport", "http", "fs", "https://x/mcp", "-H", "Authorization: Bearer sesame", "X-A:b"},
			stdout: "Added HTTP MCP server fs with URL: https://x/mcp to user config\nHeaders: {\n  \"Authorization\": \"[REDACTED]\",\n  \"X-A\": \"b\"\n}\nFile modified: $HOME/.claude.json\n",
		},
		{
			words:  []string{"add-json", "-s", "project", "j", `{"type":"sse","url":"http://y","headers":{"K":"sesame"}}`},
			stdout: "Added sse MCP server j to project config\n",
		},
		{words: []string{"add-json", "k", `{"command":"x"}`}, stdout: "Added stdio MCP server k to local config\n"},
		{
			words: []string{"get", "j"},
			stdout: "j:\n  Scope: Project config (shared via .mcp.json)\n  Status: ⏸ Pending approval (run `claude` to approve)\n  Type: sse\n  URL: http://y\n" +
				"  Headers:\n    K: sesame\n\nTo remove this server, run: claude mcp remove j -s project\n",
		},
		{words: []string{"get", "nope"}, stderr: "No MCP server named \"nope\". Configured servers: fs, k (.mcp.json servers are awaiting approval — run `claude` in this directory to review them.)", fails: true},
		{words: []string{"remove", "nope"}, stderr: `No MCP server named "nope". Configured servers: fs, j, k`, fails: true},
		{
			words: []string{"remove", "fs"}, fails: true,
			stderr: "MCP server \"fs\" exists in multiple scopes:\n  - Local config (private to you in this project) ($HOME/.claude.json [project: $PROJECT])\n" +
				"  - User config (available in all your projects) ($HOME/.claude.json)\n\nTo remove from a specific scope, use:\n" +
				"  claude mcp remove fs -s local\n  claude mcp remove fs -s user",
		},
		{words: []string{"remove", "fs", "-s", "local"}, stdout: "Removed MCP server fs from local config\nFile modified: $HOME/.claude.json [project: $PROJECT]\n"},
		{words: []string{"remove", "fs", "-s", "local"}, stderr: "No MCP server named \"fs\" in local scope", fails: true},
		{words: []string{"remove", "fs"}, stdout: "Removed MCP server \"fs\" from user config\nFile modified: $HOME/.claude.json\n"},
		{words: []string{"remove", "fs", "-s", "user"}, stderr: "No MCP server named \"fs\" in user scope", fails: true},
		{words: []string{"remove", "fs", "-s", "project"}, stderr: "No MCP server named \"fs\" in .mcp.json", fails: true},
		{words: []string{"remove", "j"}, stdout: "Removed MCP server \"j\" from project config\nFile modified: $PROJECT/.mcp.json\n"},
	})
}

func TestRefused(t *testing.T) {
	b := newTestHome(t)
	b.steps([]step{
		{words: []string{"add", "bad name!", "x"}, stderr: "Invalid name bad name!. Names can only contain letters, numbers, hyphens, and underscores.", fails: true},
		{words: []string{"add", "x", "npx", "-y", "y"}, stderr: "error: unknown option '-y'", fails: true},
		{words: []string{"add"}, stderr: "error: missing required argument 'name'", fails: true},
		{words: []string{"add", "x"}, stderr: "error: missing required argument 'commandOrUrl'", fails: true},
		{words: []string{"add", "x", "y", "-s", "global"}, stderr: "Invalid scope: global. Must be one of: local, user, project, dynamic, enterprise, claudeai, managed, agent", fails: true},
		{words: []string{"add", "x", "y", "-t", "ws"}, stderr: "Invalid transport type: ws. Must be one of: stdio, sse, http (or streamable-http)", fails: true},
		{words: []string{"add", "x", "y", "-e", "A"}, stderr: "Invalid environment variable format: A, environment variables should be added as: -e KEY1=value1 -e KEY2=value2", fails: true},
		{words: []string{"add", "x", "y", "-t", "http", "-H", "A"}, stderr: `Invalid header format: "A". Expected format: "Header-Name: value"`, fails: true},
		{words: []string{"add", "x", "y", "-t", "http", "--callback-port", "0"}, stderr: "Error: --callback-port must be a whole number from 1 to 65535", fails: true},
		{words: []string{"add", "workspace", "y"}, stderr: `Cannot add MCP server "workspace": this name is reserved.`, fails: true},
		{words: []string{"add-json", "x", `{"command":`}, stderr: "Invalid configuration: not a JSON object. Check its quotes, commas and braces.", fails: true},
		{words: []string{"add-json", "x", `[]`}, stderr: "Invalid configuration: not a JSON object. Check its quotes, commas and braces.", fails: true},
		{words: []string{"add-json", "x", `{"type":"http"}`}, stderr: `Invalid configuration: url: expected string, received undefined`, fails: true},
		{words: []string{"remove", "x", "-s", "z"}, stderr: "Invalid scope: z. Must be one of: local, user, project, dynamic, enterprise, claudeai, managed, agent", fails: true},
		{words: []string{"frobnicate"}, stderr: "error: unknown command 'frobnicate'", fails: true},
	})
	if _, err := os.Stat(b.o.Store.File); err == nil {
		t.Error("a refused command wrote a file")
	}
	b.o.Extended = false
	b.steps([]step{
		{words: []string{"status"}, stderr: "error: unknown command 'status'", fails: true},
		{words: []string{"list", "--json"}, stderr: "error: unknown option '--json'", fails: true},
	})
}

func TestHelp(t *testing.T) {
	b := newTestHome(t)
	stdout, stderr, ok := b.run()
	if ok || stdout != "" || !strings.Contains(stderr, "add-json") {
		t.Errorf("mcp alone: success %v, stdout %q, stderr %q; want help on stderr and a failure", ok, stdout, stderr)
	}
	for _, words := range [][]string{{"help"}, {"--help"}, {"add", "--help"}, {"call", "--help"}} {
		if stdout, stderr, ok := b.run(words...); !ok || !strings.Contains(stdout, "Usage: claudeless mcp") || stderr != "" {
			t.Errorf("%q: success %v, stdout %q, stderr %q", words, ok, stdout, stderr)
		}
	}
}

// M10: the texts of list. Servers of .mcp.json wait for approval.
func TestListHealth(t *testing.T) {
	b := newTestHome(t)
	b.add("ok")
	b.add("crash-at-start", "-s", "user")
	b.add("resources", "-s", "project")
	b.steps([]step{
		{
			words: []string{"list"},
			stdout: "Checking MCP server health…\n\ncrash-at-start: $SELF - ✘ Failed to connect — exit status 3: fatal: boom\n" +
				"resources: $SELF - ⏸ Pending approval (run `claude` to approve)\nok: $SELF - ✔ Connected (MCP 2025-11-25)\n",
		},
		{
			words: []string{"list", "--json"},
			stdout: `{"servers":[{"name":"crash-at-start","scope":"user","transport":"stdio","target":"$SELF","status":"failed","error":"exit status 3: fatal: boom"},` +
				`{"name":"resources","scope":"project","transport":"stdio","target":"$SELF","status":"pending-approval"},` +
				`{"name":"ok","scope":"local","transport":"stdio","target":"$SELF","status":"connected","protocolVersion":"2025-11-25"}]}` + "\n",
		},
		{
			words: []string{"get", "ok"},
			stdout: "ok:\n  Scope: Local config (private to you in this project)\n  Status: ✔ Connected\n  Protocol: MCP 2025-11-25\n  Type: stdio\n  Command: $SELF\n  Args:\n" +
				"  Environment:\n    MCPTEST_MODE=ok\n\nTo remove this server, run: claude mcp remove ok -s local\n",
		},
	})
	b.o.Approved = func(name string) bool { return name == "resources" }
	if stdout, _, _ := b.run("get", "resources"); !strings.Contains(stdout, "Status: ✔ Connected") {
		t.Errorf("an approved server: %q", stdout)
	}
}

// TestListDiagnostics checks the text about wrong configuration files below the list of servers (spec: cli-observed 6).
func TestListDiagnostics(t *testing.T) {
	b := newTestHome(t)
	b.o.Extended = false
	file := filepath.Join(b.project, ".mcp.json")
	for _, test := range []struct{ project, want string }{
		{`{"mcpServers":{}}`, ""},
		{`{"servers":{}}`, "✘\n\nHELP\n\n[Has errors] SCOPE\nLocation: FILE\n" +
			" └ [Error] mcpServers: Missing \"mcpServers\" — found \"servers\" instead. Claude Code reads MCP servers from the \"mcpServers\" key.\n\n"},
		{`{broken`, "✘\n\nHELP\n\n[Has errors] SCOPE\nLocation: FILE\n └ [Error] MCP config is not a valid JSON (line 1, column 2)\n\n"},
		{`{"mcpServers":{"a":{"command":5},"workspace":{"command":"x"}}}`, "⚠\n\nHELP\n\n[Has warnings] SCOPE\nLocation: FILE\n" +
			" ├ [Warning] [a] mcpServers.a: Skipped — invalid MCP server config for \"a\": command: expected string, received number\n" +
			" └ [Warning] [workspace] mcpServers.workspace: \"workspace\" is a reserved MCP server name and was not loaded\n\n"},
	} {
		if err := os.WriteFile(file, []byte(test.project), 0o600); err != nil {
			t.Fatal(err)
		}
		want := "No MCP servers configured. Use `claude mcp add` to add a server.\n"
		if test.want != "" {
			want += "\nMCP config diagnostics " + strings.NewReplacer("HELP", "For help configuring MCP servers, see: https://code.claude.com/docs/en/mcp",
				"SCOPE", "Project config (shared via .mcp.json)", "FILE", "$PROJECT/.mcp.json").Replace(test.want)
		}
		stdout, stderr, ok := b.run("list")
		if diff := cmp.Diff([2]string{want}, [2]string{stdout, stderr}); diff != "" || !ok {
			t.Errorf("%s: success %v, (-want +got):\n%s", test.project, ok, diff)
		}
	}
}

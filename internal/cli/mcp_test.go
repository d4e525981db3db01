package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMCPCommand checks the exit codes, streams and texts of the command under both names (spec:
// cli-observed 6; also surfaces, "Usage errors").
func TestMCPCommand(t *testing.T) {
	home := t.TempDir()
	for _, tt := range []struct {
		name           string
		words          string
		stdout, stderr string // contained; "" means empty
		code           int
	}{
		{"claudeless", "mcp", "", "Usage: claudeless mcp", 1},
		{"claude", "mcp", "", "Usage: claude mcp", 1},
		{"claudeless", "mcp --help", "get-prompt", "", 0},
		{"claude", "mcp list", "No MCP servers configured.", "", 0},
		{"claude", "mcp get nope", "", "No MCP server named \"nope\". Run `claude mcp add` to add one.\n", 1},
		{"claude", "mcp frobnicate", "", "error: unknown command 'frobnicate'\n", 1},
		{"claude", "mcp status", "", "error: unknown command 'status'\n", 1},
		{"claude", "mcp add x npx -y", "", "error: unknown option '-y'\n", 1},
		{"claude", "mcp add -s user x npx", "Added stdio MCP server x with command: npx  to user config\n", "", 0},
		{"claudeless", "mcp call x", "", "claudeless: error: ", 1},
		{"claudeless", "mcp add x", "", "error: missing required argument 'commandOrUrl'\n", 1},
		{"claude", "mcp serve --verbose", "", "", 0},
		{"claude", "mcp serve -x", "", "error: unknown option '-x'\n", 1},
	} {
		s, stdout, stderr := fakeSystem(t, strings.Fields(tt.words)...)
		s.Args[0] = "/usr/bin/" + tt.name
		s.Environ = []string{"HOME=" + home}
		code := Run(t.Context(), s)
		if code != tt.code || !holds(stdout.String(), tt.stdout) || !holds(stderr.String(), tt.stderr) {
			t.Errorf("%s %s: exit %d, stdout %q, stderr %q", tt.name, tt.words, code, stdout, stderr)
		}
	}
}

func holds(text, part string) bool {
	return (part == "") == (text == "") && strings.Contains(text, part)
}

// A variable sets the path of the configuration file. The default is the path of the real CLI
// (spec: cli-observed 6; also design, "state directory").
func TestMCPFile(t *testing.T) {
	for variable, want := range map[string]string{
		"":                      "home/.claude.json",
		"CLAUDE_CONFIG_DIR":     "state/.claude.json",
		"CLAUDELESS_STATE_DIR":  "state/.claude.json",
		"CLAUDELESS_CONFIG_DIR": "state/.claude.json",
	} {
		dir := t.TempDir()
		s, _, stderr := fakeSystem(t, "mcp", "add", "x", "y")
		s.Environ = []string{"HOME=" + filepath.Join(dir, "home"), variable + "=" + filepath.Join(dir, "state")}
		if code := Run(t.Context(), s); code != 0 {
			t.Errorf("%s: exit %d, %s", variable, code, stderr)
		}
		if _, err := os.Stat(filepath.Join(dir, want)); err != nil {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

// A server that answers 401 or 403 although an Authorization header is configured has failed
// (observed with 2.1.330). The run continues with a warning, --strict-mcp-config ends it, and the
// header is never shown.
func TestMCPUnauthorized(t *testing.T) {
	for _, status := range []int{401, 403} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(server.Close)
		config := fmt.Sprintf(`{"mcpServers":{"a":{"type":"http","url":%q,"headers":{"Authorization":"Bearer sesame"}}}}`, server.URL)
		state, reason := "failed", fmt.Sprintf("Server rejected the configured Authorization header (HTTP %d). Check that the token is valid for this MCP endpoint — OAuth fallback is disabled when headers.Authorization is set.", status)
		for _, tt := range []struct {
			words          []string
			stdout, stderr string // contained; "" means empty
			code           int
		}{
			{[]string{"-p", "hi", "--output-format", "stream-json", "--verbose"}, `"mcp_servers":[{"name":"a","status":"` + state + `","source":"dynamic"}]`, "claudeless: warning: MCP server 'a' failed to start: " + reason + "\n", 0},
			{[]string{"-p", "hi", "--mcp-debug"}, "\n", "[mcp] a: failed: " + reason + "\n", 0},
			{[]string{"-p", "hi", "--strict-mcp-config"}, "", "MCP server 'a' failed to start: " + reason + "\n", 1},
			{[]string{"mcp", "status"}, "a: " + state + "\n", "", 1},
			{[]string{"mcp", "call", "a", "echo"}, "", "MCP server 'a' failed to start: " + reason + "\n", 1},
		} {
			s, stdout, stderr := fakeSystem(t, append(tt.words, "--mcp-config", config)...)
			s.Environ = []string{"HOME=" + t.TempDir()}
			code := Run(t.Context(), s)
			if code != tt.code || !holds(stdout.String(), tt.stdout) || !holds(stderr.String(), tt.stderr) {
				t.Errorf("%d %v: exit %d, stdout %q, stderr %q", status, tt.words, code, stdout, stderr)
			}
			if strings.Contains(stdout.String()+stderr.String(), "sesame") {
				t.Errorf("%d %v: the header is shown", status, tt.words)
			}
		}
	}
}

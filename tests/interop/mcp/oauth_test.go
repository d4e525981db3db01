//go:build interop

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The SDKs whose OAuth clients are tested.
const (
	typescript1Version = "1.32.2"
	typescript2Version = "2.4.0"
)

// oauthFixtureText returns a fixture that requires OAuth and supports one revision. refresh is the value of its key refresh.
func oauthFixtureText(refresh, revision string) string {
	return `name = "rows"
seed = 7
protocol = ["` + revision + `"]
[server.oauth]
scopes = ["mcp:read", "mcp:write"]
access_ttl = "60s"
refresh = "` + refresh + `"
[[tools]]
tool = "list_rows"
result.text = "1, 2, 3"
[[tools]]
tool = "delete_row"
scope = "mcp:write"
result.text = "gone"
`
}

// TestOAuthClients lets the OAuth clients of the official SDKs log in to a fixture, make a call, log in again after the
// token has expired, and request more scopes. The journal has the requests of each.
func TestOAuthClients(t *testing.T) {
	binary := build(t)
	script, err := filepath.Abs("oauth_client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	older := []string{"2025-11-25"}
	both := append([]string{"2026-07-28"}, older...)
	register := []string{"register ok"}
	login := []string{"authorize ok mcp:read", "authorization_code ok mcp:read"}
	challenge := []string{"access invalid_token"}
	forbidden := []string{"access insufficient_scope mcp:read"}
	wider := []string{"authorize ok mcp:read mcp:write", "authorization_code ok mcp:read mcp:write"}
	refresh := []string{"refresh_token ok mcp:read"}
	first := slices.Concat(challenge, register, login, challenge) // the last: the token expired
	node := func(dir string) commandOf {
		return func(string, int) (argv, env []string) { return []string{"node", script, dir}, nil }
	}
	for _, tt := range []struct {
		name, refresh string
		setUp         func(*testing.T) (commandOf, error)
		revisions     []string // of the fixture
		want          []string
	}{
		{"typescript-sdk-2", "rotate", npmDir("client", typescript2Version, node), both, slices.Concat(first, refresh, forbidden, wider)},
		// If version 1 needs more scopes and has a refresh token, it only refreshes the token, which adds no scopes.
		{"typescript-sdk-1", "none", npmDir("sdk", typescript1Version, node), older, slices.Concat(first, login, forbidden, wider)},
		// It refreshes only if the token has expired by its own clock; after a 401 it logs in again.
		{"python-sdk-2", "rotate", pythonClient(python2Version), both, slices.Concat(first, login, forbidden, wider)},
		// It logs in before the first request, and again after a 401.
		{"mcp-go", "rotate", buildGoPeer("mcpgo"), both, slices.Concat(register, login, challenge, login, forbidden, wider)},
		// It registers for each login.
		{"go-sdk", "rotate", buildGoPeer("gosdk"), both, slices.Concat(first, register, login, forbidden, register, wider)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			command, err := tt.setUp(t)
			if err != nil {
				skipped.Lock()
				skipped.reasons = append(skipped.reasons, fmt.Sprintf("OAuth client of %s: %v", tt.name, err))
				skipped.Unlock()
				t.Skipf("NOT TESTED: %v", err)
			}
			for _, revision := range tt.revisions {
				t.Run(revision, func(t *testing.T) {
					dir := t.TempDir()
					url := serveFixture(t, binary, dir, oauthFixtureText(tt.refresh, revision))
					argv, _ := command("client", 0)
					ctx, stop := context.WithTimeout(t.Context(), time.Minute)
					defer stop()
					out, err := exec.CommandContext(ctx, argv[0], append(argv[1:], url)...).CombinedOutput()
					if want := "list_rows: 1, 2, 3\nlist_rows: 1, 2, 3\ndelete_row: gone\n"; err != nil || string(out) != want {
						t.Fatalf("%v\n%s", err, out)
					}
					want := strings.Join(tt.want, "\n")
					if got := strings.Join(oauthLines(t, filepath.Join(dir, "journal")), "\n"); got != want {
						t.Errorf("the client asked for\n%s\nwant\n%s", got, want)
					}
				})
			}
		})
	}
}

// npmDir is like npm for programs that get the directory as an argument.
func npmDir(name, version string, command func(dir string) commandOf) func(*testing.T) (commandOf, error) {
	return installNpm("@modelcontextprotocol/"+name, version, func(main string) commandOf {
		dir, _, _ := strings.Cut(main, string(filepath.Separator)+"node_modules"+string(filepath.Separator))
		return command(dir)
	})
}

// pythonClient runs oauth_client.py.
func pythonClient(version string) func(*testing.T) (commandOf, error) {
	return func(t *testing.T) (commandOf, error) {
		t.Helper()
		server, err := installPython(version)(t)
		argv, _ := server("stdio", 0)
		return func(string, int) ([]string, []string) { return []string{argv[0], "oauth_client.py"}, nil }, err
	}
}

// serveFixture serves a fixture until the test ends and returns its URL.
func serveFixture(t *testing.T, binary, dir, src string) string {
	t.Helper()
	file, port := filepath.Join(dir, "rows.toml"), filepath.Join(dir, "port")
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, binary, "fixture", "serve", file, "--http", "127.0.0.1:0", "--port-file", port, "--capture", filepath.Join(dir, "journal"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = cmd.Wait() }) // it was killed
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if raw, err := os.ReadFile(port); err == nil {
			return "http://127.0.0.1:" + strings.TrimSpace(string(raw)) + "/mcp"
		}
		if time.Now().After(deadline) {
			t.Fatal("the fixture does not come up")
		}
	}
}

// oauthLines returns the OAuth requests of a journal.
func oauthLines(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range bytes.Lines(raw) {
		var e struct {
			Request, Grant, Result string
			Granted                []string
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Grant != "" {
			e.Request = e.Grant
		}
		slices.Sort(e.Granted) // go-sdk asks for them in any order
		lines = append(lines, strings.Join(append([]string{e.Request, e.Result}, e.Granted...), " "))
	}
	return lines
}

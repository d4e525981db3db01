//go:build interop

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The real CLI whose requests are compared, and the TypeScript SDK of the server.
const (
	cliVersion              = "2.1.330"
	typescriptServerVersion = "2.4.0"
	typescriptNodeVersion   = "2.1.2"
)

// bothRevisions are servers of revision 2026-07-28 and of the older revisions.
var bothRevisions = []struct {
	name  string
	setUp func(*testing.T) (commandOf, error)
}{
	{"mcp-go", buildGoPeer("mcpgo")},
	{"typescript-sdk", typescriptServer},
	{"python-sdk", installPython(python2Version)},
	{"go-sdk", withoutSessions(buildGoPeer("gosdk"))},
}

// publicServers are servers that are published in package registries, with two calls each.
var publicServers = []struct {
	name       string
	setUp      func(*testing.T) (commandOf, error)
	transports []string
	calls      [2]string
}{
	{"server-everything", installNpm("@modelcontextprotocol/server-everything", everythingVersion, everythingCommand), []string{"stdio", "http"}, [2]string{`trigger-long-running-operation", input = { duration = 1, steps = 2 }`, `echo", input = { message = "hi" }`}},
	{"server-filesystem", installNpm("@modelcontextprotocol/server-filesystem", filesystemVersion, filesystemCommand), []string{"stdio"}, [2]string{`list_directory", input = { path = "." }`, `read_text_file", input = { path = "/etc/passwd" }`}},
	{"server-memory", installNpm("@modelcontextprotocol/server-memory", memoryVersion, everythingCommand), []string{"stdio"}, [2]string{`read_graph", input = {}`, `search_nodes", input = { query = "a" }`}},
	{"mcp-server-time", installPythonServer("mcp-server-time", timeVersion), []string{"stdio"}, [2]string{`get_current_time", input = { timezone = "Etc/UTC" }`, `get_current_time", input = { timezone = "no" }`}},
	{"mcp-server-git", installPythonServer("mcp-server-git", gitVersion), []string{"stdio"}, [2]string{`git_status", input = { repo_path = "." }`, `git_log", input = { repo_path = "/nowhere" }`}},
}

var echoCalls = [2]string{`echo", input = { message = "hi" }`, `echo", input = {}`}

// playedScenario returns a scenario with two calls.
func playedScenario(calls [2]string) string {
	return `[[responses]]
pattern = { type = "any" }
[[responses.response.steps]]
tool_calls = [{ tool = "mcp__p__` + calls[0] + ` }]
[[responses.response.steps]]
tool_calls = [{ tool = "mcp__p__` + calls[1] + ` }]
[[responses.response.steps]]
text = "the end"
`
}

// sessionScript runs one program that connects to the server through a tap. Over HTTP the tap starts first and ends
// last.
const sessionScript = `
if [ -n "$INTEROP_TAP_LISTEN" ]; then
  "$TAP_BINARY" & tap=$!
  for i in $(seq 200); do
    curl -s -o probe "$INTEROP_TAP_URL" && break
    sleep 0.05
  done
  rm -f probe
fi
claude -p go --mcp-config mcp.json --strict-mcp-config --allowedTools mcp__p --output-format stream-json --verbose </dev/null >out.jsonl
code=$?
[ -z "$tap" ] || { kill $tap; wait $tap 2>/dev/null; }
exit $code
`

// TestSequences_N1N2 compares the requests of claudeless and of the real CLI to third-party servers: methods, headers
// and parameters, in order.
func TestSequences_N1N2(t *testing.T) {
	binary := build(t)
	real, err := realCLI(t)
	if err != nil {
		skipTest(t, "the real CLI", err)
	}
	for _, p := range bothRevisions {
		t.Run(p.name, func(t *testing.T) {
			command, err := p.setUp(t)
			if err != nil {
				skipTest(t, "sequences of "+p.name, err)
			}
			for _, transport := range []string{"stdio", "http"} {
				t.Run(transport, func(t *testing.T) { compareSequences(t, binary, real, transport, command, echoCalls) })
			}
		})
	}
}

// TestPublicSequences_N1N2 compares the requests to servers that many users have.
func TestPublicSequences_N1N2(t *testing.T) {
	binary := build(t)
	real, err := realCLI(t)
	if err != nil {
		skipTest(t, "the real CLI", err)
	}
	for _, p := range publicServers {
		t.Run(p.name, func(t *testing.T) {
			command, err := p.setUp(t)
			if err != nil {
				skipTest(t, "sequences of "+p.name, err)
			}
			for _, transport := range p.transports {
				t.Run(transport, func(t *testing.T) { compareSequences(t, binary, real, transport, command, p.calls) })
			}
		})
	}
}

func compareSequences(t *testing.T, binary, real, transport string, command commandOf, calls [2]string) {
	t.Helper()
	var ours, theirs []string
	for range 3 { // on a busy machine a server may start only after the time limit of the probe
		ours = playTapped(t, binary, "", transport, command, calls)
		theirs = playTapped(t, binary, real, transport, command, calls)
		if slices.Equal(ours, theirs) {
			break
		}
	}
	if !strings.Contains(methodNames(theirs), "server/discover") || strings.Count(methodNames(theirs), "tools/call") != 2 {
		t.Errorf("the real CLI sends %s", methodNames(theirs))
	}
	t.Log(methodNames(theirs))
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("requests (-real +double):\n%s", diff)
	}
}

func skipTest(t *testing.T, what string, err error) {
	t.Helper()
	skipped.Lock()
	skipped.reasons = append(skipped.reasons, fmt.Sprintf("%s: %v", what, err))
	skipped.Unlock()
	t.Skipf("NOT TESTED: %v", err)
}

// playTapped plays the scenario with claudeless, or with the real CLI at a path, in a network with loopback only, and
// returns the messages that the server received.
func playTapped(t *testing.T, binary, real, transport string, command commandOf, calls [2]string) []string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const port = 4001
	argv, serverEnv := command(transport, port)
	env := append(serverEnv, "INTEROP_TAP="+filepath.Join(dir, "sent"), "INTEROP_TAP_SERVER="+strings.Join(argv, " "))
	entry := map[string]any{"command": self, "env": environ(env)}
	if transport == "http" {
		env = append(env, "INTEROP_TAP_LISTEN=127.0.0.1:4000", fmt.Sprintf("INTEROP_TAP_URL=http://127.0.0.1:%d", port), "TAP_BINARY="+self)
		entry = map[string]any{"type": "http", "url": "http://127.0.0.1:4000/mcp"}
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"p": entry}})
	if err == nil {
		err = errors.Join(
			os.WriteFile(filepath.Join(dir, "mcp.json"), config, 0o600),
			os.WriteFile(filepath.Join(dir, "s.toml"), []byte(playedScenario(calls)), 0o600),
			os.WriteFile(filepath.Join(dir, "session.sh"), []byte(sessionScript), 0o600),
		)
	}
	if err != nil {
		t.Fatal(err)
	}
	if transport == "stdio" {
		env = nil
	}
	out := playIsolated(t, binary, real, dir, env)
	sent, err := os.ReadFile(filepath.Join(dir, "sent"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return comparableSequence(string(sent))
}

// playIsolated runs sessionScript.sh of a directory with claudeless, or with the real CLI at a path and s.toml as its
// model, in a network with loopback only.
func playIsolated(t *testing.T, binary, real, dir string, env []string) (output []byte) {
	t.Helper()
	words := []string{"-n", "--", "sh", "-c", "ip link set lo up 2>/dev/null || ifconfig lo up\nexec \"$@\"", "sh", binary, "exec", "-s", "s.toml", "--fresh-home", "--guard=off", "--lenient"}
	if real != "" {
		words = append(words, "--real="+real)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "unshare", append(words, "--", "sh", "session.sh")...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(os.Environ(), []string{"CLAUDELESS_CLAUDE_VERSION=" + cliVersion, "IS_SANDBOX=1", "PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH")}, env)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return output
}

func environ(list []string) map[string]string {
	table := map[string]string{}
	for _, kv := range list {
		name, value, _ := strings.Cut(kv, "=")
		table[name] = value
	}
	return table
}

// buildGoPeer builds a server from a module next to this package.
func buildGoPeer(name string) func(*testing.T) (commandOf, error) {
	return func(t *testing.T) (commandOf, error) {
		t.Helper()
		program := filepath.Join(t.TempDir(), name)
		build := exec.Command("go", "build", "-o", program, ".")
		build.Dir = filepath.Join("..", name)
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, out)
		}
		return func(transport string, port int) (argv, env []string) {
			if transport == "stdio" {
				return []string{program}, nil
			}
			if transport == "client" {
				return []string{program, transport}, nil
			}
			return []string{program, transport, fmt.Sprintf("127.0.0.1:%d", port)}, nil
		}, nil
	}
}

// withoutSessions makes the Go SDK server run without sessions.
func withoutSessions(setUp func(*testing.T) (commandOf, error)) func(*testing.T) (commandOf, error) {
	return func(t *testing.T) (commandOf, error) {
		t.Helper()
		command, err := setUp(t)
		return func(transport string, port int) (argv, env []string) {
			argv, env = command(transport, port)
			return argv, append(env, "STATELESS=1")
		}, err
	}
}

func typescriptServer(t *testing.T) (commandOf, error) {
	t.Helper()
	dir := filepath.Join(cacheDir(t), "typescript-server-"+typescriptServerVersion)
	err := runOnce(dir, []string{
		"npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", dir,
		"@modelcontextprotocol/server@" + typescriptServerVersion, "@modelcontextprotocol/node@" + typescriptNodeVersion,
	})
	script, _ := filepath.Abs("peer.mjs")
	return func(transport string, port int) (argv, env []string) {
		argv = []string{"node", script, dir}
		if transport != "stdio" {
			argv = append(argv, transport, fmt.Sprint(port))
		}
		return argv, nil
	}, err
}

// realCLI installs the real CLI and finds out whether it can run without a network.
func realCLI(t *testing.T) (string, error) {
	t.Helper()
	if out, err := exec.Command("unshare", "-n", "true").CombinedOutput(); err != nil {
		return "", fmt.Errorf("unshare: %w\n%s", err, out)
	}
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	name := "@anthropic-ai/claude-code-" + runtime.GOOS + "-" + arch
	dir := filepath.Join(cacheDir(t), "claude-"+cliVersion)
	err := runOnce(dir, []string{
		"npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--force",
		"--prefix", dir, name + "@" + cliVersion,
	})
	return filepath.Join(dir, "node_modules", filepath.FromSlash(name), "claude"), err
}

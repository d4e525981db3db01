package mcpcmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/mcp"
)

// Requirements M19, M21, M34, S35 and C46–C52, as a user or a script sees them.
func TestClient(t *testing.T) {
	b := newTestHome(t)
	b.add("resources")
	b.add("rpc-error")
	b.add("crash-at-start")
	b.steps([]step{
		{words: []string{"call", "resources", "echo", `{"text":"hi"}`}, stdout: "echo: hi\n", stderr: "resources: MCP 2025-11-25\n"},
		{words: []string{"call", "resources", "echo", `{"text":"hi"}`, "--json"}, stdout: `{"content":[{"text":"echo: hi","type":"text"}]}` + "\n"},
		{words: []string{"call", "resources/echo", `{"text":"hi"}`}, stdout: "echo: hi\n", stderr: "resources: MCP 2025-11-25\n"},
		{words: []string{"call", "resources", "fail"}, stdout: "it failed\n", stderr: "resources: MCP 2025-11-25\n", fails: true},
		{words: []string{"call", "resources", "nope"}, stderr: "unknown MCP tool: resources/nope", fails: true},
		{words: []string{"call", "resources", "ecko"}, stderr: "unknown MCP tool: resources/ecko", fails: true},
		{words: []string{"call", "resources", "crash"}, stderr: `internal: MCP server "resources" ended during the call: exit status 7`, fails: true},
		{words: []string{"call", "resources", "echo", "[1]"}, stderr: "the arguments are not a JSON object: not an object", fails: true},
		{words: []string{"call", "nope", "echo"}, stderr: `No MCP server named "nope". Configured servers: crash-at-start, resources, rpc-error`, fails: true},
		{words: []string{"call", "crash-at-start", "echo"}, stderr: "MCP server 'crash-at-start' failed to start: exit status 3: fatal: boom", fails: true},
		{words: []string{"resources", "resources"}, stdout: "resources  file:///a.txt  a\nresources  file:///{x}  t (template)\n"},
		{
			words: []string{"resources", "resources", "--json"},
			stdout: `{"resourceTemplates":[{"server":"resources","template":{"uriTemplate":"file:///{x}","name":"t"}}],` +
				`"resources":[{"name":"a","uri":"file:///a.txt","mimeType":"text/plain","server":"resources"}]}` + "\n",
		},
		{words: []string{"read", "resources", "file:///a.txt"}, stdout: "body"},
		{words: []string{"read", "resources", "file:///a.txt", "--json"}, stdout: `{"contents":[{"uri":"file:///a.txt","mimeType":"text/plain","text":"body"}]}` + "\n"},
		{words: []string{"prompts", "resources"}, stdout: "resources  p x=…  d\n"},
		{words: []string{"prompts", "resources", "--json"}, stdout: `{"prompts":[{"server":"resources","name":"p","description":"d","arguments":[{"name":"x","required":true}]}]}` + "\n"},
		{words: []string{"get-prompt", "resources", "p", "x=1"}, stdout: "user: hi\n"},
		{words: []string{"get-prompt", "resources", "p", "x"}, stderr: `the argument "x" is not of the form key=value`, fails: true},
		{words: []string{"prompts", "crash-at-start", "resources"}, stdout: "resources  p x=…  d\n", stderr: "MCP server 'crash-at-start' failed to start: exit status 3: fatal: boom", fails: true},
		{words: []string{"tools", "--frobnicate"}, stderr: "unknown flag --frobnicate", fails: true},
	})
	err := Run(t.Context(), b.o, []string{"call", "resources", "ecko"})
	if hintOf(err) != "did you mean `echo`?" {
		t.Errorf("a tool that is not there: %v", err)
	}
	b.add("exit-mid-call")
	if _, stderr, ok := b.run("call", "exit-mid-call", "echo"); ok || stderr != `internal: MCP server "exit-mid-call" ended during the call: exit status 5: died in a call` {
		t.Errorf("a server that ends in a call: success %v, %s", ok, stderr)
	}
	b.add("hang-call")
	err = Run(t.Context(), b.o, []string{"call", "hang-call", "echo", "--timeout", "1s"})
	if !strings.HasSuffix(err.Error(), `tool "echo" timed out after 1s`) || !strings.HasPrefix(hintOf(err), "set the limit with --timeout, MCP_TOOL_TIMEOUT ") {
		t.Errorf("a call that takes too long: %#v", err)
	}
	b.o.Stdin = strings.NewReader(`{"text":"from stdin"}`)
	b.steps([]step{{words: []string{"call", "resources", "echo", "-"}, stdout: "echo: from stdin\n", stderr: "resources: MCP 2025-11-25\n"}})
	if _, stderr, ok := b.run("call", "rpc-error", "echo"); ok || !strings.Contains(stderr, "the MCP server answered with error -32050") {
		t.Errorf("an answer that is an error: success %v, stderr %q", ok, stderr)
	}
}

func TestStatus(t *testing.T) {
	b := newTestHome(t)
	b.add("ok")
	b.add("crash-at-start")
	stdout, stderr, ok := b.run("status")
	for _, want := range []string{"ok: connected\n  Transport: stdio\n  Scope: local\n  Server: ", "  Offers: 5 tools, 0 resources, 0 prompts\n", "crash-at-start: failed\n", "  Error: exit status 3: fatal: boom\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("status: %q is not in\n%s", want, stdout)
		}
	}
	if ok || stderr != "" {
		t.Errorf("status: success %v, stderr %q; want a failure in silence", ok, stderr)
	}
	stdout, stderr, ok = b.run("status", "ok", "--mcp-config", `{"mcpServers":{"bad":{"type":"carrier-pigeon"}}}`)
	if ok || !strings.Contains(stdout, "ok: connected") || !strings.HasPrefix(stderr, "bad: ") {
		t.Errorf("status with an invalid entry: success %v, %s, stderr %q", ok, stdout, stderr)
	}
	stdout, _, ok = b.run("status", "ok", "--json")
	if !ok || !strings.HasPrefix(stdout, `{"mcpServers":[{"name":"ok","status":"connected","serverInfo":{`) {
		t.Errorf("status --json: success %v, %s", ok, stdout)
	}
}

// If two tools have the same normalized name, the hidden one is reported (design 6).
func TestToolsHidden(t *testing.T) {
	b := newTestHome(t)
	config := `{"mcpServers":{"s.1":{"command":"$SELF","env":{"MCPTEST_MODE":"ok"}},"s 1":{"command":"$SELF","env":{"MCPTEST_MODE":"ok"}}}}`
	stdout, stderr, ok := b.run("tools", "--strict-mcp-config", "--mcp-config", config)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if !ok || stderr != "s.1: MCP 2025-11-25\ns 1: MCP 2025-11-25\n" || len(lines) != 10 {
		t.Fatalf("success %v, stderr %q, stdout:\n%s", ok, stderr, stdout)
	}
	want := []string{"mcp__s_1__echo  the tool echo", `mcp__s_1__echo  hidden: tool "echo" of "s 1"; "s.1" has a tool of that name`}
	if diff := cmp.Diff(want, []string{lines[0], lines[5]}); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	stdout, _, _ = b.run("tools", "--json", "--strict-mcp-config", "--mcp-config", config)
	for _, want := range []string{`{"hidden":[{"name":"mcp__s_1__echo","server":"s 1","tool":"echo","by":"s.1"}`, `{"name":"mcp__s_1__echo","server":"s.1","definition":{`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%s is not in %s", want, stdout)
		}
	}
}

func TestMCPConfig(t *testing.T) {
	b := newTestHome(t)
	b.add("ok")
	b.steps([]step{
		{words: []string{"tools", "--mcp-config", "nope.json"}, stderr: "Error: Invalid MCP configuration:\nMCP config file not found: $PROJECT/nope.json", fails: true},
		{words: []string{"call", "ok", "echo", "--strict-mcp-config"}, stderr: "No MCP server named \"ok\". Run `claude mcp add` to add one.", fails: true},
		{
			words:  []string{"call", "--mcp-config", `{"mcpServers":{"bad":{"command":5},"two":{"command":"$SELF","env":{"MCPTEST_MODE":"ok"}}}}`, "two", "echo", `{"text":"x"}`},
			stderr: "bad: Skipped — invalid MCP server config for \"bad\": command: expected string, received number\ntwo: MCP 2025-11-25\n", stdout: "echo: x\n",
		},
	})
}

func TestProgressLine(t *testing.T) {
	status := func(words string) (all []mcp.ServerStatus) {
		for i, w := range strings.Fields(words) {
			all = append(all, mcp.ServerStatus{Name: string(rune('a' + i)), Status: w})
		}
		return all
	}
	for words, want := range map[string]string{
		"":                  "",
		"connected failed":  "",
		"connected pending": "Connecting to MCP servers: 1 of 2, waiting for b",
		"pending failed":    "Connecting to MCP servers: 1 of 2, waiting for a",
		"pending pending":   "Connecting to MCP servers: 0 of 2, waiting for a, b",
		"pending pending pending pending disabled": "Connecting to MCP servers: 1 of 5, waiting for a, b, c, …",
	} {
		if got := connectingServersLine(status(words)); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

// The name of a slow server is shown while the command waits, and then erased.
func TestProgress(t *testing.T) {
	b := newTestHome(t)
	b.add("slow") // 300 ms
	var terminal bytes.Buffer
	b.o.Progress = &terminal
	b.steps([]step{{words: []string{"call", "slow", "echo", `{"text":"x"}`}, stdout: "echo: x\n", stderr: "slow: MCP 2025-11-25\n"}})
	got := terminal.String()
	if !strings.HasPrefix(got, "\rConnecting to MCP servers: 0 of 1, waiting for slow\x1b[K") || !strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("terminal: %q", got)
	}
}

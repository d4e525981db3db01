package scripts

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// debugger is a claudeless debug in its own process.
type debugger struct {
	t      *testing.T
	url    string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout string // the file that its standard output goes to
}

// startDebugger starts a debugger with environment entries and command-line words. It is stopped at the end of the
// test.
func startDebugger(t *testing.T, environ []string, words ...string) *debugger {
	t.Helper()
	file := filepath.Join(t.TempDir(), "port")
	d := &debugger{t: t, stdout: filepath.Join(t.TempDir(), "stdout"), cmd: exec.CommandContext(t.Context(), "claudeless", append([]string{"debug", "--port", "0", "--port-file", file}, words...)...)}
	d.cmd.Env = append(append(os.Environ(), "HOME="+t.TempDir(), "GORACE=atexit_sleep_ms=0"), environ...)
	stdout, err := os.Create(d.stdout)
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	d.cmd.Stdout = stdout
	if d.stdin, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	d.cmd.Cancel = func() error { return d.cmd.Process.Signal(syscall.SIGTERM) }
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.cmd.Wait() })
	waitUntil(t, "a port", func() bool {
		port, err := os.ReadFile(file)
		d.url = "http://127.0.0.1:" + strings.TrimSpace(string(port))
		return err == nil
	})
	return d
}

// printed returns the standard output so far.
func (d *debugger) printed() string {
	d.t.Helper()
	out, err := os.ReadFile(d.stdout)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(out)
}

func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline, tick := time.Now().Add(10*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		<-tick.C
	}
}

// ask sends a request and returns the answer, which is JSON.
func (d *debugger) ask(method, path, body string) (answer map[string]any, text string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		d.t.Fatalf("%s %s: %s", method, path, data)
	}
	return answer, string(data)
}

// Real servers in separate processes, from the command line and from a file (C95, C149), over stdio (C141, C152) and
// SSE (C142, C153): connected when the port is reported, each with its own tools (C143), and called (C145). One server
// is added at run time (C147) and one is removed (C148). After a clean stop no process remains (C96, C150).
func TestDebuggerServers(t *testing.T) {
	t.Parallel()
	peer := startDebugger(t, nil, "--mcp-sse")
	file := filepath.Join(t.TempDir(), "clients.json")
	if err := os.WriteFile(file, []byte(`{"servers":{"file":{"transport":"stdio","command":"mcpsrv","env":{"TOOLS":"extra"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("MARK=%d-%d", os.Getpid(), time.Now().UnixNano())
	d := startDebugger(t, []string{mark}, "--mcp-clients-config", file, "--mcp-client", "inline:mcpsrv", "--mcp-client", "sse:"+peer.url+"/mcp/sse")
	clients, _ := d.ask("GET", "/api/mcp-clients", "")
	for name, tool := range map[string]string{"file": "file/extra", "inline": "inline/echo", "sse": "sse/breakpoint_add"} {
		status, _ := valueAt(clients, "clients."+name+".status").(string)
		if tools := compactJSON(valueAt(clients, "clients."+name+".tools")); status != "connected" || !strings.Contains(tools, `"`+tool+`"`) {
			t.Errorf("%s is %s with tools %s", name, status, tools)
		}
	}
	if tools := compactJSON(valueAt(clients, "clients.inline.tools")); strings.Contains(tools, "extra") || strings.Contains(tools, "breakpoint_add") {
		t.Errorf("tools of others: %s", tools)
	}
	if _, text := d.ask("POST", "/api/mcp-tools/call", `{"tool":"inline/echo","arguments":{"text":"hello"}}`); !strings.Contains(text, "echo: hello") {
		t.Errorf("by stdio: %s", text)
	}
	d.ask("POST", "/api/mcp-tools/call", `{"tool":"sse/breakpoint_add","arguments":{"function_name":"from afar"}}`)
	if _, text := peer.ask("GET", "/api/breakpoints", ""); !strings.Contains(text, "from afar") {
		t.Errorf("by SSE: %s", text)
	}
	if answer, text := d.ask("POST", "/api/mcp-clients/connect", `{"name":"late","transport":"stdio","command":"mcpsrv"}`); answer["status"] != "ok" {
		t.Errorf("connecting: %s", text)
	}
	count := func(want int) {
		if all := processesWith(mark); len(all) != want && runtime.GOOS == "linux" {
			t.Errorf("%d processes, want %d: %v", len(all), want, all)
		}
	}
	count(4) // the debugger itself and its servers over stdio
	d.ask("POST", "/api/mcp-clients/late/disconnect", "")
	waitUntil(t, "the end of a server", func() bool { return len(processesWith(mark)) <= 3 })
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait()
	count(0)
}

// send writes one message to the MCP server on stdin and waits for the answer, which is line n of stdout.
func (d *debugger) send(n int, message string) (answer string) {
	d.t.Helper()
	if _, err := io.WriteString(d.stdin, message+"\n"); err != nil {
		d.t.Error(err)
	}
	var lines []string
	waitUntil(d.t, "an answer to "+message, func() bool {
		lines = strings.Split(d.printed(), "\n")
		return len(lines) > n
	})
	return lines[n-1]
}

func (d *debugger) status(path string) int {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, d.url+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// The two flags that make the debugger an MCP server (S112, S115, S116), each alone and both (S118): over stdio in
// addition to HTTP (S113), where HTTP continues after the end of stdin (S119) and stdout has only JSON-RPC (S121);
// over HTTP without using stdio (S117, S120); and without a flag no MCP server (S114). Changes over one transport are
// visible over the other (S128).
func TestDebuggerMCPFlags(t *testing.T) {
	t.Parallel()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	call := func(tool, arguments string) string {
		return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
	}
	for _, tt := range []struct {
		flags      []string
		stdio, sse bool
	}{{nil, false, false}, {[]string{"--mcp"}, true, false}, {[]string{"--mcp-sse"}, false, true}, {[]string{"--mcp", "--mcp-sse"}, true, true}} {
		t.Run(strings.Join(tt.flags, " "), func(t *testing.T) {
			d := startDebugger(t, nil, tt.flags...)
			if got, want := d.status("/mcp/sse"), map[bool]int{true: 200, false: 404}[tt.sse]; got != want {
				t.Errorf("/mcp/sse: %d, want %d", got, want)
			}
			d.ask("POST", "/api/breakpoints", `{"function_name":"by HTTP"}`)
			if tt.stdio {
				if answer := d.send(1, hello); !strings.Contains(answer, `"serverInfo"`) {
					t.Errorf("initialize: %s", answer)
				}
				if answer := d.send(2, call("breakpoint_add", `{"function_name":"by MCP"}`)); !strings.Contains(answer, "by MCP") {
					t.Errorf("breakpoint_add: %s", answer)
				}
				if answer := d.send(3, call("breakpoint_list_breakpoints", `{}`)); !strings.Contains(answer, "by HTTP") {
					t.Errorf("breakpoint_list_breakpoints: %s", answer)
				}
			} else if _, err := io.WriteString(d.stdin, hello+"\n"); err != nil {
				t.Error(err)
			}
			if err := d.stdin.Close(); err != nil {
				t.Error(err)
			}
			if _, text := d.ask("GET", "/api/breakpoints", ""); strings.Contains(text, `"by MCP"`) != tt.stdio || !strings.Contains(text, `"by HTTP"`) {
				t.Errorf("after the end of stdin: %s", text)
			}
			if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = d.cmd.Wait()
			for line := range strings.Lines(d.printed()) {
				if !tt.stdio || !json.Valid([]byte(line)) || !strings.Contains(line, `"jsonrpc":"2.0"`) {
					t.Errorf("on stdout: %s", line)
				}
			}
		})
	}
}

// The debugger shows the values of a paused call unchanged and does not receive the environment of its caller. The
// journal of the run hides both, and the debugger writes no file.
func TestDebuggerSecrets(t *testing.T) {
	t.Parallel()
	d := startDebugger(t, nil)
	dir := t.TempDir()
	scenario, journal := filepath.Join(dir, "s.toml"), filepath.Join(dir, "journal.jsonl")
	if err := os.WriteFile(scenario, []byte("[[responses]]\npattern = { type = \"any\" }\nresponse = { tool_calls = [{ tool = \"Bash\", input = { command = \"echo hunter2hunter\", description = \"x\" } }], text = \"done\" }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.ask("POST", "/api/breakpoints", `{"function_name": "Bash", "behavior": "stop", "after_behavior": "go"}`)
	cmd := exec.CommandContext(t.Context(), "claudeless", "-p", "use hunter2hunter", "--scenario", scenario, "--capture", journal, "--allowedTools", "Bash", "--debugger", d.url)
	cmd.Env = append(os.Environ(), "HOME="+dir, "MY_TOKEN=hunter2hunter", "OTHER_TOKEN=zorkmid99zork")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var paused string
	waitUntil(t, "the pause", func() bool {
		_, paused = d.ask("GET", "/api/paused", "")
		return strings.Contains(paused, `"id"`)
	})
	answer, _ := d.ask("GET", "/api/paused", "")
	id, _ := answer["paused"].([]any)[0].(map[string]any)["id"].(string)
	d.ask("POST", "/api/paused/"+id+"/continue", `{"action": "continue"}`)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	_, calls := d.ask("GET", "/api/calls", "")
	for name, text := range map[string]string{"paused": paused, "calls": calls} {
		if !strings.Contains(text, "hunter2hunter") || strings.Contains(text, "zorkmid99zork") {
			t.Errorf("%s: %s", name, text)
		}
	}
	written, err := os.ReadFile(journal)
	if err != nil || !strings.Contains(string(written), `"type":"breakpoint"`) || strings.Contains(string(written), "hunter2hunter") {
		t.Errorf("journal: %s, %v", written, err)
	}
	if out, err := os.ReadFile(d.stdout); err != nil || strings.Contains(string(out), "hunter2hunter") {
		t.Errorf("output: %s, %v", out, err)
	}
}

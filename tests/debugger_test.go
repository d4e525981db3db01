package tests

import (
	"bytes"
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

// debugger is a claudeless debug in a process of its own.
type debugger struct {
	t   *testing.T
	url string
	cmd *exec.Cmd
	out bytes.Buffer
}

// startDebugger starts one with environment entries and words; it ends with
// the test.
func startDebugger(t *testing.T, environ []string, words ...string) *debugger {
	t.Helper()
	file := filepath.Join(t.TempDir(), "port")
	d := &debugger{t: t, cmd: exec.CommandContext(t.Context(), "claudeless", append([]string{"debug", "--port", "0", "--port-file", file}, words...)...)}
	d.cmd.Env = append(append(os.Environ(), "HOME="+t.TempDir(), "GORACE=atexit_sleep_ms=0"), environ...)
	d.cmd.Stderr = &d.out
	d.cmd.Cancel = func() error { return d.cmd.Process.Signal(syscall.SIGTERM) }
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.cmd.Wait() })
	eventually(t, "a port", func() bool {
		port, err := os.ReadFile(file)
		d.url = "http://127.0.0.1:" + strings.TrimSpace(string(port))
		return err == nil
	})
	return d
}

func eventually(t *testing.T, what string, done func() bool) {
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

// Real servers in processes of their own, from the command line and from a file
// (C95, C149), over stdio (C141, C152) and SSE (C142, C153): connected when the
// port is told, each with tools of its own (C143), called (C145), joined by one
// at run time (C147) and left by one (C148); a clean stop leaves no process
// (C96, C150).
func TestDebuggerServers(t *testing.T) {
	peer := startDebugger(t, nil, "--mcp-sse")
	file := filepath.Join(t.TempDir(), "clients.json")
	if err := os.WriteFile(file, []byte(`{"servers":{"file":{"transport":"stdio","command":"mcpsrv","env":{"TOOLS":"extra"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("MARK=%d-%d", os.Getpid(), time.Now().UnixNano())
	d := startDebugger(t, []string{mark}, "--mcp-clients-config", file, "--mcp-client", "inline:mcpsrv", "--mcp-client", "sse:"+peer.url+"/mcp/sse")
	clients, _ := d.ask("GET", "/api/mcp-clients", "")
	for name, tool := range map[string]string{"file": "file/extra", "inline": "inline/echo", "sse": "sse/breakpoint_add"} {
		status, _ := at(clients, "clients."+name+".status").(string)
		if tools := compact(at(clients, "clients."+name+".tools")); status != "connected" || !strings.Contains(tools, `"`+tool+`"`) {
			t.Errorf("%s is %s with tools %s", name, status, tools)
		}
	}
	if tools := compact(at(clients, "clients.inline.tools")); strings.Contains(tools, "extra") || strings.Contains(tools, "breakpoint_add") {
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
	count(3)
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait()
	count(0)
}

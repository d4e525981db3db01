package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/claudeless/claudeless/internal/debug"
)

// lockedBuffer is a stream that is read while the program runs.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// startDebugger runs claudeless debug until the test ends.
func startDebugger(t *testing.T, environ []string, words ...string) (url string, stderr *lockedBuffer) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "port")
	s, _, _ := fakeSystem(t, append([]string{"debug", "--port-file", file}, words...)...)
	var n atomic.Int64
	s.Now, s.NewID, s.Environ = time.Now, func() string { return fmt.Sprintf("id-%d", n.Add(1)) }, environ
	stderr = &lockedBuffer{}
	s.Stderr = stderr
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, s) }()
	t.Cleanup(func() {
		cancel()
		select {
		case code := <-ended:
			if code != exitOK {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		case <-time.After(5 * time.Second):
			t.Error("still running 5 s after the end was asked for")
		}
	})
	for range 1000 {
		if data, err := os.ReadFile(file); err == nil {
			return "http://127.0.0.1:" + strings.TrimSpace(string(data)), stderr
		}
		select {
		case code := <-ended:
			ended <- code
			t.Fatalf("ended with %d: %s", code, stderr)
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("no port file")
	return "", nil
}

func ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

func TestDebugServes(t *testing.T) {
	url, stderr := startDebugger(t, nil, "--port", "0")
	if status, body := ask(t, "GET", url+"/api/breakpoints", ""); status != 200 || !strings.Contains(body, `"breakpoints":[]`) {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := ask(t, "GET", url+"/api/mcp-clients", ""); status != 503 { // C93
		t.Errorf("external servers without a flag: %d", status)
	}
	if !strings.Contains(stderr.String(), url) {
		t.Errorf("stderr %q", stderr)
	}
}

// A port that is asked for is taken or refused; without --port any will do.
func TestDebugPort(t *testing.T) {
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, stdout, stderr := fakeSystem(t, "debug", "--port", port)
	if code := Run(t.Context(), s); code != exitFailed || stdout.Len() > 0 || !strings.Contains(stderr.String(), port) {
		t.Errorf("%d, stderr %q", code, stderr)
	}
}

func TestDebugExternalFlags(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	server := func(name string) string {
		return `{"servers":{"` + name + `":{"transport":"stdio","command":"/nosuch"}}}`
	}
	write(".claudeless/mcp_clients.json", server("home"))
	write("state/mcp_clients.json", server("state"))
	other := write("other.json", server("other"))
	home := []string{"HOME=" + dir}
	tests := []struct {
		name    string
		environ []string
		words   []string
		want    string // in /api/mcp-clients
	}{
		{"C94 C97: nothing there", []string{"HOME=/nosuch"}, []string{"--mcp-clients"}, `{"clients":{}}`},
		{"C81 C84", home, []string{"--mcp-clients"}, `"home":{`},
		{"C83", append(home, "CLAUDELESS_CONFIG_DIR="+dir+"/state"), []string{"--mcp-clients"}, `"state":{`},
		{"C82", append(home, "CLAUDELESS_CONFIG_DIR="+dir+"/state", "CLAUDELESS_MCP_CLIENTS_CONFIG="+other), []string{"--mcp-clients"}, `"other":{`},
		{"C85 C149", home, []string{"--mcp-clients-config", other}, `"other":{`},
		{"C86 C95 C152", nil, []string{"--mcp-client", "one:/nosuch a b"}, `"one":{"status":"error","transport":"stdio"`},
		{"C87 C153", nil, []string{"--mcp-client", "two:http://127.0.0.1:1/sse"}, `"two":{"status":"error","transport":"sse"`},
		{"C89", nil, []string{"--mcp-client", "one:/nosuch", "--mcp-client", "two:/nosuch"}, `"two":{`},
		{"inline wins over the file", nil, []string{"--mcp-clients-config", other, "--mcp-client", "other:http://127.0.0.1:1/sse"}, `"other":{"status":"error","transport":"sse"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url, _ := startDebugger(t, tt.environ, append([]string{"--port", "0"}, tt.words...)...)
			if status, body := ask(t, "GET", url+"/api/mcp-clients", ""); status != 200 || !strings.Contains(body, tt.want) {
				t.Errorf("%d %s, want %s", status, body, tt.want)
			}
		})
	}
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"--mcp-client", "no-colon"}, "no-colon"},                                              // C90
		{[]string{"--mcp-client", ":command"}, "empty"},                                                 // C91
		{[]string{"--mcp-client", "name:"}, "name:"},                                                    // C92
		{[]string{"--mcp-clients-config", dir + "/nosuch.json"}, "no such file"},                        // C72 C98
		{[]string{"--mcp-clients-config", write("bad.json", `{"servers":{"x":{}}}`)}, `"x": transport`}, // C74
		{[]string{"--on-timeout", "explode"}, "explode"},
	} {
		s, stdout, stderr := fakeSystem(t, append([]string{"debug", "--port", "0"}, tt.words...)...)
		if code := Run(t.Context(), s); code != exitFailed || stdout.Len() > 0 || !strings.Contains(stderr.String(), tt.want) {
			t.Errorf("%q: %d, stderr %q, want %q", tt.words, code, stderr, tt.want)
		}
	}
}

func TestDebugToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	url, _ := startDebugger(t, nil, "--port", "0", "--token-file", file)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if status, _ := ask(t, "GET", url+"/api/status", ""); status != 401 {
		t.Errorf("without the token: %d", status)
	}
	if status, _ := ask(t, "GET", url+"/api/status?token="+strings.TrimSpace(string(data)), ""); status != 200 {
		t.Errorf("with the token: %d", status)
	}
	s, _, stderr := fakeSystem(t, "debug", "hook", "--debugger", url)
	s.Stdin = strings.NewReader(`{"hook_event_name":"PreToolUse","tool_name":"Bash"}`)
	s.Environ = []string{"CLAUDELESS_DEBUGGER_TOKEN=" + strings.TrimSpace(string(data))}
	if code := Run(t.Context(), s); code != exitOK {
		t.Errorf("hook with the token: %d %s", code, stderr)
	}
}

// The hook command end to end: a call is stopped, changed, run by the agent
// and completed by a second process.
func TestDebugHook(t *testing.T) {
	url, _ := startDebugger(t, nil, "--port", "0")
	hook := func(input string) (int, string, string) {
		s, stdout, stderr := fakeSystem(t, "debug", "hook", "--debugger", url)
		s.Stdin = strings.NewReader(input)
		code := Run(t.Context(), s)
		return code, stdout.String(), stderr.String()
	}
	const pre = `{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"tu"}`
	if code, out, errs := hook(pre); code != exitOK || out != "" || errs != "" {
		t.Errorf("without a breakpoint: %d %q %q", code, out, errs)
	}
	ask(t, "POST", url+"/api/breakpoints", `{"function_name":"Bash","after_behavior":"go"}`)
	done := make(chan string)
	go func() {
		_, out, errs := hook(pre)
		done <- out + errs
	}()
	var list struct{ Paused []debug.Pause }
	for len(list.Paused) == 0 {
		_, body := ask(t, "GET", url+"/api/paused", "")
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatal(err)
		}
	}
	if status, body := ask(t, "POST", url+"/api/paused/"+list.Paused[0].ID+"/continue", `{"modified_kwargs":{"command":"pwd"}}`); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if got := <-done; got != `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"pwd"}}}`+"\n" {
		t.Errorf("hook printed %q", got)
	}
	hook(`{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"Bash","tool_use_id":"tu","tool_response":{"stdout":"/"}}`)
	if _, body := ask(t, "GET", url+"/api/calls", ""); !strings.Contains(body, `"action":"modify"`) || !strings.Contains(body, `"pretty_result":{"stdout":"/"}`) {
		t.Errorf("calls %s", body)
	}
	s, stdout, stderr := fakeSystem(t, "debug", "hook", "--debugger", "http://127.0.0.1:1")
	s.Stdin = strings.NewReader(pre)
	if code := Run(t.Context(), s); code == exitOK || code == 2 || stdout.Len() > 0 || !strings.Contains(stderr.String(), "http://127.0.0.1:1") {
		t.Errorf("debugger missing: %d %q %q", code, stdout, stderr)
	}
}

func TestDebugProxyWords(t *testing.T) {
	var c debugCmd
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"proxy", "--server", "t", "--debugger", "http://x", "--", "cmd", "-v", "--server", "a"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Proxy.Command, " "); got != "cmd -v --server a" || c.Proxy.Server != "t" || c.Proxy.OnLost != "fail" {
		t.Errorf("%+v", c.Proxy)
	}
	s, _, stderr := fakeSystem(t, "debug", "proxy", "--server", "t", "--debugger", "http://127.0.0.1:1", "--", "/nosuch/server")
	if code := Run(t.Context(), s); code != exitFailed || !strings.Contains(stderr.String(), "/nosuch/server") {
		t.Errorf("%d %q", code, stderr)
	}
}

package cli

import (
	"bufio"
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

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/cli/debugcmd"
	"github.com/claudeless/claudeless/internal/debug"
)

// lockedBuffer is a stream that can be read while the program runs.
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
	return runDebugger(t, func(s *process.System) { s.Environ = environ }, words...)
}

// runDebugger runs claudeless debug in a process that the test modifies first.
func runDebugger(t *testing.T, change func(*process.System), words ...string) (url string, stderr *lockedBuffer) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "port")
	s, _, _ := fakeSystem(t, append([]string{"debug", "--port-file", file}, words...)...)
	var n atomic.Int64
	s.Now, s.NewID = time.Now, func() string { return fmt.Sprintf("id-%d", n.Add(1)) }
	stderr = &lockedBuffer{}
	s.Stderr = stderr
	change(s)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, s) }()
	t.Cleanup(func() {
		cancel()
		select {
		case code := <-ended:
			if code != process.ExitOK {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		case <-time.After(5 * time.Second):
			t.Error("still running 5 s after the end was asked for")
		}
	})
	for range 1000 {
		if data, err := os.ReadFile(file); err == nil && stderr.String() != "" { // its address follows the file name
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

// S112, S115, S116, S118: the MCP flags are read, alone and together. S114: without them no MCP address is reported.
func TestDebugMCPFlags(t *testing.T) {
	for _, tt := range []struct {
		words    string
		mcp, sse bool
		port     int // 0 means not given
	}{
		{"--mcp", true, false, 0},                // S112
		{"", false, false, 0},                    // S114
		{"--mcp --port 7321", true, false, 7321}, // S115
		{"--mcp-sse", false, true, 0},            // S116
		{"--mcp --mcp-sse", true, true, 0},       // S118
	} {
		var c debugcmd.Debug
		parser, err := kong.New(&c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(strings.Fields(tt.words)); err != nil {
			t.Errorf("%q: %v", tt.words, err)
			continue
		}
		port := 0
		if c.Serve.Port != nil {
			port = *c.Serve.Port
		}
		if c.Serve.MCP != tt.mcp || c.Serve.MCPSSE != tt.sse || port != tt.port {
			t.Errorf("%q: %+v", tt.words, c.Serve)
		}
	}
}

// mcpPeer sends MCP messages to a debugger over its standard streams or by requests to /mcp.
type mcpPeer func(t *testing.T, message string) string

const (
	mcpInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	mcpReady      = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func mcpTool(name, arguments string) string {
	return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`
}

// overHTTP initializes a peer over streamable HTTP.
func overHTTP(t *testing.T, url string) mcpPeer {
	t.Helper()
	session := ""
	peer := func(t *testing.T, message string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/mcp", strings.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if id := res.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
		data, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := peer(t, mcpInitialize); !strings.Contains(got, "claudeless-debug") {
		t.Fatalf("initialize over HTTP: %s", got)
	}
	peer(t, mcpReady)
	return peer
}

// stdioStreams are the standard streams of a debugger with their other ends.
type stdioStreams struct {
	in    *io.PipeWriter
	out   *bufio.Scanner
	ended chan struct{} // closed when the debugger has read all of in
}

func (s *stdioStreams) attach(sys *process.System) {
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	s.in, s.out, s.ended = inWrite, bufio.NewScanner(outRead), make(chan struct{})
	sys.Stdin, sys.Stdout = io.MultiReader(inRead, eofNotifier{s.ended}), outWrite
}

// eofNotifier is an empty input that reports when its end was read.
type eofNotifier struct{ ended chan struct{} }

func (e eofNotifier) Read([]byte) (int, error) {
	close(e.ended)
	return 0, io.EOF
}

// peer initializes MCP on the streams. Each output line must be JSON-RPC (S121).
func (s *stdioStreams) peer(t *testing.T) mcpPeer {
	t.Helper()
	peer := func(t *testing.T, message string) string {
		t.Helper()
		if _, err := io.WriteString(s.in, message+"\n"); err != nil {
			t.Fatal(err)
		}
		for s.out.Scan() {
			var m struct{ JSONRPC, Method string }
			if err := json.Unmarshal(s.out.Bytes(), &m); err != nil || m.JSONRPC != "2.0" {
				t.Errorf("stdout has %q: %v", s.out.Text(), err)
			}
			if m.Method == "" { // no notification
				return s.out.Text()
			}
		}
		t.Fatal("stdout ended")
		return ""
	}
	if got := peer(t, mcpInitialize); !strings.Contains(got, "claudeless-debug") {
		t.Fatalf("initialize on stdio: %s", got)
	}
	if _, err := io.WriteString(s.in, mcpReady+"\n"); err != nil {
		t.Fatal(err)
	}
	return peer
}

// checkSharedSettings checks that settings made over one transport apply to the other (S128).
func checkSharedSettings(t *testing.T, peer mcpPeer, url, name string) {
	t.Helper()
	if got := peer(t, mcpTool("breakpoint_add", `{"function_name":"mcp-`+name+`"}`)); !strings.Contains(got, `\"status\":\"ok\"`) {
		t.Errorf("%s: breakpoint_add: %s", name, got)
	}
	if _, body := ask(t, "GET", url+"/api/breakpoints", ""); !strings.Contains(body, `"mcp-`+name+`"`) {
		t.Errorf("%s: HTTP does not see it: %s", name, body)
	}
	ask(t, "POST", url+"/api/breakpoints", `{"function_name":"http-`+name+`"}`)
	if got := peer(t, mcpTool("breakpoint_list_breakpoints", `{}`)); !strings.Contains(got, `\"http-`+name+`\"`) {
		t.Errorf("%s: MCP does not see it: %s", name, got)
	}
}

// S113, S119, S121, S128: with --mcp, HTTP is also served, with the same state, even after the end of stdin. /mcp is
// not served.
func TestDebugOnStdio(t *testing.T) {
	var streams stdioStreams
	url, stderr := runDebugger(t, streams.attach, "--port", "0", "--mcp")
	checkSharedSettings(t, streams.peer(t), url, "stdio") // S113 S121 S128
	if status, _ := ask(t, "POST", url+"/mcp", mcpInitialize); status != 404 {
		t.Errorf("/mcp without --mcp-sse: %d", status)
	}
	streams.in.Close()
	<-streams.ended
	if status, _ := ask(t, "GET", url+"/api/breakpoints", ""); status != 200 { // S119
		t.Errorf("HTTP after the end of stdin: %d", status)
	}
	if !strings.Contains(stderr.String(), url) {
		t.Errorf("stderr %q", stderr)
	}
}

// S114, S120: without --mcp stdin is not read and stdout stays empty. MCP is at /mcp and /mcp/sse only with
// --mcp-sse.
func TestDebugLeavesStdio(t *testing.T) {
	for _, sse := range []bool{false, true} {
		words := []string{"--port", "0"}
		if sse {
			words = append(words, "--mcp-sse")
		}
		var stdout lockedBuffer
		url, _ := runDebugger(t, func(s *process.System) { s.Stdin, s.Stdout = forbiddenStdin{t}, &stdout }, words...)
		if sse {
			checkSharedSettings(t, overHTTP(t, url), url, "http")
			if line := sseEndpoint(t, url); !strings.HasPrefix(line, "data: /mcp/messages") {
				t.Errorf("/mcp/sse begins with %q", line)
			}
		} else {
			for _, path := range []string{"/mcp", "/mcp/sse", "/mcp/messages"} {
				if status, _ := ask(t, "GET", url+path, ""); status != 404 { // S114
					t.Errorf("%s without --mcp-sse: %d", path, status)
				}
			}
		}
		if got := stdout.String(); got != "" {
			t.Errorf("stdout %q", got)
		}
	}
}

// sseEndpoint returns the second line of the stream of the older transport.
func sseEndpoint(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url+"/mcp/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Scan()
	lines.Scan()
	return lines.Text()
}

// S90, S118, S134: both transports in one process share one state.
func TestDebugOnBoth(t *testing.T) {
	var streams stdioStreams
	url, _ := runDebugger(t, streams.attach, "--port", "0", "--mcp", "--mcp-sse")
	stdio, web := streams.peer(t), overHTTP(t, url)
	checkSharedSettings(t, stdio, url, "stdio")
	checkSharedSettings(t, web, url, "web")
	// S90: concurrent changes are not lost.
	for i := range 20 {
		ask(t, "POST", url+"/api/breakpoints", fmt.Sprintf(`{"function_name":"gone-%d"}`, i))
	}
	var wg sync.WaitGroup
	for name, peer := range map[string]mcpPeer{"stdio": stdio, "web": web} {
		wg.Go(func() {
			for i := range 20 {
				peer(t, mcpTool("breakpoint_add", fmt.Sprintf(`{"function_name":"%s-%d"}`, name, i)))
				peer(t, mcpTool("breakpoint_remove", fmt.Sprintf(`{"function_name":"gone-%d"}`, i)))
			}
		})
	}
	wg.Go(func() {
		for i := range 20 {
			ask(t, "POST", url+"/api/breakpoints", fmt.Sprintf(`{"function_name":"kept-%d"}`, i))
		}
	})
	wg.Wait()
	if _, body := ask(t, "GET", url+"/api/status", ""); !strings.Contains(body, `"breakpoints":64`) {
		t.Errorf("status %s", body)
	}
	for name, peer := range map[string]mcpPeer{"stdio": stdio, "web": web} {
		got := peer(t, mcpTool("breakpoint_list_breakpoints", `{}`))
		if !strings.Contains(got, "mcp-stdio") || !strings.Contains(got, "mcp-web") {
			t.Errorf("%s sees %s", name, got)
		}
	}
}

// A port in --port is used or is an error. Without --port any free port is used.
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
	if code := Run(t.Context(), s); code != process.ExitFailed || stdout.Len() > 0 || !strings.Contains(stderr.String(), port) {
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
		{"C85", home, []string{"--mcp-clients-config", other}, `"other":{`},
		{"C86", nil, []string{"--mcp-client", "one:/nosuch a b"}, `"one":{"status":"error","transport":"stdio"`},
		{"C87", nil, []string{"--mcp-client", "two:http://127.0.0.1:1/sse"}, `"two":{"status":"error","transport":"sse"`},
		{"C89", nil, []string{"--mcp-client", "one:/nosuch", "--mcp-client", "two:/nosuch"}, `"two":{`},
		{"inline wins over the file", nil, []string{"--mcp-clients-config", other, "--mcp-client", "other:http://127.0.0.1:1/sse"}, `"other":{"status":"error","transport":"sse"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url, stderr := startDebugger(t, tt.environ, append([]string{"--port", "0"}, tt.words...)...)
			if got := stderr.String(); got != "claudeless debug: "+url+"\n" {
				t.Errorf("stderr %q", got)
			}
			if status, body := ask(t, "GET", url+"/api/mcp-clients", ""); status != 200 || !strings.Contains(body, tt.want) {
				t.Errorf("%d %s, want %s", status, body, tt.want)
			}
		})
	}
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"--mcp-client", "no-colon"}, "no-colon"},                                            // C90
		{[]string{"--mcp-client", ":command"}, "empty"},                                               // C91
		{[]string{"--mcp-client", "name:"}, "name:"},                                                  // C92
		{[]string{"--mcp-clients-config", dir + "/nosuch.json"}, "no such file"},                      // C72 C98
		{[]string{"--mcp-clients-config", write("bad.json", `{"servers":{"x":{}}}`)}, `"x": missing`}, // C74
		{[]string{"--on-timeout", "explode"}, "explode"},
	} {
		s, stdout, stderr := fakeSystem(t, append([]string{"debug", "--port", "0"}, tt.words...)...)
		if code := Run(t.Context(), s); code != process.ExitFailed || stdout.Len() > 0 || !strings.Contains(stderr.String(), tt.want) {
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
	if code := Run(t.Context(), s); code != process.ExitOK {
		t.Errorf("hook with the token: %d %s", code, stderr)
	}
}

// The hook command end to end: a call is paused, changed, run by the agent and completed by a second process.
func TestDebugHook(t *testing.T) {
	url, _ := startDebugger(t, nil, "--port", "0")
	hook := func(input string) (int, string, string) {
		s, stdout, stderr := fakeSystem(t, "debug", "hook", "--debugger", url)
		s.Stdin = strings.NewReader(input)
		code := Run(t.Context(), s)
		return code, stdout.String(), stderr.String()
	}
	const pre = `{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"tu"}`
	if code, out, errs := hook(pre); code != process.ExitOK || out != "" || errs != "" {
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
	if code := Run(t.Context(), s); code == process.ExitOK || code == 2 || stdout.Len() > 0 || !strings.Contains(stderr.String(), "http://127.0.0.1:1") {
		t.Errorf("debugger missing: %d %q %q", code, stdout, stderr)
	}
}

func TestDebugProxyWords(t *testing.T) {
	var c debugcmd.Debug
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
	if code := Run(t.Context(), s); code != process.ExitFailed || !strings.Contains(stderr.String(), "/nosuch/server") {
		t.Errorf("%d %q", code, stderr)
	}
}

package debug

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/mcp"
)

func newManager(t *testing.T, servers ...mcp.ServerConfig) (*ExternalServers, *Hub) {
	t.Helper()
	var n atomic.Int64
	hub, err := New(Options{Now: time.Now, NewID: func() string { return fmt.Sprint(n.Add(1)) }})
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewExternalServers(ExternalServersOptions{Hub: hub, Now: time.Now, Servers: servers, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(context.WithoutCancel(t.Context())), m.Close(context.WithoutCancel(t.Context()))); err != nil { // C5
			t.Error(err)
		}
		hub.Close()
	})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m, hub
}

// entry returns a server of this test binary in a mode.
func entry(t *testing.T, mode string, more ...string) json.RawMessage {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e := map[string]any{"transport": "stdio", "command": self, "env": map[string]string{"MCPTEST_MODE": mode}}
	for i := 0; i+1 < len(more); i += 2 {
		if err := json.Unmarshal([]byte(`{"`+more[i]+`":`+more[i+1]+`}`), &e); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func server(t *testing.T, name, mode string, more ...string) mcp.ServerConfig {
	t.Helper()
	cfg, err := ParseServerEntry(name, entry(t, mode, more...))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Source = ""
	return cfg
}

func errorCode(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if err != nil {
		return "not a *debug.Error: " + err.Error()
	}
	return ""
}

// waitForStatus waits up to some seconds until a server has the wanted state.
func waitForStatus(t *testing.T, m *ExternalServers, name, status string) ExternalServerStatus {
	t.Helper()
	deadline := time.Now().Add(8 * time.Second)
	for {
		for _, c := range m.Servers() {
			if c.Name == name && c.Status == status {
				return c
			}
			if c.Name == name && time.Now().After(deadline) {
				t.Fatalf("%s is %s (%s), want %s", name, c.Status, c.Error, status)
			}
		}
	}
}

func TestNew(t *testing.T) {
	if _, err := NewExternalServers(ExternalServersOptions{Now: time.Now}); err == nil { // C2 C3
		t.Error("no hub was needed")
	}
	if _, err := NewExternalServers(ExternalServersOptions{Hub: &Hub{}}); err == nil {
		t.Error("no clock was needed")
	}
	m, _ := newManager(t)
	tools, err := m.Tools("")
	if got := m.Servers(); len(got) != 0 || err != nil || len(tools) != 0 { // C6 C7
		t.Errorf("%v, %v, %v", got, tools, err)
	}
	resources, err := m.Resources("")
	if err != nil || resources == nil || len(resources) != 0 { // C46
		t.Errorf("%v, %v", resources, err)
	}
}

func TestNames(t *testing.T) {
	m, _ := newManager(t)
	for _, name := range []string{"filesystem", "my-server", "db_1"} { // C8
		if tools, err := m.AddAndConnect(t.Context(), name, entry(t, "ok")); err != nil || len(tools) != 5 || tools[0] != name+"/echo" { // C13 C14
			t.Errorf("%s: %v, %v", name, tools, err)
		}
	}
	for _, name := range []string{"", "a/b", "a b"} { // C9 C10 C11
		if _, err := m.AddAndConnect(t.Context(), name, entry(t, "ok")); errorCode(err) != CodeInvalidName {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := m.AddAndConnect(t.Context(), "db_1", entry(t, "ok")); errorCode(err) != CodeDuplicateName { // C12 C110
		t.Errorf("%v", err)
	}
}

func TestConnecting(t *testing.T) {
	missing, err := ParseInlineServer("missing:/nosuch/command")
	if err != nil {
		t.Fatal(err)
	}
	nowhere, err := ParseInlineServer("nowhere:http://127.0.0.1:1/sse")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := newManager(t, missing, nowhere, server(t, "crash", "crash-at-start"), server(t, "refuses", "init-error"), server(t, "good", "ok"))
	for name, want := range map[string]string{"missing": "nosuch", "nowhere": "ECONNREFUSED", "crash": "boom", "refuses": ""} { // C15 C21 C16 C170
		c := waitForStatus(t, m, name, StatusConnectAttemptFailed)
		if !strings.Contains(c.Error, want) || c.Error == "" || len(c.Tools) != 0 || c.ConnectedAt != nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	c := waitForStatus(t, m, "good", StatusConnected) // a failing server does not affect the others
	if c.Transport != "stdio" || len(c.Tools) != 5 || c.ConnectedAt == nil || *c.ConnectedAt < 1e9 {
		t.Errorf("%+v", c)
	}
	_, err = m.AddAndConnect(t.Context(), "late", entry(t, "crash-at-start"))
	if errorCode(err) != CodeConnectFailed || !strings.Contains(err.Error(), "boom") {
		t.Errorf("%v", err)
	}
	waitForStatus(t, m, "late", StatusConnectAttemptFailed) // its configuration is kept
	for _, e := range []string{`{}`, `[]`, `{"transport":"stdio"}`, `{"transport":"pigeon","command":"x"}`} {
		if _, err := m.AddAndConnect(t.Context(), "bad", json.RawMessage(e)); errorCode(err) != CodeInvalidConfig {
			t.Errorf("%s: %v", e, err)
		}
	}
}

// hasEnded reports whether a process has ended and was waited for.
func hasEnded(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return true
	}
	defer p.Release() // p has an open file
	return errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

func TestDisconnect(t *testing.T) {
	m, _ := newManager(t, server(t, "a", "ok"))
	pid := m.mcp.Servers()[0].PID
	if err := m.DisconnectKeepingConfig(t.Context(), "a"); err != nil { // C17 C111
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); !hasEnded(pid); {
		if time.Now().After(deadline) {
			t.Fatal("the process of the server lives on")
		}
	}
	if c := waitForStatus(t, m, "a", StatusDisconnected); len(c.Tools) != 0 || c.ConnectedAt != nil {
		t.Errorf("%+v", c)
	}
	if err := m.DisconnectKeepingConfig(t.Context(), "a"); err != nil { // U175
		t.Errorf("again: %v", err)
	}
	if _, err := m.CallAndRecord(t.Context(), "a/echo", nil); errorCode(err) != CodeServerNotConnected { // C32 C105
		t.Errorf("call: %v", err)
	}
	if tools, err := m.Reconnect(t.Context(), "a"); err != nil || len(tools) != 5 { // C57 C58 C113
		t.Errorf("%v, %v", tools, err)
	}
	if tools, err := m.Reconnect(t.Context(), "a"); err != nil || len(tools) != 5 { // U176
		t.Errorf("again: %v, %v", tools, err)
	}
	_, reconnect := m.Reconnect(t.Context(), "nope")                                                                                               // C63 C114
	if err := m.DisconnectKeepingConfig(t.Context(), "nope"); errorCode(err) != CodeServerNotFound || errorCode(reconnect) != CodeServerNotFound { // C18 C112
		t.Errorf("%v, %v", err, reconnect)
	}
}

func TestCatalogue(t *testing.T) {
	m, _ := newManager(t, server(t, "a", "ok"), server(t, "breakpoint", "ok"), server(t, "odd", "names")) // C158
	all, err := m.Tools("")
	if err != nil || len(all) != 12 {
		t.Fatalf("%d tools, %v", len(all), err)
	}
	want := ExternalTool{Name: "a/echo", Server: "a", Original: "echo", Description: "the tool echo", InputSchema: json.RawMessage(`{"type":"object"}`)}
	if diff := cmp.Diff(want, all[0]); diff != "" { // C23 C25 C26 C27 C28 C101
		t.Error(diff)
	}
	if all[5].Name != "breakpoint/echo" { // C24
		t.Errorf("%+v", all[5])
	}
	one, err := m.Tools("odd")
	// a/b is missing because it has the same canonical name as a.b, and the fourth tool because its name is too long.
	if err != nil || len(one) != 2 || one[0].Name != "odd/a.b" || one[1].Name != "odd/x__y" {
		t.Errorf("%v, %v", one, err)
	}
	if _, err := m.CallAndRecord(t.Context(), "odd/a.b", nil); err != nil {
		t.Errorf("a tool with a point: %v", err)
	}
	if _, err := m.Tools("nope"); errorCode(err) != CodeServerNotFound {
		t.Errorf("%v", err)
	}
}

func TestCall(t *testing.T) {
	m, hub := newManager(t, server(t, "a", "ok"), server(t, "rpc", "rpc-error"), server(t, "odd", "unknown-content"), server(t, "slow", "ok", "timeout_s", "0.2"))
	result, err := m.CallAndRecord(t.Context(), "a/echo", json.RawMessage(`{"text":"hü\u2028"}`)) // C29 C30 C38 C161
	if err != nil || string(result) != `{"content":[{"text":"echo: hü`+"\\u2028"+`","type":"text"}]}` && !strings.Contains(string(result), "echo: hü") {
		t.Errorf("%s, %v", result, err)
	}
	calls, err := hub.Records.Calls("a/echo", nil)
	if err != nil || len(calls.Calls) != 1 {
		t.Fatalf("%+v, %v", calls, err)
	}
	rec := calls.Calls[0] // C41 C42 C43 C44 C115
	if rec.Source != "mcp_client" || rec.Server != "a" || rec.MethodName != "a/echo" || string(rec.Input()) != `{"text":"hü\u2028"}` || rec.Status != "success" {
		t.Errorf("%+v", rec)
	}
	if data, err := hub.StoredValueByContentID(rec.ResultCID); err != nil || string(data) != string(result) { // C40 C116
		t.Errorf("%s, %v", data, err)
	}
	if _, err := m.CallAndRecord(t.Context(), "a/echo", nil); err != nil { // C31
		t.Errorf("no arguments: %v", err)
	}
	if result, err := m.CallAndRecord(t.Context(), "a/fail", nil); err != nil || !strings.Contains(string(result), `"isError":true`) { // C162
		t.Errorf("%s, %v", result, err)
	}
	if result, err := m.CallAndRecord(t.Context(), "odd/echo", nil); err != nil || strings.Count(string(result), `"type"`) < 2 { // C39
		t.Errorf("%s, %v", result, err)
	}
	for _, tt := range []struct{ tool, want string }{
		{"nope/echo", CodeServerNotFound}, // C33
		{"a/nope", CodeToolNotFound},      // C34 C106
		{"a/", CodeToolNotFound},
		{"echo", CodeInvalidToolName}, // C35
		{"", CodeInvalidToolName},
		{"rpc/echo", CodeExternalToolCallFailed}, // C37
	} {
		_, err := m.CallAndRecord(t.Context(), tt.tool, nil)
		if errorCode(err) != tt.want {
			t.Errorf("%q: %v, want %s", tt.tool, err, tt.want)
		}
		if tt.want == CodeExternalToolCallFailed {
			if e, _ := errors.AsType[*Error](err); e.Detail["code"] == nil || !strings.Contains(e.Message, "JSON-RPC error") {
				t.Errorf("%+v", e)
			}
		}
	}
	if _, err := m.CallAndRecord(t.Context(), "slow/sleep", json.RawMessage(`{"ms":5000}`)); errorCode(err) != CodeCallTimeout { // C36 C138
		t.Errorf("%v", err)
	}
	calls, err = hub.Records.Calls("slow/sleep", nil)
	if err != nil || len(calls.Calls) != 1 || calls.Calls[0].Status != "exception" || calls.Calls[0].ErrorType != CodeCallTimeout { // C45
		t.Errorf("%+v, %v", calls, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := m.CallAndRecord(ctx, "a/sleep", json.RawMessage(`{"ms":5000}`)); err == nil { // C135
		t.Error("the call outlived its context")
	}
}

// C156 C157: ten megabytes in both directions.
func TestLargeCall(t *testing.T) {
	m, _ := newManager(t, server(t, "a", "ok"))
	text := strings.Repeat("x", 10<<20)
	result, err := m.CallAndRecord(t.Context(), "a/echo", json.RawMessage(`{"text":"`+text+`"}`))
	if err != nil || !strings.Contains(string(result), text) {
		t.Errorf("%d bytes, %v", len(result), err)
	}
}

func TestResources(t *testing.T) {
	m, _ := newManager(t, server(t, "r", "resources"), server(t, "r2", "resources"), server(t, "plain", "ok"))
	all, err := m.Resources("") // C47 C48 C107
	want := ExternalResource{URI: "file:///a.txt", Server: "r", Name: "a", MIMEType: "text/plain"}
	if err != nil || len(all) != 2 || cmp.Diff(want, all[0]) != "" {
		t.Errorf("%+v, %v", all, err)
	}
	if one, err := m.Resources("r2"); err != nil || len(one) != 1 || one[0].Server != "r2" { // C49
		t.Errorf("%+v, %v", one, err)
	}
	if _, err := m.Resources("nope"); errorCode(err) != CodeServerNotFound {
		t.Errorf("%v", err)
	}
	if got, err := m.ReadFirstContentOfResource(t.Context(), "r", "file:///a.txt"); err != nil || got != (ExternalResourceContent{Content: "body", MIMEType: "text/plain"}) { // C50 C108
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := m.ReadFirstContentOfResource(t.Context(), "nope", "x"); errorCode(err) != CodeServerNotFound {
		t.Errorf("%v", err)
	}
	if _, err := m.ReadFirstContentOfResource(t.Context(), "plain", "x"); errorCode(err) != CodeResourceNotFound { // C52
		t.Errorf("%v", err)
	}
	if err := m.DisconnectKeepingConfig(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.ReadFirstContentOfResource(t.Context(), "r", "file:///a.txt"); errorCode(err) != CodeServerNotConnected { // C51
		t.Errorf("%v", err)
	}
}

func TestAtTheSameTime(t *testing.T) {
	m, _ := newManager(t, server(t, "a", "ok"), server(t, "b", "ok"))
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() { // C53 C54 C136 C139
			text := fmt.Sprintf("n%d.", i)
			result, err := m.CallAndRecord(t.Context(), []string{"a", "b"}[i%2]+"/echo", json.RawMessage(`{"text":"`+text+`"}`))
			if err != nil || !strings.Contains(string(result), "echo: "+text) {
				t.Errorf("%s: %s, %v", text, result, err)
			}
		})
	}
	wg.Go(func() { // C55
		if _, err := m.AddAndConnect(t.Context(), "c", entry(t, "ok")); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	for range 2 { // C163: in the end there is one state
		wg.Go(func() { m.DisconnectKeepingConfig(t.Context(), "c") })
		wg.Go(func() { m.Reconnect(t.Context(), "c") })
	}
	wg.Wait()
	if tools, err := m.Reconnect(t.Context(), "c"); err != nil || len(tools) != 5 {
		t.Errorf("%v, %v", tools, err)
	}
}

// C56: disconnecting a server ends its calls immediately, with an error that gives the reason.
func TestDisconnectDuringACall(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m, _ := newManager(t)
	env, err := json.Marshal(map[string]any{"transport": "stdio", "command": self, "env": map[string]string{"MCPTEST_MODE": "ok", "MCPTEST_LOG": log}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.AddAndConnect(t.Context(), "b", env); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := m.CallAndRecord(t.Context(), "b/sleep", json.RawMessage(`{"ms":20000}`))
		failed <- err
	}()
	for deadline := time.Now().Add(8 * time.Second); ; {
		if data, _ := os.ReadFile(log); strings.Contains(string(data), `"tools/call"`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the server never heard of the call")
		}
	}
	began := time.Now()
	if err := m.DisconnectKeepingConfig(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	if err := <-failed; errorCode(err) != CodeExternalToolCallFailed || !strings.Contains(err.Error(), "Connection closed") || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

// C168: Close returns soon even during a call. After that, the server's process has exited (C4) and calls are refused
// (C140).
func TestCloseDuringACall(t *testing.T) {
	m, _ := newManager(t, server(t, "a", "ok"))
	pid := m.mcp.Servers()[0].PID
	failed := make(chan error, 1)
	go func() {
		_, err := m.CallAndRecord(t.Context(), "a/sleep", json.RawMessage(`{"ms":20000}`))
		failed <- err
	}()
	began := time.Now()
	if err := m.Close(t.Context()); err != nil || time.Since(began) > 3*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	if err := <-failed; err == nil {
		t.Error("the call succeeded")
	}
	if !hasEnded(pid) {
		t.Error("the process of the server is there after Close")
	}
	if _, err := m.CallAndRecord(t.Context(), "a/echo", nil); err == nil {
		t.Error("a call after Close succeeded")
	}
	if _, err := m.AddAndConnect(t.Context(), "b", entry(t, "ok")); err == nil {
		t.Error("a connect after Close succeeded")
	}
}

// C144, C164, C67: a killed server is detected, its calls fail, and it reconnects at once (C59; the real CLI has no pause
// before the first attempt, unlike C60).
func TestKilledServer(t *testing.T) {
	m, _ := newManager(t, server(t, "a", "ok"), server(t, "stays", "ok", "auto_reconnect", "false"))
	killed := map[string]int{}
	for _, s := range m.mcp.Servers() {
		killed[s.Name] = s.PID
		process, err := os.FindProcess(s.PID)
		if err == nil {
			err = process.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	waitForStatus(t, m, "stays", StatusDisconnected) // C62
	if _, err := m.CallAndRecord(t.Context(), "stays/echo", nil); errorCode(err) != CodeServerNotConnected {
		t.Errorf("%v", err)
	}
	// The status of server "a" remains connected until its client has read the end of the output. Only a new process shows
	// that the server was restarted.
	for deadline := time.Now().Add(8 * time.Second); !slices.ContainsFunc(m.mcp.Servers(), func(s mcp.ServerStatus) bool {
		return s.Name == "a" && s.State == mcp.StateConnected && s.PID != killed["a"]
	}); {
		if time.Now().After(deadline) {
			t.Fatalf("a has no new process: %+v", m.mcp.Servers())
		}
	}
	if _, err := m.CallAndRecord(t.Context(), "a/echo", nil); err != nil {
		t.Errorf("after it came back: %v", err)
	}
	waitForStatus(t, m, "stays", StatusDisconnected)
}

// The status words for the states of the client manager, whose timing package mcp tests: a lost server that could not
// be reconnected has the status failed (C61), and a server that did not connect within 30 s has the status error
// (C169).
func TestStatusWords(t *testing.T) {
	m, _ := newManager(t)
	m.everConnected["lost"] = true
	for _, tt := range []struct {
		server string
		state  mcp.ServerState
		want   string
	}{
		{"lost", mcp.StateFailed, StatusFailed},
		{"new", mcp.StateFailed, StatusConnectAttemptFailed},
		{"new", mcp.StateNeedsAuth, StatusConnectAttemptFailed},
		{"lost", mcp.StateReconnecting, StatusDisconnected},
		{"lost", mcp.StateLost, StatusDisconnected},
		{"new", mcp.StateConnecting, StatusConnecting},
		{"new", mcp.StateConfigured, StatusConnecting},
		{"lost", mcp.StateConnected, StatusConnected},
		{"lost", mcp.StateDisconnected, StatusDisconnected},
	} {
		if got := m.externalStatus(mcp.ServerStatus{Name: tt.server, State: tt.state}); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.server, tt.state, got, tt.want)
		}
	}
	if connectTimeout != 30*time.Second {
		t.Errorf("connects may take %s", connectTimeout)
	}
}

func TestLoad(t *testing.T) {
	two, err := ParseServerConfig("f.json", []byte(`{"servers":{"b":{"transport":"stdio","command":"x"},"a":{"transport":"sse","url":"http://h/sse","timeout_s":1.5,"auto_reconnect":false}}}`)) // C70
	if err != nil || len(two) != 2 {
		t.Fatalf("%v, %v", two, err)
	}
	b := two[0] // C78
	if b.Name != "b" || b.Type != "stdio" || b.Command != "x" || len(b.Args) != 0 || len(b.Env) != 0 || b.Timeout != 30*time.Second || !*b.AutoReconnect || b.Source != "" {
		t.Errorf("%+v", b)
	}
	if a := two[1]; a.URL != "http://h/sse" || a.Timeout != 1500*time.Millisecond || *a.AutoReconnect {
		t.Errorf("%+v", a)
	}
	if none, err := ParseServerConfig("f.json", []byte(`{"servers":{}}`)); err != nil || len(none) != 0 { // C71
		t.Errorf("%v, %v", none, err)
	}
	for text, want := range map[string][]string{
		"{\n  \"servers\": {\n":                   {"f.json:"},    // C73
		"{\n  // a comment\n  \"servers\": {}\n}": {"f.json:2:3"}, // C167
		`{}`:                   {"servers"},
		`{"servers":[]}`:       {"servers"},
		`{"servers":{"x":{}}}`: {`"x"`, "transport"}, // C74
		`{"servers":{"x":{"transport":"stdio"}}}`:                              {`"x"`, "command"},   // C75
		`{"servers":{"x":{"transport":"sse"}}}`:                                {`"x"`, "url"},       // C76
		`{"servers":{"x":{"transport":"udp"}}}`:                                {`"x"`, "udp"},       // C77
		`{"servers":{"x":{"transport":"stdio","command":"c","timeout_s":0}}}`:  {`"x"`, "timeout_s"}, // C79
		`{"servers":{"x":{"transport":"stdio","command":"c","timeout_s":-1}}}`: {`"x"`, "timeout_s"},
		`{"servers":{"x":{"transport":"stdio","command":"c","env":[]}}}`:       {`"x"`, "env"}, // C80
		`{"servers":{"x":{"transport":"stdio","command":"c","colour":1}}}`:     {`"x"`, "colour"},
		`{"servers":{"a b":{"transport":"stdio","command":"c"}}}`:              {"a b"},
		`{"servers":{"x":{},"y":{"transport":"sse"}}}`:                         {`"x"`, `"y"`}, // all problems are reported
	} {
		_, err := ParseServerConfig("f.json", []byte(text))
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %s", text, err, w)
			}
		}
	}
}

func TestInline(t *testing.T) {
	tests := []struct {
		text, kind, command, url string
		args                     []string
	}{
		{"fs:npx -y  server /tmp", "stdio", "npx", "", []string{"-y", "server", "/tmp"}}, // C86
		{"db:http://h:80/mcp/sse", "sse", "", "http://h:80/mcp/sse", nil},                // C87
		{"db:https://h/mcp/sse", "sse", "", "https://h/mcp/sse", nil},                    // C88 C166
	}
	for _, tt := range tests {
		got, err := ParseInlineServer(tt.text)
		if err != nil || got.Type != tt.kind || got.Command != tt.command || got.URL != tt.url || cmp.Diff(tt.args, got.Args) != "" || got.Timeout != 30*time.Second {
			t.Errorf("%s: %+v, %v", tt.text, got, err)
		}
	}
	for _, text := range []string{"no-colon", ":command", "name:", "name:  ", "a b:x", "a/b:x", ""} { // C90 C91 C92
		if got, err := ParseInlineServer(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
	merged := AddOrReplaceServer([]mcp.ServerConfig{{Name: "a", Command: "file"}, {Name: "b"}}, mcp.ServerConfig{Name: "a", Command: "inline"})
	merged = AddOrReplaceServer(merged, mcp.ServerConfig{Name: "c"})
	if len(merged) != 3 || merged[0].Command != "inline" || merged[2].Name != "c" {
		t.Errorf("%+v", merged)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(`{"servers":{"x":{"transport":"stdio","command":"c"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		servers, err := ParseServerConfig("f", []byte(text))
		for _, s := range servers {
			if err == nil && !mcp.IsValidServerName(s.Name) {
				t.Errorf("%q was taken", s.Name)
			}
		}
	})
}

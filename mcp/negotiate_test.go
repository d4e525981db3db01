package mcp

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestProbe: in automatic mode, the client uses the newer revision with servers that support it. It
// still connects to servers that refuse the probe, do not know it, send an invalid answer, do not
// answer, or exit (S14, C33).
func TestProbe(t *testing.T) {
	for mode, version := range map[string]string{
		"modern": "2026-07-28", "ok": "2025-11-25", "lax": "2025-11-25", "ignore-unknown": "2025-11-25", "exit-unknown": "2025-11-25", "old-version": "2024-11-05",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "log")
			cfg := testConfig(t, "s", mode, "MCPTEST_LOG="+log)
			if mode == "ignore-unknown" {
				cfg.ConnectTimeout = 4 * time.Second // the probe may take 0.3 of this time
			}
			m := start(t, Options{
				Servers: []ServerConfig{cfg}, Negotiation: NegotiateAuto,
				Elicit: func(context.Context, ElicitRequest) ElicitAnswer {
					return ElicitAnswer{Action: "accept", AddDefaults: true}
				},
			})
			if st := m.Servers()[0]; st.State != StateConnected || st.ProtocolVersion != version {
				t.Fatalf("%s %s: %s\n%s", st.State, st.ProtocolVersion, st.Error, readFileText(log))
			}
			want := `[{"type":"text","text":"echo: x"}]`
			if mode == "modern" { // the server asks the client for input during the call
				want = `[{"type":"text","text":"half way: {\"q\":{\"action\":\"accept\",\"content\":{\"colour\":\"red\"}}}"}]`
				if st := m.Servers()[0]; st.Info != (ServerInfo{Name: "mcptest", Version: "1.2.3"}) || st.Instructions != "be kind" {
					t.Errorf("got %+v, %q", st.Info, st.Instructions)
				}
			}
			if got := call(t, m, "echo", `{"text":"x"}`); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
			if !strings.Contains(readFileText(log), "server/discover") {
				t.Error("not probed")
			}
		})
	}
}

// TestProbeHTTP: the probing connection does not initialize an older server, and the open stream follows the
// handshake (S14).
func TestProbeHTTP(t *testing.T) {
	t.Parallel()
	f := newFakeHTTP(t, nil)
	m := start(t, Options{Servers: []ServerConfig{remoteConfig(f)}, Negotiation: NegotiateAuto})
	if got := call(t, m, "echo", `{}`); got != `[{"type":"text","text":"ok"}]` {
		t.Errorf("got %s", got)
	}
	eventually(t, 5*time.Second, func() bool { return strings.Contains(f.log(), "GET") }, "no standing stream")
	if log := f.log(); !strings.HasPrefix(log, "POST server/discover") || strings.Count(log, "POST initialize") != 1 {
		t.Errorf("got\n%s", log)
	}
}

// TestFallback: after most statuses from 400 to 499, the URL is tried as a server of the older
// transport (S13; observed with 2.1.330).
func TestFallback(t *testing.T) {
	t.Parallel()
	// Each status has a new server, because a stream that ends slowly could take an event of the
	// next one.
	var old atomic.Pointer[fakeSSE]
	var status atomic.Int32
	var posts, gets atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sse" && r.Method == http.MethodPost {
			posts.Add(1)
			w.WriteHeader(int(status.Load()))
			return
		}
		gets.Add(1)
		old.Load().ServeHTTP(w, r)
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	for _, test := range []struct {
		status int
		want   ServerState
	}{
		{404, StateConnected}, {405, StateConnected}, {400, StateConnected}, {415, StateConnected}, {429, StateFailed}, {500, StateFailed}, {403, StateFailed},
	} {
		status.Store(int32(test.status))
		gets.Store(0)
		old.Store(newFakeSSE(t))
		m := start(t, Options{Servers: []ServerConfig{{
			Name: "s", Type: "http", URL: front.URL + "/sse", Headers: map[string]string{"Authorization": "Bearer sesame"},
		}}})
		if st := m.Servers()[0]; st.State != test.want || (gets.Load() > 0) != (test.want == StateConnected) {
			t.Errorf("%d: %s, %s, %d streams", test.status, st.State, st.Error, gets.Load())
		}
		if test.want == StateConnected {
			if got := call(t, m, "echo", `{}`); got != `[{"type":"text","text":"ok"}]` {
				t.Errorf("got %s", got)
			}
		}
		m.Close(context.WithoutCancel(t.Context()))
	}
}

// TestRefused: a server that refuses the connection has failed at once, and is tried again three
// times (S13; observed with 2.1.330).
func TestRefused(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	taken.Close()
	var debug logBuffer
	m := start(t, Options{Servers: []ServerConfig{{Name: "s", Type: "http", URL: "http://" + address + "/mcp"}}, Debug: &debug, Pauses: RetryPauses{Retry: time.Millisecond}})
	if st := m.Servers()[0]; st.State != StateFailed || st.Error != "ECONNREFUSED: Unable to connect. Is the computer able to access the url?" {
		t.Errorf("%s: %s", st.State, st.Error)
	}
	tries := func() int { return strings.Count(debug.String(), "failed: ") }
	eventually(t, 5*time.Second, func() bool { return tries() == 1+maxFirstConnectOrListRetries }, "%d tries", tries())
}

// TestHeadersHelper: the helper's headers override the configured ones. It runs at each connect and once more for a
// refused call. Its output is in no log, and if it fails the configured headers are used (S5).
func TestHeadersHelper(t *testing.T) {
	t.Parallel()
	runs := filepath.Join(t.TempDir(), "runs")
	var current atomic.Value
	current.Store("Bearer token1")
	f := newFakeHTTP(t, func(_ int, r *http.Request) int {
		if r.Header.Get("Authorization") != current.Load() || r.Header.Get("X-Kept") != "kept" {
			return http.StatusUnauthorized
		}
		return 0
	})
	cfg := remoteConfig(f)
	cfg.Headers["X-Kept"] = "kept"
	cfg.HeadersHelper = `echo "$CLAUDE_CODE_MCP_SERVER_NAME $CLAUDE_CODE_MCP_SERVER_URL" >> '` + runs + `'
		echo "{\"authorization\":\"Bearer token$(wc -l < '` + runs + `' | tr -d ' ')\"}"`
	var debug logBuffer
	m := start(t, Options{Servers: []ServerConfig{cfg}, Debug: &debug})
	for _, test := range []struct{ token, want string }{
		{"Bearer token1", `[{"type":"text","text":"ok"}]`},
		{"Bearer token2", `[{"type":"text","text":"ok"}]`}, // after a second run
		{"Bearer token9", `isError: "HTTP 401: authorization required"`},
	} {
		current.Store(test.token)
		if got := call(t, m, "echo", `{}`); got != test.want {
			t.Errorf("%s: got %s", test.token, got)
		}
	}
	eventually(t, 5*time.Second, func() bool { return m.Servers()[0].State == StateNeedsAuth }, "still %s", m.Servers()[0].State)
	if got, want := readFileText(runs), strings.Repeat("s "+cfg.URL+"\n", 3); got != want {
		t.Errorf("ran\n%s", got)
	}
	if strings.Contains(debug.String(), "token") {
		t.Errorf("a header is in the log:\n%s", debug.String())
	}
	m.Close(context.WithoutCancel(t.Context()))

	for _, broken := range []string{"exit 3", "echo no JSON", `echo '{"a":1}'`} {
		current.Store("Bearer sesame")
		cfg.HeadersHelper = broken
		m := start(t, Options{Servers: []ServerConfig{cfg}})
		if st := m.Servers()[0]; st.State != StateConnected {
			t.Errorf("%s: %s, %s", broken, st.State, st.Error)
		}
	}
}

// TestTryReconnect: the first call of a tool of a failed server makes one attempt to connect, and
// no other call does until the pause is over. If an automatic attempt is due, the call waits for it
// (observed with 2.1.330).
func TestTryReconnect(t *testing.T) {
	t.Parallel()
	var alive atomic.Bool
	f := newFakeHTTP(t, func(int, *http.Request) int {
		if alive.Load() {
			return 0
		}
		return http.StatusTeapot
	})
	m := start(t, Options{Servers: []ServerConfig{remoteConfig(f)}, Credentials: CredentialStorage{Time: time.Now}})
	const again = `Claude Code tried to connect to MCP server "s" again and could not. It can be tried again in %s s.`
	for i, step := range []struct{ id, want string }{
		{"a", fmt.Sprintf(again, "10")},
		{"a", fmt.Sprintf(again, "10")},
		{"b", `MCP server "s" did not connect when it was last tried, and is not tried again for 10 s.`},
		{"c", fmt.Sprintf(again, "20")},
	} {
		before := strings.Count(f.log(), "POST initialize")
		if step.id == "c" {
			m.servers[0].attemptForCall.next = time.Time{} // the pause is over
		}
		if note, ok := m.TryReconnectServerOfTool(t.Context(), "mcp__s__echo", step.id); note != step.want || ok {
			t.Errorf("%d: %q, %v", i, note, ok)
		}
		if tried := strings.Count(f.log(), "POST initialize") > before; tried != (i == 0 || i == 3) {
			t.Errorf("%d: tried: %v", i, tried)
		}
	}
	alive.Store(true)
	m.servers[0].attemptForCall.next = time.Time{}
	if note, ok := m.TryReconnectServerOfTool(t.Context(), "mcp__s__echo", "d"); note != "" || !ok {
		t.Errorf("alive: %q, %v", note, ok)
	}
}

// TestWaitRetried: a call waits for the automatic attempt that is due.
func TestWaitRetried(t *testing.T) {
	t.Parallel()
	var alive atomic.Bool
	f := newFakeHTTP(t, func(int, *http.Request) int {
		if alive.Load() {
			return 0
		}
		return http.StatusServiceUnavailable
	})
	m := start(t, Options{Servers: []ServerConfig{remoteConfig(f)}, Pauses: RetryPauses{Retry: 50 * time.Millisecond}})
	if note, ok := m.TryReconnectServerOfTool(t.Context(), "mcp__s__echo", "a"); note != "" || ok {
		t.Errorf("%q, %v", note, ok)
	}
	alive.Store(true)
	if note, ok := m.TryReconnectServerOfTool(t.Context(), "mcp__s__echo", "b"); note != "" || !ok {
		t.Errorf("alive: %q, %v", note, ok)
	}
}

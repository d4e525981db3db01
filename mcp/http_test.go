package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fakeHTTP is a streamable HTTP server that records its requests.
type fakeHTTP struct {
	*httptest.Server
	status func(n int, r *http.Request) int // 0 means that the request is served normally
	hang   chan struct{}                    // a call of "hang" waits for it

	mu   sync.Mutex
	seen []string // METHOD rpc-method session version token
	get  chan string
}

func newFakeHTTP(t *testing.T, status func(int, *http.Request) int) *fakeHTTP {
	t.Helper()
	f := &fakeHTTP{status: status, hang: make(chan struct{}), get: make(chan string, 4)}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() { close(f.hang); f.CloseClientConnections(); f.Close() })
	return f
}

func (f *fakeHTTP) log() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.seen, "\n")
}

func (f *fakeHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	_ = json.Unmarshal(body, &m)
	f.mu.Lock()
	f.seen = append(f.seen, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", r.Method, m.Method, r.Header.Get("Mcp-Session-Id"), r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("Authorization"))))
	n := len(f.seen)
	f.mu.Unlock()
	if f.status != nil {
		if s := f.status(n, r); s != 0 {
			w.WriteHeader(s)
			return
		}
	}
	reply := func(result string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	switch {
	case r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		select {
		case event := <-f.get:
			fmt.Fprint(w, event)
		case <-r.Context().Done():
		}
	case r.Method == http.MethodDelete:
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("S%d", n))
		reply(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}`)
	case m.Method == "tools/list":
		reply(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"hang","inputSchema":{"type":"object"}},{"name":"wrong","inputSchema":{"type":"object"}},{"name":"sse","inputSchema":{"type":"object"}}]}`)
	case m.Params.Name == "hang":
		select {
		case <-f.hang:
		case <-r.Context().Done():
		}
	case m.Params.Name == "wrong":
		m.ID = json.RawMessage("77")
		reply(`{"content":[]}`)
	case m.Params.Name == "sse":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, ": hi\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"streamed\"}]}}\r\n\r\n", m.ID)
	default:
		reply(`{"content":[{"type":"text","text":"ok"}]}`)
	}
}

func remoteConfig(f *fakeHTTP) ServerConfig {
	return ServerConfig{Name: "s", Type: "http", URL: f.URL + "/mcp", Headers: map[string]string{"Authorization": "Bearer sesame"}, Timeout: 300 * time.Millisecond}
}

// TestHTTP: session, version and configured headers on every request, the open GET stream, an answer with another
// id is not used (M43), cancellation (M23), no DELETE at the end.
func TestHTTP(t *testing.T) {
	t.Parallel()
	f := newFakeHTTP(t, nil)
	m := start(t, Options{Servers: []ServerConfig{remoteConfig(f)}})
	for _, test := range []struct{ tool, want string }{
		{"echo", `[{"type":"text","text":"ok"}]`},
		{"sse", `[{"type":"text","text":"streamed"}]`},
		{"wrong", `isError: "MCP server \"s\" tool \"wrong\" timed out after 0s"`},
		{"hang", `isError: "MCP server \"s\" tool \"hang\" timed out after 0s"`},
		{"echo", `[{"type":"text","text":"ok"}]`},
	} {
		if got := call(t, m, test.tool, `{}`); got != test.want {
			t.Errorf("%s: got %s", test.tool, got)
		}
	}
	eventually(t, time.Second, func() bool {
		return strings.Contains(f.log(), "notifications/cancelled") && strings.Contains(f.log(), "GET")
	}, "no cancellation or GET:\n%s", f.log())
	m.Close(context.WithoutCancel(t.Context()))
	for i, line := range strings.Split(f.log(), "\n") {
		want := "S1 2025-11-25 Bearer sesame"
		if i == 0 {
			want = "POST initialize   Bearer sesame"
		}
		if !strings.HasSuffix(line, want) {
			t.Errorf("%d: %s", i, line)
		}
	}
	if strings.Contains(f.log(), "DELETE") { // the real CLI sends none
		t.Errorf("a DELETE:\n%s", f.log())
	}
}

// TestHTTPStandingStream: list_changed on the idle stream refreshes the lists; a dropped stream is opened again after
// about a second (M32).
func TestHTTPStandingStream(t *testing.T) {
	t.Parallel()
	f := newFakeHTTP(t, nil)
	start(t, Options{Servers: []ServerConfig{remoteConfig(f)}})
	f.get <- "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
	eventually(t, time.Second, func() bool { return strings.Count(f.log(), "tools/list") == 2 }, "not listed again")
	eventually(t, 2*time.Second, func() bool { return strings.Count(f.log(), "GET") == 2 }, "not opened again")
}

// TestHTTPSessionExpired: a server that refuses the repeated call too has expired (observed with 2.1.330).
func TestHTTPSessionExpired(t *testing.T) {
	var f *fakeHTTP
	f = newFakeHTTP(t, func(n int, _ *http.Request) int {
		if strings.Contains(strings.Split(f.log(), "\n")[n-1], "tools/call") {
			return http.StatusNotFound
		}
		return 0
	})
	m := start(t, Options{Servers: []ServerConfig{remoteConfig(f)}})
	if res, err := m.Call(t.Context(), CallRequest{Tool: "s/echo"}); err != nil || res.Content.Plain() != `MCP server "s" session expired` {
		t.Errorf("got %q, %v\n%s", res.Content.Plain(), err, f.log())
	}
}

// TestHTTPBackground: a server that breaks off every connection is lost after three connections,
// without a call. After the fifth attempt, it is tried again in the background until it comes back
// (observed with 2.1.330).
func TestHTTPBackground(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	var refused atomic.Int64
	f := newFakeHTTP(t, func(int, *http.Request) int {
		if down.Load() {
			refused.Add(1)
			panic(http.ErrAbortHandler)
		}
		return 0
	})
	m := start(t, Options{Servers: []ServerConfig{remoteConfig(f)}, Pauses: RetryPauses{Reconnect: time.Millisecond}})
	f.get <- ":\n\n"
	eventually(t, 10*time.Second, func() bool { return len(f.get) == 0 }, "no GET stream")
	down.Store(true)
	f.CloseClientConnections()
	eventually(t, 20*time.Second, func() bool { return m.Servers()[0].State == StateFailed && refused.Load() > 12 }, "not tried in the background")
	down.Store(false)
	eventually(t, 20*time.Second, func() bool { return m.Servers()[0].State == StateConnected }, "did not come back")
}

// TestHTTPRetries: after 5xx, a server counts as failed and connects later. After 404 and 429, it
// is not tried again (S13; observed with 2.1.330).
func TestHTTPRetries(t *testing.T) {
	t.Parallel()
	f := newFakeHTTP(t, func(n int, _ *http.Request) int {
		if n <= 2 {
			return http.StatusServiceUnavailable
		}
		return 0
	})
	pauses := RetryPauses{Retry: 10 * time.Millisecond}
	m := start(t, Options{Servers: []ServerConfig{remoteConfig(f)}, Pauses: pauses})
	if st := m.Servers()[0]; st.State != StateFailed || st.Error != "Error POSTing to endpoint:" {
		t.Errorf("%s: %s", st.State, st.Error)
	}
	eventually(t, 5*time.Second, func() bool { return m.Servers()[0].State == StateConnected }, "not connected")
	for _, test := range []struct {
		status int
		want   string
	}{
		{http.StatusNotFound, "MCP endpoint not found at %s. Check the URL in your MCP config."},
		{http.StatusTooManyRequests, "Error POSTing to endpoint:"},
	} {
		gone := newFakeHTTP(t, func(int, *http.Request) int { return test.status })
		m = start(t, Options{Servers: []ServerConfig{remoteConfig(gone)}, Pauses: pauses})
		if st := m.Servers()[0]; st.State != StateFailed || st.Error != strings.ReplaceAll(test.want, "%s", gone.URL) || strings.Count(gone.log(), "POST") != 1 {
			t.Errorf("%s: %s\n%s", st.State, st.Error, gone.log())
		}
	}
}

// TestSDK: a server of the SDK host is reached through messages, with the ids
// and order of golden ctl-sdkmcp; its list_changed arrives through Deliver.
func TestSDK(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	host := func(_ context.Context, server string, message json.RawMessage) (json.RawMessage, error) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, server+" "+string(message))
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(message, &m); err != nil {
			return nil, err
		}
		results := map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sdks","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"foo","inputSchema":{"type":"object"}}]}`, "tools/call": `{"content":[{"type":"text","text":"sdk tool ok"}]}`,
		}
		if m.ID == nil {
			return json.RawMessage(`{"jsonrpc":"2.0","result":{}}`), nil
		}
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, results[m.Method]), nil
	}
	m := start(t, Options{SDK: host, Servers: []ServerConfig{{Name: "s", Type: "sdk", Source: "sdk"}}})
	if got := call(t, m, "foo", `{"a":1}`); got != `[{"type":"text","text":"sdk tool ok"}]` {
		t.Errorf("got %s", got)
	}
	if err := m.DeliverSDKServerMessage(t.Context(), "s", json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)); err != nil {
		t.Error(err)
	}
	all := func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(seen, "\n")
	}
	eventually(t, time.Second, func() bool { return strings.Count(all(), "tools/list") == 2 }, "not listed again")
	want := []string{`"id":0,"method":"initialize"`, `"method":"notifications/initialized"`, `"id":1,"method":"tools/list"`, `"id":2,"method":"tools/call"`}
	for i, w := range want {
		if line := strings.Split(all(), "\n")[i]; !strings.Contains(line, w) {
			t.Errorf("%d: %s", i, line)
		}
	}
	if !strings.Contains(all(), `"capabilities":{}`) {
		t.Errorf("capabilities are not empty:\n%s", all())
	}
}

// fakeSSE is a server of the older HTTP transport. Tool "drop" ends the stream without an answer; tool "ask" pings
// the client and returns its answer.
type fakeSSE struct {
	*httptest.Server
	out chan string // events; "" ends the stream

	mu      sync.Mutex
	streams int
	asked   json.RawMessage // id of the call that waits for our ping
}

func newFakeSSE(t *testing.T) *fakeSSE {
	t.Helper()
	f := &fakeSSE{out: make(chan string, 16)}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func (f *fakeSSE) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer sesame" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodGet {
		f.mu.Lock()
		f.streams++
		f.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": hello\r\nid: 7\r\nevent: endpoint\r\ndata: /messages?s=1\r\n\r\n")
		for {
			w.(http.Flusher).Flush()
			select {
			case event := <-f.out:
				if event == "" {
					return
				}
				half := len(event) / 2 // an event may arrive in several parts
				fmt.Fprint(w, event[:half])
				w.(http.Flusher).Flush()
				fmt.Fprint(w, event[half:])
			case <-r.Context().Done():
				return
			}
		}
	}
	w.WriteHeader(http.StatusAccepted)
	var m struct {
		ID, Result json.RawMessage
		Method     string
		Params     struct{ Name string }
	}
	_ = json.NewDecoder(r.Body).Decode(&m)
	reply := func(id json.RawMessage, result string) {
		f.out <- fmt.Sprintf("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\ndata: \"result\":%s}\n\n", id, result)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case m.Method == "initialize":
		reply(m.ID, `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"e","version":"1"}}`)
	case m.Method == "tools/list":
		reply(m.ID, `{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"drop","inputSchema":{"type":"object"}},{"name":"ask","inputSchema":{"type":"object"}},{"name":"big","inputSchema":{"type":"object"}}]}`)
	case m.Method == "tools/call" && m.Params.Name == "big":
		reply(m.ID, `{"content":[{"type":"text","text":"`+strings.Repeat("b", 3000)+`"}]}`)
	case m.Method == "tools/call" && m.Params.Name == "drop":
		f.out <- ""
	case m.Method == "tools/call" && m.Params.Name == "ask":
		f.asked = m.ID
		f.out <- "data: {\"jsonrpc\":\"2.0\",\"id\":" + string(m.ID) + ",\"method\":\"ping\"}\n\n" // a request of the server may have the id of one of the client
	case m.Method == "tools/call":
		reply(m.ID, `{"content":[{"type":"text","text":"ok"}]}`)
	case m.Result != nil && f.asked != nil:
		reply(f.asked, `{"content":[{"type":"text","text":"answered `+string(m.Result)+`"}]}`)
	}
}

// TestSSE checks calls, requests of the server, a lost stream and the reconnect after a second. A call fails when its
// stream ends.
func TestSSE(t *testing.T) {
	t.Parallel()
	f := newFakeSSE(t)
	cfg := ServerConfig{Name: "s", Type: "sse", URL: f.URL + "/sse", Headers: map[string]string{"Authorization": "Bearer sesame"}}
	m := start(t, Options{Servers: []ServerConfig{cfg}})
	if st := m.Servers()[0]; st.State != StateConnected || st.ProtocolVersion != "2024-11-05" {
		t.Fatalf("%s: %s", st.State, st.Error)
	}
	for _, test := range []struct{ tool, want string }{
		{"echo", `[{"type":"text","text":"ok"}]`},
		{"ask", `[{"type":"text","text":"answered {}"}]`},
		{"drop", `isError: "Connection closed"`},
	} {
		if got := call(t, m, test.tool, `{}`); got != test.want {
			t.Errorf("%s: got %s", test.tool, got)
		}
	}
	if got := call(t, m, "echo", `{}`); got != `[{"type":"text","text":"ok"}]` { // waits for the new connection
		t.Errorf("after reconnecting: %s", got)
	}

	cfg.Headers = nil
	refused := start(t, Options{Servers: []ServerConfig{cfg}})
	if st := refused.Servers()[0]; st.State != StateNeedsAuth {
		t.Errorf("%s: %s", st.State, st.Error)
	}
}

// TestHTTPFailedAtFirst: a call of a tool of a server that failed connects once more (observed with 2.1.330).
func TestHTTPFailedAtFirst(t *testing.T) {
	t.Parallel()
	f := newFakeHTTP(t, func(n int, _ *http.Request) int {
		if n <= 2 { // the handshake, and the stream of an older server
			return http.StatusNotFound
		}
		return 0
	})
	m := start(t, Options{Servers: []ServerConfig{remoteConfig(f)}})
	if st := m.Servers()[0]; st.State != StateFailed {
		t.Fatalf("%s: %s", st.State, st.Error)
	}
	if got := call(t, m, "echo", `{}`); got != `[{"type":"text","text":"ok"}]` {
		t.Errorf("got %s", got)
	}
	if n := strings.Count(f.log(), "POST initialize"); n != 2 {
		t.Errorf("%d handshakes:\n%s", n, f.log())
	}
}

// TestHTTPRedirect checks that a redirect is followed, but that the configured headers are sent only to the configured
// server. The other server receives neither the URL of the first nor a session id that it did not issue (N34).
func TestHTTPRedirect(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []string // what the other server received in each request
	f := newFakeHTTP(t, func(_ int, r *http.Request) int {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprint(r.Method, r.URL, r.Header))
		return 0
	})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Redirect(w, r, f.URL+"/mcp", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(front.Close)
	cfg := remoteConfig(f)
	cfg.URL = front.URL + "/mcp?key=of-the-first"
	m := start(t, Options{Servers: []ServerConfig{cfg}})
	if got := call(t, m, "echo", `{}`); got != `[{"type":"text","text":"ok"}]` {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(f.log(), "tools/call S") {
		t.Errorf("its own session did not come back\n%s", f.log())
	}
	mu.Lock()
	defer mu.Unlock()
	for _, request := range told {
		if strings.Contains(request, "sesame") || strings.Contains(request, "Referer") || strings.Contains(request, "of-the-first") {
			t.Errorf("the other server was told %s", request)
		}
	}
}

// TestHTTPRedirectedSession: a session id is sent only to the server that issued it, also if that server redirects a
// later request.
func TestHTTPRedirectedSession(t *testing.T) {
	t.Parallel()
	foreign := newFakeHTTP(t, nil)
	f := newFakeHTTP(t, nil)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("tools/call")) {
			http.Redirect(w, r, foreign.URL+"/mcp", http.StatusTemporaryRedirect)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		f.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	cfg := remoteConfig(f)
	cfg.URL = front.URL + "/mcp"
	m := start(t, Options{Servers: []ServerConfig{cfg}})
	if got := call(t, m, "echo", `{}`); got != `[{"type":"text","text":"ok"}]` {
		t.Errorf("got %s", got)
	}
	if log := foreign.log(); !strings.HasPrefix(log, "POST tools/call  ") {
		t.Errorf("the other server was told\n%s", log)
	}
}

// TestHTTPRootsChange: a remote server is notified of new roots. A server that does not accept the message delays
// neither the caller nor the shutdown (M29, M45).
func TestHTTPRootsChange(t *testing.T) {
	t.Parallel()
	f := newFakeHTTP(t, nil)
	m := start(t, Options{Servers: []ServerConfig{remoteConfig(f)}, Roots: []string{"/a"}})
	m.SetRootsAndNotifyServers(t.Context(), []string{"/b"})
	eventually(t, 5*time.Second, func() bool { return strings.Contains(f.log(), "POST notifications/roots/list_changed") }, "not told")

	var deaf atomic.Bool
	release := make(chan struct{})
	defer close(release)
	f = newFakeHTTP(t, func(_ int, r *http.Request) int {
		if r.Method == http.MethodPost && deaf.Load() {
			<-release
		}
		return 0
	})
	m = start(t, Options{Servers: []ServerConfig{remoteConfig(f)}, Roots: []string{"/a"}})
	deaf.Store(true)
	before := time.Now()
	m.SetRootsAndNotifyServers(t.Context(), []string{"/b"})
	if took := time.Since(before); took > patience {
		t.Errorf("the caller waited %v", took)
	}
	eventually(t, 5*time.Second, func() bool { return strings.Contains(f.log(), "roots/list_changed") }, "not told")
	before = time.Now()
	m.Close(context.WithoutCancel(t.Context()))
	if took := time.Since(before); took > patience {
		t.Errorf("closing took %v", took)
	}
}

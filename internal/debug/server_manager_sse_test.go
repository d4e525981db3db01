package debug

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// sseServer is an MCP server over the older HTTP transport, at exactly this path. It has one tool, and from the second
// tools/list on also a second tool without a schema.
func sseServer(t *testing.T, path string) (url string, gone <-chan struct{}) {
	t.Helper()
	answers, closed := make(chan string, 10), make(chan struct{}, 10)
	var lists atomic.Int64
	mux := http.NewServeMux()
	exactly := path
	if strings.HasSuffix(path, "/") {
		exactly += "{$}"
	}
	mux.HandleFunc("GET "+exactly, func(w http.ResponseWriter, r *http.Request) {
		defer func() { closed <- struct{}{} }()
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: endpoint\ndata: /messages\n\n")
		for {
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
			select {
			case a := <-answers:
				fmt.Fprintf(w, "event: message\ndata: %s\n\n", a)
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("POST /messages", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
		tools := `{"name":"größe","inputSchema":{"type":"object"}}`
		if m.Method == "tools/list" && lists.Add(1) > 1 {
			tools += `,{"name":"new"}`
		}
		result := map[string]string{
			"initialize": `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}`,
			"tools/list": `{"tools":[` + tools + `]}`,
			"tools/call": `{"content":[{"type":"text","text":"by SSE"}]}`,
			"ping":       `{}`,
		}[m.Method]
		if len(m.ID) > 0 && result != "" {
			answers <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL + path, closed
}

func TestSSE(t *testing.T) {
	url, gone := sseServer(t, "/sse")
	m, _ := newManager(t)
	tools, err := m.AddAndConnect(t.Context(), "old", json.RawMessage(`{"transport":"sse","url":"`+url+`"}`)) // C19 C142 C166
	if err != nil || len(tools) != 1 || tools[0] != "old/größe" {                                             // C20 C160
		t.Fatalf("%v, %v", tools, err)
	}
	if got, err := m.CallAndRecord(t.Context(), "old/größe", nil); err != nil || !strings.Contains(string(got), "by SSE") {
		t.Errorf("%s, %v", got, err)
	}
	if err := m.DisconnectKeepingConfig(t.Context(), "old"); err != nil { // C22
		t.Error(err)
	}
	<-gone
	if _, err := m.CallAndRecord(t.Context(), "old/größe", nil); errorCode(err) != CodeServerNotConnected {
		t.Errorf("%v", err)
	}
	if tools, err := m.Reconnect(t.Context(), "old"); err != nil || len(tools) != 2 || tools[1] != "old/new" { // C58 C155
		t.Errorf("%v, %v", tools, err)
	}
	if got, err := m.CallAndRecord(t.Context(), "old/new", nil); err != nil || !strings.Contains(string(got), "by SSE") { // C159
		t.Errorf("a tool without a schema: %s, %v", got, err)
	}
}

// C165: a slash at the end of the URL is kept.
func TestSSEWithSlash(t *testing.T) {
	url, _ := sseServer(t, "/sse/")
	m, _ := newManager(t)
	if tools, err := m.AddAndConnect(t.Context(), "old", json.RawMessage(`{"transport":"sse","url":"`+url+`"}`)); err != nil || len(tools) != 1 {
		t.Errorf("%v, %v", tools, err)
	}
}

// C154: a server without tools is accepted.
func TestNoTools(t *testing.T) {
	m, _ := newManager(t, server(t, "none", "tools-null"))
	if c := waitForStatus(t, m, "none", StatusConnected); len(c.Tools) != 0 {
		t.Errorf("%+v", c)
	}
	if _, err := m.CallAndRecord(t.Context(), "none/echo", nil); errorCode(err) != CodeToolNotFound {
		t.Errorf("%v", err)
	}
}

// C68 C69: requests of a server that we cannot serve are refused, and the connection continues to work.
func TestServerAsks(t *testing.T) {
	m, _ := newManager(t, server(t, "asks", "s2c"))
	for range 2 {
		if got, err := m.CallAndRecord(t.Context(), "asks/echo", nil); err != nil || !strings.Contains(string(got), "-3260") {
			t.Errorf("%s, %v", got, err)
		}
	}
}

// C171 C172: servers that were added at run time are not saved, so a new manager does not know them.
func TestRuntimeServersAreForgotten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp_clients.json")
	text := []byte(`{"servers":{}}`)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	servers, err := ParseServerConfig(file, text)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := newManager(t, servers...)
	if _, err := m.AddAndConnect(t.Context(), "late", entry(t, "ok")); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != string(text) {
		t.Errorf("%s, %v", data, err)
	}
	if again, _ := newManager(t, servers...); len(again.Servers()) != 0 {
		t.Error("the new manager knows the server")
	}
}

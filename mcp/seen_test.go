package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSeenByServers: a server receives the same data about the client as from the real CLI: capabilities, arguments
// of prompts (observed with 2.1.329).
func TestSeenByServers(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	m := start(t, Options{Servers: []ServerConfig{testConfig(t, "s", "resources", "MCPTEST_LOG="+log)}, ClientVersion: "2.1.329"})
	for _, args := range []json.RawMessage{json.RawMessage("{}"), json.RawMessage(`{"x":"1"}`)} {
		if _, err := m.GetPrompt(t.Context(), "s", "p", args); err != nil {
			t.Error(err)
		}
	}
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"capabilities":{"roots":{"listChanged":true},"elicitation":{"form":{},"url":{}}}`,
		`"params":{"name":"p","arguments":{}}`,
		`"params":{"name":"p","arguments":{"x":"1"}}`,
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("no %s in\n%s", want, raw)
		}
	}
}

// headersSeen collects the headers of requests, one line each.
type headersSeen struct {
	http.Handler
	mu   sync.Mutex
	seen []string
}

func (h *headersSeen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	var line strings.Builder
	line.WriteString(r.Method)
	for _, name := range []string{"Accept", "Accept-Encoding", "Content-Type", "User-Agent", "Mcp-Protocol-Version"} {
		line.WriteString(" | " + r.Header.Get(name))
	}
	h.seen = append(h.seen, line.String())
	h.mu.Unlock()
	h.Handler.ServeHTTP(w, r)
}

// TestSeenHeaders: the headers of both HTTP transports are those of the real CLI
// (observed with 2.1.329).
func TestSeenHeaders(t *testing.T) {
	const (
		both  = "application/json, text/event-stream"
		agent = "claude-code/2.1.329 (sdk-py, agent-sdk/0.1.2)"
	)
	for kind, want := range map[string][]string{
		"sse": {
			"GET | text/event-stream | identity |  | " + agent + " | ",
			"POST | " + both + " | identity | application/json | " + agent + " | ",
			"POST | " + both + " | identity | application/json | " + agent + " | 2024-11-05",
		},
		"http": {
			"POST | " + both + " | identity | application/json | " + agent + " | ",
			"POST | " + both + " | identity | application/json | " + agent + " | 2025-11-25",
			"GET | text/event-stream | identity |  | " + agent + " | 2025-11-25",
		},
	} {
		t.Run(kind, func(t *testing.T) {
			seen := &headersSeen{}
			if kind == "sse" {
				seen.Handler = newFakeSSE(t)
			} else {
				seen.Handler = newFakeHTTP(t, nil)
			}
			server := httptest.NewServer(seen)
			t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
			start(t, Options{
				ClientVersion: "2.1.329", Environ: []string{"CLAUDE_CODE_ENTRYPOINT=sdk-py", "CLAUDE_AGENT_SDK_VERSION=0.1.2"},
				Servers: []ServerConfig{{Name: "s", Type: kind, URL: server.URL + "/sse", Headers: map[string]string{"Authorization": "Bearer sesame"}}},
			})
			distinct := map[string]bool{}
			eventually(t, 10*time.Second, func() bool {
				seen.mu.Lock()
				defer seen.mu.Unlock()
				for _, line := range seen.seen {
					distinct[line] = true
				}
				return len(distinct) >= len(want)
			}, "fewer kinds of requests")
			wanted := map[string]bool{}
			for _, line := range want {
				wanted[line] = true
			}
			if diff := cmp.Diff(wanted, distinct); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// writeOversized answers calls with more than the limit, as JSON or as events, with the id first or last.
func writeOversized(w http.ResponseWriter, id []byte, events bool) {
	result := `{"content":[{"type":"text","text":"` + strings.Repeat("b", 3000) + `"}]}`
	if !events {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "\ufeffevent: message\rdata: {\"jsonrpc\":\"2.0\",\"result\":%s,\r\ndata: \"id\":%s}\r\r", result, id)
}

// TestTooLong: an answer over the limit is an error with its size and the limit, on every transport, and the next
// call works.
func TestTooLong(t *testing.T) {
	const want = `isError: "the message of the server is %d bytes; the limit is 2000 (maxLineBytes in the server's entry)"`
	remote := func(t *testing.T, events bool) ServerConfig {
		t.Helper()
		f := newFakeHTTP(t, nil)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), `"hang"`) && !strings.Contains(string(body), "cancelled") {
				_, id, _ := strings.Cut(string(body), `"id":`)
				id, _, _ = strings.Cut(id, ",")
				writeOversized(w, []byte(id), events)
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			f.ServeHTTP(w, r)
		}))
		t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
		return ServerConfig{Type: "http", URL: front.URL}
	}
	for name, test := range map[string]struct {
		tool string
		size int
	}{
		"stdio": {"echo", 1<<20 + 73}, "json": {"hang", 3073}, "stream": {"hang", 3074}, "sse": {"big", 3074},
	} {
		t.Run(name, func(t *testing.T) {
			var cfg ServerConfig
			switch name {
			case "stdio":
				cfg = testConfig(t, "s", "bigline", "MCPTEST_COUNT=1")
			case "sse":
				cfg = ServerConfig{Type: "sse", URL: newFakeSSE(t).URL + "/sse", Headers: map[string]string{"Authorization": "Bearer sesame"}}
			default:
				cfg = remote(t, name == "stream")
			}
			cfg.Name, cfg.MaxLineBytes = "s", 2000
			m := start(t, Options{Servers: []ServerConfig{cfg}})
			if got := call(t, m, test.tool, `{}`); got != fmt.Sprintf(want, test.size) {
				t.Errorf("got %s", got)
			}
			if name == "stdio" {
				return // every answer of this server exceeds the limit
			}
			if got := call(t, m, "echo", `{}`); got != `[{"type":"text","text":"ok"}]` {
				t.Errorf("afterwards %s", got)
			}
		})
	}
}

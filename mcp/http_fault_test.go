package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// faultyHTTP is a server whose handshake has the fault mode; "" means a handshake without a fault.
// Each tool has the name of a fault and answers with this fault (spec: mcp 1.6).
type faultyHTTP struct{ mode string }

var httpFaults = map[string]func(w http.ResponseWriter, r *http.Request, id json.RawMessage){ // never changed
	"html": func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html>it works</html>")
	},
	"no type": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		w.Header()["Content-Type"] = nil
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	},
	"accepted": func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) { w.WriteHeader(http.StatusAccepted) },
	"500": func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
		http.Error(w, "oh no", http.StatusInternalServerError)
	},
	"500 with JSON": func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"detail":"oh no"}`)
	},
	"error with 400": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32099,"message":"not like this"}}`, id)
	},
	"broken JSON": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content`, id)
	},
	"half a body": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,`, id)
	},
	"cut": func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) { panic(http.ErrAbortHandler) },
	"silent stream": func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
	},
	"not resumable": func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "id: 7\nretry: 1\ndata: \n\n")
	},
	"hanging stream": func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	},
	"junk in a stream": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {broken\n\nevent: ping\n\n: comment\n\ndata: [1]\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", id)
	},
	"redirects": func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
		http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
	},
	"flood": func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
		w.Header().Set("Content-Type", "application/json")
		writeFlood(w, r, "{\n")
	},
	"line flood": func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		writeFlood(w, r, "data: ")
	},
	"event flood": func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		writeFlood(w, r, "data: x\n")
	},
}

// writeFlood writes 300 MB, or until the reader stops reading.
func writeFlood(w io.Writer, r *http.Request, begin string) {
	piece := strings.Repeat(" ", 1<<10) + "\n"
	if !strings.HasSuffix(begin, "\n") {
		piece = strings.Repeat("x", 1<<10)
	} else if begin != "{\n" {
		piece = strings.Repeat(begin, 128)
	}
	if _, err := io.WriteString(w, begin); err != nil {
		return
	}
	for range 300 << 10 {
		if _, err := io.WriteString(w, piece); err != nil || r.Context().Err() != nil {
			return
		}
	}
}

func (f faultyHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	_ = json.NewDecoder(r.Body).Decode(&m)
	_, _ = io.Copy(io.Discard, r.Body) // the end of the body shows that the client has disconnected
	result := ""
	switch {
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case m.Method == "initialize" && f.mode != "":
		httpFaults[f.mode](w, r, m.ID)
		return
	case m.Method == "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}`
	case m.Method == "tools/list":
		var tools []string
		for name := range httpFaults {
			tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
		}
		result = `{"tools":[{"name":"fine","inputSchema":{"type":"object"}},` + strings.Join(tools, ",") + `]}`
	case m.Params.Name != "fine":
		httpFaults[m.Params.Name](w, r, m.ID)
		return
	default:
		result = `{"content":[{"type":"text","text":"fine"}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func serveFaults(t *testing.T, mode string) ServerConfig {
	t.Helper()
	s := httptest.NewServer(faultyHTTP{mode})
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return ServerConfig{Name: "s", Type: "http", URL: s.URL + "/mcp"}
}

// TestHTTPServerEnds checks that a call whose server exits, a call to a closed port, and the next call fail with the
// texts of the real CLI 2.1.330.
func TestHTTPServerEnds(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]string{
		"silent stream": "MCP server \"s\" connection closed before the tool call was answered. The tool may have run: check whether it did before running it again.",
		"fine":          "ECONNREFUSED: Unable to connect. Is the computer able to access the url?",
	} {
		var ends atomic.Bool
		var s *httptest.Server
		s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if ends.Load() && r.Method == http.MethodPost { // the GET of the listening stream may come late
				closePort(s)
			}
			faultyHTTP{}.ServeHTTP(w, r)
		}))
		s.Config.SetKeepAlivesEnabled(false)
		t.Cleanup(s.Close)
		m := start(t, Options{
			Servers: []ServerConfig{{Name: "s", Type: "http", URL: s.URL + "/mcp"}}, Pauses: RetryPauses{Reconnect: time.Hour, Reopen: time.Millisecond},
		})
		if ends.Store(tool != "fine"); tool == "fine" {
			closePort(s)
		}
		res, err := m.Call(t.Context(), CallRequest{Tool: "s/" + tool})
		if err != nil || !res.IsError || res.Content.Plain() != want {
			t.Errorf("%s: got %+v, %v", tool, res, err)
		}
		if _, err := m.Call(t.Context(), CallRequest{Tool: "s/" + tool}); !errors.Is(err, ErrNotConnected) || err.Error() != `MCP server "s" is not connected` {
			t.Errorf("%s: the next call: %v", tool, err)
		}
	}
}

// closePort closes the port of a server, and returns when it refuses connections.
func closePort(s *httptest.Server) {
	s.Listener.Close()
	for {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			return
		}
		c.Close()
	}
}

// TestHTTPMisbehaving has a row for every fault of an HTTP server, in a call and in the handshake. Each call returns
// within its time and memory limit with an error that names the fault, and the next call works (M42, M43, M44).
func TestHTTPMisbehaving(t *testing.T) {
	const timeout, connectTimeout = `MCP server "s" tool "%s" timed out after 0s`, "connection timed out after 500ms (connectTimeout of its entry)"
	const tooLong = "the message of the server has more than 33554432 bytes; the limit is 16777216 (maxLineBytes in the server's entry)"
	const unreadable = `The connection to MCP server "s" was closed because a message from the server was too large or could not be parsed, so the result of tool "%s" was not read. ` +
		"The tool may have run: check whether it did before running it again. If its result may have been too large, ask for less data when you run it again."
	const reset = "ECONNRESET: The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second argument to fetch()"
	for _, test := range []struct{ fault, call, handshake string }{
		{"html", "Unexpected content type: text/html", ""},
		{"no type", "Unexpected content type: null", ""},
		{"accepted", timeout, connectTimeout},
		{"500", "Error POSTing to endpoint: oh no", ""},
		{"500 with JSON", `Error POSTing to endpoint: {"detail":"oh no"}`, ""},
		{"error with 400", `Error POSTing to endpoint: {"jsonrpc":"2.0","id":2,"error":{"code":-32099,"message":"not like this"}}`, `"message":"not like this"}}`},
		{"broken JSON", unreadable, "the server sent a message that cannot be parsed"},
		{"half a body", reset, ": unexpected EOF"},
		{"cut", reset, ": EOF"},
		{"silent stream", timeout, "the stream ended before the answer"},
		{"not resumable", timeout, "the stream ended before the answer"},
		{"hanging stream", timeout, connectTimeout},
		{"junk in a stream", unreadable, "\"serverInfo\"\n    ],\n    \"message\": \"Invalid input: expected object, received undefined\"\n  }\n]"},
		{"redirects", `Post "/mcp": stopped after 10 redirects`, ""},
		{"flood", tooLong, ""},
		{"line flood", tooLong, ""},
		{"event flood", tooLong, ""},
	} {
		t.Run(test.fault, func(t *testing.T) {
			var m *Manager
			var got string
			highest := heapAbove(func() {
				m = start(t, Options{Servers: []ServerConfig{serveFaults(t, "")}, Pauses: RetryPauses{Reconnect: time.Millisecond}})
				limit := 20 * time.Second
				if test.call == timeout {
					limit = 500 * time.Millisecond
				}
				res, err := m.Call(t.Context(), CallRequest{Tool: "s/" + test.fault, Timeout: limit})
				if err != nil {
					t.Fatal(err)
				}
				if res.IsError {
					got = res.Content.Plain()
				}
			})
			if want := strings.ReplaceAll(test.call, "%s", test.fault); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if highest > floodLimit {
				t.Errorf("peak is %d MB above idle", highest>>20)
			}
			eventually(t, 5*time.Second, func() bool { return call(t, m, "fine", `{}`) == `[{"type":"text","text":"fine"}]` }, "did not come back")

			cfg := serveFaults(t, test.fault)
			cfg.ConnectTimeout = 500 * time.Millisecond
			before := time.Now()
			st := start(t, Options{Servers: []ServerConfig{cfg}}).Servers()[0]
			want := test.handshake
			if want == "" {
				want = strings.TrimSpace(test.call)
			}
			if st.State != StateFailed || !strings.HasSuffix(strings.TrimSpace(st.Error), strings.TrimSpace(want)) && st.Error != connectTimeout {
				t.Errorf("handshake: %s: %q, want %q", st.State, st.Error, want)
			}
			if took := time.Since(before); took > patience {
				t.Errorf("the handshake took %v", took)
			}
		})
	}
}

// TestListUnreadable: a server whose list of tools cannot be parsed counts as lost. It is pending,
// and the first attempt to reconnect is immediate. After the fifth attempt it has failed, and
// attempts continue in the background (observed with 2.1.330).
func TestListUnreadable(t *testing.T) {
	t.Parallel()
	f := newFakeHTTP(t, nil)
	var lists atomic.Int64
	var repaired atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"tools/list"`) && !repaired.Load() {
			lists.Add(1)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{broken")
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		f.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	cfg := []ServerConfig{{Name: "s", Type: "http", URL: front.URL}}
	slow := start(t, Options{Servers: cfg, Pauses: RetryPauses{Reconnect: time.Hour}})
	eventually(t, 10*time.Second, func() bool { return slow.Servers()[0].Status == "pending" && lists.Load() == 2 }, "not connected again at once")
	fast := start(t, Options{Servers: cfg, Pauses: RetryPauses{Reconnect: time.Millisecond}})
	eventually(t, 20*time.Second, func() bool {
		st := fast.Servers()[0]
		return st.WireError == "Connection closed again while reconnecting" && st.State == StateFailed && lists.Load() > 2+1+maxReconnectsBeforeFailed
	}, "not tried in the background")
	repaired.Store(true)
	eventually(t, 20*time.Second, func() bool { return fast.Servers()[0].State == StateConnected }, "did not come back")
}

// TestLostAtOnce: a connection that is lost before it was used counts as a failed attempt to
// reconnect, so that the pauses grow (observed with 2.1.330).
func TestLostAtOnce(t *testing.T) {
	t.Parallel()
	script := parseScript(`initialize {"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}
tools/list {"result":{"tools":[]}}
GET {no`)
	listener := httptest.NewServer(script)
	t.Cleanup(func() { listener.CloseClientConnections(); listener.Close() })
	m := start(t, Options{Servers: []ServerConfig{{Name: "s", Type: "http", URL: listener.URL}}, Pauses: RetryPauses{Reconnect: time.Hour}})
	eventually(t, 10*time.Second, func() bool {
		st := m.Servers()[0]
		return st.State == StateReconnecting && st.Attempt == 2 && st.WireError == "Connection closed again while reconnecting"
	}, "connected again without a pause")
}

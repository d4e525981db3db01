package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/mcpserver"
)

// transports are the ways in which a client can connect: S122 to S127, S129 to S133, and streamable HTTP.
func transports() map[string]func(*hubAccess, *testing.T) *client.Client {
	return map[string]func(*hubAccess, *testing.T) *client.Client{
		"stdio": (*hubAccess).dialStdio, "streamable": (*hubAccess).dialHTTP, "sse": (*hubAccess).dialSSE,
	}
}

// notificationSummary is a notification, reduced to the parts that are equal in each run.
type notificationSummary struct{ Method, Name, Reason, Action, Status, Pause string }

// listen collects a client's notifications.
func listen(c *client.Client) <-chan notificationSummary {
	notes := make(chan notificationSummary, 1000)
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		get := func(key string) string { s, _ := n.Params.AdditionalFields[key].(string); return s }
		notes <- notificationSummary{
			Method: strings.TrimPrefix(n.Method, "notifications/breakpoint/"), Name: get("method_name"),
			Reason: get("pause_reason"), Action: get("action"), Status: get("status"), Pause: get("pause_id"),
		}
	})
	return notes
}

func take(t *testing.T, notes <-chan notificationSummary, n int) []notificationSummary {
	t.Helper()
	var all []notificationSummary
	deadline := time.After(10 * time.Second)
	for len(all) < n {
		select {
		case got := <-notes:
			all = append(all, got)
		case <-deadline:
			t.Fatalf("only %v arrived", all)
		}
	}
	return all
}

// TestTransports repeats the tests of the older system on each transport: initialize (S122, S129), add and list
// (S123, S130), pause and continue a real call (S124), evaluate (S125), read a resource (S126), get a prompt (S127),
// and receive every notification (S93 to S100, S133, B4).
func TestTransports(t *testing.T) {
	for name, dial := range transports() {
		t.Run(name, func(t *testing.T) {
			f := newTestServer(t, mcpserver.Options{})
			c := dial(f, t)
			notes := listen(c)
			ask(t, c, "breakpoint_add", `{"function_name":"fails","after_behavior":"stop_exception"}`)
			expect(t, ask(t, c, "breakpoint_list_breakpoints", ""), `{"breakpoints":["fails"]}`)
			first, done := f.stopped(t, "fails", `{"x":41}`)
			expect(t, ask(t, c, "breakpoint_repl_eval", `{"pause_id":"`+first+`","expression":"input.x + 1"}`), `{"output":"42"}`)
			read := mcp.ReadResourceRequest{}
			read.Params.URI = "breakpoint://status"
			if _, err := c.ReadResource(t.Context(), read); err != nil {
				t.Error(err)
			}
			get := mcp.GetPromptRequest{}
			get.Params.Name = "debug-session-start"
			if _, err := c.GetPrompt(t.Context(), get); err != nil {
				t.Error(err)
			}
			ask(t, c, "breakpoint_continue", `{"pause_id":"`+first+`","modified_kwargs":{}}`)
			second := f.pause(t, 1)[0]
			if err := f.hub.Resume(t.Context(), second, debug.ResumeRequest{}); err != nil { // S94: from another front end
				t.Fatal(err)
			}
			result(t, done)
			want := []notificationSummary{
				{Method: "execution_paused", Name: "fails", Reason: "breakpoint", Pause: first},
				{Method: "execution_resumed", Name: "fails", Action: "modify", Pause: first},
				{Method: "call_completed", Name: "fails", Status: "exception"},
				{Method: "execution_paused", Name: "fails", Reason: "exception", Pause: second},
				{Method: "execution_resumed", Name: "fails", Action: "continue", Pause: second},
			}
			if diff := cmp.Diff(want, take(t, notes, len(want))); diff != "" {
				t.Error(diff)
			}
			select {
			case more := <-notes:
				t.Errorf("came twice: %v", more)
			case <-time.After(50 * time.Millisecond):
			}
		})
	}
}

// TestShared: clients of all transports share one state (S131, S134) and each gets an event once (S102, S135).
// Clients that disappear have no effect on others and leave no goroutine (S132).
func TestShared(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	url := f.listen(t)
	clients := map[string]*client.Client{
		"stdio": f.dialStdio(t), "streamable 1": dialHTTP(t, url), "streamable 2": dialHTTP(t, url), "sse 1": dialSSE(t, url), "sse 2": dialSSE(t, url),
	}
	notes := map[string]<-chan notificationSummary{}
	for name, c := range clients {
		notes[name] = listen(c)
		ask(t, c, "breakpoint_list_paused", "")
	}
	ask(t, clients["sse 1"], "breakpoint_add", `{"function_name":"A","after_behavior":"go"}`)
	id, done := f.stopped(t, "A", `{}`)
	for name, c := range clients {
		expect(t, ask(t, c, "breakpoint_list_breakpoints", ""), `{"breakpoints":["A"]}`)
		if got := take(t, notes[name], 1)[0]; got.Pause != id || got.Method != "execution_paused" {
			t.Errorf("%s got %+v", name, got)
		}
	}
	for _, name := range []string{"sse 1", "streamable 1"} {
		clients[name].Close()
		delete(clients, name)
	}
	ask(t, clients["sse 2"], "breakpoint_continue", `{"pause_id":"`+id+`"}`)
	result(t, done)
	for name := range clients {
		if got := take(t, notes[name], 2); got[0].Action != "continue" || got[1].Status != "success" {
			t.Errorf("%s got %+v", name, got)
		}
	}
}

// TestNoClient: events without a receiver are dropped (S101). A client that reads too slowly delays no other client
// (S103).
func TestNoClient(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	result(t, f.run(t, "A", `{}`))
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe() // nothing reads the answers
	served := make(chan error, 1)
	go func() { served <- f.ServeStdio(context.Background(), inRead, outWrite) }()
	io.WriteString(inWrite, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	for range 1000 {
		result(t, f.run(t, "A", `{}`))
	}
	inWrite.Close()
	outRead.Close()
	if err := <-served; err != nil && !strings.Contains(err.Error(), "closed pipe") {
		t.Error(err)
	}
}

// TestPipelined: pipelined requests are answered in order. The output is only JSON-RPC (S121). The end of the input
// ends the connection, and the server continues to serve others (S119).
func TestPipelined(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	var out strings.Builder
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"1999-01-01"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`not json`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"breakpoint_add","arguments":{"function_name":"<A>&"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"breakpoint_list_breakpoints"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"no/such"}`,
		`{"jsonrpc":"2.0","id":4,"method":"resources/templates/list"}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[]}`,
		`{"jsonrpc":"2.0","id":6,"method":"resources/read","params":[]}`,
		`{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":[]}`,
		`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"breakpoint_add","arguments":[]}}`,
	}, "\n")
	if err := f.ServeStdio(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(out.String()) {
		var m struct {
			ID     json.RawMessage
			Result struct{ ProtocolVersion string }
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		ids = append(ids, string(m.ID))
		if string(m.ID) == `"a"` && m.Result.ProtocolVersion != "2025-11-25" {
			t.Errorf("version %q for one that is not known", m.Result.ProtocolVersion)
		}
	}
	if want := []string{`"a"`, "null", "1", "2", "3", "4", "5", "6", "7", "8"}; !cmp.Equal(ids, want) {
		t.Errorf("answers %v, want %v:\n%s", ids, want, out.String())
	}
	if !strings.Contains(out.String(), `\"<A>&\"`) {
		t.Errorf("HTML was escaped: %s", out.String())
	}
	expect(t, ask(t, f.dialStdio(t), "breakpoint_list_breakpoints", ""), `{"breakpoints":["<A>&"]}`)
}

// TestSSEEndpoint: the stream names the path for messages (S117); other paths are refused.
func TestSSEEndpoint(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	url := f.listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, url+"/mcp/sse", nil)
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	lines.Scan()
	lines.Scan()
	if !strings.HasPrefix(lines.Text(), "data: /mcp/messages?") {
		t.Errorf("endpoint %q", lines.Text())
	}
	for path, want := range map[string]int{"/": 404, "/mcp/x": 404, "/messages": 404, "/mcp/messages?sessionId=x": 404} {
		r, err := http.Post(url+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("POST %s: %d, want %d", path, r.StatusCode, want)
		}
	}
}

// postMessage sends one message over streamable HTTP without a network.
func postMessage(t *testing.T, f *hubAccess, session, message string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(message))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	w := httptest.NewRecorder()
	f.Handler().ServeHTTP(w, r)
	return w
}

// openSession initializes a new session and returns its id.
func openSession(t *testing.T, f *hubAccess) string {
	t.Helper()
	id := postMessage(t, f, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`).Header().Get("Mcp-Session-Id")
	postMessage(t, f, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return id
}

const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`

// TestIdleSessions: a silent client over streamable HTTP is removed after half an hour, whether or not another one
// connects, and its next request gets the reason. A client with an open stream is kept.
func TestIdleSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestServer(t, mcpserver.Options{})
		gone, listens := openSession(t, f), openSession(t, f)
		ctx, cancel := context.WithCancel(t.Context())
		get := httptest.NewRequestWithContext(ctx, http.MethodGet, "/mcp", http.NoBody)
		get.Header.Set("Mcp-Session-Id", listens)
		followed := make(chan struct{})
		go func() { defer close(followed); f.Handler().ServeHTTP(httptest.NewRecorder(), get) }()
		time.Sleep(29 * time.Minute)
		if w := postMessage(t, f, gone, ping); w.Code != http.StatusOK {
			t.Fatalf("ping within the time: %d", w.Code)
		}
		time.Sleep(30*time.Minute + time.Second)
		w := postMessage(t, f, gone, ping)
		if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "no request came within 30m0s") {
			t.Errorf("ping of a session that was idle: %d %s", w.Code, w.Body)
		}
		if w := postMessage(t, f, listens, ping); w.Code != http.StatusOK {
			t.Errorf("ping of a session that listens: %d", w.Code)
		}
		cancel()
		<-followed
	})
}

// TestMemory: the events kept for sessions without listeners stay below one common bound. Missed events are reported
// once, in the next answer.
func TestMemory(t *testing.T) {
	f := newTestServer(t, mcpserver.Options{})
	ids := make([]string, 400)
	for i := range ids {
		ids[i] = openSession(t, f)
	}
	list := `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"breakpoint_list_paused"}}`
	name := strings.Repeat("n", 100)
	const events = 2000
	listens := openSession(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	get := httptest.NewRequestWithContext(ctx, http.MethodGet, "/mcp", http.NoBody)
	get.Header.Set("Mcp-Session-Id", listens)
	came := make(chan struct{}, events)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		f.Handler().ServeHTTP(&counter{httptest.NewRecorder(), came}, get)
	}()
	for range events {
		f.hub.Records.AddExternalRecord(debug.CallRecord{CallData: debug.CallData{MethodName: name}})
		select {
		case <-came: // so the other clients have been or will be notified
		case <-time.After(30 * time.Second):
			t.Fatal("no event within 30 s")
		}
	}
	cancel()
	<-followed
	missed := func(id string) int {
		var in struct {
			Result struct {
				Meta struct {
					Missed int `json:"claudeless/missedNotifications"`
				} `json:"_meta"`
			}
		}
		if err := json.Unmarshal(postMessage(t, f, id, list).Body.Bytes(), &in); err != nil {
			t.Fatal(err)
		}
		return in.Result.Meta.Missed
	}
	// 400 sessions with 2,000 events of some 250 bytes would be 200 MB.
	for _, id := range ids {
		total := missed(id)
		for n := missed(id); n > 1 && total <= events; n = missed(id) { // the last notifications may still be on their way
			total += n
		}
		if total < events/2 || total > events {
			t.Fatalf("a session missed %d of %d events", total, events)
		}
	}
	if n := missed(listens); n != 0 {
		t.Errorf("a session that listened missed %d", n)
	}
}

// counter reports each event that it receives.
type counter struct {
	*httptest.ResponseRecorder
	came chan<- struct{}
}

func (c *counter) Write(p []byte) (int, error) {
	for range bytes.Count(p, []byte("data:")) {
		c.came <- struct{}{}
	}
	return len(p), nil
}

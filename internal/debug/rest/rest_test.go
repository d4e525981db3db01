package rest

import (
	"bufio"
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/internal/base/localhttp"
	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/compat"
	"github.com/claudeless/claudeless/tests/mcptest"
)

// TestMain makes the test binary an MCP server if MCPTEST_MODE is set.
func TestMain(m *testing.M) {
	if mode := os.Getenv("MCPTEST_MODE"); mode != "" {
		os.Exit(mcptest.Serve(mcptest.Options{Mode: mode, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	goleak.VerifyTestMain(m)
}

func newHub(tb testing.TB) *debug.Hub {
	tb.Helper()
	var n atomic.Int64
	h, err := debug.New(debug.Options{
		Now: time.Now, NewID: func() string { return fmt.Sprintf("id-%d", n.Add(1)) },
		Lease: time.Hour, // lease of calls without polls, on a slow machine
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(h.Close)
	return h
}

// newServer serves a hub as the binary does. Pages of the given origins may send requests.
func newServer(tb testing.TB, o Options, origins ...string) *httptest.Server {
	tb.Helper()
	if o.Hub == nil {
		o.Hub = newHub(tb)
	}
	s := httptest.NewServer(localhttp.Guard(localhttp.Access{OwnOriginOnly: true, Origins: origins}, Handler(o)))
	tb.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func request(tb testing.TB, method, url, body string, header ...string) (int, []byte, http.Header) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return res.StatusCode, data, res.Header
}

// TestConversations plays the conversations of testdata. An exchange is a request line and an answer line: METHOD PATH
// [BODY], STATUS [BODY]. An answer must contain all members of its line. CID, CALLID, EVAL and SESSION match any text;
// LASTCALL, LASTEVAL and LASTSESSION are replaced by the last such value in an answer. A request after & runs while the
// next ones are sent. A request after ~ is repeated until it gets the expected answer.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := &player{url: newServer(t, Options{}).URL, last: map[string]string{}}
			for exchange := range strings.SplitSeq(strings.TrimSpace(string(archive.Files[0].Data)), "\n\n") {
				p.play(t, exchange)
			}
			p.background.Wait()
		})
	}
}

type player struct {
	url        string
	last       map[string]string // last value by placeholder
	background sync.WaitGroup
}

// idWords are members of answers that later requests use. Each has two placeholders: one for any value, and one for the
// last value.
var idWords = map[string]string{"call_id": "CALLID LASTCALL", "eval_id": "EVAL LASTEVAL", "session_id": "SESSION LASTSESSION"} // constant: only read

func (p *player) play(t *testing.T, exchange string) {
	t.Helper()
	asked, want, ok := strings.Cut(exchange, "\n")
	waits, again := strings.HasPrefix(asked, "&"), strings.HasPrefix(asked, "~")
	words := strings.SplitN(strings.TrimLeft(asked, "&~"), " ", 3)
	if !ok || len(words) < 2 {
		t.Fatalf("not an exchange: %q", exchange)
	}
	for i := range words {
		for word, id := range p.last {
			words[i] = strings.ReplaceAll(words[i], word, id)
		}
	}
	words = append(words, "")
	send := func() (any, string) {
		status, got, _ := request(t, words[0], p.url+words[1], words[2])
		return compare(t, status, got, want)
	}
	if waits {
		p.background.Go(func() {
			if _, wrong := send(); wrong != "" {
				t.Errorf("%s\n%s", asked, wrong)
			}
		})
		return
	}
	got, wrong := send()
	for deadline := time.Now().Add(10 * time.Second); again && wrong != "" && time.Now().Before(deadline); {
		got, wrong = send()
	}
	if wrong != "" {
		t.Errorf("%s\n%s", asked, wrong)
	}
	answer, _ := got.(map[string]any)
	if !strings.HasPrefix(want, "200 ") {
		return // a refusal gives no ids
	}
	for member, names := range idWords {
		if id, ok := answer[member].(string); ok {
			p.last[strings.Fields(names)[1]] = id
		}
	}
}

// compare describes how an answer differs from the expected one, and returns its value.
func compare(t *testing.T, status int, got []byte, want string) (answer any, wrong string) {
	t.Helper()
	wantStatus, wantBody, _ := strings.Cut(want, " ")
	if fmt.Sprint(status) != wantStatus {
		return nil, fmt.Sprintf("status %d, want %s: %s", status, wantStatus, got)
	}
	if err := json.Unmarshal(got, &answer); err != nil {
		return nil, fmt.Sprintf("no JSON: %q", got)
	}
	var wantValue any
	if err := json.Unmarshal([]byte(wantBody), &wantValue); err != nil {
		t.Errorf("expected answer is no JSON: %q", wantBody)
	}
	wildcards(wantValue, answer)
	if diff, ok := match.Subset(wantValue, answer); !ok {
		wrong = fmt.Sprintf("%s\nanswer: %s", diff, got)
	}
	return answer, wrong
}

// wildcards replaces the placeholders for any text by the actual values.
func wildcards(want, got any) {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for key, v := range w {
			if word, _ := v.(string); word == "CID" || strings.HasPrefix(idWords[key], word+" ") {
				if text, ok := g[key].(string); ok && text != "" {
					w[key] = text
				}
			}
			wildcards(v, g[key])
		}
	case []any:
		g, _ := got.([]any)
		for i := range min(len(w), len(g)) {
			wildcards(w[i], g[i])
		}
	}
}

// An expression waits until the older client polls for it (S62 S63 S64 S65 S68 S69 of Python and JavaScript callers;
// B6, B13).
func TestRelay(t *testing.T) {
	hub := newHub(t)
	url := newServer(t, Options{Hub: hub}).URL
	request(t, "POST", url+"/api/breakpoints", `{"function_name":"f"}`)
	request(t, "POST", url+"/api/call/start", `{"method_name":"f","process_pid":9,"process_start_time":1}`)
	ask := func(expr string, timeout float64) (answer chan string, session string) {
		answer = make(chan string, 1)
		_, data, _ := request(t, "POST", url+"/api/repl/start", `{"pause_id":"id-1"}`)
		var s struct {
			ID string `json:"session_id"`
		}
		if err := json.Unmarshal(data, &s); err != nil || !strings.HasPrefix(s.ID, "9-") {
			t.Fatalf("%s: %v", data, err)
		}
		go func() {
			status, data, _ := request(t, "POST", url+"/api/repl/"+s.ID+"/eval", fmt.Sprintf(`{"expr":%q,"timeout_s":%g}`, expr, timeout))
			answer <- fmt.Sprintf("%d %s", status, data)
		}()
		return answer, s.ID
	}
	next := func() (q compat.EvalRequest) {
		for q.EvalID == "" {
			_, data, _ := request(t, "GET", url+"/api/poll-repl/id-1", "")
			if err := json.Unmarshal(data, &q); err != nil {
				t.Fatal(err)
			}
		}
		return q
	}
	answer, session := ask("2 + 2", 30)
	q := next()
	if q.Expr != "2 + 2" || q.SessionID != session || q.PauseID != "id-1" {
		t.Errorf("question %+v", q)
	}
	reply := func(q compat.EvalRequest, more string) int {
		status, _, _ := request(t, "POST", url+"/api/call/repl-result", fmt.Sprintf(`{"eval_id":%q,"session_id":%q,"pause_id":%q,%s}`, q.EvalID, q.SessionID, q.PauseID, more))
		return status
	}
	if status := reply(q, `"result":"4","stdout":"hello\n","error":null`); status != 200 {
		t.Errorf("status %d", status)
	}
	if got := <-answer; !strings.Contains(got, `"output":"4"`) || !strings.Contains(got, `"stdout":"hello\n"`) || !strings.Contains(got, `"is_error":false`) {
		t.Errorf("answer %s", got)
	}
	if status := reply(q, `"result":"5"`); status != 404 { // answered already
		t.Errorf("second answer: %d", status)
	}
	if status, _, _ := request(t, "POST", url+"/api/call/repl-result", `{}`); status != 400 {
		t.Errorf("empty answer: %d", status)
	}

	answer, _ = ask("bad", 30)
	reply(next(), `"result":"","error":"NameError: bad"`)
	if got := <-answer; !strings.Contains(got, `"is_error":true`) || !strings.Contains(got, "NameError: bad") {
		t.Errorf("answer %s", got)
	}

	answer, _ = ask("slow", 0.05) // S69: after that, the expression is no longer sent
	if got := <-answer; !strings.HasPrefix(got, "504 ") || !strings.Contains(got, "eval_timeout") {
		t.Errorf("answer %s", got)
	}
	if _, data, _ := request(t, "GET", url+"/api/poll-repl/id-1", ""); !strings.Contains(string(data), `"eval_id":null`) {
		t.Errorf("a question that timed out is still asked: %s", data)
	}

	answer, _ = ask("waits", 30)
	next()
	request(t, "POST", url+"/api/paused/id-1/continue", `{}`) // B6: resuming the call ends the evaluation
	if got := <-answer; !strings.HasPrefix(got, "409 ") || !strings.Contains(got, "session_closed") {
		t.Errorf("answer %s", got)
	}
}

// TestGuards: the debugger's own pages may do everything, pages of allowed origins only what the JavaScript client
// does, and others nothing.
func TestGuards(t *testing.T) {
	const page, neighbour = "http://localhost:3000", "http://localhost:4000"
	url := newServer(t, Options{}, page).URL
	form := []string{"Origin", page, "Content-Type", "text/plain"}
	tests := []struct {
		name, method, path string
		header             []string
		body               string
		status             int
		allow              string // Access-Control-Allow-Origin
	}{
		{"plain", "GET", "/api/paused", nil, "", 200, ""},
		{"foreign host", "GET", "/api/paused", []string{"Host", "evil.example"}, "", 403, ""},
		{"foreign origin", "POST", "/api/call/start", []string{"Origin", "http://evil.example"}, "{}", 403, ""},
		{"foreign origin asks first", "OPTIONS", "/api/call/start", []string{"Origin", "http://evil.example"}, "", 403, ""},
		{"another server's page reads", "GET", "/api/paused", []string{"Origin", neighbour}, "", 403, ""},
		{"it sets a breakpoint", "POST", "/api/breakpoints", []string{"Origin", neighbour, "Content-Type", "text/plain"}, `{"function_name":"x"}`, 403, ""},
		{"it asks first", "OPTIONS", "/api/breakpoints", []string{"Origin", neighbour}, "", 403, ""},
		{"it shows a picture", "GET", "/api/poll-repl/x", []string{"Sec-Fetch-Site", "same-site"}, "", 403, ""},
		{"page that was let in asks first", "OPTIONS", "/api/call/start", []string{"Origin", page}, "", 204, page},
		{"it calls", "GET", "/api/poll/x", []string{"Origin", page}, "", 200, page},
		{"control routes are not for it", "OPTIONS", "/api/behavior", []string{"Origin", page}, "", 204, ""},
		{"nor by a form", "POST", "/api/behavior", form, `{"behavior":"go"}`, 403, ""},
		{"nor to read", "GET", "/api/calls", []string{"Origin", page}, "", 403, ""},
		{"our own page", "POST", "/api/behavior", []string{"Origin", url, "Content-Type", "application/json"}, `{"behavior":"go"}`, 200, ""},
		{"too large", "POST", "/api/functions", nil, `{"x":"` + strings.Repeat("x", 200) + `"}`, 200, ""},
	}
	small := newServer(t, Options{MaxBody: 100}).URL
	for _, tt := range tests {
		base := url
		if tt.name == "too large" {
			base, tt.status = small, 413
		}
		status, body, header := request(t, tt.method, base+tt.path, tt.body, tt.header...)
		if status != tt.status || header.Get("Access-Control-Allow-Origin") != tt.allow {
			t.Errorf("%s: %d, allows %q: %s", tt.name, status, header.Get("Access-Control-Allow-Origin"), body)
		}
	}
}

func TestEventStream(t *testing.T) {
	hub := newHub(t)
	url := newServer(t, Options{Hub: hub}).URL
	req, err := http.NewRequestWithContext(t.Context(), "GET", url+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("content type %q", kind)
	}
	in := bufio.NewScanner(res.Body)
	in.Scan() // ": connected"
	if err := hub.BreakpointSet.SetBreakpoint(debug.BreakpointSettings{Name: "Bash"}); err != nil {
		t.Fatal(err)
	}
	if _, err := hub.ReportCallStart(t.Context(), debug.Call{Tool: "Bash", Client: debug.ClientClaudelessRun}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) < 4 && in.Scan() {
		if in.Text() != "" {
			got = append(got, in.Text())
		}
	}
	want := []string{"event: changed", `data: {"topic":"breakpoints"}`, "event: execution_paused"}
	if diff := cmp.Diff(want, got[:3]); diff != "" || !strings.Contains(got[3], `"pause_id":"id-1"`) {
		t.Errorf("%s%s", diff, got[3])
	}
}

func TestOpenAPI(t *testing.T) {
	url := newServer(t, Options{}).URL
	for _, path := range []string{"/openapi.json", "/api/openapi.json"} {
		status, data, _ := request(t, "GET", url+path, "")
		var doc struct {
			OpenAPI string                               `json:"openapi"`
			Paths   map[string]map[string]map[string]any `json:"paths"`
		}
		if err := json.Unmarshal(data, &doc); err != nil || status != 200 {
			t.Fatalf("%s: %d, %v", path, status, err)
		}
		ids := map[any]bool{}
		for p, operations := range doc.Paths {
			for method, o := range operations {
				if o["summary"] == "" || ids[o["operationId"]] {
					t.Errorf("%s %s: %v", method, p, o)
				}
				ids[o["operationId"]] = true
			}
		}
		if len(ids) < 35 || doc.OpenAPI != "3.1.0" {
			t.Errorf("%d operations, version %s", len(ids), doc.OpenAPI)
		}
	}
}

// Values that are too large for a record are found by their CID; the pause has the complete value.
func TestHugeValue(t *testing.T) {
	url := newServer(t, Options{}).URL
	request(t, "POST", url+"/api/breakpoints", `{"function_name":"Bash","after_behavior":"go"}`)
	huge := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 10<<20))
	_, data, _ := request(t, "POST", url+"/api/call/start", `{"client":"claudeless","method_name":"Bash","input":`+huge+`}`)
	var begun struct {
		CallID string `json:"call_id"`
	}
	if err := json.Unmarshal(data, &begun); err != nil {
		t.Fatal(err)
	}
	if _, data, _ := request(t, "GET", url+"/api/paused", ""); len(data) < 20<<20 {
		t.Errorf("pause shows %d bytes", len(data))
	}
	request(t, "POST", url+"/api/paused/id-1/continue", `{}`)
	request(t, "POST", url+"/api/call/complete", fmt.Sprintf(`{"call_id":%q,"result":%s}`, begun.CallID, huge))
	_, data, _ = request(t, "GET", url+"/api/calls", "")
	var calls debug.NewestCallRecords
	if err := json.Unmarshal(data, &calls); err != nil || len(data) > 10<<10 || !bytes.Contains(data, []byte(`"__truncated__":true`)) {
		t.Fatalf("%d bytes of records: %.300s, %v", len(data), data, err)
	}
	if _, data, _ := request(t, "GET", url+"/api/cid/"+calls.Calls[0].ResultCID, ""); string(data) != huge {
		t.Errorf("the value behind the CID has %d bytes", len(data))
	}
}

// A huge value of an older client is stored once, unchanged; the record of its call refers to it.
func TestHugeForeignValue(t *testing.T) {
	url := newServer(t, Options{}).URL
	raw := binary.LittleEndian.AppendUint32([]byte("\x80\x04X"), 10<<20)
	raw = append(append(raw, bytes.Repeat([]byte("x"), 10<<20)...), '.')
	cid, data := fmt.Sprintf("%x", sha512.Sum512(raw)), base64.StdEncoding.EncodeToString(raw)
	status, answer, _ := request(t, "POST", url+"/api/call/start", fmt.Sprintf(`{"method_name":"f","args":[{"cid":%q,"data":%q}],"process_pid":1,"process_start_time":1}`, cid, data))
	var begun struct {
		CallID string `json:"call_id"`
	}
	if err := json.Unmarshal(answer, &begun); err != nil || status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	request(t, "POST", url+"/api/call/complete", fmt.Sprintf(`{"call_id":%q,"status":"success","result_cid":%q,"result_data":%q}`, begun.CallID, cid, data))
	if _, calls, _ := request(t, "GET", url+"/api/calls", ""); len(calls) > 10<<10 || strings.Count(string(calls), cid) != 3 {
		t.Errorf("%d bytes of records: %.2000s", len(calls), calls)
	}
	if _, kept, _ := request(t, "GET", url+"/api/cid/"+cid, ""); !bytes.Equal(kept, raw) {
		t.Errorf("%d bytes are kept", len(kept))
	}
}

// S90: concurrent changes from several front ends are not lost.
func TestManySides(t *testing.T) {
	hub := newHub(t)
	url := newServer(t, Options{Hub: hub}).URL
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { request(t, "POST", url+"/api/breakpoints", fmt.Sprintf(`{"function_name":"http-%d"}`, i)) })
		wg.Go(func() {
			if err := hub.BreakpointSet.SetBreakpoint(debug.BreakpointSettings{Name: fmt.Sprintf("hub-%d", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_, data, _ := request(t, "GET", url+"/api/breakpoints", "") // S91 S92: each front end sees all changes
	if n := strings.Count(string(data), `":"yield"`); len(hub.BreakpointSet.Breakpoints()) != 40 || n != 80 {
		t.Errorf("%d in the hub, %d over HTTP", len(hub.BreakpointSet.Breakpoints()), n/2)
	}
}

func FuzzBodies(f *testing.F) {
	for _, seed := range []string{`{}`, `{"function_name":"a*["}`, `{"method_name":"x","client":"hook","input":{"a":1}}`, `{"method_name":"x","process_pid":1,"process_start_time":2,"args":[{"cid":"x","data":"gARLAy4="}]}`} {
		f.Add(seed)
	}
	hub, err := debug.New(debug.Options{Now: time.Now, NewID: func() string { return "id" }})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(hub.Close)
	h := Handler(Options{Hub: hub})
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"/api/breakpoints", "/api/functions", "/api/call/start", "/api/call/complete", "/api/call/event", "/api/paused/id/continue", "/api/call/repl-result", "/api/report-com-error", "/api/behavior", "/api/breakpoints/a/after_behavior", "/api/breakpoints/a/replacement", "/api/repl/start", "/api/repl/id/eval"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body)))
			if w.Code >= 500 && w.Code != 503 || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s %q: %d %s", path, body, w.Code, w.Body)
			}
		}
	})
}

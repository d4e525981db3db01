package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/api"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// sleepClock records the requested waiting times.
type sleepClock struct {
	fixedClock
	mu     *sync.Mutex
	now    *time.Duration
	sleeps *[]time.Duration
}

func newSleepClock() sleepClock {
	return sleepClock{fixedClock{}, new(sync.Mutex), new(time.Duration), new([]time.Duration)}
}

func (c sleepClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fixedClock.Now().Add(*c.now)
}

func (c sleepClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.now += d
	*c.sleeps = append(*c.sleeps, d)
	return ctx.Err()
}

// postMessages sends a request for a message; header lines are "Name: value".
func postMessages(t *testing.T, s http.Handler, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	return send(t, s, request{method: http.MethodPost, path: "/v1/messages", body: body, remoteAddress: "127.0.0.1:1", header: header})
}

// request is a request of a test; header lines are "Name: value".
type request struct {
	method, path, body, remoteAddress string
	header                            []string
}

func send(t *testing.T, s http.Handler, q request) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), q.method, q.path, strings.NewReader(q.body))
	r.RemoteAddr = q.remoteAddress
	for _, line := range q.header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// requestBody is the body of a request with messages.
func requestBody(stream bool, messages ...string) string {
	return fmt.Sprintf(`{"model":"claude-sonnet-5-5","max_tokens":9,"stream":%t,"messages":[%s]}`, stream, strings.Join(messages, ","))
}

const hi = `{"role":"user","content":"hi"}`

// A page of the model list has 20 models, or the number of the request, after or before a given model.
func TestModelPages(t *testing.T) {
	var all []string
	for _, f := range claudecode.KnownModels() {
		all = append(all, f.Name)
	}
	n := len(all)
	if n <= 21 {
		t.Fatalf("%d models: this test needs more than 21", n)
	}
	s := newServer(t, `default_response = "x"`)
	for _, tt := range []struct {
		query string
		want  []string
		more  bool
	}{
		{"", all[:20], true},
		{"?limit=2", all[:2], true},
		{"?limit=1", all[:1], true},
		{"?limit=1000", all, false},
		{"?limit=" + strconv.Itoa(n), all, false},
		{"?limit=" + strconv.Itoa(n-1), all[:n-1], true},
		{"?limit=2&after_id=" + all[0], all[1:3], true},
		{"?limit=2&after_id=" + all[1], all[2:4], true},
		{"?after_id=" + all[n-2], all[n-1:], false},
		{"?after_id=" + all[n-1], nil, false},
		{"?after_id=none", all[:20], true},
		{"?limit=2&before_id=" + all[4], all[2:4], true},
		{"?limit=4&before_id=" + all[4], all[:4], false},
		{"?limit=2&before_id=" + all[0], nil, false},
		{"?before_id=" + all[n-1], all[n-21 : n-1], true},
		{"?before_id=none", all[:20], false},
		{"?limit=9&after_id=" + all[0] + "&before_id=" + all[3], all[1:3], true},
	} {
		var page struct {
			Data    []struct{ ID string }
			HasMore bool    `json:"has_more"`
			FirstID *string `json:"first_id"`
			LastID  *string `json:"last_id"`
		}
		w := send(t, s, request{method: http.MethodGet, path: "/v1/models" + tt.query})
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", tt.query, w.Code, w.Body)
		}
		var got []string
		for _, m := range page.Data {
			got = append(got, m.ID)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || page.HasMore != tt.more {
			t.Errorf("%q: more %v, models (-want +got):\n%s", tt.query, page.HasMore, diff)
		}
		if len(got) == 0 {
			if page.FirstID != nil || page.LastID != nil {
				t.Errorf("%q: an empty page has a first and a last model", tt.query)
			}
		} else if page.FirstID == nil || *page.FirstID != got[0] || page.LastID == nil || *page.LastID != got[len(got)-1] {
			t.Errorf("%q: the first and the last are not those of the page", tt.query)
		}
	}
	for _, limit := range []string{"0", "-1", "1001", "x"} {
		if w := send(t, s, request{method: http.MethodGet, path: "/v1/models?limit=" + limit}); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "between 1 and 1000") {
			t.Errorf("limit %s: %d %s", limit, w.Code, w.Body)
		}
	}
}

// Each endpoint accepts only its own HTTP methods.
func TestRoutes(t *testing.T) {
	s := newServer(t, `default_response = "x"`)
	for line, want := range map[string]int{
		"GET /v1/models": 200, "POST /v1/models": 405, "HEAD /v1/models": 405, "GET /v1/models/claude-x": 200, "POST /v1/models/claude-x": 404, "GET /v1/messages": 405,
		"PUT /v1/messages/count_tokens": 405, "GET /": 200, "POST /": 200, "HEAD /x": 200, "GET /api/hello": 200, "GET /x": 404, "POST /api/event_logging/batch": 200, "GET /v1/v1/models": 404,
		"GET /_claudeless/health": 200, "HEAD /_claudeless/health": 200, "POST /_claudeless/health": 404, "GET /_claudeless/state": 200, "GET /_claudeless/journal": 200,
		"POST /_claudeless/state": 404, "GET /_claudeless/reset": 404, "POST /_claudeless/reset": 200, "GET /_claudeless/gates/x/release": 404, "POST /_claudeless/other": 404,
	} {
		method, path, _ := strings.Cut(line, " ")
		if w := send(t, s, request{method: method, path: path, remoteAddress: "127.0.0.1:1"}); w.Code != want {
			t.Errorf("%s: %d, want %d: %s", line, w.Code, want, w.Body)
		}
	}
}

// The control routes accept requests from this machine. With a token, they accept only requests that contain it.
func TestControlIsGuarded(t *testing.T) {
	for _, tt := range []struct {
		name, token, from string
		path              string
		header            []string
		want              int
	}{
		{"this machine", "", "127.0.0.1:1", "", nil, 200},
		{"by IPv6", "", "[::1]:1", "", nil, 200},
		{"in process", "", "", "", nil, 200},
		{"another machine", "", "10.0.0.1:1", "", nil, 401},
		{"no address", "", "somewhere", "", nil, 401},
		{"no machine", "", "host:1", "", nil, 401},
		{"no token", "secret", "127.0.0.1:1", "", nil, 401},
		{"another token", "secret", "127.0.0.1:1", "", []string{"X-Claudeless-Token: other"}, 401},
		{"the token", "secret", "10.0.0.1:1", "", []string{"X-Claudeless-Token: secret"}, 200},
		{"as a key", "secret", "10.0.0.1:1", "", []string{"X-Api-Key: secret"}, 200},
		{"as a bearer", "secret", "10.0.0.1:1", "", []string{"Authorization: Bearer secret"}, 200},
		{"in the query", "secret", "10.0.0.1:1", "?token=secret", nil, 200},
	} {
		s := newServer(t, `default_response = "x"`, func(o *api.Options) { o.Token = tt.token })
		if w := send(t, s, request{method: http.MethodGet, path: "/_claudeless/state" + tt.path, remoteAddress: tt.from, header: tt.header}); w.Code != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, w.Code, tt.want)
		}
		if w := send(t, s, request{method: http.MethodGet, path: "/_claudeless/health", remoteAddress: tt.from}); w.Code != http.StatusOK {
			t.Errorf("%s: health is %d", tt.name, w.Code)
		}
	}
}

// The state contains the number of answered requests and the range of the kept journal lines.
func TestState(t *testing.T) {
	s := newServer(t, "default_response = \"x\"\n[[expect]]\nprompt = { type = \"exact\", text = \"bye\" }\n")
	type state struct {
		Namespace string
		Requests  int
		Unmet     []string
		Dropped   int `json:"dropped_lines"`
	}
	at := func(path string) (v state) {
		t.Helper()
		if err := json.Unmarshal(send(t, s, request{method: http.MethodGet, path: path}).Body.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := at("/_claudeless/state"); v.Requests != 0 || v.Dropped != 0 || len(v.Unmet) != 1 {
		t.Errorf("at the beginning: %+v", v)
	}
	for range 3 {
		postMessages(t, s, requestBody(false, hi))
	}
	postMessages(t, s, requestBody(false, `{"role":"user","content":"bye"}`))
	if v := at("/_claudeless/state"); v.Requests != 4 || len(v.Unmet) != 0 {
		t.Errorf("after four requests: %+v", v)
	}
	if v := at("/_claudeless/state?namespace=b"); v.Namespace != "b" || v.Requests != 0 {
		t.Errorf("another namespace: %+v", v)
	}
	const most, cut = 2000, 500
	for range most - 4 {
		send(t, s, request{method: http.MethodGet, path: "/v1/models/x"})
	}
	lines := func() int {
		return bytes.Count(send(t, s, request{method: http.MethodGet, path: "/_claudeless/journal"}).Body.Bytes(), []byte("\n"))
	}
	if v, n := at("/_claudeless/state"), lines(); v.Dropped != 0 || n != most {
		t.Errorf("%d lines, %d dropped", n, v.Dropped)
	}
	send(t, s, request{method: http.MethodGet, path: "/v1/models/x"})
	if v, n := at("/_claudeless/state"), lines(); v.Dropped != cut || n != most-cut+1 {
		t.Errorf("one more: %d lines, %d dropped", n, v.Dropped)
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// The duration of an answer is its delay, the delay of all prompts, and the pauses between its events.
func TestDelays(t *testing.T) {
	const scenario = `
[timeouts]
response_delay_ms = 100
[[responses]]
pattern = { type = "exact", text = "hi" }
[[responses.response.steps]]
tool_calls = [{ tool = "Read", input = {} }]
delay_ms = 7
[[responses.response.steps]]
text = "done"
[[responses]]
pattern = { type = "exact", text = "slowly" }
[[responses.response.steps]]
text = "a b c"
stream = { ttft_ms = 1000, tokens_per_second = 10 }
[[responses]]
pattern = { type = "exact", text = "never" }
failure = { type = "connection_timeout", after_ms = 5000 }
`
	const results = hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}]}`
	ms := func(n ...int) (d []time.Duration) {
		for _, n := range n {
			d = append(d, time.Duration(n)*time.Millisecond)
		}
		return d
	}
	for _, tt := range []struct {
		name, body string
		want       []time.Duration
	}{
		{"a prompt", requestBody(false, hi), ms(107)},
		{"results", requestBody(false, results), nil},
	} {
		clock := newSleepClock()
		var capture bytes.Buffer
		s := newServer(t, scenario, func(o *api.Options) { o.Clock, o.Capture = clock, &capture })
		if w := postMessages(t, s, tt.body); w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", tt.name, w.Code, w.Body)
		}
		if diff := cmp.Diff(tt.want, *clock.sleeps); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		took := 0
		for _, d := range tt.want {
			took += int(d / time.Millisecond)
		}
		if want := fmt.Sprintf(`"ms":%d`, took); !strings.Contains(capture.String(), want) {
			t.Errorf("%s: no %s in %s", tt.name, want, capture.String())
		}
	}

	// A streamed and a complete answer take the same time.
	var took [2]time.Duration
	for i, stream := range []bool{false, true} {
		clock := newSleepClock()
		s := newServer(t, scenario, func(o *api.Options) { o.Clock = clock })
		if w := postMessages(t, s, requestBody(stream, `{"role":"user","content":"slowly"}`)); !strings.Contains(w.Body.String(), "a") {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		for _, d := range *clock.sleeps {
			took[i] += d
		}
		if slices.Contains(*clock.sleeps, 0) {
			t.Errorf("streamed %v: it waits for nothing: %v", stream, *clock.sleeps)
		}
	}
	if took[0] != took[1] || took[0] < 1100*time.Millisecond {
		t.Errorf("whole %v, streamed %v", took[0], took[1])
	}

	clock := newSleepClock()
	s := newServer(t, scenario, func(o *api.Options) { o.Clock = clock })
	func() {
		defer func() { _ = recover() }() // the handler aborts the connection
		postMessages(t, s, requestBody(false, `{"role":"user","content":"never"}`))
	}()
	if diff := cmp.Diff(ms(100, 5000), *clock.sleeps); diff != "" {
		t.Errorf("a timeout (-want +got):\n%s", diff)
	}
}

// The headers of a failure specify whether to retry. After a 401, Claude Code itself decides.
func TestRetryHeaders(t *testing.T) {
	const claudeCode = "User-Agent: claude-cli/2.1.330 (external, cli)"
	const minute = "2026-01-15T10:31:00Z" // rate limits are counted per minute
	for _, tt := range []struct {
		failure string
		header  []string
		status  int
		retry   string
		reset   string
	}{
		{`type = "auth_error", message = "no"`, nil, 401, "false", minute},
		{`type = "auth_error", message = "no"`, []string{claudeCode}, 401, "", minute},
		{`type = "out_of_credits"`, nil, 400, "false", minute},
		{`type = "out_of_credits"`, []string{claudeCode}, 400, "false", minute},
		{`type = "api_error", status = 529`, nil, 529, "", minute},
		{`type = "rate_limit", retry_after = 90`, nil, 429, "", "2026-01-15T10:31:30Z"},
	} {
		s := newServer(t, "[[responses]]\npattern = { type = \"any\" }\nfailure = { "+tt.failure+" }\n")
		w := postMessages(t, s, requestBody(false, hi), tt.header...)
		if retry, reset := w.Header().Get("X-Should-Retry"), w.Header().Get("Anthropic-Ratelimit-Requests-Reset"); w.Code != tt.status || retry != tt.retry || reset != tt.reset {
			t.Errorf("%s for %q: %d, retry %q, reset %q: %s", tt.failure, tt.header, w.Code, retry, reset, w.Body)
		}
	}
}

// An error event in the middle of a stream has its own status and text.
func TestStreamErrors(t *testing.T) {
	for failure, want := range map[string]string{
		`type = "stream_error", message = "broken here"`:                  "broken here",
		`type = "partial_response", partial_text = "half", cut = "error"`: "Overloaded",
	} {
		s := newServer(t, "[[responses]]\npattern = { type = \"any\" }\nfailure = { "+failure+" }\n")
		w := postMessages(t, s, requestBody(true, hi))
		_, event, _ := strings.Cut(w.Body.String(), "event: error")
		if !strings.Contains(event, want) {
			t.Errorf("%s: %s", failure, w.Body)
		}
	}
}

// The limit of a request body is 32 MiB.
func TestLargestBody(t *testing.T) {
	const most = 32 << 20
	body := requestBody(false, hi)
	body += strings.Repeat(" ", most-len(body))
	s := newServer(t, `default_response = "x"`)
	if w := postMessages(t, s, body); w.Code != http.StatusOK {
		t.Errorf("32 MiB: %d %s", w.Code, w.Body)
	}
	if w := postMessages(t, s, body+" "); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("one byte more: %d %s", w.Code, w.Body)
	}
}

// The state lists each gate that an answer reached, once, ordered by the first answer.
func TestStateOfGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, gated+"[[responses]]\npattern = { type = \"exact\", text = \"third\" }\n[[responses.response.steps]]\ntext = \"three\"\ngate = \"other\"\n")
		var answers []<-chan string
		for _, text := range []string{"first", "third", "first"} {
			answers = append(answers, begin(t.Context(), t, s, "", text))
			synctest.Wait()
		}
		requestControl(t, s, "POST", "/_claudeless/gates/other/release")
		synctest.Wait()
		const want = `"gates":[{"name":"asked","reached":true,"waiting":true},{"name":"other","reached":true,"waiting":false}]`
		if _, state := requestControl(t, s, "GET", "/_claudeless/state"); !strings.Contains(state, want) {
			t.Errorf("state: %s", state)
		}
		requestControl(t, s, "POST", "/_claudeless/gates/asked/release")
		for _, answer := range answers {
			<-answer
		}
	})
}

// A prompt that was typed while Claude Code was working is in the journal, and the previous prompt is not recorded
// again.
func TestAddedPromptIsRecorded(t *testing.T) {
	var capture bytes.Buffer
	s := newServer(t, "default_response = \"x\"\n[[expect]]\nprompt = { type = \"exact\", text = \"quick\" }\ntimes = 1\n", func(o *api.Options) { o.Capture = &capture })
	const added = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"x"},{"type":"text","text":"The user sent a new message while you were working:\nquick\n\nThis is how Claude Code surfaces messages"}]}`
	const call = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}]}`
	for _, messages := range [][]string{{hi}, {hi, call, added}} {
		if w := postMessages(t, s, requestBody(false, messages...), "User-Agent: claude-cli/2.1.330 (external, cli)"); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if n := strings.Count(capture.String(), `"added":["quick"]`); n != 1 || strings.Count(capture.String(), `"added":`) != 1 {
		t.Errorf("%d prompts were added in\n%s", n, capture.String())
	}
	if unmet := unmetExpectations(t, s); len(unmet) != 0 {
		t.Errorf("an expected prompt was not counted: %q", unmet)
	}
}

// The running server reports the same about expectations as a verdict on its journal. A call that an MCP server
// received is counted, and the results of a prompt do not match its rule again.
func TestStateAgreesWithJournal(t *testing.T) {
	var capture bytes.Buffer
	const file = "[[responses]]\npattern = { type = \"any\" }\nresponse = \"x\"\n" +
		"[[expect]]\nmcp = { server = \"weather\", tool = \"get\" }\n[[expect]]\nrule = 1\ntimes = 1\n[[expect]]\nrequest = { model = \"*\" }\ntimes = 2\n[[expect]]\nprompt = { type = \"exact\", text = \"never sent\" }\n"
	s := newServer(t, file, func(o *api.Options) { o.Capture = &capture })
	const call = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"mcp__weather__get","input":{}}]}`
	const result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"sunny"}]}`
	for _, messages := range [][]string{{hi}, {hi, call, result}} {
		if w := postMessages(t, s, requestBody(false, messages...)); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	x, err := scenarios.Parse("scenario.toml", []byte(file), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var entries []journal.Entry
	for e, err := range journal.Read(&capture) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	var judged []string
	for _, j := range journal.Summarize(entries).CheckExpectations(x) {
		if !j.IsMet {
			judged = append(judged, j.Text)
		}
	}
	unmet := unmetExpectations(t, s)
	if len(judged) != 1 || len(unmet) != 1 || !strings.Contains(unmet[0], judged[0]) || !strings.Contains(unmet[0], "never sent") {
		t.Errorf("the server says %q, the journal %q", unmet, judged)
	}
}

// unmetExpectations returns the unmet expectations of the namespace without a name.
func unmetExpectations(t *testing.T, s *api.Server) []string {
	t.Helper()
	var state struct{ Unmet []string }
	if w := send(t, s, request{method: http.MethodGet, path: "/_claudeless/state"}); json.Unmarshal(w.Body.Bytes(), &state) != nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return state.Unmet
}

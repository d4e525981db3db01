package compat_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/compat"
)

const hostile = `<script>alert(1)</script>`

// filledHub returns a hub with one of everything: a call of an agent, a call of a program with a nested call, a failed
// call, a paused call with a session, and a report. It returns the ids of the pause, of the session and of the calls.
func filledHub(t *testing.T) (older *compat.Clients, ids map[string]string) {
	t.Helper()
	n, now := 0, time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	hub, err := debug.New(debug.Options{
		Now:   func() time.Time { now = now.Add(time.Second); return now },
		NewID: func() string { n++; return fmt.Sprintf("pause-%d", n) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	older = compat.New(hub)
	ids = map[string]string{}
	start := func(name string, c debug.Call) debug.CallStartResponse {
		t.Helper()
		b, err := hub.Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = b.CallID
		return b
	}
	complete := func(name string, o debug.Outcome) {
		t.Helper()
		if _, err := hub.RecordCallOutcomeAndPauseIfStopped(t.Context(), debug.CompletionReport{CallID: ids[name], Outcome: o}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"fs/*", "paused"} {
		if err := hub.BreakpointSet.SetBreakpoint(debug.BreakpointSettings{Name: name, After: new("go")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := hub.BreakpointSet.UpdateBreakpoint(debug.BreakpointSettings{Name: "fs/*", Before: new("go")}); err != nil {
		t.Fatal(err)
	}
	start("agent", debug.Call{Tool: "fs/read", Client: debug.ClientClaudelessRun, Session: "s 1", Input: json.RawMessage(`{"path":"` + hostile + `"}`), CallSite: json.RawMessage(`{"turn":3}`)})
	complete("agent", debug.Outcome{Result: json.RawMessage(`"the file"`)})

	const site = `{"stack_trace":[{"filename":"/home/a.py","lineno":3,"function":"main","code_context":"outer(<1>)"},{"filename":"/home/a.py","lineno":9,"function":"<module>"}]}`
	foreign := func(name, site, args string) debug.Call {
		d := compat.CallData{PageURL: "http://localhost/p"}
		if err := json.Unmarshal([]byte(args), &d.Args); err != nil {
			t.Fatal(err)
		}
		return older.AsOlderClientCall(debug.Call{Tool: name, PID: 9, Started: 1.25, CallSite: json.RawMessage(site), Signature: "(a)"}, d)
	}
	start("outer", foreign("outer", site, `[]`))
	start("inner", foreign("inner", `{}`, `[{"cid":"nosuch","client_ref":7}]`))
	complete("inner", debug.Outcome{Failed: true, Error: "broke " + hostile, ErrorType: "ValueError", ExtraFields: compat.OlderClientOutcome{Traceback: "Traceback\n  line"}})
	complete("outer", debug.Outcome{Result: json.RawMessage(`{"x":1}`)})

	p := start("paused", foreign("paused", site, `[]`))
	ids["pause"] = p.PauseID
	if ids["session"], err = hub.StartSession(p.PauseID); err != nil {
		t.Fatal(err)
	}
	start("running", foreign("running", `{}`, `[{"cid":"inside","client_ref":8}]`))
	second := start("own", debug.Call{Tool: "paused", Client: debug.ClientClaudelessRun, Session: "s 1"})
	a, err := hub.Evaluate(t.Context(), debug.EvaluateParams{PauseID: second.PauseID, Expr: `"` + hostile + `"`})
	if err != nil {
		t.Fatal(err)
	}
	ids["own session"] = a.SessionID
	return older, ids
}

// TestPages checks the content of each page, and pages that do not exist.
func TestPages(t *testing.T) {
	older, ids := filledHub(t)
	for path, want := range map[string][]string{
		"/call/" + ids["running"]:                    {"running", "inside"},
		"/call/" + ids["agent"]:                      {"fs/read", "success", "the file", "&#34;turn&#34;: 3", "session s 1", html.EscapeString(hostile)},
		"/call/" + ids["inner"]:                      {"ValueError: broke", "Traceback\n  line", "exception"},
		"/call/" + ids["outer"]:                      {"&lt;module&gt;", "/home/a.py:3", "outer(&lt;1&gt;)"},
		"/call/" + ids["paused"]:                     {"is paused before the call"},
		"/call/nosuch":                               {"404"},
		"/callstack/" + ids["pause"]:                 {"Call Stack", "paused", "/home/a.py:3", "&lt;module&gt;"},
		"/callstack/nosuch":                          {"404", "No call is paused"},
		"/breakpoint/fs%2F*/history":                 {"History of fs/*", "the file", "/breakpoint/fs%2F%2A/history/" + ids["agent"]},
		"/breakpoint/none/history":                   {"No recorded calls"},
		"/breakpoint/fs%2F*/history/" + ids["agent"]: {"fs/read", "success"},
		"/breakpoint/fs%2F*/history/nosuch":          {"404", "has no record nosuch"},
		"/docs":                                      {`data-openapi="/openapi.json"`},
	} {
		status, body := 200, visit(t, older, path)
		if want[0] == "404" {
			status, want = 404, want[1:]
		}
		if body.Code != status || body.Header().Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %d %v", path, body.Code, body.Header())
		}
		for _, w := range want {
			if !strings.Contains(body.Body.String(), w) {
				t.Errorf("%s: no %q in\n%s", path, w, body.Body)
			}
		}
	}
}

func visit(t *testing.T, older *compat.Clients, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	older.Pages(debug.PageHandler(nil)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if strings.Contains(w.Body.String(), hostile) {
		t.Errorf("%s runs what a caller sent", path)
	}
	if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("%s: policy %q", path, csp)
	}
	if inline := regexp.MustCompile(`(?i)<script>| on[a-z]+="| style="`).FindString(w.Body.String()); inline != "" {
		t.Errorf("%s holds %q", path, inline)
	}
	return w
}

// FuzzPages: no data from callers breaks a page.
func FuzzPages(f *testing.F) {
	for _, seed := range []string{`{}`, `[]`, `7`, `"x"`, `null`, `{"stack_trace":[{"filename":1,"lineno":{}}]}`, `{"stack_trace":[null,{"lineno":"3"}]}`, `{"summary":"s","timestamp":1e300}`, `{"Summary":[],"__truncated__":"x"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw := json.RawMessage(text)
		if !json.Valid(raw) {
			t.Skip("callers send JSON")
		}
		hub, err := debug.New(debug.Options{Now: time.Now, NewID: func() string { return "id" }})
		if err != nil {
			t.Fatal(err)
		}
		defer hub.Close()
		older := compat.New(hub)
		for id, v := range map[string]debug.CallValues{
			"c": debug.ClaudelessCallInput{JSON: raw, ContentID: text}, "o": &compat.CallData{PrettyArgs: []json.RawMessage{raw}, PrettyKwargs: raw, PageURL: text},
		} {
			hub.Records.AddExternalRecord(debug.Record{CallEnding: debug.CallEnding{Status: text, ResultCID: text}, CallData: debug.CallData{
				MethodName: text, CallID: id, CallSite: raw, PrettyResult: raw, Exception: raw, Values: v,
				Process: debug.Process{ProcessKey: text}, StartedAt: float64(len(text)) * 1e9,
			}})
		}
		h := older.Pages(http.NotFoundHandler())
		for _, path := range []string{"/call/c", "/call/o", "/callstack/c", "/breakpoint/" + url.PathEscape(text) + "/history", "/breakpoint/x/history?search=" + url.QueryEscape(text)} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if w.Code >= 500 {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
	})
}

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
)

// scriptedPage is a page of another origin that uses the JavaScript client.
const scriptedPage = `<!doctype html><title>a program</title><body id="main">
<script type="module">
	import("%s/api/debug-client.js").then(({ withDebug, debugCall, debugCallSync }) => {
		withDebug("ON");
		window.add = function add(a, b) { return a + b; };
		window.later = (...args) => { window.result = undefined; debugCall(...args).then((r) => (window.result = r), (e) => (window.result = String(e))); };
		window.still = (...args) => setTimeout(() => (window.result = debugCallSync(...args)));
		window.state = "ready";
	}, () => (window.state = "refused"));
</script>`

func servePage(t *testing.T, d *debugger) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, scriptedPage, d.url)
	}))
	t.Cleanup(s.Close)
	return s
}

// paused waits for a pause and returns it.
func (d *debugger) paused() object {
	d.t.Helper()
	var all []any
	waitUntil(d.t, "a pause", func() bool {
		all = d.rest("GET", "/api/paused", nil)["paused"].([]any)
		return len(all) == 1
	})
	return all[0].(object)
}

func (d *debugger) resume(pause object, decision object) {
	d.t.Helper()
	d.rest("POST", "/api/paused/"+pause["id"].(string)+"/continue", decision)
}

// TestScriptedPage uses the JavaScript client in an allowed page of another origin of this machine, with and without
// waiting, and evaluates an expression during the pause.
func TestScriptedPage(t *testing.T) {
	d := startDebugger(t, "--allow-origin", "http://127.0.0.1:*")
	s := servePage(t, d)
	p := &page{newTab(t), t}
	p.do(chromedp.Navigate(s.URL + "/app"))
	p.wait(`window.state === "ready"`)
	d.breakpoint("add")
	d.breakpoint("still")

	eval[any](p, `later(add, document.body, 2), 0`)
	pause := d.paused()
	data := pause["call_data"].(object)
	if data["page_url"] != s.URL+"/app" || data["process_pid"] != 0.0 || data["preferred_format"] != "json" {
		t.Errorf("call data %v", data)
	}
	if body := data["pretty_args"].([]any)[0].(object); body["type_name"] != "HTMLBodyElement" || body["attributes"].(object)["id"] != "main" {
		t.Errorf("an element travels as %v", body)
	}
	session := d.rest("POST", "/api/repl/start", object{"pause_id": pause["id"]})["session_id"].(string)
	if got := d.rest("POST", "/api/repl/"+session+"/eval", object{"expr": "a.id + b"}); got["output"] != `"main2"` {
		t.Errorf("evaluated to %v", got)
	}
	d.resume(pause, object{"modified_args": []int{3, 4}})
	p.wait(`window.result === 7`)

	eval[any](p, `still("still", add, 1, 2), 0`)
	pause = d.paused()
	d.resume(pause, object{"action": "modify", "modified_args": []any{"sync ", "ü"}})
	p.wait(`window.result === "sync ü"`)
	if got := d.rest("GET", "/api/calls?function_name=still", nil)["calls"].([]any)[0].(object)["pretty_result"]; got != "sync ü" {
		t.Errorf("recorded %v", got)
	}
}

// TestForeignPage: a page of another machine, here recognized by its name, gets neither the client nor an answer.
func TestForeignPage(t *testing.T) {
	d := startDebugger(t)
	s := servePage(t, d)
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{newTab(t, chromedp.Flag("host-resolver-rules", "MAP foreign.example 127.0.0.1")), t}
	p.do(chromedp.Navigate("http://foreign.example:" + address.Port() + "/"))
	p.wait(`window.state === "refused"`)
	eval[any](p, `fetch("`+d.url+`/api/behavior", { method: "POST", mode: "no-cors", body: '{"behavior":"go"}' }).then(() => (window.sent = true), () => (window.sent = true)), 0`)
	p.wait(`window.sent`)
	if got := d.rest("GET", "/api/behavior", nil)["behavior"]; got != "stop" {
		t.Errorf("a foreign page set the behavior to %v", got)
	}
}

// TestLocalForeignPage: a page of another server on this machine that is not allowed gets neither the client nor an
// answer, and has no effect.
func TestLocalForeignPage(t *testing.T) {
	d := startDebugger(t)
	s := servePage(t, d)
	p := &page{newTab(t), t}
	p.do(chromedp.Navigate(s.URL + "/"))
	p.wait(`window.state === "refused"`)
	eval[any](p, `Promise.allSettled([
		fetch("`+d.url+`/api/paused"),
		fetch("`+d.url+`/api/breakpoints", { method: "POST", body: '{"function_name":"x"}' }),
		fetch("`+d.url+`/api/breakpoints", { method: "POST", mode: "no-cors", body: '{"function_name":"x"}' }),
		fetch("`+d.url+`/mcp", { method: "POST", mode: "no-cors", body: "{}" }),
	]).then((all) => (window.got = all.map((r) => r.value?.type ?? "refused").join())), 0`)
	p.wait(`window.got === "refused,refused,opaque,opaque"`)
	if got := d.rest("GET", "/api/breakpoints", nil)["breakpoints"].([]any); len(got) != 0 {
		t.Errorf("a page of another server set %v", got)
	}
}

// TestStackAndHistory: a paused call shows its call stack, and a breakpoint lists its history.
func TestStackAndHistory(t *testing.T) {
	d := startDebugger(t)
	d.breakpoint("To*")
	for _, name := range []string{"Tool", "Other"} {
		d.rest("POST", "/api/call/event", object{"method_name": name, "process_pid": 1, "process_start_time": 1})
	}
	d.rest("POST", "/api/call/start", object{
		"method_name": "Tool", "process_pid": 1, "process_start_time": 1,
		"call_site": object{"stack_trace": []object{{"filename": "a.py", "lineno": 3, "function": "main", "code_context": "Tool(<1>)"}}},
	})
	p := d.open(1000, 800)
	p.wait(`document.querySelector(".stack:not([hidden]) li")?.textContent === "main a.py:3 Tool(<1>)"`)
	p.wait(`document.querySelectorAll("#history summary").length === 2`)
	p.click(`#breakpoints [data-action="history"]`)
	p.wait(`document.querySelectorAll("#history summary").length === 1`)
}

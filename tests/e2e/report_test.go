package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const reportScenario = `
[[responses]]
pattern = { type = "contains", text = "triage" }

[[responses.response.steps]]
text = "Let me look."
tool_calls = [{ tool = "Bash", input = { command = "echo seen; exit 3" } }]

[[responses.response.steps]]
text = "done"

[[expect]]
tool = "Edit"
`

// failedReport runs a command under exec that fails, and returns the URL of its HTML report.
func failedReport(t *testing.T) string {
	t.Helper()
	cmd := command(t, "exec", "-s", "s.toml", "--html", "report.html", "--", "sh", "-c",
		`claude -p 'triage </script><img src=x onerror=alert(1)>' --dangerously-skip-permissions; claude -p hello`)
	if err := os.WriteFile(filepath.Join(cmd.Dir, "s.toml"), []byte(reportScenario), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Fatalf("exec: %v\n%s", err, out)
	}
	return "file://" + filepath.Join(cmd.Dir, "report.html")
}

// TestReportPage reads the report of a failed run as a user does: the cause is on the first screen, a problem links to
// the event that shows it, events can be opened, and the search finds the output of a tool.
func TestReportPage(t *testing.T) {
	p := openPage(t, failedReport(t), 1200, 800, false)
	if first := p.text("header") + p.text(".problem"); !strings.Contains(first, "FAILED") || !strings.Contains(first, "expected a call to Edit") {
		t.Errorf("the page begins with\n%s", first)
	}
	if bottom := eval[float64](p, `document.querySelector(".problem").getBoundingClientRect().bottom`); bottom > 800 {
		t.Errorf("the first problem ends at %v pixels, below the first screen", bottom)
	}
	eval[any](p, `document.querySelector('.problem a[href^="#run-"]').click(), 0`)
	p.wait(`document.querySelector(".event:target")?.open`)
	if shown := p.text(".event:target"); !strings.Contains(shown, "no rule matches") {
		t.Errorf("the link of S02 leads to\n%s", shown)
	}
	p.replace("#search", "SEEN")
	p.wait(`[...document.querySelectorAll(".event")].map((e) => e.className).join() === "event rule,event tool error"`) // the rule has the command
	eval[any](p, `document.querySelector(".event.tool").open = true, 0`)
	p.wait(`document.querySelector(".event.tool .parts")`)
	if call := p.text(".event.tool"); !strings.Contains(call, "echo seen; exit 3") || !strings.Contains(call, "failed") {
		t.Errorf("the call shows\n%s", call)
	}
	p.replace("#search", " ")
	p.click("#only")
	p.wait(`document.querySelectorAll(".event").length === 2`)
	eval[any](p, `document.querySelector(".stream").open = true, 0`)
	p.wait(`document.querySelector(".stream pre")?.textContent === "done"`)
}

// TestReportNarrowAndDark: no part of the page is wider than the screen of a telephone, even in the dark colour scheme.
func TestReportNarrowAndDark(t *testing.T) {
	p := openPage(t, failedReport(t), 400, 800, false)
	p.dark()
	if wide := eval[float64](p, `document.documentElement.scrollWidth`); wide > 400 {
		t.Errorf("the page is %v pixels wide because of %s", wide, eval[string](p,
			`[...document.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > 401).map((e) => e.tagName + "." + e.className).join(" ")`))
	}
	if ground := eval[string](p, `getComputedStyle(document.body).backgroundColor`); ground != "rgb(23, 24, 26)" {
		t.Errorf("the ground is %s in the dark", ground)
	}
}

// TestReportManyEvents: a report with 10,000 calls stays fluid because only rows near the screen are elements of the page.
// The others appear when the page is scrolled, searched, filtered or opened at their address.
func TestReportManyEvents(t *testing.T) {
	cmd := command(t, "report", "run.jsonl")
	var b strings.Builder
	line := func(format string, args ...any) {
		fmt.Fprintf(&b, `{"time":"2026-01-02T03:04:05Z","pid":7,"session_id":"s","type":`+format+"}\n", args...)
	}
	line(`"start","argv":["claude","-p","x"],"cwd":"/w","ppid":1`)
	for i := range 10_000 {
		line(`"tool","tool":"Bash","tool_use_id":"t%d","input":{"command":"echo %d"},"result":"line %d","is_error":false,"executed":true,"ms":1`, i, i, i)
	}
	line(`"exit","code":0,"ms":5`)
	if err := os.WriteFile(filepath.Join(cmd.Dir, "run.jsonl"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("report: %v\n%s", err, out)
	}
	p := openPage(t, "file://"+filepath.Join(cmd.Dir, "report.html"), 1200, 800, false)
	few := func(when string) {
		t.Helper()
		if n := eval[int](p, `document.querySelectorAll(".event").length`); n == 0 || n > 1500 {
			t.Errorf("%s the page has %d rows", when, n)
		}
	}
	p.wait(`document.querySelector("#run-1-1")`)
	few("at first")
	eval[any](p, `scrollTo(0, document.body.scrollHeight), 0`)
	p.wait(`document.querySelector("#run-1-10002")?.getBoundingClientRect().top < innerHeight`)
	p.replace("#search", "9876")
	p.wait(`document.querySelectorAll(".event").length === 1 && document.querySelector("#found").textContent === "1 of 10002 events"`)
	p.replace("#search", "line")
	p.wait(`document.querySelector("#found").textContent === "10000 of 10002 events" && document.querySelector(".event")`)
	few("after a search")
	eval[any](p, `location.hash = "#run-1-5000", 0`)
	p.wait(`document.querySelector("#run-1-5000").open && document.querySelector("#run-1-5000").getBoundingClientRect().top < innerHeight`)
	eval[any](p, `document.querySelector("#run-1-5000 summary").focus(), 0`)
	p.do(chromedp.KeyEvent(kb.ArrowDown))
	p.wait(`document.activeElement.parentElement.id === "run-1-5001"`)
}

// TestReportTimeLine: a click on the time line opens the event, dragging shows only the events of that time, and the
// result of a hook is part of its call.
func TestReportTimeLine(t *testing.T) {
	cmd := command(t, "report", "run.jsonl")
	journal := `{"time":"2026-01-02T03:04:05Z","pid":7,"session_id":"s","type":"start","argv":["claude","-p","first"],"cwd":"/w","ppid":1}
{"time":"2026-01-02T03:04:06Z","pid":7,"session_id":"s","type":"model","message_id":"m","model":"m","blocks":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}],"input_tokens":1,"output_tokens":1}
{"time":"2026-01-02T03:04:06.5Z","pid":7,"session_id":"s","type":"attachment","attachment":{"type":"hook_success","hookName":"PreToolUse:Bash","hookEvent":"PreToolUse","toolUseID":"t","command":"audit.sh","stdout":"allowed","exitCode":0}}
{"time":"2026-01-02T03:04:07Z","pid":7,"session_id":"s","type":"tool","tool":"Bash","tool_use_id":"t","input":{"command":"ls"},"result":"no","is_error":true,"executed":true,"ms":1000}
{"time":"2026-01-02T03:04:07Z","pid":7,"session_id":"","type":"output","stream":"stderr","text":"panicked"}
{"time":"2026-01-02T03:04:08Z","pid":7,"session_id":"s","type":"exit","code":0,"ms":3000}
{"time":"2026-01-02T03:04:13Z","pid":8,"session_id":"u","type":"start","argv":["claude","-p","second"],"cwd":"/w","ppid":1}
{"time":"2026-01-02T03:04:14Z","pid":8,"session_id":"u","type":"prompt","uuid":"u","prompt":"second"}
{"time":"2026-01-02T03:04:15Z","pid":8,"session_id":"u","type":"exit","code":0,"ms":2000}
`
	if err := os.WriteFile(filepath.Join(cmd.Dir, "run.jsonl"), []byte(journal), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("report: %v\n%s", err, out)
	}
	p := openPage(t, "file://"+filepath.Join(cmd.Dir, "report.html"), 1200, 800, false)
	p.click(".lane .tick.error")
	p.wait(`document.querySelector("#run-1-2.current")?.open && location.hash === "#run-1-2"`)
	if call := p.text("#run-1-2"); !strings.Contains(call, "PreToolUse:Bash hook success") || !strings.Contains(call, "command\naudit.sh") {
		t.Errorf("the call shows\n%s", call)
	}
	mouse := func(kind input.DispatchMouseEventType, share float64) {
		t.Helper()
		eval[any](p, `document.querySelector("#bars").scrollIntoView(), 0`)
		lane := eval[[3]float64](p, `(({left, top, width}) => [left, top, width])(document.querySelectorAll(".lane")[1].getBoundingClientRect())`)
		p.do(chromedp.MouseEvent(kind, lane[0]+lane[2]*share, lane[1]+5, chromedp.ButtonLeft))
	}
	mouse(chromedp.MousePressed, 0.75)
	mouse(chromedp.MouseMoved, 0.85)
	mouse(chromedp.MouseMoved, 0.95)
	mouse(chromedp.MouseReleased, 0.95)
	p.wait(`document.querySelector("#found").textContent === "2 of 6 events" && document.querySelector("#run-1").hidden`)
	p.click("#all")
	p.wait(`!document.querySelector("#run-1").hidden && document.querySelector("#found").textContent === ""`)
	p.replace("#search", "PANICKED")
	p.wait(`document.querySelector(".stream.hit") && document.querySelector("#found").textContent === "0 of 6 events, output of 1 streams"`)
}

// TestReportScreenshot takes the screenshot for docs/report-page.png: a failed run whose cause is on the first screen.
func TestReportScreenshot(t *testing.T) {
	cmd := command(t, "exec", "-s", "triage.toml", "--html", "report.html", "--", "sh", "test.sh")
	const scenario = `[[responses]]
pattern = { type = "regex", pattern = "triage issue (?P<n>\\d+)" }

[[responses.response.steps]]
text = "Let me look."
tool_calls = [{ tool = "Bash", input = { command = "echo issue {{ match.n }}: the parser crashes" } }]

[[responses.response.steps]]
text = "A bug in the parser."

[[expect]]
tool = "Edit"
`
	const program = `for issue in 7 8; do claude -p "triage issue $issue" --allowedTools "Bash(echo:*)"; done
claude -p "label issue 8"
`
	for name, text := range map[string]string{"triage.toml": scenario, "test.sh": program} {
		if err := os.WriteFile(filepath.Join(cmd.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := cmd.CombinedOutput(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Fatalf("exec: %v\n%s", err, out)
	}
	p := openPage(t, "file://"+filepath.Join(cmd.Dir, "report.html"), 960, 640, false)
	if first := p.text("body"); !strings.Contains(first, "expected a call to Edit") || !strings.Contains(first, "label issue 8") {
		t.Errorf("the page shows\n%s", first)
	}
	p.shot("report-page.png")
}

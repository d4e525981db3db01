package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	p.wait(`document.querySelectorAll(".event:not([hidden])").length === 1`)
	eval[any](p, `document.querySelector(".event:not([hidden])").open = true, 0`)
	p.wait(`document.querySelector(".event.tool .parts")`)
	if call := p.text(".event:not([hidden])"); !strings.Contains(call, "echo seen; exit 3") || !strings.Contains(call, "failed") {
		t.Errorf("the call shows\n%s", call)
	}
	p.replace("#search", " ")
	p.click("#only")
	p.wait(`document.querySelectorAll(".event:not([hidden])").length === 2`)
	eval[any](p, `document.querySelector(".stream").open = true, 0`)
	p.wait(`document.querySelector(".stream pre")?.textContent === "done"`)
}

// TestReportNarrow: nothing is wider than the screen of a telephone, in the dark colour scheme too.
func TestReportNarrow(t *testing.T) {
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

// TestReportManyEvents: a report shows all of 10,000 calls, and they can be searched.
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
	if n := eval[int](p, `document.querySelectorAll(".event").length`); n != 10_002 {
		t.Errorf("%d events are shown", n)
	}
	p.replace("#search", "9876")
	p.wait(`document.querySelectorAll(".event:not([hidden])").length === 1`)
}

// TestReportLooks takes the screenshot for docs/report-page.png: a failed run whose cause is on the first screen.
func TestReportLooks(t *testing.T) {
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

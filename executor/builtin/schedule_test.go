package builtin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
	"github.com/claudeless/claudeless/tests/tooltest"
)

// newScheduler makes tools in a directory at a fixed time; ids count from
// 00000001.
func newScheduler(t *testing.T, dir string) *Tools {
	t.Helper()
	n := 0
	now := func() time.Time { return time.Date(2026, 11, 21, 11, 29, 21, 0, time.UTC) }
	set := task.New(task.Options{NewID: func() string { n++; return fmt.Sprintf("%08x-0000-4000-8000-000000000000", n) }, Now: now})
	t.Cleanup(set.Close)
	return newTools(t, Options{CWD: dir, PID: 7, Tasks: set, Clock: tooltest.Clock{Time: now(), ID: "00000000"}, Environ: []string{"CLAUDE_CODE_SESSION_ID=s-1"}})
}

// Texts observed with 2.1.329.
func TestCrons(t *testing.T) {
	tools := newScheduler(t, t.TempDir())
	r := call(t, tools, "CronList", tooltest.Input{})
	tooltest.WantText(t, r.ToolResult, "No scheduled jobs.")
	tooltest.WantOutput(t, r.ToolResult, `{"jobs":[]}`)

	r = call(t, tools, "CronCreate", tooltest.Input{"cron": "0 9 * * 1-5", "prompt": strings.Repeat("y", 81)})
	tooltest.WantText(t, r.ToolResult, "Scheduled recurring job 00000001 (Weekdays at 9:00 AM). Next run: Nov 23 9:00am. "+
		"Session-only (not written to disk, dies when Claude exits). Auto-expires after 30 days. Use CronDelete to cancel sooner.")
	r = call(t, tools, "CronCreate", tooltest.Input{"cron": "7 9 * * *", "prompt": "one\ntwo", "recurring": false})
	tooltest.WantText(t, r.ToolResult, "Scheduled one-shot task 00000002 (Every day at 9:07 AM). Next run: Nov 22 9:07am. "+
		"Session-only (not written to disk, dies when Claude exits). It will fire once then auto-delete.")
	tooltest.WantOutput(t, r.ToolResult, `{"id":"00000002","humanSchedule":"Every day at 9:07 AM","recurring":false,"durable":false,"nextFireAt":1795338420000}`)

	tooltest.WantText(t, call(t, tools, "CronList", tooltest.Input{}).ToolResult,
		"00000001 — Weekdays at 9:00 AM (recurring) [session-only], next run Nov 23 9:00am: "+strings.Repeat("y", 79)+"…\n"+
			"00000002 — Every day at 9:07 AM (one-shot) [session-only], next run Nov 22 9:07am: one…")
	r = call(t, tools, "CronDelete", tooltest.Input{"id": "00000001"})
	tooltest.WantText(t, r.ToolResult, "Cancelled job 00000001.")
	tooltest.WantOutput(t, r.ToolResult, `{"id":"00000001"}`)
	tooltest.WantOutput(t, call(t, tools, "CronList", tooltest.Input{}).ToolResult,
		`{"jobs":[{"id":"00000002","cron":"7 9 * * *","humanSchedule":"Every day at 9:07 AM","prompt":"one\ntwo","durable":false,"nextFireAt":1795338420000}]}`)
}

func TestCronRefusals(t *testing.T) {
	tools := newScheduler(t, t.TempDir())
	refused := func(name string, input tooltest.Input, want string) {
		t.Helper()
		r := call(t, tools, name, input)
		tooltest.WantError(t, r.ToolResult, "<tool_use_error>"+want+"</tool_use_error>")
		tooltest.WantOutput(t, r.ToolResult, `"Error: `+want+`"`)
	}
	refused("CronCreate", tooltest.Input{"cron": "99 * * * *", "prompt": "x"}, "Invalid cron expression '99 * * * *'. Expected 5 fields: M H DoM Mon DoW.")
	refused("CronCreate", tooltest.Input{"cron": "0 9 31 2 *", "prompt": "x"}, "Cron expression '0 9 31 2 *' does not match any calendar date in the next year.")
	refused("CronDelete", tooltest.Input{"id": "nope"}, "No scheduled job with id 'nope'")
	for range maxCronJobs {
		call(t, tools, "CronCreate", tooltest.Input{"cron": "* * * * *", "prompt": "x"})
	}
	refused("CronCreate", tooltest.Input{"cron": "* * * * *", "prompt": "x"}, "Too many scheduled jobs (max 50). Cancel one first.")
}

// A durable job is saved in a file, and later sessions load it.
func TestDurableCrons(t *testing.T) {
	dir := t.TempDir()
	r := call(t, newScheduler(t, dir), "CronCreate", tooltest.Input{"cron": "7 9 * * *", "prompt": "a < b", "durable": true})
	tooltest.WantText(t, r.ToolResult, "Scheduled recurring job 00000001 (Every day at 9:07 AM). Next run: Nov 22 9:07am. "+
		"Persisted to .claude/scheduled_tasks.json. Auto-expires after 30 days. Use CronDelete to cancel sooner.")
	file := filepath.Join(dir, ".claude", "scheduled_tasks.json")
	want := fmt.Sprintf(`{
  "tasks": [
    {
      "id": "00000001",
      "cron": "7 9 * * *",
      "prompt": "a < b",
      "createdAt": 1795260561000,
      "recurring": true,
      "maxAgeMs": 2592000000,
      "createdBySessionId": "s-1",
      "createdByPid": 7,
      "createdInProject": %q,
      "createdUnderSignIn": "none"
    }
  ]
}
`, dir)
	if diff := cmp.Diff(want, tooltest.FileText(t, file)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	later := newScheduler(t, dir)
	r = call(t, later, "CronList", tooltest.Input{})
	tooltest.WantText(t, r.ToolResult, "00000001 — Every day at 9:07 AM (recurring), next run Nov 22 9:07am: a < b")
	call(t, later, "CronDelete", tooltest.Input{"id": "00000001"})
	if diff := cmp.Diff("{\n  \"tasks\": []\n}\n", tooltest.FileText(t, file)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	tooltest.WantText(t, call(t, later, "CronList", tooltest.Input{}).ToolResult, "No scheduled jobs.")
}

// Texts observed with 2.1.329.
func TestScheduleWakeup(t *testing.T) {
	const rest = " If you owe the user a status update this tick, write it now as ordinary response text; then end the turn — " +
		"the harness re-invokes you when the wakeup fires or a task-notification arrives."
	for _, tt := range []struct {
		delay     any
		text, out string
	}{
		{10, "11:31:00 (in 99s) (clamped to 60s from your requested value).", `{"scheduledFor":1795260660000,"clampedDelaySeconds":60,"wasClamped":true}`},
		{5000, "12:29:00 (in 3579s) (clamped to 3600s from your requested value).", `{"scheduledFor":1795264140000,"clampedDelaySeconds":3600,"wasClamped":true}`},
		{90.5, "11:31:00 (in 99s).", `{"scheduledFor":1795260660000,"clampedDelaySeconds":91,"wasClamped":false}`},
		{120, "11:32:00 (in 159s).", `{"scheduledFor":1795260720000,"clampedDelaySeconds":120,"wasClamped":false}`},
	} {
		tools := newScheduler(t, t.TempDir())
		call(t, tools, "ScheduleWakeup", tooltest.Input{"delaySeconds": 100, "reason": "", "prompt": "first"}) // the next one replaces it
		r := call(t, tools, "ScheduleWakeup", tooltest.Input{"delaySeconds": tt.delay, "reason": "r", "prompt": "p", "noop": true})
		tooltest.WantText(t, r.ToolResult, "Next wakeup scheduled for "+tt.text+rest)
		tooltest.WantOutput(t, r.ToolResult, tt.out)
		if jobs := tooltest.Output[struct{ Jobs []struct{ Prompt string } }](t, call(t, tools, "CronList", tooltest.Input{}).ToolResult).Jobs; len(jobs) != 1 || jobs[0].Prompt != "p" {
			t.Errorf("scheduled: %+v", jobs)
		}
		r = call(t, tools, "ScheduleWakeup", tooltest.Input{"stop": true})
		tooltest.WantOutput(t, r.ToolResult, `{"scheduledFor":0,"clampedDelaySeconds":0,"wasClamped":false,"stopped":true,"cancelledWakeups":1}`)
		r = call(t, tools, "ScheduleWakeup", tooltest.Input{"stop": true})
		tooltest.WantOutput(t, r.ToolResult, `{"scheduledFor":0,"clampedDelaySeconds":0,"wasClamped":false,"stopped":true,"cancelledWakeups":0}`)
	}
	tools := newScheduler(t, t.TempDir())
	tooltest.WantError(t, call(t, tools, "ScheduleWakeup", tooltest.Input{"delaySeconds": 100}).ToolResult, "`delaySeconds` and `reason` are required when `stop` is not true.")
	tooltest.WantError(t, call(t, tools, "ScheduleWakeup", tooltest.Input{"delaySeconds": 100, "reason": "r"}).ToolResult, "`prompt` is required when `stop` is not true.")
}

func TestReportFindings(t *testing.T) {
	tools := newTools(t, Options{})
	r := call(t, tools, "ReportFindings", `{"findings":[]}`)
	tooltest.WantText(t, r.ToolResult, "No findings reported.")
	tooltest.WantOutput(t, r.ToolResult, `{"count":0,"findings":[]}`)
	r = call(t, tools, "ReportFindings", `{"level":"low","findings":[{"failure_scenario":"f","summary":"s","line":0,"file":"a.go","verdict":"CONFIRMED"}]}`)
	tooltest.WantText(t, r.ToolResult, "1 finding reported.")
	tooltest.WantOutput(t, r.ToolResult, `{"count":1,"level":"low","findings":[{"file":"a.go","line":0,"summary":"s","failure_scenario":"f","verdict":"CONFIRMED"}]}`)
}

func TestWebRefusals(t *testing.T) {
	tools := newTools(t, Options{})
	for _, tt := range []struct {
		name  string
		input tooltest.Input
		want  string
	}{
		{"WebFetch", tooltest.Input{"url": "http://localhost/x", "prompt": "p"}, "WebFetch cannot fetch localhost or other hostnames without a dot. To reach a local server, use Bash with curl instead."},
		{"WebFetch", tooltest.Input{"url": "http://user:pw@example.com/x", "prompt": "p"}, "Invalid URL"},
		{"WebFetch", tooltest.Input{"url": "file:///etc/hosts", "prompt": "p"}, "Invalid URL"},
	} {
		tooltest.WantError(t, call(t, tools, tt.name, tt.input).ToolResult, tt.want)
	}
	const long = `"message": "URL is longer than 2000 characters"`
	if r := check(t, tools, "WebFetch", `{"prompt":"p","url":"https://e.com/`+strings.Repeat("x", maxURLBytes)+`"}`); r == nil || !strings.Contains(r.Content.Text, long) {
		t.Errorf("%+v, want %s", r, long)
	}
	const both = "Error: Cannot specify both allowed_domains and blocked_domains in the same request"
	if r := check(t, tools, "WebSearch", `{"query":"abc","allowed_domains":["a.b"],"blocked_domains":["c.d"]}`); r == nil || r.Output != "Error: "+both {
		t.Errorf("%+v, want %q", r, both)
	}
}

func check(t *testing.T, tools *Tools, name, input string) *protocol.ToolResult {
	t.Helper()
	return tools.Precheck(t.Context(), protocol.ToolUse{ID: "toolu_1", Name: name, Input: json.RawMessage(input)})
}

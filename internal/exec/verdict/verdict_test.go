package verdict_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// judgeScenario returns the verdict on journal lines; lines without a time, a pid or a session get one.
func judgeScenario(t *testing.T, lines string) verdict.Report {
	t.Helper()
	var in verdict.Input
	for e, err := range journal.Read(strings.NewReader(completeLines(lines))) {
		if err != nil {
			t.Fatal(err)
		}
		in.Entries = append(in.Entries, e)
	}
	return verdict.Judge(in)
}

func completeLines(lines string) string {
	var out strings.Builder
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		var head strings.Builder
		for _, key := range []string{`"time":"2026-01-02T03:04:05Z"`, `"pid":1`, `"session_id":"S"`} {
			name, _, _ := strings.Cut(key, ":")
			if !strings.Contains(line, name+":") {
				head.WriteString(key + ",")
			}
		}
		out.WriteString("{" + head.String() + line[1:] + "\n")
	}
	return out.String()
}

// findingIDs returns the findings with their levels.
func findingIDs(r verdict.Report) []string {
	list := []string{}
	for _, f := range r.Findings {
		list = append(list, f.ID+" "+f.Level)
	}
	return list
}

const setupLines = `{"type":"start","argv":["claude","-p"],"cwd":"/w","ppid":9}
{"type":"run","argv":["claude","-p"],"cwd":"/w","env":{},"settings":[],"scenario":"s","scenario_file":"","model":"m","permission_mode":"default","input_format":"stream-json"}
`

const turnLines = `{"type":"prompt","uuid":"U","prompt":"hi"}
{"type":"match","rule":"default_response","prompt":"hi"}
{"type":"result","subtype":"success","is_error":false,"num_turns":1,"total_cost_usd":0,"permission_denials":[]}
`

const closedLines = `{"type":"host","what":"stdin_closed","results":1}
{"type":"exit","code":0,"ms":3}
`

// For every conduct finding, one caller causes it and one does not.
func TestConduct(t *testing.T) {
	const failed = `{"type":"result","subtype":"success","is_error":true,"num_turns":1,"total_cost_usd":0,"permission_denials":[],"api_error_status":529}` + "\n" + `{"type":"exit","code":1,"ms":3}` + "\n"
	forbidden := strings.ReplaceAll(failed, "529", "401")
	again := func(n int, ending string) string {
		var b strings.Builder
		for i := range n {
			pid := `"pid":` + strings.Repeat("1", i+1) + `,`
			for line := range strings.Lines(setupLines + `{"type":"prompt","uuid":"U","prompt":"hi"}` + "\n" + ending) {
				b.WriteString("{" + pid + `"session_id":"` + pid[6:] + `",` + line[1:])
			}
		}
		return b.String()
	}
	other := func(text, session string) string {
		return strings.ReplaceAll(text, `{"type"`, `{"pid":2,"session_id":"`+session+`","type"`)
	}
	hook := func(attachment string) string {
		return setupLines + turnLines + `{"type":"attachment","attachment":` + attachment + "}\n" + closedLines
	}
	for _, tt := range []struct {
		name, lines string
		want        []string
	}{
		{"C02 C03 C04 C05 C09 C10 C13 a caller that behaves", setupLines + turnLines + closedLines, nil},
		{"C01 stdout closed early", setupLines + `{"type":"host","what":"stdout_closed"}` + "\n" + closedLines, []string{"C01 error"}},
		{"C01 stdout closed after the result", setupLines + turnLines + `{"type":"host","what":"stdout_closed","results":1}` + "\n" + closedLines, nil},
		{"C01 C17 a subcommand has no result", `{"type":"start","argv":["claude","auth","status"],"subcommand":"auth"}` + "\n" + `{"type":"host","what":"stdout_closed"}` + "\n" + `{"type":"exit","code":1}` + "\n", nil},
		{"C01 C17 a session that failed at its start", `{"type":"start","argv":["claude","-p","x"]}` + "\n" + `{"type":"host","what":"stdout_closed"}` + "\n" + `{"type":"exit","code":1}` + "\n", []string{"C01 error", "C17 warn"}},
		{"C01 stdout not read", setupLines + turnLines + `{"type":"host","what":"stdout_blocked"}` + "\n" + closedLines, []string{"C01 error"}},
		{"C02 unanswered", setupLines + turnLines + `{"type":"host","what":"request_unanswered","request_id":"r","subtype":"can_use_tool"}` + "\n" + closedLines, []string{"C02 error"}},
		{"C02 twice", setupLines + turnLines + `{"type":"host","what":"answered_twice","request_id":"r","subtype":"can_use_tool"}` + "\n" + closedLines, []string{"C02 error"}},
		{"C02 late", setupLines + turnLines + `{"type":"host","what":"answered_late","request_id":"r","subtype":"can_use_tool","ms":6000}` + "\n" + closedLines, []string{"C02 error"}},
		{"C03 initialize after the first message", setupLines + turnLines + `{"type":"host","what":"late_initialize"}` + "\n" + closedLines, []string{"C03 warn"}},
		{"C04 C05 killed with stdin open", setupLines + turnLines, []string{"C04 warn", "C05 warn"}},
		{
			"C04 terminated with stdin open", setupLines + turnLines + `{"type":"host","what":"signal","signal":"SIGTERM","stdin_open":true,"results":1}` + "\n" + `{"type":"exit","code":143,"signal":"SIGTERM","ms":3}`,
			[]string{"C04 warn"},
		},
		{"C05 killed after stdin was closed", setupLines + turnLines + `{"type":"host","what":"stdin_closed","results":1}` + "\n", []string{"C05 warn"}},
		{"C05 no time after SIGTERM", setupLines + turnLines + `{"type":"host","what":"stdin_closed","results":1}` + "\n" + `{"type":"host","what":"signal","signal":"SIGTERM"}`, []string{"C05 warn"}},
		{"C05 terminated in order", setupLines + turnLines + `{"type":"host","what":"stdin_closed"}` + "\n" + `{"type":"host","what":"signal","signal":"SIGTERM"}` + "\n" + `{"type":"exit","code":143,"signal":"SIGTERM","ms":3}`, nil},
		{"C07 a storm", again(12, failed), []string{"C07 error"}},
		{"C07 three tries", again(3, failed), nil},
		{"C07 what cannot succeed", again(5, forbidden), []string{"C07 error"}},
		{"C07 what cannot succeed, tried again once", again(2, forbidden), nil},
		{"C08 a flag that is not there", `{"type":"start","argv":["claude","--x"],"cwd":"/w","ppid":9}` + "\n" + `{"type":"exit","code":1,"refused":"error: unknown option '--x'","ms":1}`, []string{"C08 error"}},
		{"C08 the version is asked for", `{"type":"start","argv":["claude","--version"],"cwd":"/w","ppid":9}` + "\n" + `{"type":"exit","code":0,"ms":1}`, nil},
		{"C09 a secret in argv", strings.Replace(setupLines, `"ppid":9`, `"ppid":9,"secrets":["argv[2]"]`, 1) + turnLines + closedLines, []string{"C09 error"}},
		{"C10 no sandbox", strings.Replace(setupLines, `"env"`, `"skips_permissions":true,"env"`, 1) + turnLines + closedLines, []string{"C10 info"}},
		{
			"C11 one session, two processes", setupLines + strings.Join(strings.SplitAfter(turnLines, "\n")[:2], "") + other(setupLines+turnLines, "S") + strings.SplitAfter(turnLines, "\n")[2] + other(closedLines, "S") + closedLines,
			[]string{"C11 error"},
		},
		{"C11 one session, one after the other", setupLines + turnLines + other(setupLines+turnLines, "S") + closedLines + other(closedLines, "S"), nil},
		{
			"C11 one goes on while two others come", setupLines + strings.Join(strings.SplitAfter(turnLines, "\n")[:2], "") + other(setupLines+turnLines+closedLines, "S") + strings.ReplaceAll(other(setupLines+turnLines+closedLines, "S"), `"pid":2`, `"pid":3`) +
				strings.SplitAfter(turnLines, "\n")[2] + closedLines,
			[]string{"C11 error", "C11 error"},
		},
		{"C13 inside another session", strings.Replace(setupLines, `"ppid":9`, `"ppid":9,"leaks":["CLAUDECODE"]`, 1) + turnLines + closedLines, []string{"C13 warn"}},
		{"C16 a slow hook", hook(`{"type":"hook_cancelled","hookName":"PreToolUse:Bash","hookEvent":"PreToolUse"}`), []string{"C16 warn"}},
		{"C16 a hook that fails", hook(`{"type":"hook_non_blocking_error","hookName":"PreToolUse:Bash","hookEvent":"PreToolUse","exitCode":1}`), []string{"C16 warn"}},
		{"C16 a hook of a later event fails", hook(`{"type":"hook_non_blocking_error","hookName":"TaskCompleted","hookEvent":"TaskCompleted","exitCode":1}`), []string{"C16 warn"}},
		{"C16 a hook that fails where nothing can be blocked", hook(`{"type":"hook_non_blocking_error","hookName":"SessionEnd","hookEvent":"SessionEnd","exitCode":1}`), nil},
		{"C16 a hook that blocks", hook(`{"type":"hook_blocking_error","hookName":"PreToolUse:Bash","hookEvent":"PreToolUse"}`), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == nil {
				tt.want = []string{}
			}
			if diff := cmp.Diff(tt.want, findingIDs(judgeScenario(t, tt.lines))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// C16 knows all 18 events at which a hook can block. At these events, exit code 1 is probably meant
// to block.
func TestConductOfHooks(t *testing.T) {
	blocking := strings.Fields("PreToolUse PostToolUse PostToolUseFailure PostToolBatch UserPromptSubmit UserPromptExpansion Stop SubagentStop PreCompact " +
		"PreModelSwitch PermissionRequest TeammateIdle TaskCreated TaskCompleted Elicitation ElicitationResult ConfigChange WorktreeCreate")
	for _, event := range claudecode.HookEvents() {
		for code, want := range map[int]bool{1: slices.Contains(blocking, event.Name), 3: false, 126: true, 127: true} {
			failure := fmt.Sprintf(`{"type":"hook_non_blocking_error","hookName":%q,"hookEvent":%[1]q,"exitCode":%d}`, event.Name, code)
			found := findingIDs(judgeScenario(t, setupLines+turnLines+`{"type":"attachment","attachment":`+failure+"}\n"+closedLines))
			if (len(found) == 1 && found[0] == "C16 warn") != want || len(found) > 1 {
				t.Errorf("%s with exit code %d: findings %v", event.Name, code, found)
			}
		}
	}
}

// Expectations about a run over the API are evaluated like those about claudeless: a repeated request is counted once.
// The prompts of a rule and the requests to a server are counted.
func TestExpectationsOverTheAPI(t *testing.T) {
	const scenario = `
[[responses]]
pattern = { type = "exact", text = "hi" }
response = "x"
[[expect]]
prompt = { type = "exact", text = "hi" }
times = 2
[[expect]]
rule = 2
times = 2
[[expect]]
request = { model = "m", max_retries = 2 }
times = 3
[[expect]]
mcp = { server = "my server", tool = "get" }
times = 1
[[expect]]
prompt = { type = "exact", text = "and this" }
times = 1
`
	request := func(session string, attempt, status int, keys string) string {
		return fmt.Sprintf(`{"type":"request","session":%q,"attempt":%d,"path":"/v1/messages","model":"m","status":%d%s}`+"\n", session, attempt, status, keys)
	}
	const asks = `,"prompt":"hi","rule":"responses[0]","file":"s.toml","line":2`
	called := func(text string, failed bool) string {
		return fmt.Sprintf(`{"tool":"mcp__my_server__get","tool_use_id":"t","input":{},"result":%q,"is_error":%t}`, text, failed)
	}
	s, err := scenarios.Parse("s.toml", []byte(scenario), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, lines string
		unmet       []string // the actual values
	}{
		{"two sessions, one of which asks again", request("A", 1, 529, asks) + request("A", 2, 529, asks) + request("A", 3, 200, asks) + request("B", 1, 200, asks) +
			request("B", 1, 200, `,"added":["and this"],"calls":[`+called("7", false)+","+called("Claude requested permissions to use mcp__my_server__get, but you haven't granted it yet.", true)+"]"), nil},
		{"clients without a session", request("", 1, 200, asks) + request("", 2, 529, asks) + request("", 3, 200, asks) + request("", 1, 200, `,"added":["and this"],"calls":[`+called("7", true)+"]"), nil},
		{
			"asked again too often, and a result that is another", request("A", 1, 529, asks) + request("A", 2, 529, asks) + request("A", 3, 529, asks) + request("A", 4, 200, asks) + request("B", 1, 200, asks) +
				request("B", 1, 200, `,"added":["and this"],"calls":[`+called("7", false)+`],"unmet":[{"text":"expected 8","got":"it is 7"}]`),
			[]string{"it is 7", "a request for m was retried 3 times"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var in verdict.Input
			for e, err := range journal.Read(strings.NewReader(completeLines(tt.lines))) {
				if err != nil {
					t.Fatal(err)
				}
				in.Entries = append(in.Entries, e)
			}
			in.Scenario = s
			var unmet []string
			for _, x := range verdict.Judge(in).Expectations {
				if !x.Met {
					unmet = append(unmet, x.Got)
				}
			}
			if diff := cmp.Diff(tt.unmet, unmet); diff != "" {
				t.Errorf("unmet (-want +got):\n%s", diff)
			}
		})
	}
}

// T01: a gate that was not released fails the run like a wrong set-up, and JUnit contains the finding with its
// position. A released gate causes no finding.
func TestGateTimeout(t *testing.T) {
	const (
		reached  = `{"type":"gate","name":"g","event":"reached"}` + "\n"
		released = `{"type":"gate","name":"g","event":"released"}` + "\n"
		timeout  = `{"type":"gate","name":"g","event":"timeout","ms":30000}` + "\n" +
			`{"type":"finding","id":"T01","level":"error","text":"the gate g was not released: the gate was not released in time","advice":"release it","file":"s.toml","line":7}` + "\n"
	)
	r := judgeScenario(t, setupLines+reached+timeout+turnLines+closedLines)
	if diff := cmp.Diff([]string{"T01 error"}, findingIDs(r)); diff != "" || r.ExitCode() != verdict.ExitSetUpFinding || r.Verdict != "failed" {
		t.Errorf("exit %d, findings (-want +got):\n%s", r.ExitCode(), diff)
	}
	var junit strings.Builder
	if err := r.Write(&junit, verdict.FormatJUnit); err != nil || !strings.Contains(junit.String(), `file="s.toml" line="7"`) {
		t.Errorf("%v in\n%s", err, &junit)
	}
	if r := judgeScenario(t, setupLines+turnLines+closedLines+strings.ReplaceAll(reached+released, `"type"`, `"pid":7,"type"`)); len(r.Runs) != 1 {
		t.Errorf("the server of the gates counts as a run of claude: %+v", r.Runs)
	}
	if r := judgeScenario(t, setupLines+reached+released+turnLines+closedLines); len(findingIDs(r)) > 0 || r.ExitCode() != 0 {
		t.Errorf("released in time: %v, exit %d", findingIDs(r), r.ExitCode())
	}
}

func BenchmarkJudge(b *testing.B) {
	var text strings.Builder
	const lines = 100_000
	for range lines / 7 {
		text.WriteString(completeLines(setupLines + turnLines + closedLines))
	}
	in := text.String()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		var v verdict.Input
		for e := range journal.Read(strings.NewReader(in)) {
			v.Entries = append(v.Entries, e)
		}
		verdict.Judge(v)
	}
	b.ReportMetric(float64(b.N)*lines/b.Elapsed().Seconds(), "lines/s")
}

// Over the API, an unplayed step is an error if the conversation cannot have been interrupted, for example because of a
// later prompt. Otherwise it is only a warning.
func TestUnplayedOverTheAPI(t *testing.T) {
	const (
		driven = `{"type":"start","argv":["claude","-p","--input-format","stream-json"],"cwd":"/w","ppid":9}`
		alone  = `{"type":"start","argv":["claude","-p","one"],"cwd":"/w","ppid":9}`
		left   = `{"type":"request","pid":2,"session":"A","attempt":1,"status":200,"prompt":"one","rule":"responses[0]","messages":["prompt"],"left":{"text":"step 2 of 2"}}`
		next   = `{"type":"request","pid":2,"session":"A","attempt":1,"status":200,"prompt":"two","rule":"responses[1]","messages":["prompt","answer","closed","prompt"]}`
	)
	for name, tt := range map[string]struct {
		lines []string
		want  string
	}{
		"a host, and nothing more":    {[]string{driven, left}, "S05 warn"},
		"a host, and the next prompt": {[]string{driven, left, next}, "S05 error"},
		"no host":                     {[]string{alone, left}, "S05 error"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{tt.want}, findingIDs(judgeScenario(t, strings.Join(tt.lines, "\n")))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

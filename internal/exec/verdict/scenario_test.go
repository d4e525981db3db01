package verdict_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const twoSteps = `[[responses]]
pattern = { type = "exact", text = "hi" }
response = { steps = [ { tool_calls = [ { tool = "Bash", input = { comand = "x" } } ] }, { text = "end" } ] }
`

// bash is the definition of a tool with one input.
func bash() []protocol.Tool {
	return []protocol.Tool{{Name: "Bash", InputSchema: json.RawMessage(`{"type":"object","properties":{"command":{}},"additionalProperties":false}`)}}
}

// fromVerdict returns the findings about a run, each as "ID level line".
func fromVerdict(t *testing.T, in verdict.Input, scenario, lines string) []string {
	t.Helper()
	for e, err := range journal.Read(strings.NewReader(completeLines(lines))) {
		if err != nil {
			t.Fatal(err)
		}
		in.Entries = append(in.Entries, e)
	}
	if scenario != "" {
		var err error
		if in.Scenario, err = scenarios.Parse("s.toml", []byte(scenario), scenarios.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	in.Lint.Tools = bash()
	got := []string{}
	for _, f := range verdict.Judge(in).Findings {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %d", f.ID, f.Level, f.Line)))
	}
	return got
}

// S09, S12, S13 and S16: mistakes of the scenario, and inputs that a tool rejects.
func TestScenarioFindings(t *testing.T) {
	const (
		answered = `{"type":"prompt","uuid":"U","prompt":"hi"}` + "\n" + `{"type":"match","rule":"responses[0]","file":"s.toml","line":1,"prompt":"hi"}` + "\n"
		result   = `{"type":"result","subtype":"success","is_error":false,"num_turns":1,"total_cost_usd":0,"permission_denials":[]}` + "\n"
		call     = `{"type":"tool","tool":%q,"tool_use_id":"t","input":{"comand":"x"},"result":%q,"is_error":%t%s}` + "\n"
		refusal  = "<tool_use_error>InputValidationError: Bash failed due to the following issue:\nThe required parameter `command` is missing</tool_use_error>"
		other    = "[[responses]]\npattern = { type = \"exact\", text = \"hi\" }\nresponse = \"no\"\n"
	)
	const rule = `{ pattern = { type = "exact", text = "hi" }, response = "x" },` + "\n"
	oneLine := "responses = [ " + rule + "\n" + rule + "]\n"
	run := func(lines string) string { return setupLines + answered + lines + result + closedLines }
	request := func(isError bool) string {
		return fmt.Sprintf(`{"type":"request","session":"A","attempt":1,"path":"/v1/messages","model":"m","status":200,"prompt":"hi","rule":"responses[0]","file":"s.toml","line":1,"calls":[{"tool":"Bash","tool_use_id":"t","input":{"comand":"x"},"result":%q,"is_error":%t}]}`+"\n", refusal, isError)
	}
	expected := twoSteps + "[[expect]]\ntool = \"Bash\"\ninput = { comand = \"x\" }\n"
	placeholder := strings.Replace(other, "no", "write the answer here", 1)
	for _, tt := range []struct {
		name, scenario, lines string
		in                    verdict.Input
		want                  []string
	}{
		{"an input that was rejected", twoSteps, run(fmt.Sprintf(call, "Bash", refusal, true, "")), verdict.Input{}, []string{"S12 error 3"}},
		{"one that a hook made", twoSteps, run(fmt.Sprintf(call, "Bash", refusal, true, `,"ran_with":{}`)), verdict.Input{}, []string{"S09 warn 3"}},
		{"a result that only shows the words", twoSteps, run(fmt.Sprintf(call, "Bash", refusal, false, "")), verdict.Input{}, []string{"S09 warn 3"}},
		{"one that is expected", expected, run(fmt.Sprintf(call, "Bash", refusal, true, "")), verdict.Input{}, []string{"S09 warn 3"}},
		{"another error", twoSteps, run(fmt.Sprintf(call, "Bash", "exit 1", true, "")), verdict.Input{}, []string{"S09 warn 3"}},
		{"an MCP tool", twoSteps, run(fmt.Sprintf(call, "mcp__s__t", "MCP error -32602: no", true, "")), verdict.Input{}, []string{"S12 error 1", "S09 warn 3"}},
		{"the words of MCP from another tool", twoSteps, run(fmt.Sprintf(call, "Bash", "MCP error -32602: no", true, "")), verdict.Input{}, []string{"S09 warn 3"}},
		{"over the API", twoSteps, setupLines + request(true) + closedLines, verdict.Input{}, []string{"S12 error 3"}},
		{"over the API, accepted", twoSteps, setupLines + request(false) + closedLines, verdict.Input{}, []string{"S09 warn 3"}},
		{"strict", twoSteps, run(""), verdict.Input{JudgingOptions: verdict.JudgingOptions{Strict: true}}, []string{"S09 error 3"}},
		{"lenient", twoSteps, run(fmt.Sprintf(call, "Bash", refusal, true, "")), verdict.Input{Lenient: true}, []string{}},
		{"a rule that answered nothing", strings.Replace(other, "hi", "x", 1) + other, run(""), verdict.Input{}, []string{"S13 warn 4"}},
		{"an input of another name", twoSteps, run(strings.Replace(fmt.Sprintf(call, "Bash", refusal, true, ""), "comand", "command", 1)), verdict.Input{}, []string{"S12 error 1", "S09 warn 3"}},
		{"rules of a line each", oneLine, run(""), verdict.Input{}, []string{"S13 warn 3"}},
		{"one that never can", other + other, run(""), verdict.Input{}, []string{"S13 warn 4"}},
		{"strict about rules", other + other, run(""), verdict.Input{JudgingOptions: verdict.JudgingOptions{Strict: true}}, []string{"S13 error 4"}},
		{"one that an expectation judges", other + other + "[[expect]]\nunused = \"warn\"\n", run(""), verdict.Input{}, []string{"S09 warn 5"}},
		{"a placeholder", placeholder, run(""), verdict.Input{}, []string{"S16 error 3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, fromVerdict(t, tt.in, tt.scenario, tt.lines)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// S05 is reported for a process that a signal ended.
func TestCutShort(t *testing.T) {
	const (
		text   = `{"type":"run","argv":["claude","-p"],"cwd":"/w","env":{},"settings":[],"scenario":"s","scenario_file":"","model":"m","permission_mode":"default"}` + "\n"
		start  = `{"type":"start","argv":["claude","-p"],"cwd":"/w","ppid":9}` + "\n"
		prompt = `{"type":"prompt","uuid":"U","prompt":"hi"}` + "\n"
		match  = `{"type":"match","rule":"responses[0]","file":"s.toml","line":1,"prompt":"hi"}` + "\n"
		more   = `{"type":"model","message_id":"m1","model":"m","blocks":[],"input_tokens":1,"output_tokens":1,"more":true}` + "\n"
		last   = `{"type":"model","message_id":"m2","model":"m","blocks":[],"input_tokens":1,"output_tokens":1}` + "\n"
		agent  = `{"type":"model","message_id":"m3","model":"m","agent":"t","blocks":[],"input_tokens":1,"output_tokens":1}` + "\n"
		term   = `{"type":"host","what":"signal","signal":"SIGTERM"}` + "\n" + `{"type":"exit","code":143,"signal":"SIGTERM","ms":3}` + "\n"
		broken = `{"type":"host","what":"signal","signal":"SIGINT"}` + "\n"
		abort  = `{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":1,"total_cost_usd":0,"permission_denials":[],"terminal_reason":"aborted_tools"}` + "\n"
		done   = `{"type":"result","subtype":"success","is_error":false,"num_turns":1,"total_cost_usd":0,"permission_denials":[]}` + "\n"
		ended  = `{"type":"exit","code":0,"ms":3}` + "\n"
		hang   = "[[responses]]\npattern = { type = \"any\" }\nfailure = { type = \"hang\" }\n"
		exits  = "[[expect]]\nexit = 143\n"
		inject = `{"type":"match","rule":"responses[0]","prompt":"hook","injected":true}` + "\n"
	)
	before := start + text + prompt + match
	for _, tt := range []struct {
		name, scenario, lines string
		killed                []int
		cut                   bool
	}{
		{"SIGTERM before an answer", "", before + term, nil, true},
		{"SIGTERM between messages", "", before + more + term, nil, true},
		{"SIGTERM while an agent speaks", "", before + more + agent + term, nil, true},
		{"SIGTERM after the last message", "", before + more + last + term, nil, false},
		{"SIGTERM after the result", "", before + more + last + done + term, nil, false},
		{"SIGTERM after a prompt of the CLI", "", before + last + done + inject + term, nil, false},
		{"SIGKILL", "", before + more, nil, true},
		{"SIGKILL by the runner", "", before + more, []int{1}, false},
		{"SIGKILL before the session", "", start + prompt + match, nil, true},
		{"no end, or a journal that is cut off at its start", "", start, nil, true},
		{"no end before the first prompt", "", start + text, nil, true},
		{"no end before the first prompt, by the runner", "", start + text, []int{1}, false},
		{"no end, expected", twoSteps + strings.Replace(exits, "143", "137", 1), start + text, nil, false},
		{"no end on a terminal", "", start + strings.Replace(text, `"model"`, `"interactive":true,"model"`, 1), nil, false},
		{"no end of a real claude that asked the API", "", start + `{"type":"request","path":"/v1/messages","status":200}` + "\n", nil, false},
		{"no end after the last message", "", before + last, nil, true},
		{"no end after the result", "", before + last + done, nil, false},
		{"SIGINT", "", before + more + broken + abort + ended, nil, true},
		{"SIGINT of a driven process", "", setupLines + prompt + match + more + broken + abort + ended, nil, false},
		{"no signal", "", before + more + abort + ended, nil, false},
		{"under a fault", "", strings.Replace(start, `"ppid"`, `"fault":"no-result","ppid"`, 1) + text + prompt + match + term, nil, false},
		{"a scripted failure", hang, before + term, nil, false},
		{"an expected exit", twoSteps + exits, before + more + term, nil, false},
		{"another expected exit", twoSteps + strings.Replace(exits, "143", "1", 1), before + more + term, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cut := false
			for _, f := range fromVerdict(t, verdict.Input{Killed: tt.killed}, tt.scenario, tt.lines) {
				cut = cut || strings.HasPrefix(f, "S05 error")
			}
			if cut != tt.cut {
				t.Errorf("S05: %t, want %t", cut, tt.cut)
			}
		})
	}
}

// S10 is reported if claude was not started. Findings that the processes recorded are kept.
func TestStartedAndRecorded(t *testing.T) {
	const (
		side     = `{"type":"side_request","namespace":"","kind":"models","path":"/v1/models","model":"","status":200,"ms":1}` + "\n"
		start    = `{"type":"start","argv":["claude","--version"],"cwd":"/w","ppid":9}` + "\n" + `{"type":"exit","code":0,"ms":3}` + "\n"
		server   = `{"type":"finding","id":"S14","level":"error","text":"x","server":"bad"}` + "\n"
		gate     = `{"type":"finding","id":"T01","level":"error","text":"x"}` + "\n"
		accepted = "default_response = \"x\"\n[[expect]]\nmcp = { server = \"bad\" }\nnever = true\n"
		demanded = "default_response = \"x\"\n[[expect]]\nmcp = { server = \"bad\" }\ntimes = \"<=2\"\n"
	)
	for _, tt := range []struct {
		name, scenario, lines string
		in                    verdict.Input
		want                  []string
	}{
		{"nothing", "", "", verdict.Input{}, []string{"S10 error 0"}},
		{"nothing, accepted", "", "", verdict.Input{JudgingOptions: verdict.JudgingOptions{AllowNoRuns: true}}, []string{}},
		{"nothing, lenient", "", "", verdict.Input{Lenient: true}, []string{}},
		{"a request beside the conversation", "", side, verdict.Input{}, []string{}},
		{"a process without a session", "", start, verdict.Input{}, []string{}},
		{"a server", "", start + server + server, verdict.Input{}, []string{"S14 error 0"}},
		{"a server that is never to be asked", accepted, start + server, verdict.Input{}, []string{}},
		{"a server that may be asked", demanded, start + server, verdict.Input{}, []string{"S14 error 0"}},
		{"lenient", "", start + server + gate, verdict.Input{Lenient: true}, []string{"T01 error 0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, fromVerdict(t, tt.in, tt.scenario, tt.lines)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// A journal of an older version has no digest of its scenario, so a change cannot be detected.
func TestScenarioWithoutDigest(t *testing.T) {
	dir := t.TempDir()
	file, log := filepath.Join(dir, "s.toml"), filepath.Join(dir, "log.jsonl")
	lines := completeLines(strings.Replace(setupLines, `"scenario_file":""`, fmt.Sprintf(`"scenario_file":%q`, file), 1) + turnLines + closedLines)
	for name, text := range map[string]string{file: "default_response = \"x\"\n", log: lines} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var in verdict.Input
	if err := in.ReadJournalsAndLoadScenarios([]string{log}, ""); err != nil {
		t.Fatal(err)
	}
	if found := verdict.Judge(in).Findings; len(found) > 0 {
		t.Errorf("findings: %v", found)
	}
}

// A verdict in a journal has a time, which separates it from lines of a later verdict.
func TestLinesOfAVerdict(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for verdictOf, want := range map[string]string{"failed": "2026-01-02T03:04:05Z", "": ""} {
		r := verdict.Report{Verdict: verdictOf, Findings: []verdict.Finding{{ID: "S10", Level: "error"}}}
		line, ok := r.JournalLines(now)[0].(journal.Finding)
		if !ok || line.Time != want {
			t.Errorf("verdict %q: time %q, want %q", verdictOf, line.Time, want)
		}
	}
}

// Only a few of many warnings about unused rules are shown.
func TestTerminalOfUnusedRules(t *testing.T) {
	for n, want := range map[int]string{3: "", 4: "1 more rule also answered", 6: "3 more rules also answered"} {
		r := verdict.Report{Verdict: "ok"}
		for range n {
			r.Findings = append(r.Findings, verdict.Finding{ID: "S13", Level: "warn", Text: "it answered no prompt"})
		}
		var b strings.Builder
		if err := r.Write(&b, verdict.FormatLines); err != nil {
			t.Fatal(err)
		}
		if shown := strings.Count(b.String(), "warn S13"); shown != 3 || !strings.Contains(b.String(), want) || want == "" && strings.Contains(b.String(), "more rule") {
			t.Errorf("%d rules: %d shown in\n%s", n, shown, b.String())
		}
	}
}

package verdict_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// findingCase is a run that either causes the finding id or is correct.
type findingCase struct {
	id, name   string
	scenario   string // TOML; empty means none to judge by
	lines      string
	hasFinding bool
}

// S01 to S08, C14: for each finding, one set-up that causes it and one that does not.
func TestStrictness(t *testing.T) {
	const (
		started  = `{"type":"start","argv":["claude","-p"],"cwd":"/w","ppid":9}` + "\n"
		greeting = `{"type":"run","argv":["claude","-p"],"cwd":"/w","env":{},"settings":[],"scenario":"","scenario_file":"","model":"m","permission_mode":"default"}` + "\n"
		call     = `{"type":"tool","tool":"%s","tool_use_id":"t","input":{},"result":"x","is_error":true%s}` + "\n"
		denied   = `{"type":"permission","tool":"Write","tool_use_id":"t","decision":"reject","source":"config","reason_type":"%s"}` + "\n"
		expects  = "default_response = \"x\"\n[[expect]]\ntool = \"Write\"\n"
		turns    = "[[responses]]\npattern = { type = \"exact\", text = \"one\" }\nresponse = \"1\"\n[[responses.turns]]\nexpect = { type = \"exact\", text = \"two\" }\nresponse = \"2\"\n"
		match    = `{"type":"match","rule":"%s","prompt":"%s"}` + "\n"
		request  = `{"type":"request","path":"%s","model":"m","attempt":1,"status":%d,"error":"%s"}` + "\n"
	)
	asked := func(keys string) string {
		return `{"type":"request","session":"A","attempt":1,"path":"/v1/messages","model":"m","status":200,` + keys + "}\n"
	}
	came := func(tool, result string) string {
		return fmt.Sprintf(`"calls":[{"tool":%q,"tool_use_id":"t","input":{},"result":%q,"is_error":true}]`, tool, result)
	}
	other := func(prompt string) string {
		return fmt.Sprintf(`{"type":"match","session_id":"S","rule":"responses[9]","prompt":%q}`+"\n", prompt)
	}
	rule := func(rule, prompt string) string { return fmt.Sprintf(match, rule, prompt) }
	all := []findingCase{
		{"S01", "no scenario", "", started + greeting + turnLines + closedLines, true},
		{"S01", "a scenario", "", setupLines + turnLines + closedLines, false},
		{"S02", "a prompt without a rule", "", setupLines + strings.ReplaceAll(turnLines, "default_response", "") + closedLines, true},
		{"S02", "a default response", "", setupLines + turnLines + closedLines, false},
		{"S03", "a tool that is not there", "", setupLines + turnLines + fmt.Sprintf(call, "Write", `,"unknown":true`) + closedLines, true},
		{"S03", "one that is expected all the same", expects, setupLines + turnLines + fmt.Sprintf(call, "Write", `,"unknown":true`) + closedLines, false},
		{"S04", "one that was allowed", "", setupLines + turnLines + strings.Replace(fmt.Sprintf(denied, "mode"), "reject", "accept", 1) + fmt.Sprintf(call, "Write", "") + closedLines, false},
		{"S04", "a denied call", "", setupLines + turnLines + fmt.Sprintf(denied, "mode") + fmt.Sprintf(call, "Write", "") + closedLines, true},
		{"S04", "one that a rule denies", "", setupLines + turnLines + fmt.Sprintf(denied, "rule") + fmt.Sprintf(call, "Write", "") + closedLines, false},
		{"S04", "one that is expected", expects, setupLines + turnLines + fmt.Sprintf(denied, "mode") + fmt.Sprintf(call, "Write", "") + closedLines, false},
		{"S05", "a turn that was not reached", turns, setupLines + rule("responses[0]", "one") + closedLines, true},
		{"S05", "all were played", turns, setupLines + rule("responses[0]", "one") + rule("responses[0].turns[0]", "two") + closedLines, false},
		{"S05", "a step that was not reached", "", setupLines + turnLines + `{"type":"unplayed","text":"step 2 of 2"}` + "\n" + closedLines, true},
		{"S06", "an expectation that is not met", expects, setupLines + turnLines + closedLines, true},
		{"S06", "one that is", expects, setupLines + turnLines + strings.ReplaceAll(fmt.Sprintf(call, "Write", ""), "true", "false") + closedLines, false},
		{"S07", "a variable that means nothing", "", strings.Replace(setupLines, `"ppid":9`, `"ppid":9,"unknown_variables":["CLAUDELESS_X"]`, 1) + turnLines + closedLines, true},
		{"S07", "variables that are known", "", setupLines + turnLines + closedLines, false},
		{"S08", "a prompt that is nearly a command", "", strings.Replace(setupLines, `"-p"],"cwd":"/w","ppid":9`, `"chek"],"cwd":"/w","ppid":9,"meant":"check"`, 1) + turnLines + closedLines, true},
		{"S08", "a prompt", "", setupLines + turnLines + closedLines, false},
		{"S05", "sessions that take turns find a turn once", turns, setupLines + other("plain") + strings.ReplaceAll(other("plain"), `"S"`, `"Z"`) + rule("responses[0]", "one") + closedLines, true},
		{"S02", "a text that the CLI puts in", "", setupLines + turnLines + strings.Replace(rule("", "Stop hook feedback"), `"prompt"`, `"injected":true,"prompt"`, 1) + closedLines, false},
		{"S05", "a text of the CLI between turns", turns, setupLines + rule("responses[0]", "one") + strings.Replace(rule("", "Stop hook feedback"), `"prompt"`, `"injected":true,"prompt"`, 1) +
			rule("responses[0].turns[0]", "two") + closedLines, false},
		{"S02", "no rule, over the API", "", setupLines + turnLines + closedLines + asked(`"prompt":"x"`), true},
		{"S02", "a text of the CLI itself", "", setupLines + turnLines + closedLines + asked(`"prompt":"x","injected":true`), false},
		{"S03", "a tool that is not offered", "", setupLines + turnLines + closedLines + asked(`"not_offered":["Nope"]`), true},
		{"S03", "a tool that the CLI does not have", "", setupLines + turnLines + closedLines + asked(came("Nope", "<tool_use_error>Error: No such tool available: Nope</tool_use_error>")), true},
		{"S03", "one that speaks of another", "", setupLines + turnLines + closedLines + asked(came("Bash", "Error: No such tool available: Nope")), false},
		{"S04", "a denied call, over the API", "", setupLines + turnLines + closedLines + asked(came("Write", "Claude requested permissions to write to /x, but you haven't granted it yet.")), true},
		{"S04", "one that a rule denies, over the API", "", setupLines + turnLines + closedLines + asked(came("Write", "Permission to use Write has been denied.")), false},
		{"S04", "one that is expected, over the API", expects, setupLines + turnLines + closedLines + asked(came("Write", "Claude requested permissions to write to /x, but you haven't granted it yet.")), false},
		{"S05", "a turn, over the API", turns, setupLines + closedLines + asked(`"prompt":"one","rule":"responses[0]"`), true},
		{"S05", "all turns, over the API", turns, setupLines + closedLines + asked(`"prompt":"one","rule":"responses[0]"`) + asked(`"prompt":"two","rule":"responses[0].turns[0]"`), false},
		{"S05", "turns of a client without a session", turns, setupLines + closedLines + strings.ReplaceAll(asked(`"prompt":"one","rule":"responses[0]"`), `"session":"A",`, ""), false},
		{"S05", "a step, over the API", "", setupLines + turnLines + closedLines + asked(`"left":{"text":"step 2 of 2"}`), true},
		{"S05", "a step that came", "", setupLines + turnLines + closedLines + asked(`"left":{"text":"step 2 of 2"}`) + asked(`"rule":"responses[0]"`), false},
		{"S05", "a step, and then another prompt", "", setupLines + turnLines + closedLines + asked(`"left":{"text":"step 2 of 2"}`) + asked(`"prompt":"x","rule":"default_response","messages":["prompt","answer","closed","prompt"]`), true},
		{"S05", "a step that was interrupted", "", setupLines + turnLines + closedLines + asked(`"left":{"text":"step 2 of 2"}`) +
			asked(`"prompt":"x","rule":"default_response","messages":["prompt","answer","closed","interrupt","prompt"]`), false},
		{"S05", "a step whose process was ended", "", setupLines + turnLines + closedLines + asked(`"left":{"text":"step 2 of 2"}`) +
			asked(came("Bash", "[Tool call interrupted: the session ended before this call's result was recorded.]")+`,"prompt":"x","rule":"default_response","messages":["prompt","answer","closed","prompt"]`), false},
		{"S05", "a client that gave up", "", setupLines + turnLines + closedLines + asked(`"findings":["aborted: the client disconnected after 2 events"],"left":{"text":"step 2 of 2"}`), false},
		{"C14", "a base URL that ends in /v1", "", setupLines + turnLines + closedLines + fmt.Sprintf(request, "/v1/v1/messages", 404, "not found"), true},
		{"C14", "no version", "", setupLines + turnLines + closedLines + fmt.Sprintf(request, "/v1/messages", 400, "anthropic-version: header is required"), true},
		{"C14", "a call without a result", "", setupLines + turnLines + closedLines + fmt.Sprintf(request, "/v1/messages", 400, "messages.1: `tool_use` ids were found without `tool_result` blocks"), true},
		{"C14", "reasoning that was altered", "", setupLines + turnLines + closedLines + fmt.Sprintf(request, "/v1/messages", 400, "messages.1.content.0: Invalid `signature` in `thinking` block"), true},
		{"C14", "a request that is answered", "", setupLines + turnLines + closedLines + fmt.Sprintf(request, "/v1/messages", 200, ""), false},
		{"C14", "a model that is not there is no matter of conduct", "", setupLines + turnLines + closedLines + fmt.Sprintf(request, "/v1/messages", 404, "model: x"), false},
	}
	told := map[string][2]bool{}
	for _, tt := range all {
		t.Run(tt.id+" "+tt.name, func(t *testing.T) { tt.check(t) })
		pair := told[tt.id]
		pair[0], pair[1] = pair[0] || tt.hasFinding, pair[1] || !tt.hasFinding
		told[tt.id] = pair
	}
	for id, pair := range told {
		if pair != [2]bool{true, true} {
			t.Errorf("%s has no twin", id)
		}
	}
}

func (f *findingCase) check(t *testing.T) {
	t.Helper()
	var in verdict.Input
	for e, err := range journal.Read(strings.NewReader(completeLines(f.lines))) {
		if err != nil {
			t.Fatal(err)
		}
		in.Entries = append(in.Entries, e)
	}
	if f.scenario != "" {
		var err error
		if in.Scenario, err = scenarios.Parse("s.toml", []byte(f.scenario), scenarios.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r := verdict.Judge(in)
	var got, want []string
	for _, found := range r.Findings {
		if found.ID == f.id || found.ID != "S09" && found.ID != "S13" { // the scenarios are reduced to one point
			got = append(got, found.ID)
		}
	}
	for _, x := range r.Expectations {
		if !x.Met {
			got = append(got, "S06")
		}
	}
	if f.hasFinding {
		want = []string{f.id}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

package verdict_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/verdict"
	"github.com/claudeless/claudeless/scenarios"
)

// finds is a run and what is found of it: one that makes a finding, or its twin that
// behaves, which has none.
type finds struct {
	id, name string
	scenario string // TOML; empty = there is none to judge by
	lines    string
	bad      bool
}

// S01 to S08, C14: each has a set-up that makes it and one that does not.
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
	rule := func(rule, prompt string) string { return fmt.Sprintf(match, rule, prompt) }
	all := []finds{
		{"S01", "no scenario", "", started + greeting + turn + closed, true},
		{"S01", "a scenario", "", setup + turn + closed, false},
		{"S02", "a prompt without a rule", "", setup + strings.ReplaceAll(turn, "default_response", "") + closed, true},
		{"S02", "a default response", "", setup + turn + closed, false},
		{"S03", "a tool that is not there", "", setup + turn + fmt.Sprintf(call, "Write", `,"unknown":true`) + closed, true},
		{"S03", "one that is expected all the same", expects, setup + turn + fmt.Sprintf(call, "Write", `,"unknown":true`) + closed, false},
		{"S04", "a denied call", "", setup + turn + fmt.Sprintf(denied, "mode") + fmt.Sprintf(call, "Write", "") + closed, true},
		{"S04", "one that a rule denies", "", setup + turn + fmt.Sprintf(denied, "rule") + fmt.Sprintf(call, "Write", "") + closed, false},
		{"S04", "one that is expected", expects, setup + turn + fmt.Sprintf(denied, "mode") + fmt.Sprintf(call, "Write", "") + closed, false},
		{"S05", "a turn that was not played", turns, setup + rule("responses[0]", "one") + closed, true},
		{"S05", "all were played", turns, setup + rule("responses[0]", "one") + rule("responses[0].turns[0]", "two") + closed, false},
		{"S05", "a step that was not played", "", setup + turn + `{"type":"unplayed","text":"step 2 of 2"}` + "\n" + closed, true},
		{"S06", "an expectation that is not met", expects, setup + turn + closed, true},
		{"S06", "one that is", expects, setup + turn + strings.ReplaceAll(fmt.Sprintf(call, "Write", ""), "true", "false") + closed, false},
		{"S07", "a variable that means nothing", "", strings.Replace(setup, `"ppid":9`, `"ppid":9,"unknown_variables":["CLAUDELESS_X"]`, 1) + turn + closed, true},
		{"S07", "variables that are known", "", setup + turn + closed, false},
		{"S08", "a prompt that is nearly a command", "", strings.Replace(setup, `"-p"],"cwd":"/w","ppid":9`, `"chek"],"cwd":"/w","ppid":9,"meant":"check"`, 1) + turn + closed, true},
		{"S08", "a prompt", "", setup + turn + closed, false},
		{"C14", "a base URL that ends in /v1", "", setup + turn + closed + fmt.Sprintf(request, "/v1/v1/messages", 404, "not found"), true},
		{"C14", "no version", "", setup + turn + closed + fmt.Sprintf(request, "/v1/messages", 400, "anthropic-version: header is required"), true},
		{"C14", "a request that is answered", "", setup + turn + closed + fmt.Sprintf(request, "/v1/messages", 200, ""), false},
		{"C14", "a model that is not there is no matter of conduct", "", setup + turn + closed + fmt.Sprintf(request, "/v1/messages", 404, "model: x"), false},
	}
	told := map[string][2]bool{}
	for _, tt := range all {
		t.Run(tt.id+" "+tt.name, func(t *testing.T) { tt.check(t) })
		pair := told[tt.id]
		pair[0], pair[1] = pair[0] || tt.bad, pair[1] || !tt.bad
		told[tt.id] = pair
	}
	for id, pair := range told {
		if pair != [2]bool{true, true} {
			t.Errorf("%s has no twin", id)
		}
	}
}

func (f *finds) check(t *testing.T) {
	t.Helper()
	var in verdict.Input
	for e, err := range journal.Read(strings.NewReader(complete(f.lines))) {
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
		got = append(got, found.ID)
	}
	for _, x := range r.Expectations {
		if !x.Met {
			got = append(got, "S06")
		}
	}
	if f.bad {
		want = []string{f.id}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

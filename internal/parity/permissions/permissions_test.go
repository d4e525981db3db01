package permissions_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/parity"
	"github.com/claudeless/claudeless/internal/parity/permissions"
)

func load(t *testing.T, text string) ([]*permissions.CallGroupsFile, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "calls.toml")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	files, problems := permissions.Load([]string{name})
	return files, strings.ReplaceAll(problems.Error(), name, "calls.toml")
}

// All mistakes of a file are reported with their positions.
func TestProblems_A11(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "calls.toml:1:1: missing key `groups`"},
		{"[[groups]]\nname = 'a'\ncalls = ['ls']\n[[groups]]\nname = 'a'\ncalls = ['ls']", `calls.toml:5:1: duplicate group "a"`},
		{"[[groups]]\nname = 'a'\ncalls = [{ tool = 'Read', input = 'x' }]", "calls.toml:3:10: the input of a call must be a table"},
		{"[files]\n'../x' = ''\n[[groups]]\nname = 'a'\ncalls = ['ls']", "calls.toml:2:1: the path of a file must be inside the directory and contain no . or .. elements"},
		{"[[groups]]\nname = 'writes'\ncalls = ['ls']\n[[known]]\ngroup = 'write'\ncall = 'ls'\nreason = 'x'", `calls.toml:5:1: unknown group "write"`},
	} {
		files, problems := load(t, tt.text)
		if problems != tt.want || files != nil {
			t.Errorf("%q: %d files, %s; want %s", tt.text, len(files), problems, tt.want)
		}
	}
}

// A session has the rules, the mode and the calls of its group. Placeholders are replaced by the session's directories.
func TestSession_A11(t *testing.T) {
	files, problems := load(t, `
[files]
"a.txt" = "one"
[[groups]]
name = "g"
mode = "plan"
deny = ["Read({home}/x)"]
arguments = ["--bare"]
directories = ["{cwd}/../more"]
servers = { desk = { command = "desk" } }
calls = ["cat {cwd}/a {{ x }}", { tool = "Read", input = { file_path = "{home}/x" } }]`)
	if problems != "" {
		t.Fatal(problems)
	}
	g := files[0].Groups[0]
	c, err := g.SessionAsParityCase("/t/scenario.json", "/c", "/h")
	if err != nil {
		t.Fatal(err)
	}
	model, err := g.ScenarioJSON("/c", "/h")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{string(c.Settings), string(c.MCP), c.Runs[0].Args[len(c.Runs[0].Args)-2], c.Runs[0].Args[len(c.Runs[0].Args)-1], string(c.Files["a.txt"]), string(model)}
	want := []string{
		`{"permissions":{"additionalDirectories":["/c/../more"],"allow":[],"ask":[],"deny":["Read(/h/x)"]},"skipWebFetchPreflight":true,"useAutoModeDuringPlan":false}`,
		`{"mcpServers":{"desk":{"command":"desk"}}}`, "--permission-mode=plan", "--bare", "one",
		`{"responses":[{"pattern":{"type":"any"},"response":{"steps":[{"tool_calls":[{"tool":"Bash","input":{"command":"cat /c/a {{ x }}"}},` +
			`{"tool":"Read","input":{"file_path":"/h/x"}}]},{"text":"done"}]}}],"templates":false}`,
	}
	if diff := cmp.Diff(want, got); diff != "" || !c.InertShell {
		t.Errorf("session, inert shell %t (-want +got):\n%s", c.InertShell, diff)
	}
}

// A message has many calls, but not all calls of a long list.
func TestMessages_A11(t *testing.T) {
	files, problems := load(t, "[[groups]]\nname = 'g'\ncalls = ["+strings.Repeat("'ls',", 95)+"]")
	if problems != "" {
		t.Fatal(problems)
	}
	model, err := files[0].Groups[0].ScenarioJSON("/c", "/h")
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, message := range strings.Split(string(model), "tool_calls")[1:] {
		got = append(got, strings.Count(message, `"Bash"`))
	}
	if want := []int{40, 40, 15}; !slices.Equal(got, want) {
		t.Errorf("calls in each message: %v, want %v", got, want)
	}
}

// The decisions of a session are read from its events and compared call by call.
func TestJudge_A11(t *testing.T) {
	files, problems := load(t, "[[groups]]\nname = 'g'\ncalls = ['0', '1', '2', '3', '4', '5']\n[[known]]\ncall = '2'\nreason = 'why'")
	if problems != "" {
		t.Fatal(problems)
	}
	const (
		allowed  = `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"ID"}]}}` + "\n" + `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"ID","content":"ok"}]},"tool_result_meta":[{"id":"ID","permission_decision":{"decision":"accept","reason_type":"rule"}}]}` + "\n"
		denied   = `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"ID"}]}}` + "\n" + `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"ID","content":"no"}]},"tool_result_meta":[{"id":"ID","permission_decision":{"decision":"reject","reason_type":"mode"}}]}` + "\n"
		question = `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"ID"}]}}` + "\n" + `{"type":"control_request","request":{"subtype":"can_use_tool","tool_use_id":"ID"}}` + "\n" +
			`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"ID","content":"no"}]},"tool_result_meta":[{"id":"ID","permission_decision":{"decision":"reject","source":"user_reject"}}]}` + "\n"
		rejected = `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"ID"}]}}` + "\n" + `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"ID","content":"<tool_use_error>bad input</tool_use_error>"}]}}` + "\n"
	)
	session := func(problem string, events ...string) []permissions.CallOutcome {
		rec := &parity.Recording{Runs: []parity.Run{{Code: 3, Stderr: "out of\nmemory"}}}
		for i, e := range events {
			rec.Runs[0].Stdout += strings.ReplaceAll(e, "ID", string(rune('a'+i)))
		}
		if problem != "" {
			rec.Problems = []parity.LaneProblem{{Kind: "dialogue", Text: "no result"}, {Kind: "timeout", Text: problem}}
		}
		return permissions.ReadOutcomes(rec, 6)
	}
	var r permissions.CallVerdictsReport
	r.Calls = files[0].Groups[0].CompareOutcomes(session("", allowed, allowed, denied, question, rejected), session("too slow", allowed, question, question, question, denied))
	var got strings.Builder
	if err := r.WriteText(&got); err != nil {
		t.Fatal(err)
	}
	const want = `not compared: 4 (calls.toml:3, group g)
  ours: no decision: the tool rejects the input: bad input
  real: deny (mode)
not compared: 5 (calls.toml:3, group g)
  ours: no decision: the session ended before the call, with exit code 3: out of
  real: no decision: too slow
looser: 1 (calls.toml:3, group g)
  ours: allow (rule)
  real: ask
6 calls, 2 same, 1 looser, 0 stricter, 1 known, 2 not compared
`
	text := got.String()
	for _, v := range r.Calls {
		text = strings.ReplaceAll(text, v.File, "calls.toml")
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if stale := files[0].ReportUnusedKnownDecisions(r.Calls); stale != nil || r.Calls[2].Known != "why" {
		t.Errorf("the known decision is stale (%v) or without its reason (%q)", stale, r.Calls[2].Known)
	}
}

// A known decision is accepted for its call. If it names a group, it is accepted only in that group. It is stale if its
// call was compared in every group that it belongs to and was decided equally in all of them.
func TestKnownDecisions_A11(t *testing.T) {
	allow, deny := permissions.CallOutcome{Decision: permissions.Allow}, permissions.CallOutcome{Decision: permissions.Deny}
	for _, tt := range []struct {
		name, known      string
		one, two         permissions.CallOutcome // claudeless's decisions in groups "one" and "two"; the real CLI allows
		wantOne, wantTwo permissions.DecisionComparisonStatus
		wantStale        bool
	}{
		{"it accepts every group", "", deny, deny, permissions.StatusKnown, permissions.StatusKnown, false},
		{"it accepts the group that it names", "group = 'two'", deny, deny, permissions.StatusStricter, permissions.StatusKnown, false},
		{"it accepts nothing", "", allow, allow, permissions.StatusSame, permissions.StatusSame, true},
		{"its group is decided the same", "group = 'one'", allow, deny, permissions.StatusSame, permissions.StatusStricter, true},
		{"a call was not compared", "", allow, permissions.CallOutcome{}, permissions.StatusSame, permissions.StatusNotCompared, false},
		{"a call of another group was not compared", "group = 'one'", allow, permissions.CallOutcome{}, permissions.StatusSame, permissions.StatusNotCompared, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files, problems := load(t, "[[groups]]\nname = 'one'\ncalls = ['ls', 'pwd']\n[[groups]]\nname = 'two'\ncalls = ['ls', 'pwd']\n[[known]]\ncall = 'ls'\nreason = 'why'\n"+tt.known)
			if problems != "" {
				t.Fatal(problems)
			}
			groups := files[0].Groups
			one := groups[0].CompareOutcomes([]permissions.CallOutcome{tt.one, {}}, []permissions.CallOutcome{allow, allow})
			two := groups[1].CompareOutcomes([]permissions.CallOutcome{tt.two, {}}, []permissions.CallOutcome{allow, allow})
			if one[0].Status != tt.wantOne || two[0].Status != tt.wantTwo {
				t.Errorf("%s and %s, want %s and %s", one[0].Status, two[0].Status, tt.wantOne, tt.wantTwo)
			}
			other := *two[0]
			other.File, other.Status = "other.toml", permissions.StatusNotCompared // calls in other files have no effect
			if stale := files[0].ReportUnusedKnownDecisions(append(append(one, two...), &other)); (stale != nil) != tt.wantStale {
				t.Errorf("stale: %v", stale)
			}
		})
	}
}

// Only decisions that differ without a known reason are printed as differences and fail in the JUnit report.
func TestReports_A11(t *testing.T) {
	r := &permissions.CallVerdictsReport{}
	for _, s := range []permissions.DecisionComparisonStatus{permissions.StatusSame, permissions.StatusLooser, permissions.StatusStricter, permissions.StatusKnown, permissions.StatusNotCompared} {
		r.Calls = append(r.Calls, &permissions.DecisionComparison{File: "f.toml", Line: 1, Group: "g", Call: string(s) + "\x1bcall", Status: s})
	}
	var text, junit strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteJUnit(&junit); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for line := range strings.Lines(text.String()) {
		if strings.Contains(line, "(f.toml:1") {
			got["text"] = append(got["text"], strings.Fields(line)[0])
		}
	}
	for line := range strings.Lines(junit.String()) {
		if _, message, failed := strings.Cut(line, "<failure message=\""); failed {
			status, _, _ := strings.Cut(message, `"`)
			got["junit"] = append(got["junit"], status)
		}
	}
	if strings.Contains(text.String(), "\x1b") || !strings.Contains(text.String(), `looser\x1bcall`) {
		t.Errorf("control characters of a call: %q", text.String())
	}
	want := map[string][]string{"text": {"not", "stricter:", "looser:"}, "junit": {"looser", "stricter", "not compared"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s\n%s", diff, text.String(), junit.String())
	}
}

// A session that never ran has no decisions, and the report gives the reason.
func TestReadWithoutRuns(t *testing.T) {
	got := permissions.ReadOutcomes(&parity.Recording{Problems: []parity.LaneProblem{{Kind: "start", Text: "no such file"}}}, 1)
	if len(got) != 1 || got[0].Decision != "" || got[0].Missing == "" {
		t.Errorf("%+v", got)
	}
	if got := permissions.ReadOutcomes(&parity.Recording{}, 1); got[0].Missing != "the session did not start" {
		t.Errorf("without a problem: %+v", got)
	}
}

// The text of a Bash call is its command, and the text of other calls is their name and input.
func TestCallText(t *testing.T) {
	for want, c := range map[string]permissions.Call{
		"ls":                    {Tool: "Bash", Input: []byte(`{"command":"ls"}`)},
		`Bash {"x":1}`:          {Tool: "Bash", Input: []byte(`{"x":1}`)},
		`Read {"command":"ls"}`: {Tool: "Read", Input: []byte(`{"command":"ls"}`)},
	} {
		if got := c.CommandOrNameAndInput(); got != want {
			t.Errorf("%s %s: %q, want %q", c.Tool, c.Input, got, want)
		}
	}
}

// The reader does not panic for any file, and an accepted file can be played.
func FuzzLoad(f *testing.F) {
	f.Add("[[groups]]\nname = 'a'\ncalls = ['ls', { tool = 'Read', input = {} }]\n[[known]]\ncall = 'ls'\nreason = 'x'")
	f.Add("groups = [{}]")
	f.Fuzz(func(t *testing.T, text string) {
		files, problems := load(t, text)
		if (problems == "") != (len(files) == 1) && !strings.Contains(problems, "warning") {
			t.Fatalf("%d files, %s", len(files), problems)
		}
		for _, file := range files {
			for _, g := range file.Groups {
				if _, err := g.ScenarioJSON("/c", "/h"); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

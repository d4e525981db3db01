package verdict_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

var update = flag.Bool("update", false, "rewrite the expected reports and pages in testdata")

// reports returns verdicts of each kind, by name.
func reports() map[string]verdict.Report {
	code := func(n int) *int { return &n }
	return map[string]verdict.Report{
		"good": {Verdict: "ok", Command: &verdict.CommandOutcome{Argv: []string{"go", "test"}, MS: 1500}},
		"bad": {
			Verdict: "failed", Guard: "path",
			Expectations: []verdict.ExpectationResult{
				{File: "s.toml", Line: 3, Text: "expected one"},
				{File: "s.toml", Text: "expected | two", Got: "it is\n3"},
				{Text: "expected three", Met: true},
				{Text: "expected four", Met: true, Got: "4 of them"},
			},
			Findings: []verdict.Finding{
				{ID: "C01", Level: "error", Text: "a thing", Advice: "do it\nor not", File: "a,b:c.toml", Line: 7, PID: 5},
				{ID: "S09", Level: "warn", Text: "100% of | it", File: "s.toml"},
				{ID: "X01", Level: "info", Text: "for information", Line: 9},
			},
			Runs: []verdict.Run{
				{PID: 5, Argv: []string{"claude", "-p"}, Prompts: []string{"hi", strings.Repeat("a", 100), strings.Repeat("b", 101)}, Tools: []string{"Bash"}, Code: code(1)},
				{PID: 6, Argv: []string{"claude"}, Signal: "SIGKILL"},
			},
			Command: &verdict.CommandOutcome{Argv: []string{"go", "test"}, Code: 2, MS: 1500},
		},
		"one": {
			Verdict: "ok", Expectations: []verdict.ExpectationResult{{Text: "expected one", Met: true}}, Runs: []verdict.Run{{PID: 5}},
			Findings: []verdict.Finding{{ID: "S09", Level: "warn", Text: "a warning"}},
		},
		"screens": {Verdict: "ok", Terminal: &verdict.TerminalSummary{
			Screens: 2, States: []string{"prompt", "trust"}, Dialogs: []verdict.Dialog{{State: "trust", Answer: "yes"}, {State: "permission"}}, LostKeys: 1,
		}},
		"still": {Verdict: "ok", Terminal: &verdict.TerminalSummary{Screens: 1}},
		"faults": {Verdict: "failed", Faults: []verdict.FaultResult{
			{Name: "survived", Outcome: "survived", MS: 1500},
			{Name: "failed", Outcome: "failed", Code: 1, MS: 2000},
			{Name: "hung", Outcome: "hung", Code: -1, MS: 30000, Bug: "it hangs", Advice: "set a limit"},
			{Name: "hung-2", Outcome: "hung", Bug: "it hangs", Advice: "set a limit"},
		}},
	}
}

// Verdicts in the formats for people, GitHub and JUnit: testdata/reports.txtar has a file for each report and format.
func TestFormats(t *testing.T) {
	const name = "testdata/reports.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	formats := map[string]verdict.Format{"txt": verdict.FormatLines, "github": verdict.FormatAnnotations, "md": verdict.FormatMarkdown, "xml": verdict.FormatJUnit, "json": verdict.FormatJSON}
	for i, file := range archive.Files {
		which, format, _ := strings.Cut(file.Name, ".")
		r, found := reports()[which]
		as, known := formats[format]
		if !found || !known {
			t.Fatalf("%s: no such report or format", file.Name)
		}
		var got strings.Builder
		if err := r.Write(&got, as); err != nil {
			t.Fatal(err)
		}
		if *update {
			archive.Files[i].Data = []byte(got.String())
		} else if diff := cmp.Diff(string(file.Data), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file.Name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The exit code of the command has precedence, then expectations, faults, conduct, the guard and the set-up.
func TestExitCode(t *testing.T) {
	finding := func(id, level string) []verdict.Finding { return []verdict.Finding{{ID: id, Level: level}} }
	unmet := []verdict.ExpectationResult{{Met: true}, {}}
	for _, tt := range []struct {
		name string
		r    verdict.Report
		want int
	}{
		{"nothing", verdict.Report{}, 0},
		{"a command that succeeded", verdict.Report{Command: &verdict.CommandOutcome{}, Expectations: unmet}, verdict.ExitUnmetExpectation},
		{"a command that failed", verdict.Report{Command: &verdict.CommandOutcome{Code: 9}, Expectations: unmet}, 9},
		{"expectations", verdict.Report{Expectations: unmet, Findings: finding("C01", "error")}, verdict.ExitUnmetExpectation},
		{"met ones", verdict.Report{Expectations: unmet[:1]}, 0},
		{"a fault", verdict.Report{Faults: []verdict.FaultResult{{Outcome: "hung"}}, Findings: finding("G01", "error")}, verdict.ExitWrongUsage},
		{"clean faults", verdict.Report{Faults: []verdict.FaultResult{{Outcome: "survived"}, {Outcome: "failed"}}}, 0},
		{"conduct", verdict.Report{Findings: append(finding("S01", "error"), finding("C01", "error")...)}, verdict.ExitWrongUsage},
		{"the guard", verdict.Report{Findings: append(finding("S01", "error"), finding("G01", "error")...)}, verdict.ExitGuardBreach},
		{"the set-up", verdict.Report{Findings: finding("S01", "error")}, verdict.ExitSetUpFinding},
		{"a gate", verdict.Report{Findings: finding("T01", "error")}, verdict.ExitSetUpFinding},
		{"warnings", verdict.Report{Findings: finding("C01", "warn")}, 0},
		{"another kind", verdict.Report{Findings: finding("J01", "error")}, 0},
	} {
		if got := tt.r.ExitCode(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// The set-up findings that fail a run are its errors and the expectations that were not met.
func TestSetUpFindings(t *testing.T) {
	r := reports()["bad"]
	r.Findings = append(r.Findings, verdict.Finding{ID: "S01", Level: "error", Text: "x"})
	var got []string
	for _, f := range r.SetUpErrorsAndUnmetExpectations() {
		got = append(got, f.String())
	}
	want := []string{"s.toml:3: S06: expected one", "s.toml: S06: expected | two, but it is\n3", "S01: x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("a,b:c.toml:7: C01: a thing (do it)", r.Findings[0].String()); diff != "" {
		t.Errorf("a finding on one line (-want +got):\n%s", diff)
	}
}

// No text of a report shows a secret of the environment or of a command line.
func TestRedacted(t *testing.T) {
	const secret = "hunter22hunter"
	for _, r := range []verdict.Report{
		{Verdict: "failed", Findings: []verdict.Finding{{ID: "C01", Text: "it is " + secret}}},
		{
			Verdict: "failed", Command: &verdict.CommandOutcome{Argv: []string{"run", "--token", "other4567", secret}, Code: 1},
			Runs: []verdict.Run{{Argv: []string{"claude", "--api-key", "other4567"}, Prompts: []string{"say " + secret}}},
		},
	} {
		out, err := r.Redacted([]string{"MY_TOKEN=" + secret})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := out.Write(&text, verdict.FormatJSON); err != nil {
			t.Fatal(err)
		}
		if s := text.String(); strings.Contains(s, secret) || strings.Contains(s, "other4567") || !strings.Contains(s, "[redacted]") || out.Verdict != "failed" {
			t.Errorf("redacted:\n%s", s)
		}
	}
}

// An excerpt of a pattern ends before a secret, or shows that one is redacted: a part of a secret
// would not be recognized later (A4).
func TestExcerptsHideSecrets(t *testing.T) {
	s, err := scenarios.Parse("s.toml", []byte("[[responses]]\nresponse = \"x\"\npattern = { type = \"contains\", text = \""+strings.Repeat("y", 50)+" hunter22hunter22hunter22\" }\n"), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const secret = "hunter22hunter22hunter22"
	in := verdict.Input{Scenario: s, Environ: []string{"MY_TOKEN=" + secret}}
	for e, err := range journal.Read(strings.NewReader(`{"time":"2026-01-15T10:30:00Z","pid":1,"session_id":"","type":"request","path":"/v1/messages","prompt":"z","status":200,"attempt":1}` + "\n")) {
		if err != nil {
			t.Fatal(err)
		}
		in.Entries = append(in.Entries, e)
	}
	text := fmt.Sprint(verdict.Judge(in))
	if !strings.Contains(text, "[redact") || strings.Contains(strings.ReplaceAll(text, secret, ""), "hunter") {
		t.Error(text)
	}
}

func TestAppendTo(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log.jsonl")
	r := reports()["bad"]
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	if err := r.AppendToJournalFile(name, now, 1, nil); err == nil || !strings.Contains(err.Error(), "writing the verdict into the journal") {
		t.Errorf("no journal: %v", err)
	}
	if err := os.WriteFile(name, []byte(completeLines(setupLines)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.AppendToJournalFile(name, now, 1, nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n"); n != 2+len(r.Expectations)+len(r.Findings) {
		t.Errorf("%d lines:\n%s", n, data)
	}
	var in verdict.Input
	if err := in.ReadJournalsAndLoadScenarios([]string{name}, ""); err == nil || len(in.Entries) != 2 {
		t.Errorf("an earlier verdict is read again: %d entries, %v", len(in.Entries), err) // the scenario s does not exist
	}
}

// Journals are read line by line, each line once, sorted by time, without incomplete lines.
func TestReadFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const torn = `{"time":"2026` + "\n"
	prompt := func(pid, second, text string) string {
		return `{"time":"2026-01-02T03:04:0` + second + `Z","pid":` + pid + `,"session_id":"S","type":"prompt","uuid":"U","prompt":"` + text + `"}` + "\n"
	}
	one := write("one.jsonl", prompt("1", "3", "c")+torn+prompt("1", "5", "e")+torn)
	two := write("two.jsonl", prompt("2", "1", "a")+prompt("1", "4", "d")+prompt("2", "2", "b")+torn)
	same := write("same.jsonl", prompt("1", "3", "c")+torn+prompt("1", "5", "e")+torn)
	broken, empty := write("broken.jsonl", torn), write("empty.jsonl", "")
	for _, tt := range []struct {
		name     string
		journals []string
		process  int
		want     string
		torn     int
		problem  string
	}{
		{"one, as it is", []string{two}, 0, "adb", 1, ""},
		{"two, by time", []string{one, two}, 0, "abcde", 3, ""},
		{"one twice", []string{one, two, same}, 0, "abcde", 3, ""},
		{"one process", []string{one, two}, 2, "ab", 3, ""},
		{"nothing", []string{empty}, 0, "", 0, ""},
		{"nothing that can be read", []string{one, broken}, 0, "ce", 2, broken},
		{"no file", []string{filepath.Join(dir, "none")}, 0, "", 0, "reading a journal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := verdict.Input{OnlyProcess: tt.process}
			err := in.ReadJournalsAndLoadScenarios(tt.journals, "")
			if (err != nil) != (tt.problem != "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Fatalf("problem: %v", err)
			}
			var got strings.Builder
			for _, e := range in.Entries {
				got.WriteString(e.Prompt.Prompt)
			}
			if got.String() != tt.want || in.UnreadableLines != tt.torn {
				t.Errorf("%q, %d torn; want %q, %d", got.String(), in.UnreadableLines, tt.want, tt.torn)
			}
		})
	}
}

// Each run is checked against its own scenario, and expectations about the number of journals apply to all of them.
func TestScenariosOfRuns(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	digest := func(name string) string {
		s, err := verdict.LoadScenario(name)
		if err != nil {
			t.Fatal(err)
		}
		return s.Digest()
	}
	const expects = "default_response = \"x\"\n[[expect]]\nprompt = { type = \"exact\", text = \"%\" }\n"
	a, b := file("a.toml", strings.Replace(expects, "%", "hi", 1)), file("b.toml", strings.Replace(expects, "%", "ho", 1))
	run := func(scenario, digest, prompt string) string {
		text := strings.Replace(setupLines, `"scenario_file":""`, `"scenario_file":"`+scenario+`","scenario_digest":"`+digest+`"`, 1)
		lines := completeLines(text + strings.Replace(turnLines, `"prompt":"hi"`, `"prompt":"`+prompt+`"`, 1) + closedLines)
		return strings.ReplaceAll(lines, `"pid":1,`, map[bool]string{true: `"pid":1,`, false: `"pid":2,`}[scenario == a])
	}
	start := strings.ReplaceAll(completeLines(`{"type":"start","argv":["claude","--version"],"cwd":"/w","ppid":9}`+"\n"+`{"type":"exit","code":0,"ms":3}`+"\n"), `"pid":1,`, `"pid":3,`)
	for _, tt := range []struct {
		name     string
		journals []string
		in       verdict.Input
		scenario string
		want     []string // findings, and expectations with the actual values
	}{
		{"one", []string{run(a, digest(a), "hi")}, verdict.Input{}, "", []string{"met hi"}},
		{"two in one journal", []string{start + run(a, digest(a), "hi") + run(b, digest(b), "ho")}, verdict.Input{}, "", []string{"met hi", "met ho"}},
		{"two, one of which is not met", []string{run(a, digest(a), "hi"), run(b, digest(b), "hi")}, verdict.Input{}, "", []string{"met hi", "unmet ho"}},
		{"one that has changed", []string{run(a, "0", "hi")}, verdict.Input{}, "", []string{"met hi", "S17 error"}},
		{"one that has changed, lenient", []string{run(a, "0", "hi")}, verdict.Input{Lenient: true}, "", []string{"met hi"}},
		{"one of two has changed", []string{run(a, digest(a), "hi"), run(b, "0", "ho")}, verdict.Input{}, "", []string{"met hi", "met ho", "S17 error"}},
		{"another is named", []string{run(a, "0", "hi")}, verdict.Input{}, b, []string{"unmet ho"}},
		{"findings from elsewhere once", []string{run(a, digest(a), "hi"), run(b, digest(b), "ho") + "{\n"}, verdict.Input{Findings: []verdict.Finding{{ID: "G01", Level: "error"}}}, "", []string{"met hi", "met ho", "G01 error", "J01 warn"}},
		{"as many runs and journals as asked", []string{run(a, digest(a), "hi"), run(b, digest(b), "ho")}, verdict.Input{RequiredRuns: 2, RequiredJournals: 2}, "", []string{"met hi", "met ho"}},
		{"too few", []string{run(a, digest(a), "hi"), run(a, digest(a), "hi")}, verdict.Input{RequiredRuns: 2, RequiredJournals: 2}, "", []string{"met hi", "S18 error", "S18 error"}},
		{"too many", []string{run(a, digest(a), "hi"), run(b, digest(b), "ho")}, verdict.Input{RequiredRuns: 1, RequiredJournals: 1}, "", []string{"met hi", "met ho", "S18 error", "S18 error"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var journals []string
			for i, text := range tt.journals {
				journals = append(journals, file(string(rune('0'+i))+".jsonl", text))
			}
			in := tt.in
			if err := in.ReadJournalsAndLoadScenarios(journals, tt.scenario); err != nil {
				t.Fatal(err)
			}
			r := verdict.Judge(in)
			var got []string
			for _, x := range r.Expectations {
				for _, prompt := range []string{"hi", "ho"} {
					if strings.Contains(x.Text, `"`+prompt+`"`) {
						got = append(got, map[bool]string{true: "met ", false: "unmet "}[x.Met]+prompt)
					}
				}
			}
			got = append(got, findingIDs(r)...)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%+v", diff, r.Expectations)
			}
		})
	}
	t.Run("a scenario that is not there", func(t *testing.T) {
		for _, name := range []string{filepath.Join(dir, "none.toml"), "none"} {
			if _, err := verdict.LoadScenario(name); err == nil {
				t.Errorf("%s was loaded", name)
			}
		}
		var in verdict.Input
		if err := in.ReadJournalsAndLoadScenarios([]string{file("x.jsonl", run(filepath.Join(dir, "none.toml"), "", "hi"))}, ""); err == nil {
			t.Error("a run of a scenario that is not there was judged")
		}
	})
}

// Times in findings are in seconds, and a rule with `once` over the API counts first attempts only.
func TestDetailsOfFindings(t *testing.T) {
	late := judgeScenario(t, setupLines+turnLines+`{"type":"host","what":"answered_late","request_id":"r","subtype":"can_use_tool","ms":6000}`+"\n"+closedLines)
	if len(late.Findings) != 1 || !strings.Contains(late.Findings[0].Text, " 6 s ") {
		t.Errorf("%+v", late.Findings)
	}
	once := "[[responses]]\npattern = { type = \"any\" }\nonce = true\nresponse = \"x\"\n"
	request := func(attempt, prompt string) string {
		return `{"type":"request","session":"A","attempt":` + attempt + `,"path":"/v1/messages","model":"m","status":200,"prompt":"` + prompt + `","rule":"responses[0]","file":"s.toml","line":1}` + "\n"
	}
	for name, tt := range map[string]struct {
		lines string
		want  []string
	}{
		"one prompt":           {request("1", "hi"), []string{}},
		"asked again":          {request("1", "hi") + request("2", "hi"), []string{}},
		"a result":             {request("1", "hi") + request("1", ""), []string{}},
		"two prompts":          {request("1", "hi") + request("1", "ho"), []string{"S02 error 1"}},
		"two prompts, retried": {request("2", "hi") + request("1", "ho"), []string{}},
	} {
		if diff := cmp.Diff(tt.want, fromVerdict(t, verdict.Input{}, once, tt.lines)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// HasRunsOrRequests is true if a process ran as claude or a client sent a request to the API. Only processes
// that ran as claude are listed, not those of which the journal has only other lines.
func TestStarted(t *testing.T) {
	for kind, want := range map[string]bool{
		"start": true, "run": true, "request": true, "side_request": true, "exchange": true,
		"prompt": false, "gate": false, "mcp_call": false, "a later type": false,
	} {
		var in verdict.Input
		for e, err := range journal.Read(strings.NewReader(completeLines(`{"type":"` + kind + `"}`))) {
			if err != nil {
				t.Fatal(err)
			}
			in.Entries = append(in.Entries, e)
		}
		if got := in.HasRunsOrRequests(); got != want {
			t.Errorf("%s: %v", kind, got)
		}
		if runs, ran := verdict.Judge(in).Runs, kind == "start" || kind == "run"; (len(runs) == 1) != ran || len(runs) > 1 {
			t.Errorf("%s: runs %+v", kind, runs)
		}
	}
}

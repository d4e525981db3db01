package parity_test

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/parity"
)

var update = flag.Bool("update", false, "rewrite testdata/reports.txtar")

// Reports about cases of every status and about two versions; testdata/reports.txtar has them in every form.
func TestReportForms(t *testing.T) {
	const name = "testdata/reports.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	cases := func() *parity.Report {
		r := &parity.Report{Cases: []*parity.Verdict{
			{Case: "alike", Area: "b", Version: "1.0.0", File: "a.toml", Line: 1, OursMS: 500, RealMS: 1000},
			{Case: "known", Area: "a", Version: "1.0.0", File: "a.toml", Line: 2, Differences: []parity.Difference{{Path: "exit", Ours: "1", Real: "2", Known: "why"}}},
			{Case: "other", Area: "a", Version: "1.0.0", File: "a.toml", Line: 3, Differences: []parity.Difference{
				{Path: "stdout.result.text", Ours: "a\nb", Event: 1, Count: 2}, {Path: "stderr", Real: "x", Count: 1}, {Path: "exit", Ours: "1", Real: "2", Known: "why"},
			}},
			{Case: "lane", Area: "a", Version: "0.9.0", File: "a.toml", Line: 4, Differences: []parity.Difference{{Path: "lane", Ours: "no binary"}}},
		}}
		for _, v := range r.Cases {
			v.SetStatusFromDifferences()
		}
		r.Cases = append(r.Cases,
			&parity.Verdict{Case: "canned", Area: "a", Version: "1.0.0", File: "a.toml", Line: 5, Status: parity.StatusNotComparable, Reasons: []string{"a canned result", "a gate"}},
			&parity.Verdict{Case: "slow", Area: "b", Version: "1.0.0", File: "a.toml", Line: 6, Status: parity.StatusNotCompared, Reasons: []string{"too slow"}})
		return r
	}
	versions := func() *parity.Report {
		r := &parity.Report{}
		for _, name := range []string{"one", "two", "three", "four"} {
			v := &parity.Verdict{Case: name, Differences: []parity.Difference{{Path: "all", Ours: "a", Real: "b"}}}
			if name == "one" {
				v.Differences = append(v.Differences, parity.Difference{Path: "new", Real: "line\nbreak"}, parity.Difference{Path: "gone", Ours: strings.Repeat("é", 120)},
					parity.Difference{Path: "long", Ours: strings.Repeat("é", 121), Real: "x"}, parity.Difference{Path: "three", Real: "3"}, parity.Difference{Path: "pair", Real: "2"})
			}
			if name == "two" {
				v.Differences = append(v.Differences, parity.Difference{Path: "new", Ours: "was there"}, parity.Difference{Path: "three", Real: "3"}, parity.Difference{Path: "pair", Real: "2"})
			}
			if name == "three" {
				v.Differences = append(v.Differences, parity.Difference{Path: "three", Real: "3"})
			}
			r.Cases = append(r.Cases, v)
			v.SetStatusFromDifferences()
		}
		r.ConvertToVersionComparison(parity.HelpEntries{Version: "1.0.0"}, parity.HelpEntries{Version: "1.1.0"})
		return r
	}
	for i, file := range archive.Files {
		r := cases()
		if strings.HasPrefix(file.Name, "versions") {
			r = versions()
		}
		r.Verbose = strings.Contains(file.Name, "verbose")
		var got strings.Builder
		write := r.WriteText
		if strings.HasSuffix(file.Name, ".xml") {
			write = r.WriteJUnit
		}
		if err := write(&got); err != nil {
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
	if got := cases().Cases[2].UnknownDifferencePaths(); !cmp.Equal(got, []string{"stdout.result.text", "stderr"}) {
		t.Errorf("differences without an entry: %q", got)
	}
}

// Both programs must refuse to start: all their runs fail before the first event.
func TestRefused(t *testing.T) {
	refused := func() *parity.Recording {
		return &parity.Recording{Runs: []parity.Run{{Code: 1, Stderr: "first\n"}, {Code: 2, Stderr: "\nbad flag\nmore"}}}
	}
	some := []json.RawMessage{json.RawMessage(`{}`)}
	const want = "both programs refuse to start, with exit code 2: bad flag"
	for name, change := range map[string]func(*parity.Recording){
		"a request":      func(r *parity.Recording) { r.Requests = append(r.Requests, some...) },
		"a hook":         func(r *parity.Recording) { r.Hooks = some },
		"an MCP message": func(r *parity.Recording) { r.MCP = map[string][]json.RawMessage{"s": some} },
		"no run":         func(r *parity.Recording) { r.Runs = nil },
		"success":        func(r *parity.Recording) { r.Runs[0].Code = 0 },
		"a signal":       func(r *parity.Recording) { r.Runs[1].Signal = "SIGTERM" },
		"an event":       func(r *parity.Recording) { r.Runs[0].Stdout = `{"type":"system"}` },
	} {
		r := refused()
		change(r)
		if got := parity.RefusalByBothPrograms(r, refused()) + parity.RefusalByBothPrograms(refused(), r); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := parity.RefusalByBothPrograms(refused(), refused()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The report says which side reached its time limit, and does not report the other differences.
func TestTimedOut(t *testing.T) {
	slow := &parity.Recording{Problems: []parity.LaneProblem{{Kind: "dialogue", Text: "no result"}, {Kind: "timeout", Text: "too slow"}}}
	if got := parity.TextsOfTimeoutProblems(slow, &parity.Recording{}); !cmp.Equal(got, []string{"too slow"}) {
		t.Errorf("%q", got)
	}
	if got := parity.TextsOfTimeoutProblems(&parity.Recording{}, &parity.Recording{}); got != nil {
		t.Errorf("%q", got)
	}
}

// Values that differ between runs are replaced: ids by numbers, times and the like by a word, the longest path first.
// The notation of numbers and the order of keys are ignored.
func TestNormaliser(t *testing.T) {
	const a, b = "11111111-2222-4333-8444-555555555555", "22222222-2222-4333-8444-555555555555"
	for in, want := range map[string]string{
		`{"b":1.0,"a":[1,"x",null],"c":{}}`: `{"a":[1,"x",null],"b":1,"c":{}}`,
		`[]`:                                `[]`,
		`[[1],[2,3]]`:                       `[[1],[2,3]]`,
		`{"pid":7,"version":"2.1.330"}`:     `{"pid":"<pid>","version":"<version>"}`,
		`{"pid":null,"version":[1],"ppid":{"x":1}}`:     `{"pid":null,"ppid":{"x":1},"version":[1]}`,
		`{"session_id":"` + a + `","uuid":"` + b + `"}`: `{"session_id":"<id 1>","uuid":"<id 2>"}`,
		`["` + a + `","` + b + `","` + a + `"]`:         `["<id 1>","<id 2>","<id 1>"]`,
		`["/home/me/work/x","/home/me/x"]`:              `["<cwd>/x","<home>/x"]`,
		`no JSON in /home/me`:                           `no JSON in <home>`,
		`{"a":tru}`:                                     `{"a":tru}`,
		`[1,`:                                           `[1,`,
		`"/home/me`:                                     `"<home>`,
	} {
		n := parity.NewNormaliser(map[string]string{"": "<none>", "/home/me": "<home>", "/home/me/work": "<cwd>"})
		got := strings.NewReplacer(`:<pid>`, `:"<pid>"`, `:<version>`, `:"<version>"`, `:<id 1>`, `:"<id 1>"`, `:<id 2>`, `:"<id 2>"`).Replace(n.JSON(json.RawMessage(in)))
		if got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// A problem is reported for the side where it occurs.
func TestCompareSides(t *testing.T) {
	problem := &parity.Recording{Problems: []parity.LaneProblem{{Kind: "timeout", Text: "too slow"}}}
	for _, got := range [][]parity.Difference{parity.Compare(problem, &parity.Recording{}), parity.Compare(&parity.Recording{}, problem)} {
		if len(got) != 1 || got[0].Path != "problem.timeout" || (got[0].Ours == "") == (got[0].Real == "") {
			t.Errorf("%+v", got)
		}
	}
	if got := parity.Compare(problem, &parity.Recording{}); got[0].Ours == "" {
		t.Errorf("our problem is told of the real CLI: %+v", got)
	}
	// For lists, only the elements that one side has are reported.
	event := func(list string) *parity.Recording {
		return &parity.Recording{Runs: []parity.Run{{Stdout: `{"type":"a","tools":[` + list + "]}\n"}}}
	}
	for _, d := range [][]parity.Difference{parity.Compare(event(`"x","why"`), event(`"x"`)), parity.Compare(event(`"x"`), event(`"x","why"`))} {
		if len(d) != 1 || strings.Contains(d[0].Ours+d[0].Real, "x") || !strings.Contains(d[0].Ours+d[0].Real, "why") {
			t.Errorf("%+v", d)
		}
	}
}

// A text that fits on one screen is complete, to its last line and column.
func TestOneScreenIsFull(t *testing.T) {
	text := strings.Repeat(strings.Repeat("é", 160)+"\n", 20)
	if got := parity.ShortenReportItemsToOneScreen([]string{text}); got != text {
		t.Errorf("%d bytes of %d:\n%s", len(got), len(text), got)
	}
}

// Package verdict judges a whole run, of one process or of many, by its journal:
// what the scenario expects, how the caller treats claude, and whether the set-up
// makes sense. It writes the reports.
//
// Its one invariant: a verdict depends on the journal and the scenario alone, so
// that `claudeless verify` finds later what `claudeless exec` found at once. It
// starts nothing and knows no lanes.
package verdict

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/diag"
	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// Input is what is judged. The zero value is a run in which nothing happened.
type Input struct {
	Entries []journal.Entry
	// Scenario holds the expectations; nil = there are none.
	Scenario *scenarios.Scenario
	// Lenient leaves out the findings about the set-up (S…).
	Lenient bool
	// Findings were made by others: the guard, and what was left running.
	Findings []Finding
	// Torn is how many lines of the journal could not be read.
	Torn int
	// Killed are processes that were ended from outside by whoever ran the command:
	// their end is nobody's fault.
	Killed []int
}

// Report is the verdict. Its JSON form is that of --json; lists are never null.
type Report struct {
	Verdict      string        `json:"verdict"` // "ok" or "failed"
	Findings     []Finding     `json:"findings"`
	Expectations []Expectation `json:"expectations"`
	Unmatched    []Unmatched   `json:"unmatched"`
	Runs         []Run         `json:"runs"`
	// Guard says which protection was active; empty = none was needed.
	Guard string `json:"guard,omitempty"`
	// Faults are the rows of --faults; nil = none was tried.
	Faults []Fault `json:"faults,omitempty"`
	// Command is how the command ended; nil = there was none.
	Command *Command `json:"command,omitempty"`
}

// Finding is one thing that is wrong.
type Finding struct {
	ID     string `json:"id"`
	Level  string `json:"level"` // "error", "warn" or "info"
	Text   string `json:"text"`
	Advice string `json:"advice"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Time   string `json:"time"`
	PID    int    `json:"pid"`
}

// Expectation is one [[expect]] and what came of it.
type Expectation struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
	Met  bool   `json:"met"`
	Got  string `json:"got"`
}

// Unmatched is a prompt that no rule answered.
type Unmatched struct {
	Prompt  string   `json:"prompt"`
	Nearest []string `json:"nearest"`
}

// Command is how the command of `claudeless exec` ended.
type Command struct {
	Argv   []string `json:"argv"`
	Code   int      `json:"code"`
	Signal string   `json:"signal,omitempty"`
	MS     float64  `json:"ms"`
}

// Fault is how the command came through a fault of the catalogue.
type Fault struct {
	Name string `json:"name"`
	// Outcome is "survived" (it ended well, and rightly so), "failed" (it said that it
	// could not do its work), "hung", "crashed" or "lied" (it ended well, but what it was
	// after never came).
	Outcome string  `json:"outcome"`
	Code    int     `json:"code"`
	MS      float64 `json:"ms"`
	Bug     string  `json:"bug"`
	Advice  string  `json:"advice"`
}

// Clean tells whether a caller may come through a fault like that.
func (f Fault) Clean() bool { return f.Outcome == "survived" || f.Outcome == "failed" }

// The levels of findings.
const (
	levelError = "error"
	levelWarn  = "warn"
	levelInfo  = "info"
)

// The exit codes of a verdict; what the command itself failed with comes first.
const (
	ExitExpect  = 3
	ExitConduct = 4
	ExitGuard   = 5
	ExitStrict  = 6
)

// Judge judges a run.
func Judge(in Input) Report {
	runs := split(in.Entries)
	r := Report{Findings: []Finding{}, Expectations: expectations(in), Unmatched: []Unmatched{}, Runs: []Run{}}
	for _, p := range runs {
		r.Runs = append(r.Runs, p.Run)
	}
	r.Findings = append(r.Findings, in.Findings...)
	r.Findings = append(r.Findings, conduct(runs, in.Killed)...)
	r.Findings = append(r.Findings, apiConduct(in.Entries)...)
	r.Findings = append(r.Findings, recorded(in.Entries)...)
	if !in.Lenient {
		strict, unmatched := strictness(in, runs)
		r.Findings, r.Unmatched = append(r.Findings, strict...), append(r.Unmatched, unmatched...)
	}
	if in.Torn > 0 {
		r.Findings = append(r.Findings, Finding{
			ID: "J01", Level: levelWarn, Text: count(in.Torn, "line") + " of the journal could not be read",
			Advice: "a process was killed while it wrote, or the file is no journal",
		})
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(rank(a.Level), rank(b.Level)) })
	r.Verdict = "ok"
	if r.ExitCode() != 0 {
		r.Verdict = "failed"
	}
	return r
}

// recorded are findings that processes have written themselves.
func recorded(entries []journal.Entry) []Finding {
	var found []Finding
	for _, e := range entries {
		if l := e.Finding; l != nil {
			found = append(found, Finding{
				ID: l.ID, Level: l.Level, Text: l.Text, Advice: l.Advice, File: l.File, Line: l.Line,
				Time: cmp.Or(l.Time, e.Time), PID: cmp.Or(l.Process, e.PID),
			})
		}
	}
	return found
}

func rank(level string) int { return slices.Index([]string{levelError, levelWarn, levelInfo}, level) }

// ExitCode is the command's own if it failed; else that of the first kind of
// failure there is; 0 = the verdict is good.
func (r *Report) ExitCode() int {
	if r.Command != nil && r.Command.Code != 0 {
		return r.Command.Code
	}
	if slices.ContainsFunc(r.Expectations, func(x Expectation) bool { return !x.Met }) {
		return ExitExpect
	}
	if slices.ContainsFunc(r.Faults, func(f Fault) bool { return !f.Clean() }) {
		return ExitConduct
	}
	for _, kind := range []struct {
		prefix byte
		code   int
	}{{'C', ExitConduct}, {'G', ExitGuard}, {'S', ExitStrict}, {'T', ExitStrict}} {
		if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Level == levelError && f.ID[0] == kind.prefix }) {
			return kind.code
		}
	}
	return 0
}

// Strict are the findings about the set-up, unmet expectations among them.
func (r *Report) Strict() []Finding {
	var found []Finding
	for _, x := range r.Expectations {
		if !x.Met {
			found = append(found, Finding{ID: "S06", Level: levelError, Text: x.Text + but(x.Got), File: x.File, Line: x.Line})
		}
	}
	for _, f := range r.Findings {
		if f.ID[0] == 'S' && f.Level == levelError {
			found = append(found, f)
		}
	}
	return found
}

// Record is the finding as a line of the journal.
func (f Finding) Record() journal.Finding {
	return journal.Finding{ID: f.ID, Level: f.Level, Text: f.Text, Advice: f.Advice, File: f.File, Line: f.Line, Time: f.Time, Process: f.PID}
}

// String is the finding in one line.
func (f Finding) String() string {
	advice, _, _ := strings.Cut(f.Advice, "\n")
	if advice != "" {
		advice = " (" + advice + ")"
	}
	return place(f.File, f.Line) + f.ID + ": " + f.Text + advice
}

// Lines are the verdict as lines of the journal.
func (r *Report) Lines() []journal.Body {
	var lines []journal.Body
	for _, x := range r.Expectations {
		lines = append(lines, journal.Expectation(x))
	}
	for _, f := range r.Findings {
		lines = append(lines, f.Record())
	}
	return lines
}

// expectations judges the [[expect]] blocks over the whole run, after what
// processes have found of the results of single calls.
func expectations(in Input) []Expectation {
	list := []Expectation{}
	for _, e := range in.Entries {
		if x := e.Expectation; x != nil {
			list = append(list, Expectation(*x))
		}
	}
	if in.Scenario == nil {
		return list
	}
	for _, j := range in.Scenario.Judge(seen(in.Entries)) {
		list = append(list, Expectation{File: j.At.File, Line: j.At.Line, Text: j.Text, Met: j.Met, Got: j.Got})
	}
	return list
}

// seen is the run as expectations look at it.
func seen(entries []journal.Entry) *scenarios.Seen {
	var s scenarios.Seen
	asked := map[int]string{} // message of each process that was heard last
	retries := map[int]int{}
	for _, e := range entries {
		switch {
		case e.Prompt != nil:
			s.Prompt(e.Prompt.Prompt)
		case e.Tool != nil:
			s.Call(e.Tool.Tool, e.Tool.Input)
		case e.MCPCall != nil:
			s.ServerCall(e.MCPCall.Server, e.MCPCall.RawTool)
		case e.Match != nil && e.Match.Rule != "":
			s.Rule(scenarios.RuleRef{Name: e.Match.Rule, File: e.Match.File, Line: e.Match.Line})
		case e.Exit != nil:
			s.Exit(e.Exit.Code)
		case e.Retry != nil:
			retries[e.PID] = e.Retry.Attempt
		case e.Request != nil:
			overAPI(&s, e.Request, after(entries, e))
		case e.Model != nil && asked[e.PID] != e.Model.MessageID:
			asked[e.PID] = e.Model.MessageID
			s.Request(scenarios.RequestSeen{Model: e.Model.Model, Retries: retries[e.PID], AfterMS: after(entries, e)})
			delete(retries, e.PID)
		}
	}
	return &s
}

// overAPI is what a request to the Messages API tells of a run.
func overAPI(s *scenarios.Seen, q *journal.Request, ms float64) {
	s.Request(scenarios.RequestSeen{Model: q.Model, Retries: max(0, q.Attempt-1), AfterMS: ms})
	if q.Prompt != "" {
		s.Prompt(q.Prompt)
	}
	for _, c := range q.Calls {
		s.Call(c.Tool, c.Input)
	}
	if q.Rule != "" {
		s.Rule(scenarios.RuleRef{Name: q.Rule, File: q.File, Line: q.Line})
	}
}

// after is when an entry was written, in milliseconds from the first.
func after(entries []journal.Entry, e journal.Entry) float64 {
	return float64(e.When.Sub(entries[0].When).Microseconds()) / 1000
}

// placed gives a finding the position of a diagnostic.
func placed(f Finding, at diag.Position) Finding {
	f.File, f.Line = at.File, at.Line
	return f
}

// Package verdict judges a run of one or more processes by its journal: the
// expectations of the scenario, how the calling program treats claude, and the
// set-up. It also writes the reports.
//
// A verdict depends only on the journal and the scenario, so that `claudeless
// verify` reaches the same verdict later as `claudeless exec` did.
package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/internal/record/redact"
)

// Judge judges one run, or several with different scenarios.
func Judge(in Input) Report {
	r := Report{Expectations: []Expectation{}, Runs: []Run{}, Findings: []Finding{}, Unmatched: []Unmatched{}}
	for _, one := range in.split() {
		more := judge(one)
		r.Expectations = append(r.Expectations, more.Expectations...)
		r.Runs = append(r.Runs, more.Runs...)
		r.Findings = append(r.Findings, more.Findings...)
		r.Unmatched = append(r.Unmatched, more.Unmatched...)
	}
	r.Findings = append(r.Findings, in.wrongCounts(len(r.Runs))...)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(rank(a.Level), rank(b.Level)) })
	r.Verdict = "ok"
	if r.ExitCode() != 0 {
		r.Verdict = "failed"
	}
	return r
}

// judge judges the runs of one scenario; the findings are unsorted.
func judge(in Input) Report {
	if in.Scenario != nil {
		in.Scenario.HideSecrets(redact.NewFinder(redact.Options{Environ: in.Environ}))
	}
	runs := splitByProcess(in.Entries)
	r := Report{Expectations: expectations(in), Runs: []Run{}}
	for _, p := range runs {
		r.Runs = append(r.Runs, p.Run)
	}
	l := findings{in: in, list: append([]Finding{}, in.Findings...), unmatched: []Unmatched{}}
	l.conduct(runs, in.Killed)
	l.list = append(l.list, apiConduct(in.Entries)...)
	l.list = append(l.list, l.recorded()...)
	if !in.Lenient {
		l.strictness(runs)
	}
	r.Findings, r.Unmatched = l.list, l.unmatched
	if in.Torn > 0 {
		r.Findings = append(r.Findings, Finding{
			ID: "J01", Level: levelWarn, Text: count(in.Torn, "line") + " of the journal could not be read",
			Advice: "a process was killed while it wrote, or the file is not a journal",
		})
	}
	return r
}

// recorded returns the findings that processes wrote themselves, once per process.
func (l *findings) recorded() []Finding {
	var all []Finding
	known := map[string]bool{}
	for _, e := range l.in.Entries {
		if e.Finding == nil {
			continue
		}
		f := Finding{
			ID: e.Finding.ID, Level: e.Finding.Level, Text: e.Finding.Text, Advice: e.Finding.Advice, File: e.Finding.File, Line: e.Finding.Line,
			Time: cmp.Or(e.Finding.Time, e.Time), PID: cmp.Or(e.Finding.Process, e.PID),
		}
		key := fmt.Sprint(f.PID, f)
		server := e.Finding.Server
		accepted := server != "" && l.in.Scenario != nil && l.in.Scenario.AcceptsMissingServer(server)
		if known[key] || accepted || l.in.Lenient && strings.HasPrefix(f.ID, "S") {
			continue
		}
		known[key] = true
		all = append(all, f)
	}
	return all
}

func rank(level string) int { return slices.Index([]string{levelError, levelWarn, levelInfo}, level) }

// expectations judges the [[expect]] blocks over the whole run, together with the results of single calls that
// processes checked.
func expectations(in Input) []Expectation {
	list := []Expectation{}
	for _, e := range in.Entries {
		if x := e.Expectation; x != nil {
			list = append(list, Expectation(*x))
		}
		if q := e.Request; q != nil {
			for _, x := range q.Unmet {
				list = append(list, Expectation(x))
			}
		}
	}
	if in.Scenario == nil {
		return list
	}
	for _, j := range journal.Summarize(in.Entries).Check(in.Scenario) {
		list = append(list, Expectation{File: j.At.File, Line: j.At.Line, Text: j.Text, Met: j.Met, Got: j.Got})
	}
	return list
}

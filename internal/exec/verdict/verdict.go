// Package verdict judges a run of one or more processes by its journal: the
// expectations of the scenario, how the calling program treats claude, and the
// set-up. It also writes the reports.
//
// A verdict depends only on the journal and the scenario, so that `claudeless
// verify` reaches the same verdict later as `claudeless exec` did.
package verdict

import (
	"cmp"
	"slices"

	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// Judge judges a run, or several that had different scenarios.
func Judge(in Input) Report {
	r := Report{Expectations: []Expectation{}, Runs: []Run{}, Findings: []Finding{}, Unmatched: []Unmatched{}}
	for _, one := range in.split() {
		more := judge(one)
		r.Expectations = append(r.Expectations, more.Expectations...)
		r.Runs = append(r.Runs, more.Runs...)
		r.Findings = append(r.Findings, more.Findings...)
		r.Unmatched = append(r.Unmatched, more.Unmatched...)
	}
	r.Findings = append(r.Findings, in.missing(len(r.Runs))...)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(rank(a.Level), rank(b.Level)) })
	r.Verdict = "ok"
	if r.ExitCode() != 0 {
		r.Verdict = "failed"
	}
	return r
}

// judge judges the runs of one scenario; the findings are in no order yet.
func judge(in Input) Report {
	runs := split(in.Entries)
	r := Report{Expectations: expectations(in), Runs: []Run{}}
	for _, p := range runs {
		r.Runs = append(r.Runs, p.Run)
	}
	l := findings{in: in, list: append([]Finding{}, in.Findings...), unmatched: []Unmatched{}}
	l.conduct(runs, in.Killed)
	l.list = append(l.list, apiConduct(in.Entries)...)
	l.list = append(l.list, recorded(in.Entries)...)
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

// expectations judges the [[expect]] blocks over the whole run, after what
// processes have found of the results of single calls.
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
	for _, j := range in.Scenario.Judge(seen(in.Entries)) {
		list = append(list, Expectation{File: j.At.File, Line: j.At.Line, Text: j.Text, Met: j.Met, Got: j.Got})
	}
	return list
}

// speaker is the model of a process, or of an agent in it.
type speaker struct {
	process processKey
	agent   string
}

// seen is the run as expectations look at it.
func seen(entries []journal.Entry) *scenarios.Seen {
	var s scenarios.Seen
	var api asked
	heard := map[speaker]string{} // message of each that was heard last
	retries := map[processKey]int{}
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
			retries[keyOf(e)] = e.Retry.Attempt
		case e.Request != nil:
			api.take(&s, e.Request, after(entries, e))
		case e.Model != nil:
			by := speaker{keyOf(e), e.Model.Agent}
			if heard[by] == e.Model.MessageID {
				continue
			}
			heard[by] = e.Model.MessageID
			if e.Model.GoesOn {
				s.GoOn(retries[keyOf(e)])
			} else {
				s.Request(scenarios.RequestSeen{Model: e.Model.Model, Retries: retries[keyOf(e)], AfterMS: after(entries, e)})
			}
			delete(retries, keyOf(e))
		}
	}
	api.tell(&s)
	return &s
}

// after is when an entry was written, in milliseconds from the first.
func after(entries []journal.Entry, e journal.Entry) float64 {
	return float64(e.When.Sub(entries[0].When).Microseconds()) / 1000
}

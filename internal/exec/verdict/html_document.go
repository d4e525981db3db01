package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// findingsPage is the documentation of findings; an anchor per id follows.
const findingsPage = "https://github.com/claudeless/claudeless/blob/main/docs/findings.md#"

// document is the content of the page.
type document struct {
	Failed   bool
	Headline string
	Command  *commandView
	Problems []problem // what made the run fail; the first one is the most important
	Notes    []problem // warnings and notes
	Met      []problem // expectations that were met
	Faults   []Fault
	Guard    string
	Runs     []*run
}

// commandView is the command of `claudeless exec`.
type commandView struct {
	Line     string
	Outcome  string
	Duration string
}

// problem is a finding, an expectation or an unmatched prompt.
type problem struct {
	ID     string // of the finding; "expect" for an expectation
	Level  string // "error", "warn", "info" or "met"
	Text   string
	Advice string
	File   string
	Line   int
	Source []sourceLine // around File:Line
	Link   string       // to the documentation; empty = none
	Anchor string       // of the run or event that shows it; empty = none
}

// buildDocument makes the document.
func buildDocument(in HTMLInput) document {
	d := document{Faults: in.Verdict.Faults, Guard: in.Verdict.Guard, Runs: []*run{}}
	files := &sourceFiles{read: in.ReadFile, lines: map[string][]string{}}
	d.Runs = append(d.Runs, buildRuns(in.Entries, files)...)
	d.addProblems(in.Verdict, files)
	if c := in.Verdict.Command; c != nil {
		d.Command = &commandView{Line: strings.Join(c.Argv, " "), Outcome: exitText(&c.Code, c.Signal), Duration: milliseconds(c.MS)}
		if c.Code != 0 {
			d.Problems = append(d.Problems, problem{ID: "exit", Level: "error", Text: "the command " + d.Command.Outcome})
		}
	}
	d.Failed = in.Verdict.Verdict == "failed"
	d.Headline = headline(in.Verdict, len(d.Problems))
	return d
}

// addProblems sorts the parts of the verdict into problems, notes and met expectations.
func (d *document) addProblems(r Report, files *sourceFiles) {
	for _, x := range r.Expectations {
		p := problem{ID: "expect", Level: "met", Text: x.Text, File: x.File, Line: x.Line}
		if x.Met {
			d.Met = append(d.Met, p)
			continue
		}
		p.Level, p.Advice, p.Source = "error", x.Got, files.around(x.File, x.Line)
		d.Problems = append(d.Problems, p)
	}
	for _, f := range r.Findings {
		p := problem{ID: f.ID, Level: f.Level, Text: f.Text, Advice: f.Advice, File: f.File, Line: f.Line, Source: files.around(f.File, f.Line)}
		p.Link, p.Anchor = findingsPage+strings.ToLower(f.ID), d.anchorOf(f)
		if f.Level == "error" {
			d.Problems = append(d.Problems, p)
		} else {
			d.Notes = append(d.Notes, p)
		}
	}
	for _, f := range r.Faults {
		if !f.IsAcceptable() {
			d.Problems = append(d.Problems, problem{ID: f.Name, Level: "error", Text: "under this fault the command " + f.Outcome, Advice: f.Bug + "\n" + f.Advice})
		}
	}
}

// anchorOf returns the place in the page that shows a finding: the last event of its process up to its time.
func (d *document) anchorOf(f Finding) string {
	when, err := time.Parse(time.RFC3339Nano, f.Time)
	best := ""
	for _, r := range d.Runs {
		if r.PID != f.PID || f.PID == 0 {
			continue
		}
		best = cmp.Or(best, r.ID)
		if err != nil || when.Before(r.startedAt) {
			continue
		}
		best = r.ID
		at := r.Start + float64(when.Sub(r.startedAt).Microseconds())/1000
		for _, e := range r.Events {
			if e.At <= at && (e.Status == "error" || e.Status == "denied") {
				best = e.ID
			}
		}
	}
	return best
}

// headline returns the first line of the page.
func headline(r Report, problems int) string {
	if r.Verdict != "failed" {
		return fmt.Sprintf("%s, %d of %s met", plural(len(r.Runs), "run")+" of claude", countMet(r), plural(len(r.Expectations), "expectation"))
	}
	return plural(problems, "problem") + " in " + plural(len(r.Runs), "run") + " of claude"
}

func countMet(r Report) int {
	return len(r.Expectations) - len(slices.DeleteFunc(slices.Clone(r.Expectations), func(x Expectation) bool { return x.Met }))
}

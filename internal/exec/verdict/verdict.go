// Package verdict judges a run of one or more processes by its journal: the expectations of the scenario, how the
// calling program treats claude, and the set-up. It also writes the reports.
//
// A verdict depends only on the journal and the scenario, so `claudeless verify` and `claudeless exec` agree.
package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/internal/record/redact"
)

// Judge judges one run, or several with different scenarios.
func Judge(in Input) Report {
	r := Report{Expectations: []ExpectationResult{}, Runs: []Run{}, Findings: []Finding{}, Unmatched: []UnmatchedPrompt{}}
	for _, one := range in.splitByScenario() {
		more := judgeScenario(one)
		r.Expectations = append(r.Expectations, more.Expectations...)
		r.Runs = append(r.Runs, more.Runs...)
		r.Findings = append(r.Findings, more.Findings...)
		r.Unmatched = append(r.Unmatched, more.Unmatched...)
	}
	r.Findings = append(r.Findings, in.findingsOfWrongCounts(len(r.Runs))...)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(levelRank(a.Level), levelRank(b.Level)) })
	r.Verdict = "ok"
	if r.ExitCode() != 0 {
		r.Verdict = "failed"
	}
	return r
}

// judgeScenario judges the runs of one scenario; the findings are unsorted.
func judgeScenario(in Input) Report {
	if in.Scenario != nil {
		in.Scenario.HideSecrets(redact.NewFinder(redact.Options{Environ: in.Environ}))
	}
	runs := splitByProcess(in.Entries)
	r := Report{Expectations: judgeExpectations(in), Runs: []Run{}}
	for _, p := range runs {
		if p.start != nil || p.setup != nil { // other programs also write to the journal
			r.Runs = append(r.Runs, p.Run)
		}
	}
	l := findingCollector{input: in, findings: append([]Finding{}, in.Findings...), unmatched: []UnmatchedPrompt{}}
	l.addFindingsOfWrongClaudeUsage(runs, in.Killed)
	l.findings = append(l.findings, findingsOfWrongAPIUsage(in.Entries)...)
	l.findings = append(l.findings, l.findingsWrittenByProcesses()...)
	if !in.Lenient {
		l.addFalsePassRiskFindings(runs)
	}
	r.Findings, r.Unmatched = l.findings, l.unmatched
	if in.UnreadableLines > 0 {
		r.Findings = append(r.Findings, Finding{
			ID: "J01", Level: levelWarn, Text: diag.FormatCount(in.UnreadableLines, "line") + " of the journal could not be read",
			Advice: "let the processes exit instead of killing them, and check that the file is a journal",
		})
	}
	return r
}

// findingsWrittenByProcesses returns the findings that the processes themselves wrote to the journal, each once.
func (l *findingCollector) findingsWrittenByProcesses() []Finding {
	var all []Finding
	known := map[string]bool{}
	for _, e := range l.input.Entries {
		if e.Finding == nil {
			continue
		}
		f := Finding{
			ID: e.Finding.ID, Level: e.Finding.Level, Text: e.Finding.Text, Advice: e.Finding.Advice, File: e.Finding.File, Line: e.Finding.Line,
			Time: cmp.Or(e.Finding.Time, e.Time), PID: cmp.Or(e.Finding.Process, e.PID),
		}
		key := fmt.Sprint(f.PID, f)
		server := e.Finding.Server
		accepted := server != "" && l.input.Scenario != nil && l.input.Scenario.AcceptsMissingServer(server)
		if known[key] || accepted || l.input.Lenient && strings.HasPrefix(f.ID, "S") {
			continue
		}
		known[key] = true
		all = append(all, f)
	}
	return all
}

func levelRank(level string) int {
	return slices.Index([]string{levelError, levelWarn, levelInfo}, level)
}

// judgeExpectations returns the recorded results of the calls' `expect` keys, and the results of the [[expect]] blocks.
func judgeExpectations(in Input) []ExpectationResult {
	list := []ExpectationResult{}
	for _, e := range in.Entries {
		if x := e.Expectation; x != nil {
			list = append(list, ExpectationResult(*x))
		}
		if q := e.Request; q != nil {
			for _, x := range q.Unmet {
				list = append(list, ExpectationResult(x))
			}
		}
	}
	if in.Scenario == nil {
		return list
	}
	for _, j := range journal.Summarize(in.Entries).CheckExpectations(in.Scenario) {
		list = append(list, ExpectationResult{File: j.At.File, Line: j.At.Line, Text: j.Text, Met: j.IsMet, Got: j.Actual})
	}
	return list
}

type journaledProcess struct {
	Run
	entries             []journal.Entry
	start               *journal.Start
	setup               *journal.Run // nil means the process had no session
	exit                *journal.Exit
	startedAt           time.Time
	ended               time.Time // time of the process's last line
	results             []*journal.Result
	host                []*journal.Host
	usesControlProtocol bool
	firstTurn           int // index of the journal line with the first prompt; -1 means none
	lastResult          int // index of the journal line with the last result; -1 means none
}

// splitByProcess groups the lines of a journal by process. A process id may be reused by a later process.
func splitByProcess(entries []journal.Entry) []*journaledProcess {
	var all []*journaledProcess
	current := map[journalAndPID]*journaledProcess{}
	for i, e := range entries {
		p := current[journalAndPIDOfEntry(e)]
		switch {
		case e.Expectation != nil || e.Finding != nil || e.Request != nil || e.SideRequest != nil || e.Exchange != nil || e.OAuth != nil:
			continue
		case (e.Gate != nil || e.MCPNotification != nil) && p == nil: // written by the API server, or by exec
			continue
		case p == nil || e.Start != nil && len(p.entries) > 0:
			p = &journaledProcess{Run: Run{PID: e.PID, Argv: []string{}, Prompts: []string{}, Tools: []string{}}, startedAt: e.When, firstTurn: -1, lastResult: -1}
			current[journalAndPIDOfEntry(e)] = p
			all = append(all, p)
		}
		p.updateFromJournalEntry(i, e)
	}
	return all
}

func (p *journaledProcess) updateFromJournalEntry(entryIndex int, entry journal.Entry) {
	p.entries, p.ended = append(p.entries, entry), entry.When
	p.SessionID = cmp.Or(entry.SessionID, p.SessionID)
	switch {
	case entry.Start != nil:
		p.start, p.Argv, p.CWD, p.Parent = entry.Start, entry.Start.Argv, entry.Start.CWD, entry.Start.Parent
	case entry.Run != nil:
		p.setup, p.Argv, p.CWD, p.usesControlProtocol = entry.Run, entry.Run.Argv, entry.Run.CWD, entry.Run.InputFormat == "stream-json"
	case entry.Prompt != nil:
		p.Prompts = append(p.Prompts, entry.Prompt.Prompt)
		if p.firstTurn < 0 {
			p.firstTurn = entryIndex
		}
	case entry.Tool != nil:
		p.Tools = append(p.Tools, entry.Tool.Tool)
	case entry.Result != nil:
		p.results, p.lastResult = append(p.results, entry.Result), entryIndex
	case entry.Host != nil:
		p.host = append(p.host, entry.Host)
	case entry.Exit != nil:
		p.exit, p.Code, p.Signal, p.MS = entry.Exit, &entry.Exit.Code, entry.Exit.Signal, entry.Exit.MS
	}
}

type findingCollector struct {
	input     Input
	findings  []Finding
	unmatched []UnmatchedPrompt
}

func (l *findingCollector) addFindingOfProcess(p *journaledProcess, id, level, text, advice string) {
	l.findings = append(l.findings, p.withProcessIDAndTime(Finding{ID: id, Level: level, Text: text, Advice: advice}))
}

func (p *journaledProcess) withProcessIDAndTime(f Finding) Finding {
	if f.PID = p.PID; !p.ended.IsZero() {
		f.Time = p.ended.UTC().Format(time.RFC3339Nano)
	}
	return f
}

// isSubcommand reports whether the process ran a subcommand such as `auth status`, which has no session.
func (p *journaledProcess) isSubcommand() bool { return p.start != nil && p.start.Subcommand != "" }

func (p *journaledProcess) firstHostAction(action string) *journal.Host {
	for _, h := range p.host {
		if h.What == action {
			return h
		}
	}
	return nil
}

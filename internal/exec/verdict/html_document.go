package verdict

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

const documentationURL = "https://github.com/claudeless/claudeless/blob/main/docs/"

type htmlPageContent struct {
	Failed   bool
	Headline string
	Command  *commandSummaryOnHTMLPage
	Problems []problem // problems that made the run fail, the most important one first
	Notes    []problem // warnings and notes
	Met      []problem // expectations that were met
	Faults   []Fault
	Guard    string
	Runs     []*htmlPageRun
}

type commandSummaryOnHTMLPage struct {
	Line, Outcome, Duration string
}

// problem is an entry of the page: a finding, an expectation (met or unmet) or an unmatched prompt.
type problem struct {
	ID                 string // id of the finding, or "expect" for an expectation
	Level              string // "error", "warn", "info" or "met"
	Text, Advice, File string
	Line               int
	Source             []sourceLine // lines around File:Line
	Link               string       // link to the documentation; empty means none
	// Anchors are the runs and events that show the problem, one for each time that it was found.
	Anchors []string
	Count   int  // number of times that the problem was found
	Open    bool // the page shows the details at once
}

func buildDocument(in HTMLInput) htmlPageContent {
	files := &sourceFiles{read: in.ReadFile, lines: map[string][]string{}}
	d := htmlPageContent{Faults: in.Verdict.Faults, Guard: in.Verdict.Guard, Runs: buildRuns(in.Entries, files)}
	d.addProblemsNotesAndMetExpectations(in.Verdict, files)
	if c := in.Verdict.Command; c != nil {
		d.Command = &commandSummaryOnHTMLPage{Line: commandLine(c.Argv), Outcome: exitText(&c.Code, c.Signal), Duration: formatMilliseconds(c.MS)}
		if c.Code != 0 {
			d.Problems = append(d.Problems, problem{ID: "exit", Level: "error", Text: "the command " + d.Command.Outcome, Link: documentationURL + "exit-codes.md"})
		}
	}
	for i := range d.Problems { // a long list is an overview
		d.Problems[i].Open = i == 0 || len(d.Problems) <= 3
	}
	d.Failed = in.Verdict.Verdict == "failed"
	d.Headline = countWithNoun(len(in.Verdict.Runs), "run") + " of claude"
	if d.Failed {
		d.Headline = countWithNoun(len(d.Problems), "problem") + " in " + d.Headline
	} else {
		d.Headline += fmt.Sprintf(", %d of %s met", len(d.Met), countWithNoun(len(in.Verdict.Expectations), "expectation"))
	}
	return d
}

func (d *htmlPageContent) addProblemsNotesAndMetExpectations(report Report, files *sourceFiles) {
	for _, x := range report.Expectations {
		p := problem{ID: "expect", Level: "met", Text: x.Text, File: x.File, Line: x.Line, Link: documentationURL + "scenarios.md#expectation"}
		if x.Met {
			d.Met = append(d.Met, p)
			continue
		}
		p.Level, p.Advice, p.Source = "error", x.Got, files.linesAround(x.File, x.Line, 3, 3)
		d.Problems = append(d.Problems, p)
	}
	for _, f := range report.Findings {
		p := problem{ID: f.ID, Level: f.Level, Text: f.Text, Advice: f.Advice, File: f.File, Line: f.Line, Source: files.linesAround(f.File, f.Line, 3, 3)}
		p.Link = documentationURL + "findings.md#" + strings.ToLower(f.ID)
		if f.Level == "error" {
			d.Problems = addProblemOrAnchorToEqualOne(d.Problems, p, d.anchorOfLastFailedEventOrRun(f))
		} else {
			d.Notes = addProblemOrAnchorToEqualOne(d.Notes, p, d.anchorOfLastFailedEventOrRun(f))
		}
	}
	for _, f := range report.Faults {
		if !f.IsAcceptable() {
			d.Problems = append(d.Problems, problem{ID: f.Name, Level: "error", Text: "under this fault the command " + f.Outcome, Advice: f.Bug + "\n" + f.Advice})
		}
	}
}

// addProblemOrAnchorToEqualOne adds a finding to a list. A finding of several processes is listed once, with an anchor for each
// process.
func addProblemOrAnchorToEqualOne(problems []problem, p problem, anchor string) []problem {
	i := slices.IndexFunc(problems, func(known problem) bool {
		return known.ID == p.ID && known.Text == p.Text && known.File == p.File && known.Line == p.Line
	})
	if i < 0 {
		problems, i = append(problems, p), len(problems)
	}
	problems[i].Count++
	if anchor != "" {
		problems[i].Anchors = append(problems[i].Anchors, anchor)
	}
	return problems
}

// anchorOfLastFailedEventOrRun returns the anchor to which a finding links: the last earlier event of its process that failed
// or was denied, else the run of the process. Empty means that the page has no run of this process.
func (d *htmlPageContent) anchorOfLastFailedEventOrRun(finding Finding) string {
	when, err := time.Parse(time.RFC3339Nano, finding.Time)
	best := ""
	for _, r := range d.Runs {
		if r.PID != finding.PID || finding.PID == 0 {
			continue
		}
		best = cmp.Or(best, r.ID)
		if err != nil || when.Before(r.startedAt) {
			continue
		}
		best = r.ID
		at := r.StartMS + float64(when.Sub(r.startedAt).Microseconds())/1000
		for _, e := range r.Events {
			if e.AtMS <= at && (e.Status == "error" || e.Status == "denied") {
				best = e.ID
			}
		}
	}
	return best
}

// commandLine returns a command with the quotes that a shell needs.
func commandLine(argv []string) string {
	words := slices.Clone(argv)
	for i, word := range words {
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return strings.ContainsRune(" \t\n'\"\\$`!*?[](){}<>|&;#~", r) }) {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// exitText describes how a process ended; a nil code means that the end was not recorded.
func exitText(code *int, signal string) string {
	switch {
	case code == nil:
		return "has no recorded end"
	case signal != "":
		return fmt.Sprintf("ended by %s (exit code %d)", signal, *code)
	}
	return fmt.Sprintf("exited with code %d", *code)
}

func formatMilliseconds(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%.2f s", ms/1000)
	}
	return fmt.Sprintf("%.1f ms", ms)
}

func errorOrOKStatus(hasFailed bool) string {
	if hasFailed {
		return "error"
	}
	return "ok"
}

func truncateTextForHTMLPage(text string) string {
	if len(text) <= maxBytesOfTextOnHTMLPage {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytesOfTextOnHTMLPage], "") + fmt.Sprintf("\n… (%d more bytes; the journal has all of them)", len(text)-maxBytesOfTextOnHTMLPage)
}

// firstLine returns the first line of a text, cut to the width of a row.
func firstLine(s string) string {
	const most = 160
	s, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	if more {
		s += " …"
	}
	return s
}

// indentJSON formats JSON; other text is returned unchanged.
func indentJSON(raw json.RawMessage) string {
	if string(raw) == "null" {
		return ""
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	if text, ok := v.(string); ok {
		return text
	}
	var b bytes.Buffer
	_ = json.Indent(&b, raw, "", "  ") // fails only for text that does not parse
	return b.String()
}

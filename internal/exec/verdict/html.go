package verdict

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/internal/record/redact"
)

//go:embed page.html
var pageTemplate string

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

// HTMLInput is the data of a report. The caller must redact Entries and Verdict first.
type HTMLInput struct {
	Entries []journal.Entry // lines of one or more journals, ordered by time
	Verdict Report          // the verdict about Entries
	// ReadFile returns the contents of a scenario file, so that the report can show the lines around a rule; nil means
	// that the report shows no source.
	ReadFile func(name string) ([]byte, error)
}

type pageTemplateData struct {
	htmlPageContent
	Policy       string
	Style        template.CSS
	Script, Data template.JS
}

// WriteHTML writes the HTML report of a run: one self-contained page with the verdict, its causes, and everything
// that each claude process did. The page loads nothing from a network, and its Content-Security-Policy allows only
// the style and the script that are part of it. Without JavaScript it shows the verdict and the causes.
func WriteHTML(w io.Writer, in HTMLInput) error {
	t, err := template.New("report").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("creating the report: %w", err)
	}
	d := buildPageContent(in)
	data, err := json.Marshal(d.Runs) // escapes <, > and &
	if err != nil {
		return fmt.Errorf("creating the report: %w", err)
	}
	return t.Execute(w, pageTemplateData{
		htmlPageContent: d, Style: template.CSS(pageStyle), Script: template.JS(pageScript), Data: template.JS(data),
		Policy: "default-src 'none'; style-src '" + cspDigest(pageStyle) + "'; script-src '" + cspDigest(pageScript) + "'; img-src data:; base-uri 'none'; form-action 'none'",
	})
}

// cspDigest returns the source expression that allows a text in a Content-Security-Policy.
func cspDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// OutputFiles are the output files of a verdict. A file with an empty name is not written.
type OutputFiles struct {
	JUnit, JSON string
	HTML        string   // file of the self-contained page
	Summary     string   // file to which Markdown is appended (GITHUB_STEP_SUMMARY)
	GitHub      bool     // annotations on stderr
	Environ     []string // environment whose secret values are redacted in all reports
}

// Write writes the lines of a verdict to stderr and then the files, all without secrets. entries are the checked journal lines,
// for the HTML page; nil means unknown. If one file cannot be written, Write still writes the others.
func (f OutputFiles) Write(r *Report, entries []journal.Entry, stderr io.Writer) error {
	r, err := r.Redacted(f.Environ)
	if err != nil {
		return err
	}
	errs := []error{r.Write(stderr, FormatLines)}
	if f.GitHub {
		errs = append(errs, r.Write(stderr, FormatAnnotations))
	}
	for _, out := range []struct {
		name string
		how  int
		as   Format
	}{{f.Summary, os.O_APPEND, FormatMarkdown}, {f.JUnit, os.O_TRUNC, FormatJUnit}, {f.JSON, os.O_TRUNC, FormatJSON}} {
		if out.name != "" {
			errs = append(errs, writeToFile(out.name, out.how, func(w io.Writer) error { return r.Write(w, out.as) }))
		}
	}
	if f.HTML != "" {
		errs = append(errs, f.WriteHTMLFile(r, entries))
	}
	return errors.Join(errs...)
}

// WriteHTMLFile writes the HTML page of a redacted verdict.
func (f OutputFiles) WriteHTMLFile(redactedReport *Report, journalEntries []journal.Entry) error {
	hide := redact.New(redact.Options{Environ: f.Environ})
	return writeToFile(f.HTML, os.O_TRUNC, func(w io.Writer) error {
		return WriteHTML(w, HTMLInput{Entries: journalEntries, Verdict: *redactedReport, ReadFile: func(name string) ([]byte, error) {
			text, err := os.ReadFile(name)
			return []byte(hide.String(string(text))), err
		}})
	})
}

func writeToFile(name string, flags int, write func(io.Writer) error) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|flags, 0o644)
	if err != nil {
		return fmt.Errorf("writing a report: %w", err)
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return fmt.Errorf("writing the report %s: %w", name, err)
	}
	return nil
}

type sourceLine struct {
	Number int
	Text   string
	Marked bool
}

// sourceFiles reads each scenario file once.
type sourceFiles struct {
	read  func(string) ([]byte, error)
	lines map[string][]string // by file name; a nil value means that the file cannot be read
}

// linesAround returns a line and its neighbours, from line-before to line+after; nil means the file is unreadable.
func (f *sourceFiles) linesAround(file string, line, before, after int) (shown []sourceLine) {
	if f.read == nil || file == "" || line < 1 {
		return nil
	}
	lines, known := f.lines[file]
	if !known {
		if data, err := f.read(file); err == nil {
			lines = strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		}
		f.lines[file] = lines
	}
	for n := max(1, line-before); n <= min(len(lines), line+after); n++ {
		shown = append(shown, sourceLine{Number: n, Text: lines[n-1], Marked: n == line})
	}
	return shown
}

// ruleSource returns the source of a rule or step, with line numbers. The text begins at the given line and ends before
// the next table of the top level, such as [[responses]], or after 30 lines.
func (f *sourceFiles) ruleSource(file string, line int) string {
	var b strings.Builder
	for i, l := range f.linesAround(file, line, 0, 29) {
		if table, isTable := strings.CutPrefix(l.Text, "[["); i > 0 && isTable && !strings.Contains(table, ".") {
			break
		}
		fmt.Fprintf(&b, "%4d  %s\n", l.Number, l.Text)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

const documentationURL = "https://github.com/claudeless/claudeless/blob/main/docs/"

type htmlPageContent struct {
	Failed   bool
	Headline string
	Command  *commandSummaryOnHTMLPage
	Problems []reportItem // problems that made the run fail, the most important one first
	Notes    []reportItem // warnings and notes
	Met      []reportItem // expectations that were met
	Faults   []FaultResult
	Guard    string
	Runs     []*htmlPageRun
}

type commandSummaryOnHTMLPage struct {
	Line, Outcome, Duration string
}

// reportItem is an entry of the page: a finding, an expectation (met or unmet) or an unmatched prompt.
type reportItem struct {
	ID                 string // id of the finding, or "expect" for an expectation
	Level              string // "error", "warn", "info" or "met"
	Text, Advice, File string
	Line               int
	Source             []sourceLine // lines around File:Line
	Link               string       // link to the documentation; empty means none
	Anchors            []string     // runs and events that show the problem, one for each time that it was found
	Count              int          // number of times that the problem was found
	Open               bool         // the page shows the details at once
}

func buildPageContent(in HTMLInput) htmlPageContent {
	files := &sourceFiles{read: in.ReadFile, lines: map[string][]string{}}
	d := htmlPageContent{Faults: in.Verdict.Faults, Guard: in.Verdict.Guard, Runs: buildRuns(in.Entries, files)}
	d.addProblemsNotesAndMetExpectations(in.Verdict, files)
	if c := in.Verdict.Command; c != nil {
		d.Command = &commandSummaryOnHTMLPage{Line: shellQuotedCommandLine(c.Argv), Outcome: exitText(&c.Code, c.Signal), Duration: formatMilliseconds(c.MS)}
		if c.Code != 0 {
			d.Problems = append(d.Problems, reportItem{ID: "exit", Level: "error", Text: "the command " + d.Command.Outcome, Link: documentationURL + "exit-codes.md"})
		}
	}
	for i := range d.Problems { // in a long list, only the first problem shows its details
		d.Problems[i].Open = i == 0 || len(d.Problems) <= 3
	}
	d.Failed = in.Verdict.Verdict == "failed"
	d.Headline = diag.FormatCount(len(in.Verdict.Runs), "run") + " of claude"
	if d.Failed {
		d.Headline = diag.FormatCount(len(d.Problems), "problem") + " in " + d.Headline
	} else {
		d.Headline += fmt.Sprintf(", %d of %s met", len(d.Met), diag.FormatCount(len(in.Verdict.Expectations), "expectation"))
	}
	return d
}

func (d *htmlPageContent) addProblemsNotesAndMetExpectations(report Report, files *sourceFiles) {
	for _, x := range report.Expectations {
		p := reportItem{ID: "expect", Level: "met", Text: x.Text, File: x.File, Line: x.Line, Link: documentationURL + "scenarios.md#expectation"}
		if x.Met {
			d.Met = append(d.Met, p)
			continue
		}
		p.Level, p.Advice, p.Source = "error", x.Got, files.linesAround(x.File, x.Line, 3, 3)
		d.Problems = append(d.Problems, p)
	}
	for _, f := range report.Findings {
		p := reportItem{ID: f.ID, Level: f.Level, Text: f.Text, Advice: f.Advice, File: f.File, Line: f.Line, Source: files.linesAround(f.File, f.Line, 3, 3)}
		p.Link = documentationURL + "findings.md#" + strings.ToLower(f.ID)
		if f.Level == "error" {
			d.Problems = addProblemOrAnchorToEqualOne(d.Problems, p, d.anchorOfLastFailedEventOrRun(f))
		} else {
			d.Notes = addProblemOrAnchorToEqualOne(d.Notes, p, d.anchorOfLastFailedEventOrRun(f))
		}
	}
	for _, f := range report.Faults {
		if !f.IsAcceptable() {
			d.Problems = append(d.Problems, reportItem{ID: f.Name, Level: "error", Text: "under this fault the command " + f.Outcome, Advice: f.Bug + "\n" + f.Advice})
		}
	}
}

// addProblemOrAnchorToEqualOne adds a finding to a list. A finding of several processes is listed once, with a link target for
// each process.
func addProblemOrAnchorToEqualOne(problems []reportItem, p reportItem, anchor string) []reportItem {
	i := slices.IndexFunc(problems, func(known reportItem) bool {
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

// anchorOfLastFailedEventOrRun returns the element to which a finding links: the last earlier event of its process that failed or
// was denied, else the run of the process. Empty means that the page has no run of this process.
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

// shellQuotedCommandLine returns a command with the quotes that a shell needs.
func shellQuotedCommandLine(argv []string) string {
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

// shortFirstLine returns the first line of a text, cut to the width of a row.
func shortFirstLine(s string) string {
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

// formatJSONOrText formats JSON; other text is returned unchanged.
func formatJSONOrText(raw json.RawMessage) string {
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

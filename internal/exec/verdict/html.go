package verdict

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"strings"

	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/internal/record/redact"
)

//go:embed page.html
var pageTemplate string

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

// HTMLInput is the data of a report. The caller redacts Entries and Verdict before.
type HTMLInput struct {
	// Entries are the lines of one or more journals, ordered by time.
	Entries []journal.Entry
	// Verdict is the judgement of Entries.
	Verdict Report
	// ReadFile returns the contents of a scenario file, so that the report can show the lines around a rule; nil means
	// that the report shows no source.
	ReadFile func(name string) ([]byte, error)
}

type page struct {
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
	d := buildDocument(in)
	data, err := json.Marshal(d.Runs) // escapes <, > and &
	if err != nil {
		return fmt.Errorf("creating the report: %w", err)
	}
	return t.Execute(w, page{
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
	// HTML is the file of the self-contained page.
	HTML    string
	Summary string // file to which Markdown is appended (GITHUB_STEP_SUMMARY)
	GitHub  bool   // annotations on stderr
	// Environ is the environment; its secret values are redacted in all reports.
	Environ []string
}

// Write writes the lines of a verdict to stderr and then the files, all without secrets. entries are the checked
// journal lines, for the HTML page; nil means unknown. If one file cannot be written, the others still are.
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

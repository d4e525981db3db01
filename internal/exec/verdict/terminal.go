package verdict

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/junit"
)

// Format is an output format of the report.
type Format int

// The formats: lines for people, GitHub workflow commands, Markdown for the summary of a step, JUnit, and JSON.
const (
	FormatLines Format = iota
	FormatAnnotations
	FormatMarkdown
	FormatJUnit
	FormatJSON
)

// Write writes the report to w as text, JSON, JUnit XML or another Format.
func (r *Report) Write(w io.Writer, format Format) error {
	switch format {
	case FormatAnnotations:
		return r.writeAnnotations(w)
	case FormatMarkdown:
		return r.writeMarkdown(w)
	case FormatJUnit:
		return r.writeJUnit(w)
	case FormatJSON:
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	default:
		return r.writeText(w)
	}
}

const linePrefix = "claudeless: verdict: "

// maxUnusedRulesShown limits the warnings about unused rules: one test of a large scenario often leaves many unused.
const maxUnusedRulesShown = 3

// writeText writes the report for people: one line per problem, the advice below it, and a summary line.
func (r *Report) writeText(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(linePrefix + strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\n"+linePrefix+"  ") + "\n")
	}
	unmet := 0
	for _, x := range r.Expectations {
		switch {
		case !x.Met:
			unmet++
			line("%sunmet: %s%s", positionPrefix(x.File, x.Line), x.Text, commaButActualOutcomeSuffix(x.Got))
		case x.Got != "":
			line("%snote: %s%s", positionPrefix(x.File, x.Line), x.Text, commaButActualOutcomeSuffix(x.Got))
		}
	}
	errors, unused := 0, 0
	for _, f := range r.Findings {
		switch {
		case f.Level == levelError:
			errors++
		case f.ID == "S13":
			if unused++; unused > maxUnusedRulesShown {
				continue
			}
		}
		line("%s%s %s: %s%s", positionPrefix(f.File, f.Line), f.Level, f.ID, f.Text, processIDInParentheses(f.PID))
		for advice := range strings.Lines(f.Advice) {
			line("  %s", strings.TrimRight(advice, "\n"))
		}
	}
	if unused > maxUnusedRulesShown {
		line("%s also answered no prompt; --json lists them", diag.FormatCount(unused-maxUnusedRulesShown, "more rule"))
	}
	for _, f := range r.Faults {
		line("%-20s %-9s exit %3d %7.1f s", f.Name, f.Outcome, f.Code, f.MS/1000)
		if !f.IsAcceptable() {
			line("  %s: %s", f.Bug, f.Advice)
		}
	}
	if r.Terminal != nil {
		line("terminal: %s", r.Terminal)
	}
	if r.Guard != "" {
		line("guard: %s", r.Guard)
	}
	if r.Faults != nil {
		line("%s: %s", r.Verdict, r.faultSummary())
	} else {
		summary := fmt.Sprintf("%s: %s of claude, %d of %s met, %s", r.Verdict, diag.FormatCount(len(r.Runs), "run"),
			len(r.Expectations)-unmet, diag.FormatCount(len(r.Expectations), "expectation"), diag.FormatCount(errors, "error"))
		if c := r.Command; c != nil && c.Code != 0 {
			summary += fmt.Sprintf("; the command exited with %d", c.Code)
		}
		line("%s", summary)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) faultSummary() string {
	var said strings.Builder
	said.WriteString(diag.FormatCount(len(r.Faults), "fault"))
	for _, outcome := range []string{"survived", "failed", "hung", "crashed", "lied"} {
		n := 0
		for _, f := range r.Faults {
			if f.Outcome == outcome {
				n++
			}
		}
		if n > 0 {
			fmt.Fprintf(&said, ", %d %s", n, outcome)
		}
	}
	return said.String()
}

// String returns one line for people.
func (t *TerminalSummary) String() string {
	parts := []string{diag.FormatCount(t.Screens, "screen")}
	if len(t.States) > 0 {
		parts = append(parts, "states: "+strings.Join(t.States, ", "))
	}
	for _, d := range t.Dialogs {
		answer := "still open at the end"
		if d.Answer != "" {
			answer = "answered with " + d.Answer
		}
		parts = append(parts, d.State+" "+answer)
	}
	if t.LostKeys > 0 {
		parts = append(parts, diag.FormatCount(t.LostKeys, "key")+" sent while nothing was reading")
	}
	return strings.Join(parts, "; ")
}

// writeJUnit writes one test suite, with cases for expectations, findings of level error, faults and a failed command.
func (r *Report) writeJUnit(w io.Writer) error {
	s := junit.Suite{Name: "claudeless"}
	for _, x := range r.Expectations {
		c := junit.Case{Name: x.Text, Class: "expect", File: x.File, Line: x.Line}
		if !x.Met {
			c.Failure = &junit.Failure{Message: x.Text + commaButActualOutcomeSuffix(x.Got), Type: "expectation", Text: positionPrefix(x.File, x.Line) + x.Text + commaButActualOutcomeSuffix(x.Got)}
			c.Out = &junit.OutputText{Text: r.runDetails()}
		}
		s.Cases = append(s.Cases, c)
	}
	for _, f := range r.Findings {
		if f.Level != levelError {
			continue
		}
		s.Cases = append(s.Cases, junit.Case{
			Name: f.ID + ": " + f.Text, Class: "finding", File: f.File, Line: f.Line,
			Failure: &junit.Failure{Message: f.Text, Type: f.ID, Text: positionPrefix(f.File, f.Line) + f.Text + processIDInParentheses(f.PID) + "\n" + f.Advice},
			Out:     &junit.OutputText{Text: r.runDetails()},
		})
	}
	for _, f := range r.Faults {
		c := junit.Case{Name: f.Name, Class: "fault"}
		if !f.IsAcceptable() {
			c.Failure = &junit.Failure{Message: f.Name + ": " + f.Outcome, Type: f.Outcome, Text: f.Bug + "\n" + f.Advice}
		}
		s.Cases = append(s.Cases, c)
	}
	if c := r.Command; c != nil {
		s.Time = time.Duration(c.MS * float64(time.Millisecond))
		if c.Code != 0 {
			text := fmt.Sprintf("the command exited with %d", c.Code)
			s.Cases = append(s.Cases, junit.Case{
				Name: strings.Join(c.Argv, " "), Class: "command", Failure: &junit.Failure{Message: text, Type: "exit", Text: text},
			})
		}
	}
	if len(s.Cases) == 0 { // an empty suite would look like a suite that did not run
		s.Cases = append(s.Cases, junit.Case{Name: "run", Class: "run"})
	}
	return s.Write(w)
}

func (r *Report) runDetails() string {
	var b strings.Builder
	for _, p := range r.Runs {
		fmt.Fprintf(&b, "process %d: %s\n", p.PID, strings.Join(p.Argv, " "))
		for _, prompt := range p.Prompts {
			fmt.Fprintf(&b, "  prompt %s\n", quoteFirst100Characters(prompt))
		}
		for _, tool := range p.Tools {
			fmt.Fprintf(&b, "  call   %s\n", tool)
		}
		if p.Code != nil {
			fmt.Fprintf(&b, "  exit   %d\n", *p.Code)
		}
	}
	return b.String()
}

// writeAnnotations writes the report as GitHub workflow commands, which become annotations at lines of the scenario.
func (r *Report) writeAnnotations(w io.Writer) error {
	var b strings.Builder
	for _, x := range r.Expectations {
		if !x.Met {
			writeAnnotation(&b, levelError, x.File, x.Line, x.Text+commaButActualOutcomeSuffix(x.Got))
		}
	}
	for _, f := range r.Findings {
		text := f.ID + ": " + f.Text
		if f.Advice != "" {
			text += "\n" + f.Advice
		}
		writeAnnotation(&b, f.Level, f.File, f.Line, text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeAnnotation(b *strings.Builder, level, file string, line int, text string) {
	b.WriteString("::" + map[string]string{levelError: "error", levelWarn: "warning", levelInfo: "notice"}[level])
	switch {
	case file != "" && line > 0:
		fmt.Fprintf(b, " file=%s,line=%d", escapeGitHubAnnotationProperty(file), line)
	case file != "":
		fmt.Fprintf(b, " file=%s", escapeGitHubAnnotationProperty(file))
	}
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	b.WriteString("::" + data.Replace(text) + "\n")
}

func escapeGitHubAnnotationProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}

func (r *Report) writeMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### claudeless: %s\n\n", r.Verdict)
	if len(r.Expectations) > 0 {
		b.WriteString("| expectation | met | |\n|---|---|---|\n")
		for _, x := range r.Expectations {
			met := "yes"
			if !x.Met {
				met = "**no**"
			}
			fmt.Fprintf(&b, "| %s%s | %s | %s |\n", positionPrefix(x.File, x.Line), escapeCell(x.Text), met, escapeCell(x.Got))
		}
		b.WriteString("\n")
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "- **%s %s**: %s\n", f.Level, f.ID, escapeCell(f.Text))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func escapeCell(s string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s) }

package verdict

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
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

// Write writes the report in a format.
func (r *Report) Write(w io.Writer, as Format) error {
	switch as {
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
		return r.writeTerminal(w)
	}
}

const linePrefix = "claudeless: verdict: "

// maxUnusedRulesShown is how many warnings about unused rules are shown, because one scenario may serve many tests.
const maxUnusedRulesShown = 3

// writeTerminal writes the report for people: one line per problem, the advice below it, and a summary line.
func (r *Report) writeTerminal(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(linePrefix + strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\n"+linePrefix+"  ") + "\n")
	}
	unmet := 0
	for _, x := range r.Expectations {
		switch {
		case !x.Met:
			unmet++
			line("%sunmet: %s%s", location(x.File, x.Line), x.Text, reasonSuffix(x.Got))
		case x.Got != "":
			line("%snote: %s%s", location(x.File, x.Line), x.Text, reasonSuffix(x.Got))
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
		line("%s%s %s: %s%s", location(f.File, f.Line), f.Level, f.ID, f.Text, processID(f.PID))
		for advice := range strings.Lines(f.Advice) {
			line("  %s", strings.TrimRight(advice, "\n"))
		}
	}
	if unused > maxUnusedRulesShown {
		line("%s also answered no prompt; --json lists them", countWithNoun(unused-maxUnusedRulesShown, "more rule"))
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
		line("%s: %s", r.Verdict, r.outcomes())
	} else {
		summary := fmt.Sprintf("%s: %s of claude, %d of %s met, %s", r.Verdict, countWithNoun(len(r.Runs), "run"),
			len(r.Expectations)-unmet, countWithNoun(len(r.Expectations), "expectation"), countWithNoun(errors, "error"))
		if c := r.Command; c != nil && c.Code != 0 {
			summary += fmt.Sprintf("; the command exited with %d", c.Code)
		}
		line("%s", summary)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) outcomes() string {
	var said strings.Builder
	said.WriteString(countWithNoun(len(r.Faults), "fault"))
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
func (t *Terminal) String() string {
	parts := []string{countWithNoun(t.Screens, "screen")}
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
		parts = append(parts, countWithNoun(t.LostKeys, "key")+" sent while nothing was reading")
	}
	return strings.Join(parts, "; ")
}

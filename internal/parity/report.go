package parity

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/junit"
	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Status is the outcome of a case.
type Status string

// The statuses.
const (
	StatusSame                 Status = "same"
	StatusOnlyKnownDifferences Status = "known" // all differences of the case are known
	StatusDiffers              Status = "differ"
	StatusNotComparable        Status = "not comparable"
	// StatusNotCompared means that a case was interrupted, killed at its time limit, or refused by both programs.
	StatusNotCompared Status = "not compared"
)

// Verdict is the outcome of one case with one version.
type Verdict struct {
	Case        string       `json:"case"`
	Area        string       `json:"area"`
	Version     string       `json:"version"`
	Status      Status       `json:"status"`
	Differences []Difference `json:"differences"`
	Flaky       []string     `json:"flaky,omitempty"` // paths that differed at first, but no longer when the case was compared again
	Reasons     []string     `json:"why,omitempty"`   // explain why the case is not comparable
	// File and Line are the position of the scenario.
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// OursMS and RealMS are the durations of the runs of both programs.
	OursMS int64 `json:"ours_ms"`
	RealMS int64 `json:"real_ms"`
}

// SetStatusFromDifferences derives the status of the verdict: whether the case differs, and whether all differences are accepted.
func (v *Verdict) SetStatusFromDifferences() {
	v.Status = StatusSame
	for _, d := range v.Differences {
		if d.Known == "" {
			v.Status = StatusDiffers
			return
		}
		v.Status = StatusOnlyKnownDifferences
	}
}

// UnknownDifferencePaths returns the paths that differ and are not known.
func (v *Verdict) UnknownDifferencePaths() (paths []string) {
	for _, d := range v.Differences {
		if d.Known == "" {
			paths = append(paths, d.Path)
		}
	}
	return paths
}

// Report holds the outcomes of all cases.
type Report struct {
	Cases   []*Verdict `json:"cases"`
	Verbose bool       `json:"-"` // allows a text longer than one screen
	// Versions are the two versions of the real CLI that were compared, and Changes the differences between them.
	// Versions is nil if claudeless was compared with the real CLI.
	Versions []string        `json:"between,omitempty"`
	Changes  []VersionChange `json:"changes,omitempty"`
}

// Count returns the number of cases with a status.
func (r *Report) Count(s Status) (n int) {
	for _, v := range r.Cases {
		if v.Status == s {
			n++
		}
	}
	return n
}

// JSON returns the complete report.
func (r *Report) JSON() ([]byte, error) { return plainjson.Indented(r) }

// WriteText writes the cases that need attention or, if r compares two CLI versions, their changelog, and a summary
// line. It writes at most one screen, unless r.Verbose is set. A verbose report also has counts by area and surface.
func (r *Report) WriteText(w io.Writer) error {
	var texts []string
	if r.Versions != nil {
		texts = r.versionChangeLines()
	} else {
		for _, v := range r.Cases {
			if text := v.describeIfAttentionNeeded(); text != "" && (r.Verbose || v.Status != StatusNotComparable) {
				texts = append(texts, text)
			}
		}
	}
	var b strings.Builder
	if r.Verbose {
		b.WriteString(strings.Join(texts, ""))
	} else {
		b.WriteString(ShortenReportItemsToOneScreen(texts))
	}
	if r.Verbose && r.Versions == nil {
		r.writeCountsByAreaAndVersion(&b)
		r.writeSameCaseCountsByPart(&b)
	}
	fmt.Fprintf(&b, "%s, %d same, %d known, %d differ, %d not comparable",
		diag.FormatCount(len(r.Cases), "case"), r.Count(StatusSame), r.Count(StatusOnlyKnownDifferences), r.Count(StatusDiffers), r.Count(StatusNotComparable))
	if n := r.Count(StatusNotCompared); n > 0 {
		fmt.Fprintf(&b, ", %d not compared", n)
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// describeIfAttentionNeeded describes a case that needs attention; empty means the case needs none.
func (v *Verdict) describeIfAttentionNeeded() (descriptionOrEmpty string) {
	var b strings.Builder
	at := fmt.Sprintf("%s (%s:%d)", v.Case, v.File, v.Line)
	switch v.Status {
	case StatusSame, StatusOnlyKnownDifferences:
		if len(v.Flaky) > 0 {
			fmt.Fprintf(&b, "flaky: %s, claude %s: differed once, then matched: %s\n", at, v.Version, strings.Join(v.Flaky, ", "))
		}
	case StatusNotComparable, StatusNotCompared:
		fmt.Fprintf(&b, "%s: %s: %s\n", v.Status, at, strings.Join(v.Reasons, "; "))
	case StatusDiffers:
		fmt.Fprintf(&b, "differs: %s, claude %s\n", at, v.Version)
		for _, d := range v.Differences {
			if d.Known == "" {
				d.describe(&b)
			}
		}
	}
	return b.String()
}

func (d *Difference) describe(b *strings.Builder) {
	fmt.Fprintf(b, "  %s", d.Path)
	if d.Event > 0 {
		fmt.Fprintf(b, " (event %d)", d.Event)
	}
	if d.Count > 1 {
		fmt.Fprintf(b, " ×%d", d.Count)
	}
	fmt.Fprintf(b, "\n    ours: %s\n    real: %s\n", indentedOrDash(d.Ours), indentedOrDash(d.Real))
}

func indentedOrDash(s string) string {
	if s == "" {
		return "–"
	}
	return strings.ReplaceAll(s, "\n", "\n          ")
}

func (r *Report) writeCountsByAreaAndVersion(b *strings.Builder) {
	type line struct{ area, version string }
	counts := map[line]map[Status]int{}
	var order []line
	for _, v := range r.Cases {
		l := line{v.Area, v.Version}
		if counts[l] == nil {
			counts[l] = map[Status]int{}
			order = append(order, l)
		}
		counts[l][v.Status]++
	}
	slices.SortFunc(order, func(a, b line) int {
		return cmp.Or(strings.Compare(a.version, b.version), strings.Compare(a.area, b.area))
	})
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "area\tversion\tcases\tsame\tknown\tdiffer\tnot comparable")
	for _, l := range order {
		n := counts[l]
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\n", l.area, l.version,
			n[StatusSame]+n[StatusOnlyKnownDifferences]+n[StatusDiffers]+n[StatusNotComparable]+n[StatusNotCompared], n[StatusSame], n[StatusOnlyKnownDifferences], n[StatusDiffers], n[StatusNotComparable])
	}
	_ = t.Flush() // into memory
}

// writeSameCaseCountsByPart writes, for each part of a recording such as stdout, the number of cases without a difference.
func (r *Report) writeSameCaseCountsByPart(b *strings.Builder) {
	names := []string{"stdout", "stderr", "exit", "hooks", "mcp", "requests", "files", "transcript"}
	same, compared := map[string]int{}, 0
	for _, v := range r.Cases {
		if v.Status == StatusNotComparable || v.Status == StatusNotCompared {
			continue
		}
		compared++
		for _, name := range names {
			if !slices.ContainsFunc(v.Differences, func(d Difference) bool {
				part, _, _ := strings.Cut(d.Path, ".")
				return part == name || !slices.Contains(names, part) // others count for every part: a program could not be run
			}) {
				same[name]++
			}
		}
	}
	b.WriteString("cases that are the same in every key:")
	for _, name := range names {
		fmt.Fprintf(b, " %s %d", name, same[name])
	}
	fmt.Fprintf(b, " of %d\n", compared)
}

// WriteJUnit writes a suite with a test for each case.
func (r *Report) WriteJUnit(w io.Writer) error {
	suite := junit.Suite{Name: "claudeless parity"}
	for _, v := range r.Cases {
		c := junit.Case{Name: v.Case, Class: v.Area + "." + v.Version, File: v.File, Line: v.Line, Time: junit.Seconds(time.Duration(v.OursMS+v.RealMS) * time.Millisecond)}
		switch v.Status {
		case StatusSame, StatusOnlyKnownDifferences:
		case StatusDiffers:
			c.Failure = &junit.Failure{Message: "claudeless and the real claude differ", Type: string(StatusDiffers), Text: v.describeIfAttentionNeeded()}
		case StatusNotCompared:
			c.Failure = &junit.Failure{Message: "not compared: " + strings.Join(v.Reasons, "; "), Type: string(StatusNotCompared)}
		case StatusNotComparable:
			c.Skipped = &junit.Skipped{Message: "not comparable: " + strings.Join(v.Reasons, "; ")}
		}
		suite.Cases = append(suite.Cases, c)
	}
	return suite.Write(w)
}

const (
	maxScreenLines            = 20 // the number of lines for items that need attention
	minLineLimitPerReportItem = 4
	maxLineColumns            = 160
)

// ShortenReportItemsToOneScreen joins a report's items. It truncates long lines and items, and counts omitted items.
func ShortenReportItemsToOneScreen(itemTexts []string) string {
	if len(itemTexts) == 0 {
		return ""
	}
	each := max(minLineLimitPerReportItem, maxScreenLines/len(itemTexts))
	var b strings.Builder
	used, cut := 0, false
	for i, text := range itemTexts {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if used += min(len(lines), each); used > maxScreenLines {
			fmt.Fprintf(&b, "… %d more like these\n", len(itemTexts)-i)
			cut = true
			break
		}
		for j, line := range lines {
			if j == each-1 && len(lines) > each {
				fmt.Fprintf(&b, "  … %d more lines\n", len(lines)-j)
				cut = true
				break
			}
			if r := []rune(line); len(r) > maxLineColumns {
				line, cut = string(r[:maxLineColumns])+"…", true
			}
			b.WriteString(line + "\n")
		}
	}
	if cut {
		b.WriteString("hint: -v prints the whole report\n")
	}
	return b.String()
}

// FormatNormalisedRecordings formats two recordings as they are compared, line by line.
func FormatNormalisedRecordings(name string, ours, theirs *Recording) string {
	var b strings.Builder
	for i, r := range []*Recording{ours, theirs} {
		fmt.Fprintf(&b, "-- %s, %s --\n", name, [2]string{"ours", "real"}[i])
		r.writeNormalisedLines(&b)
	}
	return b.String()
}

func (r *Recording) writeNormalisedLines(b *strings.Builder) {
	n := NewNormaliser(r.Paths)
	stream := func(name string, events []comparedEvent, rank map[string]int) {
		sortResultsByCallAndRelink(events, rank)
		for _, e := range events {
			fmt.Fprintf(b, "%s %s %s\n", name, e.kind, n.formatNormalisedValue(e.value))
		}
	}
	rank, several := map[string]int{}, false
	for _, run := range r.Runs {
		events := parseEventStream(run.Stdout)
		rank = toolCallOrderByID(events)
		several = sortEventsOfParallelAgents(events, rank) || several
		stream("stdout", events, rank)
		if run.Stderr != "" {
			fmt.Fprintf(b, "stderr %s\n", n.Text(strings.TrimSpace(run.Stderr)))
		}
		fmt.Fprintf(b, "exit %s\n", run.exitCodeAndSignalText())
	}
	stream("hooks", parseRecordedEvents(r.Hooks), rank)
	for _, name := range sortedKeysOf(r.MCP) {
		stream("mcp "+name, parseMCPEvents(r.MCP[name]), rank)
	}
	files := withNumberedFileNames(r.Transcripts, n)
	for _, name := range sortedKeysOf(files) {
		stream("transcript "+name, keepLastStateLinesAtEnd(parseRecordedEvents(files[name])), rank)
	}
	stream("requests", requestEvents(r.Requests, several), rank)
	for _, name := range sortedKeysOf(r.Files) {
		fmt.Fprintf(b, "file %s %q\n", n.Text(name), n.Text(r.Files[name]))
	}
	for _, p := range r.Problems {
		fmt.Fprintf(b, "problem %s %s\n", p.Kind, p.Text)
	}
}

package parity

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/claudeless/claudeless/internal/base/junit"
)

// Status is what came of a case.
type Status string

// The statuses.
const (
	Same          Status = "same"
	Excused       Status = "known" // all its differences are known
	Differs       Status = "differ"
	NotComparable Status = "not comparable"
	// NotCompared is a case without a result: interrupted, killed at its time limit, or refused by both programs.
	NotCompared Status = "not compared"
)

// Verdict is what came of one case with one version.
type Verdict struct {
	Case        string       `json:"case"`
	Area        string       `json:"area"`
	Version     string       `json:"version"`
	Status      Status       `json:"status"`
	Differences []Difference `json:"differences"`
	// Flaky are the places that differed in a run before, and not when the case was
	// compared once more.
	Flaky []string `json:"flaky,omitempty"`
	// Why it is not comparable.
	Why []string `json:"why,omitempty"`
	// File and Line are where the scenario stands.
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// OursMS and RealMS are how long the lanes took.
	OursMS int64 `json:"ours_ms"`
	RealMS int64 `json:"real_ms"`
}

// Judge fills in the status.
func (v *Verdict) Judge() {
	v.Status = Same
	for _, d := range v.Differences {
		if d.Known == "" {
			v.Status = Differs
			return
		}
		v.Status = Excused
	}
}

// Unexcused are the places that differ and are not known.
func (v *Verdict) Unexcused() (paths []string) {
	for _, d := range v.Differences {
		if d.Known == "" {
			paths = append(paths, d.Path)
		}
	}
	return paths
}

// Report is what came of all cases.
type Report struct {
	Cases []*Verdict `json:"cases"`
	// Verbose is set where the text is more than one screen.
	Verbose bool `json:"-"`
	// Between are the versions of the real CLI that were compared, and Changes what
	// became of what; nil = it was the double and one of them.
	Between []string `json:"between,omitempty"`
	Changes []Change `json:"changes,omitempty"`
}

// Count is how many cases ended so.
func (r *Report) Count(s Status) (n int) {
	for _, v := range r.Cases {
		if v.Status == s {
			n++
		}
	}
	return n
}

// JSON is the whole report.
func (r *Report) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(r)
	return b.Bytes(), err
}

// WriteText writes one screen: the cases that need attention, and the line with the
// figures. A verbose report holds every difference, the cases that cannot be compared, and the figures
// by area and surface. A report about two versions has the changelog instead of cases.
func (r *Report) WriteText(w io.Writer) error {
	var texts []string
	if r.Between != nil {
		texts = r.changelog()
	} else {
		for _, v := range r.Cases {
			if text := v.text(); text != "" && (r.Verbose || v.Status != NotComparable) {
				texts = append(texts, text)
			}
		}
	}
	var b strings.Builder
	if r.Verbose {
		b.WriteString(strings.Join(texts, ""))
	} else {
		b.WriteString(OneScreen(texts))
	}
	if r.Verbose && r.Between == nil {
		r.table(&b)
		r.surfaces(&b)
	}
	noun := "cases"
	if len(r.Cases) == 1 {
		noun = "case"
	}
	fmt.Fprintf(&b, "%d %s, %d same, %d known, %d differ, %d not comparable",
		len(r.Cases), noun, r.Count(Same), r.Count(Excused), r.Count(Differs), r.Count(NotComparable))
	if n := r.Count(NotCompared); n > 0 {
		fmt.Fprintf(&b, ", %d not compared", n)
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// text says what is to be said about a case; nothing when it is the same.
func (v *Verdict) text() string {
	var b strings.Builder
	at := fmt.Sprintf("%s (%s:%d)", v.Case, v.File, v.Line)
	switch v.Status {
	case Same, Excused:
		if len(v.Flaky) > 0 {
			fmt.Fprintf(&b, "flaky: %s, claude %s: it differed once and not again: %s\n", at, v.Version, strings.Join(v.Flaky, ", "))
		}
	case NotComparable, NotCompared:
		fmt.Fprintf(&b, "%s: %s: %s\n", v.Status, at, strings.Join(v.Why, "; "))
	case Differs:
		fmt.Fprintf(&b, "differs: %s, claude %s\n", at, v.Version)
		for _, d := range v.Differences {
			if d.Known == "" {
				d.text(&b)
			}
		}
	}
	return b.String()
}

func (d *Difference) text(b *strings.Builder) {
	fmt.Fprintf(b, "  %s", d.Path)
	if d.Event > 0 {
		fmt.Fprintf(b, " (event %d)", d.Event)
	}
	if d.Count > 1 {
		fmt.Fprintf(b, " ×%d", d.Count)
	}
	fmt.Fprintf(b, "\n    ours: %s\n    real: %s\n", indented(d.Ours), indented(d.Real))
}

func indented(s string) string {
	if s == "" {
		return "–"
	}
	return strings.ReplaceAll(s, "\n", "\n          ")
}

// table is the figures by area and version.
func (r *Report) table(b *strings.Builder) {
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
			n[Same]+n[Excused]+n[Differs]+n[NotComparable]+n[NotCompared], n[Same], n[Excused], n[Differs], n[NotComparable])
	}
	_ = t.Flush() // into memory
}

// surfaces says of each surface in how many cases it is the same in every key.
func (r *Report) surfaces(b *strings.Builder) {
	names := []string{"stdout", "stderr", "exit", "hooks", "mcp", "requests", "files", "transcript"}
	same, compared := map[string]int{}, 0
	for _, v := range r.Cases {
		if v.Status == NotComparable || v.Status == NotCompared {
			continue
		}
		compared++
		for _, name := range names {
			if !slices.ContainsFunc(v.Differences, func(d Difference) bool { return d.on(name, names) }) {
				same[name]++
			}
		}
	}
	b.WriteString("the same in every key:")
	for _, name := range names {
		fmt.Fprintf(b, " %s %d", name, same[name])
	}
	fmt.Fprintf(b, " of %d\n", compared)
}

// on tells whether the difference is one of a surface: its path begins with the name;
// what begins with none of them, a lane that could not be run, is one of all.
func (d *Difference) on(name string, names []string) bool {
	s, _, _ := strings.Cut(d.Path, ".")
	return s == name || !slices.Contains(names, s)
}

// JUnit writes a suite with a test for each case.
func (r *Report) JUnit(w io.Writer) error {
	suite := junit.Suite{Name: "claudeless parity"}
	for _, v := range r.Cases {
		c := junit.Case{Name: v.Case, Class: v.Area + "." + v.Version, File: v.File, Line: v.Line, Time: junit.Seconds(time.Duration(v.OursMS+v.RealMS) * time.Millisecond)}
		switch v.Status {
		case Same, Excused:
		case Differs:
			c.Failure = &junit.Failure{Message: "the lanes differ", Type: string(Differs), Text: v.text()}
		case NotCompared:
			c.Failure = &junit.Failure{Message: "not compared: " + strings.Join(v.Why, "; "), Type: string(NotCompared)}
		case NotComparable:
			c.Skipped = &junit.Skipped{Message: "not comparable: " + strings.Join(v.Why, "; ")}
		}
		suite.Cases = append(suite.Cases, c)
	}
	return suite.Write(w)
}

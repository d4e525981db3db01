package permissions

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/junit"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/parity"
)

// DecisionComparisonStatus is the result of comparing two decisions.
type DecisionComparisonStatus string

// The statuses.
const (
	StatusSame        DecisionComparisonStatus = "same"
	StatusLooser      DecisionComparisonStatus = "looser"   // claudeless allows or asks; the real CLI is stricter
	StatusStricter    DecisionComparisonStatus = "stricter" // claudeless denies or asks; the real CLI is looser
	StatusKnown       DecisionComparisonStatus = "known"    // looser or stricter for a known reason
	StatusNotCompared DecisionComparisonStatus = "not compared"
)

// DecisionComparison compares the decisions about one call.
type DecisionComparison struct {
	File   string                   `json:"file"`
	Line   int                      `json:"line"`
	Group  string                   `json:"group"`
	Call   string                   `json:"call"`
	Status DecisionComparisonStatus `json:"status"`
	Ours   CallOutcome              `json:"ours"`
	Real   CallOutcome              `json:"real"`
	Known  string                   `json:"known,omitempty"` // the reason of the entry that accepts the difference
}

// CompareOutcomes compares the decisions of two programs about the calls of the group.
func (g *CallGroup) CompareOutcomes(ours, theirs []CallOutcome) []*DecisionComparison {
	var all []*DecisionComparison
	for i := range g.Calls {
		c := &g.Calls[i]
		v := &DecisionComparison{File: g.file.name, Line: c.line, Group: g.Name, Call: c.CommandOrNameAndInput(), Ours: ours[i], Real: theirs[i]}
		v.Status = compareDecisions(ours[i].Decision, theirs[i].Decision)
		if v.Status == StatusLooser || v.Status == StatusStricter {
			if v.Known = g.file.markKnownDecisionUsed(g.Name, c); v.Known != "" {
				v.Status = StatusKnown
			}
		}
		all = append(all, v)
	}
	return all
}

// AllNotComparedBecause returns the verdicts of a group that could not be played.
func (g *CallGroup) AllNotComparedBecause(reason string) []*DecisionComparison {
	none := slices.Repeat([]CallOutcome{{Missing: reason}}, len(g.Calls))
	return g.CompareOutcomes(none, none)
}

func compareDecisions(ours, theirs Decision) DecisionComparisonStatus {
	order := []Decision{Allow, Ask, Deny}
	left, right := slices.Index(order, ours), slices.Index(order, theirs)
	switch {
	case left < 0 || right < 0:
		return StatusNotCompared
	case left < right:
		return StatusLooser
	case left > right:
		return StatusStricter
	}
	return StatusSame
}

// ReportUnusedKnownDecisions reports the known decisions that accepted no difference in this run. It omits those about calls that were not compared.
func (f *CallGroupsFile) ReportUnusedKnownDecisions(verdicts []*DecisionComparison) (list diag.List) {
	for i, k := range f.Known {
		missed := slices.ContainsFunc(verdicts, func(v *DecisionComparison) bool {
			return v.File == f.name && v.Call == k.Call && (k.Group == "" || k.Group == v.Group) && v.Status == StatusNotCompared
		})
		if !k.used && !missed {
			d := f.index.DiagnosticAt(diag.Path{"known", i, "call"}, "this call now has the same decision on both sides, or this file does not contain it")
			d.Hint = "remove the entry"
			list = append(list, d)
		}
	}
	return list
}

// CallVerdictsReport holds the verdicts about all calls.
type CallVerdictsReport struct {
	Calls   []*DecisionComparison `json:"calls"`
	Verbose bool                  `json:"-"` // allows a text longer than one screen
}

// Count returns the number of calls with a status.
func (r *CallVerdictsReport) Count(s DecisionComparisonStatus) (n int) {
	for _, v := range r.Calls {
		if v.Status == s {
			n++
		}
	}
	return n
}

// WriteText writes the looser, stricter and uncompared calls, shortened unless r.Verbose is set, and a summary line.
func (r *CallVerdictsReport) WriteText(w io.Writer) error {
	var texts []string
	for _, s := range []DecisionComparisonStatus{StatusNotCompared, StatusStricter, StatusLooser} {
		for _, v := range r.Calls {
			if v.Status == s {
				texts = append(texts, v.textWithBothOutcomes())
			}
		}
	}
	var b strings.Builder
	if r.Verbose {
		b.WriteString(strings.Join(texts, ""))
	} else {
		b.WriteString(parity.ShortenReportItemsToOneScreen(texts))
	}
	fmt.Fprintf(&b, "%s, %d same, %d looser, %d stricter, %d known, %d not compared\n",
		diag.FormatCount(len(r.Calls), "call"), r.Count(StatusSame), r.Count(StatusLooser), r.Count(StatusStricter), r.Count(StatusKnown), r.Count(StatusNotCompared))
	_, err := io.WriteString(w, b.String())
	return err
}

func (v *DecisionComparison) textWithBothOutcomes() string {
	return fmt.Sprintf("%s: %s (%s:%d, group %s)\n  ours: %s\n  real: %s\n", v.Status, escapeUnprintableCharacters(v.Call), v.File, v.Line, v.Group, v.Ours, v.Real)
}

func escapeUnprintableCharacters(callText string) string {
	var b strings.Builder
	for _, r := range callText {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// String returns the outcome with its reason.
func (o CallOutcome) String() string {
	switch {
	case o.Decision == "":
		return "no decision: " + o.Missing
	case o.Reason != "":
		return string(o.Decision) + " (" + o.Reason + ")"
	}
	return string(o.Decision)
}

// JSON returns the complete report.
func (r *CallVerdictsReport) JSON() ([]byte, error) { return plainjson.Indented(r) }

// WriteJUnit writes a suite with a test for each call.
func (r *CallVerdictsReport) WriteJUnit(w io.Writer) error {
	suite := junit.Suite{Name: "claudeless parity --permissions"}
	for _, v := range r.Calls {
		c := junit.Case{Name: v.Call, Class: v.Group, File: v.File, Line: v.Line}
		if v.Status != StatusSame && v.Status != StatusKnown {
			c.Failure = &junit.Failure{Message: string(v.Status), Type: string(v.Status), Text: v.textWithBothOutcomes()}
		}
		suite.Cases = append(suite.Cases, c)
	}
	return suite.Write(w)
}

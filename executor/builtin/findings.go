package builtin

import (
	"context"
	"fmt"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// finding is one result of a review, its keys in the order in which hosts get
// them.
type finding struct {
	File         string   `json:"file"`
	Line         *float64 `json:"line,omitempty"`
	Summary      string   `json:"summary"`
	ShortSummary *string  `json:"short_summary,omitempty"`
	Failure      string   `json:"failure_scenario"`
	Category     *string  `json:"category,omitempty"`
	Severity     string   `json:"severity,omitempty"`
	Verdict      string   `json:"verdict,omitempty"`
	Outcome      string   `json:"outcome,omitempty"`
}

type findings struct {
	Count    int       `json:"count"`
	Level    string    `json:"level,omitempty"`
	Findings []finding `json:"findings"`
}

// Bounds of a report.
const (
	maxFindings     = 32
	maxShortSummary = 60
	maxCategory     = 40
)

func reportFindingsTool() tool {
	found := list("What was found, the worst first", object(
		req("file", str("The file, from the root of the repository")),
		opt("line", integer("The line in it")),
		req("summary", str("What is wrong")),
		opt("short_summary", schema{Type: "string", Desc: "The same as a label", Max: maxShortSummary}),
		req("failure_scenario", str("What leads to a wrong outcome")),
		opt("category", schema{Type: "string", Desc: "The kind of finding", Max: maxCategory}),
		opt("severity", str("How much it matters", "important", "pre_existing", "nit")),
		opt("verdict", str("What a second look said", "CONFIRMED", "PLAUSIBLE")),
		opt("outcome", str("What became of it", "fixed", "skipped", "no_change_needed")),
	))
	found.Max = maxFindings
	return tool{
		name:        "ReportFindings",
		description: "Hands the findings of a review to the host.",
		input:       object(opt("level", str("How thorough the review was", "low", "medium", "high", "xhigh", "max")), req("findings", found)),
		run:         typed(reportFindings),
	}
}

func reportFindings(_ context.Context, _ *Tools, in findings) protocol.ToolResult {
	in.Count, in.Findings = len(in.Findings), nonNil(in.Findings)
	switch in.Count {
	case 0:
		return text("No findings reported.", in)
	case 1:
		return text("1 finding reported.", in)
	}
	return text(fmt.Sprintf("%d findings reported.", in.Count), in)
}

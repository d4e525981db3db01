package builtin

import (
	"context"
	"fmt"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// reviewFinding is one result of a review, with its keys in the order in which
// hosts receive them.
type reviewFinding struct {
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
	Count    int             `json:"count"`
	Level    string          `json:"level,omitempty"`
	Findings []reviewFinding `json:"findings"`
}

// Limits of a report.
const (
	maxFindings     = 32
	maxShortSummary = 60
	maxCategory     = 40
)

func findingTools() []tool.Tool { return []tool.Tool{reportFindingsTool()} }

func reportFindingsTool() tool.Tool {
	found := tool.List("What was found, the worst first", tool.Object(
		tool.Req("file", tool.Str("The file, from the root of the repository")),
		tool.Opt("line", tool.Integer("The line in it")),
		tool.Req("summary", tool.Str("What is wrong")),
		tool.Opt("short_summary", tool.Schema{Type: "string", Desc: "The same as a label", Max: maxShortSummary}),
		tool.Req("failure_scenario", tool.Str("What leads to a wrong outcome")),
		tool.Opt("category", tool.Schema{Type: "string", Desc: "The kind of finding", Max: maxCategory}),
		tool.Opt("severity", tool.Str("How much it matters", "important", "pre_existing", "nit")),
		tool.Opt("verdict", tool.Str("What a second look said", "CONFIRMED", "PLAUSIBLE")),
		tool.Opt("outcome", tool.Str("What became of it", "fixed", "skipped", "no_change_needed")),
	))
	found.Max = maxFindings
	return tool.Tool{
		Name:        "ReportFindings",
		Description: "Hands the findings of a review to the host.",
		Input:       tool.Object(tool.Opt("level", tool.Str("How thorough the review was", "low", "medium", "high", "xhigh", "max")), tool.Req("findings", found)),
		Run:         tool.TypedRun(struct{}{}, reportFindings),
	}
}

func reportFindings(_ context.Context, _ struct{}, in findings) protocol.ToolResult {
	in.Count, in.Findings = len(in.Findings), tool.NonNil(in.Findings)
	switch in.Count {
	case 0:
		return tool.Text("No findings reported.", in)
	case 1:
		return tool.Text("1 finding reported.", in)
	}
	return tool.Text(fmt.Sprintf("%d findings reported.", in.Count), in)
}

package builtin

import (
	"context"
	"fmt"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// reviewFinding is one finding of a review. Its fields are in the order in which hosts receive the keys.
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

type reportFindingsInput struct {
	Count    int             `json:"count"`
	Level    string          `json:"level,omitempty"`
	Findings []reviewFinding `json:"findings"`
}

// Limits of ReportFindings: the number of findings, and the lengths of labels in characters.
const (
	maxReviewFindings                  = 32
	maxCharactersInFindingShortSummary = 60
	maxCharactersInFindingCategory     = 40
)

func reportFindingsTools() []tool.Tool { return []tool.Tool{reportFindingsTool()} }

func reportFindingsTool() tool.Tool {
	found := tool.List("What was found, the worst first", tool.Object(
		tool.Required("file", tool.String("The file, from the root of the repository")),
		tool.Optional("line", tool.Integer("The line in it")),
		tool.Required("summary", tool.String("What is wrong")),
		tool.Optional("short_summary", tool.Schema{Type: "string", Description: "Short form of the summary", Max: maxCharactersInFindingShortSummary}),
		tool.Required("failure_scenario", tool.String("The input or condition that leads to a wrong result")),
		tool.Optional("category", tool.Schema{Type: "string", Description: "The kind of finding", Max: maxCharactersInFindingCategory}),
		tool.Optional("severity", tool.String("Severity of the finding", "important", "pre_existing", "nit")),
		tool.Optional("verdict", tool.String("Result of a second review", "CONFIRMED", "PLAUSIBLE")),
		tool.Optional("outcome", tool.String("What was done about the finding", "fixed", "skipped", "no_change_needed")),
	))
	found.Max = maxReviewFindings
	return tool.Tool{
		Name:        "ReportFindings",
		Description: "Hands the findings of a review to the host.",
		Input:       tool.Object(tool.Optional("level", tool.String("How thorough the review was", "low", "medium", "high", "xhigh", "max")), tool.Required("findings", found)),
		Run:         tool.TypedRun(struct{}{}, reportFindings),
	}
}

func reportFindings(_ context.Context, _ struct{}, in reportFindingsInput) protocol.ToolResult {
	in.Count, in.Findings = len(in.Findings), tool.NonNil(in.Findings)
	switch in.Count {
	case 0:
		return tool.Text("No findings reported.", in)
	case 1:
		return tool.Text("1 finding reported.", in)
	}
	return tool.Text(fmt.Sprintf("%d findings reported.", in.Count), in)
}

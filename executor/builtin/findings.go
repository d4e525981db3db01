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

func reportFindings(_ context.Context, _ struct{}, in reportFindingsInput) protocol.ToolResult {
	in.Count, in.Findings = len(in.Findings), tool.NonNilCopy(in.Findings)
	switch in.Count {
	case 0:
		return tool.TextResult("No findings reported.", in)
	case 1:
		return tool.TextResult("1 finding reported.", in)
	}
	return tool.TextResult(fmt.Sprintf("%d findings reported.", in.Count), in)
}

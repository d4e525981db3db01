package transcript

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

type sessionCosts struct {
	totals             protocol.CostStateLine
	previousUsage      map[string]protocol.ModelUsage // usage of earlier processes, by model
	previousWaitMillis int                            // time in ms that earlier processes waited for the model
}

func (c *sessionCosts) restoreFromLine(line protocol.CostStateLine) {
	c.totals, c.previousWaitMillis = line, line.TotalAPIDuration
	c.previousUsage = make(map[string]protocol.ModelUsage, len(line.ModelUsage))
	for model, u := range line.ModelUsage {
		c.previousUsage[model] = convertUsage[protocol.ModelUsage](u)
	}
}

func (c *sessionCosts) addToolDurationAndLineChanges(ev *protocol.ToolExecuted) {
	c.totals.TotalToolDuration += int(ev.Duration / time.Millisecond)
	added, removed := countChangedLines(ev.Result)
	c.totals.TotalLinesAdded, c.totals.TotalLinesRemoved = c.totals.TotalLinesAdded+added, c.totals.TotalLinesRemoved+removed
}

// updateFromResult takes over the costs of the session so far from a result, and adds the duration of its turn. It ignores the
// result of a session that failed outside a turn.
func (c *sessionCosts) updateFromResult(ev *protocol.ResultEvent) {
	if len(ev.ModelUsage) == 0 && len(ev.Errors) > 0 {
		return
	}
	c.totals.TotalCostUSD = ev.TotalCostUSD
	c.totals.TotalAPIDuration = c.previousWaitMillis + ev.DurationAPIMS
	c.totals.TotalAPIDurationWithoutRetries = c.totals.TotalAPIDuration
	c.totals.TotalDuration += ev.DurationMS
	c.totals.ModelUsage = make(map[string]protocol.LineModelUsage, len(ev.ModelUsage))
	c.totals.HasUnknownModelCost = false
	for model, u := range ev.ModelUsage {
		c.totals.ModelUsage[model] = convertUsage[protocol.LineModelUsage](u)
		c.totals.HasUnknownModelCost = c.totals.HasUnknownModelCost || u.CostBasis == "unknown"
	}
}

func countChangedLines(r protocol.ToolResult) (added, removed int) {
	if r.IsError || r.Output == nil {
		return 0, 0 // only the output of an edit has a patch
	}
	raw, err := protocol.Marshal(r.Output)
	if err != nil {
		return 0, 0
	}
	var out struct {
		Type            string                     `json:"type"`
		Content         string                     `json:"content"`
		StructuredPatch []struct{ Lines []string } `json:"structuredPatch"`
	}
	if json.Unmarshal(raw, &out) != nil || !strings.Contains(string(raw), `"structuredPatch"`) {
		return 0, 0
	}
	if out.Type == "create" && out.Content != "" {
		added = strings.Count(out.Content, "\n") + 1
	}
	for _, hunk := range out.StructuredPatch {
		for _, line := range hunk.Lines {
			if strings.HasPrefix(line, "+") {
				added++
			} else if strings.HasPrefix(line, "-") {
				removed++
			}
		}
	}
	return added, removed
}

// convertUsage converts one type of usage to another. It copies the values whose JSON keys both types have.
func convertUsage[To, From any](from From) (to To) {
	if raw, err := json.Marshal(from); err == nil {
		_ = json.Unmarshal(raw, &to) // both types have the same kinds of values
	}
	return to
}

func (r *recorder) writeCosts() error {
	if !r.lines.opened {
		return nil
	}
	if err := r.lines.flush(); err != nil {
		return err
	}
	line := r.costs.totals
	line.Type, line.SessionID = "cost-state", r.conversation.id
	if line.ModelUsage == nil {
		line.ModelUsage = map[string]protocol.LineModelUsage{}
	}
	return r.conversation.writer.writeLines(r.conversation.path, line)
}

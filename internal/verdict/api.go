package verdict

import (
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/journal"
)

// apiConduct is C14: what callers of the Messages API do wrong. Only what the API
// itself refuses counts.
func apiConduct(entries []journal.Entry) []Finding {
	var found []Finding
	told := map[string]bool{}
	for _, e := range entries {
		q := e.Request
		if q == nil || q.Status != 400 && q.Status != 404 {
			continue
		}
		advice := ""
		switch {
		case strings.Contains(q.Path, "/v1/v1"):
			advice = "the base URL must not end in /v1: clients add it"
		case strings.Contains(q.Error, "anthropic-version"):
			advice = "send the header anthropic-version"
		case strings.Contains(q.Error, "tool_use") || strings.Contains(q.Error, "tool_result"):
			advice = "answer every tool_use in the next user message, and nothing else"
		case strings.Contains(q.Error, "thinking"):
			advice = "send thinking blocks back as they came, signature and all"
		}
		if text := fmt.Sprintf("the API refused a request with %d: %s", q.Status, q.Error); advice != "" && !told[text] {
			told[text] = true
			found = append(found, Finding{ID: "C14", Level: levelError, Text: text, Advice: advice, Time: e.Time, PID: e.PID})
		}
	}
	return found
}

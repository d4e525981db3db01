package verdict

import (
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/record/journal"
)

// apiFindings returns C14 findings about wrong use of the Messages API: requests that the API itself refused, not the
// scenario. They name no process, because the server does not know which process sent a request.
func apiFindings(entries []journal.Entry) []Finding {
	var found []Finding
	told := map[string]bool{}
	for _, e := range entries {
		q := e.Request
		if q == nil || q.Status != 400 && q.Status != 404 || q.Prompt != "" { // a request with a prompt was refused by the scenario
			continue
		}
		advice := ""
		switch {
		case strings.Contains(q.Path, "/v1/v1"):
			advice = "the base URL must not end in /v1: clients add it"
		case strings.Contains(q.Error, "anthropic-version"):
			advice = "send the header anthropic-version"
		case strings.Contains(q.Error, "tool_use") || strings.Contains(q.Error, "tool_result"):
			advice = "send a tool_result for every tool_use in the next user message, and no other tool_result"
		case strings.Contains(q.Error, "thinking"):
			advice = "send thinking blocks back unchanged, with their signature"
		}
		if text := fmt.Sprintf("the API refused a request with %d: %s", q.Status, q.Error); advice != "" && !told[text] {
			told[text] = true
			found = append(found, Finding{ID: "C14", Level: levelError, Text: text, Advice: advice, Time: e.Time})
		}
	}
	return found
}

package importer

import (
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/base/tomltext"
	"github.com/claudeless/claudeless/internal/importer/session"
)

// shortestLink is the length from which a result that a text repeats is no
// coincidence.
const shortestLink = 8

// remember notes the results of a message's calls, as the next steps see them.
// Sub-agents have results of their own.
func (w *scenarioWriter) remember(prefix string, blocks []session.Block) {
	if !w.o.Link || strings.Contains(prefix, ".subagent.") {
		return
	}
	for _, b := range blocks {
		if b.Call == nil {
			continue
		}
		result := ""
		if b.Call.Result != nil && b.Call.Agent == nil {
			result = strings.TrimSpace(b.Call.Result.Text)
		}
		w.results = append(w.results, result)
	}
}

// said is a text of the model in which a result that it repeats is a reference
// to that: when somebody edits the result, the text follows.
func (w *scenarioWriter) said(prefix, s string) string {
	if !w.o.Link || strings.Contains(prefix, ".subagent.") {
		return text(s)
	}
	for i, result := range w.results {
		if before, behind, ok := strings.Cut(s, result); ok && len(result) >= shortestLink {
			return tomltext.Quote(template(before) + fmt.Sprintf("{{ trim(results[%d].text) }}", i) + template(behind))
		}
	}
	return text(s)
}

package importer

import (
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/base/tomltext"
	"github.com/claudeless/claudeless/internal/importer/session"
)

// shortestLink is the shortest result that, repeated in a text, is not considered a coincidence.
const shortestLink = 8

// remember stores the results of a message's calls for references in later steps. Sub-agents have their own results.
func (w *scenarioWriter) remember(prefix string, blocks []session.Block) {
	if !w.options.Link || strings.Contains(prefix, ".subagent.") {
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

// withReferences returns a text of the model in which repeated results are replaced by references, so that the text
// follows when a user edits the result.
func (w *scenarioWriter) withReferences(prefix, s string) string {
	if !w.options.Link || strings.Contains(prefix, ".subagent.") {
		return text(s)
	}
	for i, result := range w.results {
		if before, behind, ok := strings.Cut(s, result); ok && len(result) >= shortestLink {
			return tomltext.Quote(template(before) + fmt.Sprintf("{{ trim(results[%d].text) }}", i) + template(behind))
		}
	}
	return text(s)
}

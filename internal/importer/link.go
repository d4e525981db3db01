package importer

import (
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/base/tomltext"
	"github.com/claudeless/claudeless/internal/importer/session"
)

// minLinkLength is the length of the shortest result that, repeated in a text, is not considered a coincidence.
const minLinkLength = 8

// rememberResults stores the results of a message's calls for references in later steps. Sub-agents have their own
// results.
func (w *scenarioWriter) rememberResults(prefix string, blocks []session.Block) {
	if !w.options.LinkResults || strings.Contains(prefix, ".subagent.") {
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
	if !w.options.LinkResults || strings.Contains(prefix, ".subagent.") {
		return quoteText(s)
	}
	for i, result := range w.results {
		if before, behind, ok := strings.Cut(s, result); ok && len(result) >= minLinkLength {
			return tomltext.Quote(escapeTemplate(before) + fmt.Sprintf("{{ trim(results[%d].text) }}", i) + escapeTemplate(behind))
		}
	}
	return quoteText(s)
}

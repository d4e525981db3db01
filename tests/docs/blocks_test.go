package docs

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/internal/base/diag"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// documentTests returns the documents with commands, each with the test that runs them. A test that skips a command
// states the reason.
func documentTests() map[string]string {
	return map[string]string{
		"README.md":                    "TestPages, TestReadme",
		"docs/cookbook.md":             "TestPages",
		"docs/findings.md":             "TestPages",
		"docs/getting-started.md":      "TestPages",
		"docs/go.md":                   "TestPages",
		"docs/migrate-aimock.md":       "TestPages",
		"docs/migrate-fake-claude.md":  "TestPages",
		"docs/migrate-sdk-mocks.md":    "TestPages",
		"packages/npm/README.md":       "TestPages",
		"packages/python/README.md":    "TestPages",
		"docs/debugging.md":            "TestDebuggingGuide",
		"docs/import.md":               "TestImportGuide",
		"docs/oauth.md":                "TestOAuthGuide",
		"docs/orchestrators.md":        "TestOrchestratorsGuide",
		"docs/parity.md":               "TestParityPage",
		"docs/serve.md":                "TestServeClients",
		"docs/shards.md":               "TestPages, TestShards",
		"docs/telemetry.md":            "TestTelemetryGuide",
		"docs/testing-your-program.md": "TestTestingGuide",
	}
}

// TestDocumentBlocks reads every fenced block of every document: JSON and TOML are
// well formed, and a document with shell commands has a test that runs them (C1).
func TestDocumentBlocks(t *testing.T) {
	t.Parallel()
	for _, doc := range tree.MarkdownFiles(t) {
		if strings.HasPrefix(doc, "docs/wire/") || path.Base(doc) == "CHANGELOG.md" {
			continue // facts and history, not examples
		}
		for _, block := range fence.FindAllStringSubmatch(tree.ReadFile(t, doc), -1) {
			kind, body := block[1], block[2]
			if strings.HasPrefix(body, "// ") {
				_, body, _ = strings.Cut(body, "\n") // the name of the file
			}
			var value any
			switch kind {
			case "json":
				if err := json.Unmarshal([]byte(body), &value); err != nil {
					t.Errorf("%s: %v in\n%s", doc, err, body)
				}
			case "toml":
				if doubt := diag.IndexTOML(doc, []byte(body)).FirstPossibleProblem(); doubt != nil {
					t.Errorf("%s: %v in\n%s", doc, diag.List{*doubt}, body)
				}
			case "sh":
				if documentTests()[doc] == "" {
					t.Errorf("%s has commands that no test runs:\n%s", doc, body)
				}
			}
		}
	}
}

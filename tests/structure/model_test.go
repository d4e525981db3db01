package structure

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// C7: examples use current models, so that they run with the real API even after older models were retired.
func TestModelsInDocs(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(tree.Root, "internal/claudecode/picker_models.json"))
	if err != nil {
		t.Fatal(err)
	}
	current := regexp.MustCompile(`"resolvedModel":"(claude-[a-z]+-[0-9-]+)"`)
	known := map[string]bool{}
	for _, m := range current.FindAllStringSubmatch(string(source), -1) {
		known[m[1]] = true
	}
	named := regexp.MustCompile(`claude-(?:opus|sonnet|haiku)-\d+(?:-\d+)*`)
	for _, path := range tree.Files(t) {
		guide := filepath.Ext(path) == ".md" && (!strings.Contains(path, "/") || strings.HasPrefix(path, "docs/") || strings.HasPrefix(path, "packages/"))
		if !guide || strings.HasPrefix(path, "docs/wire/") || path == "CHANGELOG.md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(tree.Root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, model := range named.FindAllString(string(text), -1) {
			if !known[model] {
				t.Errorf("%s: %s is not one of the current models %v", path, model, known)
			}
		}
	}
}

package filecmd

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/scenarios"
)

// The library and the scripts have no findings, except those that a script provokes.
func TestNoFalseAlarms(t *testing.T) {
	for _, name := range scenarios.LibraryNames() {
		s, err := scenarios.LoadLibraryScenario(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := scenarios.Lint(s, scenarios.LintOptions{Tools: builtin.Definitions()}); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
	meant := map[string]bool{"check.txtar/hidden.toml": true, "near-miss.txtar/want.toml": true}
	scripts, err := filepath.Glob("../../../tests/testdata/script/*.txtar")
	if err != nil || len(scripts) < 40 {
		t.Fatal(len(scripts), err)
	}
	for _, path := range scripts {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			name := filepath.Base(path) + "/" + f.Name
			if !strings.HasSuffix(f.Name, ".toml") || meant[name] || strings.HasPrefix(name, "false-green-") {
				continue
			}
			s, err := scenarios.Parse(f.Name, f.Data, scenarios.LoadOptions{ReadFile: func(string) ([]byte, error) { return []byte("{}"), nil }})
			if err != nil {
				continue
			}
			for _, found := range scenarios.Lint(s, scenarios.LintOptions{Tools: builtin.Definitions()}) {
				if !strings.Contains(found.Message, "cannot be met") && !strings.Contains(found.Message, "is always met") { // as intended in scripts about this warning
					t.Errorf("%s: %v", name, found)
				}
			}
		}
	}
}

func TestFileKind(t *testing.T) {
	for keys, want := range map[string]string{
		"":                       "scenario",
		"name responses":         "scenario",
		"name default_response":  "scenario",
		"mcpServers":             "mcp",
		"servers":                "mcp",
		"name version tools":     "fixture",
		"prompts":                "fixture",
		"name mcp responses":     "scenario",
		"tools default_response": "scenario",
		"typo":                   "scenario",
	} {
		if got := fileKind(strings.Fields(keys)); got != want {
			t.Errorf("%q: %s, want %s", keys, got, want)
		}
	}
}

package capture

import (
	"slices"
	"testing"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/screens/tape"
	"github.com/claudeless/claudeless/scenarios"
)

// Every tape, and the scenario in it, is valid.
func TestTapes(t *testing.T) {
	t.Parallel()
	if n := len(TapeNames()); n < 25 || n > 32 {
		t.Errorf("%d tapes, want 25 to 32", n)
	}
	for _, name := range TapeNames() {
		tp, err := LoadEmbeddedTape(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := scenarios.Parse(name+".toml", []byte(tp.Scenario), scenarios.LoadOptions{ReadFile: diag.ReadRegularFile}); err != nil {
			t.Errorf("%s: the scenario: %v", name, err)
		}
		if tp.Doc == "" || !slices.ContainsFunc(tp.Steps, func(s tape.Step) bool { return s.Snapshot != "" }) {
			t.Errorf("%s has no description or no page", name)
		}
	}
}

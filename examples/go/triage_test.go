package triage

import (
	"testing"

	"github.com/claudeless/claudeless/simtest"
)

func TestTriage(t *testing.T) {
	claude := simtest.New(t, simtest.Call("Bash", map[string]any{"command": "echo log"}), "A bug in the parser.")
	if got, err := Triage(t.Context(), 7); err != nil || got != "A bug in the parser." {
		t.Errorf("%q, %v", got, err)
	}
	if tools := claude.Tools(); len(tools) != 1 || tools[0].Name != "Bash" {
		t.Errorf("claude called %v", tools)
	}
}

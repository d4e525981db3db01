//go:build failing

package triage

import (
	"testing"

	"github.com/claudeless/claudeless/simtest"
)

// TestUnusedRule fails, because it has a rule for a prompt that Triage never sends.
func TestUnusedRule(t *testing.T) {
	simtest.New(t).On("triage", "A bug in the parser.").On("deploy", "Done.")
	if _, err := Triage(t.Context(), 7); err != nil {
		t.Error(err)
	}
}

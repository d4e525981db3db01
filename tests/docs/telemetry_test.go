package docs

import (
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestTelemetryGuide executes docs/telemetry.md block by block.
func TestTelemetryGuide(t *testing.T) {
	t.Parallel()
	if ran := (&page{dir: t.TempDir()}).runBlocks(t, tree.ReadFile(t, "docs/telemetry.md"), func(string) string { return "" }); ran != 1 {
		t.Errorf("%d commands were tried, the page has one", ran)
	}
}

package scripts

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestWrapper tests the wrapper of examples/shell-wrapper under every fault of the catalogue: it receives its answer or
// reports that it has none, and if the answer is lost it never reports success.
func TestWrapper(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"jq", "timeout"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the wrapper needs ", program)
		}
	}
	dir := filepath.Join(t.TempDir(), "wrapper")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(tree.Root, "examples", "shell-wrapper"))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "claudeless", "exec", "-s", "hello.toml", "--json", "report.json", "--faults", "all", "--", "./wrapper.sh", "How are you?")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the wrapper does not stand the catalogue: %v\n%s", err, out)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var report struct {
		Faults []struct{ Name, Outcome string }
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range report.Faults {
		got[f.Name] = f.Outcome
	}
	if len(got) != 22 {
		t.Errorf("%d faults were tried, want 22", len(got))
	}
	for _, lost := range []string{"529-storm", "half-last-line", "lying-success", "no-result", "stall-mid-stream", "stdout-stall", "tool-json-truncated"} {
		if got[lost] != "failed" {
			t.Errorf("under %s the wrapper has %s, and the answer was lost", lost, got[lost])
		}
	}
}

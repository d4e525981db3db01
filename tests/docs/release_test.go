package docs

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// TestReleaseVersion checks that a release has the version of the tree, and that the packages define no version.
func TestReleaseVersion(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("releases are made by bash")
	}
	version := strings.TrimSpace(tree.ReadFile(t, "internal/cli/version.txt"))
	cmd := exec.CommandContext(t.Context(), bash, "../../packages/release.sh")
	cmd.Env = append(os.Environ(), "VERSION=9.9.9")
	out, err := cmd.CombinedOutput()
	if want := "release: internal/cli/version.txt says " + version + ", not 9.9.9\n"; err == nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("a release of another version: %v, %q, want %q", err, out, want)
	}
	for _, file := range []string{".goreleaser.yaml", "packages/npm/package.json", "packages/python/pyproject.toml", "packages/python/src/claudeless/__init__.py", "action.yml"} {
		if text := strings.ReplaceAll(tree.ReadFile(t, file), "such as v"+version, ""); strings.Contains(text, version) {
			t.Errorf("%s names the version %s: take it from internal/cli/version.txt", file, version)
		}
	}
}

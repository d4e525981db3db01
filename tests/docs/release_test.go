package docs

import (
	"os"
	"os/exec"
	"slices"
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

// TestChangelog checks that the newest section is the one of the next release, and that it has one line
// an entry, no entry twice, and only the four kinds of changes.
func TestChangelog(t *testing.T) {
	t.Parallel()
	_, sections, _ := strings.Cut(tree.ReadFile(t, "CHANGELOG.md"), "\n## ")
	if version := strings.TrimSpace(tree.ReadFile(t, "internal/cli/version.txt")); !strings.HasPrefix(sections, version+"\n") {
		t.Errorf("the newest section of CHANGELOG.md is %.20q, want %s, the version of internal/cli/version.txt", sections, version)
	}
	seen, inKind := map[string]bool{}, false
	for line := range strings.Lines(sections) {
		line = strings.TrimSuffix(line, "\n")
		kind, isKind := strings.CutPrefix(line, "### ")
		switch {
		case isKind:
			inKind = true
			if !slices.Contains([]string{"Added", "Changed", "Removed", "Fixed"}, kind) {
				t.Errorf("CHANGELOG.md: the kind %q is none of Added, Changed, Removed and Fixed", kind)
			}
		case strings.HasPrefix(line, "- "):
			if seen[line] {
				t.Errorf("CHANGELOG.md: this entry is there twice: %s", line)
			}
			if seen[line] = true; len(line) > 250 {
				t.Errorf("CHANGELOG.md: an entry of %d characters, want at most 250: %s", len(line), line)
			}
		case inKind && line != "" && !strings.HasPrefix(line, "#"):
			if strings.HasPrefix(line, " ") {
				t.Errorf("CHANGELOG.md: an entry of more than one line: %s", line)
			}
		}
	}
}

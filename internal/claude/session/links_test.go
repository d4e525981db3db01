package session

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A link to a missing file is followed: a write through it creates the target.
func TestResolveLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"in", "out"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"in/to": "../out", "in/none": "../out/none", "in/chain": "none", "in/round": "round", "in/deep": "to/../up"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"in/to/new": "out/new", "in/none": "out/none", "in/none/x": "out/none/x", "in/chain": "out/none", "in/new/x": "in/new/x",
	} {
		if got := resolveLinksOfExistingPart(filepath.Join(dir, path)); got != filepath.Join(dir, want) {
			t.Errorf("%s resolves to %s, want %s", path, got, want)
		}
	}
	resolveLinksOfExistingPart(filepath.Join(dir, "in/round")) // must not loop forever
}

func TestMatchFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".env", "a", "b*", "[x]"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string][]string{
		".e*": {".env"}, ".[!a]nv": {".env"}, "[[:alpha:]]": nil, `b\*`: {"b*"}, `\[x\]`: {"[x]"}, "[x": nil, "?": {"a"},
	} {
		got := matchFiles(filepath.Join(dir, pattern))
		for _, name := range want {
			if !slices.Contains(got, filepath.Join(dir, name)) {
				t.Errorf("%s does not find %s: %v", pattern, name, got)
			}
		}
	}
}

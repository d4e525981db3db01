package session

import "testing"

// TestHomeShortened: a path in the home directory begins with ~.
func TestHomeShortened(t *testing.T) {
	const path = "/home/me/.claude/plans/a.md"
	for home, want := range map[string]string{"/home/me": "~/.claude/plans/a.md", "/home/m": path, "": path} {
		if got := homeShortened(path, home); got != want {
			t.Errorf("with home %q: %q, want %q", home, got, want)
		}
	}
}

package parity

import "testing"

// A star matches any text, and the text between two stars may be at any position.
func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"a.b", "a.b", true},
		{"a.b", "axb", false},
		{"a", "ab", false},
		{"*", "", true},
		{"*", "a/b\nc", true},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"*.x", "a/b.x", true},
		{"*.x", "a.x.y", false},
		{"events[*].usage*", "events[3].usage.input", true},
		{"*a*ab", "aab", true},
		{"*ab*ab", "ab", false},
		{"x*b*d", "abcd", false},
		{"a*c*d", "abd", false},
	} {
		if got := matchesTextPattern(tt.pattern, tt.text); got != tt.want {
			t.Errorf("glob(%q, %q) is %t", tt.pattern, tt.text, got)
		}
	}
}

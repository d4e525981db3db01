package settings

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A key or a tool is reported if its name is similar to a known one. Keys of other features, servers, and tools of the
// CLI are not reported.
func TestMisspelled(t *testing.T) {
	for raw, want := range map[string][]string{
		`{"hoks":{},"env":{}}`: {"--settings (inline JSON): unknown key hoks; did you mean hooks?"},
		`{"permissions":{"alow":["Bash"],"defaultMod":"plan"}}`: {
			"--settings (inline JSON): unknown key permissions.alow; did you mean permissions.allow?",
			"--settings (inline JSON): unknown key permissions.defaultMod; did you mean permissions.defaultMode?",
		},
		`{"permissions":{"deny":["Bsh(rm:*)"]}}`: {"flagSettings (permissions.deny): the rule Bsh(rm:*) names no known tool; did you mean Bash?"},
		`{"model":"x","theme":"dark","permissions":{"allow":["Bash","mcp__bsh__x","Task","Skill(a)","Frobnicate"],"ask":[]}}`: nil,
	} {
		s, err := Load(Options{StateDir: t.TempDir(), CWD: t.TempDir(), Sources: []string{}, FlagValue: raw})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, MisspellingMessages(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

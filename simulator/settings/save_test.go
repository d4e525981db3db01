package settings_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
)

// Permission updates of a host are added to the settings file that they name (observed with 2.1.330).
func TestSaveUpdate(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".claude", "settings.local.json")
	rule := func(kind, content string) protocol.PermissionUpdate {
		return protocol.PermissionUpdate{Type: kind, Behavior: "allow", Rules: []protocol.PermissionRule{{ToolName: "Bash", RuleContent: content}}}
	}
	rules := func(u protocol.PermissionUpdate) (texts []string) {
		for _, r := range u.Rules {
			texts = append(texts, r.ToolName+"("+r.RuleContent+")")
		}
		return texts
	}
	for _, u := range []protocol.PermissionUpdate{
		rule("addRules", "touch a"), rule("addRules", "touch b"), rule("addRules", "touch a"), rule("removeRules", "touch b"),
		{Type: "addDirectories", Directories: []string{"/d"}},
		{Type: "setMode", Mode: protocol.ModeAcceptEdits},
	} {
		if err := settings.SaveUpdate(path, u, rules(u)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "permissions": {
    "allow": [
      "Bash(touch a)"
    ],
    "additionalDirectories": [
      "/d"
    ],
    "defaultMode": "acceptEdits"
  }
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(path, []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := settings.SaveUpdate(path, rule("addRules", "x"), nil); err == nil {
		t.Error("a file that is not an object was overwritten")
	}
}

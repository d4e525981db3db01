package launch

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/settings"
)

// A matcher is reported if it is about tool calls, is not a regular expression, and has the name of no tool.
func TestUnmatchedHooks(t *testing.T) {
	for raw, want := range map[string][]string{
		`{"PreToolUse":[{"matcher":"Bsah"}]}`: {"userSettings (hooks.PreToolUse): no tool has the name Bsah of a matcher"},
		`{"PostToolUse":[{"matcher":"Bash|Wirte, Edit"},{"matcher":"Task"}],"PermissionRequest":[{"matcher":"Reed"}]}`: {
			"userSettings (hooks.PermissionRequest): no tool has the name Reed of a matcher", "userSettings (hooks.PostToolUse): no tool has the name Wirte of a matcher",
		},
		`{"PermissionDenied":[{"matcher":"x"}]}`: {"userSettings (hooks.PermissionDenied): no tool has the name x of a matcher"},
		`{"PreToolUse":[{"matcher":"Ba.*"},{"matcher":"*"},{"matcher":""},{},{"matcher":"mcp__db__get"},{"matcher":"KillShell"}]}`: nil,
		`{"SessionStart":[{"matcher":"startup"}],"Stop":[{"matcher":"x"}]}`:                                                        nil,
		`[]`: nil,
	} {
		if diff := cmp.Diff(want, unmatchedHooks([]settings.Hooks{{Source: settings.SourceUser, Raw: json.RawMessage(raw)}})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

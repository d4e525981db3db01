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
		`{"PreToolUse":[{"matcher":"Bsah"}]}`: {"userSettings (hooks.PreToolUse): a matcher names the tool Bsah, which does not exist"},
		`{"PostToolUse":[{"matcher":"Bash|Wirte, Edit"},{"matcher":"Task"}],"PermissionRequest":[{"matcher":"Reed"}]}`: {
			"userSettings (hooks.PermissionRequest): a matcher names the tool Reed, which does not exist", "userSettings (hooks.PostToolUse): a matcher names the tool Wirte, which does not exist",
		},
		`{"PermissionDenied":[{"matcher":"x"}]}`: {"userSettings (hooks.PermissionDenied): a matcher names the tool x, which does not exist"},
		`{"PreToolUse":[{"matcher":"Ba.*"},{"matcher":"*"},{"matcher":""},{},{"matcher":"mcp__db__get"},{"matcher":"KillShell"}]}`: nil,
		`{"SessionStart":[{"matcher":"startup"}],"Stop":[{"matcher":"x"}]}`:                                                        nil,
		`[]`: nil,
	} {
		if diff := cmp.Diff(want, unknownMatcherToolMessages([]settings.Hooks{{Source: settings.SourceUser, Raw: json.RawMessage(raw)}})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

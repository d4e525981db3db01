package launch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/settings"
)

// unmatchedHooks returns a message for each name in a matcher of tool hooks that is not the name of a tool.
func unmatchedHooks(sources []settings.Hooks) (texts []string) {
	for _, source := range sources {
		var events map[string][]struct{ Matcher string }
		_ = json.Unmarshal(source.Raw, &events) // the hooks themselves are checked when they are loaded
		for _, event := range slices.Sorted(maps.Keys(events)) {
			if event != "PermissionRequest" && event != "PermissionDenied" && !strings.Contains(event, "ToolUse") {
				continue
			}
			for _, group := range events[event] {
				for _, name := range unknownTools(group.Matcher) {
					texts = append(texts, fmt.Sprintf("%s (hooks.%s): no tool has the name %s of a matcher", source.Source, event, name))
				}
			}
		}
	}
	return texts
}

// unknownTools returns the names in a matcher that are not names of tools. A regular expression may match any tool.
func unknownTools(matcher string) []string {
	if strings.ContainsAny(matcher, `.*+?^$()[]{}\-`) {
		return nil
	}
	names := strings.FieldsFunc(matcher, func(c rune) bool { return strings.ContainsRune("|, ", c) })
	return slices.DeleteFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "mcp__") || claudecode.ToolNamed(name).Name != ""
	})
}

package settings

import (
	_ "embed" // for schema.json
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claudecode"
)

// schemaJSON has the schema of each key that the CLI validates, in the order in which it reports faults, where that is known.
// Keys for which it tolerates faults (theme, viewMode, effortLevel, the lists of MCP servers …) are not included.
//
//go:embed schema.json
var schemaJSON string

var schemas = sync.OnceValue(func() plainjson.SchemaLibrary { return plainjson.ParseSchemas(schemaJSON) })

// keysWithInvalidValues returns the keys of a file with values that the CLI rejects, in the order of the CLI's schema
// where that is known. Each of them makes the CLI ignore the whole file. Unknown keys are valid (observed with
// 2.1.329).
func keysWithInvalidValues(settingsFile map[string]json.RawMessage) (bad []string) {
	for _, p := range schemas()["settings"].Properties {
		value, found := settingsFile[p.Name]
		if found && (p.Schema.Issues(value) != nil || p.Name == "hooks" && !areHooksGuardingPermissionsValid(value)) {
			bad = append(bad, p.Name)
		}
	}
	return bad
}

// areHooksGuardingPermissionsValid validates the hooks of events that guard permissions. It ignores the hooks of other
// events: of these, withoutInvalidHooks removes only the invalid ones.
func areHooksGuardingPermissionsValid(hooksValue json.RawMessage) bool {
	for event, value := range plainjson.DecodeOrZero[map[string]json.RawMessage](hooksValue) {
		if claudecode.HookEventNamed(event).CanGuardPermissions && !areHookMatchersOfEventValid(value) {
			return false
		}
	}
	return true
}

func areHookMatchersOfEventValid(matchersValue json.RawMessage) bool {
	var matchers []json.RawMessage
	if json.Unmarshal(matchersValue, &matchers) != nil || matchers == nil {
		return false
	}
	return !slices.ContainsFunc(matchers, func(matcher json.RawMessage) bool {
		if schemas()["hook matcher"].Issues(matcher) != nil {
			return true
		}
		hooks := plainjson.DecodeOrZero[struct{ Hooks []json.RawMessage }](matcher).Hooks
		return slices.ContainsFunc(hooks, func(hook json.RawMessage) bool { return !isValidHook(hook) })
	})
}

func isValidHook(hook json.RawMessage) bool {
	if schemas()["hook"].Issues(hook) != nil {
		return false
	}
	fields := plainjson.DecodeOrZero[map[string]json.RawMessage](hook)
	kind, _ := plainjson.StringValue(fields["type"])
	return !slices.ContainsFunc(requiredHookFields(kind), func(key string) bool { return fields[key] == nil })
}

func hookKinds() []string { return []string{"command", "prompt", "agent", "http", "mcp_tool"} }

func requiredHookFields(kind string) []string {
	switch kind {
	case "command":
		return []string{"command"}
	case "http":
		return []string{"url"}
	case "mcp_tool":
		return []string{"server", "tool"}
	default:
		return []string{"prompt"}
	}
}

func validEventNames() string {
	var names []string
	for _, e := range claudecode.HookEvents() {
		names = append(names, e.Name)
	}
	return strings.Join(names, ", ")
}

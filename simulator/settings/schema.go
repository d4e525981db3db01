package settings

import (
	"cmp"
	_ "embed" // for schema.json
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
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

var schemas = sync.OnceValue(func() plainjson.SchemaLibrary { return plainjson.MustParseSchemas(schemaJSON) })

// keysWithInvalidValues returns the keys of a file with values that the CLI rejects, in the order of the CLI's schema where that is
// known. Each of them makes the CLI ignore the whole file. Unknown keys are valid (observed with 2.1.329).
func keysWithInvalidValues(settingsFile map[string]json.RawMessage) (bad []string) {
	for _, p := range schemas()["settings"].Properties {
		value, found := settingsFile[p.Name]
		if guards, _ := faultsOfInvalidGuardHooks(settingsFile["hooks"]); found && (p.Schema.Issues(value) != nil || p.Name == "hooks" && len(guards) > 0) {
			bad = append(bad, p.Name)
		}
	}
	return bad
}

func isValidHook(hook json.RawMessage) bool {
	if schemas()["hook"].Issues(hook) != nil {
		return false
	}
	fields := plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](hook)
	kind, _ := plainjson.StringValue(fields["type"])
	return !slices.ContainsFunc(requiredHookFields(kind), func(key string) bool { return fields[key] == nil }) && (kind != "http" || hasValidURL(fields))
}

// hasValidURL reports whether the URL of a hook is absolute and has a host or path. It may have any scheme.
func hasValidURL(hook map[string]json.RawMessage) bool {
	text, _ := plainjson.StringValue(hook["url"])
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || strings.Trim(u.Host+u.Path+u.Opaque, "/") == "" {
		return false
	}
	_, err = strconv.ParseUint(cmp.Or(u.Port(), "0"), 10, 16)
	return err == nil
}

func hookTypes() []string { return []string{"command", "prompt", "agent", "http", "mcp_tool"} }

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

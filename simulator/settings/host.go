package settings

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Overlay puts settings of a host over others, key by key: a key is replaced as
// a whole, null takes it away.
func Overlay(base, more map[string]json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]json.RawMessage{}
	}
	for key, value := range more {
		if isNull(value) {
			delete(out, key)
			continue
		}
		out[key] = value
	}
	return out
}

// Invalid names the keys whose values no settings may have, in the order of the
// real CLI's schema. Null is valid everywhere, unknown keys are, and so are some
// known ones whose bad values are passed over (observed with 2.1.329).
func Invalid(settings map[string]json.RawMessage) []string {
	var wrong []string
	for _, k := range schema() {
		if raw := settings[k.key]; len(raw) > 0 && !isNull(raw) && !k.valid(raw) {
			wrong = append(wrong, k.key)
		}
	}
	return wrong
}

type key struct {
	key   string
	valid func(json.RawMessage) bool
}

func schema() []key {
	return []key{
		{"apiKeyHelper", is[string]},
		{"awsCredentialExport", is[string]},
		{"awsAuthRefresh", is[string]},
		{"cleanupPeriodDays", is[float64]},
		{"env", is[map[string]any]},
		{"attribution", is[map[string]any]},
		{"includeCoAuthoredBy", is[bool]},
		{"permissions", validPermissions},
		{"model", is[string]},
		{"enableAllProjectMcpServers", is[bool]},
		{"enabledMcpjsonServers", is[[]string]},
		{"disabledMcpjsonServers", is[[]string]},
		{"disableAllHooks", is[bool]},
		{"statusLine", is[map[string]any]},
		{"enabledPlugins", is[map[string]any]},
		{"outputStyle", is[string]},
		{"language", is[string]},
		{"sandbox", is[map[string]any]},
		{"alwaysThinkingEnabled", is[bool]},
	}
}

func is[T any](raw json.RawMessage) bool {
	var value T
	return json.Unmarshal(raw, &value) == nil
}

// validPermissions looks at the shape of the table; rules that make no sense are
// passed over later.
func validPermissions(raw json.RawMessage) bool {
	var table map[string]json.RawMessage
	if json.Unmarshal(raw, &table) != nil {
		return false
	}
	for _, list := range []string{"allow", "deny", "ask", "additionalDirectories"} {
		if value := table[list]; len(value) > 0 && (isNull(value) || !is[[]any](value)) {
			return false
		}
	}
	var mode *string
	if value := table["defaultMode"]; len(value) > 0 && (json.Unmarshal(value, &mode) != nil || mode == nil) {
		return false
	}
	return mode == nil || slices.Contains(modes(), protocol.PermissionMode(*mode))
}

func modes() []protocol.PermissionMode {
	return []protocol.PermissionMode{
		protocol.ModeAcceptEdits, protocol.ModeAuto, protocol.ModeBypass, protocol.ModeDefault, protocol.ModeDontAsk, protocol.ModePlan, "manual",
	}
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

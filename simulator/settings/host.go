package settings

import (
	"encoding/json"
	"maps"
)

// Overlay puts settings of a host over others, key by key: a key is replaced as
// a whole, null takes it away.
func Overlay(base, more map[string]json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]json.RawMessage{}
	}
	for key, value := range more {
		if string(value) == "null" {
			delete(out, key)
			continue
		}
		out[key] = value
	}
	return out
}

// Invalid names the keys whose values no settings may have. Null is valid
// everywhere (observed with 2.1.329).
func Invalid(settings map[string]json.RawMessage) []string {
	file := map[string]any{}
	for key, raw := range settings {
		var value any
		if err := json.Unmarshal(raw, &value); err == nil && value != nil {
			file[key] = value
		}
	}
	return invalid(file)
}

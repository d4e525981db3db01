package settings

import (
	"encoding/json"
	"maps"
)

// Merge merges settings of a host over others: each top-level key is replaced, and null removes it.
func Merge(base, more map[string]json.RawMessage) map[string]json.RawMessage {
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

// InvalidKeys returns the keys with invalid values. Null is always valid (observed with
// 2.1.329).
func InvalidKeys(settings map[string]json.RawMessage) []string {
	file := map[string]any{}
	for key, raw := range settings {
		var value any
		if err := json.Unmarshal(raw, &value); err == nil && value != nil {
			file[key] = value
		}
	}
	return invalidKeys(file)
}

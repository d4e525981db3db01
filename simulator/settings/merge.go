package settings

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// EnabledPlugins lists the plugins that the files enable, as "name@marketplace", in the order of first mention.
func (s *Settings) EnabledPlugins() (ids []string) {
	var all plainjson.Object
	for _, layer := range s.Layers {
		file, _ := plainjson.Parse(layer.Raw) // its form was validated before
		plugins, _ := plainjson.Parse(file.Get("enabledPlugins"))
		for _, p := range plugins {
			all = all.With(p.Key, p.Value)
		}
	}
	for _, p := range all {
		if string(p.Value) != "false" {
			ids = append(ids, p.Key)
		}
	}
	return ids
}

// Merged returns all layers as one object: objects by key, lists joined without duplicates, other values by precedence.
func (s *Settings) Merged() map[string]any {
	merged := map[string]any{}
	for _, layer := range s.Layers {
		var tree map[string]any
		if err := json.Unmarshal(layer.Raw, &tree); err == nil {
			mergeInto(merged, tree)
		}
	}
	return merged
}

func mergeInto(target, source map[string]any) {
	for key, value := range source {
		switch value := value.(type) {
		case map[string]any:
			sub, ok := target[key].(map[string]any)
			if !ok {
				sub = map[string]any{}
				target[key] = sub
			}
			mergeInto(sub, value)
		case []any:
			list, _ := target[key].([]any)
			target[key] = joinLists(list, value)
		default:
			target[key] = value
		}
	}
}

func joinLists(list, added []any) []any {
	out := slices.Clone(list)
	for _, v := range added {
		if !slices.ContainsFunc(out, func(o any) bool { return reflect.DeepEqual(o, v) }) {
			out = append(out, v)
		}
	}
	return out
}

package compat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/debug/compat/pickle"
)

const (
	inspectDepth        = 3
	maxInspectedMembers = 100
)

// Inspection is a stored value in readable form.
type Inspection struct {
	CID  string `json:"cid"` // content id: the hash of the bytes
	Type string `json:"type"`
	Repr string `json:"repr"` // Python's repr of the value, truncated
	Size int    `json:"size"` // bytes
	// Attributes are the members of a container, or the state of an object. They may contain members of their own, down
	// to 3 levels. Each level has at most 100; the key "…" has the number of those that are left out.
	Attributes map[string]any `json:"attributes"`
	// Error is "deserialization_failed" if the bytes are not in the declared format; empty means no error.
	Error string `json:"error,omitempty"`
}

// Inspect describes stored bytes: JSON, a pickle, or other data.
func Inspect(cid string, data []byte) Inspection {
	in := Inspection{CID: cid, Size: len(data), Attributes: map[string]any{}}
	if v, err := plainjson.Decode(data); json.Valid(data) && err == nil {
		in.Type, in.Repr = jsonType(v), truncateText(string(data), maxReprBytes)
		in.Attributes = jsonMembers(v, 1)
		return in
	}
	p, err := pickle.Read(data)
	switch {
	case err == nil:
		in.Type, in.Repr = cmp.Or(pickle.TypeName(p), "object"), pickle.Repr(p, maxReprBytes) // a class may have no name
		in.Attributes = PickleMembers(p, 1)
	case len(data) > 1 && data[0] == 0x80 && data[1] <= 5: // starts like a pickle
		in.Type, in.Error = "unknown", "deserialization_failed"
		in.Repr = fmt.Sprintf("<deserialization failed: %v>", err)
	case utf8.Valid(data):
		in.Type, in.Repr, in.Error = "unknown", truncateText(string(data), maxReprBytes), "deserialization_failed"
	default:
		in.Type = "bytes"
		in.Repr = fmt.Sprintf("%d bytes, the first: % x", len(data), data[:min(len(data), 32)])
	}
	return in
}

func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "list"
	default:
		return "object"
	}
}

func jsonMembers(v any, depth int) map[string]any {
	out := map[string]any{}
	switch x := v.(type) {
	case map[string]any:
		for _, key := range limitMembers(slices.Sorted(maps.Keys(x)), out) {
			out[key] = jsonMember(x[key], depth)
		}
	case []any:
		for i, e := range limitMembers(x, out) {
			out[strconv.Itoa(i)] = jsonMember(e, depth)
		}
	}
	return out
}

func jsonMember(v any, depth int) any {
	switch x := v.(type) {
	case string:
		return truncateText(x, maxReprBytes)
	case map[string]any, []any:
		if depth < inspectDepth {
			return jsonMembers(v, depth+1)
		}
		return "<" + jsonType(v) + ">"
	default:
		return x
	}
}

func limitMembers[T any](all []T, out map[string]any) []T {
	if len(all) <= maxInspectedMembers {
		return all
	}
	out["…"] = fmt.Sprintf("%d more", len(all)-maxInspectedMembers)
	return all[:maxInspectedMembers]
}

// PickleMembers returns the members of a value from a pickle, by key, index or name.
func PickleMembers(v any, depth int) map[string]any {
	out := map[string]any{}
	switch x := v.(type) {
	case *pickle.Dict:
		for i, key := range limitMembers(x.Keys, out) {
			name, ok := key.(string)
			if !ok {
				name = pickle.Repr(key, maxReprBytes)
			}
			out[truncateText(name, maxReprBytes)] = memberValue(x.Values[i], depth)
		}
	case *pickle.List:
		addIndexed(x.Items, out, depth)
	case *pickle.Tuple:
		addIndexed(x.Items, out, depth)
	case *pickle.Set:
		addIndexed(x.Items, out, depth)
	case *pickle.Object:
		if x.State != nil {
			return PickleMembers(x.State, depth)
		}
	}
	return out
}

func addIndexed(items []any, out map[string]any, depth int) {
	for i, e := range limitMembers(items, out) {
		out[strconv.Itoa(i)] = memberValue(e, depth)
	}
}

func memberValue(v any, depth int) any {
	switch v.(type) {
	case *pickle.Dict, *pickle.List, *pickle.Tuple:
		if depth < inspectDepth {
			return PickleMembers(v, depth+1)
		}
	}
	return scalarOrRepr(v)
}

func truncateText(s string, size int) string {
	if len(s) <= size {
		return s
	}
	for !utf8.RuneStart(s[size]) {
		size--
	}
	return s[:size] + "…"
}

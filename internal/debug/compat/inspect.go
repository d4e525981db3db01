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
	// Attributes are the members of a container, or the state of an object. Members may contain other members, down to
	// 3 levels. At most 100 members are listed per container; the key "…" then holds the number of the omitted ones.
	Attributes map[string]any `json:"attributes"`
	// Error is "deserialization_failed" if the bytes are not in the declared format; empty means no error.
	Error string `json:"error,omitempty"`
}

// Inspect describes stored bytes: JSON, a pickle, or other data.
func Inspect(cid string, data []byte) Inspection {
	in := Inspection{CID: cid, Size: len(data), Attributes: map[string]any{}}
	if v, err := plainjson.DecodeFirstValue(data); json.Valid(data) && err == nil {
		in.Type, in.Repr = jsonTypeName(v), truncateText(string(data))
		in.Attributes = jsonMembers(v, 1)
		return in
	}
	p, err := pickle.Read(data)
	switch {
	case err == nil:
		in.Type, in.Repr = cmp.Or(pickle.TypeName(p), "object"), pickle.Repr(p, maxReprBytes) // a class may have no name
		in.Attributes = DescribePickleMembers(p, 1)
	case len(data) > 1 && data[0] == 0x80 && data[1] <= 5: // starts like a pickle
		in.Type, in.Error = "unknown", "deserialization_failed"
		in.Repr = fmt.Sprintf("<deserialization failed: %v>", err)
	case utf8.Valid(data):
		in.Type, in.Repr, in.Error = "unknown", truncateText(string(data)), "deserialization_failed"
	default:
		in.Type = "bytes"
		in.Repr = fmt.Sprintf("%d bytes, the first: % x", len(data), data[:min(len(data), 32)])
	}
	return in
}

func jsonTypeName(v any) string {
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
		for _, key := range limitInspectedMembers(slices.Sorted(maps.Keys(x)), out) {
			out[key] = describeMemberOfJSONValue(x[key], depth)
		}
	case []any:
		for i, e := range limitInspectedMembers(x, out) {
			out[strconv.Itoa(i)] = describeMemberOfJSONValue(e, depth)
		}
	}
	return out
}

func describeMemberOfJSONValue(member any, nestingLevel int) any {
	switch x := member.(type) {
	case string:
		return truncateText(x)
	case map[string]any, []any:
		if nestingLevel < inspectDepth {
			return jsonMembers(member, nestingLevel+1)
		}
		return "<" + jsonTypeName(member) + ">"
	default:
		return x
	}
}

func limitInspectedMembers[T any](all []T, omittedCountTarget map[string]any) (firstMembers []T) {
	if len(all) <= maxInspectedMembers {
		return all
	}
	omittedCountTarget["…"] = fmt.Sprintf("%d more", len(all)-maxInspectedMembers)
	return all[:maxInspectedMembers]
}

// DescribePickleMembers returns a pickled value's members by key, index or name. nestingLevel begins at 1.
func DescribePickleMembers(pickledValue any, nestingLevel int) (membersByKeyIndexOrName map[string]any) {
	out := map[string]any{}
	switch x := pickledValue.(type) {
	case *pickle.Dict:
		for i, key := range limitInspectedMembers(x.Keys, out) {
			name, ok := key.(string)
			if !ok {
				name = pickle.Repr(key, maxReprBytes)
			}
			out[truncateText(name)] = describeMemberOfPickledValue(x.Values[i], nestingLevel)
		}
	case *pickle.List:
		addDescribedItemsByIndex(x.Items, out, nestingLevel)
	case *pickle.Tuple:
		addDescribedItemsByIndex(x.Items, out, nestingLevel)
	case *pickle.Set:
		addDescribedItemsByIndex(x.Items, out, nestingLevel)
	case *pickle.Object:
		if x.State != nil {
			return DescribePickleMembers(x.State, nestingLevel)
		}
	}
	return out
}

func addDescribedItemsByIndex(items []any, descriptionsByIndex map[string]any, nestingLevel int) {
	for i, e := range limitInspectedMembers(items, descriptionsByIndex) {
		descriptionsByIndex[strconv.Itoa(i)] = describeMemberOfPickledValue(e, nestingLevel)
	}
}

func describeMemberOfPickledValue(member any, nestingLevel int) any {
	switch member.(type) {
	case *pickle.Dict, *pickle.List, *pickle.Tuple:
		if nestingLevel < inspectDepth {
			return DescribePickleMembers(member, nestingLevel+1)
		}
	}
	return jsonScalarOrPythonRepr(member)
}

func truncateText(s string) string {
	maxBytes := maxReprBytes
	if len(s) <= maxBytes {
		return s
	}
	for !utf8.RuneStart(s[maxBytes]) {
		maxBytes--
	}
	return s[:maxBytes] + "…"
}

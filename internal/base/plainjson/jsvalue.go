package plainjson

import (
	"encoding/json"
	"strconv"
)

// IsSet reports whether a value was sent and is not null.
func IsSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// DecodeOrZero decodes a value. A value of the wrong type becomes the zero value, and so does a field of the wrong type.
func DecodeOrZero[T any](raw json.RawMessage) T {
	var in T
	_ = json.Unmarshal(raw, &in)
	return in
}

// StringValue returns the content of a JSON string; ok is false for other values.
func StringValue(raw json.RawMessage) (string, bool) {
	var value *string
	if json.Unmarshal(raw, &value) != nil || value == nil {
		return "", false
	}
	return *value, true
}

// JSString formats a value as JavaScript does in a template string.
func JSString(raw json.RawMessage) string {
	if text, ok := StringValue(raw); ok {
		return text
	}
	if TypeOf(raw) == "object" {
		return "[object Object]"
	}
	if len(raw) == 0 {
		return "undefined"
	}
	return string(raw)
}

// IsFalsy reports whether JavaScript treats a value as false.
func IsFalsy(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", `""`:
		return true
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && n == 0
}

// IsObjectOfObjects reports whether a value is an object whose values are objects.
func IsObjectOfObjects(raw json.RawMessage) bool {
	var values map[string]json.RawMessage
	if json.Unmarshal(raw, &values) != nil || values == nil {
		return false
	}
	for _, value := range values {
		if TypeOf(value) != "object" {
			return false
		}
	}
	return true
}

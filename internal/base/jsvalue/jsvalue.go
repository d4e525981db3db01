// Package jsvalue reads JSON values as leniently as a JavaScript program that
// does not check types: a value of the wrong type counts as absent and is never
// an error.
package jsvalue

import (
	"encoding/json"
	"strconv"

	"github.com/claudeless/claudeless/internal/base/ordered"
)

// Given tells whether a key holds something: it was sent, and not as null.
func Given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// Read reads a value; one of the wrong type is the zero value, and a key of the wrong type that of its field.
func Read[T any](raw json.RawMessage) T {
	var in T
	_ = json.Unmarshal(raw, &in)
	return in
}

// Text is the text of a JSON string; false = it is none.
func Text(raw json.RawMessage) (string, bool) {
	var value *string
	if json.Unmarshal(raw, &value) != nil || value == nil {
		return "", false
	}
	return *value, true
}

// Word is a value as JavaScript puts it into a text.
func Word(raw json.RawMessage) string {
	if text, ok := Text(raw); ok {
		return text
	}
	if ordered.TypeOf(raw) == "object" {
		return "[object Object]"
	}
	if len(raw) == 0 {
		return "undefined"
	}
	return string(raw)
}

// Falsy tells whether JavaScript takes a value for no.
func Falsy(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", `""`:
		return true
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && n == 0
}

// Objects tells whether a value is an object whose values are objects.
func Objects(raw json.RawMessage) bool {
	var values map[string]json.RawMessage
	if json.Unmarshal(raw, &values) != nil || values == nil {
		return false
	}
	for _, value := range values {
		if ordered.TypeOf(value) != "object" {
			return false
		}
	}
	return true
}

// This file checks values of servers against the schemas of the protocol. Defects are worded as in the real CLI.

package connection

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

type schemaIssue struct {
	Expected string          `json:"expected,omitempty"`
	Code     string          `json:"code"`
	Values   []string        `json:"values,omitempty"`
	Errors   [][]schemaIssue `json:"errors,omitempty"` // if several kinds of value are allowed: the defects for each kind
	Path     []any           `json:"path"`
	Message  string          `json:"message"`

	isContentIssue bool // the value has the right type but the wrong content
}

// schemaCheck returns the defects of a value; nil means none. A missing value is nil.
type schemaCheck func(value json.RawMessage) []schemaIssue

func wrongTypeIssues(expected string, value json.RawMessage) []schemaIssue {
	text := fmt.Sprintf("Invalid input: expected %s, received %s", expected, plainjson.TypeOf(value))
	return []schemaIssue{{Expected: expected, Code: "invalid_type", Path: []any{}, Message: text}}
}

func jsonTypeCheck(jsonType string) schemaCheck {
	return func(v json.RawMessage) []schemaIssue {
		if plainjson.TypeOf(v) == jsonType {
			return nil
		}
		return wrongTypeIssues(jsonType, v)
	}
}

func checkAnyObject(v json.RawMessage) []schemaIssue {
	if plainjson.TypeOf(v) == "object" {
		return nil
	}
	return wrongTypeIssues("record", v)
}

func oneOf(values ...string) schemaCheck {
	return func(v json.RawMessage) []schemaIssue {
		if text, _ := plainjson.StringValue(v); slices.Contains(values, text) {
			return nil
		}
		message := fmt.Sprintf("Invalid input: expected %q", values[0])
		if len(values) > 1 {
			message = fmt.Sprintf(`Invalid option: expected one of "%s"`, strings.Join(values, `"|"`))
		}
		return []schemaIssue{{Code: "invalid_value", Values: values, Path: []any{}, Message: message}}
	}
}

func checkBase64(v json.RawMessage) []schemaIssue {
	text, isText := plainjson.StringValue(v)
	if !isText {
		return wrongTypeIssues("string", v)
	}
	if _, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.Join(strings.Fields(text), ""), "=")); err != nil {
		return []schemaIssue{{Code: "custom", Path: []any{}, Message: "Invalid Base64 string", isContentIssue: true}}
	}
	return nil
}

type objectMemberCheck struct {
	name       string
	valueCheck schemaCheck
	isOptional bool
}

func required(name string, s schemaCheck) objectMemberCheck {
	return objectMemberCheck{name: name, valueCheck: s}
}

func optional(name string, s schemaCheck) objectMemberCheck { return objectMemberCheck{name, s, true} }

// object accepts objects with these members; other members are allowed.
func object(members ...objectMemberCheck) schemaCheck {
	return func(v json.RawMessage) (all []schemaIssue) {
		var found map[string]json.RawMessage
		if plainjson.TypeOf(v) != "object" || json.Unmarshal(v, &found) != nil {
			return wrongTypeIssues("object", v)
		}
		for _, m := range members {
			if value, exists := found[m.name]; exists || !m.isOptional {
				all = append(all, prefixIssues(m.name, m.valueCheck(value))...)
			}
		}
		return all
	}
}

func objectWithEveryMemberCheck(memberCheck schemaCheck) schemaCheck {
	return func(v json.RawMessage) (all []schemaIssue) {
		if issues := checkAnyObject(v); issues != nil {
			return issues
		}
		members, _ := plainjson.Parse(v) // the caller has checked that it is an object
		for _, m := range members {
			all = append(all, prefixIssues(m.Key, memberCheck(m.Value))...)
		}
		return all
	}
}

func listOf(item schemaCheck) schemaCheck {
	return func(v json.RawMessage) (all []schemaIssue) {
		var items []json.RawMessage
		if plainjson.TypeOf(v) != "array" || json.Unmarshal(v, &items) != nil {
			return wrongTypeIssues("array", v)
		}
		for i, value := range items {
			all = append(all, prefixIssues(i, item(value))...)
		}
		return all
	}
}

// union accepts values of several kinds. For a value of no kind, it reports the defects for each kind. There is one
// exception: if the value has exactly one of the kinds and only its content is invalid, it reports only the defects of
// the content.
func union(kinds ...schemaCheck) schemaCheck {
	return func(v json.RawMessage) []schemaIssue {
		var all, near [][]schemaIssue
		for _, kind := range kinds {
			issues := kind(v)
			if len(issues) == 0 {
				return nil
			}
			all = append(all, issues)
			if hasRightTypeButInvalidContent(issues) {
				near = append(near, issues)
			}
		}
		if len(near) == 1 {
			return near[0]
		}
		return []schemaIssue{{Code: "invalid_union", Errors: all, Path: []any{}, Message: "Invalid input"}}
	}
}

func hasRightTypeButInvalidContent(issues []schemaIssue) bool {
	for _, i := range issues {
		if !i.isContentIssue {
			return false
		}
	}
	return true
}

func prefixIssues(key any, issues []schemaIssue) []schemaIssue {
	for i := range issues {
		issues[i].Path = append([]any{key}, issues[i].Path...)
	}
	return issues
}

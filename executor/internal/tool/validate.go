package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Validate returns the result for an invalid input; nil for a valid one. The text for the model consists of sentences.
// Hosts receive the issues in the format of the real CLI's validator.
func (s Schema) Validate(call protocol.ToolUse) *protocol.ToolResult {
	raw := call.Input
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if !json.Valid(raw) {
		return new(protocol.UsageError(fmt.Sprintf("InputValidationError: %s failed: the input is not valid JSON", call.Name)))
	}
	return InvalidInput(call.Name, s.issues([]any{}, raw))
}

// issues returns the issues of a value. A nil raw means that the value is missing.
func (s Schema) issues(path []any, raw json.RawMessage) []Issue {
	got, want := plainjson.TypeOf(raw), s.Type
	var number float64
	if want == "integer" {
		want = "number"
	}
	switch {
	case want != "" && got != want && len(s.Enum) == 0:
		return []Issue{wrongType(want, "", got, path)}
	case len(s.Enum) > 0 && (got != "string" || !slices.Contains(s.Enum, TextOfJSONStringOrStringList(raw))):
		return []Issue{{
			Code: "invalid_value", Values: s.Enum, Path: path,
			Message: `Invalid option: expected one of "` + strings.Join(s.Enum, `"|"`) + `"`,
		}}
	case s.Type == "integer" && (json.Unmarshal(raw, &number) != nil || number != math.Trunc(number)):
		return []Issue{wrongType("int", "safeint", got, path)}
	case got == "number" && s.NonNegative && strings.HasPrefix(string(bytes.TrimSpace(raw)), "-"):
		return []Issue{TooSmall("number", 0, path)}
	case got == "string":
		return s.textIssues(path, TextOfJSONStringOrStringList(raw))
	case got == "array":
		return s.arrayIssues(path, raw)
	case got == "object":
		return s.propIssues(path, raw)
	}
	return nil
}

func (s Schema) arrayIssues(path []any, array json.RawMessage) []Issue {
	var items []json.RawMessage
	_ = json.Unmarshal(array, &items) // the caller has checked the type
	var found []Issue
	if s.Items != nil {
		for i, item := range items {
			found = append(found, s.Items.issues(appendPath(path, i), item)...)
		}
	}
	if len(items) < s.Min {
		found = append(found, TooSmall("array", s.Min, path))
	}
	if s.Max > 0 && len(items) > s.Max {
		found = append(found, tooBig("array", s.Max, path))
	}
	return found
}

func (s Schema) textIssues(path []any, value string) []Issue {
	var found []Issue
	if s.EmptyMessage != "" && value == "" {
		empty := TooSmall("string", 1, path)
		empty.Message = s.EmptyMessage
		return []Issue{empty}
	}
	if n := len(utf16.Encode([]rune(value))); n < s.Min {
		found = append(found, TooSmall("string", s.Min, path))
	} else if s.Max > 0 && n > s.Max {
		found = append(found, tooBig("string", s.Max, path))
	}
	if u, err := url.Parse(value); s.URL && (err != nil || u.Scheme == "" || u.Host == "" && (u.Scheme == "http" || u.Scheme == "https")) {
		found = append(found, Issue{Format: "url", Code: "invalid_format", Path: path, Message: "Invalid URL", order: keyOrderCodeFormatPathMessage})
	}
	return found
}

func (s Schema) propIssues(path []any, raw json.RawMessage) []Issue {
	value, _ := plainjson.Parse(raw) // the caller has checked the type
	var found []Issue
	known := make(map[string]bool, len(s.Properties))
	for _, p := range s.Properties {
		known[p.Name] = true
		if v := value.Get(p.Name); v != nil || p.Required {
			found = append(found, p.issues(appendPath(path, p.Name), v)...)
		}
	}
	if s.Type != "object" || s.AllowsUnknown {
		return found
	}
	var extra []string
	for _, m := range value {
		if !known[m.Key] {
			extra = append(extra, m.Key)
		}
	}
	if len(extra) == 0 {
		return found
	}
	message := "Unrecognized key: "
	if len(extra) > 1 {
		message = "Unrecognized keys: "
	}
	return append(found, Issue{
		Code: "unrecognized_keys", Keys: extra, Path: path, Message: message + `"` + strings.Join(extra, `", "`) + `"`,
	})
}

func appendPath(path []any, step any) []any { return append(slices.Clone(path), step) }

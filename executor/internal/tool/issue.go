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

// Issue is one problem of an input. Its JSON form has the keys of the validation library zod, which the real CLI uses.
type Issue struct {
	Expected  string   `json:"expected,omitempty"`
	Format    string   `json:"format,omitempty"`
	Origin    string   `json:"origin,omitempty"`
	Code      string   `json:"code"`
	Minimum   *int     `json:"minimum,omitempty"`
	Maximum   int      `json:"maximum,omitempty"`
	Inclusive bool     `json:"inclusive,omitempty"`
	Values    []string `json:"values,omitempty"`
	Keys      []string `json:"keys,omitempty"`
	Path      []any    `json:"path"`
	Message   string   `json:"message"`

	received string // actual type, for the code invalid_type
	order    issueJSONKeyOrder
}

// MarshalJSON writes the keys in the order that i.order selects.
func (i Issue) MarshalJSON() ([]byte, error) {
	type plain Issue
	switch i.order {
	case keyOrderCodeFormatPathMessage:
		return protocol.Marshal(struct {
			Code    string `json:"code"`
			Format  string `json:"format"`
			Path    []any  `json:"path"`
			Message string `json:"message"`
		}{i.Code, i.Format, i.Path, i.Message})
	case keyOrderCodeMessagePath:
		return protocol.Marshal(struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Path    []any  `json:"path"`
		}{i.Code, i.Message, i.Path})
	}
	return protocol.Marshal(plain(i))
}

// issueJSONKeyOrder is the order in which the keys of an issue are written; 0 means the order of the fields of Issue.
type issueJSONKeyOrder int

const (
	keyOrderCodeFormatPathMessage issueJSONKeyOrder = iota + 1
	keyOrderCodeMessagePath
)

// CustomIssue returns an issue that is not about a type or limit of the schema.
func CustomIssue(message string, path ...any) Issue {
	return Issue{Code: "custom", Path: append([]any{}, path...), Message: message}
}

// WithMessageBeforePathInJSON returns the issue in the form whose JSON has the message before the path. The real CLI reports
// issues of single keys in this form.
func (i Issue) WithMessageBeforePathInJSON() Issue {
	i.order = keyOrderCodeMessagePath
	return i
}

func wrongTypeIssue(want, format, got string, path []any) Issue {
	return Issue{Expected: want, Format: format, Code: "invalid_type", Path: path, received: got, Message: "Invalid input: expected " + want + ", received " + got}
}

// TooSmall returns the issue for a value below its minimum. origin is its JSON type: "number", "string" or "array".
func TooSmall(origin string, least int, path []any) Issue {
	return Issue{Origin: origin, Code: "too_small", Minimum: &least, Inclusive: true, Path: path, Message: fmt.Sprintf("Too small: expected %s >=%d%s", jsonTypeWithToBeOrToHave(origin), least, limitUnit(origin))}
}

func tooBigIssue(origin string, maximum int, path []any) Issue {
	return Issue{Origin: origin, Code: "too_big", Maximum: maximum, Inclusive: true, Path: path, Message: fmt.Sprintf("Too big: expected %s <=%d%s", jsonTypeWithToBeOrToHave(origin), maximum, limitUnit(origin))}
}

func jsonTypeWithToBeOrToHave(jsonType string) string {
	if jsonType == "number" {
		return "number to be"
	}
	return jsonType + " to have"
}

func limitUnit(origin string) string {
	switch origin {
	case "string":
		return " characters"
	case "array":
		return " items"
	}
	return ""
}

// InvalidInput returns the error result for an input of toolName with the issues found; nil if found is empty.
func InvalidInput(toolName string, found []Issue) *protocol.ToolResult {
	if len(found) == 0 {
		return nil
	}
	list, _ := json.MarshalIndent(found[:min(len(found), maxReportedIssues)], "", "  ") // strings and numbers cannot fail
	list = []byte(htmlUnescaper.Replace(string(list)))
	text := string(list)
	if lines := issueSentences(found); len(lines) > 0 {
		noun := "issue"
		if len(lines) > 1 {
			noun = "issues"
		}
		text = fmt.Sprintf("%s failed due to the following %s:\n%s", toolName, noun, strings.Join(lines, "\n"))
	}
	r := protocol.UsageError("InputValidationError: " + text)
	r.Output = "InputValidationError: " + string(list)
	return &r
}

// htmlUnescaper reverts the HTML escapes of encoding/json.
var htmlUnescaper = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

const maxReportedIssues = 20

// issueSentences describes issues in sentences. Missing values, unknown keys and wrong types come first, then all other
// issues. If there are only other issues, it returns nothing, because the caller then shows them as JSON.
func issueSentences(found []Issue) []string {
	var missing, extra, wrong, others []string
	for _, i := range found {
		switch {
		case i.Code == "unrecognized_keys":
			for _, key := range i.Keys {
				extra = append(extra, fmt.Sprintf("An unexpected parameter `%s` was provided", key))
			}
		case i.Code == "invalid_type" && i.received == "undefined":
			missing = append(missing, fmt.Sprintf("The required parameter `%s` is missing", formatPath(i.Path)))
		case i.Code == "invalid_type" && len(i.Path) == 0:
			wrong = append(wrong, fmt.Sprintf("The input is expected as `%s` but provided as `%s`", i.Expected, i.received))
		case i.Code == "invalid_type":
			wrong = append(wrong, fmt.Sprintf("The parameter `%s` type is expected as `%s` but provided as `%s`", formatPath(i.Path), i.Expected, i.received))
		case len(i.Path) > 0:
			others = append(others, fmt.Sprintf("The parameter `%s` is invalid: %s", formatPath(i.Path), i.Message))
		}
	}
	lines := slices.Concat(missing, extra, wrong)
	if len(lines) > 0 {
		lines = append(lines, others...)
	}
	return lines[:min(len(lines), maxReportedIssues)]
}

func formatPath(path []any) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}

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
	return InvalidInput(call.Name, s.issuesOfValue([]any{}, raw))
}

// issuesOfValue returns the issues of a value. A nil raw means that the value is missing.
func (s Schema) issuesOfValue(path []any, raw json.RawMessage) []Issue {
	got, want := plainjson.TypeOf(raw), s.Type
	var number float64
	if want == "integer" {
		want = "number"
	}
	switch {
	case want != "" && got != want && len(s.Enum) == 0:
		return []Issue{wrongTypeIssue(want, "", got, path)}
	case len(s.Enum) > 0 && (got != "string" || !slices.Contains(s.Enum, TextOfJSONStringOrStringList(raw))):
		return []Issue{{
			Code: "invalid_value", Values: s.Enum, Path: path,
			Message: `Invalid option: expected one of "` + strings.Join(s.Enum, `"|"`) + `"`,
		}}
	case s.Type == "integer" && (json.Unmarshal(raw, &number) != nil || number != math.Trunc(number)):
		return []Issue{wrongTypeIssue("int", "safeint", got, path)}
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
			found = append(found, s.Items.issuesOfValue(appendPath(path, i), item)...)
		}
	}
	if len(items) < s.Min {
		found = append(found, TooSmall("array", s.Min, path))
	}
	if s.Max > 0 && len(items) > s.Max {
		found = append(found, tooBigIssue("array", s.Max, path))
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
		found = append(found, tooBigIssue("string", s.Max, path))
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
			found = append(found, p.issuesOfValue(appendPath(path, p.Name), v)...)
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

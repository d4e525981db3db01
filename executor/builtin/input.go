package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/claudeless/claudeless/internal/ordered"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// schema describes one value of a tool's input. It is the source of both the
// JSON schema shown to clients and the validation.
type schema struct {
	Type  string // JSON type; "" = anything
	Desc  string
	Enum  []string
	Items *schema // of an array
	Props []prop  // of an object, in the order shown
	Open  bool    // an object that may have other keys
	Min   int     // least number of items or characters
	Max   int     // most items or characters; 0 = no limit
	From0 bool    // a number that is not below 0
	URL   bool    // a text that is an address
}

type prop struct {
	Name     string
	Required bool
	schema
}

// The short forms that tool definitions are written with.

func object(props ...prop) schema { return schema{Type: "object", Props: props} }

func req(name string, s schema) prop { return prop{Name: name, Required: true, schema: s} }

func opt(name string, s schema) prop { return prop{Name: name, schema: s} }

func str(desc string, enum ...string) schema { return schema{Type: "string", Desc: desc, Enum: enum} }

func num(desc string) schema { return schema{Type: "number", Desc: desc} }

func integer(desc string) schema { return schema{Type: "integer", Desc: desc} }

func boolean(desc string) schema { return schema{Type: "boolean", Desc: desc} }

func list(desc string, items schema) schema { return schema{Type: "array", Desc: desc, Items: &items} }

// appendJSON writes the JSON schema with its keys in a stable order. It goes
// without reflection because every run shows every tool, also the shortest.
func (s schema) appendJSON(b []byte) []byte {
	start := append(b, '{')
	b = start
	key := func(name string) {
		if len(b) > len(start) {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), `":`...)
	}
	text := func(name, value string) {
		if value != "" {
			key(name)
			b = appendString(b, value)
		}
	}
	text("description", s.Desc)
	text("type", s.Type)
	if len(s.Enum) > 0 {
		key("enum")
		b = appendStrings(b, s.Enum)
	}
	if s.Items != nil {
		key("items")
		b = s.Items.appendJSON(b)
	}
	bound := func(name string, n int) {
		if n > 0 {
			key(name)
			b = strconv.AppendInt(b, int64(n), 10)
		}
	}
	unit := "Length"
	if s.Type == "array" {
		unit = "Items"
	}
	bound("min"+unit, s.Min)
	bound("max"+unit, s.Max)
	if s.From0 {
		key("minimum")
		b = append(b, '0')
	}
	if s.URL {
		text("format", "uri")
	}
	if s.Type == "object" {
		key("properties")
		b = appendProps(b, s.Props)
		if required := requiredOf(s.Props); len(required) > 0 {
			key("required")
			b = appendStrings(b, required)
		}
		key("additionalProperties")
		b = strconv.AppendBool(b, s.Open)
	}
	return append(b, '}')
}

func requiredOf(props []prop) []string {
	var names []string
	for _, p := range props {
		if p.Required {
			names = append(names, p.Name)
		}
	}
	return names
}

func appendProps(b []byte, props []prop) []byte {
	b = append(b, '{')
	for i, p := range props {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, p.Name), ':')
		b = p.appendJSON(b)
	}
	return append(b, '}')
}

func appendStrings(b []byte, values []string) []byte {
	b = append(b, '[')
	for i, value := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, value)
	}
	return append(b, ']')
}

func appendString(b []byte, s string) []byte {
	if !strings.ContainsFunc(s, needsEscape) {
		return append(append(append(b, '"'), s...), '"')
	}
	quoted, _ := protocol.Marshal(s) // a string cannot fail
	return append(b, quoted...)
}

func needsEscape(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

// Prepare returns a call's input as it is shown and run: a default that the
// real CLI shows is filled in, and blanks at line ends are taken from what is
// written to a file. Input that is not for one of these tools, or that is no
// object, comes back as it is.
func (t *Tools) Prepare(call protocol.ToolUse) json.RawMessage {
	b, ok := t.registry[call.Name]
	if !ok || b.prepare == nil {
		return call.Input
	}
	in, err := ordered.Parse(call.Input)
	if err != nil || !b.prepare(&in) {
		return call.Input
	}
	out, err := in.MarshalJSON()
	if err != nil {
		return call.Input
	}
	return out
}

// validate returns the result for a bad input, nil for a good one. The model
// reads sentences, hosts the list that the validator of the real CLI makes.
func (s schema) validate(call protocol.ToolUse) *protocol.ToolResult {
	raw := call.Input
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if !json.Valid(raw) {
		r := protocol.UsageError(fmt.Sprintf("InputValidationError: %s failed: the input is not valid JSON", call.Name))
		return &r
	}
	return invalid(call.Name, s.issues([]any{}, raw))
}

// invalid is the result for an input with issues; nil without any.
func invalid(name string, found []issue) *protocol.ToolResult {
	if len(found) == 0 {
		return nil
	}
	list, _ := json.MarshalIndent(found[:min(len(found), maxIssues)], "", "  ") // strings and numbers cannot fail
	list = []byte(unescape.Replace(string(list)))
	text := string(list)
	if lines := sentences(found); len(lines) > 0 {
		noun := "issue"
		if len(lines) > 1 {
			noun = "issues"
		}
		text = fmt.Sprintf("%s failed due to the following %s:\n%s", name, noun, strings.Join(lines, "\n"))
	}
	r := protocol.UsageError("InputValidationError: " + text)
	r.Output = "InputValidationError: " + string(list)
	return &r
}

// unescape undoes what encoding/json does for the sake of HTML.
var unescape = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// maxIssues bounds what one message lists.
const maxIssues = 20

// issue is one thing wrong with an input, in the form and order of keys that
// zod gives it.
type issue struct {
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

	received string // of invalid_type
	order    order
}

// MarshalJSON keeps the order of keys of the kinds that have one of their own.
func (i issue) MarshalJSON() ([]byte, error) {
	type plain issue
	switch i.order {
	case formatBehindCode:
		return protocol.Marshal(struct {
			Code    string `json:"code"`
			Format  string `json:"format"`
			Path    []any  `json:"path"`
			Message string `json:"message"`
		}{i.Code, i.Format, i.Path, i.Message})
	case messageBeforePath:
		return protocol.Marshal(struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Path    []any  `json:"path"`
		}{i.Code, i.Message, i.Path})
	}
	return protocol.Marshal(plain(i))
}

// order is how an issue's keys are ordered; 0 = as its fields.
type order int

const (
	formatBehindCode order = iota + 1
	messageBeforePath
)

// issues finds what is wrong with a value; nil stands for one that is not there.
func (s schema) issues(path []any, raw json.RawMessage) []issue {
	got, want := ordered.TypeOf(raw), s.Type
	if want == "integer" {
		want = "number"
	}
	switch {
	case want != "" && got != want && len(s.Enum) == 0:
		return []issue{wrongType(want, "", got, path)}
	case len(s.Enum) > 0 && (got != "string" || !slices.Contains(s.Enum, textOf(raw))):
		return []issue{{
			Code: "invalid_value", Values: s.Enum, Path: path,
			Message: `Invalid option: expected one of "` + strings.Join(s.Enum, `"|"`) + `"`,
		}}
	case s.Type == "integer" && !whole(raw):
		return []issue{wrongType("int", "safeint", got, path)}
	case got == "number" && s.From0 && strings.HasPrefix(string(bytes.TrimSpace(raw)), "-"):
		return []issue{tooSmall("number", 0, path)}
	case got == "string":
		return s.textIssues(path, textOf(raw))
	case got == "array":
		return s.itemIssues(path, raw)
	case got == "object":
		return s.propIssues(path, raw)
	}
	return nil
}

func whole(raw json.RawMessage) bool {
	var f float64
	return json.Unmarshal(raw, &f) == nil && f == math.Trunc(f)
}

func wrongType(want, format, got string, path []any) issue {
	return issue{
		Expected: want, Format: format, Code: "invalid_type", Path: path, received: got,
		Message: "Invalid input: expected " + want + ", received " + got,
	}
}

func (s schema) itemIssues(path []any, raw json.RawMessage) []issue {
	var items []json.RawMessage
	_ = json.Unmarshal(raw, &items) // it is an array
	var found []issue
	if s.Items != nil {
		for i, item := range items {
			found = append(found, s.Items.issues(at(path, i), item)...)
		}
	}
	if len(items) < s.Min {
		found = append(found, tooSmall("array", s.Min, path))
	}
	if s.Max > 0 && len(items) > s.Max {
		found = append(found, tooBig("array", s.Max, path))
	}
	return found
}

func (s schema) textIssues(path []any, value string) []issue {
	var found []issue
	if n := len(utf16.Encode([]rune(value))); n < s.Min {
		found = append(found, tooSmall("string", s.Min, path))
	} else if s.Max > 0 && n > s.Max {
		found = append(found, tooBig("string", s.Max, path))
	}
	if s.URL && !isURL(value) {
		found = append(found, issue{Format: "url", Code: "invalid_format", Path: path, Message: "Invalid URL", order: formatBehindCode})
	}
	return found
}

// isURL tells whether a text is an address with a scheme, and with a host where
// the web needs one.
func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && (u.Host != "" || u.Scheme != "http" && u.Scheme != "https")
}

// tooSmall and tooBig are a number, a text or a list beyond its bounds.
func tooSmall(origin string, least int, path []any) issue {
	return issue{
		Origin: origin, Code: "too_small", Minimum: &least, Inclusive: true, Path: path,
		Message: fmt.Sprintf("Too small: expected %s >=%d%s", expectedTo(origin), least, unitOf(origin)),
	}
}

func tooBig(origin string, most int, path []any) issue {
	return issue{
		Origin: origin, Code: "too_big", Maximum: most, Inclusive: true, Path: path,
		Message: fmt.Sprintf("Too big: expected %s <=%d%s", expectedTo(origin), most, unitOf(origin)),
	}
}

func expectedTo(origin string) string {
	if origin == "number" {
		return "number to be"
	}
	return origin + " to have"
}

func unitOf(origin string) string {
	switch origin {
	case "string":
		return " characters"
	case "array":
		return " items"
	}
	return ""
}

func (s schema) propIssues(path []any, raw json.RawMessage) []issue {
	value, _ := ordered.Parse(raw) // it is an object
	var found []issue
	known := make(map[string]bool, len(s.Props))
	for _, p := range s.Props {
		known[p.Name] = true
		if v := value.Get(p.Name); v != nil || p.Required {
			found = append(found, p.issues(at(path, p.Name), v)...)
		}
	}
	if s.Type != "object" || s.Open {
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
	return append(found, issue{
		Code: "unrecognized_keys", Keys: extra, Path: path, Message: message + `"` + strings.Join(extra, `", "`) + `"`,
	})
}

func at(path []any, step any) []any { return append(slices.Clone(path), step) }

// sentences words the issues that the model can act on at once: what is
// missing, what is too much, what has the wrong type. Others are told only
// beside those.
func sentences(found []issue) []string {
	var missing, extra, wrong, others []string
	for _, i := range found {
		switch {
		case i.Code == "unrecognized_keys":
			for _, key := range i.Keys {
				extra = append(extra, fmt.Sprintf("An unexpected parameter `%s` was provided", key))
			}
		case i.Code == "invalid_type" && i.received == "undefined":
			missing = append(missing, fmt.Sprintf("The required parameter `%s` is missing", dotted(i.Path)))
		case i.Code == "invalid_type" && len(i.Path) == 0:
			wrong = append(wrong, fmt.Sprintf("The input is expected as `%s` but provided as `%s`", i.Expected, i.received))
		case i.Code == "invalid_type":
			wrong = append(wrong, fmt.Sprintf("The parameter `%s` type is expected as `%s` but provided as `%s`", dotted(i.Path), i.Expected, i.received))
		case len(i.Path) > 0:
			others = append(others, fmt.Sprintf("The parameter `%s` is invalid: %s", dotted(i.Path), i.Message))
		}
	}
	lines := slices.Concat(missing, extra, wrong)
	if len(lines) > 0 {
		lines = append(lines, others...)
	}
	return lines[:min(len(lines), maxIssues)]
}

// dotted writes a path: todos[0].status.
func dotted(path []any) string {
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

// number decodes any JSON number to an int, fractions cut and far values
// clamped.
type number int

const maxNumber = 1 << 40

func (n *number) UnmarshalJSON(data []byte) error {
	var f float64
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	*n = number(max(-maxNumber, min(maxNumber, f)))
	return nil
}

// decode reads a validated input into its Go form.
func decode[In any](raw json.RawMessage) (in In, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return in, nil
	}
	err = json.Unmarshal(raw, &in)
	return in, err
}

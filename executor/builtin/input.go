package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	Min   int     // least number of items
	Max   int     // most items; 0 = no limit
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
	if s.Min > 0 {
		key("minItems")
		b = strconv.AppendInt(b, int64(s.Min), 10)
	}
	if s.Max > 0 {
		key("maxItems")
		b = strconv.AppendInt(b, int64(s.Max), 10)
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
	quoted, _ := protocol.Marshal(s) // a string cannot fail
	return append(b, quoted...)
}

// validate returns the result for a bad input, nil for a good one.
func (s schema) validate(call protocol.ToolUse) *protocol.ToolResult {
	raw := call.Input
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	var is issues
	if err := dec.Decode(&value); err != nil {
		is.add("The input is not valid JSON: %v", err)
	} else {
		is.check(s, "", value)
	}
	if len(is.lines) == 0 {
		return nil
	}
	noun := "issue"
	if len(is.lines) > 1 {
		noun = "issues"
	}
	r := protocol.UsageError(fmt.Sprintf("InputValidationError: %s failed due to the following %s:\n%s",
		call.Name, noun, strings.Join(is.lines, "\n")))
	return &r
}

// maxIssues bounds what one message lists.
const maxIssues = 20

type issues struct{ lines []string }

func (is *issues) add(format string, args ...any) {
	if len(is.lines) < maxIssues {
		is.lines = append(is.lines, fmt.Sprintf(format, args...))
	}
}

func (is *issues) check(s schema, path string, value any) {
	if got := typeOf(value); s.Type != "" && got != s.Type {
		if path == "" {
			is.add("The input is expected as `%s` but provided as `%s`", s.Type, got)
			return
		}
		is.add("The parameter `%s` type is expected as `%s` but provided as `%s`", path, s.Type, got)
		return
	}
	switch v := value.(type) {
	case string:
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
			is.add("The parameter `%s` must be one of `%s` but is `%s`", path, strings.Join(s.Enum, "`, `"), v)
		}
	case []any:
		is.checkItems(s, path, v)
	case map[string]any:
		is.checkProps(s, path, v)
	}
}

func (is *issues) checkItems(s schema, path string, items []any) {
	if len(items) < s.Min {
		is.add("The parameter `%s` must have at least %d items", path, s.Min)
	}
	if s.Max > 0 && len(items) > s.Max {
		is.add("The parameter `%s` must have at most %d items", path, s.Max)
	}
	if s.Items == nil {
		return
	}
	for i, item := range items {
		is.check(*s.Items, fmt.Sprintf("%s[%d]", path, i), item)
	}
}

func (is *issues) checkProps(s schema, path string, value map[string]any) {
	prefix := path
	if prefix != "" {
		prefix += "."
	}
	known := make(map[string]bool, len(s.Props))
	for _, p := range s.Props {
		known[p.Name] = true
		if _, ok := value[p.Name]; p.Required && !ok {
			is.add("The required parameter `%s` is missing", prefix+p.Name)
		}
	}
	if s.Type == "object" && !s.Open {
		var extra []string
		for key := range value {
			if !known[key] {
				extra = append(extra, key)
			}
		}
		slices.Sort(extra)
		for _, key := range extra {
			is.add("An unexpected parameter `%s` was provided", prefix+key)
		}
	}
	for _, p := range s.Props {
		if v, ok := value[p.Name]; ok {
			is.check(p.schema, prefix+p.Name, v)
		}
	}
}

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
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

package tool

import (
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Schema describes one value of a tool's input. The JSON schema for clients and the validation are derived from it.
type Schema struct {
	Type          string // JSON type; "" means any
	Description   string
	Enum          []string
	Items         *Schema    // schema of the items of an array
	Properties    []Property // properties of an object, in the order of the JSON schema
	AllowsUnknown bool       // an object may have other keys
	Min           int        // minimum number of items or characters
	Max           int        // maximum number of items or characters; 0 means no limit
	NonNegative   bool       // a number must not be negative
	URL           bool       // a string must be a URL
	EmptyMessage  string     // error message for an empty string; "" means that a string may be empty
}

// Property is one key of an object.
type Property struct {
	Name     string
	Required bool
	Schema
}

// Object returns the schema of an object with these keys and no others.
func Object(props ...Property) Schema { return Schema{Type: "object", Properties: props} }

// OpenObject returns the schema of an object with these keys and possibly others.
func OpenObject(props ...Property) Schema {
	return Schema{Type: "object", Properties: props, AllowsUnknown: true}
}

// NonEmptyString returns the schema of a nonempty string. refusal is the error message for an empty string.
func NonEmptyString(desc, refusal string) Schema {
	return Schema{Type: "string", Description: desc, EmptyMessage: refusal}
}

// Required returns a required key.
func Required(name string, s Schema) Property { return Property{Name: name, Required: true, Schema: s} }

// Optional returns an optional key.
func Optional(name string, s Schema) Property { return Property{Name: name, Schema: s} }

// String returns the schema of a string. If enum is not empty, only its values are valid.
func String(desc string, enum ...string) Schema {
	return Schema{Type: "string", Description: desc, Enum: enum}
}

// Num returns the schema of a number.
func Num(desc string) Schema { return Schema{Type: "number", Description: desc} }

// Integer returns the schema of an integer.
func Integer(desc string) Schema { return Schema{Type: "integer", Description: desc} }

// Boolean returns the schema of a boolean.
func Boolean(desc string) Schema { return Schema{Type: "boolean", Description: desc} }

// List returns the schema of an array.
func List(desc string, items Schema) Schema {
	return Schema{Type: "array", Description: desc, Items: &items}
}

// AppendJSON appends the JSON schema in a stable key order. It avoids reflection, because every run lists all tools.
func (s Schema) AppendJSON(b []byte) []byte {
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
			b = appendJSONString(b, value)
		}
	}
	text("description", s.Description)
	text("type", s.Type)
	if len(s.Enum) > 0 {
		key("enum")
		b = appendJSONStringArray(b, s.Enum)
	}
	if s.Items != nil {
		key("items")
		b = s.Items.AppendJSON(b)
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
	if s.NonNegative {
		key("minimum")
		b = append(b, '0')
	}
	if s.URL {
		text("format", "uri")
	}
	if s.Type == "object" {
		key("properties")
		b = appendPropertySchemasJSON(b, s.Properties)
		if required := requiredNames(s.Properties); len(required) > 0 {
			key("required")
			b = appendJSONStringArray(b, required)
		}
		key("additionalProperties")
		b = strconv.AppendBool(b, s.AllowsUnknown)
	}
	return append(b, '}')
}

func requiredNames(props []Property) []string {
	var names []string
	for _, p := range props {
		if p.Required {
			names = append(names, p.Name)
		}
	}
	return names
}

func appendPropertySchemasJSON(buffer []byte, properties []Property) []byte {
	buffer = append(buffer, '{')
	for i, p := range properties {
		if i > 0 {
			buffer = append(buffer, ',')
		}
		buffer = append(appendJSONString(buffer, p.Name), ':')
		buffer = p.AppendJSON(buffer)
	}
	return append(buffer, '}')
}

func appendJSONStringArray(buffer []byte, values []string) []byte {
	buffer = append(buffer, '[')
	for i, value := range values {
		if i > 0 {
			buffer = append(buffer, ',')
		}
		buffer = appendJSONString(buffer, value)
	}
	return append(buffer, ']')
}

func appendJSONString(buffer []byte, value string) []byte {
	if !strings.ContainsFunc(value, mayNeedJSONEscape) {
		return append(append(append(buffer, '"'), value...), '"')
	}
	quoted, _ := protocol.Marshal(value) // encoding a string cannot fail
	return append(buffer, quoted...)
}

func mayNeedJSONEscape(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

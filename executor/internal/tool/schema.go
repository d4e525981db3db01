package tool

import (
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Schema describes one value of a tool's input. It is the source of both the
// JSON schema shown to clients and the validation.
type Schema struct {
	Type  string // JSON type; "" = anything
	Desc  string
	Enum  []string
	Items *Schema // of an array
	Props []Prop  // of an object, in the order shown
	Open  bool    // an object that may have other keys
	Min   int     // least number of items or characters
	Max   int     // most items or characters; 0 = no limit
	From0 bool    // a number that is not below 0
	URL   bool    // a text that is an address
	Full  string  // what is said of a text that is empty and must not be; "" = it may be
}

// Prop is one key of an object.
type Prop struct {
	Name     string
	Required bool
	Schema
}

// The short forms that definitions of tools are written with.

// Object is an object with these keys and no others.
func Object(props ...Prop) Schema { return Schema{Type: "object", Props: props} }

// Loose is an object with these keys, and perhaps others.
func Loose(props ...Prop) Schema { return Schema{Type: "object", Props: props, Open: true} }

// Filled is a text that may not be empty, and what is said of one that is.
func Filled(desc, refusal string) Schema { return Schema{Type: "string", Desc: desc, Full: refusal} }

// Req is a key that must be there.
func Req(name string, s Schema) Prop { return Prop{Name: name, Required: true, Schema: s} }

// Opt is a key that may be there.
func Opt(name string, s Schema) Prop { return Prop{Name: name, Schema: s} }

// Str is a text, or one of a few.
func Str(desc string, enum ...string) Schema { return Schema{Type: "string", Desc: desc, Enum: enum} }

// Num is a number.
func Num(desc string) Schema { return Schema{Type: "number", Desc: desc} }

// Integer is a number without a fraction.
func Integer(desc string) Schema { return Schema{Type: "integer", Desc: desc} }

// Boolean is true or false.
func Boolean(desc string) Schema { return Schema{Type: "boolean", Desc: desc} }

// List is an array of values of one kind.
func List(desc string, items Schema) Schema { return Schema{Type: "array", Desc: desc, Items: &items} }

// AppendJSON writes the JSON schema with its keys in a stable order. It goes
// without reflection because every run shows every tool, also the shortest.
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

func requiredOf(props []Prop) []string {
	var names []string
	for _, p := range props {
		if p.Required {
			names = append(names, p.Name)
		}
	}
	return names
}

func appendProps(b []byte, props []Prop) []byte {
	b = append(b, '{')
	for i, p := range props {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, p.Name), ':')
		b = p.AppendJSON(b)
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

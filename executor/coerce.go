package executor

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Coerce converts strings in a call's input to the types of the tool's JSON Schema, as the real CLI does before it shows the call. Models
// sometimes write numbers, booleans, lists and objects as strings. Coerce does not change strings inside lists and objects, strings that
// the schema accepts, and strings that cannot be converted. If the input or the schema is not an object, it returns the input.
func Coerce(input, schema json.RawMessage) json.RawMessage {
	in, err := plainjson.Parse(input)
	if err != nil || !slices.ContainsFunc(in, func(m plainjson.Member) bool { return strings.HasPrefix(string(m.Value), `"`) }) {
		return input
	}
	var s struct {
		Properties map[string]inputSchemaProperty
	}
	if json.Unmarshal(schema, &s) != nil {
		return input
	}
	changed := false
	for i, m := range in {
		p, known := s.Properties[m.Key]
		var text string
		if !known || json.Unmarshal(m.Value, &text) != nil {
			continue
		}
		if v := p.convertStringToSchemaType(strings.TrimSpace(text)); v != nil {
			in[i].Value, changed = v, true
		}
	}
	if !changed {
		return input
	}
	out, err := in.MarshalJSON()
	if err != nil {
		return input
	}
	return out
}

type inputSchemaProperty struct {
	Type  stringOrList          `json:"type"`
	Enum  json.RawMessage       `json:"enum"`
	Const json.RawMessage       `json:"const"`
	Ref   string                `json:"$ref"`
	AnyOf []inputSchemaProperty `json:"anyOf"`
	OneOf []inputSchemaProperty `json:"oneOf"`
	AllOf []inputSchemaProperty `json:"allOf"`
}

type stringOrList []string

func (o *stringOrList) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*o = stringOrList{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(o))
}

// acceptedTypes returns the JSON types that the schema accepts. anything is true if the schema has no constraint.
func (p inputSchemaProperty) acceptedTypes() (types []string, anything bool) {
	types = slices.Clone(p.Type)
	for _, inner := range slices.Concat(p.AnyOf, p.OneOf) {
		more, open := inner.acceptedTypes()
		if open {
			return nil, true
		}
		types = append(types, more...)
	}
	anything = len(types) == 0 && p.Enum == nil && p.Const == nil && p.Ref == "" && len(p.AllOf) == 0
	return types, anything
}

var decimalNumberWithoutExponentPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?\d+(\.\d+)?$`) })

// convertStringToSchemaType returns the JSON value in a string; nil if the schema accepts strings or does not accept that value.
func (p inputSchemaProperty) convertStringToSchemaType(stringArgument string) (convertedJSONOrNil json.RawMessage) {
	types, anything := p.acceptedTypes()
	if slices.Contains(types, "string") || !json.Valid([]byte(stringArgument)) {
		return nil
	}
	wants := func(name string) bool { return anything || slices.Contains(types, name) }
	fits := false
	switch {
	case decimalNumberWithoutExponentPattern().MatchString(stringArgument):
		f, err := strconv.ParseFloat(stringArgument, 64)
		fits = err == nil && (wants("number") || wants("integer") && f == math.Trunc(f))
	case stringArgument == "true", stringArgument == "false":
		fits = wants("boolean")
	case strings.HasPrefix(stringArgument, "["):
		fits = wants("array")
	case strings.HasPrefix(stringArgument, "{"):
		fits = wants("object")
	}
	if !fits {
		return nil
	}
	return json.RawMessage(stringArgument)
}

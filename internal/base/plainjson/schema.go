package plainjson

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
)

// Schema is a JSON Schema, limited to the keywords listed here. A schema without keywords accepts every value. Defects are
// described in the words and in the JSON format of zod, the library with which the real CLI checks values.
type Schema struct {
	// Type is a JSON type or "integer" or "record". A record is an object whose keys are not known; Items is the schema of its values.
	Type             string           `json:"type"`
	Ref              string           `json:"$ref"` // name of a schema of the same [SchemaLibrary]
	AnyOf            []*Schema        `json:"anyOf"`
	Enum             []string         `json:"enum"`
	Items            *Schema          `json:"items"`
	Properties       schemaProperties `json:"properties"`
	Required         []string         `json:"required"`
	AllowsUnknown    *bool            `json:"additionalProperties"` // nil means that other keys are allowed
	MinItems         int              `json:"minItems"`
	MaxItems         int              `json:"maxItems"` // 0 means no limit
	MinLength        int              `json:"minLength"`
	MaxLength        int              `json:"maxLength"` // 0 means no limit
	Minimum          *float64         `json:"minimum"`
	Maximum          *float64         `json:"maximum"`
	ExclusiveMinimum *float64         `json:"exclusiveMinimum"`
	Format           string           `json:"format"` // "uri" or "base64"; others are not checked
	StartsWith       string           `json:"startsWith"`
	EndsWith         string           `json:"endsWith"`
	Default          json.RawMessage  `json:"default"`

	target *Schema // the schema that Ref names
}

// schemaProperties are the properties of an object in the order of the schema, in which they are checked.
type schemaProperties []SchemaProperty

// SchemaProperty is one key of an object.
type SchemaProperty struct {
	Name   string
	Schema *Schema
}

// UnmarshalJSON keeps the order of the keys.
func (p *schemaProperties) UnmarshalJSON(raw []byte) error {
	members, err := Parse(raw)
	for _, m := range members {
		schema := &Schema{}
		if err := json.Unmarshal(m.Value, schema); err != nil {
			return fmt.Errorf("%s: %w", m.Key, err)
		}
		*p = append(*p, SchemaProperty{m.Key, schema})
	}
	return err
}

// SchemaLibrary is a set of schemas by name, which can refer to each other.
type SchemaLibrary map[string]*Schema

// MustParseSchemas parses a JSON object of schemas that is part of the program. It panics if the object is not valid.
func MustParseSchemas(text string) SchemaLibrary {
	var l SchemaLibrary
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		panic("plainjson: " + err.Error())
	}
	for _, s := range l {
		l.mustLinkReferences(s)
	}
	return l
}

func (l SchemaLibrary) mustLinkReferences(s *Schema) {
	if s.Ref != "" {
		if s.target = l[s.Ref]; s.target == nil {
			panic("plainjson: no schema " + s.Ref)
		}
	}
	inner := slices.Clone(s.AnyOf)
	for _, p := range s.Properties {
		inner = append(inner, p.Schema)
	}
	if s.Items != nil {
		inner = append(inner, s.Items)
	}
	for _, i := range inner {
		l.mustLinkReferences(i)
	}
}

// DefectsJSON returns the defects of a value as indented JSON; "" means none. A value for which l has no schema is not checked.
func (l SchemaLibrary) DefectsJSON(schemaName string, value json.RawMessage) (defectsOrEmpty string) {
	if s, known := l[schemaName]; known {
		return IssuesJSON(s.Issues(value))
	}
	return ""
}

// RemoveProperties removes keys from the schema of an object.
func (s *Schema) RemoveProperties(names ...string) {
	s.Properties = slices.DeleteFunc(s.Properties, func(p SchemaProperty) bool { return slices.Contains(names, p.Name) })
}

// StripUnknownAndAddDefaults removes keys that the schema does not have, adds default values, and puts the keys in the order of the schema. It does not
// change values of a wrong type.
func (s *Schema) StripUnknownAndAddDefaults(value json.RawMessage) (reduced json.RawMessage) {
	switch kind := TypeOf(value); {
	case kind == "array" && s.Items != nil:
		items := DecodeIgnoringErrors[[]json.RawMessage](value)
		for i, item := range items {
			items[i] = s.Items.StripUnknownAndAddDefaults(item)
		}
		value, _ = Marshal(items) // cannot fail
	case kind == "object" && s.Properties != nil:
		given, all := DecodeIgnoringErrors[Object](value), Object{}
		for _, p := range s.Properties {
			if v := cmp.Or(string(given.Get(p.Name)), string(p.Schema.Default)); v != "" {
				all = append(all, Member{p.Name, p.Schema.StripUnknownAndAddDefaults(json.RawMessage(v))})
			}
		}
		value = all.Raw()
	}
	return value
}

// Issues returns the defects of a value; nil means none. An empty value is a missing value.
func (s *Schema) Issues(value json.RawMessage) []Issue {
	for s.target != nil {
		s = s.target
	}
	got, want := TypeOf(value), s.Type
	switch {
	case s.AnyOf != nil:
		return s.unionIssues(value)
	case s.Enum != nil:
		return s.enumIssues(value)
	case want == "integer":
		want = "number"
	}
	if isRecord := want == "record" && got == "object"; got != want && want != "" && !isRecord {
		return []Issue{wrongTypeIssue(want, "", got)}
	}
	switch got {
	case "number":
		return s.numberIssues(value)
	case "string":
		return s.textIssues(value)
	case "array":
		return s.arrayIssues(value)
	case "object":
		return s.objectIssues(value)
	}
	return nil
}

// unionIssues accepts values of several kinds. For other values, it reports the defects for each kind. If the value has exactly
// one of the kinds and only its content is invalid, it reports only the defects of the content.
func (s *Schema) unionIssues(value json.RawMessage) []Issue {
	var all, near [][]Issue
	for _, kind := range s.AnyOf {
		issues := kind.Issues(value)
		if len(issues) == 0 {
			return nil
		}
		all = append(all, issues)
		if !slices.ContainsFunc(issues, func(i Issue) bool { return !i.isContentIssue }) { // the type is right
			near = append(near, issues)
		}
	}
	if len(near) == 1 {
		return near[0]
	}
	return []Issue{{Code: "invalid_union", Errors: all, Path: []any{}, Message: "Invalid input"}}
}

func (s *Schema) enumIssues(value json.RawMessage) []Issue {
	if text, ok := StringValue(value); ok && slices.Contains(s.Enum, text) {
		return nil
	}
	message := fmt.Sprintf("Invalid input: expected %q", s.Enum[0])
	if len(s.Enum) > 1 {
		message = `Invalid option: expected one of "` + strings.Join(s.Enum, `"|"`) + `"`
	}
	return []Issue{{Code: "invalid_value", Values: s.Enum, Path: []any{}, Message: message}}
}

func (s *Schema) numberIssues(value json.RawMessage) []Issue {
	var number float64
	isNumber := json.Unmarshal(value, &number) == nil // false if it is out of range
	switch {
	case s.Type == "integer" && (!isNumber || number != math.Trunc(number)):
		return []Issue{wrongTypeIssue("int", "safeint", "number")}
	case s.Minimum != nil && number < *s.Minimum:
		return []Issue{tooSmallIssue("number", int(*s.Minimum))}
	case s.Maximum != nil && number > *s.Maximum:
		return []Issue{tooBigIssue("number", int(*s.Maximum))}
	case s.ExclusiveMinimum != nil && number <= *s.ExclusiveMinimum:
		least := int(*s.ExclusiveMinimum)
		return []Issue{{Origin: "number", Code: IssueTooSmall, Minimum: &least, Path: []any{}, Message: fmt.Sprintf("Too small: expected number to be >%d", least)}}
	}
	return nil
}

func (s *Schema) textIssues(value json.RawMessage) (found []Issue) {
	if s.MinLength == 0 && s.MaxLength == 0 && s.Format+s.StartsWith+s.EndsWith == "" {
		return nil // a long text is not decoded without need
	}
	text, _ := StringValue(value)
	switch n := len(utf16.Encode([]rune(text))); {
	case n < s.MinLength:
		found = append(found, tooSmallIssue("string", s.MinLength))
	case s.MaxLength > 0 && n > s.MaxLength:
		found = append(found, tooBigIssue("string", s.MaxLength))
	}
	if !strings.HasPrefix(text, s.StartsWith) {
		found = append(found, Issue{Code: "invalid_format", Path: []any{}, Message: fmt.Sprintf("Invalid string: must start with %q", s.StartsWith), isContentIssue: true})
	}
	if !strings.HasSuffix(text, s.EndsWith) {
		found = append(found, Issue{Code: "invalid_format", Path: []any{}, Message: fmt.Sprintf("Invalid string: must end with %q", s.EndsWith), isContentIssue: true})
	}
	switch s.Format {
	case "uri":
		if u, err := url.Parse(text); err != nil || u.Scheme == "" || u.Host == "" && (u.Scheme == "http" || u.Scheme == "https") {
			found = append(found, Issue{Format: "url", Code: "invalid_format", Path: []any{}, Message: "Invalid URL", order: keyOrderCodeFormatPathMessage})
		}
	case "base64":
		if _, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.Join(strings.Fields(text), ""), "=")); err != nil {
			found = append(found, Issue{Code: "custom", Path: []any{}, Message: "Invalid Base64 string", isContentIssue: true})
		}
	}
	return found
}

func (s *Schema) arrayIssues(value json.RawMessage) (found []Issue) {
	items := DecodeIgnoringErrors[[]json.RawMessage](value) // the type was checked before
	if s.Items != nil {
		for i, item := range items {
			found = append(found, prependKeyToPathsInPlace(i, s.Items.Issues(item))...)
		}
	}
	if len(items) < s.MinItems {
		found = append(found, tooSmallIssue("array", s.MinItems))
	}
	if s.MaxItems > 0 && len(items) > s.MaxItems {
		found = append(found, tooBigIssue("array", s.MaxItems))
	}
	return found
}

func (s *Schema) objectIssues(value json.RawMessage) (found []Issue) {
	members := DecodeIgnoringErrors[map[string]json.RawMessage](value)
	for _, p := range s.Properties {
		if v, exists := members[p.Name]; exists || slices.Contains(s.Required, p.Name) {
			found = append(found, prependKeyToPathsInPlace(p.Name, p.Schema.Issues(v))...)
		}
	}
	isClosed := s.AllowsUnknown != nil && !*s.AllowsUnknown
	if !isClosed && s.Items == nil {
		return found
	}
	var unknown []string
	ordered, _ := Parse(value) // the type was checked before
	for _, m := range ordered {
		if slices.ContainsFunc(s.Properties, func(p SchemaProperty) bool { return p.Name == m.Key }) {
			continue
		}
		unknown = append(unknown, m.Key)
		if s.Items != nil {
			found = append(found, prependKeyToPathsInPlace(m.Key, s.Items.Issues(m.Value))...)
		}
	}
	if isClosed && len(unknown) > 0 {
		noun := "key"
		if len(unknown) > 1 {
			noun = "keys"
		}
		found = append(found, Issue{Code: IssueUnknownKeys, Keys: unknown, Path: []any{}, Message: "Unrecognized " + noun + `: "` + strings.Join(unknown, `", "`) + `"`})
	}
	return found
}

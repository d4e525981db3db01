package diag

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is the type of a [Value].
type Kind uint8

// The kinds of values in TOML and JSON files.
const (
	KindNull Kind = iota // JSON only; also the zero Value
	KindString
	KindInt
	KindFloat
	KindBool
	KindDateTime // TOML only
	KindArray
	KindTable
)

// String returns the kind with its article, for messages: "a string".
func (k Kind) String() string {
	return [...]string{"null", "a string", "an integer", "a number", "a boolean", "a date-time", "an array", "a table"}[k]
}

// Value is one value of a file and its position. Values are read-only and share memory with their [SourceIndex].
type Value struct {
	Text string // content of a string; integers, floats, booleans and date-times are as written

	list   *tomlOrJSONArrayElements
	table  *table
	offset int32 // byte offset of the value

	// Kind is the type of the value. As the last field, it makes a Value smaller, which matters in files with many rules.
	Kind Kind
}

type tomlOrJSONArrayElements struct{ items []Value }

// TableEntry is one key of a table.
type TableEntry struct {
	Key    string
	Value  Value
	offset int32 // byte offset of the key
}

// table holds its fields in file order. The flags record how the file defines it and so limit what later lines may add.
type table struct {
	fields    []TableEntry
	byKey     map[string]int // nil for a small table
	hasHeader bool           // written as [key] or [[key]]
	isDotted  bool           // written as a part of a dotted key, like a in a.b = 1
	isClosed  bool           // an inline table: nothing may be added
}

const maxLinearSearchFields = 16

func (t *table) findField(key string) *TableEntry {
	if t.byKey != nil {
		if i, ok := t.byKey[key]; ok {
			return &t.fields[i]
		}
		return nil
	}
	for i := range slices.Backward(t.fields) { // of duplicates, the last one counts
		if t.fields[i].Key == key {
			return &t.fields[i]
		}
	}
	return nil
}

func (t *table) addField(f TableEntry) *TableEntry {
	t.fields = append(t.fields, f)
	last := len(t.fields) - 1
	switch {
	case t.byKey != nil:
		t.byKey[f.Key] = last
	case len(t.fields) > maxLinearSearchFields:
		t.byKey = make(map[string]int, 4*maxLinearSearchFields)
		for i := range t.fields {
			t.byKey[t.fields[i].Key] = i
		}
	}
	return &t.fields[last]
}

// Items returns the elements of an array; nil for other kinds.
func (v Value) Items() []Value {
	if v.list == nil {
		return nil
	}
	return v.list.items
}

// Fields returns the fields of a table in file order; nil for other kinds.
func (v Value) Fields() []TableEntry {
	if v.table == nil {
		return nil
	}
	return v.table.fields
}

// Field returns the value of a key of a table; ok is false if it is missing.
func (v Value) Field(key string) (Value, bool) {
	if v.table == nil {
		return Value{}, false
	}
	if f := v.table.findField(key); f != nil {
		return f.Value, true
	}
	return Value{}, false
}

// NewTableAtPosition returns a table of these fields at the position of v. A field without a position gets the position of v.
func (v Value) NewTableAtPosition(fields ...TableEntry) Value {
	t := &table{}
	for _, f := range fields {
		f.offset = cmp.Or(f.offset, v.offset)
		t.addField(f)
	}
	return Value{offset: v.offset, Kind: KindTable, table: t}
}

// NewArrayAtPosition returns an array of these elements at the position of v.
func (v Value) NewArrayAtPosition(items []Value) Value {
	return Value{offset: v.offset, Kind: KindArray, list: &tomlOrJSONArrayElements{items}}
}

// NewScalarAtPosition returns a scalar value at the position of v.
func (v Value) NewScalarAtPosition(kind Kind, text string) Value {
	return Value{offset: v.offset, Kind: kind, Text: text}
}

// Any returns the value as string, int64, float64, bool, time.Time, []any,
// map[string]any or nil. Integers beyond 64 bits become [json.Number].
func (v Value) Any() any {
	switch v.Kind {
	case KindString:
		return v.Text
	case KindInt:
		if n, err := parseTOMLInt(v.Text); err == nil {
			return n
		}
		return json.Number(v.Text)
	case KindFloat:
		f, _ := parseTOMLFloat(v.Text)
		return f
	case KindBool:
		return v.Text == "true"
	case KindDateTime:
		return parseTOMLTimeOrKeepText(v.Text)
	case KindArray:
		items := make([]any, len(v.list.items))
		for i, item := range v.list.items {
			items[i] = item.Any()
		}
		return items
	case KindTable:
		m := make(map[string]any, len(v.table.fields))
		for _, f := range v.table.fields {
			m[f.Key] = f.Value.Any()
		}
		return m
	default:
		return nil
	}
}

func parseTOMLInt(s string) (int64, error) {
	clean := strings.ReplaceAll(s, "_", "")
	if len(clean) > 2 && clean[0] == '0' {
		return strconv.ParseInt(clean, 0, 64)
	}
	return strconv.ParseInt(clean, 10, 64)
}

func parseTOMLFloat(s string) (float64, error) {
	s = strings.ReplaceAll(s, "_", "")
	if strings.HasSuffix(s, "nan") {
		s = "nan" // TOML allows a sign
	}
	return strconv.ParseFloat(s, 64)
}

// parseTOMLTimeOrKeepText parses the four TOML date-time forms; any other text stays a string.
func parseTOMLTimeOrKeepText(text string) any {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02", "15:04:05.999999999"} {
		if t, err := time.Parse(layout, strings.Replace(text, " ", "T", 1)); err == nil {
			return t
		}
	}
	return text
}

// Package plainjson writes JSON without HTML escapes and with numbers as they were written. An
// Object keeps the order of its keys. Values are read as leniently as by a JavaScript program that
// does not check types: a value of the wrong type counts as missing and is never an error.
package plainjson

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
)

// Marshal is like [json.Marshal] but without escaping <, > and &.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// MarshalString returns a value as JSON; null if JSON cannot represent it.
func MarshalString(v any) string {
	b, err := Marshal(v)
	if err != nil {
		return "null"
	}
	return string(b)
}

// DecodeFirstValue decodes the first value of data; each number in it is a [json.Number].
func DecodeFirstValue(data []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return v, dec.Decode(&v)
}

// NormalizeNumbersInPlace returns v with each [json.Number] as an int, else a float64, else its text. It changes v in place.
func NormalizeNumbersInPlace(v any) any {
	switch x := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(x.String()); err == nil {
			return n
		}
		if f, err := x.Float64(); err == nil {
			return f
		}
		return x.String()
	case []any:
		for i := range x {
			x[i] = NormalizeNumbersInPlace(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = NormalizeNumbersInPlace(x[k])
		}
	}
	return v
}

// DecodeForExpressions decodes JSON for expressions. Integers become int, and other numbers float64. Invalid JSON becomes nil.
func DecodeForExpressions(raw json.RawMessage) any {
	v, err := DecodeFirstValue(raw)
	if err != nil {
		return nil
	}
	return NormalizeNumbersInPlace(v)
}

// Indented returns a value as JSON, indented by two spaces, with a final newline.
func Indented(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.Bytes(), err
}

// Compact removes the white space between the tokens of JSON. Text that is not valid JSON is returned unchanged.
func Compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// ReadLine reads the next line of a JSON stream, with its line end, into line[:0]. If the line has more than limit bytes,
// tooLong is true, and the bytes are passed to dropped instead; a nil dropped ignores them. The error is that of the reader.
func ReadLine(in *bufio.Reader, line []byte, limit int, dropped func(part []byte)) (kept []byte, tooLong bool, err error) {
	if dropped == nil {
		dropped = func([]byte) {}
	}
	for line = line[:0]; ; {
		part, err := in.ReadSlice('\n')
		if !tooLong && len(line)+len(part) > limit {
			tooLong = true
			dropped(line)
			line = nil
		}
		if tooLong {
			dropped(part)
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// Member is one key of an object.
type Member struct {
	Key   string
	Value json.RawMessage
}

// Object is a JSON object; of duplicate keys the last one wins.
type Object []Member

var errNotObject = errors.New("expected a JSON object")

// Parse parses an object. Another value, or text after the object, is an error.
func Parse(raw json.RawMessage) (Object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errNotObject, err)
	}
	o := Object{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		name, _ := key.(string) // keys are always strings
		o = append(o, Member{name, value})
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotObject
	}
	return o, nil
}

// Get returns a value; nil means the key is missing.
func (o Object) Get(key string) json.RawMessage {
	for _, m := range slices.Backward(o) {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// Set returns the object with this value for the key. An existing key keeps its position. Like append, it may change the
// receiver, so use only the result.
func (o Object) Set(key string, value json.RawMessage) Object {
	for i, m := range slices.Backward(o) {
		if m.Key == key {
			o[i].Value = value
			return o
		}
	}
	return append(o, Member{key, value})
}

// Delete returns the object without the given keys. Like [slices.Delete], it changes the receiver, so use only the result.
func (o Object) Delete(keys ...string) Object {
	return slices.DeleteFunc(o, func(m Member) bool { return slices.Contains(keys, m.Key) })
}

// SortKeys sorts the members of o by the position of their keys in order. Other keys come last and keep their order. It reports whether
// the order has changed.
func (o Object) SortKeys(order []string) (hasChanged bool) {
	position := func(key string) int {
		if i := slices.Index(order, key); i >= 0 {
			return i
		}
		return len(order)
	}
	byPosition := func(a, b Member) int { return position(a.Key) - position(b.Key) }
	if slices.IsSortedFunc(o, byPosition) {
		return false
	}
	slices.SortStableFunc(o, byPosition)
	return true
}

// Distinct returns the object with each key once: the last value at the position of the first.
func (o Object) Distinct() Object {
	at := make(map[string]int, len(o))
	var out Object
	for _, m := range o {
		if i, ok := at[m.Key]; ok {
			out[i] = m
			continue
		}
		at[m.Key] = len(out)
		out = append(out, m)
	}
	return out
}

// UnmarshalJSON calls [Parse]; null is an empty object.
func (o *Object) UnmarshalJSON(raw []byte) error {
	if bytes.Equal(raw, []byte("null")) {
		*o = nil
		return nil
	}
	parsed, err := Parse(raw)
	*o = parsed
	return err
}

// MarshalJSON writes the members in their order.
func (o Object) MarshalJSON() ([]byte, error) { return o.Raw(), nil }

// Raw returns the object as JSON, with the members in their order.
func (o Object) Raw() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(MarshalString(m.Key))
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// TypeOf returns the JavaScript type name of a value; it is "undefined" if raw is empty.
func TypeOf(raw json.RawMessage) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return "undefined"
	}
	if at := bytes.IndexByte([]byte(`ntf"[{`), raw[0]); at >= 0 {
		return []string{"null", "boolean", "boolean", "string", "array", "object"}[at]
	}
	return "number"
}

// IsSet reports whether a value was sent and is not null.
func IsSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// NilIfNull returns a value that was sent and is not null, and otherwise nil.
func NilIfNull(raw json.RawMessage) json.RawMessage {
	if !IsSet(raw) {
		return nil
	}
	return raw
}

// DecodeIgnoringErrors decodes a value. A value of the wrong type, and a field of the wrong type, becomes zero.
func DecodeIgnoringErrors[T any](raw json.RawMessage) T {
	var in T
	_ = json.Unmarshal(raw, &in)
	return in
}

// StringValue returns the content of a JSON string; ok is false for other values.
func StringValue(raw json.RawMessage) (string, bool) {
	var value *string
	if json.Unmarshal(raw, &value) != nil || value == nil {
		return "", false
	}
	return *value, true
}

// JSString formats a value as JavaScript does in a template string.
func JSString(raw json.RawMessage) string {
	if text, ok := StringValue(raw); ok {
		return text
	}
	if TypeOf(raw) == "object" {
		return "[object Object]"
	}
	if len(raw) == 0 {
		return "undefined"
	}
	return string(raw)
}

// IsFalsy reports whether JavaScript treats a value as false.
func IsFalsy(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", `""`:
		return true
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && n == 0
}

// IsObjectOfObjects reports whether a value is an object whose values are objects.
func IsObjectOfObjects(raw json.RawMessage) bool {
	var values map[string]json.RawMessage
	if json.Unmarshal(raw, &values) != nil || values == nil {
		return false
	}
	for _, value := range values {
		if TypeOf(value) != "object" {
			return false
		}
	}
	return true
}

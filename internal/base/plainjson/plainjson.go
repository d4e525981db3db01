// Package plainjson writes JSON without the escapes that only HTML needs, and
// reads it with its numbers as they are written.
package plainjson

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Marshal is [json.Marshal] in which <, > and & stay as they are.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Text is a value as JSON; null for what JSON cannot hold.
func Text(v any) string {
	b, err := Marshal(v)
	if err != nil {
		return "null"
	}
	return string(b)
}

// Decode reads the first value of data; each number in it is a [json.Number].
func Decode(data []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return v, dec.Decode(&v)
}

// Plain replaces each number of a tree that was decoded, in place: by an int where
// it fits, else by a float64, else by its text.
func Plain(v any) any {
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
			x[i] = Plain(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = Plain(x[k])
		}
	}
	return v
}

// Package plainjson writes JSON without HTML escapes and with numbers as they were written, keeps the order of the keys
// of objects (Object), and reads values as leniently as a JavaScript program that does not check types: a value of the
// wrong type counts as missing and is never an error.
package plainjson

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
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

// Decode decodes the first value of data; each number in it is a [json.Number].
func Decode(data []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return v, dec.Decode(&v)
}

// NormalizeNumbers replaces each [json.Number] of a decoded tree, in place: by an int if it
// fits, otherwise by a float64, otherwise by its text.
func NormalizeNumbers(v any) any {
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
			x[i] = NormalizeNumbers(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = NormalizeNumbers(x[k])
		}
	}
	return v
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

// Compact removes the white space between the parts of JSON. Other text is unchanged.
func Compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// ReadLine appends the next line of a JSON stream, with its line end, to line[:0]. If the line has more than limit
// bytes, tooLong is true, and dropped (nil means not wanted) receives its parts instead. The error is that of the
// reader.
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

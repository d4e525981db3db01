package eval

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Text formats a value: strings unchanged, null as "", everything else as compact JSON.
func Text(v any) (string, error) {
	switch x := v.(type) {
	case nil:
		return "", nil
	case string:
		return x, nil
	}
	b, err := AppendJSON(nil, v)
	return string(b), err
}

// AppendJSON appends v as compact JSON without escaping <, > and &; map keys are sorted. Too long a result is an error.
func AppendJSON(dst []byte, v any) ([]byte, error) {
	if len(dst) > maxStringBytes {
		return dst, errTooMuchMemory
	}
	switch x := v.(type) {
	case []any:
		dst = append(dst, '[')
		for i, e := range x {
			var err error
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = AppendJSON(dst, e); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case map[string]any:
		return appendObject(dst, x)
	case map[any]any:
		m := make(map[string]any, len(x))
		for k, e := range x {
			key, err := Text(k)
			if err != nil {
				return dst, err
			}
			m[key] = e
		}
		return appendObject(dst, m)
	case json.RawMessage:
		return append(dst, x...), nil
	case int:
		return strconv.AppendInt(dst, int64(x), 10), nil
	case bool:
		return strconv.AppendBool(dst, x), nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return dst, err
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...), nil
}

func appendObject(dst []byte, m map[string]any) ([]byte, error) {
	var err error
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = AppendJSON(dst, key); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		if dst, err = AppendJSON(dst, m[key]); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

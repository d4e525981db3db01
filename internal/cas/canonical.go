package cas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// maxDepth bounds the nesting of a JSON value.
const maxDepth = 1000

// Canonical rewrites one JSON value without white space, with sorted keys (of
// equal keys the last counts) and without escaping more than JSON asks for.
// Numbers keep their digits. The result shares nothing with data.
func Canonical(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("reading JSON: more than one value")
	}
	out := make([]byte, 0, len(data))
	return appendValue(out, v, 0)
}

func appendValue(dst []byte, v any, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, errors.New("JSON is nested too deeply")
	}
	var err error
	switch x := v.(type) {
	case map[string]any:
		dst = append(dst, '{')
		for i, key := range slices.Sorted(maps.Keys(x)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendText(dst, key); err != nil {
				return nil, err
			}
			dst = append(dst, ':')
			if dst, err = appendValue(dst, x[key], depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	case []any:
		dst = append(dst, '[')
		for i, e := range x {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendValue(dst, e, depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case json.Number:
		return append(dst, x...), nil
	case string:
		return appendText(dst, x)
	case bool:
		if x {
			return append(dst, "true"...), nil
		}
		return append(dst, "false"...), nil
	default:
		return append(dst, "null"...), nil
	}
}

func appendText(dst []byte, s string) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...), nil
}

// PutJSON keeps a JSON value in canonical form and returns its CID and that
// form. A value over the store's limit is a *TooLargeError beside both.
func (s *Store) PutJSON(data []byte) (cid string, canonical []byte, err error) {
	canonical, err = Canonical(data)
	if err != nil {
		return "", nil, err
	}
	cid, err = s.Put(canonical)
	return cid, canonical, err
}

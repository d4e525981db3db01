package cas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

const maxJSONDepth = 1000

// Canonical rewrites one JSON value without white space, with sorted keys and with as few escapes as JSON allows. Of
// duplicate keys the last one wins. Numbers keep their digits. The result shares no memory with data.
func Canonical(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("reading JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("reading JSON: unexpected text after the first value")
	}
	if isTooDeep(v, maxJSONDepth) {
		return nil, errors.New("objects and arrays in the JSON are nested too deeply")
	}
	return plainjson.Marshal(v)
}

func isTooDeep(v any, remaining int) bool {
	var inner iter.Seq[any]
	switch x := v.(type) {
	case map[string]any:
		inner = maps.Values(x)
	case []any:
		inner = slices.Values(x)
	default:
		return remaining < 0
	}
	for e := range inner {
		if isTooDeep(e, remaining-1) {
			return true
		}
	}
	return remaining < 0
}

// PutJSON stores a JSON value in canonical form. It returns the CID of the value, and its canonical form. If the value
// exceeds the store's limit, it returns both with a *TooLargeError.
func (s *Store) PutJSON(data []byte) (cid string, canonical []byte, err error) {
	canonical, err = Canonical(data)
	if err != nil {
		return "", nil, err
	}
	cid, err = s.Put(canonical)
	return cid, canonical, err
}

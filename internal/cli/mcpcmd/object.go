package mcpcmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// object is a JSON object that keeps the order and the exact bytes of its members.
type object = plainjson.Object

var errNoObject = errors.New("not an object")

// parseObject parses an object; of duplicate names the last value is used, at the position of the first.
func parseObject(data []byte) (object, error) {
	if !json.Valid(data) {
		var syntax any
		return nil, json.Unmarshal(data, &syntax)
	}
	o, err := plainjson.Parse(data)
	if err != nil {
		return nil, errNoObject
	}
	return o.Distinct(), nil
}

// valueAt returns the value at a path of keys; nil means missing.
func valueAt(o object, path ...string) json.RawMessage {
	value := o.Get(path[0])
	if len(path) == 1 || value == nil {
		return value
	}
	inner, err := parseObject(value)
	if err != nil {
		return nil
	}
	return valueAt(inner, path[1:]...)
}

// setValue returns o with a value set at a path of keys. It creates missing objects. A nil value removes the last key.
func setValue(o object, path []string, value json.RawMessage) (object, error) {
	switch {
	case len(path) > 1:
		var inner object
		var err error
		if old := o.Get(path[0]); old != nil {
			if inner, err = parseObject(old); err != nil {
				return nil, fmt.Errorf("%s: %w", path[0], err)
			}
		}
		if inner, err = setValue(inner, path[1:], value); err != nil {
			return nil, err
		}
		value = encodeCompact(inner)
	case value == nil:
		return o.Without(path[0]), nil
	}
	return o.With(path[0], value), nil
}

func encodeCompact(o object) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(jsonString(m.Key))
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func jsonString(s string) json.RawMessage {
	text, _ := protocol.Marshal(s) // strings can always be encoded
	return text
}

func encodeIndented(o object) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, encodeCompact(o), "", "  "); err != nil {
		return encodeCompact(o) // cannot happen: all parts are valid JSON
	}
	b.WriteByte('\n')
	return b.Bytes()
}

package mcpcmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// object is a JSON object whose members keep their order and, byte for byte,
// their values.
type object []member

type member struct {
	name  string
	value json.RawMessage
}

var errNoObject = errors.New("not an object")

// parseObject reads an object; of equal names the last counts, in the place of
// the first.
func parseObject(data []byte) (object, error) {
	if !json.Valid(data) {
		var syntax any
		return nil, json.Unmarshal(data, &syntax)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errNoObject
	}
	o := object{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string) // the key of valid JSON
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		o = o.set(name, value)
	}
	return o, nil
}

func (o object) index(name string) int {
	return slices.IndexFunc(o, func(m member) bool { return m.name == name })
}

func (o object) set(name string, value json.RawMessage) object {
	if i := o.index(name); i >= 0 {
		o[i].value = value
		return o
	}
	return append(o, member{name, value})
}

// at finds the value under a path of keys.
func (o object) at(path ...string) (json.RawMessage, bool) {
	i := o.index(path[0])
	if i < 0 {
		return nil, false
	}
	if len(path) == 1 {
		return o[i].value, true
	}
	inner, err := parseObject(o[i].value)
	if err != nil {
		return nil, false
	}
	return inner.at(path[1:]...)
}

// with is o with a value set under a path of keys, whose objects are made
// where they are missing; a nil value removes the last key.
func (o object) with(path []string, value json.RawMessage) (object, error) {
	o = slices.Clone(o)
	i := o.index(path[0])
	if len(path) == 1 {
		switch {
		case value != nil:
			return o.set(path[0], value), nil
		case i >= 0:
			return slices.Delete(o, i, i+1), nil
		}
		return o, nil
	}
	inner := object{}
	if i >= 0 {
		var err error
		if inner, err = parseObject(o[i].value); err != nil {
			return nil, fmt.Errorf("%s: %w", path[0], err)
		}
	}
	inner, err := inner.with(path[1:], value)
	if err != nil {
		return nil, err
	}
	return o.set(path[0], inner.compact()), nil
}

func (o object) compact() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := protocol.Marshal(m.name) // strings can always be written
		b.Write(name)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// indented is the text of a file.
func (o object) indented() []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, o.compact(), "", "  "); err != nil {
		return o.compact() // cannot happen: all parts are valid JSON
	}
	b.WriteByte('\n')
	return b.Bytes()
}

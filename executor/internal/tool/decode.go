package tool

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Number decodes any JSON number to an int: fractions are cut, large values are
// clamped.
type Number int

const maxNumber = 1 << 40

// UnmarshalJSON reads a JSON number.
func (n *Number) UnmarshalJSON(data []byte) error {
	var f float64
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	*n = Number(max(-maxNumber, min(maxNumber, f)))
	return nil
}

// Decode decodes a validated input.
func Decode[In any](raw json.RawMessage) (in In, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return in, nil
	}
	err = json.Unmarshal(raw, &in)
	return in, err
}

// TextOf returns a string, or a list of strings joined; empty for other values.
func TextOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []string
	_ = json.Unmarshal(raw, &parts)
	return strings.Join(parts, "")
}

// Quote returns a JSON string; this cannot fail.
func Quote(s string) json.RawMessage {
	raw, _ := protocol.Marshal(s)
	return raw
}

// NonNil returns the list, or an empty one for nil.
func NonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

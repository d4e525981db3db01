package tool

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Number decodes any JSON number to an int, fractions cut and far values
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

// Decode reads a validated input into its Go form.
func Decode[In any](raw json.RawMessage) (in In, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return in, nil
	}
	err = json.Unmarshal(raw, &in)
	return in, err
}

// TextOf reads a text, or a list of texts as one; any other value has none.
func TextOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []string
	_ = json.Unmarshal(raw, &parts)
	return strings.Join(parts, "")
}

// Quote makes a JSON string; that cannot fail.
func Quote(s string) json.RawMessage {
	raw, _ := protocol.Marshal(s)
	return raw
}

// NonNil is the list, empty where there is none.
func NonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

package tool

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Number is an integer in an input. Decoding removes fractions of JSON numbers and limits large values.
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

// Decode decodes an input. An empty input returns the zero value.
func Decode[In any](raw json.RawMessage) (in In, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return in, nil
	}
	err = json.Unmarshal(raw, &in)
	return in, err
}

// TextOf returns the value of a JSON string, or the joined strings of a list. It returns "" for other values.
func TextOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []string
	_ = json.Unmarshal(raw, &parts)
	return strings.Join(parts, "")
}

// Quote returns s as a JSON string.
func Quote(s string) json.RawMessage {
	raw, _ := protocol.Marshal(s)
	return raw
}

// NonNil returns s, or an empty list if s is nil.
func NonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// escapePattern matches an escaped backslash, or a sequence of escapes \uXXXX.
var escapePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\\\|\\u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})*`) })

// DecodeEscapes replaces \uXXXX in the strings of an input with the character, as the real CLI does. It reports whether
// it changed the input. An escaped backslash does not begin such an escape.
func DecodeEscapes(in *Keys) bool {
	changed := false
	for i, k := range *in {
		var text string
		if json.Unmarshal(k.Value, &text) != nil || !strings.Contains(text, `\u`) {
			continue
		}
		decoded := escapePattern().ReplaceAllStringFunc(text, func(s string) string {
			if s == `\\` {
				return s
			}
			var units []uint16
			for part := range strings.SplitSeq(s[2:], `\u`) {
				n, _ := strconv.ParseUint(part, 16, 16) // these are four hexadecimal digits
				units = append(units, uint16(n))
			}
			return string(utf16.Decode(units))
		})
		if decoded != text {
			(*in)[i].Value, changed = Quote(decoded), true
		}
	}
	return changed
}

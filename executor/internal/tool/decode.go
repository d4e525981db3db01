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

// Number decodes any JSON number to an int: fractions are cut, large values are clamped.
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

// escapePattern matches an escaped backslash, or one or more adjacent escapes \uXXXX.
var escapePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\\\|\\u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})*`) })

// DecodeEscapes replaces \uXXXX in the strings of an input by the character, as the real CLI does, and reports
// whether it changed one. An escaped backslash does not begin such an escape.
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
				n, _ := strconv.ParseUint(part, 16, 16) // four hexadecimal digits
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

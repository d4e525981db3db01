package tool

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
)

// escapePattern matches backslashes and what follows them: an even number, an escape \uXXXX, or another one.
var escapePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\\\|\\u[0-9a-fA-F]{4}(?:\\u[0-9a-fA-F]{4})*`) })

// DecodeEscapes replaces \uXXXX in the texts of an input by the character, as the real CLI does, and
// reports whether it changed one. An escaped backslash does not begin such an escape.
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

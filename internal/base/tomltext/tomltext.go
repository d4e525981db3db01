// Package tomltext writes readable TOML: multi-line strings for long texts and
// literal strings for JSON. Reading the output back gives the same values.
package tomltext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Writer gathers a file. The zero value is ready.
type Writer struct{ b bytes.Buffer }

// Bytes are what has been written; they change with the next write.
func (w *Writer) Bytes() []byte { return w.b.Bytes() }

// Reset empties it, so that a long file can be written in parts.
func (w *Writer) Reset() { w.b.Reset() }

// Raw writes text as it is.
func (w *Writer) Raw(text string) { w.b.WriteString(text) }

// Header begins an element of an array of tables.
func (w *Writer) Header(name string) { w.b.WriteString("\n[[" + name + "]]\n") }

// Str writes a key with a text; an empty one is left out.
func (w *Writer) Str(key, value string) {
	if value != "" {
		w.b.WriteString(key + " = " + Quote(value) + "\n")
	}
}

// JSON writes a value as a string of JSON: TOML has no null and no integers
// beyond 64 bits.
func (w *Writer) JSON(key string, raw json.RawMessage) {
	var compact, pretty bytes.Buffer
	if json.Compact(&compact, raw) != nil || json.Indent(&pretty, raw, "", "  ") != nil {
		return
	}
	text := compact.String()
	switch {
	case !literal(text) || strings.Contains(text, "'''") || strings.HasSuffix(text, "'"):
		w.b.WriteString(key + " = " + Quote(text) + "\n")
	case len(text) <= 100 && !strings.Contains(text, "'"):
		w.b.WriteString(key + " = '" + text + "'\n")
	default:
		w.b.WriteString(key + " = '''\n" + pretty.String() + "\n'''\n")
	}
}

// literal reports whether a TOML literal string can hold the text.
func literal(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Quote is a TOML basic string; one with several lines is written on as many.
func Quote(s string) string {
	var b strings.Builder
	mark, lines := `"`, strings.Contains(s, "\n")
	b.WriteString(mark)
	if lines {
		mark = `"""`
		b.WriteString(mark[1:] + "\n")
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	quotes := 0 // as many stand in a row as they are
	for i := 0; i < len(s); {
		n := plain(s[i:]) // most of a text
		if b.WriteString(s[i : i+n]); n > 0 {
			quotes = 0
		}
		if i += n; i == len(s) {
			break
		}
		switch c := s[i]; {
		case c == '"' && lines && quotes < 2 && i < len(s)-1:
			b.WriteByte(c)
			quotes++
		case c == '"' || c == '\\':
			b.WriteString(`\` + s[i:i+1])
			quotes = 0
		case c == '\t':
			b.WriteString(`\t`)
			quotes = 0
		default:
			fmt.Fprintf(&b, `\u%04X`, c)
			quotes = 0
		}
		i++
	}
	b.WriteString(mark)
	return b.String()
}

// plain is how many bytes of a text stand in a basic string as they are.
func plain(s string) int {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' || c == '"' || c == '\\' || c == 0x7f {
			return i
		}
	}
	return len(s)
}

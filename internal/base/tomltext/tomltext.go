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

// Writer collects the text of a file. The zero value is ready to use.
type Writer struct{ b bytes.Buffer }

// Bytes returns the text written so far; the slice is valid until the next write.
func (w *Writer) Bytes() []byte { return w.b.Bytes() }

// Reset empties the writer, so that a long file can be written in parts.
func (w *Writer) Reset() { w.b.Reset() }

// WriteRaw writes text unchanged.
func (w *Writer) WriteRaw(text string) { w.b.WriteString(text) }

// WriteArrayHeader starts an element of an array of tables.
func (w *Writer) WriteArrayHeader(name string) { w.b.WriteString("\n[[" + name + "]]\n") }

// WriteStringUnlessEmpty writes a key with a string; an empty string is omitted.
func (w *Writer) WriteStringUnlessEmpty(key, value string) {
	if value != "" {
		w.b.WriteString(key + " = " + BasicString(value) + "\n")
	}
}

// WriteJSONAsString writes a value as a string of JSON, because TOML has neither null nor integers beyond 64 bits.
func (w *Writer) WriteJSONAsString(key string, raw json.RawMessage) {
	var compact, pretty bytes.Buffer
	if json.Compact(&compact, raw) != nil || json.Indent(&pretty, raw, "", "  ") != nil {
		return
	}
	text := compact.String()
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.Contains(text, "'''") || strings.HasSuffix(text, "'"):
		w.b.WriteString(key + " = " + BasicString(text) + "\n")
	case len(text) <= 100 && !strings.Contains(text, "'"):
		w.b.WriteString(key + " = '" + text + "'\n")
	default:
		w.b.WriteString(key + " = '''\n" + pretty.String() + "\n'''\n")
	}
}

// BasicString returns a TOML basic string; a text with several lines becomes a multi-line string.
func BasicString(s string) string {
	var b strings.Builder
	mark, lines := `"`, strings.Contains(s, "\n")
	b.WriteString(mark)
	if lines {
		mark = `"""`
		b.WriteString(mark[1:] + "\n")
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	quotes := 0 // number of consecutive quotes
	for i := 0; i < len(s); {
		n := multilineEscapeFreePrefixLen(s[i:]) // usually most of the text
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

// multilineEscapeFreePrefixLen returns the length of the beginning of text that a basic string can contain without escapes.
func multilineEscapeFreePrefixLen(text string) int {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' || c == '"' || c == '\\' || c == 0x7f {
			return i
		}
	}
	return len(text)
}

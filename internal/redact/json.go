package redact

import (
	"bytes"
	"encoding/json"
	"strings"
)

// JSON hides the secrets in the strings of a JSON text, keys included, and the
// whole value of a string whose key looks like that of a credential. Everything
// else stays byte for byte; what is no JSON comes back as a text would.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return json.RawMessage(r.text(string(raw)))
	}
	var out []byte // nil = nothing is hidden so far
	done := 0      // what of raw is in out
	secret := false
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			if raw[i] != ':' && raw[i] > ' ' {
				secret = false
			}
			i++
			continue
		}
		end := stringEnd(raw, i)
		key := isKey(raw[end:])
		text := decoded(raw[i:end])
		hidden := r.value(text, secret && !key)
		if hidden != text {
			out = append(append(out, raw[done:i]...), quote(hidden)...)
			done = end
		}
		secret = key && (nameLooksSecret(text) || text == "apiKeyHelper")
		i = end
	}
	if out == nil {
		return raw
	}
	return append(out, raw[done:]...)
}

// value hides what is secret in a string of JSON.
func (r *Redactor) value(text string, whole bool) string {
	if whole && text != "" && !isPlaceholder(text) {
		return r.label.For("VALUE", text)
	}
	return r.String(text)
}

// stringEnd is the place behind the string that begins at i.
func stringEnd(raw []byte, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func isKey(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

func decoded(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return string(quoted[1 : len(quoted)-1])
	}
	return s
}

func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return []byte(`""`)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

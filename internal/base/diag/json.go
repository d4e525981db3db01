package diag

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// jsonScanner reads JSON (RFC 8259, without comments and repeated keys) and stops at the first error.
type jsonScanner struct {
	scanner
	depth int
}

func (s *jsonScanner) scanDocument() Value {
	if !utf8.ValidString(s.src) {
		s.fail(0, "the file is not valid UTF-8")
	}
	v, ok := s.value()
	s.skipSpace()
	if ok && s.pos < len(s.src) {
		s.fail(s.pos, "expected the end of the file")
	}
	if ok && v.Kind != KindTable {
		s.fail(int(v.offset), "expected an object")
	}
	if v.Kind != KindTable {
		return Value{Kind: KindTable, table: &table{}}
	}
	return v
}

func (s *jsonScanner) skipSpace() {
	for s.pos < len(s.src) && strings.IndexByte(" \t\r\n", s.src[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *jsonScanner) value() (Value, bool) {
	s.skipSpace()
	v := Value{offset: int32(s.pos)}
	var ok bool
	switch s.peek() {
	case '{':
		v.Kind = KindTable
		v.table, ok = s.scanObject()
	case '[':
		v.Kind = KindArray
		v.list = &valueList{}
		v.list.items, ok = s.scanArray()
	case '"':
		v.Kind = KindString
		v.Text, ok = s.stringValue()
	default:
		v.Kind, v.Text, ok = s.bareValue()
	}
	return v, ok
}

func (s *jsonScanner) enterLevel() bool {
	if s.depth >= maxNestingDepth {
		return s.fail(s.pos, "nested too deeply")
	}
	s.depth++
	s.pos++
	s.skipSpace()
	return true
}

func (s *jsonScanner) scanObject() (*table, bool) {
	t := &table{}
	if !s.enterLevel() {
		return t, false
	}
	defer func() { s.depth-- }()
	if s.peek() == '}' {
		s.pos++
		return t, true
	}
	for {
		s.skipSpace()
		off := s.pos
		if s.peek() != '"' {
			return t, s.fail(s.pos, "expected a key in double quotes")
		}
		key, ok := s.stringValue()
		if !ok {
			return t, false
		}
		s.skipSpace()
		if s.peek() != ':' {
			return t, s.fail(s.pos, "expected `:` after the key")
		}
		s.pos++
		v, ok := s.value()
		if t.find(key) != nil {
			return t, s.fail(off, "key `"+key+"` is defined twice")
		}
		t.add(Field{Key: key, Value: v, offset: int32(off)})
		if !ok {
			return t, false
		}
		s.skipSpace()
		switch s.peek() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			return t, true
		default:
			return t, s.fail(s.pos, "expected `,` or `}`")
		}
	}
}

func (s *jsonScanner) scanArray() ([]Value, bool) {
	items := []Value{}
	if !s.enterLevel() {
		return items, false
	}
	defer func() { s.depth-- }()
	if s.peek() == ']' {
		s.pos++
		return items, true
	}
	for {
		v, ok := s.value()
		items = append(items, v)
		if !ok {
			return items, false
		}
		s.skipSpace()
		switch s.peek() {
		case ',':
			s.pos++
		case ']':
			s.pos++
			return items, true
		default:
			return items, s.fail(s.pos, "expected `,` or `]`")
		}
	}
}

func (s *jsonScanner) stringValue() (string, bool) {
	start := s.pos
	plain := true
	for i := start + 1; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			return "", s.fail(i, "the string is not closed, or contains a control character")
		case c == '"':
			s.pos = i + 1
			if plain {
				return s.src[start+1 : i], true
			}
			var text string
			if err := json.Unmarshal([]byte(s.src[start:s.pos]), &text); err != nil {
				return "", s.fail(start, "the string contains an invalid escape sequence")
			}
			return text, true
		}
	}
	return "", s.fail(start, "the string is not closed")
}

func (s *jsonScanner) bareValue() (Kind, string, bool) {
	start := s.pos
	for s.pos < len(s.src) && (isBareKeyByte(s.src[s.pos]) || s.src[s.pos] == '+' || s.src[s.pos] == '.') {
		s.pos++
	}
	text := s.src[start:s.pos]
	switch {
	case text == "true" || text == "false":
		return KindBool, text, true
	case text == "null":
		return KindNull, "", true
	case text == "":
		return KindNull, "", s.fail(start, "expected a value")
	case text[0] != '-' && (text[0] < '0' || text[0] > '9') || !json.Valid([]byte(text)):
		return KindNull, "", s.fail(start, "`"+text+"` is not a JSON value")
	case strings.ContainsAny(text, ".eE"):
		return KindFloat, text, true
	}
	return KindInt, text, true
}

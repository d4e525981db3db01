package diag

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

func (s *tomlScanner) scanValue() (Value, bool) {
	v := Value{offset: int32(s.pos)}
	var ok bool
	switch c := s.peekByteOrZero(); c {
	case '"', '\'':
		v.Kind = KindString
		if strings.HasPrefix(s.src[s.pos:], `"""`) || strings.HasPrefix(s.src[s.pos:], `'''`) {
			v.Text, ok = s.scanMultiline(c)
		} else {
			v.Text, ok = s.scanSingleLine(c)
		}
	case '[':
		v.Kind = KindArray
		v.list = &tomlOrJSONArrayElements{}
		v.list.items, ok = s.scanArray()
	case '{':
		v.Kind = KindTable
		v.table, ok = s.scanInlineTable()
	default:
		v.Kind, v.Text, ok = s.scanBareValue()
	}
	return v, ok
}

func (s *tomlScanner) scanSingleLine(quote byte) (string, bool) {
	start := s.pos + 1
	for i := start; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == quote:
			s.pos = i + 1
			return s.src[start:i], true
		case c == '\\' && quote == '"':
			return s.scanEscaped(start, i, `"`)
		case isControlExceptTab(c):
			s.pos = i
			return "", s.recordProblemAndReturnFalse(i, "the string is not closed, or contains a control character")
		}
	}
	s.pos = len(s.src)
	return "", s.recordProblemAndReturnFalse(start-1, "the string is not closed")
}

// scanEscaped reads a basic string that contains a backslash. start is the position of its content, delimiter its end.
func (s *tomlScanner) scanEscaped(start, firstBackslash int, delimiter string) (string, bool) {
	var b strings.Builder
	b.WriteString(s.src[start:firstBackslash])
	for s.pos = firstBackslash; s.pos < len(s.src); {
		c := s.src[s.pos]
		switch {
		case c == '"' && delimiter == `"`:
			s.pos++
			return b.String(), true
		case c == '"' && strings.HasPrefix(s.src[s.pos:], delimiter):
			b.WriteString(s.skipMultilineClosingQuotes('"'))
			return b.String(), true
		case c == '\\':
			if !s.scanEscape(&b, delimiter != `"`) {
				return "", false
			}
		case delimiter != `"` && (c == '\n' || strings.HasPrefix(s.src[s.pos:], "\r\n")):
			b.WriteByte(c)
			s.pos++
		case isControlExceptTab(c):
			return "", s.recordProblemAndReturnFalse(s.pos, "the string is not closed, or contains a control character")
		default:
			b.WriteByte(c)
			s.pos++
		}
	}
	return "", s.recordProblemAndReturnFalse(start-len(delimiter), "the string is not closed")
}

func (s *tomlScanner) scanEscape(b *strings.Builder, isMultiline bool) bool {
	start := s.pos
	s.pos++
	c := s.peekByteOrZero()
	if plain := strings.IndexByte(`btnfr"\`, c); plain >= 0 && c != 0 {
		b.WriteByte("\b\t\n\f\r\"\\"[plain])
		s.pos++
		return true
	}
	switch {
	case c == 'u' || c == 'U':
		size := 4
		if c == 'U' {
			size = 8
		}
		s.pos++
		if s.pos+size > len(s.src) {
			return s.recordProblemAndReturnFalse(start, "the escape sequence is incomplete: \\u needs 4 hexadecimal digits, \\U needs 8")
		}
		code, err := strconv.ParseUint(s.src[s.pos:s.pos+size], 16, 32)
		if err != nil || code > utf8.MaxRune || !utf8.ValidRune(rune(code)) {
			return s.recordProblemAndReturnFalse(start, "the escape sequence is not a valid Unicode character")
		}
		b.WriteRune(rune(code))
		s.pos += size
		return true
	case isMultiline && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
		s.skipSpace()
		if s.peekByteOrZero() != '\n' && !strings.HasPrefix(s.src[s.pos:], "\r\n") {
			return s.recordProblemAndReturnFalse(start, "a backslash must begin an escape sequence such as \\n or \\\", or end the line")
		}
		s.pos += len(s.src[s.pos:]) - len(strings.TrimLeft(s.src[s.pos:], " \t\r\n"))
		return true
	}
	return s.recordProblemAndReturnFalse(start, "unknown escape sequence; a literal backslash is written \\\\ or in 'single quotes'")
}

func (s *tomlScanner) scanMultiline(quote byte) (string, bool) {
	open := s.pos
	end := strings.Repeat(string(quote), 3)
	s.pos += 3
	switch {
	case s.peekByteOrZero() == '\n':
		s.pos++
	case strings.HasPrefix(s.src[s.pos:], "\r\n"):
		s.pos += 2
	}
	start := s.pos
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == quote && strings.HasPrefix(s.src[s.pos:], end):
			at := s.pos
			return s.src[start:at] + s.skipMultilineClosingQuotes(quote), true
		case c == '\\' && quote == '"':
			return s.scanEscaped(start, s.pos, end)
		case c == '\n' || strings.HasPrefix(s.src[s.pos:], "\r\n"):
		case isControlExceptTab(c):
			return "", s.recordProblemAndReturnFalse(s.pos, "control characters are not allowed in strings")
		}
		s.pos++
	}
	return "", s.recordProblemAndReturnFalse(open, "the multi-line string is not closed")
}

// skipMultilineClosingQuotes skips the quotes at the end of a multi-line string. If there are more than three, it returns the
// additional ones (up to two), which belong to the content of the string.
func (s *tomlScanner) skipMultilineClosingQuotes(quote byte) (contentQuotes string) {
	n := 0
	for n < 5 && s.pos+n < len(s.src) && s.src[s.pos+n] == quote {
		n++
	}
	s.pos += n
	return strings.Repeat(string(quote), n-3)
}

func (s *tomlScanner) scanArray() ([]Value, bool) {
	defer func() { s.depth-- }()
	if !s.enterLevel() {
		return nil, false
	}
	open := s.pos
	s.pos++
	items := []Value{}
	for {
		s.skipBlankAndComments()
		if s.pos >= len(s.src) {
			return items, s.recordProblemAndReturnFalse(open, "the array is not closed")
		}
		if s.src[s.pos] == ']' {
			s.pos++
			return items, true
		}
		v, ok := s.scanValue()
		items = append(items, v)
		if !ok {
			return items, false
		}
		s.skipBlankAndComments()
		switch s.peekByteOrZero() {
		case ',':
			s.pos++
		case ']':
		case 0:
			return items, s.recordProblemAndReturnFalse(open, "the array is not closed")
		default:
			return items, s.recordProblemAndReturnFalse(s.pos, "expected `,` or `]` in the array")
		}
	}
}

func (s *tomlScanner) scanInlineTable() (*table, bool) {
	t := s.newTable()
	defer func() { s.depth-- }()
	if !s.enterLevel() {
		return t, false
	}
	s.pos++
	s.skipSpace()
	if s.peekByteOrZero() == '}' {
		s.pos++
		t.isClosed = true
		return t, true
	}
	for {
		if !s.scanKeyValue(t) {
			t.isClosed = true
			return t, false
		}
		s.skipSpace()
		switch s.peekByteOrZero() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			closeInlineTables(t)
			return t, true
		default:
			t.isClosed = true
			return t, s.recordProblemAndReturnFalse(s.pos, "expected `,` or `}`; an inline table must be on one line")
		}
	}
}

func closeInlineTables(t *table) {
	t.isClosed = true
	for _, f := range t.fields {
		if f.Value.Kind == KindTable && !f.Value.table.isClosed {
			closeInlineTables(f.Value.table)
		}
	}
}

// Patterns of numbers and date-times, each compiled when needed: a file with only short unsigned numbers needs none.
var (
	tomlIntegerPattern  = lazyRegexp(`^(?:[+-]?(?:0|[1-9](?:_?[0-9])*)|0x[0-9a-fA-F](?:_?[0-9a-fA-F])*|0o[0-7](?:_?[0-7])*|0b[01](?:_?[01])*)$`)
	tomlFloatPattern    = lazyRegexp(`^[+-]?(?:0|[1-9](?:_?[0-9])*)(?:\.[0-9](?:_?[0-9])*)?(?:[eE][+-]?[0-9](?:_?[0-9])*)?$`)
	tomlDateTimePattern = lazyRegexp(`^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})?)?$`)
)

func lazyRegexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// scanBareValue reads a value without quotes: boolean, number or date-time.
func (s *tomlScanner) scanBareValue() (Kind, string, bool) {
	start := s.pos
	s.skipUnquotedValue()
	text := s.src[start:s.pos]
	if len(text) == len("2006-01-02") && text[4] == '-' && strings.HasPrefix(s.src[s.pos:], " ") {
		// A space is allowed between date and time.
		if rest := s.src[s.pos+1:]; len(rest) > 2 && rest[2] == ':' {
			s.pos++
			s.skipUnquotedValue()
			text = s.src[start:s.pos]
		}
	}
	switch kind := kindOfUnquotedTOML(text); {
	case kind != KindNull:
		return kind, text, true
	case text == "":
		return KindNull, "", s.recordProblemAndReturnFalse(start, "expected a value")
	default:
		return KindNull, text, s.recordProblemAndReturnFalse(start, "`"+text+"` is not a value; put text in quotes")
	}
}

func (s *tomlScanner) skipUnquotedValue() {
	for s.pos < len(s.src) && (isBareKeyByte(s.src[s.pos]) || strings.IndexByte("+.:", s.src[s.pos]) >= 0) {
		s.pos++
	}
}

// kindOfUnquotedTOML returns the kind of an unquoted value. KindNull means text is not a value or exceeds 64 bytes.
func kindOfUnquotedTOML(text string) Kind {
	if text == "true" || text == "false" {
		return KindBool
	}
	if text == "" || len(text) > 64 {
		return KindNull
	}
	if isShortUnsignedInteger(text) {
		return KindInt
	}
	switch strings.TrimLeft(text, "+-") {
	case "inf", "nan":
		if len(text) <= 4 {
			return KindFloat
		}
	}
	switch {
	case tomlIntegerPattern().MatchString(text):
		if _, err := parseTOMLInt(text); err == nil {
			return KindInt
		}
	case tomlFloatPattern().MatchString(text):
		return KindFloat
	case tomlDateTimePattern().MatchString(text):
		if _, bad := parseTOMLTimeOrKeepText(strings.ToUpper(text)).(string); !bad {
			return KindDateTime
		}
	}
	return KindNull
}

// isShortUnsignedInteger reports whether text is a decimal integer of at most 18 digits without a sign or a leading zero. It is a
// fast check for short numbers; text must not be empty.
func isShortUnsignedInteger(text string) bool {
	if len(text) > 18 || (text[0] == '0' && len(text) > 1) {
		return false
	}
	for i := 0; i < len(text); i++ {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

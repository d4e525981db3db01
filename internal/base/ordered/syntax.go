package ordered

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SyntaxError tells what is wrong with a text that should be JSON, in the words
// that JavaScriptCore and so the real CLI has for it (observed with 2.1.329);
// nil for JSON.
func SyntaxError(raw []byte) error {
	if json.Valid(raw) {
		return nil
	}
	s := scanner{rest: raw}
	err := s.value()
	if err == nil {
		err = fault("Unable to parse JSON string")
	}
	return fmt.Errorf("JSON Parse error: %w", err)
}

// fault is one of the other program's messages, capitals and all.
type fault string

func (f fault) Error() string { return string(f) }

// scanner walks over a text up to its first fault.
type scanner struct{ rest []byte }

// peek returns the next byte that is no space; 0 at the end.
func (s *scanner) peek() byte {
	s.rest = bytes.TrimLeft(s.rest, " \t\r\n")
	if len(s.rest) == 0 {
		return 0
	}
	return s.rest[0]
}

// take tells whether the next byte is c, and if so goes on behind it.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || len(s.rest) == 0 {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *scanner) value() error {
	switch c := s.peek(); {
	case len(s.rest) == 0:
		return fault("Unexpected EOF")
	case s.take('{'):
		return s.object()
	case s.take('['):
		return s.array()
	case s.take('"'):
		return s.text()
	case c == '\'':
		return fault("Single quotes (') are not allowed in JSON")
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case strings.IndexByte("]},:.()", c) >= 0:
		return fault(fmt.Sprintf("Unexpected token '%c'", c))
	}
	return s.word()
}

func (s *scanner) object() error {
	if s.take('}') {
		return nil
	}
	if s.peek() != '"' {
		return fault("Expected '}'")
	}
	for {
		if !s.take('"') {
			return fault("Property name must be a string literal")
		}
		if err := s.text(); err != nil {
			return err
		}
		if !s.take(':') {
			return fault("Expected ':' before value in object property definition")
		}
		if err := s.value(); err != nil {
			return err
		}
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return fault("Expected '}'")
		}
	}
}

func (s *scanner) array() error {
	if s.take(']') {
		return nil
	}
	for {
		if err := s.value(); err != nil {
			return err
		}
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return fault("Expected ']'")
		}
		if s.peek() == ']' {
			return fault("Unexpected comma at the end of array expression")
		}
	}
}

// text goes on behind the quote that ends a string.
func (s *scanner) text() error {
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return nil
		case c < ' ':
			return unterminated
		case c == '\\':
			i++
			if err := escape(s.rest[i:]); err != nil {
				return err
			}
		}
	}
	return unterminated
}

const unterminated = fault("Unterminated string")

// escape checks what follows a backslash.
func escape(rest []byte) error {
	switch {
	case len(rest) == 0:
		return unterminated
	case strings.IndexByte(`"\/bfnrt`, rest[0]) >= 0:
		return nil
	case rest[0] != 'u':
		c, _ := utf8.DecodeRune(rest)
		return fault(fmt.Sprintf("Invalid escape character %c", c))
	}
	digits := rest[1:min(5, len(rest))]
	if len(digits) < 4 || len(bytes.Trim(digits, "0123456789abcdefABCDEF")) > 0 {
		return fault(fmt.Sprintf(`"\u%s" is not a valid unicode escape`, digits))
	}
	return nil
}

func (s *scanner) number() error {
	s.take('-')
	whole := s.digits()
	switch {
	case whole == "":
		return fault("Invalid number")
	case len(whole) > 1 && whole[0] == '0':
		return fault("Unable to parse JSON string")
	case len(s.rest) > 0 && s.rest[0] == '.':
		s.rest = s.rest[1:]
		if s.digits() == "" {
			return fault("Invalid digits after decimal point")
		}
	}
	if len(s.rest) > 1 && (s.rest[0] == 'e' || s.rest[0] == 'E') {
		exponent := scanner{rest: bytes.TrimLeft(s.rest[1:], "+-")}
		if exponent.digits() != "" {
			s.rest = exponent.rest
		}
	}
	return nil
}

func (s *scanner) digits() string {
	end := len(s.rest) - len(bytes.TrimLeft(s.rest, "0123456789"))
	taken := string(s.rest[:end])
	s.rest = s.rest[end:]
	return taken
}

func (s *scanner) word() error {
	end := bytes.IndexFunc(s.rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '$' })
	if end < 0 {
		end = len(s.rest)
	}
	switch word := string(s.rest[:end]); word {
	case "true", "false", "null":
		s.rest = s.rest[end:]
		return nil
	case "":
		c, _ := utf8.DecodeRune(s.rest)
		return fault(fmt.Sprintf("Unrecognized token '%c'", c))
	default:
		return fault(fmt.Sprintf("Unexpected identifier %q", word))
	}
}

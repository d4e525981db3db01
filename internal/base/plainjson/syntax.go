package plainjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// JavaScriptSyntaxErrorOf returns the error for a text that is not valid JSON; nil for valid JSON. The error message is that of
// JavaScriptCore, which the real CLI uses (observed with 2.1.329).
func JavaScriptSyntaxErrorOf(raw []byte) error {
	if json.Valid(raw) {
		return nil
	}
	s := syntaxScanner{rest: raw}
	return fmt.Errorf("JSON Parse error: %w", cmp.Or(s.scanValue(), error(syntaxError("Unable to parse JSON string"))))
}

// syntaxError is the text of an error message of JavaScriptCore. Unlike other Go errors, it begins with a capital letter.
type syntaxError string

func (f syntaxError) Error() string { return string(f) }

type syntaxScanner struct{ rest []byte }

// skipSpaceAndPeek returns the next byte that is not a space; 0 at the end.
func (s *syntaxScanner) skipSpaceAndPeek() byte {
	s.rest = bytes.TrimLeft(s.rest, " \t\r\n")
	if len(s.rest) == 0 {
		return 0
	}
	return s.rest[0]
}

func (s *syntaxScanner) skipSpaceAndTakeByte(c byte) bool {
	if s.skipSpaceAndPeek() != c || len(s.rest) == 0 {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *syntaxScanner) scanValue() error {
	switch c := s.skipSpaceAndPeek(); {
	case len(s.rest) == 0:
		return syntaxError("Unexpected EOF")
	case s.skipSpaceAndTakeByte('{'):
		return s.scanObject()
	case s.skipSpaceAndTakeByte('['):
		return s.scanArray()
	case s.skipSpaceAndTakeByte('"'):
		return s.scanString()
	case c == '-' || '0' <= c && c <= '9':
		return s.scanNumber()
	case strings.IndexByte("]},:.()=;", c) >= 0:
		return syntaxError(fmt.Sprintf("Unexpected token '%c'", c))
	}
	return s.scanLiteral()
}

// errorAtToken returns the error for a token that the grammar does not allow. If the next characters are no token, it returns an
// error about them instead.
func (s *syntaxScanner) errorAtToken(grammarError syntaxError) error {
	s.skipSpaceAndPeek()
	switch c, _ := utf8.DecodeRune(s.rest); {
	case c == '\'':
		return syntaxError("Single quotes (') are not allowed in JSON")
	case len(s.rest) > 0 && !isIdentifierRune(c) && !strings.ContainsRune(`"[]{},:.()=;-`, c):
		return syntaxError(fmt.Sprintf("Unrecognized token '%c'", c))
	}
	return grammarError
}

func isIdentifierRune(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '$')
}

func (s *syntaxScanner) scanObject() error {
	if s.skipSpaceAndTakeByte('}') {
		return nil
	}
	if s.skipSpaceAndPeek() != '"' {
		return s.errorAtToken("Expected '}'")
	}
	for {
		if !s.skipSpaceAndTakeByte('"') {
			return s.errorAtToken("Property name must be a string literal")
		}
		if err := s.scanString(); err != nil {
			return err
		}
		if !s.skipSpaceAndTakeByte(':') {
			return s.errorAtToken("Expected ':' before value in object property definition")
		}
		if err := s.scanValue(); err != nil {
			return err
		}
		if s.skipSpaceAndTakeByte('}') {
			return nil
		}
		if !s.skipSpaceAndTakeByte(',') {
			return s.errorAtToken("Expected '}'")
		}
	}
}

func (s *syntaxScanner) scanArray() error {
	if s.skipSpaceAndTakeByte(']') {
		return nil
	}
	for {
		if err := s.scanValue(); err != nil {
			return err
		}
		if s.skipSpaceAndTakeByte(']') {
			return nil
		}
		if !s.skipSpaceAndTakeByte(',') {
			return s.errorAtToken("Expected ']'")
		}
		if s.skipSpaceAndPeek() == ']' {
			return syntaxError("Unexpected comma at the end of array expression")
		}
	}
}

func (s *syntaxScanner) scanString() error {
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return nil
		case c < ' ':
			return errUnterminatedString
		case c == '\\':
			i++
			if err := checkEscape(s.rest[i:]); err != nil {
				return err
			}
		}
	}
	return errUnterminatedString
}

const errUnterminatedString = syntaxError("Unterminated string")

func checkEscape(rest []byte) error {
	switch {
	case len(rest) == 0:
		return errUnterminatedString
	case strings.IndexByte(`"\/bfnrt`, rest[0]) >= 0:
		return nil
	case rest[0] != 'u':
		c, _ := utf8.DecodeRune(rest)
		return syntaxError(fmt.Sprintf("Invalid escape character %c", c))
	}
	if digits := rest[1:min(5, len(rest))]; len(digits) < 4 || len(bytes.Trim(digits, "0123456789abcdefABCDEF")) > 0 {
		return syntaxError(fmt.Sprintf(`"\u%s" is not a valid unicode escape`, digits))
	}
	return nil
}

func (s *syntaxScanner) scanNumber() error {
	s.skipSpaceAndTakeByte('-')
	digits := s.rest
	switch whole := s.scanDigits(); {
	case whole == "":
		return syntaxError("Invalid number")
	case len(whole) > 1 && whole[0] == '0':
		s.rest = digits[1:] // the number ends after the zero
		return nil
	case len(s.rest) > 0 && s.rest[0] == '.':
		s.rest = s.rest[1:]
		if s.scanDigits() == "" {
			return syntaxError("Invalid digits after decimal point")
		}
	}
	if len(s.rest) > 1 && (s.rest[0] == 'e' || s.rest[0] == 'E') {
		exponent := syntaxScanner{rest: bytes.TrimLeft(s.rest[1:], "+-")}
		if exponent.scanDigits() != "" {
			s.rest = exponent.rest
		}
	}
	return nil
}

func (s *syntaxScanner) scanDigits() string {
	end := len(s.rest) - len(bytes.TrimLeft(s.rest, "0123456789"))
	taken := string(s.rest[:end])
	s.rest = s.rest[end:]
	return taken
}

func (s *syntaxScanner) scanLiteral() error {
	end := bytes.IndexFunc(s.rest, func(r rune) bool { return !isIdentifierRune(r) })
	if end < 0 {
		end = len(s.rest)
	}
	switch word := string(s.rest[:end]); word {
	case "true", "false", "null":
		s.rest = s.rest[end:]
		return nil
	default:
		return s.errorAtToken(syntaxError(fmt.Sprintf("Unexpected identifier %q", word)))
	}
}

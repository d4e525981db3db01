package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// malformedResponse is a reply that is not a message. Invalid JSON is reported with the error text of the real CLI's
// JavaScript engine, and the stream reader prints the received data on stderr.
func malformedResponse(raw string) apiFailure {
	api := apiFailure{ErrorClass: "unknown", Message: raw}
	if fault := jsonProblem(raw); fault != "" {
		api.Text = "API Error: JSON Parse error: " + fault
	} else {
		api.Text = "API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway intercepting the request."
	}
	if !json.Valid([]byte(raw)) {
		api.Stderr = fmt.Sprintf("Could not parse message into JSON: %s\nFrom chunk: [ \"event: message_start\", %q ]\n", raw, "data: "+raw)
	}
	return api
}

// jsonProblem explains why a text is not JSON; empty means it is, or it is empty.
func jsonProblem(raw string) string {
	text := strings.TrimSpace(raw)
	if text == "" || json.Valid([]byte(text)) {
		return ""
	}
	d := json.NewDecoder(strings.NewReader(text))
	var v any
	err := d.Decode(&v)
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return unendedProblem(text)
	case err == nil:
		return "Unable to parse JSON string" // there is more text after the value
	case !ok:
		return "Unexpected EOF"
	}
	at := max(0, int(syntax.Offset)-1)
	before, rest := strings.TrimRightFunc(text[:at], unicode.IsSpace), text[at:]
	first, _ := utf8.DecodeRuneInString(rest)
	word := rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r) }))]
	switch {
	case first == '\'':
		return "Single quotes (') are not allowed in JSON"
	case first == ']' && strings.HasSuffix(before, ","):
		return "Unexpected comma at the end of array expression"
	case strings.HasSuffix(before, "{"):
		return "Expected '}'"
	case word != "" && !unicode.IsDigit(first):
		return fmt.Sprintf("Unexpected identifier %q", word)
	}
	return fmt.Sprintf("Unrecognized token '%c'", first)
}

// unendedProblem describes the missing part at the end of a text.
func unendedProblem(text string) string {
	if bytes.HasSuffix([]byte(text), []byte("{")) {
		return "Expected '}'"
	}
	return "Unexpected EOF"
}

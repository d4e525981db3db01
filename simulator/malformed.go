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

const requestIDPlaceholder = "\x00"

// malformedResponse returns the failure for a reply that is not a message. Versions that do not describe invalid JSON
// report it with the error text of the real CLI's JavaScript engine. The stream reader prints the received data on
// stderr.
func malformedResponse(raw string, describesJSON bool) apiFailure {
	api := apiFailure{ErrorClass: "unknown", Message: raw}
	var quoted string
	fault, text := jsonProblem(raw), strings.TrimSpace(raw)
	kind, size, cause := "body is JSON but not a Message", len(raw), "no_events, StreamNoEventsError; 1 stream event received, first after 60 ms, none in the final 2 ms."
	switch {
	case text == "null":
		kind, size, cause = "empty body", 0, "other, TypeError; 0 stream events received."
	case raw == "":
		kind, cause = "empty body", "other, SyntaxError; 0 stream events received."
	case fault != "":
		kind, cause = "body is not valid JSON", "other, SyntaxError; 0 stream events received."
	case json.Unmarshal([]byte(text), &quoted) == nil:
		kind, size = "body is unrecognized text", len(quoted)
	}
	api.Text = fmt.Sprintf("API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway intercepting the request. "+
		"Response: content-type json, %s, %d bytes, request-id %s, intermediary headers anthropic-*. "+
		"This was the non-streaming retry of streaming request %[3]s, which failed with: %[4]s", kind, size, requestIDPlaceholder, cause)
	if fault != "" && !describesJSON {
		api.Text = "API Error: JSON Parse error: " + fault
	}
	if !json.Valid([]byte(raw)) {
		api.Stderr = fmt.Sprintf("Could not parse message into JSON: %s\nFrom chunk: [ \"event: message_start\", %q ]\n", raw, "data: "+raw)
	}
	return api
}

// jsonProblem returns why a text is not JSON; "" if it is valid or empty.
func jsonProblem(raw string) string {
	text := strings.TrimSpace(raw)
	if raw == "" || json.Valid([]byte(text)) {
		return ""
	}
	d := json.NewDecoder(strings.NewReader(text))
	var v any
	err := d.Decode(&v)
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return incompleteProblem(text)
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

// incompleteProblem returns what is missing at the end of an incomplete text.
func incompleteProblem(text string) string {
	if bytes.HasSuffix([]byte(text), []byte("{")) {
		return "Expected '}'"
	}
	return "Unexpected EOF"
}

package simulator

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/scenarios"
)

// Replies that are not a message, with the texts of the real CLI (observed with 2.1.329 and 2.1.330).
func TestMalformed(t *testing.T) {
	described := func(body, cause string) string {
		return "API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway intercepting the request. Response: content-type json, " + body +
			" bytes, request-id \x00, intermediary headers anthropic-*. This was the non-streaming retry of streaming request \x00, which failed with: " + cause
	}
	const (
		syntaxError = "other, SyntaxError; 0 stream events received."
		noEvents    = "no_events, StreamNoEventsError; 1 stream event received, first after 60 ms, none in the final 2 ms."
	)
	for raw, want := range map[string]string{
		"<html>":   "JSON Parse error: Unrecognized token '<'",
		"{":        "JSON Parse error: Expected '}'",
		`{"type":`: "JSON Parse error: Unexpected EOF",
		"hello":    `JSON Parse error: Unexpected identifier "hello"`,
		"[1,]":     "JSON Parse error: Unexpected comma at the end of array expression",
		"{'a':1}":  "JSON Parse error: Single quotes (') are not allowed in JSON",
		"   ":      "JSON Parse error: Unexpected EOF",
		"":         described("empty body, 0", syntaxError),
		"null":     described("empty body, 0", "other, TypeError; 0 stream events received."),
		"{}":       described("body is JSON but not a Message, 2", noEvents),
		`"str"`:    described("body is unrecognized text, 3", noEvents),
	} {
		t.Run(raw, func(t *testing.T) {
			api := describeFailure(&scenarios.Failure{Type: scenarios.FailMalformedJSON, Raw: raw}, failureContext{})
			if api.Text != "API Error: "+want || api.APIError != "" || api.ErrorClass != "unknown" {
				t.Errorf("%+v", api)
			}
			said := "Could not parse message into JSON: " + raw + "\nFrom chunk: [ \"event: message_start\", "
			if json.Valid([]byte(raw)) {
				said = ""
			} else {
				since332 := describeFailure(&scenarios.Failure{Type: scenarios.FailMalformedJSON, Raw: raw}, failureContext{DescribesJSON: true})
				if body := "body is not valid JSON, " + strconv.Itoa(len(raw)); raw != "" && since332.Text != "API Error: "+described(body, syntaxError) {
					t.Errorf("since 2.1.332: %q", since332.Text)
				}
			}
			if !strings.HasPrefix(api.Stderr, said) || (api.Stderr == "") != (said == "") {
				t.Errorf("on stderr: %q", api.Stderr)
			}
		})
	}
}

// With a gateway, errors name its host, and an overload is retried like other server errors.
func TestGateway(t *testing.T) {
	w := failureContext{Retries: 5, GatewayHost: "llm.example:8080"}
	for _, f := range []scenarios.Failure{{Type: scenarios.FailServerError, Status: 500, Message: "boom"}, {Type: scenarios.FailOverloaded}} {
		api := describeFailure(&f, w)
		if !strings.HasSuffix(api.Text, "try again in a moment. If it persists, check your inference gateway (llm.example:8080).") || api.MaxRetries != 0 {
			t.Errorf("%+v", api)
		}
	}
}

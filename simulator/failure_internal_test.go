package simulator

import (
	"strings"
	"testing"

	"github.com/claudeless/claudeless/scenarios"
)

// Replies that are not a message, with the texts of the real CLI (observed with 2.1.329 and 2.1.330).
func TestMalformed(t *testing.T) {
	const proxy = "API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway intercepting the request."
	for raw, want := range map[string]string{
		"<html>":   "JSON Parse error: Unrecognized token '<'",
		"{":        "JSON Parse error: Expected '}'",
		`{"type":`: "JSON Parse error: Unexpected EOF",
		"hello":    `JSON Parse error: Unexpected identifier "hello"`,
		"[1,]":     "JSON Parse error: Unexpected comma at the end of array expression",
		"{'a':1}":  "JSON Parse error: Single quotes (') are not allowed in JSON",
		"":         proxy,
		"null":     proxy,
	} {
		t.Run(raw, func(t *testing.T) {
			api := describeFailure(&scenarios.Failure{Type: scenarios.FailMalformedJSON, Raw: raw}, failureContext{})
			if api.Text != "API Error: "+want || api.Connection != "" || api.ErrorClass != "unknown" {
				t.Errorf("%+v", api)
			}
			said := "Could not parse message into JSON: " + raw + "\nFrom chunk: [ \"event: message_start\", "
			if raw == "null" {
				said = ""
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
		if !strings.HasSuffix(api.Text, "try again in a moment. If it persists, check your inference gateway (llm.example:8080).") || api.Limit != 0 {
			t.Errorf("%+v", api)
		}
	}
}

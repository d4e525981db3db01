package simulator

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/scenarios"
)

// A reply that is not a message fails with a text of the real CLI (observed with 2.1.329 and 2.1.330).
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
			if api.DisplayText != "API Error: "+want || api.APIError != "" || api.ErrorClass != "unknown" {
				t.Errorf("%+v", api)
			}
			said := "Could not parse message into JSON: " + raw + "\nFrom chunk: [ \"event: message_start\", "
			if json.Valid([]byte(raw)) {
				said = ""
			} else {
				since332 := describeFailure(&scenarios.Failure{Type: scenarios.FailMalformedJSON, Raw: raw}, failureContext{Limits: Limits{DescribesJSON: true}})
				if body := "body is not valid JSON, " + strconv.Itoa(len(raw)); raw != "" && since332.DisplayText != "API Error: "+described(body, syntaxError) {
					t.Errorf("since 2.1.332: %q", since332.DisplayText)
				}
			}
			if !strings.HasPrefix(api.Stderr, said) || (api.Stderr == "") != (said == "") {
				t.Errorf("on stderr: %q", api.Stderr)
			}
		})
	}
}

// With a gateway, errors name its host. An overload is retried like other server errors, unless the
// model is an Opus model outside a sandbox.
func TestGateway(t *testing.T) {
	overloaded, limits := scenarios.Failure{Type: scenarios.FailOverloaded}, Limits{Retries: 5, GatewayHost: "llm.example:8080"}
	sandbox := limits
	sandbox.IsSandbox = true
	for _, c := range []struct {
		failure    scenarios.Failure
		w          failureContext
		text       string
		maxRetries int
	}{
		{scenarios.Failure{Type: scenarios.FailServerError, Status: 500, Message: "boom"}, failureContext{Limits: limits, Model: "claude-opus-5-5"}, "API Error: 500 boom. ", 0},
		{overloaded, failureContext{Limits: limits, Model: "claude-opus-5-5"}, "API Error: Repeated 529 Overloaded errors. ", 2},
		{overloaded, failureContext{Limits: limits, Model: "claude-sonnet-5-5"}, "API Error: 529 Overloaded. ", 0},
		{overloaded, failureContext{Limits: sandbox, Model: "claude-opus-5-5"}, "API Error: 529 Overloaded. ", 0},
	} {
		api := describeFailure(&c.failure, c.w)
		if !strings.HasPrefix(api.DisplayText, c.text) || !strings.HasSuffix(strings.ToLower(api.DisplayText), "try again in a moment. if it persists, check your inference gateway (llm.example:8080).") || api.MaxRetries != c.maxRetries {
			t.Errorf("%+v", api)
		}
	}
}

// Only the error about an exceeded spend limit has a code.
func TestErrorCode(t *testing.T) {
	for failure, want := range map[scenarios.FailureType]string{scenarios.FailSpendLimit: "enforced_spend_limit_reached", scenarios.FailRateLimit: ""} {
		if api := describeFailure(&scenarios.Failure{Type: failure}, failureContext{}); api.Code != want {
			t.Errorf("%s: %q, want %q", failure, api.Code, want)
		}
	}
}

package simulator

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// apiFailure describes a failed request as the real CLI does (spec: cli-observed 10, cli-contract 3.5).
type apiFailure struct {
	Status            int           // HTTP status; 0 means no response
	ResponseErrorType string        // error type in the response; empty means none
	APIError          string        // value of api_error, the cause of some failures; empty means none
	Code              string        // code in the details of the API's error; empty means none
	ErrorClass        string        // value of error in the assistant event
	RetryClass        string        // value of error in api_retry; empty means no retry
	DisplayText       string        // message for the user
	TerminalReason    string        // empty means api_error
	MaxRetries        int           // maximum number of retries; 0 means the limit of the session
	SilentRetries     int           // number of immediate retries that are not reported
	RetryAfter        time.Duration // retry-after header; 0 means exponential backoff
	APIMessage        string        // the API's own error message
	StopReason        string        // stop_reason; empty means stop_sequence
	RefusedMessageID  string        // id of the message that was refused
	Truncation        string        // limit that cut the reply: output_limit, context_window
	Stderr            string        // line that the stream reader prints on stderr; empty means none
}

// BodyAsQuotedByCLI returns the error response in the form that the CLI quotes: the status and a JSON body. For
// an error without a type, it returns the plain message.
func (api apiFailure) BodyAsQuotedByCLI(requestID string) string {
	if api.ResponseErrorType == "" {
		return api.APIMessage
	}
	text, _ := protocol.Marshal(api.APIMessage) // cannot fail: it is a string
	details := ""
	if api.Code != "" {
		details = `,"details":{"error_code":"` + api.Code + `"}`
	}
	return fmt.Sprintf(`%d {"type":"error","error":{"type":"%s","message":%s%s},"request_id":"%s"}`, api.Status, api.ResponseErrorType, text, details, requestID)
}

// ReportedAPIErrorType returns the CLI's api_error_type. A response with a 4xx status and the general type api_error counts as an
// invalid request (observed with 2.1.330).
func (api apiFailure) ReportedAPIErrorType() string {
	if api.ResponseErrorType == "api_error" && api.Status >= 400 && api.Status < 500 {
		return "invalid_request_error"
	}
	return api.ResponseErrorType
}

// FallbackReason returns the reason for switching to the fallback model, or "" if the CLI does not switch.
func (api apiFailure) FallbackReason() string {
	switch {
	case api.Status == 529:
		return "overloaded"
	case api.Status >= 500:
		return "server_error"
	case api.Status == 404:
		return "model_not_found"
	default:
		return ""
	}
}

const thrashingText = "Autocompact is thrashing: the context refilled to the limit within 3 turns of the previous compact, 3 times in a row. " +
	"A file being read or a tool output is likely too large for the context window. Try reading in smaller chunks, or use /clear to start fresh."

// mediaRemovedErrorCode is the value of api_error after an image that the API cannot read was removed.
const mediaRemovedErrorCode = "media_removed"

// brokenOffReplyPrompt asks the model to continue a reply that broke off. The received part of the reply is kept.
const brokenOffReplyPrompt = "Your response above was cut off mid-stream. Go on from where it stops, without an apology or a recap; " +
	"if nothing of it is left, answer the request from the start."

const (
	imageRemovedErrorText  = "API Error: an image in the conversation could not be processed and was removed. Re-read the file with a different approach if you still need it."
	connectionRefusedText  = "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)"
	connectionLostText     = "API Error: Connection to the API was lost (ECONNRESET). This is usually temporary — try again."
	connectionResetMessage = "ECONNRESET: The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second argument to fetch()"
	requestTimedOutText    = "API Error: Request timed out (ETIMEDOUT). Check the network and try again."
	overloadedText         = "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try again in a moment."
)

// failureContext describes the session and the failed request. The zero value is a first request without retries.
type failureContext struct {
	Limits
	Model                string // full name of the requested model
	ConversationHasReply bool   // the conversation has a reply, so it can be compacted
}

func describeFailure(f *scenarios.Failure, w failureContext) apiFailure {
	switch f.Type {
	case scenarios.FailNotLoggedIn:
		return apiFailure{ErrorClass: "authentication_failed", DisplayText: "Not logged in · Please run /login"}
	case scenarios.FailNetworkUnreachable:
		return socketError(connectionRefusedText)
	case scenarios.FailConnectionTimeout:
		return socketError(requestTimedOutText)
	case scenarios.FailPartialResponse:
		api := socketError(connectionLostText)
		api.APIMessage = connectionResetMessage
		return api
	case scenarios.FailStreamError:
		api := w.apiFailureFromScriptedError(f.APIError())
		api.SilentRetries = max(1, api.SilentRetries) // the request is retried immediately, without streaming
		return api
	case scenarios.FailMalformedJSON:
		return malformedResponse(f.Raw, w.DescribesJSON)
	default:
		api := w.apiFailureFromScriptedError(f.APIError())
		api.RetryAfter, api.Code = time.Duration(f.RetryAfter)*time.Second, f.APIErrorDetailCode()
		return api
	}
}

func socketError(text string) apiFailure {
	return apiFailure{APIError: "connection_failed", ErrorClass: "server_error", RetryClass: "unknown", DisplayText: text, APIMessage: "Connection error."}
}

func (w failureContext) apiFailureFromScriptedError(scriptedError scenarios.APIError) apiFailure {
	status, message := scriptedError.Status, scriptedError.Message
	api := apiFailure{Status: status, ResponseErrorType: scriptedError.Type, APIMessage: message}
	lower := strings.ToLower(message)
	switch {
	case status == 400:
		w.fillBadRequestFailure(&api, lower)
	case status == 401 && strings.Contains(lower, "x-api-key"):
		api.ErrorClass, api.RetryClass, api.DisplayText = "authentication_failed", "authentication_failed", "Invalid API key · Fix external API key"
	case status == 401:
		api.ErrorClass, api.RetryClass, api.DisplayText = "authentication_failed", "authentication_failed", "Failed to authenticate. API Error: 401 "+message
	case status == 403 && strings.Contains(lower, "not allowed for this organization"):
		api.ErrorClass = "oauth_org_not_allowed"
		api.DisplayText = "Your organization has disabled Claude subscription access for Claude Code · Use an Anthropic API key instead, or ask your admin to enable access"
	case status == 403:
		api.ErrorClass, api.DisplayText = "authentication_failed", "Failed to authenticate. API Error: 403 "+message
	case status == 404:
		api.ErrorClass, api.SilentRetries = "model_not_found", 1
		api.DisplayText = fmt.Sprintf("There's an issue with the selected model (%s). It may not exist or you may not have access to it. Run --model to pick a different model.", w.Model)
	case status == 413:
		api.ErrorClass, api.TerminalReason = "invalid_request", "image_error"
		api.DisplayText = "Request too large (max 32MB). Accumulated images and attachments in the conversation pushed the request over the limit. Remove older images or compact the conversation."
	case status == 429:
		api.ErrorClass, api.RetryClass, api.DisplayText = "rate_limit", "rate_limit", "API Error: Request rejected (429) · "+message
	case status == 529 && !w.IsSandbox && strings.HasPrefix(w.Model, "claude-opus-") && w.Retries >= maxOverloadRetries:
		api.ErrorClass, api.RetryClass, api.DisplayText, api.MaxRetries = "server_error", "overloaded", w.withGatewayHint(overloadedText), maxOverloadRetries
	case status == 529:
		api.ErrorClass, api.RetryClass, api.DisplayText = "server_error", "overloaded", w.serverErrorText(status, message)
	case status >= 500:
		api.ErrorClass, api.RetryClass, api.DisplayText = "server_error", "server_error", w.serverErrorText(status, message)
	case status == 408, status == 409:
		api.ErrorClass, api.RetryClass, api.DisplayText = "unknown", "server_error", fmt.Sprintf("API Error: %d %s", status, message)
	default:
		api.ErrorClass, api.DisplayText, api.SilentRetries = "unknown", fmt.Sprintf("API Error: %d %s", status, message), maxSilentRetries
	}
	return api
}

const (
	// maxOverloadRetries limits the retries after status 529 in two cases: a fallback model exists, or an Opus model is used
	// outside a sandbox.
	maxOverloadRetries = 2
	maxSilentRetries   = 5 // the number of immediate retries of a refused request, each with fewer optional parts
)

func (w failureContext) serverErrorText(status int, message string) string {
	return w.withGatewayHint(fmt.Sprintf("API Error: %d %s. This is a server-side issue, usually temporary — try again in a moment.", status, strings.TrimSuffix(message, ".")))
}

func (w failureContext) withGatewayHint(text string) string {
	if w.GatewayHost != "" {
		text += " If it persists, check your inference gateway (" + w.GatewayHost + ")."
	}
	return text
}

// fillBadRequestFailure describes a response with status 400. The CLI recognises some of these responses by their message.
func (w failureContext) fillBadRequestFailure(failure *apiFailure, lowerCaseMessage string) {
	known := []struct{ part, class, connection, terminal, text string }{
		{"credit balance", "billing_error", "", "", "Credit balance is too low"},
		{"prompt is too long", "invalid_request", "", "prompt_too_long", w.promptTooLongText()},
		{"exceed context limit", "invalid_request", "", "prompt_too_long", w.promptTooLongText()},
		{"could not process image", "invalid_request", mediaRemovedErrorCode, "image_error", imageRemovedErrorText},
		{"image exceeds", "invalid_request", "", "image_error", "Image was too large. Try resizing the image or using a different approach."},
		{"pdf specified was not valid", "invalid_request", "", "image_error", "The PDF file was not valid. Try converting it to text first (e.g., pdftotext)."},
		{"`tool_use` ids were found without `tool_result`", "invalid_request", "tool_history_mismatch", "", "API Error: 400 due to tool use concurrency issues."},
		{"organization has been disabled", "invalid_request", "org_disabled_credential", "", "Your ANTHROPIC_API_KEY belongs to a disabled organization · Update or unset the environment variable"},
	}
	for _, k := range known {
		if strings.Contains(lowerCaseMessage, k.part) {
			failure.ErrorClass, failure.APIError, failure.TerminalReason, failure.DisplayText = k.class, k.connection, k.terminal, k.text
			return
		}
	}
	failure.ErrorClass, failure.DisplayText, failure.SilentRetries = "unknown", "API Error: 400 "+failure.APIMessage, maxSilentRetries
}

func (w failureContext) promptTooLongText() string {
	if w.ConversationHasReply {
		return "Prompt is too long"
	}
	return "Prompt is too long · this conversation is a single exchange and cannot be compacted — the request size comes mostly from system prompt, tool definitions, or attachments."
}

const requestIDPlaceholderInFailureText = "\x00"

// malformedResponse returns the failure for a reply that is not a message. If describesJSON is false, invalid JSON is
// reported with the error text of the real CLI's JavaScript engine, as some versions do. For invalid JSON the failure
// also has a text for stderr that quotes the reply.
func malformedResponse(raw string, describesJSON bool) apiFailure {
	api := apiFailure{ErrorClass: "unknown", APIMessage: raw, SilentRetries: 1}
	var quoted string
	text := strings.TrimSpace(raw)
	fault := plainjson.JavaScriptSyntaxErrorOf([]byte(text))
	kind, size, cause := "body is JSON but not a Message", len(raw), "no_events, StreamNoEventsError; 1 stream event received, first after 60 ms, none in the final 2 ms."
	switch {
	case text == "null":
		kind, size, cause = "empty body", 0, "other, TypeError; 0 stream events received."
	case raw == "":
		kind, cause = "empty body", "other, SyntaxError; 0 stream events received."
	case fault != nil:
		kind, cause = "body is not valid JSON", "other, SyntaxError; 0 stream events received."
	case json.Unmarshal([]byte(text), &quoted) == nil:
		kind, size = "body is unrecognized text", len(quoted)
	}
	api.DisplayText = fmt.Sprintf("API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway intercepting the request. "+
		"Response: content-type json, %s, %d bytes, request-id %s, intermediary headers anthropic-*. "+
		"This was the non-streaming retry of streaming request %[3]s, which failed with: %[4]s", kind, size, requestIDPlaceholderInFailureText, cause)
	if fault != nil && raw != "" && !describesJSON {
		api.DisplayText = "API Error: " + fault.Error()
	}
	if !json.Valid([]byte(raw)) {
		api.Stderr = fmt.Sprintf("Could not parse message into JSON: %s\nFrom chunk: [ \"event: message_start\", %q ]\n", raw, "data: "+raw)
	}
	return api
}

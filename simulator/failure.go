package simulator

import (
	"fmt"
	"strings"
	"time"

	"github.com/claudeless/claudeless/scenarios"
)

// apiFailure is a scripted failure in the words of the real CLI (spec:
// cli-observed 10, cli-contract 3.5).
type apiFailure struct {
	status     int    // HTTP status; 0 = no response
	kind       string // api_error_type; empty without a response
	connection string // api_error; empty with a response
	class      string // error of the assistant event
	retryClass string // error of api_retry; empty = never retried
	text       string
	terminal   string        // empty = api_error
	limit      int           // retries at the most; 0 = the session's
	silent     int           // how often it is asked again at once, without telling
	after      time.Duration // retry-after; 0 = back off
	message    string
	stop       string // stop_reason; empty = stop_sequence
	refused    string // id of the message that was refused
	cut        string // what a reply ran against: output_limit, context_window
}

// fallback is why another model is asked; empty = no other model would help.
func (api apiFailure) fallback() string {
	switch {
	case api.status == 529:
		return "overloaded"
	case api.status >= 500:
		return "server_error"
	case api.status == 404:
		return "model_not_found"
	default:
		return ""
	}
}

const (
	severedText = "Your response above was cut off mid-stream. Go on from where it stops, without an apology or a recap; " +
		"if nothing of it is left, answer the request from the start."
	removedText = "API Error: an image in the conversation could not be processed and was removed. Re-read the file with a different approach if you still need it."
	refusedText = "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)"
	droppedText = "API Error: Connection dropped (ECONNRESET). The response ended before it was complete; check the network and try again."
	timeoutText = "API Error: Request timed out (ETIMEDOUT). Check the network and try again."
	busyText    = "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. Try again in a moment."
)

// FailureText puts a scripted failure into the words of the real CLI.
func (s *Simulator) FailureText(f *scenarios.Failure) string { return s.describe(f).text }

// describe puts a scripted failure into the words of the real CLI.
func (s *Simulator) describe(f *scenarios.Failure) apiFailure {
	switch f.Type {
	case scenarios.FailNetworkUnreachable:
		return socket(refusedText)
	case scenarios.FailConnectionTimeout:
		return socket(timeoutText)
	case scenarios.FailPartialResponse:
		return socket(droppedText)
	case scenarios.FailStreamError:
		api := s.describeStatus(f.APIError())
		api.silent = max(1, api.silent) // asked again at once, without a stream
		return api
	case scenarios.FailMalformedJSON:
		return apiFailure{connection: "connection_failed", class: "unknown", text: "API Error: the response is not valid JSON: " + f.Raw, message: f.Raw}
	default:
		api := s.describeStatus(f.APIError())
		api.after = time.Duration(f.RetryAfter) * time.Second
		return api
	}
}

func socket(text string) apiFailure {
	return apiFailure{connection: "connection_failed", class: "server_error", retryClass: "unknown", text: text, message: "Connection error."}
}

// describeStatus is a failure the API answers with an HTTP status.
func (s *Simulator) describeStatus(e scenarios.APIError) apiFailure {
	status, message := e.Status, e.Message
	api := apiFailure{status: status, kind: e.Type, message: message}
	lower := strings.ToLower(message)
	switch {
	case status == 400:
		s.describeRefused(&api, lower)
	case status == 401 && strings.Contains(lower, "x-api-key"):
		api.class, api.retryClass, api.text = "authentication_failed", "authentication_failed", "Invalid API key · Fix external API key"
	case status == 401:
		api.class, api.retryClass, api.text = "authentication_failed", "authentication_failed", "Failed to authenticate. API Error: 401 "+message
	case status == 403 && strings.Contains(lower, "not allowed for this organization"):
		api.class = "oauth_org_not_allowed"
		api.text = "Your organization has disabled Claude subscription access for Claude Code · Use an Anthropic API key instead, or ask your admin to enable access"
	case status == 403:
		api.class, api.text = "authentication_failed", "Failed to authenticate. API Error: 403 "+message
	case status == 404:
		api.class, api.silent = "model_not_found", 1
		api.text = fmt.Sprintf("There's an issue with the selected model (%s). It may not exist or you may not have access to it. Run --model to pick a different model.", s.resolved())
	case status == 413:
		api.class, api.terminal = "invalid_request", "image_error"
		api.text = "Request too large (max 32MB). Accumulated images and attachments in the conversation pushed the request over the limit. Remove older images or compact the conversation."
	case status == 429:
		api.class, api.retryClass, api.text = "rate_limit", "rate_limit", "API Error: Request rejected (429) · "+message
	case status == 529:
		api.class, api.retryClass, api.text, api.limit = "server_error", "overloaded", busyText, overloadLimit
		if s.o.Limits.Retries < overloadLimit {
			api.text = serverText(status, message)
		}
	case status >= 500:
		api.class, api.retryClass, api.text = "server_error", "server_error", serverText(status, message)
	case status == 408, status == 409:
		api.class, api.retryClass, api.text = "unknown", "server_error", fmt.Sprintf("API Error: %d %s", status, message)
	default:
		api.class, api.text, api.silent = "unknown", fmt.Sprintf("API Error: %d %s", status, message), silentTries
	}
	return api
}

const (
	// overloadLimit is how many retries a 529 gets at the most.
	overloadLimit = 2
	// silentTries is how often a refused request is made again at once, each time
	// with less of what is optional in it.
	silentTries = 5
)

func serverText(status int, message string) string {
	return fmt.Sprintf("API Error: %d %s. This is a server-side issue, usually temporary — try again in a moment.", status, strings.TrimSuffix(message, "."))
}

// describeRefused is a 400: some the CLI knows by their message.
func (s *Simulator) describeRefused(api *apiFailure, lower string) {
	known := []struct{ part, class, connection, terminal, text string }{
		{"credit balance", "billing_error", "", "", "Credit balance is too low"},
		{"prompt is too long", "invalid_request", "", "prompt_too_long", s.tooLongText()},
		{"exceed context limit", "invalid_request", "", "prompt_too_long", s.tooLongText()},
		{"could not process image", "invalid_request", mediaRemoved, "image_error", removedText},
		{"image exceeds", "invalid_request", "", "image_error", "Image was too large. Try resizing the image or using a different approach."},
		{"pdf specified was not valid", "invalid_request", "", "image_error", "The PDF file was not valid. Try converting it to text first (e.g., pdftotext)."},
		{"`tool_use` ids were found without `tool_result`", "invalid_request", "tool_history_mismatch", "", "API Error: 400 due to tool use concurrency issues."},
		{
			"organization has been disabled", "invalid_request", "org_disabled_credential", "",
			"Your ANTHROPIC_API_KEY belongs to a disabled organization · Update or unset the environment variable",
		},
	}
	for _, k := range known {
		if strings.Contains(lower, k.part) {
			api.class, api.connection, api.terminal, api.text = k.class, k.connection, k.terminal, k.text
			return
		}
	}
	api.class, api.text, api.silent = "unknown", "API Error: 400 "+api.message, silentTries
}

// tooLongText depends on whether there is anything to compact.
func (s *Simulator) tooLongText() string {
	if s.past.leaf != "" {
		return "Prompt is too long"
	}
	return "Prompt is too long · this conversation is a single exchange and cannot be compacted — the request size comes mostly from " +
		"system prompt, tool definitions, or attachments."
}

// mediaRemoved is what an API refuses in a picture that it cannot read.
const mediaRemoved = "media_removed"

// overcome tells whether a failure that strikes a number of times has struck
// often enough.
func (s *Simulator) overcome(rule string, f *scenarios.Failure) bool {
	return f.Times > 0 && s.past.failed[rule] >= f.Times
}

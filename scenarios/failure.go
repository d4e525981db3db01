package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// Failure is a scripted failure of a request to the model.
type Failure struct {
	// Type is the kind of failure. Each kind uses only some of the other keys.
	Type FailureType `toml:"type,required" enum:"network_unreachable,connection_timeout,auth_error,rate_limit,out_of_credits,partial_response,stream_error,malformed_json,overloaded,server_error,api_error,prompt_too_long,hang,crash,spend_limit,stream_fault"`
	// AfterMS is the time after which a `connection_timeout` occurs.
	AfterMS int `toml:"after_ms" min:"0" max:"31536000000"`
	// RetryAfter is the wait, in seconds, that a `rate_limit` response requests.
	RetryAfter int `toml:"retry_after" min:"0" max:"31536000"`
	// Message is the error message of `auth_error`, `server_error`, `api_error` and `stream_error`.
	Message string `toml:"message"`
	// PartialText is the text that is sent before `partial_response` ends the connection, or before the error event of `stream_error`.
	PartialText string `toml:"partial_text"`
	// Cut selects how the connection of a `partial_response` ends: `reset` (RST), `close` (FIN in the middle of the
	// body), `error` (an error event), `silence` (it stays open without data), `end` (the body ends properly, but too
	// early). Only claudeless serve distinguishes them.
	Cut string `toml:"cut" enum:"reset,close,error,silence,end" default:"reset"`
	// Fault is the defect that a `stream_fault` adds to a normal streamed message. Only claudeless serve simulates it.
	Fault string `toml:"fault" enum:"ping-silence,delta-after-stop,two-message-starts,tool-json-truncated,usage-in-start-only,empty-content,stall-mid-stream"`
	// Whole makes a `partial_response` end after a complete text block. The CLI then shows the text and asks the model once to continue.
	Whole bool `toml:"whole"`
	// Raw is the body that `malformed_json` sends.
	Raw string `toml:"raw"`
	// Status is the HTTP status of `server_error` (500 to 599, default 500) and `api_error` (400 to 599).
	Status int `toml:"status" min:"400" max:"599"`
	// ErrorType is the error type of an `api_error` (default by status) or of the error event of a `stream_error`
	// (default `overloaded_error`). After a `stream_error`, the CLI immediately repeats the request without streaming.
	ErrorType string `toml:"error_type"`
	// Times is how many requests fail before one succeeds. It applies to every type of API failure. By default, all requests
	// fail. If the conversation contains a reply, the CLI compacts the conversation after the first `prompt_too_long`.
	Times int `toml:"times" min:"1"`
	// ExitCode is the exit code of a `crash`. With `signal`, it is derived from the signal; otherwise the default is 1.
	ExitCode int `toml:"exit_code" min:"0" max:"255"`
	// Signal is the signal that ends the process in a `crash`, e.g. `SIGKILL`.
	Signal string `toml:"signal" enum:"SIGABRT,SIGHUP,SIGINT,SIGKILL,SIGQUIT,SIGSEGV,SIGTERM"`
}

// FailureType is the `type` of a [Failure].
type FailureType string

// The failure types.
const (
	FailNetworkUnreachable FailureType = "network_unreachable"
	// FailNotLoggedIn is a session without credentials; scenarios cannot select it.
	FailNotLoggedIn       FailureType = "not_logged_in"
	FailConnectionTimeout FailureType = "connection_timeout"
	FailAuthError         FailureType = "auth_error"
	FailRateLimit         FailureType = "rate_limit"
	FailOutOfCredits      FailureType = "out_of_credits"
	FailPartialResponse   FailureType = "partial_response"
	FailStreamError       FailureType = "stream_error"
	FailMalformedJSON     FailureType = "malformed_json"
	FailOverloaded        FailureType = "overloaded"
	FailServerError       FailureType = "server_error"
	FailAPIError          FailureType = "api_error"
	FailPromptTooLong     FailureType = "prompt_too_long"
	FailHang              FailureType = "hang"
	FailCrash             FailureType = "crash"
	FailSpendLimit        FailureType = "spend_limit"
	FailStreamFault       FailureType = "stream_fault"
)

// failureTypeKeysAndDefaults contains the required and the optional keys of a type of failure, in addition to
// `type`, and the values that `--failure NAME` uses for them.
type failureTypeKeysAndDefaults struct {
	requiredKeys, optionalKeys []string
	valuesForFailureOption     Failure
}

func keysAndDefaultsByFailureType() map[FailureType]failureTypeKeysAndDefaults {
	times := []string{"times"}
	return map[FailureType]failureTypeKeysAndDefaults{
		FailConnectionTimeout:  {[]string{"after_ms"}, times, Failure{AfterMS: 5000}},
		FailAuthError:          {[]string{"message"}, times, Failure{Message: "Invalid API key"}},
		FailRateLimit:          {[]string{"retry_after"}, times, Failure{RetryAfter: 60}},
		FailNetworkUnreachable: {optionalKeys: times},
		FailOutOfCredits:       {optionalKeys: times},
		FailOverloaded:         {optionalKeys: times},
		FailPromptTooLong:      {optionalKeys: times},
		FailPartialResponse:    {[]string{"partial_text"}, []string{"cut", "times", "whole"}, Failure{PartialText: "I was going to say..."}},
		FailStreamError:        {optionalKeys: []string{"partial_text", "error_type", "message", "times"}},
		FailMalformedJSON:      {requiredKeys: []string{"raw"}, valuesForFailureOption: Failure{Raw: `{"type":"message","content":[{"type":"text","text":"trunc`}},
		FailServerError:        {optionalKeys: []string{"status", "message", "times"}, valuesForFailureOption: Failure{Status: 500}},
		FailAPIError:           {[]string{"status"}, []string{"error_type", "message", "times"}, Failure{Status: 500}},
		FailCrash:              {optionalKeys: []string{"exit_code", "signal"}, valuesForFailureOption: Failure{ExitCode: 1}},
		FailHang:               {},
		FailSpendLimit:         {},
	}
}

// BindValue reads a failure and checks that it has exactly the keys of its type.
func (f *Failure) BindValue(failureTable diag.Value, b *diag.BindRun) {
	type plain Failure
	b.BindInto(failureTable, (*plain)(f))
	if FailureByName(string(f.Type)) == nil {
		return // already reported
	}
	kind := keysAndDefaultsByFailureType()[f.Type]
	reportMissingOrForeignKeys(failureTable, b, "a failure of type `"+string(f.Type)+"`", typedTableKeys{kind.requiredKeys, kind.optionalKeys, []string{
		"after_ms", "retry_after", "message", "partial_text", "whole", "raw", "status", "error_type", "times", "exit_code", "signal",
	}})
	switch f.Type {
	case FailServerError:
		f.Status = cmp.Or(f.Status, 500)
		if status, _ := failureTable.Field("status"); f.Status < 500 {
			b.Errorf(status, "`status` of a server_error must be 500 to 599; use `api_error` for other statuses")
		}
	case FailPartialResponse:
		if f.Whole && f.Times == 0 {
			f.Times = 1
		}
	case FailCrash:
		_, code := failureTable.Field("exit_code")
		if signal, ok := failureTable.Field("signal"); ok && code {
			b.Errorf(signal, "cannot set both `exit_code` and `signal` in one crash")
		}
		if !code && f.Signal == "" {
			f.ExitCode = 1
		}
	default:
	}
}

type typedTableKeys struct {
	required, optional []string
	knownKeys          []string // the keys of all types
}

// reportMissingOrForeignKeys reports missing keys, and keys that belong to another type. Keys that no type has were reported earlier.
func reportMissingOrForeignKeys(v diag.Value, b *diag.BindRun, subject string, t typedTableKeys) {
	known := slices.Concat(t.required, t.optional)
	for _, f := range v.Fields() {
		if f.Key != "type" && slices.Contains(t.knownKeys, f.Key) && !slices.Contains(known, f.Key) {
			hint := "only the key `type` is allowed"
			if len(known) > 0 {
				hint = "its keys are " + strings.Join(known, ", ")
			}
			b.KeyErrorWithHintf(f, hint, "unknown key `%s` in %s", f.Key, subject)
		}
	}
	for _, key := range t.required {
		if _, ok := v.Field(key); !ok {
			b.Errorf(v, "missing key `%s` in %s", key, subject)
		}
	}
}

// FailureByName returns the failure of `--failure NAME` with default values for its keys, or nil if the name is
// unknown. Hyphens and underscores are equivalent.
func FailureByName(name string) *Failure {
	kind := FailureType(strings.ReplaceAll(strings.ToLower(name), "-", "_"))
	known, ok := keysAndDefaultsByFailureType()[kind]
	if !ok {
		return nil
	}
	known.valuesForFailureOption.Type = kind
	return &known.valuesForFailureOption
}

// FaultChangesStreamedMessages reports whether claudeless serve simulates the fault by changing the streamed messages of the API.
func FaultChangesStreamedMessages(faultName string) bool {
	return slices.Contains([]string{"ping-silence", "tool-json-truncated", "usage-in-start-only", "stall-mid-stream"}, faultName)
}

// APIError is the API's response to a request that fails.
type APIError struct {
	Status        int    // HTTP status; 0 means no response
	Type, Message string // type and message of the error in the body
}

// APIErrorDetailCode returns the error code in the details of the API's error, or "" if the failure has none.
func (f *Failure) APIErrorDetailCode() string {
	return map[FailureType]string{FailSpendLimit: "enforced_spend_limit_reached"}[f.Type]
}

// APIError returns the API's response for the failure. The result is zero if the failure has no error response, because
// it concerns the connection, the body or the process.
func (f *Failure) APIError() APIError {
	switch f.Type {
	case FailNetworkUnreachable, FailConnectionTimeout, FailPartialResponse, FailMalformedJSON, FailHang, FailCrash, FailStreamFault:
		return APIError{}
	case FailAuthError:
		return newAPIError(401, "authentication_error", f.Message)
	case FailRateLimit:
		return newAPIError(429, "rate_limit_error", fmt.Sprintf("Rate limited. Retry after %d seconds.", f.RetryAfter))
	case FailSpendLimit:
		return newAPIError(429, "rate_limit_error", "The spend limit of this workspace has been reached.")
	case FailOutOfCredits:
		return newAPIError(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.")
	case FailOverloaded:
		return newAPIError(529, "overloaded_error", "Overloaded")
	case FailPromptTooLong:
		return newAPIError(400, "invalid_request_error", "prompt is too long")
	case FailServerError:
		return newAPIError(f.Status, "", f.Message)
	case FailStreamError:
		kind := cmp.Or(f.ErrorType, "overloaded_error")
		return newAPIError(statusOfErrorTypeOr500(kind), kind, f.Message)
	default:
		return newAPIError(f.Status, f.ErrorType, f.Message)
	}
}

// newAPIError returns an error response. An empty kind follows from the status; an empty message follows from the kind.
func newAPIError(status int, kind, message string) APIError {
	status = cmp.Or(status, 500)
	kind = cmp.Or(kind, APIErrorType(status))
	switch {
	case message == "" && kind == "api_error":
		message = "Internal server error"
	case message == "":
		message = strings.ReplaceAll(strings.TrimSuffix(kind, "_error"), "_", " ")
	}
	return APIError{Status: status, Type: kind, Message: message}
}

func statusOfErrorTypeOr500(kind string) int {
	for status, known := range errorTypes() {
		if known == kind {
			return status
		}
	}
	return 500
}

// APIErrorType returns the error type of an HTTP status; "api_error" for statuses without a type.
func APIErrorType(status int) string { return cmp.Or(errorTypes()[status], "api_error") }

func errorTypes() map[int]string {
	return map[int]string{
		400: "invalid_request_error",
		401: "authentication_error",
		402: "billing_error",
		403: "permission_error",
		404: "not_found_error",
		413: "request_too_large",
		429: "rate_limit_error",
		504: "timeout_error",
		529: "overloaded_error",
	}
}

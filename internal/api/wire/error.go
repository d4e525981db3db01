package wire

import (
	"cmp"

	"github.com/claudeless/claudeless/scenarios"
)

// ErrorResponse is the body of an error response.
type ErrorResponse struct {
	Type      string    `json:"type"`
	Error     ErrorBody `json:"error"`
	RequestID string    `json:"request_id,omitempty"`
}

// ErrorBody contains the type and the message of an API error.
type ErrorBody struct {
	Type    string            `json:"type"`
	Message string            `json:"message"`
	Details map[string]string `json:"details,omitempty"` // error_code; nil means none
}

// NewErrorResponse returns the body of an error response. If e has no type, the type is derived from the status.
func NewErrorResponse(e scenarios.APIError, code, requestID string) ErrorResponse {
	body := ErrorBody{Type: e.Type, Message: e.Message}
	body.Type = cmp.Or(body.Type, scenarios.APIErrorType(e.Status))
	if e.Status > 400 && e.Status < 500 && body.Type == "api_error" {
		body.Type = "invalid_request_error"
	}
	if code != "" {
		body.Details = map[string]string{"error_code": code}
	}
	return ErrorResponse{Type: "error", Error: body, RequestID: requestID}
}

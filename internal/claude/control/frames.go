package control

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrClosed reports EOF on stdin before the host answered.
var ErrClosed = errors.New("stream closed before response received")

// errRequestNotSent is the [ErrClosed] for a request that was not sent, because stdin was already at EOF.
var errRequestNotSent = fmt.Errorf("request not sent: %w", ErrClosed)

// ResponseError is an error response without a code: from the host to our request, or from us to a request of the host.
type ResponseError struct{ Text string }

func (e *ResponseError) Error() string { return e.Text }

// CodedResponseError is an error response with a code. Model is the model that stays in use; an empty Model is omitted.
type CodedResponseError struct{ Code, Text, ModelInUse string }

func (e *CodedResponseError) Error() string { return e.Text }

// InvalidStdinLineError reports a line on stdin that ends the process. It has the message of the real CLI (spec: cli-observed 4).
type InvalidStdinLineError struct{ Text string }

func (e *InvalidStdinLineError) Error() string { return e.Text }

func invalidStdinLineErrorf(format string, args ...any) error {
	return &InvalidStdinLineError{Text: fmt.Sprintf(format, args...)}
}

// incomingFrame is the envelope of every frame from the host. Request ids are the host's and are returned unchanged.
type incomingFrame struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"request_id"`
	Request   json.RawMessage `json:"request"`
	Response  json.RawMessage `json:"response"`

	isBehindPrompt bool // see [HostRequest]; not part of the JSON
}

type responseFrame struct {
	Type     string `json:"type"` // "control_response"
	Response any    `json:"response"`
}

type successBody struct {
	Subtype   string          `json:"subtype"` // "success"
	RequestID json.RawMessage `json:"request_id,omitempty"`
	Response  any             `json:"response,omitempty"`
	// Unanswered questions to the host; only in the response to initialize.
	Permissions *[]json.RawMessage `json:"pending_permission_requests,omitempty"`
	Dialogs     *[]json.RawMessage `json:"pending_user_dialog_requests,omitempty"`
}

type errorBody struct {
	Subtype   string          `json:"subtype"` // "error"
	RequestID json.RawMessage `json:"request_id,omitempty"`
	Error     string          `json:"error"`
	Code      string          `json:"error_code,omitempty"`
	Model     string          `json:"model,omitempty"`
}

func errorResponse(id json.RawMessage, err error) responseFrame {
	f := errorBody{Subtype: "error", RequestID: id, Error: err.Error()}
	if refusal, ok := errors.AsType[*CodedResponseError](err); ok {
		f.Code, f.Model = refusal.Code, refusal.ModelInUse
	}
	return responseFrame{"control_response", f}
}

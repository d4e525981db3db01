package control

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrClosed says that stdin ended before the host had answered.
var ErrClosed = errors.New("stream closed before response received")

// errNotSent is the [ErrClosed] of a question that came too late to be asked.
var errNotSent = fmt.Errorf("nothing asked: %w", ErrClosed)

// HostError is a host's answer that it could not do what it was asked, or ours
// to a request of the host.
type HostError struct{ Text string }

func (e *HostError) Error() string { return e.Text }

// RefusalError is an error answer with a code of its own. Model is the one that
// stays in force; empty = not told.
type RefusalError struct{ Code, Text, Model string }

func (e *RefusalError) Error() string { return e.Text }

// InputError ends the process: stdin holds a line that the CLI does not take.
// Its text is the real CLI's (spec: cli-observed 4).
type InputError struct{ Text string }

func (e *InputError) Error() string { return e.Text }

func inputErrorf(format string, args ...any) error {
	return &InputError{Text: fmt.Sprintf(format, args...)}
}

// incomingFrame is the envelope of every frame of the host. Ids are the host's own
// and come back as they are.
type incomingFrame struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"request_id"`
	Request   json.RawMessage `json:"request"`
	Response  json.RawMessage `json:"response"`
}

// requestFrame is a request of ours.
type requestFrame struct {
	Type      string `json:"type"` // "control_request"
	RequestID string `json:"request_id"`
	Request   any    `json:"request"`
}

// cancelFrame tells the host that nobody waits for an answer any more.
type cancelFrame struct {
	Type      string `json:"type"` // "control_cancel_request"
	RequestID string `json:"request_id"`
}

// responseFrame answers a request of the host.
type responseFrame struct {
	Type     string `json:"type"` // "control_response"
	Response any    `json:"response"`
}

type successBody struct {
	Subtype   string          `json:"subtype"` // "success"
	RequestID json.RawMessage `json:"request_id,omitempty"`
	Response  any             `json:"response,omitempty"`
	// What waits for the host, with the answer to initialize only.
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
	if refusal, ok := errors.AsType[*RefusalError](err); ok {
		f.Code, f.Model = refusal.Code, refusal.Model
	}
	return responseFrame{"control_response", f}
}

package connection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// Error is a JSON-RPC error, received from the server or sent to it.
type Error struct {
	Code    int
	Message string
	Data    any // nil means none
}

func (e *Error) Error() string { return e.Message }

// JSON-RPC error codes.
const (
	CodeMethodNotFound = wire.METHOD_NOT_FOUND
	CodeInternalError  = wire.INTERNAL_ERROR
	CodeInvalidParams  = wire.INVALID_PARAMS
)

// closedError has the text that the real CLI shows to users.
type closedError struct{}

func (closedError) Error() string { return "Connection closed" }

var (
	// ErrClosed reports that the connection to the server was lost.
	ErrClosed error = closedError{}
	// ErrBroken reports that the connection broke while a call waited for its answer.
	ErrBroken = errors.New("the event stream broke off")
	// errRefused has the text that the real CLI shows if a server has closed its port.
	errRefused = errors.New("ECONNREFUSED: Unable to connect. Is the computer able to access the url?")
	// ErrLegacy reports that a server does not support revision 2026-07-28.
	ErrLegacy = errors.New("the server supports only initialize")
	// ErrNoEndpoint reports that the URL does not exist or does not accept messages.
	ErrNoEndpoint = errors.New("no streamable HTTP endpoint")
	// ErrNotHosted reports that a server does not run inside the SDK host.
	ErrNotHosted = errors.New("not a server of the SDK host")
)

// DialError reports why a connect failed, as we word it (Reason) and as the real CLI does (Wire).
type DialError struct {
	Reason, Wire string
	NeedsAuth    bool
	NeedsLogin   bool // a login is required; do not try the handshake
}

func (e *DialError) Error() string { return e.Reason }

// TransientError marks a failure that a retry may fix.
type TransientError struct{ error }

// Unwrap returns the failure itself.
func (e TransientError) Unwrap() error { return e.error }

// ExpiredError reports that a call took too long.
type ExpiredError struct{ Limit time.Duration }

func (e *ExpiredError) Error() string { return fmt.Sprintf("no answer within %v", e.Limit) }

// unwrapClientError removes mcp-go's wrapping from an error. A lost connection becomes ErrClosed.
func unwrapClientError(err error) error {
	var rpc *Error
	if errors.As(err, &rpc) {
		return rpc
	}
	var f *DialError
	if errors.As(err, &f) {
		return f
	}
	if errors.Is(err, transport.ErrTransportClosed) {
		return ErrClosed
	}
	var unreachable *url.Error
	if errors.As(err, &unreachable) { // this error contains the address, and the wrapping repeats it
		return unreachable
	}
	var wrapped *transport.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// isTransient reports whether a first connect to a remote server should be retried: it was refused, broke off, or the
// server responded with an error.
func isTransient(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var f *DialError
	var rpc *Error
	return !errors.As(err, &f) && !errors.As(err, &rpc) && !errors.Is(err, transport.ErrLegacySSEServer) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

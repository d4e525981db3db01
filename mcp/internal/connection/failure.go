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

// Error is a JSON-RPC error that a server answers with, or is answered with.
type Error struct {
	Code    int
	Message string
	Data    any // nil = none
}

func (e *Error) Error() string { return e.Message }

// Codes of errors.
const (
	CodeMethodNotFound = wire.METHOD_NOT_FOUND
	CodeInternalError  = wire.INTERNAL_ERROR
	CodeInvalidParams  = wire.INVALID_PARAMS
)

// closedError has the text that users see, as the real CLI writes it.
type closedError struct{}

func (closedError) Error() string { return "Connection closed" }

var (
	// ErrClosed says that the server went away.
	ErrClosed error = closedError{}
	// ErrLegacy says that a server does not know the newer era.
	ErrLegacy = errors.New("server knows initialize only")
	// ErrNoEndpoint says that there is nothing at the URL, or nothing that
	// takes messages.
	ErrNoEndpoint = errors.New("no streamable HTTP endpoint")
	// ErrNotHosted says that a server has no host that could send messages.
	ErrNotHosted = errors.New("not a server of the SDK host")
)

// DialError says why a connect failed, in our words and the real CLI's.
type DialError struct {
	Reason, Wire string
	NeedsAuth    bool
}

func (e *DialError) Error() string { return e.Reason }

// TransientError marks a failure that may pass.
type TransientError struct{ error }

// Unwrap is the failure itself.
func (e TransientError) Unwrap() error { return e.error }

// ExpiredError says that a call took too long.
type ExpiredError struct{ Limit time.Duration }

func (e *ExpiredError) Error() string { return fmt.Sprintf("no answer within %v", e.Limit) }

// plain undoes mcp-go's wrapping. The text of a lost connection is the one the
// real CLI shows.
func plain(err error) error {
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
	if errors.As(err, &unreachable) { // it says what was tried; the wrapping repeats it
		return unreachable
	}
	var wrapped *transport.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// transient reports whether a first connect to a remote server is worth
// another try: it was refused, broke off, or met an error of the server.
func transient(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var f *DialError
	var rpc *Error
	return !errors.As(err, &f) && !errors.As(err, &rpc) && !errors.Is(err, transport.ErrLegacySSEServer) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

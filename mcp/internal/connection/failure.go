package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// RPCError is a JSON-RPC error, received from the server or sent to it.
type RPCError struct {
	Code    int
	Message string
	Data    any // nil means none
}

func (e *RPCError) Error() string { return e.Message }

// CLIError is an error with the text of the real CLI.
type CLIError string

func (e CLIError) Error() string { return string(e) }

// JSON-RPC error codes.
const (
	CodeMethodNotFound = wire.METHOD_NOT_FOUND
	CodeInternalError  = wire.INTERNAL_ERROR
	CodeInvalidParams  = wire.INVALID_PARAMS
)

var (
	// ErrClosed reports that the connection to the server was lost.
	ErrClosed error = CLIError("Connection closed")
	// ErrBroken reports that the connection broke while a call waited for its answer.
	ErrBroken = errors.New("the event stream broke off")
	// ErrExpired reports that the server no longer knows the session. The connection is lost.
	ErrExpired = errors.New("the session has ended")
	// errConnectionReset is the real CLI's error for a closed connection, and errConnectionRefused for a closed port.
	errConnectionReset   = errors.New("ECONNRESET: The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second argument to fetch()")
	errConnectionRefused = errors.New("ECONNREFUSED: Unable to connect. Is the computer able to access the url?")
	// ErrUnreadable reports that the server sent a message that is not JSON.
	ErrUnreadable = errors.New("the server sent a message that cannot be parsed")
	// ErrLegacy reports that a server knows only the handshake of older revisions (initialize), not revision 2026-07-28.
	ErrLegacy = errors.New("the server does not know server/discover, only the older handshake with initialize")
)

// DialError reports why a connect failed. Reason is our text for the error, and CLIText is the text of the real CLI.
type DialError struct {
	Reason, CLIText      string
	CLICode              string // the real CLI's code for the error, such as "CONNECTION_CLOSED" or "HTTP 405"; empty means none
	NeedsAuth            bool   // the server refused the connection for lack of authorization
	NeedsLogin           bool   // the server requires a login, so the handshake is not tried either
	IsTransient          bool   // another attempt may succeed
	IsFinal              bool   // calls do not try to connect again
	CannotLogIn          bool   // the server asks for a login, but refuses to register clients
	IsLossAfterHandshake bool   // the connection was lost after the handshake
	Status               int    // status of the HTTP answer to the handshake; 0 means unknown
}

func (e *DialError) Error() string { return e.Reason }

// ClosedAgainText is the real CLI's text for a new connection that was lost at once.
const ClosedAgainText = "Connection closed again while reconnecting"

// UnusableHTTPAnswerError reports an HTTP answer that is not a message of the protocol. Text is the error text of the real
// CLI, and Code its code for the error.
type UnusableHTTPAnswerError struct {
	Status     int
	Code, Text string
}

func (e *UnusableHTTPAnswerError) Error() string { return e.Text }

// UnusableResultError reports a result that the client cannot use. Its text continues a sentence that begins with the name of
// the server: "returned a malformed result …".
type UnusableResultError struct{ Text string }

func (e *UnusableResultError) Error() string { return e.Text }

// NewMalformedResultError reports a result that violates the protocol.
func NewMalformedResultError(method, defect string) *UnusableResultError {
	return &UnusableResultError{MalformedResultTextPrefix + "Invalid result for " + method + ": " + defect}
}

// MalformedResultTextPrefix begins the text of the errors of [NewMalformedResultError].
const MalformedResultTextPrefix = "returned a malformed result that failed schema validation: "

// CallTimeoutError reports that a call took too long.
type CallTimeoutError struct{ Limit time.Duration }

func (e *CallTimeoutError) Error() string { return fmt.Sprintf("no answer within %v", e.Limit) }

// rootCauseOfClientError returns the cause of an error. A lost connection becomes ErrClosed.
func rootCauseOfClientError(err error) error {
	if found := cmp.Or(findError[*RPCError](err), findError[*DialError](err), findError[*UnusableHTTPAnswerError](err), findError[*UnusableResultError](err)); found != nil {
		return found
	}
	for wrapped, plain := range map[error]error{transport.ErrTransportClosed: ErrClosed, ErrUnreadable: ErrUnreadable} {
		if errors.Is(err, wrapped) {
			return plain
		}
	}
	return cmp.Or(findError[*url.Error](err), err) // a *url.Error contains the address, and the errors that wrap it repeat it
}

// unreachableErrorOrNil returns the real CLI's error for a server that cannot be reached (observed with 2.1.330); nil means that
// the error has another reason.
func unreachableErrorOrNil(err error) error {
	lookup, isLookup := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENETUNREACH):
		return errConnectionRefused
	case isLookup && lookup.IsNotFound:
		return errors.New("getaddrinfo ENOTFOUND " + lookup.Name)
	case isLookup:
		return errors.New("getaddrinfo EAI_AGAIN " + lookup.Name)
	}
	return nil
}

func findError[E error](err error) error {
	if found, ok := errors.AsType[E](err); ok {
		return found
	}
	return nil
}

// isTransientConnectError reports whether to retry a first connect to a remote server after this error.
func isTransientConnectError(err error) bool {
	if answer, ok := errors.AsType[*UnusableHTTPAnswerError](err); ok {
		return answer.Status/100 == 5
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" || cmp.Or(findError[*DialError](err), findError[*RPCError](err)) == nil &&
		!errors.Is(err, ErrUnreadable) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// ConnectionGivenUpReason says why the client gave up a connection. It is empty if the connection was lost or closed.
type ConnectionGivenUpReason string

// The reasons.
const (
	LostNeedsAuth  ConnectionGivenUpReason = "authorization required"
	LostUnreadable ConnectionGivenUpReason = "a message cannot be parsed"
)

// ClosedCode is the real CLI's code for a lost connection.
const ClosedCode = "CONNECTION_CLOSED"

// CLIErrorCode returns the real CLI's code for an error before the handshake; empty means none.
func CLIErrorCode(err error) string {
	if answer, ok := errors.AsType[*UnusableHTTPAnswerError](err); ok {
		return answer.Code
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "ENOENT"
	}
	code, _, _ := strings.Cut(strings.TrimPrefix(CLIStartErrorText(err), "getaddrinfo "), " ")
	if code = strings.TrimSuffix(code, ":"); !strings.HasPrefix(code, "E") || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		return ""
	}
	return code
}

// CLIStartErrorText returns the text of the real CLI if err means that a command does not exist or must not be executed.
// This text does not contain the command. For any other error, it returns the text of err.
func CLIStartErrorText(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "EACCES: permission denied, posix_spawn 'stdio'"
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(err.Error(), "/"):
		return "ENOENT: no such file or directory, posix_spawn 'stdio'"
	case errors.Is(err, fs.ErrNotExist):
		return `Executable not found in $PATH: "stdio"`
	}
	return err.Error()
}

func formatHTTPStatus(resp *http.Response) string { return fmt.Sprintf("HTTP %d", resp.StatusCode) }

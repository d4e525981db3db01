package connection

import (
	"context"
	"net"
	"net/url"
	"syscall"
	"testing"
)

func TestTransient(t *testing.T) {
	if !isTransientConnectError(&net.OpError{Op: "dial", Err: context.DeadlineExceeded}) || isTransientConnectError(context.DeadlineExceeded) || isTransientConnectError(&RPCError{}) {
		t.Error("a timeout of the port may pass, the end of all time and an answer may not")
	}
}

// These are the texts of 2.1.330, without a name server, and with a name server that does not know
// the name.
func TestNameNetworkError(t *testing.T) {
	for want, err := range map[string]error{
		"getaddrinfo EAI_AGAIN nowhere.invalid": &net.DNSError{Name: "nowhere.invalid", Err: "network is unreachable"},
		"getaddrinfo ENOTFOUND nowhere.invalid": &net.DNSError{Name: "nowhere.invalid", Err: "no such host", IsNotFound: true},
		errConnectionRefused.Error():            syscall.ECONNREFUSED,
	} {
		wrapped := &url.Error{Op: "Post", URL: "http://nowhere.invalid/mcp", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
		if got := unreachableErrorOrNil(wrapped); got == nil || got.Error() != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	if got := unreachableErrorOrNil(context.Canceled); got != nil {
		t.Error(got)
	}
}

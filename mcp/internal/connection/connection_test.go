package connection

import (
	"context"
	"encoding/json"
	"net"
	"net/url"
	"syscall"
	"testing"
)

// The progress token of a call is its id, even if the request was written before it got an id.
func TestToken(t *testing.T) {
	for meta, want := range map[string]string{
		``:                             `{"progressToken":7}`,
		`{"a":{"b":1}}`:                `{"a":{"b":1},"progressToken":7}`,
		`{"progressToken":1,"z":null}`: `{"progressToken":7,"z":null}`,
	} {
		if got := string(withProgressToken(json.RawMessage(meta), 7)); got != want {
			t.Errorf("%s: %s, want %s", meta, got, want)
		}
	}
}

func TestTransient(t *testing.T) {
	if !isTransient(&net.OpError{Op: "dial", Err: context.DeadlineExceeded}) || isTransient(context.DeadlineExceeded) || isTransient(&Error{}) {
		t.Error("a timeout of the port may pass, the end of all time and an answer may not")
	}
}

// The texts of 2.1.330, without a name server and with one that does not know the name.
func TestNameNetworkError(t *testing.T) {
	for want, err := range map[string]error{
		"getaddrinfo EAI_AGAIN nowhere.invalid": &net.DNSError{Name: "nowhere.invalid", Err: "network is unreachable"},
		"getaddrinfo ENOTFOUND nowhere.invalid": &net.DNSError{Name: "nowhere.invalid", Err: "no such host", IsNotFound: true},
		errRefused.Error():                      syscall.ECONNREFUSED,
	} {
		wrapped := &url.Error{Op: "Post", URL: "http://nowhere.invalid/mcp", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
		if got := nameNetworkError(wrapped); got == nil || got.Error() != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	if got := nameNetworkError(context.Canceled); got != nil {
		t.Error(got)
	}
}

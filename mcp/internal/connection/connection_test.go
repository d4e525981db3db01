package connection

import (
	"context"
	"encoding/json"
	"net"
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

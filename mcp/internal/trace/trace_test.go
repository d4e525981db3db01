package trace

import (
	"strings"
	"testing"
)

// TestLog: one line per message, secrets unreadable; without a log nothing is written (M2).
func TestLog(t *testing.T) {
	var out strings.Builder
	l := NewSink(&out, nil).Log("s", map[string]string{"A": "hunter2", "B": "on"})
	l.Message("->", "initialize", "0")
	l.Message("<-", "notifications/x", "")
	l.Printf("the password is %s, on", "hunter2")
	l.Hide(map[string]string{"C": "later"})
	if _, err := l.Stderr().Write([]byte("half later\nlost")); err != nil {
		t.Error(err)
	}
	want := "[mcp] s: -> initialize id=0\n[mcp] s: <- notifications/x\n[mcp] s: the password is ***, on\n[mcp] s: stderr: half ***\n"
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
	var none *Sink
	silent := none.Log("s")
	silent.Message("->", "x", "")
	silent.Hide(nil)
	if silent.Redact("hunter2") != "hunter2" || silent.Stderr() != nil || NewSink(nil, nil) != nil {
		t.Error("a log where there is none")
	}
}

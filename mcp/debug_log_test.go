package mcp

import (
	"strings"
	"testing"
)

// TestDebugLog: one line per message, secrets unreadable; without a log nothing is written (M2).
func TestDebugLog(t *testing.T) {
	var out strings.Builder
	l := newSharedDebugLogOutput(&out, nil).LogOfServer("s", map[string]string{"A": "hunter2", "B": "on"})
	l.LogMessage("->", "initialize", "0")
	l.LogMessage("<-", "notifications/x", "")
	l.Printf("the password is %s, on", "hunter2")
	l.HideValuesOf(map[string]string{"C": "later"})
	if _, err := l.NewStderrWriter().Write([]byte("half later\nlost")); err != nil {
		t.Error(err)
	}
	want := "[mcp] s: -> initialize id=0\n[mcp] s: <- notifications/x\n[mcp] s: the password is ***, on\n[mcp] s: stderr: half ***\n"
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
	var none *sharedDebugLogOutput
	silent := none.LogOfServer("s")
	silent.LogMessage("->", "x", "")
	silent.HideValuesOf(nil)
	if silent.Redact("hunter2") != "hunter2" || silent.NewStderrWriter() != nil || newSharedDebugLogOutput(nil, nil) != nil {
		t.Error("a log where there is none")
	}
}

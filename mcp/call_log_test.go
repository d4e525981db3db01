package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/internal/base/cas"
)

// TestLog: the newest calls are kept and all are counted. A large value is found only by its CID; a value that the
// store refuses still has one (S27).
func TestLog(t *testing.T) {
	l := NewCallLog(CallLogOptions{MaxCalls: 4, Store: cas.New(cas.Options{MaxValue: 100_000})})
	for i := range 99 {
		l.Add(CallRecord{Tool: fmt.Sprint(i)})
	}
	large := json.RawMessage(`"` + strings.Repeat("x", MaxInlineRecord) + `"`)
	l.Add(CallRecord{Result: large, Input: json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)})
	calls, total := l.Calls()
	if len(calls) != 4 || total != 100 || calls[0].Tool != "96" {
		t.Errorf("%d of %d, the first %s", len(calls), total, calls[0].Tool)
	}
	last := calls[3]
	if v, ok := l.Value(last.ResultCID); last.Result != nil || !ok || string(v) != string(large) {
		t.Errorf("large value: inline %d bytes, found %v", len(last.Result), ok)
	}
	if _, ok := l.Value(last.InputCID); ok || !cas.IsCID(last.InputCID) {
		t.Errorf("too large: found %v, CID %q", ok, last.InputCID)
	}
}

// TestNotJSON: bytes that are not JSON are kept too.
func TestNotJSON(t *testing.T) {
	l := NewCallLog(CallLogOptions{})
	l.Add(CallRecord{Result: json.RawMessage(`{broken`)})
	calls, _ := l.Calls()
	if v, ok := l.Value(calls[0].ResultCID); !ok || string(v) != "{broken" || calls[0].Source != RecordSource {
		t.Errorf("%q %v", v, ok)
	}
}

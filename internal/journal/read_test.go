package journal_test

import (
	"strings"
	"testing"

	"github.com/claudeless/claudeless/internal/journal"
)

// A journal is read whatever was done to it; what is not whole is told apart from
// what is only unknown.
func TestRead(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{`{"time":"2026-01-02T03:04:05Z","pid":7,"session_id":"S","type":"exit","code":3,"ms":1}`, "exit 7 S"},
		{`{"type":"exit","pid":7,"session_id":"S","time":"x","code":3,"ms":1}`, "exit 7 S"},
		{`{"time":"","pid":7,"session_id":"S","type":"of tomorrow","code":3}`, "of tomorrow 7 S"},
		{`{"time":"2026-01-02T03:04:05Z","pid":7,"session_id":"S","type":"exit","code":3,"m`, "torn"},
		{`{"time":"2026-01-02T03:04:05Z","pid":7,"session_id":"S","type":"of tomorrow","m`, "torn"},
		{`{"time":"2026-01-02T03:04:05Z","pid":7,"session_id":"S\"","type":"exit","code":3,"ms":1}`, "exit 7 S\""},
		{`{}`, "torn"},
		{`[1]`, "torn"},
		{`{"type":"exit","code":"three"}`, "line 1: a line of type exit: json: cannot unmarshal string into Go struct field Exit.code of type int"},
	} {
		for e, err := range journal.Read(strings.NewReader(tt.line + "\n")) {
			got := ""
			switch {
			case err == nil:
				got = strings.Join([]string{e.Type, map[bool]string{true: "7", false: "?"}[e.PID == 7], e.SessionID}, " ")
			case strings.Contains(err.Error(), journal.ErrTorn.Error()):
				got = "torn"
			default:
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%s: %s, want %s", tt.line, got, tt.want)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"time":"2026-01-02T03:04:05Z","pid":7,"session_id":"S","type":"exit","code":3,"ms":1}`)
	f.Add(`{"type":"tool","input":{"a":[1]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		for e, err := range journal.Read(strings.NewReader(text)) {
			if err == nil && e.Type == "" {
				t.Errorf("a line without a type: %q", text)
			}
		}
	})
}

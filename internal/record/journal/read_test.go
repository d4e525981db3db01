package journal_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/internal/record/journal"
)

// A damaged journal can be read. Incomplete lines are distinguished from lines of unknown types.
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
		{`{"type":"exit","code":"three"}`, "line 1: invalid journal line of type exit: json: cannot unmarshal string into Go struct field Exit.code of type int"},
	} {
		for e, err := range journal.Read(strings.NewReader(tt.line + "\n")) {
			got := ""
			switch {
			case err == nil:
				got = strings.Join([]string{e.Type, map[bool]string{true: "7", false: "?"}[e.PID == 7], e.SessionID}, " ")
			case strings.Contains(err.Error(), journal.ErrNotAJournalLine.Error()):
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

// Every type of line has a readable form.
func TestExplain(t *testing.T) {
	lines := reflect.TypeFor[journal.Line]()
	for field := range lines.Fields() {
		kind := field.Tag.Get("json")
		for e, err := range journal.Read(strings.NewReader(`{"time":"2026-01-02T03:04:05Z","pid":1,"session_id":"S","type":"` + kind + `","argv":["claude"],` +
			`"what":"signal","prompt":"hi","attachment":{"type":"file"},"texts":["by the way"],"rule":"responses[0]","blocks":[],"decision":"accept","phase":"pre","tool":"Bash",` +
			`"server":"s","message":"m","text":"t","subtype":"success","name":"g","path":"/v1/messages","kind":"title","id":"S01"}`)) {
			if err != nil {
				t.Fatal(err)
			}
			if _, said, _ := strings.Cut(e.SummaryLine(), kind); strings.TrimSpace(said) == "" {
				t.Errorf("%s: nothing is said", kind)
			}
		}
	}
	const asked = `{"time":"2026-01-02T03:04:05Z","pid":1,"session_id":"","type":"request","attempt":2,"path":"/v1/messages","prompt":"hi there","rule":"responses[0]",` +
		`"file":"s.toml","line":3,"status":529,"ms":1.25,"error":"over","calls":[{"tool":"Bash","tool_use_id":"t","input":{},"result":"a\nb"}]}`
	for e, err := range journal.Read(strings.NewReader(asked)) {
		want := `03:04:05.000      1  request     prompt "hi there", Bash gave "a b", attempt 2 -> responses[0] 529 (1.2 ms)  s.toml:3  over`
		if got := e.SummaryLine(); err != nil || got != want {
			t.Errorf("%q, want %q: %v", got, want, err)
		}
	}
}

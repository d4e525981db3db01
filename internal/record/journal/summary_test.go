package journal_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// A retry belongs to the request that it repeats, whether a line of the model or of the API records it. A message of
// several blocks, or one that continues another, answers one request.
func TestSummaryRequests(t *testing.T) {
	x, err := scenarios.Parse("s.toml", []byte(`
[[expect]]
request = { model = "one", max_retries = 1 }
times = 1
[[expect]]
request = { model = "two", max_retries = 0 }
times = 1
[[expect]]
request = { model = "three", max_retries = 0, within_ms = 5 }
times = 1
`), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var s journal.Summary
	one, two := journal.LineOrigin{PID: 1}, journal.LineOrigin{PID: 2}
	for _, l := range []struct {
		by   journal.LineOrigin
		line journal.Body
	}{
		{one, journal.Retry{Attempt: 1}},
		{two, journal.Model{MessageID: "a", Model: "two"}}, // the retry was not of this model
		{one, journal.Model{MessageID: "a", Model: "one"}},
		{one, journal.Model{MessageID: "a", Model: "one"}},
		{two, journal.Retry{Attempt: 1}},
		{two, journal.Model{MessageID: "b", Model: "two", Continued: true}},
		{journal.LineOrigin{AfterMS: 7}, journal.Request{Prompt: "p", Model: "three", Status: 529, Attempt: 1}},
		{journal.LineOrigin{AfterMS: 9}, journal.Request{Prompt: "p", Model: "three", Status: 200, Attempt: 2}},
		{journal.LineOrigin{}, journal.Gate{Name: "g", Event: "reached"}},
		{journal.LineOrigin{}, journal.Gate{Name: "h", Event: "reached"}},
		{journal.LineOrigin{}, journal.Gate{Name: "g", Event: "released"}},
	} {
		s.Add(l.by, l.line)
	}
	var got []string
	for _, j := range s.CheckExpectations(x) {
		got = append(got, j.Actual)
	}
	if diff := cmp.Diff([]string{"", "a request for two was retried once", "a request for three was retried once"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]journal.GateState{{Name: "g", Reached: true}, {Name: "h", Reached: true, Waiting: true}}, s.Gates()); diff != "" {
		t.Error(diff)
	}
}

// Each line of a journal that was read has its content.
func TestBody(t *testing.T) {
	for e, err := range journal.Read(strings.NewReader(`{"time":"","pid":1,"session_id":"","type":"exit","code":7}` + "\n" + `{"time":"","pid":1,"session_id":"","type":"of the future"}` + "\n")) {
		if err != nil {
			t.Fatal(err)
		}
		if x, ok := e.Body().(journal.Exit); e.Type == "exit" != ok || ok && x.Code != 7 {
			t.Errorf("%s: %v", e.Type, e.Body())
		}
	}
}

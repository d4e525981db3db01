package suite_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/parity/suite"
)

// P1: the requests to the model are read from claudeless's journal; a result that the model never received is not
// part of them.
func TestRequests(t *testing.T) {
	const (
		first  = `{"type":"tool","tool":"Bash","tool_use_id":"1","result":"a"}`
		second = `{"type":"tool","tool":"Bash","tool_use_id":"2","result":"b"}`
		model  = `{"type":"model","message_id":"m"}`
	)
	tests := []struct {
		name  string
		lines []string
		want  string
	}{
		{"the model goes on", []string{`{"type":"match","prompt":"p"}`, model, first, second, model, `{"type":"result"}`}, "p 1 2"},
		{"a request that fails", []string{first, `{"type":"retry","attempt":1}`, `{"type":"result"}`}, "1"},
		{"a request that is interrupted", []string{first, `{"type":"result","terminal_reason":"aborted_streaming"}`}, "1"},
		{"the turn ends with the call", []string{model, first, model, second, `{"type":"result"}`, `{"type":"match","prompt":"p"}`, model}, "1 p"},
		{"the process ends in the call", []string{model, first, `{"type":"start"}`, `{"type":"match","prompt":"p"}`, model}, "p"},
		{"the last process ends in the call", []string{model, first, second}, ""},
		{"the API face", []string{`{"type":"request","attempt":1,"calls":[{"tool_use_id":"1"}],"prompt":"p"}`}, "1 p"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			list, err := suite.ReadRequestsFromJournal(strings.NewReader(strings.Join(test.lines, "\n") + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, raw := range list {
				var a struct {
					Text string
					ID   string `json:"tool_use_id"`
				}
				if err := json.Unmarshal(raw, &a); err != nil {
					t.Fatal(err)
				}
				got = append(got, a.Text+a.ID)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

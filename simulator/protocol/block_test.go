package protocol

import (
	"encoding/json"
	"testing"
)

// The orders of keys were observed with 2.1.330.
func TestKeyOrderOfCallsAndResults(t *testing.T) {
	t.Parallel()
	tool := Tool{InputSchema: json.RawMessage(`{"properties":{"file_path":{},"offset":{},"limit":{}}}`)}
	use := ToolUse{Input: json.RawMessage(`{"extra":1,"limit":3,"file_path":"a"}`), KeyOrder: tool.InputKeys()}
	if got, want := string(use.InputForHooksAndHosts()), `{"file_path":"a","limit":3,"extra":1}`; got != want {
		t.Errorf("input: %s, want %s", got, want)
	}
	for _, test := range []struct {
		isError *bool
		want    string
	}{
		{nil, `{"tool_use_id":"u","type":"tool_result","content":"<a>"}`},
		{new(false), `{"tool_use_id":"u","type":"tool_result","content":"<a>","is_error":false}`},
		{new(true), `{"type":"tool_result","content":"<a>","is_error":true,"tool_use_id":"u"}`},
	} {
		raw, err := Marshal(ToolResultBlock{ToolUseID: "u", Type: "tool_result", Content: Content{Text: "<a>"}, IsError: test.isError})
		if err != nil || string(raw) != test.want {
			t.Errorf("result: %s, %v, want %s", raw, err, test.want)
		}
	}
}

package transcript

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAppendReminderToToolResult(t *testing.T) {
	for content, want := range map[string]string{
		`"a"`:               `"a\n\nREMINDER"`,
		`" a \n b\t \n\n"`:  `" a \n b\n\nREMINDER"`, // white space at the end is dropped
		`"a\u00a0"`:         `"a\n\nREMINDER"`,
		`""`:                `"\n\nREMINDER"`,
		`[{"type":"text"}]`: "",
	} {
		block := json.RawMessage(`{"tool_use_id":"1","type":"tool_result","content":` + content + `}`)
		before := string(block)
		if isAppended := appendReminderToToolResult(&block, "REMINDER"); isAppended != (want != "") {
			t.Errorf("%s: isAppended = %t", content, isAppended)
		}
		if want == "" {
			want = content
		}
		if diff := cmp.Diff(`{"tool_use_id":"1","type":"tool_result","content":`+want+`}`, string(block)); diff != "" {
			t.Errorf("%s became another block than expected (before %s) (-want +got):\n%s", content, before, diff)
		}
	}
}

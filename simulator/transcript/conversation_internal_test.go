package transcript

import (
	"encoding/json"
	"slices"
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

// TestPreviousReply: the lines of the last reply, which a compaction of the resumed session keeps.
func TestPreviousReply(t *testing.T) {
	parsed := parseTranscript([]byte(`{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"one"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"id":"m1","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"x"}]}}
{"type":"user","uuid":"u2","parentUuid":"a1","message":{"role":"user","content":"two"}}
{"type":"assistant","uuid":"a2","parentUuid":"u2","message":{"id":"m2","role":"assistant","model":"claude-opus-5-5","content":[{"type":"thinking","thinking":"y"}]}}
{"type":"assistant","uuid":"a3","parentUuid":"a2","message":{"id":"m2","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"z"}]}}
`))
	if got := parsed.previousReply("a3"); got == nil || got.Replies != 2 || !slices.Equal(got.Lines, []string{"a2", "a3"}) {
		t.Errorf("got %+v", got)
	}
}

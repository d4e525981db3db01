package permission_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const cwd = "/work/project"

// TestGolden replays the tool calls of runs of the real CLI (testdata/golden) and compares the output for each: the
// permission_denied event, the tool result and its tool_result_meta (checklist rows 24, 26 and 52). "<text>" and
// "<path>" represent parts that the recordings omit.
func TestGolden(t *testing.T) {
	all := []string{"Read", "Write", "Edit", "Bash", "Glob", "Grep", "TodoWrite", "Task", "WebFetch", "NotebookEdit"}
	tests := []struct {
		file  string
		mode  protocol.PermissionMode
		allow []string
	}{
		{"perm-default", "", nil},
		{"perm-plan", protocol.ModePlan, nil},
		{"perm-dontAsk", protocol.ModeDontAsk, nil},
		{"mcp-denied", "", nil},
		{"tool-bash", "", all},
		{"tool-write", "", all},
		{"tool-read", "", all},
		{"ctl-set-perm", protocol.ModeAcceptEdits, nil},
		{"schema-ok", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			o := permission.Options{Mode: tt.mode, CWD: cwd}
			for _, text := range tt.allow {
				o.Rules = append(o.Rules, permission.Rule{Behavior: permission.BehaviorAllow, Source: "cliArg", Text: text})
			}
			p, err := permission.New(o)
			if err != nil {
				t.Fatal(err)
			}
			calls := readCalls(t, tt.file)
			if len(calls) == 0 {
				t.Fatal("the recording holds no call")
			}
			for _, c := range calls {
				if diff := cmp.Diff(c.want, displayOf(t, p, c.use), elided); diff != "" {
					t.Errorf("%s (-recorded +got):\n%s", c.use.Name, diff)
				}
			}
		})
	}
}

// recordedCall is one call and the events about its permission.
type recordedCall struct {
	use  protocol.ToolUse
	want display
}

type display struct {
	Event   map[string]any // permission_denied without uuid and session_id
	Meta    map[string]any // tool_result_meta without id
	Refused string         // tool result of a call that did not run
}

// elided treats the placeholders of a recording as equal to anything.
var elided = cmp.FilterValues(func(a, b string) bool {
	return strings.Contains(a, "<text>") || strings.Contains(b, "<text>")
}, cmp.Ignore())

func displayOf(t *testing.T, p *permission.Policy, use protocol.ToolUse) display {
	t.Helper()
	v := p.Decide(use)
	meta := protocol.ToolResultMeta{PermissionDecision: &v.Decision}
	var out display
	if v.Behavior != permission.Allow {
		r, denied := v.Denial()
		out.Refused = r.Content.Text
		meta.NonExecutionKind, meta.PermissionDecision = r.NonExecutionKind, r.Decision
		if denied != nil {
			out.Event = decodeTree(t, denied)
		}
		if !r.IsError || !v.CountDenial {
			t.Errorf("%s: IsError %v, CountDenial %v; want both", use.Name, r.IsError, v.CountDenial)
		}
	}
	out.Meta = decodeTree(t, meta)
	for _, m := range []map[string]any{out.Event, out.Meta} {
		delete(m, "id")
		delete(m, "uuid")
		delete(m, "session_id")
	}
	return out
}

func decodeTree(t *testing.T, v any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func readCalls(t *testing.T, name string) []recordedCall {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "golden", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []recordedCall
	events := map[string]map[string]any{}
	uses := map[string]protocol.ToolUse{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line, found := strings.CutPrefix(lines.Text(), "< ")
		if !found || !strings.HasPrefix(line, "{") {
			continue
		}
		line = strings.ReplaceAll(line, "<path>", cwd+"/file")
		var ev struct {
			Type, Subtype string
			ToolUseID     string `json:"tool_use_id"`
			Message       json.RawMessage
			Meta          []map[string]any `json:"tool_result_meta"`
		}
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatal(err)
		}
		switch {
		case ev.Subtype == "permission_denied":
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			delete(m, "uuid")
			delete(m, "session_id")
			events[ev.ToolUseID] = m
		case ev.Type == "assistant", ev.Type == "user":
			var m struct{ Content protocol.Content }
			if err := json.Unmarshal(ev.Message, &m); err != nil {
				t.Fatal(err)
			}
			for _, b := range m.Content.Blocks {
				switch b := b.(type) {
				case protocol.ToolUse:
					uses[b.ID] = b
				case protocol.ToolResultBlock:
					r := recordedCall{use: uses[b.ToolUseID]}
					r.want.Event = events[b.ToolUseID]
					r.want.Meta = ev.Meta[0]
					delete(r.want.Meta, "id")
					if _, refused := r.want.Meta["non_execution_kind"]; refused {
						r.want.Refused = b.Content.Text
					}
					out = append(out, r)
				}
			}
		}
	}
	return out
}

package builtin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/tests/tooltest"
)

// capturedCall is one call of a captured run of the real CLI, with its result.
type capturedCall struct {
	use             protocol.ToolUse
	result, toolUse json.RawMessage // tool_result block, tool_use_result
}

// readCapture reads a file of testdata/golden. The files were captured from the real CLI 2.1.329 and must not be
// edited.
func readCapture(t *testing.T, name string) []capturedCall {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "golden", name))
	if err != nil {
		t.Fatal(err)
	}
	var calls []capturedCall
	for line := range strings.Lines(string(data)) {
		var frame struct {
			Type    string
			Message struct {
				Content json.RawMessage
			}
			ToolUseResult json.RawMessage `json:"tool_use_result"`
		}
		line, ok := strings.CutPrefix(line, "< ")
		if !ok || json.Unmarshal([]byte(line), &frame) != nil {
			continue
		}
		var blocks []json.RawMessage
		if json.Unmarshal(frame.Message.Content, &blocks) != nil {
			continue
		}
		for _, raw := range blocks {
			b, err := protocol.UnmarshalBlock(raw)
			if err != nil {
				t.Fatal(err)
			}
			switch b := b.(type) {
			case protocol.ToolUse:
				calls = append(calls, capturedCall{use: b})
			case protocol.ToolResultBlock:
				for i := range calls {
					if calls[i].use.ID == b.ToolUseID {
						calls[i].result, calls[i].toolUse = raw, frame.ToolUseResult
					}
				}
			}
		}
	}
	if len(calls) == 0 {
		t.Fatalf("%s holds no calls", name)
	}
	return calls
}

// userEventParts renders a result as the user event contains it.
func userEventParts(t *testing.T, id string, r protocol.ToolResult) (block, toolUse json.RawMessage) {
	t.Helper()
	b := protocol.ToolResultBlock{ToolUseID: id, Type: "tool_result", Content: r.Content}
	if r.IsError || r.ShowsIsErrorFalse {
		b.IsError = &r.IsError
	}
	var output any = r.Content
	switch {
	case r.Output != nil:
		output = r.Output
	case r.IsError:
		output = "Error: " + r.Content.Plain()
	}
	block, err := protocol.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	toolUse, err = protocol.Marshal(output)
	if err != nil {
		t.Fatal(err)
	}
	return block, toolUse
}

var varying = regexp.MustCompile(`"durationMs":\d+`)

// TestGoldens compares content, is_error and tool_use_result with the goldens tool-*.txt. The keys
// of tool_use_result must also be in the same order (checklist 9.8).
func TestGoldens(t *testing.T) {
	tests := []struct {
		name  string
		paths []string // what <path> of each call's input represents
	}{
		{"tool-bash.txt", nil},
		{"tool-bash-fail.txt", nil},
		{"tool-edit.txt", []string{"a.txt", "a.txt"}},
		{"tool-glob-tools.txt", nil},
		{"tool-grep-tools.txt", nil},
		{"tool-multi.txt", []string{"a.txt", "", "sub/b.js"}},
		{"tool-multi-onefail.txt", nil},
		{"tool-read.txt", []string{"a.txt"}},
		{"tool-write.txt", []string{"new.txt"}},
		{"cut-allow.txt", []string{"new.txt"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tooltest.WriteFile(t, dir, "a.txt", "line one\nline two\nline three\n")
			tooltest.WriteFile(t, dir, "sub/b.js", "console.log(\"needle\")\n")
			tools := newTools(t, Options{CWD: dir, Environ: os.Environ()})
			for i, call := range readCapture(t, tt.name) {
				path := ""
				if i < len(tt.paths) {
					path = filepath.Join(dir, tt.paths[i])
				}
				call.use.Input = json.RawMessage(strings.ReplaceAll(string(call.use.Input), "<path>", path))
				r, err := tools.Execute(t.Context(), call.use)
				if err != nil {
					t.Fatal(err)
				}
				block, toolUse := userEventParts(t, call.use.ID, r.ToolResult)
				hide := func(raw json.RawMessage) string {
					s := varying.ReplaceAllString(string(raw), `"durationMs":0`)
					if path != "" {
						s = strings.ReplaceAll(s, path, "<path>")
					}
					return s
				}
				if diff := cmp.Diff(sortedKeys(t, string(call.result)), sortedKeys(t, hide(block))); diff != "" {
					t.Errorf("%s block (-real +ours):\n%s", call.use.Name, diff)
				}
				if diff := cmp.Diff(varying.ReplaceAllString(string(call.toolUse), `"durationMs":0`), hide(toolUse)); diff != "" {
					t.Errorf("%s tool_use_result (-real +ours):\n%s", call.use.Name, diff)
				}
			}
		})
	}
}

func sortedKeys(t *testing.T, s string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	out, err := protocol.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

package hook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/google/go-cmp/cmp"
)

// The attachments in transcripts depend on the event (observed with 2.1.329). A refusal that the user or the model
// sees in another way is not attached.
func TestAttachments(t *testing.T) {
	const (
		block = `echo '{"decision":"block","reason":"r"}'`
		stop  = `echo '{"continue":false}'`
		tell  = `echo '{"systemMessage":"m"}'`
	)
	tests := []struct {
		name, command string
		event         protocol.HookInput
		want          []string
	}{
		{"success", "echo out", bash, []string{
			`{"type":"hook_success","hookName":"PreToolUse:Bash","toolUseID":"id","hookEvent":"PreToolUse","content":"out","stdout":"out\n","stderr":"","exitCode":0,"command":"echo out","durationMs":0}`,
		}},
		{"lines", "echo e >&2\ntrue", bash, []string{
			`{"type":"hook_success","hookName":"PreToolUse:Bash","toolUseID":"id","hookEvent":"PreToolUse","content":"","stdout":"","stderr":"e\n","exitCode":0,"command":"echo e >&2␤true","durationMs":0}`,
		}},
		{"silent", "echo", bash, nil},
		{"error", "echo e >&2; exit 3", bash, []string{
			`{"type":"hook_non_blocking_error","hookName":"PreToolUse:Bash","toolUseID":"id","hookEvent":"PreToolUse","stderr":"Failed with non-blocking status code: e","stdout":"","exitCode":3,"command":"echo e >&2; exit 3","durationMs":0}`,
		}},
		{"refused call", "exit 2", bash, nil},
		{"stopped call", stop, bash, []string{
			`{"type":"hook_success",…}`,
			`{"type":"hook_stopped_continuation","message":"Execution stopped by hook","hookName":"PreToolUse:Bash","toolUseID":"id","hookEvent":"PreToolUse"}`,
		}},
		{"stopped after the call", stop, protocol.PostToolUseHookInput{ToolName: "Bash"}, []string{
			`{"type":"hook_stopped_continuation","message":"Execution stopped by PostToolUse hook","hookName":"PostToolUse:Bash","toolUseID":"id","hookEvent":"PostToolUse"}`,
		}},
		{"feedback after the call", "exit 2", protocol.PostToolUseHookInput{ToolName: "Bash"}, []string{
			`{"type":"hook_blocking_error","hookName":"PostToolUse:Bash","toolUseID":"id","hookEvent":"PostToolUse","blockingError":{"blockingError":"[exit 2]: No stderr output","command":"exit 2"}}`,
		}},
		{"refused batch", block, protocol.PostToolBatchHookInput{}, []string{
			`{"type":"hook_stopped_continuation","message":"r","hookName":"PostToolBatch","toolUseID":"id","hookEvent":"PostToolBatch","accountMemoryBatch":false}`,
		}},
		{"message", tell, protocol.StopHookInput{}, []string{
			`{"type":"hook_success",…}`,
			`{"type":"hook_system_message","content":"m","hookName":"Stop","toolUseID":"id","hookEvent":"Stop"}`,
		}},
		{"end stopped", stop, protocol.SubagentStopHookInput{}, []string{
			`{"type":"hook_stopped_continuation","message":"Stop hook prevented continuation","hookName":"Stop","toolUseID":"id","hookEvent":"Stop"}`,
			`{"type":"hook_success",…}`,
		}},
		{"end refused", "exit 2", protocol.StopHookInput{}, nil},
		{"end refused by output", block, protocol.StopHookInput{}, []string{`{"type":"hook_blocking_error",…}`}},
		{"prompt refused", block, protocol.UserPromptSubmitHookInput{}, nil},
		{"prompt passed", tell, protocol.UserPromptSubmitHookInput{}, []string{
			`{"type":"hook_system_message","content":"m","hookName":"UserPromptSubmit","toolUseID":"id","hookEvent":"UserPromptSubmit"}`,
		}},
		{"nothing to refuse", "exit 2", protocol.SessionStartHookInput{Source: "startup"}, []string{
			`{"type":"hook_non_blocking_error","hookName":"SessionStart:startup","toolUseID":"id-1","hookEvent":"SessionStart","stderr":"[exit 2]: No stderr output","stdout":"","exitCode":2,"command":"exit 2"}`,
		}},
		{"context", `echo '{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"c"}}'`, protocol.SessionStartHookInput{Source: "startup"}, []string{
			`{"type":"hook_success",…}`,
			`{"type":"hook_additional_context","content":["c"],"hookName":"SessionStart","toolUseID":"SessionStart","hookEvent":"SessionStart"}`,
		}},
		{"display", tell, protocol.MessageDisplayHookInput{}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			event, _ := protocol.HookEvent(tt.event)
			command, err := json.Marshal(tt.command)
			if err != nil {
				t.Fatal(err)
			}
			r := newRunner(t, fmt.Sprintf(`{%q:[{"hooks":[{"type":"command","command":%s}]}]}`, event, command))
			var got []string
			for _, a := range r.Run(t.Context(), EventInput{Event: tt.event, ToolUseID: "id"}).Attachments {
				raw, err := protocol.Marshal(a)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(raw))
			}
			for i, want := range tt.want { // "…" replaces the part that another case checks
				if head, ok := strings.CutSuffix(want, "…}"); ok && i < len(got) && strings.HasPrefix(got[i], head) {
					got[i] = want
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

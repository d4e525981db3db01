package protocol

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHookInputs checks the keys, their order and the subject of each simulated event (cli-contract 5.2, checklist row 19).
func TestHookInputs(t *testing.T) {
	server := &ServerNameAndSource{Name: "s", Source: "dynamic"}
	ms := 5
	input := json.RawMessage(`{}`)
	tests := []struct {
		in                   HookInput
		event, subject, keys string
	}{
		{PreToolUseHookInput{ToolName: "T", ToolInput: input, MCPServer: server}, "PreToolUse", "T", "tool_name tool_input tool_use_id mcp_server"},
		{PostToolUseHookInput{ToolName: "T", ToolInput: input, DurationMS: &ms}, "PostToolUse", "T", "tool_name tool_input tool_response tool_use_id duration_ms"},
		{PostToolUseFailureHookInput{ToolName: "T", ToolInput: input}, "PostToolUseFailure", "T", "tool_name tool_input tool_use_id error is_interrupt"},
		{PostToolBatchHookInput{}, "PostToolBatch", "", "tool_calls"},
		{PermissionRequestHookInput{ToolName: "T", ToolInput: input, Suggestions: []PermissionUpdate{{}}}, "PermissionRequest", "T", "tool_name tool_input permission_suggestions"},
		{UserPromptSubmitHookInput{}, "UserPromptSubmit", "", "prompt"},
		{UserPromptExpansionHookInput{CommandName: "c"}, "UserPromptExpansion", "c", "expansion_type command_name command_args prompt"},
		{StopHookInput{LastAssistantMessage: "x"}, "Stop", "", "stop_hook_active last_assistant_message background_tasks session_crons"},
		{StopFailureHookInput{Error: "e"}, "StopFailure", "e", "error"},
		{SubagentStartHookInput{AgentType: "a"}, "SubagentStart", "a", ""},
		{SubagentStopHookInput{AgentType: "a"}, "SubagentStop", "a", "stop_hook_active agent_transcript_path background_tasks session_crons"},
		{PreCompactHookInput{Trigger: "auto"}, "PreCompact", "auto", "trigger custom_instructions"},
		{PostCompactHookInput{Trigger: "auto"}, "PostCompact", "auto", "trigger compact_summary"},
		{SessionStartHookInput{Source: "resume"}, "SessionStart", "resume", "source"},
		{SessionEndHookInput{Reason: "other"}, "SessionEnd", "other", "reason"},
		{SetupHookInput{Trigger: "init"}, "Setup", "init", "trigger"},
		{TaskCreatedHookInput{}, "TaskCreated", "", "task_id task_subject"},
		{TaskCompletedHookInput{}, "TaskCompleted", "", "task_id task_subject"},
		{InstructionsLoadedHookInput{LoadReason: "l"}, "InstructionsLoaded", "l", "file_path memory_type load_reason"},
		{CwdChangedHookInput{}, "CwdChanged", "", "old_cwd new_cwd"},
		{MessageDisplayHookInput{}, "MessageDisplay", "", "turn_id message_id index final delta"},
	}
	if len(tests) != 21 {
		t.Errorf("%d events; of the 33 of the SDK, 12 are never sent and have no type", len(tests))
	}
	for _, tt := range tests {
		event, subject := HookEvent(tt.in)
		got := []string{event, subject, strings.Join(objectKeys(t, tt.in), " ")}
		if diff := cmp.Diff([]string{tt.event, tt.subject, tt.keys}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reflect.TypeOf(tt.in).Name(), diff)
		}
	}
}

// objectKeys returns the keys of v's JSON object in the order written.
func objectKeys(t *testing.T, v any) []string {
	t.Helper()
	raw, err := Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key.(string))
	}
	return keys
}

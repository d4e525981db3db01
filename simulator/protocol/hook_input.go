package protocol

import "encoding/json"

// HookInput is the part of a hook's input that its event determines; [HookBase] is the other part. The set is closed: one type, named
// after the event, for each simulated event (spec: cli-contract 5.2). Pass values, not pointers; they marshal to the event's keys only.
type HookInput interface {
	hook() (event, subject string)
}

// HookEvent returns the name of the event and the subject that matchers are compared with: the tool name, the source
// of a session start, and so on. If the subject is empty, only matchers that match everything apply.
func HookEvent(in HookInput) (event, subject string) { return in.hook() }

// HookBase contains the keys with which every hook input begins. The keys of the event follow.
type HookBase struct {
	SessionID      string         `json:"session_id"`
	TranscriptPath string         `json:"transcript_path"`
	CWD            string         `json:"cwd"`
	PromptID       string         `json:"prompt_id,omitempty"`
	PermissionMode PermissionMode `json:"permission_mode,omitempty"` // not set for SessionStart and SessionEnd
	AgentID        string         `json:"agent_id,omitempty"`        // inside sub-agents only
	AgentType      string         `json:"agent_type,omitempty"`      // inside sub-agents only
	Effort         *HookEffort    `json:"effort,omitempty"`          // only for events after the first request
	HookEventName  string         `json:"hook_event_name"`
}

// HookEffort is the effort level of the session.
type HookEffort struct {
	Level string `json:"level"` // "low", "medium", "high", …
}

// NeverNullJSONList is a list that is written as [] when it is nil.
type NeverNullJSONList[T any] []T

// MarshalJSON writes the list, never null.
func (l NeverNullJSONList[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return Marshal([]T(l))
}

// PreToolUseHook runs before the permission check of a call.
type PreToolUseHook struct {
	ToolName     string               `json:"tool_name"`
	ToolInput    json.RawMessage      `json:"tool_input"`
	ToolUseID    string               `json:"tool_use_id"`
	MCPServer    *ServerNameAndSource `json:"mcp_server,omitempty"` // MCP tools only
	InputChanged bool                 `json:"-"`                    // the model wrote another input than ToolInput, for example a relative path
}

// PostToolUseHook runs after a successful call.
type PostToolUseHook struct {
	ToolName     string               `json:"tool_name"`
	ToolInput    json.RawMessage      `json:"tool_input"`
	ToolResponse any                  `json:"tool_response"` // structured output; nil means null
	ToolUseID    string               `json:"tool_use_id"`
	DurationMS   *int                 `json:"duration_ms,omitempty"`
	MCPServer    *ServerNameAndSource `json:"mcp_server,omitempty"`
}

// PostToolUseFailureHook runs after a failed call; Error is the text of the tool result.
type PostToolUseFailureHook struct {
	ToolName    string               `json:"tool_name"`
	ToolInput   json.RawMessage      `json:"tool_input"`
	ToolUseID   string               `json:"tool_use_id"`
	Error       string               `json:"error"`
	IsInterrupt bool                 `json:"is_interrupt"`
	DurationMS  *int                 `json:"duration_ms,omitempty"`
	MCPServer   *ServerNameAndSource `json:"mcp_server,omitempty"`
}

// PostToolBatchHook runs after all calls of one assistant message.
type PostToolBatchHook struct {
	ToolCalls NeverNullJSONList[HookToolCall] `json:"tool_calls"`
}

// HookToolCall is a tool call with its response, as one element of a [PostToolBatchHook].
type HookToolCall struct {
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input"`
	ToolUseID    string          `json:"tool_use_id"`
	ToolResponse any             `json:"tool_response,omitempty"`
}

// PermissionRequestHook runs while the host is asked for permission.
type PermissionRequestHook struct {
	ToolName    string               `json:"tool_name"`
	ToolInput   json.RawMessage      `json:"tool_input"`
	Suggestions []PermissionUpdate   `json:"permission_suggestions,omitzero"` // nil means none are known
	MCPServer   *ServerNameAndSource `json:"mcp_server,omitempty"`
}

// UserPromptSubmitHook runs before a turn.
type UserPromptSubmitHook struct {
	Prompt       string `json:"prompt"`
	Source       string `json:"source,omitempty"` // user, sdk, system, loop_wakeup, schedule_wakeup, poll_event
	SessionTitle string `json:"session_title,omitempty"`
}

// UserPromptExpansionHook runs before a command is expanded into a prompt.
type UserPromptExpansionHook struct {
	ExpansionType string `json:"expansion_type"` // slash_command, mcp_prompt
	CommandName   string `json:"command_name"`
	CommandArgs   string `json:"command_args"`
	CommandSource string `json:"command_source,omitempty"`
	Prompt        string `json:"prompt"`
}

// StopHook runs before the end of a turn.
type StopHook struct {
	StopHookActive       bool                              `json:"stop_hook_active"` // an earlier Stop hook has already made this turn continue
	LastAssistantMessage string                            `json:"last_assistant_message,omitempty"`
	BackgroundTasks      NeverNullJSONList[BackgroundTask] `json:"background_tasks"`
	SessionCrons         NeverNullJSONList[SessionCron]    `json:"session_crons"`
}

// BackgroundTask is a task still running when a turn ends.
type BackgroundTask struct {
	ID          string `json:"id"`
	Type        string `json:"type"`
	Status      string `json:"status"`
	Description string `json:"description"`
	Command     string `json:"command,omitempty"`
	AgentType   string `json:"agent_type,omitempty"`
	Server      string `json:"server,omitempty"`
	Tool        string `json:"tool,omitempty"`
	Name        string `json:"name,omitempty"`
}

// SessionCron is a scheduled prompt of the session.
type SessionCron struct {
	ID        string `json:"id"`
	Schedule  string `json:"schedule"`
	Recurring bool   `json:"recurring"`
	Prompt    string `json:"prompt"`
}

// StopFailureHook runs after a turn that ended with an API error.
type StopFailureHook struct {
	Error                string `json:"error"`
	ErrorDetails         string `json:"error_details,omitempty"`
	LastAssistantMessage string `json:"last_assistant_message,omitempty"`
}

// SubagentStartHook runs before a sub-agent's first request. [HookBase] identifies the agent.
type SubagentStartHook struct {
	AgentType string `json:"-"`
}

// SubagentStopHook runs before the end of a sub-agent. [HookBase] identifies the agent.
type SubagentStopHook struct {
	AgentType            string                            `json:"-"`
	StopHookActive       bool                              `json:"stop_hook_active"`
	AgentTranscriptPath  string                            `json:"agent_transcript_path"`
	LastAssistantMessage string                            `json:"last_assistant_message,omitempty"`
	BackgroundTasks      NeverNullJSONList[BackgroundTask] `json:"background_tasks"`
	SessionCrons         NeverNullJSONList[SessionCron]    `json:"session_crons"`
}

// PreCompactHook runs before a compaction.
type PreCompactHook struct {
	Trigger            string  `json:"trigger"` // manual, auto
	CustomInstructions *string `json:"custom_instructions"`
}

// PostCompactHook runs after a compaction.
type PostCompactHook struct {
	Trigger        string `json:"trigger"` // manual, auto
	CompactSummary string `json:"compact_summary"`
}

// SessionStartHook runs at the start of a session.
type SessionStartHook struct {
	Source                   string   `json:"source"` // startup, resume, clear, compact, fork
	AgentType                string   `json:"agent_type,omitempty"`
	Model                    string   `json:"model,omitempty"`
	SessionTitle             string   `json:"session_title,omitempty"`
	SecondsSinceLastResponse *float64 `json:"seconds_since_last_response,omitempty"`
	ContextTokens            *int     `json:"context_tokens,omitempty"`
	PromptCacheLikelyExpired *bool    `json:"prompt_cache_likely_expired,omitempty"`
	EstimatedCacheWriteUSD   *float64 `json:"estimated_cache_write_usd,omitempty"`
}

// SessionEndHook runs at the end of a session.
type SessionEndHook struct {
	Reason string `json:"reason"` // clear, resume, logout, prompt_input_exit, other
}

// SetupHook runs for --init and --maintenance.
type SetupHook struct {
	Trigger string `json:"trigger"` // init, maintenance
}

// HookChecklistTask contains the keys about a task in the input of TaskCreated and TaskCompleted hooks.
type HookChecklistTask struct {
	TaskID          string `json:"task_id"`
	TaskSubject     string `json:"task_subject"`
	TaskDescription string `json:"task_description,omitempty"`
	TeammateName    string `json:"teammate_name,omitempty"`
	TeamName        string `json:"team_name,omitempty"`
}

// TaskCreatedHook runs before a task is created.
type TaskCreatedHook struct{ HookChecklistTask }

// TaskCompletedHook runs before a task is completed.
type TaskCompletedHook struct{ HookChecklistTask }

// InstructionsLoadedHook runs when an instruction file was read.
type InstructionsLoadedHook struct {
	FilePath        string   `json:"file_path"`
	MemoryType      string   `json:"memory_type"` // User, Project, Local, Managed
	LoadReason      string   `json:"load_reason"`
	Globs           []string `json:"globs,omitempty"`
	TriggerFilePath string   `json:"trigger_file_path,omitempty"`
	ParentFilePath  string   `json:"parent_file_path,omitempty"`
}

// ElicitationHook runs before the user is asked a question of an MCP server.
type ElicitationHook struct {
	Server  string          `json:"mcp_server_name"`
	Message string          `json:"message"`
	Mode    string          `json:"mode"` // form, url
	URL     string          `json:"url,omitempty"`
	ID      string          `json:"elicitation_id,omitempty"`
	Schema  json.RawMessage `json:"requested_schema,omitempty"`
}

// ElicitationResultHook runs before the user's answer is sent to an MCP server.
type ElicitationResultHook struct {
	Server  string          `json:"mcp_server_name"`
	ID      string          `json:"elicitation_id,omitempty"`
	Mode    string          `json:"mode"`
	Action  string          `json:"action"` // accept, decline, cancel
	Content json.RawMessage `json:"content,omitempty"`
}

// CwdChangedHook runs when the working directory has changed.
type CwdChangedHook struct {
	OldCWD string `json:"old_cwd"`
	NewCWD string `json:"new_cwd"`
}

// MessageDisplayHook runs before text is shown on screen.
type MessageDisplayHook struct {
	TurnID    string `json:"turn_id"`
	MessageID string `json:"message_id"`
	Index     int    `json:"index"`
	Final     bool   `json:"final"`
	Delta     string `json:"delta"`
}

// The hook methods return each event's name and the subject that matchers are compared with.

func (in PreToolUseHook) hook() (event, subject string)  { return "PreToolUse", in.ToolName }
func (in PostToolUseHook) hook() (event, subject string) { return "PostToolUse", in.ToolName }
func (in PostToolUseFailureHook) hook() (event, subject string) {
	return "PostToolUseFailure", in.ToolName
}
func (PostToolBatchHook) hook() (event, subject string) { return "PostToolBatch", "" }
func (in PermissionRequestHook) hook() (event, subject string) {
	return "PermissionRequest", in.ToolName
}
func (UserPromptSubmitHook) hook() (event, subject string) { return "UserPromptSubmit", "" }
func (in UserPromptExpansionHook) hook() (event, subject string) {
	return "UserPromptExpansion", in.CommandName
}
func (StopHook) hook() (event, subject string)             { return "Stop", "" }
func (in StopFailureHook) hook() (event, subject string)   { return "StopFailure", in.Error }
func (in SubagentStartHook) hook() (event, subject string) { return "SubagentStart", in.AgentType }
func (in SubagentStopHook) hook() (event, subject string)  { return "SubagentStop", in.AgentType }
func (in PreCompactHook) hook() (event, subject string)    { return "PreCompact", in.Trigger }
func (in PostCompactHook) hook() (event, subject string)   { return "PostCompact", in.Trigger }
func (in SessionStartHook) hook() (event, subject string)  { return "SessionStart", in.Source }
func (in SessionEndHook) hook() (event, subject string)    { return "SessionEnd", in.Reason }
func (in SetupHook) hook() (event, subject string)         { return "Setup", in.Trigger }
func (TaskCreatedHook) hook() (event, subject string)      { return "TaskCreated", "" }
func (TaskCompletedHook) hook() (event, subject string)    { return "TaskCompleted", "" }
func (in InstructionsLoadedHook) hook() (event, subject string) {
	return "InstructionsLoaded", in.LoadReason
}
func (in ElicitationHook) hook() (event, subject string)       { return "Elicitation", in.Server }
func (in ElicitationResultHook) hook() (event, subject string) { return "ElicitationResult", in.Server }
func (CwdChangedHook) hook() (event, subject string)           { return "CwdChanged", "" }
func (MessageDisplayHook) hook() (event, subject string)       { return "MessageDisplay", "" }

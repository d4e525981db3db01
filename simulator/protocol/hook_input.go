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

// PreToolUseHookInput runs before the permission check of a call.
type PreToolUseHookInput struct {
	ToolName     string               `json:"tool_name"`
	ToolInput    json.RawMessage      `json:"tool_input"`
	ToolUseID    string               `json:"tool_use_id"`
	MCPServer    *ServerNameAndSource `json:"mcp_server,omitempty"` // MCP tools only
	InputChanged bool                 `json:"-"`                    // the model wrote another input than ToolInput, for example a relative path
}

// PostToolUseHookInput runs after a successful call.
type PostToolUseHookInput struct {
	ToolName     string               `json:"tool_name"`
	ToolInput    json.RawMessage      `json:"tool_input"`
	ToolResponse any                  `json:"tool_response"` // structured output; nil means null
	ToolUseID    string               `json:"tool_use_id"`
	DurationMS   *int                 `json:"duration_ms,omitempty"`
	MCPServer    *ServerNameAndSource `json:"mcp_server,omitempty"`
}

// PostToolUseFailureHookInput runs after a failed call; Error is the text of the tool result.
type PostToolUseFailureHookInput struct {
	ToolName    string               `json:"tool_name"`
	ToolInput   json.RawMessage      `json:"tool_input"`
	ToolUseID   string               `json:"tool_use_id"`
	Error       string               `json:"error"`
	IsInterrupt bool                 `json:"is_interrupt"`
	DurationMS  *int                 `json:"duration_ms,omitempty"`
	MCPServer   *ServerNameAndSource `json:"mcp_server,omitempty"`
}

// PostToolBatchHookInput runs after all calls of one assistant message.
type PostToolBatchHookInput struct {
	ToolCalls NeverNullJSONList[PostToolBatchCall] `json:"tool_calls"`
}

// PostToolBatchCall is a tool call with its response, as one element of a [PostToolBatchHookInput].
type PostToolBatchCall struct {
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input"`
	ToolUseID    string          `json:"tool_use_id"`
	ToolResponse any             `json:"tool_response,omitempty"`
}

// PermissionRequestHookInput runs while the host is asked for permission.
type PermissionRequestHookInput struct {
	ToolName    string               `json:"tool_name"`
	ToolInput   json.RawMessage      `json:"tool_input"`
	Suggestions []PermissionUpdate   `json:"permission_suggestions,omitzero"` // nil means none are known
	MCPServer   *ServerNameAndSource `json:"mcp_server,omitempty"`
}

// UserPromptSubmitHookInput runs before a turn.
type UserPromptSubmitHookInput struct {
	Prompt       string `json:"prompt"`
	Source       string `json:"source,omitempty"` // user, sdk, system, loop_wakeup, schedule_wakeup, poll_event
	SessionTitle string `json:"session_title,omitempty"`
}

// UserPromptExpansionHookInput runs before a command is expanded into a prompt.
type UserPromptExpansionHookInput struct {
	ExpansionType string `json:"expansion_type"` // slash_command, mcp_prompt
	CommandName   string `json:"command_name"`
	CommandArgs   string `json:"command_args"`
	CommandSource string `json:"command_source,omitempty"`
	Prompt        string `json:"prompt"`
}

// StopHookInput runs before the end of a turn.
type StopHookInput struct {
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

// StopFailureHookInput runs after a turn that ended with an API error.
type StopFailureHookInput struct {
	Error                string `json:"error"`
	ErrorDetails         string `json:"error_details,omitempty"`
	LastAssistantMessage string `json:"last_assistant_message,omitempty"`
}

// SubagentStartHookInput runs before a sub-agent's first request. [HookBase] identifies the agent.
type SubagentStartHookInput struct {
	AgentType string `json:"-"`
}

// SubagentStopHookInput runs before the end of a sub-agent. [HookBase] identifies the agent.
type SubagentStopHookInput struct {
	AgentType            string                            `json:"-"`
	StopHookActive       bool                              `json:"stop_hook_active"`
	AgentTranscriptPath  string                            `json:"agent_transcript_path"`
	LastAssistantMessage string                            `json:"last_assistant_message,omitempty"`
	BackgroundTasks      NeverNullJSONList[BackgroundTask] `json:"background_tasks"`
	SessionCrons         NeverNullJSONList[SessionCron]    `json:"session_crons"`
}

// PreCompactHookInput runs before a compaction.
type PreCompactHookInput struct {
	Trigger            string  `json:"trigger"` // manual, auto
	CustomInstructions *string `json:"custom_instructions"`
}

// PostCompactHookInput runs after a compaction.
type PostCompactHookInput struct {
	Trigger        string `json:"trigger"` // manual, auto
	CompactSummary string `json:"compact_summary"`
}

// SessionStartHookInput runs at the start of a session.
type SessionStartHookInput struct {
	Source                   string   `json:"source"` // startup, resume, clear, compact, fork
	AgentType                string   `json:"agent_type,omitempty"`
	Model                    string   `json:"model,omitempty"`
	SessionTitle             string   `json:"session_title,omitempty"`
	SecondsSinceLastResponse *float64 `json:"seconds_since_last_response,omitempty"`
	ContextTokens            *int     `json:"context_tokens,omitempty"`
	PromptCacheLikelyExpired *bool    `json:"prompt_cache_likely_expired,omitempty"`
	EstimatedCacheWriteUSD   *float64 `json:"estimated_cache_write_usd,omitempty"`
}

// SessionEndHookInput runs at the end of a session.
type SessionEndHookInput struct {
	Reason string `json:"reason"` // clear, resume, logout, prompt_input_exit, other
}

// SetupHookInput runs for --init and --maintenance.
type SetupHookInput struct {
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

// TaskCreatedHookInput runs before a task is created.
type TaskCreatedHookInput struct{ HookChecklistTask }

// TaskCompletedHookInput runs before a task is completed.
type TaskCompletedHookInput struct{ HookChecklistTask }

// InstructionsLoadedHookInput runs when an instruction file was read.
type InstructionsLoadedHookInput struct {
	FilePath        string   `json:"file_path"`
	MemoryType      string   `json:"memory_type"` // User, Project, Local, Managed
	LoadReason      string   `json:"load_reason"`
	Globs           []string `json:"globs,omitempty"`
	TriggerFilePath string   `json:"trigger_file_path,omitempty"`
	ParentFilePath  string   `json:"parent_file_path,omitempty"`
}

// ElicitationHookInput runs before the user is asked a question of an MCP server.
type ElicitationHookInput struct {
	Server  string          `json:"mcp_server_name"`
	Message string          `json:"message"`
	Mode    string          `json:"mode"` // form, url
	URL     string          `json:"url,omitempty"`
	ID      string          `json:"elicitation_id,omitempty"`
	Schema  json.RawMessage `json:"requested_schema,omitempty"`
}

// ElicitationResultHookInput runs before the user's answer is sent to an MCP server.
type ElicitationResultHookInput struct {
	Server  string          `json:"mcp_server_name"`
	ID      string          `json:"elicitation_id,omitempty"`
	Mode    string          `json:"mode"`
	Action  string          `json:"action"` // accept, decline, cancel
	Content json.RawMessage `json:"content,omitempty"`
}

// CwdChangedHookInput runs when the working directory has changed.
type CwdChangedHookInput struct {
	OldCWD string `json:"old_cwd"`
	NewCWD string `json:"new_cwd"`
}

// MessageDisplayHookInput runs before text is shown on screen.
type MessageDisplayHookInput struct {
	TurnID    string `json:"turn_id"`
	MessageID string `json:"message_id"`
	Index     int    `json:"index"`
	Final     bool   `json:"final"`
	Delta     string `json:"delta"`
}

// The hook methods return each event's name and the subject that matchers are compared with.

func (in PreToolUseHookInput) hook() (event, subject string)  { return "PreToolUse", in.ToolName }
func (in PostToolUseHookInput) hook() (event, subject string) { return "PostToolUse", in.ToolName }
func (in PostToolUseFailureHookInput) hook() (event, subject string) {
	return "PostToolUseFailure", in.ToolName
}
func (PostToolBatchHookInput) hook() (event, subject string) { return "PostToolBatch", "" }
func (in PermissionRequestHookInput) hook() (event, subject string) {
	return "PermissionRequest", in.ToolName
}
func (UserPromptSubmitHookInput) hook() (event, subject string) { return "UserPromptSubmit", "" }
func (in UserPromptExpansionHookInput) hook() (event, subject string) {
	return "UserPromptExpansion", in.CommandName
}
func (StopHookInput) hook() (event, subject string)             { return "Stop", "" }
func (in StopFailureHookInput) hook() (event, subject string)   { return "StopFailure", in.Error }
func (in SubagentStartHookInput) hook() (event, subject string) { return "SubagentStart", in.AgentType }

func (in SubagentStopHookInput) hook() (event, subject string) { return "SubagentStop", in.AgentType }
func (in PreCompactHookInput) hook() (event, subject string)   { return "PreCompact", in.Trigger }
func (in PostCompactHookInput) hook() (event, subject string)  { return "PostCompact", in.Trigger }
func (in SessionStartHookInput) hook() (event, subject string) { return "SessionStart", in.Source }
func (in SessionEndHookInput) hook() (event, subject string)   { return "SessionEnd", in.Reason }
func (in SetupHookInput) hook() (event, subject string)        { return "Setup", in.Trigger }
func (TaskCreatedHookInput) hook() (event, subject string)     { return "TaskCreated", "" }
func (TaskCompletedHookInput) hook() (event, subject string)   { return "TaskCompleted", "" }
func (in InstructionsLoadedHookInput) hook() (event, subject string) {
	return "InstructionsLoaded", in.LoadReason
}

func (in ElicitationHookInput) hook() (event, subject string) { return "Elicitation", in.Server }

func (in ElicitationResultHookInput) hook() (event, subject string) {
	return "ElicitationResult", in.Server
}
func (CwdChangedHookInput) hook() (event, subject string)     { return "CwdChanged", "" }
func (MessageDisplayHookInput) hook() (event, subject string) { return "MessageDisplay", "" }

package protocol

import (
	"encoding/json"
	"slices"
)

// Event is one item of the stream that a turn produces. The set of types is closed. An event with a wire form marshals to
// exactly one stream-json line; see [HasWireForm].
type Event interface{ event() }

// InitEvent is the event system/init, which describes the session at the start of a turn.
type InitEvent struct {
	Type                    string           `json:"type"`    // "system"
	Subtype                 string           `json:"subtype"` // "init"
	CWD                     string           `json:"cwd"`
	SessionID               string           `json:"session_id"`
	Tools                   []string         `json:"tools"`
	MCPServers              []MCPServer      `json:"mcp_servers"`
	Model                   string           `json:"model"`
	PermissionMode          PermissionMode   `json:"permissionMode"`
	SlashCommands           []string         `json:"slash_commands"`
	TerminalSlashCommands   []string         `json:"terminal_slash_commands,omitempty"`
	APIKeySource            string           `json:"apiKeySource"`
	Betas                   []string         `json:"betas,omitempty"`
	ClaudeCodeVersion       string           `json:"claude_code_version"`
	OutputStyle             string           `json:"output_style"`
	Agents                  []string         `json:"agents"`
	Skills                  []string         `json:"skills"`
	Plugins                 []Plugin         `json:"plugins"`
	PluginErrors            []PluginError    `json:"plugin_errors,omitempty"`
	PluginWarnings          []PluginError    `json:"plugin_warnings,omitempty"`
	Capabilities            []string         `json:"capabilities"`
	MCPServerErrors         []MCPServerError `json:"mcp_server_errors,omitempty"`
	AnalyticsDisabled       bool             `json:"analytics_disabled"`
	ProductFeedbackDisabled bool             `json:"product_feedback_disabled"`
	ServedByAnthropic       bool             `json:"served_by_anthropic"`
	UUID                    string           `json:"uuid"`
	MemoryPaths             *MemoryPaths     `json:"memory_paths,omitempty"`
	OriginalCWD             string           `json:"original_cwd"`
	AdditionalDirectories   []string         `json:"additional_directories"`
	SandboxEnabled          bool             `json:"sandbox_enabled"`
	MessagingSocketPath     string           `json:"messaging_socket_path,omitempty"`
	FastModeState           string           `json:"fast_mode_state"`
	FastModeDisabledReason  string           `json:"fast_mode_disabled_reason,omitempty"`
	PerTurnEffortActive     bool             `json:"per_turn_effort_active"`
	UltrathinkAvailable     bool             `json:"ultrathink_available"`
	UltrathinkTypedRaises   bool             `json:"ultrathink_typed_raises"`
	ViewMode                string           `json:"view_mode"`
	UserMessageUUIDs        []string         `json:"user_message_uuids,omitempty"`
}

// MCPServer is one element of the list init.mcp_servers.
type MCPServer struct {
	Name   string `json:"name"`   // raw, as configured
	Status string `json:"status"` // connected, failed, pending, disabled, needs-auth
	Source string `json:"source"` // dynamic, project, user, sdk
}

// MCPServerError is one skipped entry of an MCP configuration.
type MCPServerError struct {
	Name    string `json:"name"`
	Type    string `json:"type"` // invalid_config, unknown_type, url_missing_type, reserved_name
	Message string `json:"message"`
}

// Plugin is one element of the list init.plugins.
type Plugin struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Source  string `json:"source"`
	Version string `json:"version,omitempty"`
}

// PluginError is one plugin that was not loaded.
type PluginError struct {
	Plugin  string `json:"plugin"` // "inline[0]" for the first directory of --plugin-dir
	Type    string `json:"type"`   // "path-not-found", "manifest-parse-error"
	Message string `json:"message"`
	Path    string `json:"path,omitempty"`
}

// MemoryPaths lists the directories of memory files.
type MemoryPaths struct {
	Auto string `json:"auto"`
}

// AssistantEvent is the event for one content block of the model's message.
type AssistantEvent struct {
	Type               string                `json:"type"` // "assistant"
	Message            AssistantMessage      `json:"message"`
	ParentToolUseID    *string               `json:"parent_tool_use_id"`
	LocalCommandSource string                `json:"local_command_source,omitempty"`
	AgentID            string                `json:"agent_id,omitempty"`
	SessionID          string                `json:"session_id"`
	UUID               string                `json:"uuid"`
	Timestamp          string                `json:"timestamp"`
	Error              string                `json:"error,omitempty"`
	RequestID          string                `json:"request_id,omitempty"`
	IsAPIErrorMessage  bool                  `json:"is_api_error_message,omitempty"`
	APIErrorStatus     int                   `json:"api_error_status,omitempty"` // HTTP status that hosts see; 0 for sub-agents
	APIStatus          int                   `json:"-"`                          // HTTP status for transcripts, also of sub-agents
	APIErrorType       string                `json:"api_error_type,omitempty"`
	APIError           string                `json:"api_error,omitempty"`
	APIErrorParams     map[string]string     `json:"api_error_params,omitempty"` // adds details to some errors: {"cut": "output_limit"}
	RefusedMessageID   string                `json:"refused_message_id,omitempty"`
	Aborted            bool                  `json:"aborted,omitempty"`
	ThinkingDurationMS *int                  `json:"thinking_duration_ms,omitempty"`
	ThinkingDisplay    string                `json:"thinking_display,omitempty"`
	ToolUseMeta        []ToolUseDisplayNames `json:"tool_use_meta,omitempty"`
	SubagentType       string                `json:"subagent_type,omitempty"`
	TaskDescription    string                `json:"task_description,omitempty"`
	ContextUsage       json.RawMessage       `json:"context_usage,omitempty"`
	LocalCommandRun    *LocalCommand         `json:"local_command_run,omitempty"`
	// LocalCommandOutcome says that a slash command failed or was not available; nil means neither.
	LocalCommandOutcome *SlashCommandFailureKind `json:"local_command_outcome,omitempty"`
	UserMessageUUID     string                   `json:"user_message_uuid,omitempty"`
	UserMessageUUIDs    []string                 `json:"user_message_uuids,omitempty"`

	ErrorCode    string `json:"api_error_code,omitempty"`
	ErrorDetails string `json:"-"` // the API's error message for a request that was too long; for transcripts
	// Final is the message's real stop reason and usage, which are written to the transcript but not
	// printed. It is nil for synthetic messages.
	Final *CompletedMessageInfo `json:"-"`
}

// CompletedMessageInfo contains the final stop reason and usage of a message, and the position of a block in it.
type CompletedMessageInfo struct {
	StopReason    string
	StopSequence  *string
	Usage         Usage
	Index         int      // index of the block in the message
	BlocksAfter   int      // number of blocks after this one
	Calls         []string // names of the tools that the message calls
	InputStreamMS *int     // time that the input of a call took to stream; nil for other blocks
	Displayed     *string  // text shown instead of the block's text; nil means no change
	// ContinuesPrevious is true if this message continues the previous message, which had no calls. The API returns
	// both as one message. HasMore is true if the model continues with another message.
	ContinuesPrevious, HasMore bool
}

// LocalCommand is a slash command that ran without the model.
type LocalCommand struct {
	Command string `json:"command"`
	Args    string `json:"args"`

	IsDisplayOnly bool `json:"-"` // the model does not see the output
}

// SlashCommandFailureKind distinguishes a failed slash command from one that cannot run without a terminal.
type SlashCommandFailureKind struct {
	Kind string `json:"kind"` // "failed" or "unavailable_headless"
}

// ToolUseDisplayNames names an MCP call for display.
type ToolUseDisplayNames struct {
	ID                string `json:"id"`
	DisplayName       string `json:"display_name"`
	ServerDisplayName string `json:"server_display_name,omitempty"`
	ToolName          string `json:"tool_name,omitempty"`
}

// UserEvent is a user event: a tool result, a replayed prompt or injected text.
type UserEvent struct {
	Type             string           `json:"type"` // "user"
	Message          UserContent      `json:"message"`
	ParentToolUseID  *string          `json:"parent_tool_use_id"`
	AgentID          string           `json:"agent_id,omitempty"`
	SessionID        string           `json:"session_id"`
	UUID             string           `json:"uuid"`
	Timestamp        string           `json:"timestamp,omitempty"`
	ToolUseResult    any              `json:"tool_use_result,omitempty"`
	ToolResultMeta   []ToolResultMeta `json:"tool_result_meta,omitempty"`
	IsReplay         *bool            `json:"isReplay,omitempty"`
	IsSynthetic      bool             `json:"isSynthetic,omitempty"`
	RefusedMessageID string           `json:"refused_message_id,omitempty"` // the id of the refused reply that this text follows
	RefusalRetry     bool             `json:"refusal_retry,omitempty"`      // the text requests another reply
	SubagentType     string           `json:"subagent_type,omitempty"`
	TaskDescription  string           `json:"task_description,omitempty"`
	Origin           json.RawMessage  `json:"origin,omitempty"` // origin of a replayed prompt
	LocalCommandRun  *LocalCommand    `json:"local_command_run,omitempty"`

	// Tool is the tool that gave this result. MCP is the response of an MCP server. Both are for transcripts.
	Tool string   `json:"-"`
	MCP  *MCPCall `json:"-"`
	// Expansion is the skill that this text comes from. ToolUseID is the call that loaded it. Both are for transcripts.
	Expansion *ExpandedCommand `json:"-"`
	ToolUseID string           `json:"-"`
	// Summary marks the summary of a compacted conversation; transcripts record it with a [ConversationCompacted].
	Summary      bool    `json:"-"`
	Companion    bool    `json:"-"` // marks a text that the CLI adds to a turn after an incomplete reply; only transcripts record this
	SourceUUID   string  `json:"-"` // the uuid of the assistant event with the call that this result answers; for transcripts
	StartContext []Event `json:"-"` // the hooks and skills that follow this first prompt of an agent; for transcripts
}

// UserContent is the message inside a user event.
type UserContent struct {
	Role    string  `json:"role"` // "user"
	Content Content `json:"content"`
}

// ToolResultMeta describes how the permission for a call was decided, and changes of its input.
type ToolResultMeta struct {
	ID                 string              `json:"id"`
	Screened           bool                `json:"screened_by_plugin,omitempty"`
	NonExecutionKind   string              `json:"non_execution_kind,omitempty"`
	Remedy             map[string]string   `json:"remedy,omitempty"` // the kind is "advice_to_claude" if the error tells the model what to do
	IsInputChanged     bool                `json:"input_changed,omitempty"`
	PermissionDecision *PermissionDecision `json:"permission_decision,omitempty"`
	DeniedBeforeRun    bool                `json:"-"` // only in transcripts, like Feedback and InputChanger
	Feedback           string              `json:"-"` // text with which the user refused the call in a terminal
	InputChanger       string              `json:"-"` // "settings-hook" or "permission-answer"; empty means that the input is unchanged
}

// ResultEvent ends a turn; each prompt has exactly one. The success subtype has Result, the error subtypes have Errors.
type ResultEvent struct {
	DurationAPIMS          int                           `json:"duration_api_ms"`
	StopReason             *string                       `json:"stop_reason"`
	SessionID              string                        `json:"session_id"`
	TotalCostUSD           float64                       `json:"total_cost_usd"`
	Usage                  Usage                         `json:"usage"`
	ModelUsage             map[string]ModelUsage         `json:"modelUsage"`
	PermissionDenials      []PermissionDenial            `json:"permission_denials"`
	TerminalReason         string                        `json:"terminal_reason,omitempty"`
	FastModeState          string                        `json:"fast_mode_state,omitempty"`
	FastModeDisabledReason string                        `json:"fast_mode_disabled_reason,omitempty"`
	Origin                 json.RawMessage               `json:"origin,omitempty"`
	SubagentStats          *SubagentCounts               `json:"subagent_stats,omitempty"`
	SafetyStops            *int                          `json:"safety_stops,omitempty"`
	IsError                bool                          `json:"is_error"`
	NumTurns               int                           `json:"num_turns"`
	Subtype                string                        `json:"subtype"`
	APIErrorStatus         Null[int]                     `json:"api_error_status,omitzero"`
	APIErrorType           string                        `json:"api_error_type,omitempty"`
	APIError               string                        `json:"api_error,omitempty"`
	APIErrorCode           string                        `json:"api_error_code,omitempty"`
	Result                 *string                       `json:"result,omitempty"`
	LocalCommand           string                        `json:"local_command,omitempty"`
	StructuredOutput       json.RawMessage               `json:"structured_output,omitempty"`
	DeferredToolUse        *DeferredToolUse              `json:"deferred_tool_use,omitempty"`
	Errors                 []string                      `json:"errors,omitempty"`
	TTFTMS                 *int                          `json:"ttft_ms,omitempty"`
	Type                   string                        `json:"type"` // "result"
	DurationMS             int                           `json:"duration_ms"`
	UUID                   string                        `json:"uuid"`
	BegunMessageIDs        *[]string                     `json:"begun_message_ids,omitempty"` // ids of the streamed messages; only with partial messages
	TTFTStreamMS           *int                          `json:"ttft_stream_ms,omitempty"`
	TimeToRequestMS        *int                          `json:"time_to_request_ms,omitempty"`
	FirstContentFrameMS    *int                          `json:"first_content_frame_ms,omitempty"`
	UserMessageUUID        string                        `json:"user_message_uuid,omitempty"`
	UserMessageUUIDs       []string                      `json:"user_message_uuids,omitempty"`
	RequestSentWallMS      int64                         `json:"request_sent_wall_ms,omitempty"` // Unix time; this and the next two fields are set only with UserMessageUUID
	FirstInputTokens       *int                          `json:"first_request_input_tokens,omitempty"`
	FirstCacheReadTokens   *int                          `json:"first_request_cache_read_input_tokens,omitempty"`
	QueuedTurnCount        *int                          `json:"queued_turn_count,omitempty"`
	ResultIndex            int                           `json:"result_index"`
	StartupFailureReason   string                        `json:"startup_failure_reason,omitempty"`
	InvalidConfigFile      *ConfigFileThatPreventedStart `json:"invalid_config_file,omitempty"`
	CostUSD                *float64                      `json:"cost_usd,omitempty"`                      // CLAUDELESS_COMPAT=claudeless-rs only
	ModelUsageSince        *map[string]ModelUsage        `json:"model_usage_since_last_result,omitempty"` // stream-json only
}

// ConfigFileThatPreventedStart tells the client of a failed start which configuration file is invalid.
type ConfigFileThatPreventedStart struct {
	Path           string `json:"path"`
	IsGlobal       bool   `json:"is_global"`
	BackupSearched bool   `json:"backup_searched"`
}

// PermissionDenial describes a denied tool call, as an element of a list in the result of the turn.
type PermissionDenial struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	ToolInput json.RawMessage `json:"tool_input"`
}

// DeferredToolUse is a call that a PreToolUse hook deferred.
type DeferredToolUse struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// SubagentCounts counts the sub-agents of the session.
type SubagentCounts struct {
	Spawned             int                     `json:"spawned"`
	Requested           RequestedSubagentCounts `json:"requested"`
	StartedInBackground int                     `json:"started_in_background"`
	MaxDepth            int                     `json:"max_depth"`
	SpawnedBySubagents  int                     `json:"spawned_by_subagents"`
	Completed           int                     `json:"completed"`
	Failed              int                     `json:"failed"`
	Killed              KilledAgentCounts       `json:"killed"`
	Refused             RefusedAgentCounts      `json:"refused"`
	ByType              map[string]int          `json:"by_type"`
}

// RequestedSubagentCounts counts sub-agents by the value of run_in_background in their call.
type RequestedSubagentCounts struct {
	Background int `json:"background"`
	Foreground int `json:"foreground"`
	Unset      int `json:"unset"`
}

// KilledAgentCounts counts sub-agents that were stopped early, by who stopped them.
type KilledAgentCounts struct {
	Parent int `json:"parent"`
	User   int `json:"user"`
	System int `json:"system"`
}

// RefusedAgentCounts counts sub-agents that were not started, by the limit that prevented it.
type RefusedAgentCounts struct {
	DepthLimit       int `json:"depth_limit"`
	ConcurrencyLimit int `json:"concurrency_limit"`
	Budget           int `json:"budget"`
}

// StreamEvent is one event of the API's stream, which is shown if partial messages are enabled.
type StreamEvent struct {
	Type            string  `json:"type"` // "stream_event"
	Event           any     `json:"event"`
	SessionID       string  `json:"session_id"`
	ParentToolUseID *string `json:"parent_tool_use_id"`
	UUID            string  `json:"uuid"`
	TTFTMS          *int    `json:"ttft_ms,omitempty"`
	ThinkingDisplay string  `json:"thinking_display,omitempty"`
	APIMessageID    string  `json:"api_message_id"`
	// The uuids of the turn's prompts. Only the first message_start has them.
	UserMessageUUID  string    `json:"user_message_uuid,omitempty"`
	UserMessageUUIDs []string  `json:"user_message_uuids,omitempty"`
	OwedRows         *[]string `json:"owed_rows,omitempty"` // present together with the uuids; in all observed cases it was empty
	// AbandonedBlocks is set only in the message_stop of an interrupted message.
	AbandonedBlocks *AbandonedBlocks `json:"abandoned_blocks,omitempty"`
}

// AbandonedBlocks lists the incomplete blocks of a message: the block at FromBlockIndex and all later ones.
type AbandonedBlocks struct {
	APIMessageID   string `json:"api_message_id"`
	FromBlockIndex int    `json:"from_block_index"`
}

// PermissionDeniedEvent is system/permission_denied: a call denied without a question. It precedes the call's result.
type PermissionDeniedEvent struct {
	Type               string `json:"type"`    // "system"
	Subtype            string `json:"subtype"` // "permission_denied"
	ToolName           string `json:"tool_name"`
	ToolUseID          string `json:"tool_use_id"`
	DecisionReasonType string `json:"decision_reason_type,omitempty"`
	DecisionReasonCode string `json:"decision_reason_code,omitempty"`
	DecisionReason     string `json:"decision_reason,omitempty"`
	Message            string `json:"message"`
	AgentID            string `json:"agent_id,omitempty"`
	UUID               string `json:"uuid"`
	SessionID          string `json:"session_id"`
}

// APIRetryEvent is system/api_retry: a request to the API failed and is retried.
type APIRetryEvent struct {
	Type         string `json:"type"`    // "system"
	Subtype      string `json:"subtype"` // "api_retry"
	Attempt      int    `json:"attempt"`
	MaxRetries   int    `json:"max_retries"`
	RetryDelayMS int    `json:"retry_delay_ms"`
	ErrorStatus  *int   `json:"error_status"`
	Error        string `json:"error"`
	SessionID    string `json:"session_id"`
	UUID         string `json:"uuid"`
}

// SystemEvent is any other system event. It is encoded as type, subtype, Fields in order, and the two ids in the CLI's order.
type SystemEvent struct {
	Subtype         string
	Fields          []Field
	SessionID, UUID string
	StreamOnly      bool // not recorded in transcripts
}

// CompactMetadata describes a compaction, in system/compact_boundary.
type CompactMetadata struct {
	Trigger    string `json:"trigger"` // manual, auto
	PreTokens  int    `json:"pre_tokens"`
	PostTokens int    `json:"post_tokens"`
	DurationMS int    `json:"duration_ms"`
	Dropped    int    `json:"cumulative_dropped_tokens"`
	// Segment and Messages are the messages that are kept unchanged after the summary; nil if none exist.
	Segment  *CompactionPreservedSegment `json:"preserved_segment,omitempty"`
	Messages *PreservedMessages          `json:"preserved_messages,omitempty"`
}

// CompactionPreservedSegment is the part of a conversation that a compaction keeps: the uuids of its first message, of its last
// message, and of the summary that precedes the segment.
type CompactionPreservedSegment struct {
	Head   string `json:"head_uuid"`
	Anchor string `json:"anchor_uuid"`
	Tail   string `json:"tail_uuid"`
}

// PreservedMessages lists the messages of a [CompactionPreservedSegment].
type PreservedMessages struct {
	Anchor string   `json:"anchor_uuid"`
	UUIDs  []string `json:"uuids"`
	All    []string `json:"all_uuids"`
}

// MarshalJSON writes the event as one object.
func (s *SystemEvent) MarshalJSON() ([]byte, error) {
	head := []Field{{"type", "system"}, {"subtype", s.Subtype}}
	tail := []Field{{"session_id", s.SessionID}, {"uuid", s.UUID}}
	if s.hasUUIDBeforeSessionID() {
		slices.Reverse(tail)
	}
	return MarshalFields(head, s.Fields, tail)
}

// hasUUIDBeforeSessionID reports whether the real CLI writes uuid before session_id for this event.
func (s *SystemEvent) hasUUIDBeforeSessionID() bool {
	switch s.Subtype {
	case "background_tasks_changed", "commands_changed", "hook_started", "hook_response", "informational", "session_state_changed", "session_title_changed",
		"task_started", "task_progress", "task_updated", "task_notification":
		return true
	case "status":
		return slices.ContainsFunc(s.Fields, func(f Field) bool { return f.Key == "permissionMode" })
	}
	return false
}

// Frame is any event that has no Go type above and is not a system event: tool_progress, command_lifecycle, …
type Frame struct {
	Type      string
	Fields    []Field
	SessionID string // empty means omitted
	UUID      string // empty means omitted
}

// PromptSourceWakeup is the source of a prompt that the model has scheduled with ScheduleWakeup.
const PromptSourceWakeup = "loop_wakeup"

// CommandLifecycleEvent returns the frame that reports the state of a prompt or a deferred call: queued, started, completed
// or cancelled (spec: cli-contract 1.5). The caller sets the frame's ids.
func CommandLifecycleEvent(promptUUID, state string) *Frame {
	return &Frame{Type: "command_lifecycle", Fields: []Field{{"command_uuid", promptUUID}, {"state", state}}}
}

// MarshalJSON writes the event as one object.
func (f *Frame) MarshalJSON() ([]byte, error) {
	var tail []Field
	if f.SessionID != "" {
		tail = append(tail, Field{"session_id", f.SessionID})
	}
	if f.UUID != "" {
		tail = append(tail, Field{"uuid", f.UUID})
	}
	if f.Type == "command_lifecycle" {
		slices.Reverse(tail)
	}
	return MarshalFields([]Field{{"type", f.Type}}, f.Fields, tail)
}

func (*InitEvent) event()             {}
func (*AssistantEvent) event()        {}
func (*UserEvent) event()             {}
func (*ResultEvent) event()           {}
func (*StreamEvent) event()           {}
func (*PermissionDeniedEvent) event() {}
func (*APIRetryEvent) event()         {}
func (*SystemEvent) event()           {}
func (*Frame) event()                 {}

// ModeChangedEvent returns the event that announces a new permission mode.
func ModeChangedEvent(mode PermissionMode) *SystemEvent {
	return &SystemEvent{Subtype: "status", Fields: []Field{{Key: "status", Value: json.RawMessage("null")}, {Key: "permissionMode", Value: mode}}}
}

// FieldValue returns the value of a key; nil means that the event does not have the key.
func (s *SystemEvent) FieldValue(key string) (valueOrNil any) {
	for _, f := range s.Fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// Text returns the value of a key, or "" if the value is missing or not a string.
func (s *SystemEvent) Text(key string) string {
	value, _ := s.FieldValue(key).(string)
	return value
}

package protocol

import (
	"encoding/json"
	"slices"
)

// Event is one frame of a turn, in order. The set is closed. Frames with a
// wire form marshal to exactly one stream-json line; [Trace] events have none
// and are for transcripts, journals and debuggers only.
type Event interface{ event() }

// Init is system/init: the state of the session at the start of a turn.
type Init struct {
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
	Capabilities            []string         `json:"capabilities"`
	MCPServerErrors         []MCPServerError `json:"mcp_server_errors,omitempty"`
	AnalyticsDisabled       bool             `json:"analytics_disabled"`
	ProductFeedbackDisabled bool             `json:"product_feedback_disabled"`
	ServedByAnthropic       bool             `json:"served_by_anthropic"`
	UUID                    string           `json:"uuid"`
	MemoryPaths             *MemoryPaths     `json:"memory_paths,omitempty"`
	OriginalCWD             string           `json:"original_cwd"`
	AdditionalDirectories   []string         `json:"additional_directories"`
	MessagingSocketPath     string           `json:"messaging_socket_path,omitempty"`
	FastModeState           string           `json:"fast_mode_state"`
	FastModeDisabledReason  string           `json:"fast_mode_disabled_reason"`
	PerTurnEffortActive     bool             `json:"per_turn_effort_active"`
	UltrathinkAvailable     bool             `json:"ultrathink_available"`
	UltrathinkTypedRaises   bool             `json:"ultrathink_typed_raises"`
	ViewMode                string           `json:"view_mode"`
	UserMessageUUIDs        []string         `json:"user_message_uuids,omitempty"`
}

// MCPServer is one line of init.mcp_servers.
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

// Plugin is one line of init.plugins.
type Plugin struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Source  string `json:"source"`
	Version string `json:"version,omitempty"`
}

// PluginError is one plugin that was not loaded.
type PluginError struct {
	Plugin  string `json:"plugin"` // "inline[0]": the first that was given
	Type    string `json:"type"`   // "path-not-found", "manifest-parse-error"
	Message string `json:"message"`
	Path    string `json:"path,omitempty"`
}

// MemoryPaths tells where memory files live.
type MemoryPaths struct {
	Auto string `json:"auto"`
}

// Assistant is one content block of the model's message.
type Assistant struct {
	Type               string           `json:"type"` // "assistant"
	Message            AssistantMessage `json:"message"`
	ParentToolUseID    *string          `json:"parent_tool_use_id"`
	LocalCommandSource string           `json:"local_command_source,omitempty"`
	AgentID            string           `json:"agent_id,omitempty"`
	SessionID          string           `json:"session_id"`
	UUID               string           `json:"uuid"`
	Timestamp          string           `json:"timestamp"`
	Error              string           `json:"error,omitempty"`
	RequestID          string           `json:"request_id,omitempty"`
	IsAPIErrorMessage  bool             `json:"is_api_error_message,omitempty"`
	APIErrorStatus     int              `json:"api_error_status,omitempty"` // not shown of agents
	APIStatus          int              `json:"-"`                          // what the API said, of agents too
	APIErrorType       string           `json:"api_error_type,omitempty"`
	APIError           string           `json:"api_error,omitempty"`
	// APIErrorParams tells more of some errors: {"cut": "output_limit"}.
	APIErrorParams     map[string]string `json:"api_error_params,omitempty"`
	RefusedMessageID   string            `json:"refused_message_id,omitempty"`
	Aborted            bool              `json:"aborted,omitempty"`
	ThinkingDurationMS *int              `json:"thinking_duration_ms,omitempty"`
	ThinkingDisplay    string            `json:"thinking_display,omitempty"`
	ToolUseMeta        []ToolUseMeta     `json:"tool_use_meta,omitempty"`
	SubagentType       string            `json:"subagent_type,omitempty"`
	TaskDescription    string            `json:"task_description,omitempty"`
	ContextUsage       json.RawMessage   `json:"context_usage,omitempty"`
	LocalCommandRun    *LocalCommand     `json:"local_command_run,omitempty"`
	// LocalCommandOutcome is set when the command failed.
	LocalCommandOutcome *LocalOutcome `json:"local_command_outcome,omitempty"`
	UserMessageUUID     string        `json:"user_message_uuid,omitempty"`
	UserMessageUUIDs    []string      `json:"user_message_uuids,omitempty"`

	// ErrorDetails is the answer to a request that is too long, for transcripts. Empty = another failure.
	ErrorDetails string `json:"-"`
	// Final is what the transcript keeps and the stream does not show: the
	// message's real stop reason and usage. Nil on synthetic messages.
	Final *MessageFinal `json:"-"`
}

// MessageFinal is the end of a message as the API reports it last, and the place of a block in it.
type MessageFinal struct {
	StopReason   string
	StopSequence *string
	Usage        Usage
	Index        int      // of the block
	Left         int      // blocks after it
	Calls        []string // names of the tools that the message calls
	InputMS      *int     // how long the input of a call took to come; nil = no call
	Displayed    *string  // what is shown in the place of a text: "" = nothing; nil = the text
	GoesOn, More bool     // it goes on with the message before, which had no calls: over the API both are one; another one follows
}

// LocalCommand is a slash command that ran without the model.
type LocalCommand struct {
	Command string `json:"command"`
	Args    string `json:"args"`
}

// LocalOutcome is how a slash command ended.
type LocalOutcome struct {
	Kind string `json:"kind"` // "failed" or "unavailable_headless"
}

// ToolUseMeta names an MCP call for display.
type ToolUseMeta struct {
	ID                string `json:"id"`
	DisplayName       string `json:"display_name"`
	ServerDisplayName string `json:"server_display_name,omitempty"`
	ToolName          string `json:"tool_name,omitempty"`
}

// User is a user event: a tool result, a replayed prompt or injected text.
type User struct {
	Type            string           `json:"type"` // "user"
	Message         UserContent      `json:"message"`
	ParentToolUseID *string          `json:"parent_tool_use_id"`
	AgentID         string           `json:"agent_id,omitempty"`
	SessionID       string           `json:"session_id"`
	UUID            string           `json:"uuid"`
	Timestamp       string           `json:"timestamp,omitempty"`
	ToolUseResult   any              `json:"tool_use_result,omitempty"`
	ToolResultMeta  []ToolResultMeta `json:"tool_result_meta,omitempty"`
	IsReplay        *bool            `json:"isReplay,omitempty"`
	IsSynthetic     bool             `json:"isSynthetic,omitempty"`
	// RefusedMessageID is the refused reply of the model that this text follows.
	RefusedMessageID string          `json:"refused_message_id,omitempty"`
	SubagentType     string          `json:"subagent_type,omitempty"`
	TaskDescription  string          `json:"task_description,omitempty"`
	Origin           json.RawMessage `json:"origin,omitempty"` // of a replayed prompt

	// Tool is the tool that this is a result of, MCP what a server answered; for
	// transcripts. Empty = none.
	Tool string   `json:"-"`
	MCP  *MCPCall `json:"-"`
	// Expansion is the skill whose text this is, ToolUseID the call that asked for
	// it; for transcripts. nil = it is something else.
	Expansion *Expansion `json:"-"`
	ToolUseID string     `json:"-"`
	// Summary marks what stands for a part of the conversation; for transcripts,
	// which know it from a [Compacted].
	Summary bool `json:"-"`
	// Companion marks what the CLI itself adds to a turn when a reply was not whole;
	// for transcripts.
	Companion bool `json:"-"`
	// SourceUUID is the uuid of the assistant event whose call this answers;
	// for transcripts. Empty = no tool result.
	SourceUUID string `json:"-"`
}

// UserContent is the message inside a user event.
type UserContent struct {
	Role    string  `json:"role"` // "user"
	Content Content `json:"content"`
}

// ToolResultMeta tells how a call was decided.
type ToolResultMeta struct {
	ID                 string              `json:"id"`
	NonExecutionKind   string              `json:"non_execution_kind,omitempty"`
	PermissionDecision *PermissionDecision `json:"permission_decision,omitempty"`
}

// Result ends a turn: exactly one per prompt. Success has Result, the error
// subtypes have Errors.
type Result struct {
	DurationAPIMS          int                    `json:"duration_api_ms"`
	StopReason             *string                `json:"stop_reason"`
	SessionID              string                 `json:"session_id"`
	TotalCostUSD           float64                `json:"total_cost_usd"`
	Usage                  Usage                  `json:"usage"`
	ModelUsage             map[string]ModelUsage  `json:"modelUsage"`
	PermissionDenials      []PermissionDenial     `json:"permission_denials"`
	TerminalReason         string                 `json:"terminal_reason,omitempty"`
	FastModeState          string                 `json:"fast_mode_state,omitempty"`
	FastModeDisabledReason string                 `json:"fast_mode_disabled_reason,omitempty"`
	Origin                 json.RawMessage        `json:"origin,omitempty"`
	SubagentStats          *SubagentStats         `json:"subagent_stats,omitempty"`
	SafetyStops            *int                   `json:"safety_stops,omitempty"`
	IsError                bool                   `json:"is_error"`
	NumTurns               int                    `json:"num_turns"`
	Subtype                string                 `json:"subtype"`
	APIErrorStatus         Null[int]              `json:"api_error_status,omitzero"`
	APIErrorType           string                 `json:"api_error_type,omitempty"`
	APIError               string                 `json:"api_error,omitempty"`
	Result                 *string                `json:"result,omitempty"`
	LocalCommand           string                 `json:"local_command,omitempty"`
	StructuredOutput       json.RawMessage        `json:"structured_output,omitempty"`
	DeferredToolUse        *DeferredToolUse       `json:"deferred_tool_use,omitempty"`
	Errors                 []string               `json:"errors,omitempty"`
	TTFTMS                 *int                   `json:"ttft_ms,omitempty"`
	Type                   string                 `json:"type"` // "result"
	DurationMS             int                    `json:"duration_ms"`
	UUID                   string                 `json:"uuid"`
	BegunMessageIDs        *[]string              `json:"begun_message_ids,omitempty"` // of messages that streamed; since 2.1.330
	TTFTStreamMS           *int                   `json:"ttft_stream_ms,omitempty"`
	TimeToRequestMS        *int                   `json:"time_to_request_ms,omitempty"`
	FirstContentFrameMS    *int                   `json:"first_content_frame_ms,omitempty"`
	UserMessageUUID        string                 `json:"user_message_uuid,omitempty"`
	UserMessageUUIDs       []string               `json:"user_message_uuids,omitempty"`
	RequestSentWallMS      int64                  `json:"request_sent_wall_ms,omitempty"` // unix time; with UserMessageUUID only, like the next two
	FirstInputTokens       *int                   `json:"first_request_input_tokens,omitempty"`
	FirstCacheReadTokens   *int                   `json:"first_request_cache_read_input_tokens,omitempty"`
	QueuedTurnCount        *int                   `json:"queued_turn_count,omitempty"`
	ResultIndex            int                    `json:"result_index"`
	StartupFailureReason   string                 `json:"startup_failure_reason,omitempty"`
	InvalidConfigFile      *InvalidConfigFile     `json:"invalid_config_file,omitempty"`
	CostUSD                *float64               `json:"cost_usd,omitempty"`                      // CLAUDELESS_COMPAT=claudeless-rs only
	ModelUsageSince        *map[string]ModelUsage `json:"model_usage_since_last_result,omitempty"` // stream-json only
}

// InvalidConfigFile is the configuration file that kept a run from starting.
type InvalidConfigFile struct {
	Path           string `json:"path"`
	IsGlobal       bool   `json:"is_global"`
	BackupSearched bool   `json:"backup_searched"`
}

// PermissionDenial is one refused call of the turn.
type PermissionDenial struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	ToolInput json.RawMessage `json:"tool_input"`
}

// DeferredToolUse is the call a PreToolUse hook put off.
type DeferredToolUse struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// SubagentStats counts sub-agents of the session.
type SubagentStats struct {
	Spawned             int            `json:"spawned"`
	Requested           Requested      `json:"requested"`
	StartedInBackground int            `json:"started_in_background"`
	MaxDepth            int            `json:"max_depth"`
	SpawnedBySubagents  int            `json:"spawned_by_subagents"`
	Completed           int            `json:"completed"`
	Failed              int            `json:"failed"`
	Killed              Killed         `json:"killed"`
	Refused             Refused        `json:"refused"`
	ByType              map[string]int `json:"by_type"`
}

// Requested counts how sub-agents were asked for.
type Requested struct {
	Background int `json:"background"`
	Foreground int `json:"foreground"`
	Unset      int `json:"unset"`
}

// Killed counts sub-agents ended early, by whom.
type Killed struct {
	Parent int `json:"parent"`
	User   int `json:"user"`
	System int `json:"system"`
}

// Refused counts sub-agents not started, by limit.
type Refused struct {
	DepthLimit       int `json:"depth_limit"`
	ConcurrencyLimit int `json:"concurrency_limit"`
	Budget           int `json:"budget"`
}

// StreamEvent is one raw API stream event (partial messages).
type StreamEvent struct {
	Type            string  `json:"type"` // "stream_event"
	Event           any     `json:"event"`
	SessionID       string  `json:"session_id"`
	ParentToolUseID *string `json:"parent_tool_use_id"`
	UUID            string  `json:"uuid"`
	TTFTMS          *int    `json:"ttft_ms,omitempty"`
	ThinkingDisplay string  `json:"thinking_display,omitempty"`
	APIMessageID    string  `json:"api_message_id"`
	// The prompts of the turn, with the first message_start only.
	UserMessageUUID  string   `json:"user_message_uuid,omitempty"`
	UserMessageUUIDs []string `json:"user_message_uuids,omitempty"`
	// OwedRows goes with them, and was always seen empty; nil = absent.
	OwedRows *[]string `json:"owed_rows,omitempty"`
	// With the message_stop of an interrupted message only.
	AbandonedBlocks *AbandonedBlocks `json:"abandoned_blocks,omitempty"`
}

// AbandonedBlocks tells which blocks of a message will never be complete.
type AbandonedBlocks struct {
	APIMessageID   string `json:"api_message_id"`
	FromBlockIndex int    `json:"from_block_index"`
}

// PermissionDenied is system/permission_denied: a call refused without asking
// anybody. It precedes the call's tool result.
type PermissionDenied struct {
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

// APIRetry is system/api_retry: the model's API failed and is asked again.
type APIRetry struct {
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

// System is any other system event: Fields are written after type and subtype
// in their order, then session_id and uuid.
type System struct {
	Subtype   string
	Fields    []Field
	SessionID string
	UUID      string
	Shown     bool // on the stream only: transcripts do not keep it
}

// CompactMetadata tells of a compaction, in system/compact_boundary.
type CompactMetadata struct {
	Trigger    string `json:"trigger"` // manual, auto
	PreTokens  int    `json:"pre_tokens"`
	PostTokens int    `json:"post_tokens"`
	DurationMS int    `json:"duration_ms"`
	Dropped    int    `json:"cumulative_dropped_tokens"`
	// What goes on after the summary as it was; nil = nothing does.
	Segment  *PreservedSegment  `json:"preserved_segment,omitempty"`
	Messages *PreservedMessages `json:"preserved_messages,omitempty"`
}

// PreservedSegment is the part of a conversation that a compaction keeps, by the
// uuids of its ends and of the summary it hangs on.
type PreservedSegment struct {
	Head   string `json:"head_uuid"`
	Anchor string `json:"anchor_uuid"`
	Tail   string `json:"tail_uuid"`
}

// PreservedMessages lists the messages of a [PreservedSegment].
type PreservedMessages struct {
	Anchor string   `json:"anchor_uuid"`
	UUIDs  []string `json:"uuids"`
	All    []string `json:"all_uuids"`
}

// Field is one key of a [System] or [Frame] event.
type Field struct {
	Key   string
	Value any
}

// MarshalJSON writes the event as one object.
func (s *System) MarshalJSON() ([]byte, error) {
	head := []Field{{"type", "system"}, {"subtype", s.Subtype}}
	tail := []Field{{"session_id", s.SessionID}, {"uuid", s.UUID}}
	if s.uuidFirst() {
		slices.Reverse(tail)
	}
	return marshalFields(head, s.Fields, tail)
}

// uuidFirst tells the events whose ids were seen the other way round.
func (s *System) uuidFirst() bool {
	switch s.Subtype {
	case "background_tasks_changed", "commands_changed", "hook_started", "hook_response", "informational",
		"task_started", "task_progress", "task_updated", "task_notification":
		return true
	case "status":
		return slices.ContainsFunc(s.Fields, func(f Field) bool { return f.Key == "permissionMode" })
	}
	return false
}

// Frame is a top-level event that is not a system event and has no type of its
// own here (tool_progress, command_lifecycle, conversation_reset, …).
type Frame struct {
	Type      string
	Fields    []Field
	SessionID string // empty = left out
	UUID      string // empty = left out
}

// Lifecycle tells how far a prompt or a put-off call is: queued, started,
// completed or cancelled (spec: cli-contract 1.5). The ids of the frame itself
// are left to whoever shows it.
func Lifecycle(command, state string) *Frame {
	return &Frame{Type: "command_lifecycle", Fields: []Field{{"command_uuid", command}, {"state", state}}}
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
	return marshalFields([]Field{{"type", f.Type}}, f.Fields, tail)
}

func marshalFields(parts ...[]Field) ([]byte, error) {
	out := []byte{'{'}
	for _, part := range parts {
		for _, f := range part {
			if len(out) > 1 {
				out = append(out, ',')
			}
			key, err := Marshal(f.Key)
			if err != nil {
				return nil, err
			}
			value, err := Marshal(f.Value)
			if err != nil {
				return nil, err
			}
			out = append(append(append(out, key...), ':'), value...)
		}
	}
	return append(out, '}'), nil
}

func (*Init) event()             {}
func (*Assistant) event()        {}
func (*User) event()             {}
func (*Result) event()           {}
func (*StreamEvent) event()      {}
func (*PermissionDenied) event() {}
func (*APIRetry) event()         {}
func (*System) event()           {}
func (*Frame) event()            {}

// ModeStatus is the event that announces a changed permission mode.
func ModeStatus(mode PermissionMode) *System {
	return &System{Subtype: "status", Fields: []Field{
		{Key: "status", Value: json.RawMessage("null")}, {Key: "permissionMode", Value: mode},
	}}
}

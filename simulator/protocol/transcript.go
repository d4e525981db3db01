package protocol

import "encoding/json"

// Envelope is what user, assistant, attachment and system lines of a
// transcript share (spec: cli-contract 8.3). Each kind of line has the three
// parts in its own places, the order in which the real CLI writes the keys.
type Envelope struct {
	LineHead
	Stamp
	LineFoot
}

// LineHead begins a line: its place in the conversation.
type LineHead struct {
	// ParentUUID is the line before this one in the conversation; nil at its
	// start.
	ParentUUID *string `json:"parentUuid"`
	// LogicalParentUUID is the line before a compact boundary.
	LogicalParentUUID string `json:"logicalParentUuid,omitempty"`
	IsSidechain       bool   `json:"isSidechain"`
	PromptID          string `json:"promptId,omitempty"` // user lines only
	AgentID           string `json:"agentId,omitempty"`
}

// Stamp is the id of a line and its time.
type Stamp struct {
	UUID      string `json:"uuid"`
	Timestamp string `json:"timestamp"`
}

// TimedStamp is a [Stamp] as system lines have it.
type TimedStamp struct {
	Timestamp string `json:"timestamp"`
	UUID      string `json:"uuid"`
}

// LineFoot ends a line: what it was written in.
type LineFoot struct {
	UserType   string `json:"userType"`   // "external"
	Entrypoint string `json:"entrypoint"` // "sdk-cli", "sdk-py", "sdk-ts"
	CWD        string `json:"cwd"`
	SessionID  string `json:"sessionId"`
	Version    string `json:"version"`
	GitBranch  string `json:"gitBranch"`
}

// CommandBlocks are the texts of a line, and those of them that the command says.
type CommandBlocks struct {
	All int `json:"all"`
	Own int `json:"own"`
}

// UserLine is a prompt, a tool result or injected text.
type UserLine struct {
	LineHead
	Type    string      `json:"type"` // "user"
	Message UserContent `json:"message"`
	IsMeta  bool        `json:"isMeta,omitempty"`
	// Companion marks what the CLI itself adds to the turn of a prompt.
	Companion bool `json:"turnCompanion,omitempty"`
	// CommandBlocks counts the texts of a command's line that stand behind others.
	CommandBlocks *CommandBlocks `json:"commandTextBlocks,omitempty"`
	// OnlyShown and IsSummary mark the summary that stands for what was compacted.
	OnlyShown bool `json:"isVisibleInTranscriptOnly,omitempty"`
	IsSummary bool `json:"isCompactSummary,omitempty"`
	// RepeatsSummary marks the output of a compaction that says how its hooks went.
	RepeatsSummary bool `json:"repeatsCompactSummary,omitempty"`
	Stamp
	// RefusedMessageID is the refused reply that an injected text follows.
	RefusedMessageID string `json:"refusedMessageId,omitempty"`

	// Of a prompt.
	ImageIDs       []int           `json:"imagePasteIds,omitempty"` // 1 for the first image, and so on
	PermissionMode PermissionMode  `json:"permissionMode,omitempty"`
	SkipAttached   bool            `json:"queueSkipAttachments,omitempty"` // of news of the background
	Origin         json.RawMessage `json:"origin,omitempty"`
	PromptSource   string          `json:"promptSource,omitempty"` // "sdk" or "system"
	TurnOrigin     string          `json:"turnOrigin,omitempty"`   // "sdk" or "task_notification"
	TurnPosition   *TurnPosition   `json:"turnPosition,omitempty"`
	// AttributionKey is the host's own id of the prompt; empty = it gave none.
	AttributionKey string   `json:"turnAttributionKey,omitempty"`
	MergedUUIDs    []string `json:"mergedSendUuids,omitempty"`
	// Summarized are the prompts whose turn a summary stands in.
	Summarized []string `json:"summarizedTurnPromptUuids,omitempty"`

	// Of a tool result.
	ToolUseResult           any           `json:"toolUseResult,omitempty"`
	MCPMeta                 *MCPResult    `json:"mcpMeta,omitempty"`
	MCPNotReadOnly          string        `json:"mcpCallNotReadOnly,omitempty"` // "no_hint" or "declared"
	Sandboxed               *bool         `json:"sandboxed,omitempty"`          // of Bash commands that ran
	ToolDenialKind          string        `json:"toolDenialKind,omitempty"`
	ToolEndsTurn            bool          `json:"toolEndsTurn,omitempty"` // of StructuredOutput
	SourceToolAssistantUUID string        `json:"sourceToolAssistantUUID,omitempty"`
	SourceToolUseID         string        `json:"sourceToolUseID,omitempty"` // of the text of a skill
	PermissionDecision      *LineDecision `json:"permissionDecision,omitempty"`
	LineFoot
}

// TurnPosition counts the prompts of a session from 1.
type TurnPosition struct {
	PromptIndex int `json:"promptIndex"`
	TurnIndex   int `json:"turnIndex"`
}

// LineDecision is a [PermissionDecision] in the spelling of transcripts.
type LineDecision struct {
	Decision   string `json:"decision"`
	Source     string `json:"source"`
	ReasonType string `json:"reasonType,omitempty"`
	RuleSource string `json:"ruleSource,omitempty"` // of the rule that decided: "cliArg", "userSettings"…
}

// AssistantLine is one block of a model message, with the stop reason and the
// usage that the message ended with. A line that no model made (an API error)
// is a [SyntheticLine].
type AssistantLine struct {
	LineHead
	Message            LineMessage `json:"message"`
	ThinkingDurationMS *int        `json:"thinkingDurationMs,omitempty"`
	ThinkingDisplay    string      `json:"thinkingDisplay,omitempty"`
	IsAbortedMidStream bool        `json:"isAbortedMidStream,omitempty"`
	ToolInputStreamMS  *int        `json:"toolInputStreamMs,omitempty"`
	APIBlockIndex      int         `json:"apiBlockIndex"`
	RequestID          string      `json:"requestId,omitempty"`
	RequestedModel     string      `json:"requestedModel,omitempty"`
	PromptCache        string      `json:"promptCacheRequested,omitempty"` // "5m"
	Attribution
	Type string `json:"type"` // "assistant"
	Stamp
	Effort        string  `json:"effort,omitempty"` // empty = the model knows none
	PerTurnEffort *string `json:"perTurnEffort"`
	MadeBy        string  `json:"madeBy"` // "model"
	LineFoot
}

// Attribution says on whose behalf the model wrote a line.
type Attribution struct {
	Agent     string `json:"attributionAgent,omitempty"`
	Skill     string `json:"attributionSkill,omitempty"`
	Plugin    string `json:"attributionPlugin,omitempty"` // what stands before a colon in its name
	MCPServer string `json:"attributionMcpServer,omitempty"`
	MCPTool   string `json:"attributionMcpTool,omitempty"`
}

// LineMessage is an [AssistantMessage] as transcripts keep it.
type LineMessage struct {
	ID           string            `json:"id"`
	Type         string            `json:"type"` // "message"
	Role         string            `json:"role"` // "assistant"
	Model        string            `json:"model"`
	Content      []Block           `json:"content"`
	StopReason   *string           `json:"stop_reason"`
	StopSequence *string           `json:"stop_sequence"`
	Usage        Usage             `json:"usage"`
	StopDetails  Null[StopDetails] `json:"stop_details,omitzero"`
}

// SyntheticLine is an assistant line that the CLI itself made up.
type SyntheticLine struct {
	LineHead
	Type string `json:"type"` // "assistant"
	Stamp
	Message           AssistantMessage `json:"message"`
	RequestID         string           `json:"requestId,omitempty"`
	Error             string           `json:"error,omitempty"`
	IsAPIErrorMessage bool             `json:"isApiErrorMessage"`
	APIErrorStatus    int              `json:"apiErrorStatus,omitempty"`
	APIErrorType      string           `json:"apiErrorType,omitempty"`
	APIError          string           `json:"apiError,omitempty"`
	ErrorDetails      string           `json:"errorDetails,omitempty"`     // of a request that is too long
	ResendCannotCure  bool             `json:"resendCannotCure,omitempty"` // of an account without money
	PerTurnEffort     *string          `json:"perTurnEffort,omitempty"`
	NoToolCall        bool             `json:"failedResponseHadNoToolCall,omitempty"`
	MadeBy            string           `json:"madeBy"` // "other"
	LineFoot
}

// AttachmentLine is context that the CLI gave the model beside the prompt.
// Attachment is an object with a type.
type AttachmentLine struct {
	LineHead
	Attachment any    `json:"attachment"`
	Type       string `json:"type"` // "attachment"
	Stamp
	Rendered     []RenderedText `json:"rendered,omitempty"`
	RenderedRole string         `json:"renderedRole,omitempty"` // "system" or "user"
	BesideResult bool           `json:"renderedBesideToolResult,omitempty"`
	LineFoot
}

// RenderedText is one text that the model reads of an attachment.
type RenderedText struct {
	Content string `json:"content"`
}

// Reminder is text of the CLI's own as the model reads it.
func Reminder(text string) string { return "<system-reminder>\n" + text + "\n</system-reminder>" }

// APIErrorLine is system/api_error: a failed request that is tried again.
type APIErrorLine struct {
	LineHead
	Type         string       `json:"type"`    // "system"
	Subtype      string       `json:"subtype"` // "api_error"
	Level        string       `json:"level"`   // "error"
	Source       string       `json:"source"`  // "request_retry", "connection_retry"
	Error        RequestError `json:"error"`
	RetryInMS    int          `json:"retryInMs"`
	RetryAttempt int          `json:"retryAttempt"`
	MaxRetries   int          `json:"maxRetries"`
	TimedStamp
	LineFoot
}

// RequestError describes a failed API request.
type RequestError struct {
	Message       string           `json:"message"`
	Formatted     string           `json:"formatted"`
	Status        int              `json:"status,omitempty"` // 0 = no response
	RequestID     string           `json:"requestId,omitempty"`
	Connection    *ConnectionError `json:"connection"`
	IsNetworkDown bool             `json:"isNetworkDown"`
	NoResponse    *struct{}        `json:"noResponse"`
	RateLimits    *struct{}        `json:"rateLimits"`
}

// ConnectionError is a request that got no response.
type ConnectionError struct {
	Code       string `json:"code"`
	IsSSLError bool   `json:"isSSLError"`
	Message    string `json:"message"`
}

// InformationalLine is system/informational.
type InformationalLine struct {
	LineHead
	Type    string `json:"type"`    // "system"
	Subtype string `json:"subtype"` // "informational"
	Content string `json:"content"`
	IsMeta  bool   `json:"isMeta"`
	TimedStamp
	Level             string        `json:"level"`
	PreventContinuing bool          `json:"preventContinuation,omitempty"`
	Ending            *PromptEnding `json:"promptSubmitEnding,omitempty"`
	LineFoot
}

// PromptEnding is a [PromptOutcome] in the spelling of transcripts. How they keep
// what is no verdict is not known.
type PromptEnding struct {
	Ending struct {
		Kind   string `json:"kind"` // "blocked_by_hook" or "stopped_by_hook"
		Reason string `json:"reason,omitempty"`
	} `json:"ending"`
	Kept bool `json:"promptKept"`
}

// StopLine is system/stop_hook_summary: how the hooks at the end of a turn went.
type StopLine struct {
	LineHead
	Type    string `json:"type"`    // "system"
	Subtype string `json:"subtype"` // "stop_hook_summary"
	StopSummary
	Level string `json:"level"` // "suggestion"
	TimedStamp
	ToolUseID string `json:"toolUseID"` // of the attachments of these hooks
	LineFoot
}

// StopSummary is what a [StopLine] says of the configured hooks.
type StopSummary struct {
	Count  int            `json:"hookCount"`
	Hooks  []StopHookInfo `json:"hookInfos"`
	Errors []string       `json:"hookErrors"` // refusals and failures
	// Failed are the indexes of those errors that are failures.
	Failed    []int    `json:"failedHookErrorIndexes"`
	Context   []string `json:"hookAdditionalContext"`
	Prevented bool     `json:"preventedContinuation"`
	Reason    string   `json:"stopReason"` // of who prevented it; empty = none
	HasOutput bool     `json:"hasOutput"`
}

// StopHookInfo is one hook of a [StopSummary].
type StopHookInfo struct {
	Command    string `json:"command"`
	DurationMS *int64 `json:"durationMs,omitempty"` // nil = it refused
}

// CompactLine is system/compact_boundary: what was said before it is no longer
// in the conversation.
type CompactLine struct {
	LineHead
	Type    string `json:"type"`    // "system"
	Subtype string `json:"subtype"` // "compact_boundary"
	Content string `json:"content"`
	IsMeta  *bool  `json:"isMeta,omitempty"` // nil = nobody asked for it
	TimedStamp
	Level    string      `json:"level"`
	Metadata LineCompact `json:"compactMetadata"`
	LineFoot
}

// LineCompact is a [CompactMetadata] in the spelling of transcripts. What
// CoverStart tells is not known; it was false.
type LineCompact struct {
	Trigger    string `json:"trigger"`
	PreTokens  int    `json:"preTokens"`
	CoverStart bool   `json:"preCompactOrganizationsCoverStart"`
	DurationMS int    `json:"durationMs"`
	PostTokens int    `json:"postTokens"`
	Dropped    int    `json:"cumulativeDroppedTokens"`

	Segment  *LineSegment  `json:"preservedSegment,omitempty"`
	Messages *LineMessages `json:"preservedMessages,omitempty"`
	// Running is there when a turn went on; it was empty.
	Running *struct{} `json:"runningTurnPrompt,omitempty"`
}

// LineSegment is a [PreservedSegment] in the spelling of transcripts.
type LineSegment struct {
	Head   string `json:"headUuid"`
	Anchor string `json:"anchorUuid"`
	Tail   string `json:"tailUuid"`
}

// LineMessages is a [PreservedMessages] in the spelling of transcripts.
type LineMessages struct {
	Anchor string   `json:"anchorUuid"`
	UUIDs  []string `json:"uuids"`
	All    []string `json:"allUuids"`
}

// LocalCommandLine is system/local_command: what a slash command said that ran
// without the model.
type LocalCommandLine struct {
	LineHead
	Type    string `json:"type"`    // "system"
	Subtype string `json:"subtype"` // "local_command"
	Content string `json:"content"`
	Level   string `json:"level"`
	TimedStamp
	IsMeta       bool            `json:"isMeta"`
	ContextUsage json.RawMessage `json:"contextUsage,omitempty"`
	SubmitUUID   string          `json:"submitUuid,omitempty"` // the host's id of the command
	CommandRun   *LocalCommand   `json:"commandRun,omitempty"`
	Outcome      *LocalOutcome   `json:"commandOutcome,omitempty"`
	LineFoot
}

// QueueLine is queue-operation: a prompt entering or leaving the queue.
type QueueLine struct {
	Type      string  `json:"type"`      // "queue-operation"
	Operation string  `json:"operation"` // "enqueue", "dequeue" or "remove"
	Timestamp string  `json:"timestamp"`
	SessionID string  `json:"sessionId"`
	Content   *string `json:"content,omitempty"` // of a text prompt that comes or is removed
	// The rest belongs to "remove".
	Reason      string `json:"reason,omitempty"` // "absorbed_mid_turn"
	CommandUUID string `json:"commandUuid,omitempty"`
	DeliveryID  string `json:"deliveryId,omitempty"`
}

// QueuedCommand is the attachment queued_command: a prompt that became part of
// the turn that was running.
type QueuedCommand struct {
	Type       string          `json:"type"` // "queued_command"
	Prompt     Content         `json:"prompt"`
	SourceUUID string          `json:"source_uuid"`
	DeliveryID string          `json:"delivery_id"`
	Mode       string          `json:"commandMode"` // "prompt"
	Origin     json.RawMessage `json:"origin,omitempty"`
	Timestamp  string          `json:"timestamp"`
}

// LastPromptLine is last-prompt: what a list of sessions shows.
type LastPromptLine struct {
	Type       string `json:"type"` // "last-prompt"
	LastPrompt string `json:"lastPrompt,omitempty"`
	LeafUUID   string `json:"leafUuid"`
	SessionID  string `json:"sessionId"`
}

// ToolsUsedLine is tools-used: the names of all tools called so far.
type ToolsUsedLine struct {
	Type      string   `json:"type"` // "tools-used"
	Tools     []string `json:"tools"`
	SessionID string   `json:"sessionId"`
}

// ModeLine is mode, written when a session is taken up again.
type ModeLine struct {
	Type      string `json:"type"` // "mode"
	Mode      string `json:"mode"` // "normal"
	SessionID string `json:"sessionId"`
}

// CustomTitleLine is custom-title: the name given by --name.
type CustomTitleLine struct {
	Type        string `json:"type"` // "custom-title"
	CustomTitle string `json:"customTitle"`
	SessionID   string `json:"sessionId"`
}

// AgentSettingLine is agent-setting: the agent given by --agent.
type AgentSettingLine struct {
	Type         string `json:"type"` // "agent-setting"
	AgentSetting string `json:"agentSetting"`
	SessionID    string `json:"sessionId"`
}

// AgentNameLine is agent-name, which goes with a [CustomTitleLine].
type AgentNameLine struct {
	Type      string `json:"type"` // "agent-name"
	AgentName string `json:"agentName"`
	SessionID string `json:"sessionId"`
}

// LatchLine is atis-latch, which follows the first lines of a session and each
// [LastPromptLine]. What it is for is not known; its value was always empty.
type LatchLine struct {
	Type      string `json:"type"` // "atis-latch"
	ATIS      string `json:"atis"`
	SessionID string `json:"sessionId"`
}

// CostStateLine is cost-state: the session's usage so far, read back when it
// is resumed. Durations are in milliseconds, StartTime is Unix milliseconds.
type CostStateLine struct {
	Type                           string              `json:"type"` // "cost-state"
	SessionID                      string              `json:"sessionId"`
	TotalCostUSD                   float64             `json:"totalCostUSD"`
	TotalAPIDuration               int                 `json:"totalAPIDuration"`
	TotalAPIDurationWithoutRetries int                 `json:"totalAPIDurationWithoutRetries"`
	TotalToolDuration              int                 `json:"totalToolDuration"`
	TotalLinesAdded                int                 `json:"totalLinesAdded"`
	TotalLinesRemoved              int                 `json:"totalLinesRemoved"`
	TotalDuration                  int                 `json:"totalDuration"`
	StartTime                      int64               `json:"startTime"`
	ModelUsage                     map[string]LineCost `json:"modelUsage"`
	HasUnknownModelCost            bool                `json:"hasUnknownModelCost"`
}

// LineCost is the part of a [ModelUsage] that a transcript keeps.
type LineCost struct {
	InputTokens              int     `json:"inputTokens"`
	OutputTokens             int     `json:"outputTokens"`
	ThinkingTokens           int     `json:"thinkingTokens"`
	CacheReadInputTokens     int     `json:"cacheReadInputTokens"`
	CacheCreationInputTokens int     `json:"cacheCreationInputTokens"`
	CacheCreation5m          int     `json:"cacheCreationEphemeral5mInputTokens"`
	CacheCreation1h          int     `json:"cacheCreationEphemeral1hInputTokens"`
	WebSearchRequests        int     `json:"webSearchRequests"`
	CostUSD                  float64 `json:"costUSD"`
}

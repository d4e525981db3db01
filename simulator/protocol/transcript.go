package protocol

import "encoding/json"

// LineEnvelope contains the keys that user, assistant, attachment and system lines of a transcript have (spec: cli-contract
// 8.3). Each kind of line embeds LineHead, LineID and LineTrailer in the order of the real CLI's keys.
type LineEnvelope struct {
	LineHead
	LineID
	LineTrailer
}

// LineHead contains the first keys of a line, which give its place in the conversation.
type LineHead struct {
	ParentUUID *string `json:"parentUuid"` // the uuid of the previous line in the conversation; nil for the first
	// LogicalParentUUID is set on a compact boundary: the uuid of the line before it.
	LogicalParentUUID string `json:"logicalParentUuid,omitempty"`
	IsSidechain       bool   `json:"isSidechain"`
	PromptID          string `json:"promptId,omitempty"` // user lines only
	AgentID           string `json:"agentId,omitempty"`
}

// LineID contains the id and the time of a line.
type LineID struct {
	UUID      string `json:"uuid"`
	Timestamp string `json:"timestamp"`
}

// SystemLineID is a [LineID] in the key order of system lines.
type SystemLineID struct {
	Timestamp string `json:"timestamp"`
	UUID      string `json:"uuid"`
}

// LineTrailer contains the last keys of a line: the environment in which it was written.
type LineTrailer struct {
	UserType   string `json:"userType"`   // "external"
	Entrypoint string `json:"entrypoint"` // "sdk-cli", "sdk-py", "sdk-ts"
	CWD        string `json:"cwd"`
	SessionID  string `json:"sessionId"`
	Version    string `json:"version"`
	GitBranch  string `json:"gitBranch"`
	// QuerySession repeats the session id in the lines that a query writes, if the prompts are typed in a terminal.
	QuerySession string `json:"session_id,omitempty"`
	PlanName     string `json:"slug,omitempty"` // name of the plan file; empty until it has one
}

// CommandTextBlockCounts counts all text blocks of a line, and those that are the text of a command.
type CommandTextBlockCounts struct {
	All     int `json:"all"`
	Command int `json:"own"`
}

// UserLine is a prompt, a tool result or injected text.
type UserLine struct {
	LineHead
	Type      string      `json:"type"` // "user"
	Message   UserContent `json:"message"`
	IsMeta    bool        `json:"isMeta,omitempty"`
	Companion bool        `json:"turnCompanion,omitempty"` // marks a message that the CLI adds to a turn in addition to the prompt
	// CommandBlocks is set if the text of a command or skill follows other text blocks in the line.
	CommandBlocks *CommandTextBlockCounts `json:"commandTextBlocks,omitempty"`
	// TranscriptOnly and IsSummary mark the summary that replaces a compacted conversation.
	TranscriptOnly bool `json:"isVisibleInTranscriptOnly,omitempty"`
	IsSummary      bool `json:"isCompactSummary,omitempty"`
	// RepeatsSummary is a key that the real CLI sets in the output of /compact if the output includes reports of hooks.
	RepeatsSummary bool `json:"repeatsCompactSummary,omitempty"`
	LineID
	RefusedMessageID string `json:"refusedMessageId,omitempty"` // the id of the refused reply that an injected text follows
	// InterruptedMessageID is the id of the message with the calls that an interrupt in a terminal stopped.
	InterruptedMessageID string `json:"interruptedMessageId,omitempty"`
	RefusalRetry         bool   `json:"refusalRetry,omitempty"`

	// The following keys belong to prompts.
	ImageIDs        []int                `json:"imagePasteIds,omitempty"` // 1 for the first image of the session, and so on
	PermissionMode  PermissionMode       `json:"permissionMode,omitempty"`
	SkipAttachments bool                 `json:"queueSkipAttachments,omitempty"` // set for notices about background tasks
	QueueOnly       bool                 `json:"queueTranscriptOnly,omitempty"`  // the prompt was not sent to the model at once
	Origin          json.RawMessage      `json:"origin,omitempty"`
	PromptSource    string               `json:"promptSource,omitempty"` // "sdk", "system", "typed" or "queued"
	SentAtMS        int64                `json:"sentAtMs,omitempty"`     // Unix time
	SkipCommands    bool                 `json:"queueSkipSlashCommands,omitempty"`
	WakeupSource    string               `json:"wakeupSource,omitempty"`
	TurnOrigin      string               `json:"turnOrigin,omitempty"` // "sdk", "task_notification", "scheduled", "peer" or "human"
	TurnPosition    *SessionTurnPosition `json:"turnPosition,omitempty"`
	AttributionKey  string               `json:"turnAttributionKey,omitempty"` // the host's id of the prompt; may be empty
	MergedUUIDs     []string             `json:"mergedSendUuids,omitempty"`
	// SummarizedPrompts are the prompts of the turn that contains the summary.
	SummarizedPrompts []string `json:"summarizedTurnPromptUuids,omitempty"`

	// The following keys belong to tool results.
	ToolUseResult           any                     `json:"toolUseResult,omitempty"`
	MCPMeta                 *MCPResult              `json:"mcpMeta,omitempty"`
	MCPNotReadOnly          string                  `json:"mcpCallNotReadOnly,omitempty"` // "no_hint" or "declared"
	Sandboxed               *bool                   `json:"sandboxed,omitempty"`          // for Bash commands that ran
	ToolDenialKind          string                  `json:"toolDenialKind,omitempty"`
	ToolDenialUnanswered    string                  `json:"toolDenialUnanswered,omitempty"` // "stream-closed" if the host could not answer
	UserFeedback            string                  `json:"userFeedback,omitempty"`         // text with which the user refused the call in a terminal
	ToolEndsTurn            bool                    `json:"toolEndsTurn,omitempty"`         // set for StructuredOutput
	SourceToolAssistantUUID string                  `json:"sourceToolAssistantUUID,omitempty"`
	SourceToolUseID         string                  `json:"sourceToolUseID,omitempty"` // set only in the message with the text of a skill
	PermissionDecision      *LinePermissionDecision `json:"permissionDecision,omitempty"`
	ToolResultRemedy        map[string]string       `json:"toolResultRemedy,omitempty"`
	ToolResultScreened      *bool                   `json:"toolResultScreened,omitempty"` // for calls that succeeded
	ExecutedInput           map[string][]string     `json:"executedInput,omitempty"`      // the "sources" of changes to the input, as in [ToolResultMeta]
	// DeniedBeforeRun marks a call that was interrupted while its permission question was open. IsHumanText marks a
	// refusal with a message from the host.
	DeniedBeforeRun bool `json:"toolDenialBeforeRun,omitempty"`
	IsHumanText     bool `json:"holdsPersonsWords,omitempty"`
	// RowSource specifies who wrote the text: "local" (the user or a command), "hook", "harness" (the CLI) or
	// "recorded" (the prompt of an agent, or a notice about a background task). Tool results have none.
	RowSource    string `json:"rowSource,omitempty"`
	OwnNote      bool   `json:"ownNote,omitempty"` // the text asks the model to continue; it has no RowSource
	HookText     bool   `json:"hookText,omitempty"`
	HookTextLead string `json:"hookTextLead,omitempty"` // text that precedes the output of a hook in requests to the model
	LineTrailer
}

// LinePermissionDecision is a [PermissionDecision] with the keys of transcripts.
type LinePermissionDecision struct {
	Decision   string `json:"decision"`
	Source     string `json:"source"`
	ReasonType string `json:"reasonType,omitempty"`
	ReasonCode string `json:"reasonCode,omitempty"` // reason for a rejection or a question, such as "hook:PreToolUse"
	RuleSource string `json:"ruleSource,omitempty"` // source of the deciding rule: "cliArg", "userSettings"…
	// GrantScope is "once" or "session" for a permission that a host gave without saving it in a file.
	GrantScope     string `json:"grantScope,omitempty"`
	CircuitBreaker string `json:"circuitBreaker,omitempty"`
}

// AssistantLine is one block of a model message, with the message's final stop reason and usage. Messages that no model
// wrote (API errors) are a [SyntheticLine].
type AssistantLine struct {
	LineHead
	Message            LineAssistantMessage `json:"message"`
	ThinkingDurationMS *int                 `json:"thinkingDurationMs,omitempty"`
	ThinkingDisplay    string               `json:"thinkingDisplay,omitempty"`
	IsAbortedMidStream bool                 `json:"isAbortedMidStream,omitempty"`
	ToolInputStreamMS  *int                 `json:"toolInputStreamMs,omitempty"`
	// IngestContext holds, by the id of a Bash call, the directory in the [ChangeDirectoryPrefix] that the model wrote.
	IngestContext  map[string]map[string]string `json:"wireIngestContext,omitempty"`
	APIBlockIndex  int                          `json:"apiBlockIndex"`
	RequestID      string                       `json:"requestId,omitempty"`
	RequestRef     string                       `json:"requestRef,omitempty"` // id of the [RequestLine]
	RequestedModel string                       `json:"requestedModel,omitempty"`
	PromptCache    string                       `json:"promptCacheRequested,omitempty"`    // "5m", "1h" or "off"
	CheckRequest   string                       `json:"serverClassifierRequest,omitempty"` // id of the check that a server made of the calls
	LineAttribution
	Type string `json:"type"` // "assistant"
	LineID
	Effort        string  `json:"effort,omitempty"` // empty if the model has no effort levels
	PerTurnEffort *string `json:"perTurnEffort"`
	MadeBy        string  `json:"madeBy"` // "model"
	LineTrailer
}

// LineAttribution records which agent, skill, plugin or MCP server caused a line.
type LineAttribution struct {
	Agent     string `json:"attributionAgent,omitempty"`
	Skill     string `json:"attributionSkill,omitempty"`
	Plugin    string `json:"attributionPlugin,omitempty"` // the part of the name before a colon
	MCPServer string `json:"attributionMcpServer,omitempty"`
	MCPTool   string `json:"attributionMcpTool,omitempty"`
}

// LineAssistantMessage is an [AssistantMessage] with the keys of transcripts.
type LineAssistantMessage struct {
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

// SyntheticLine is an assistant line that the CLI wrote.
type SyntheticLine struct {
	LineHead
	Type string `json:"type"` // "assistant"
	LineID
	Message           AssistantMessage  `json:"message"`
	RequestID         string            `json:"requestId,omitempty"`
	Error             string            `json:"error,omitempty"`
	IsAPIErrorMessage bool              `json:"isApiErrorMessage"`
	APIErrorStatus    int               `json:"apiErrorStatus,omitempty"`
	APIErrorCode      string            `json:"apiErrorCode,omitempty"`
	APIErrorType      string            `json:"apiErrorType,omitempty"`
	APIError          string            `json:"apiError,omitempty"`
	APIErrorParams    map[string]string `json:"apiErrorParams,omitempty"`
	ErrorDetails      string            `json:"errorDetails,omitempty"`         // set if a request was too long
	HealsCarrier      bool              `json:"healsDistinctCarrier,omitempty"` // true if a request was too large
	IsTransient       *bool             `json:"apiErrorIsTransient,omitempty"`  // false for an exceeded rate limit
	ResendCannotCure  bool              `json:"resendCannotCure,omitempty"`     // true if the account has no credit
	PerTurnEffort     *string           `json:"perTurnEffort,omitempty"`
	NoToolCall        bool              `json:"failedResponseHadNoToolCall,omitempty"`
	MadeBy            string            `json:"madeBy"` // "other"
	LineTrailer
}

// AttachmentLine is context that the CLI added to the prompt. Attachment is an object with a type.
type AttachmentLine struct {
	LineHead
	Attachment any    `json:"attachment"`
	Type       string `json:"type"` // "attachment"
	LineID
	Rendered       []AttachmentText `json:"rendered,omitempty"`
	RenderedRole   string           `json:"renderedRole,omitempty"` // "system" or "user"
	WithToolResult bool             `json:"renderedBesideToolResult,omitempty"`
	LineTrailer
}

// AttachmentText is one text of an attachment that the model reads.
type AttachmentText struct {
	Content string `json:"content"`
}

// InReminderTags wraps text of the CLI in <system-reminder> tags for the model.
func InReminderTags(text string) string { return "<system-reminder>\n" + text + "\n</system-reminder>" }

// APIErrorLine is system/api_error: a failed request that is retried.
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
	SystemLineID
	LineTrailer
}

// RequestError describes a failed API request.
type RequestError struct {
	Message       string           `json:"message"`
	Formatted     string           `json:"formatted"`
	Status        int              `json:"status,omitempty"` // 0 if there was no response
	RequestID     string           `json:"requestId,omitempty"`
	Connection    *ConnectionError `json:"connection"`
	IsNetworkDown bool             `json:"isNetworkDown"`
	NoResponse    *struct{}        `json:"noResponse"`
	RateLimits    *struct{}        `json:"rateLimits"`
}

// ConnectionError describes a request without a response.
type ConnectionError struct {
	Code       string `json:"code"`
	IsSSLError bool   `json:"isSSLError"`
	Message    string `json:"message"`
}

// InformationalLine is the line system/informational: a message for the user.
type InformationalLine struct {
	LineHead
	Type    string `json:"type"`    // "system"
	Subtype string `json:"subtype"` // "informational"
	Content string `json:"content"`
	IsMeta  bool   `json:"isMeta"`
	SystemLineID
	Level             string              `json:"level"`
	PreventContinuing bool                `json:"preventContinuation,omitempty"`
	Ending            *PromptSubmitEnding `json:"promptSubmitEnding,omitempty"`
	LineTrailer
}

// ModelFallbackLine is a line of type system/model_fallback. It records that the CLI switched to the fallback model.
type ModelFallbackLine struct {
	LineHead
	Type     string `json:"type"`    // "system"
	Subtype  string `json:"subtype"` // "model_fallback"
	Content  string `json:"content"`
	IsMeta   bool   `json:"isMeta"`
	Trigger  string `json:"trigger"`
	Original string `json:"originalModel"`
	Fallback string `json:"fallbackModel"`
	SystemLineID
	Level string `json:"level"` // "warning"
	LineTrailer
}

// PromptSubmitEnding is a [PromptSubmitOutcome] with the keys of transcripts. It was never observed with no_verdict.
type PromptSubmitEnding struct {
	Ending struct {
		Kind   string `json:"kind"` // "blocked_by_hook" or "stopped_by_hook"
		Reason string `json:"reason,omitempty"`
	} `json:"ending"`
	Kept bool `json:"promptKept"`
}

// StopHookLine is system/stop_hook_summary: the outcome of the hooks at the end of a turn.
type StopHookLine struct {
	LineHead
	Type    string `json:"type"`    // "system"
	Subtype string `json:"subtype"` // "stop_hook_summary"
	StopHookSummary
	Level string `json:"level"` // "suggestion"
	SystemLineID
	ToolUseID string `json:"toolUseID"` // id used in the attachments of these hooks
	LineTrailer
}

// StopHookSummary summarizes the configured hooks of a [StopHookLine].
type StopHookSummary struct {
	Count     int            `json:"hookCount"`
	Hooks     []StopHookInfo `json:"hookInfos"`
	Errors    []string       `json:"hookErrors"`             // blocks and failures
	Failed    []int          `json:"failedHookErrorIndexes"` // the indexes of the failures in Errors
	Context   []string       `json:"hookAdditionalContext"`
	Prevented bool           `json:"preventedContinuation"`
	Reason    string         `json:"stopReason"` // reason of the hook that prevented continuation; may be empty
	HasOutput bool           `json:"hasOutput"`
}

// StopHookInfo describes a Stop hook that ran, as one element of a [StopHookSummary].
type StopHookInfo struct {
	Command    string `json:"command"`
	DurationMS *int64 `json:"durationMs,omitempty"` // nil if the hook blocked
	Prompt     string `json:"promptText,omitempty"` // hooks of type prompt only
}

// CompactBoundaryLine is system/compact_boundary: the lines before it are no longer part of the conversation.
type CompactBoundaryLine struct {
	LineHead
	Type    string `json:"type"`    // "system"
	Subtype string `json:"subtype"` // "compact_boundary"
	Content string `json:"content"`
	IsMeta  *bool  `json:"isMeta,omitempty"` // nil for automatic compactions, and on a terminal
	SystemLineID
	Level    string              `json:"level"`
	Metadata LineCompactMetadata `json:"compactMetadata"`
	LineTrailer
}

// LineCompactMetadata is a [CompactMetadata] for transcripts. CoverStart has an unknown meaning; it was always false.
type LineCompactMetadata struct {
	Trigger    string `json:"trigger"`
	PreTokens  int    `json:"preTokens"`
	CoverStart bool   `json:"preCompactOrganizationsCoverStart"`
	DurationMS int    `json:"durationMs"`
	PostTokens int    `json:"postTokens"`
	Dropped    int    `json:"cumulativeDroppedTokens"`

	Segment  *LinePreservedSegment  `json:"preservedSegment,omitempty"`
	Messages *LinePreservedMessages `json:"preservedMessages,omitempty"`
	Running  *struct{}              `json:"runningTurnPrompt,omitempty"` // was observed as an empty object when a turn continued
}

// LinePreservedSegment is a [CompactionPreservedSegment] with the keys of transcripts.
type LinePreservedSegment struct {
	Head   string `json:"headUuid"`
	Anchor string `json:"anchorUuid"`
	Tail   string `json:"tailUuid"`
}

// LinePreservedMessages is a [PreservedMessages] with the keys of transcripts.
type LinePreservedMessages struct {
	Anchor string   `json:"anchorUuid"`
	UUIDs  []string `json:"uuids"`
	All    []string `json:"allUuids"`
}

// LocalCommandLine is system/local_command: the output of a slash command that ran without the model.
type LocalCommandLine struct {
	LineHead
	Type    string `json:"type"`    // "system"
	Subtype string `json:"subtype"` // "local_command"
	Content string `json:"content"`
	Level   string `json:"level"`
	SystemLineID
	IsMeta       bool                     `json:"isMeta"`
	ContextUsage json.RawMessage          `json:"contextUsage,omitempty"`
	SubmitUUID   string                   `json:"submitUuid,omitempty"` // the host's id of the command
	CommandRun   *LocalCommand            `json:"commandRun,omitempty"`
	DisplayOnly  bool                     `json:"isDisplayOnly,omitempty"`
	Outcome      *SlashCommandFailureKind `json:"commandOutcome,omitempty"`
	LineTrailer
}

// QueueLine is queue-operation: a prompt entering or leaving the queue.
type QueueLine struct {
	Type      string  `json:"type"`      // "queue-operation"
	Operation string  `json:"operation"` // "enqueue", "dequeue", "remove" or "popAll"
	Timestamp string  `json:"timestamp"`
	SessionID string  `json:"sessionId"`
	Content   *string `json:"content,omitempty"` // text of a prompt that is added or removed
	// The following keys are set only for "remove".
	Reason      string `json:"reason,omitempty"` // "absorbed_mid_turn"
	CommandUUID string `json:"commandUuid,omitempty"`
	DeliveryID  string `json:"deliveryId,omitempty"`
}

// WorktreeSession describes a worktree and the original directory of its session.
type WorktreeSession struct {
	Original       string `json:"originalCwd"`
	BeforeEntering string `json:"preEnterOriginalCwd"`
	Path           string `json:"worktreePath"`
	Name           string `json:"worktreeName"`
	Branch         string `json:"worktreeBranch,omitempty"`
	OriginalBranch string `json:"originalBranch,omitempty"`
	OriginalHead   string `json:"originalHeadCommit,omitempty"`
	SessionID      string `json:"sessionId"`
}

// CostStateLine is cost-state: the session's usage so far, which is read back when the session is resumed. Durations
// are in milliseconds, StartTime is Unix milliseconds.
type CostStateLine struct {
	Type                           string                    `json:"type"` // "cost-state"
	SessionID                      string                    `json:"sessionId"`
	TotalCostUSD                   float64                   `json:"totalCostUSD"`
	TotalAPIDuration               int                       `json:"totalAPIDuration"`
	TotalAPIDurationWithoutRetries int                       `json:"totalAPIDurationWithoutRetries"`
	TotalToolDuration              int                       `json:"totalToolDuration"`
	TotalLinesAdded                int                       `json:"totalLinesAdded"`
	TotalLinesRemoved              int                       `json:"totalLinesRemoved"`
	TotalDuration                  int                       `json:"totalDuration"`
	StartTime                      int64                     `json:"startTime"`
	ModelUsage                     map[string]LineModelUsage `json:"modelUsage"`
	HasUnknownModelCost            bool                      `json:"hasUnknownModelCost"`
}

// LineModelUsage is the part of a [ModelUsage] that a transcript records.
type LineModelUsage struct {
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

package protocol

import "encoding/json"

// Envelope is what user, assistant, attachment and system lines of a
// transcript share (spec: cli-contract 8.3).
type Envelope struct {
	// ParentUUID is the line before this one in the conversation; nil at its
	// start.
	ParentUUID  *string `json:"parentUuid"`
	IsSidechain bool    `json:"isSidechain"`
	AgentID     string  `json:"agentId,omitempty"`
	UUID        string  `json:"uuid"`
	Timestamp   string  `json:"timestamp"`
	UserType    string  `json:"userType"`   // "external"
	Entrypoint  string  `json:"entrypoint"` // "sdk-cli", "sdk-py", "sdk-ts"
	CWD         string  `json:"cwd"`
	SessionID   string  `json:"sessionId"`
	Version     string  `json:"version"`
	GitBranch   string  `json:"gitBranch"`
}

// UserLine is a prompt, a tool result or injected text. Only prompts have
// PromptSource, TurnOrigin and PermissionMode; only tool results have the last
// three.
type UserLine struct {
	Envelope
	Type     string      `json:"type"` // "user"
	PromptID string      `json:"promptId,omitempty"`
	Message  UserContent `json:"message"`
	IsMeta   bool        `json:"isMeta,omitempty"`
	// RefusedMessageID is the refused reply that an injected text follows.
	RefusedMessageID string         `json:"refusedMessageId,omitempty"`
	PermissionMode   PermissionMode `json:"permissionMode,omitempty"`
	PromptSource     string         `json:"promptSource,omitempty"` // "sdk" or "system"
	TurnOrigin       string         `json:"turnOrigin,omitempty"`   // "sdk" or "task_notification"
	MergedUUIDs      []string       `json:"mergedSendUuids,omitempty"`

	ToolUseResult           any           `json:"toolUseResult,omitempty"`
	SourceToolAssistantUUID string        `json:"sourceToolAssistantUUID,omitempty"`
	PermissionDecision      *LineDecision `json:"permissionDecision,omitempty"`
}

// LineDecision is a [PermissionDecision] in the spelling of transcripts.
type LineDecision struct {
	Decision   string `json:"decision"`
	Source     string `json:"source"`
	ReasonType string `json:"reasonType,omitempty"`
}

// AssistantLine is one block of a model message, with the stop reason and the
// usage that the message ended with.
type AssistantLine struct {
	Envelope
	Type               string           `json:"type"` // "assistant"
	Message            AssistantMessage `json:"message"`
	RequestID          string           `json:"requestId,omitempty"`
	MadeBy             string           `json:"madeBy"` // "model" or "other"
	ThinkingDisplay    string           `json:"thinkingDisplay,omitempty"`
	ThinkingDurationMS *int             `json:"thinkingDurationMs,omitempty"`
	IsAbortedMidStream bool             `json:"isAbortedMidStream,omitempty"`
	IsAPIErrorMessage  bool             `json:"isApiErrorMessage,omitempty"`
	Error              string           `json:"error,omitempty"`
	APIErrorStatus     int              `json:"apiErrorStatus,omitempty"`
	APIErrorType       string           `json:"apiErrorType,omitempty"`
	APIError           string           `json:"apiError,omitempty"`
}

// AttachmentLine is context that the CLI gave the model beside the prompt.
// Attachment is an object with a type.
type AttachmentLine struct {
	Envelope
	Type         string     `json:"type"` // "attachment"
	Attachment   any        `json:"attachment"`
	Rendered     []Rendered `json:"rendered,omitempty"`
	RenderedRole string     `json:"renderedRole,omitempty"` // "system" or "user"
}

// Rendered is one text that the model reads of an attachment.
type Rendered struct {
	Content string `json:"content"`
}

// Reminder is text of the CLI's own as the model reads it.
func Reminder(text string) string { return "<system-reminder>\n" + text + "\n</system-reminder>" }

// APIErrorLine is system/api_error: a failed request that is tried again.
type APIErrorLine struct {
	Envelope
	Type         string       `json:"type"`    // "system"
	Subtype      string       `json:"subtype"` // "api_error"
	Level        string       `json:"level"`   // "error"
	Source       string       `json:"source"`  // "request_retry"
	Error        RequestError `json:"error"`
	RetryAttempt int          `json:"retryAttempt"`
	RetryInMS    int          `json:"retryInMs"`
	MaxRetries   int          `json:"maxRetries"`
}

// RequestError describes a failed API request.
type RequestError struct {
	Message       string           `json:"message"`
	Formatted     string           `json:"formatted"`
	Status        int              `json:"status,omitempty"` // 0 = no response
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
	Envelope
	Type              string `json:"type"`    // "system"
	Subtype           string `json:"subtype"` // "informational"
	Content           string `json:"content"`
	Level             string `json:"level"`
	IsMeta            bool   `json:"isMeta"`
	PreventContinuing bool   `json:"preventContinuation,omitempty"`
}

// CompactLine is system/compact_boundary: what was said before it is no longer
// in the conversation.
type CompactLine struct {
	Envelope
	Type              string      `json:"type"`    // "system"
	Subtype           string      `json:"subtype"` // "compact_boundary"
	Content           string      `json:"content"`
	Level             string      `json:"level"`
	IsMeta            bool        `json:"isMeta"`
	LogicalParentUUID string      `json:"logicalParentUuid"`
	Metadata          LineCompact `json:"compactMetadata"`
}

// LineCompact is a [CompactMetadata] in the spelling of transcripts.
type LineCompact struct {
	Trigger    string `json:"trigger"`
	PreTokens  int    `json:"preTokens"`
	PostTokens int    `json:"postTokens"`
	DurationMS int    `json:"durationMs"`
	Dropped    int    `json:"cumulativeDroppedTokens"`
}

// LocalCommandLine is system/local_command: what a slash command said that ran
// without the model.
type LocalCommandLine struct {
	Envelope
	Type         string          `json:"type"`    // "system"
	Subtype      string          `json:"subtype"` // "local_command"
	Content      string          `json:"content"`
	Level        string          `json:"level"`
	IsMeta       bool            `json:"isMeta"`
	CommandRun   *LocalCommand   `json:"commandRun,omitempty"`
	ContextUsage json.RawMessage `json:"contextUsage,omitempty"`
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

// CostStateLine is cost-state: the session's usage so far, read back when it
// is resumed. Durations are in milliseconds, StartTime is Unix milliseconds.
type CostStateLine struct {
	Type                           string              `json:"type"` // "cost-state"
	SessionID                      string              `json:"sessionId"`
	TotalCostUSD                   float64             `json:"totalCostUSD"`
	TotalAPIDuration               int                 `json:"totalAPIDuration"`
	TotalAPIDurationWithoutRetries int                 `json:"totalAPIDurationWithoutRetries"`
	TotalToolDuration              int                 `json:"totalToolDuration"`
	TotalDuration                  int                 `json:"totalDuration"`
	StartTime                      int64               `json:"startTime"`
	TotalLinesAdded                int                 `json:"totalLinesAdded"`
	TotalLinesRemoved              int                 `json:"totalLinesRemoved"`
	HasUnknownModelCost            bool                `json:"hasUnknownModelCost"`
	ModelUsage                     map[string]LineCost `json:"modelUsage"`
}

// LineCost is the part of a [ModelUsage] that a transcript keeps.
type LineCost struct {
	InputTokens              int     `json:"inputTokens"`
	OutputTokens             int     `json:"outputTokens"`
	CacheReadInputTokens     int     `json:"cacheReadInputTokens"`
	CacheCreationInputTokens int     `json:"cacheCreationInputTokens"`
	WebSearchRequests        int     `json:"webSearchRequests"`
	CostUSD                  float64 `json:"costUSD"`
	ThinkingTokens           int     `json:"thinkingTokens"`
	CacheCreation5m          int     `json:"cacheCreationEphemeral5mInputTokens"`
	CacheCreation1h          int     `json:"cacheCreationEphemeral1hInputTokens"`
}

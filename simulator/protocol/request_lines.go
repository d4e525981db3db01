package protocol

import "encoding/json"

// RequestShapeLine is a line of type api-request-shape. It has the system prompt and tools of the following requests.
type RequestShapeLine struct {
	Type      string               `json:"type"` // "api-request-shape"
	SessionID string               `json:"sessionId"`
	AgentID   string               `json:"agentId,omitempty"`
	ShapeHash string               `json:"shapeHash"`
	Timestamp string               `json:"timestamp"`
	Version   string               `json:"version"`
	Shape     SystemPromptAndTools `json:"shape"`
}

// SystemPromptAndTools is the part of a request to the model that seldom changes.
type SystemPromptAndTools struct {
	System []TextBlock   `json:"system"`
	Tools  []RequestTool `json:"tools,omitempty"`
}

// RequestTool is a tool definition as the request to the API contains it.
type RequestTool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	DeferLoading bool            `json:"defer_loading,omitempty"`
}

// RequestBlobLine is a line of type api-request-blob. It contains a request message that no other line contains.
type RequestBlobLine struct {
	Type      string         `json:"type"` // "api-request-blob"
	SessionID string         `json:"sessionId"`
	AgentID   string         `json:"agentId,omitempty"`
	Hash      string         `json:"hash"`
	Message   RequestMessage `json:"message"`
}

// RequestMessage is one of the messages that a request to the API contains.
type RequestMessage struct {
	Role         string        `json:"role"`                    // "user", "assistant" or "system"
	Content      any           `json:"content"`                 // a list of blocks, or a text
	OutputConfig *OutputConfig `json:"output_config,omitempty"` // set for the first system message
}

// OutputConfig sets the effort of the model.
type OutputConfig struct {
	Effort string `json:"effort"`
}

// RequestLine is a line of type api-request. It records one request to the model.
type RequestLine struct {
	Type          string             `json:"type"` // "api-request"
	SessionID     string             `json:"sessionId"`
	AgentID       string             `json:"agentId,omitempty"`
	ID            string             `json:"id"`
	Timestamp     string             `json:"timestamp"`
	Version       string             `json:"version"`
	QuerySource   string             `json:"querySource"` // "sdk", "agent:builtin:…" or "agent:custom"
	ShapeHash     string             `json:"shapeHash"`
	Params        RequestParams      `json:"params"`
	Base          string             `json:"base,omitempty"` // id of the previous request of the same process
	Keep          int                `json:"keep"`           // number of messages taken over from Base
	Tail          []string           `json:"tail"`           // hashes of the messages that follow those taken over from Base
	CacheControl  []CacheControlMark `json:"cacheControl"`
	EchoInputs    bool               `json:"echoWireToolInputs"`
	Thread        RequestThread      `json:"thread"`
	RequestDigest string             `json:"requestDigest"`
}

// RequestThread is the thread that a request belongs to.
type RequestThread struct {
	Type string `json:"type"` // "none"
}

// CacheControlMark marks the position up to which the API may cache a request.
type CacheControlMark struct {
	Path  []any             `json:"path"`
	Value map[string]string `json:"value"`
}

// RequestParams are the parameters of a request except its messages.
type RequestParams struct {
	Model             string                    `json:"model"`
	Betas             []string                  `json:"betas"`
	MaxTokens         int                       `json:"max_tokens"`
	Thinking          *RequestThinking          `json:"thinking,omitempty"`
	Temperature       int                       `json:"temperature,omitempty"` // set if the model could think but must not
	ContextManagement *RequestContextManagement `json:"context_management,omitempty"`
	OutputConfig      *OutputConfig             `json:"output_config,omitempty"`
	Speed             string                    `json:"speed,omitempty"` // "fast" in fast mode
}

// RequestThinking specifies whether the model may think, and which part of its thinking is shown.
type RequestThinking struct {
	BudgetTokens int    `json:"budget_tokens,omitempty"`
	Type         string `json:"type"`              // "adaptive", "enabled" or "disabled"
	Display      string `json:"display,omitempty"` // "updates" or "omitted"
}

// RequestContextManagement specifies the content that the API removes from a long conversation.
type RequestContextManagement struct {
	Edits []ContextManagementRule `json:"edits"`
}

// ContextManagementRule is one rule of a [RequestContextManagement].
type ContextManagementRule struct {
	Type string `json:"type"`
	Keep string `json:"keep"`
}

// SessionTurnPosition is the position of a turn in its session, from 1: TurnIndex counts all prompts, PromptIndex only those that a
// user typed in a terminal.
type SessionTurnPosition struct {
	PromptIndex int `json:"promptIndex"`
	TurnIndex   int `json:"turnIndex"`
}

// TurnDurationLine is the line system/turn_duration. It records how long a turn took in a terminal.
type TurnDurationLine struct {
	LineHead
	Type         string `json:"type"`    // "system"
	Subtype      string `json:"subtype"` // "turn_duration"
	DurationMS   int    `json:"durationMs"`
	MessageCount int    `json:"messageCount"`                          // number of lines with an id before this one
	AgentCount   int    `json:"pendingBackgroundAgentCount,omitempty"` // number of background agents that still run
	SystemLineID
	IsMeta bool `json:"isMeta"`
	LineTrailer
}

// RemainingLimits are the limits in the reminders that tell the model how much is left; 0 means no limit.
type RemainingLimits struct {
	Tokens              int // number of remaining tokens
	BudgetUSD, SpentUSD float64
}

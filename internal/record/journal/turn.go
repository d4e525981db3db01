package journal

import (
	"encoding/json"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Prompt is a prompt that starts a turn.
type Prompt struct {
	UUID   string          `json:"uuid"`             // UUID is the id of the prompt's transcript line.
	Prompt string          `json:"prompt"`           // Prompt is the text of the prompt.
	Blocks json.RawMessage `json:"blocks,omitempty"` // Blocks are the content blocks of a prompt that is more than text.
	// WrittenByCLI is true if the CLI itself wrote the prompt: feedback of a hook, or a reminder.
	WrittenByCLI bool `json:"injected,omitempty"`
}

// Attachment is content in addition to the messages: a file that the prompt mentions, or the result of a hook.
type Attachment struct {
	Attachment any `json:"attachment"` // Attachment is an object with a `type`.
}

// Context is text that a request contains in addition to prompt and results, and that no earlier request contained.
// Examples are instruction files, an output style, MCP server instructions, output of hooks, and files that a prompt
// mentions. In expressions, the variable `context` contains these texts.
type Context struct {
	Texts []string `json:"texts"` // Texts as the model receives them.
}

// Match is the rule of the scenario that answered the preceding prompt.
type Match struct {
	// Rule is the rule: `responses[2]`, `responses[2].turns[0]`, `default_response`, or empty if no rule answered.
	Rule   string `json:"rule"`
	File   string `json:"file,omitempty"`   // File that contains the rule.
	Line   int    `json:"line,omitempty"`   // Line is the number of the rule's first line.
	Prompt string `json:"prompt,omitempty"` // Prompt that was matched.
	// WrittenByCLI is true if the CLI itself wrote the prompt: feedback of a hook, or a reminder.
	WrittenByCLI bool     `json:"injected,omitempty"`
	Nearest      []string `json:"nearest,omitempty"` // Nearest are the rules nearest to a prompt that no rule matches.
}

// Unplayed is a step of a response that the preceding turn did not reach.
type Unplayed struct {
	Text string `json:"text"`           // Text describes the step.
	File string `json:"file,omitempty"` // File of the step.
	Line int    `json:"line,omitempty"` // Line of the step.
}

// Model is a part of a message from the model: one or more content blocks.
type Model struct {
	MessageID string `json:"message_id"` // MessageID is the id of the message.
	Model     string `json:"model"`      // Model is the name of the model.
	// Blocks are content blocks of the API: `text`, `thinking`, `tool_use`.
	Blocks       json.RawMessage `json:"blocks"`
	StopReason   string          `json:"stop_reason,omitempty"` // StopReason of the message, if it is known at this point.
	Agent        string          `json:"agent,omitempty"`       // Agent is the id of the call that started the sub-agent.
	Error        string          `json:"error,omitempty"`       // Error is the kind of failure that occurred instead of a message.
	InputTokens  int             `json:"input_tokens"`          // InputTokens of the request, estimated or set by the scenario.
	OutputTokens int             `json:"output_tokens"`         // OutputTokens of the message, estimated or set by the scenario.
	// Continued is true if the message and the preceding one are parts of the same API response. The preceding message then has no calls.
	Continued bool `json:"goes_on,omitempty"`
	HasMore   bool `json:"more,omitempty"` // HasMore is true if the script has another message after this one.
}

// Retry is a failed request that is retried.
type Retry struct {
	Attempt int    `json:"attempt"`          // Attempt is the number of the failed attempt, from 1.
	Status  int    `json:"status,omitempty"` // Status is the HTTP status; absent if there was no response.
	Message string `json:"message"`          // Message describes the failure.
}

// Result is the result of a prompt.
type Result struct {
	Subtype           string   `json:"subtype"`                    // Subtype is `success` or one of the error subtypes.
	IsError           bool     `json:"is_error"`                   // IsError is true if the prompt failed.
	Result            *string  `json:"result,omitempty"`           // Result is the result text.
	Errors            []string `json:"errors,omitempty"`           // Errors are the error messages.
	NumTurns          int      `json:"num_turns"`                  // NumTurns is the number of messages of the model.
	TerminalReason    string   `json:"terminal_reason,omitempty"`  // TerminalReason is the reason why the prompt ended.
	APIStatus         int      `json:"api_error_status,omitempty"` // APIStatus is the HTTP status of the failure that ended the turn.
	TotalCostUSD      float64  `json:"total_cost_usd"`             // TotalCostUSD is the cost of the session so far, in US dollars.
	PermissionDenials []Denial `json:"permission_denials"`         // PermissionDenials are the denied calls.
}

// Denial is a denied call.
type Denial struct {
	ToolName  string          `json:"tool_name"`   // ToolName is the full name of the tool.
	ToolUseID string          `json:"tool_use_id"` // ToolUseID is the call's id.
	ToolInput json.RawMessage `json:"tool_input"`  // ToolInput is the input from the model.
}

// Warning is a message for the user on stderr.
type Warning struct {
	Text string `json:"text"` // Text of the warning.
}

func (Prompt) kind() string     { return "prompt" }
func (Attachment) kind() string { return "attachment" }
func (Context) kind() string    { return "context" }
func (Match) kind() string      { return "match" }
func (Model) kind() string      { return "model" }
func (Unplayed) kind() string   { return "unplayed" }
func (Retry) kind() string      { return "retry" }
func (Result) kind() string     { return "result" }
func (Warning) kind() string    { return "warning" }

func modelLine(ev *protocol.AssistantEvent) (Model, error) {
	blocks, err := protocol.Marshal(ev.Message.Content)
	l := Model{MessageID: ev.Message.ID, Model: ev.Message.Model, Blocks: blocks, Error: ev.Error, InputTokens: ev.Message.Usage.InputTokens, OutputTokens: ev.Message.Usage.OutputTokens}
	if ev.Final != nil {
		l.Continued, l.HasMore = ev.Final.ContinuesPrevious, ev.Final.HasMore
	}
	if ev.Message.StopReason != nil {
		l.StopReason = *ev.Message.StopReason
	}
	if ev.ParentToolUseID != nil {
		l.Agent = *ev.ParentToolUseID
	}
	return l, err
}

func resultLine(ev *protocol.ResultEvent) Result {
	l := Result{
		Subtype: ev.Subtype, IsError: ev.IsError, Result: ev.Result, Errors: ev.Errors, NumTurns: ev.NumTurns,
		TerminalReason: ev.TerminalReason, TotalCostUSD: ev.TotalCostUSD, PermissionDenials: []Denial{},
	}
	if ev.APIErrorStatus.Value != nil {
		l.APIStatus = *ev.APIErrorStatus.Value
	}
	for _, d := range ev.PermissionDenials {
		l.PermissionDenials = append(l.PermissionDenials, Denial(d))
	}
	return l
}

// blocksUnlessText returns the blocks of content that is more than text; nil means it is text.
func blocksUnlessText(c protocol.Content) (json.RawMessage, error) {
	if c.Blocks == nil {
		return nil, nil
	}
	return protocol.Marshal(c.Blocks)
}

package journal

import (
	"encoding/json"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Prompt is a prompt that a turn begins with.
type Prompt struct {
	// UUID is that of the prompt's transcript line.
	UUID string `json:"uuid"`
	// Prompt is its text.
	Prompt string `json:"prompt"`
	// Blocks are its parts when it is more than text.
	Blocks json.RawMessage `json:"blocks,omitempty"`
	// Injected says that the CLI itself wrote it: feedback of a hook, a reminder.
	Injected bool `json:"injected,omitempty"`
}

// Attachment is something beside the messages: a file that the prompt mentions,
// what a hook did.
type Attachment struct {
	// Attachment is an object with a `type`.
	Attachment any `json:"attachment"`
}

// Context is what a request says to the model beside its prompt or its results,
// and none before it said: files of instructions, an output style, what MCP
// servers say of themselves, texts of hooks, files that a prompt mentions. It is
// what expressions see as `context`.
type Context struct {
	// Texts as the model reads them.
	Texts []string `json:"texts"`
}

// Match says which rule of the scenario answered the prompt before it.
type Match struct {
	// Rule is `responses[2]`, `responses[2].turns[0]`, `default_response`, or empty
	// for none.
	Rule string `json:"rule"`
	// File of the rule.
	File string `json:"file,omitempty"`
	// Line of the rule.
	Line int `json:"line,omitempty"`
	// Prompt that was matched.
	Prompt string `json:"prompt,omitempty"`
	// Injected says that the CLI itself wrote it: feedback of a hook, a reminder.
	Injected bool `json:"injected,omitempty"`
	// Nearest are the rules that come nearest to a prompt that none answers.
	Nearest []string `json:"nearest,omitempty"`
}

// Unplayed is a step of a response that the turn before it did not come to.
type Unplayed struct {
	// Text says which step.
	Text string `json:"text"`
	// File of the step.
	File string `json:"file,omitempty"`
	// Line of the step.
	Line int `json:"line,omitempty"`
}

// Model is a part of what the model said: one block of a message.
type Model struct {
	// MessageID is the message that the block is part of.
	MessageID string `json:"message_id"`
	// Model is the name of the model.
	Model string `json:"model"`
	// Blocks are blocks of the API: `text`, `thinking`, `tool_use`.
	Blocks json.RawMessage `json:"blocks"`
	// StopReason of the message, where it is known by then.
	StopReason string `json:"stop_reason,omitempty"`
	// Agent is the call that started the sub-agent which says this.
	Agent string `json:"agent,omitempty"`
	// Error is the kind of failure that stands in place of a message.
	Error string `json:"error,omitempty"`
	// InputTokens of the request, estimated or scripted.
	InputTokens int `json:"input_tokens"`
	// OutputTokens of the message, estimated or scripted.
	OutputTokens int `json:"output_tokens"`
	// GoesOn says that the message goes on with the one before it, which had no calls:
	// over the API both are the answer to one request.
	GoesOn bool `json:"goes_on,omitempty"`
	// More says that another message of the script follows.
	More bool `json:"more,omitempty"`
}

// Retry is a failed request that is made again.
type Retry struct {
	// Attempt is the number of the failed one, from 1.
	Attempt int `json:"attempt"`
	// Status is that of HTTP; absent = no response.
	Status int `json:"status,omitempty"`
	// Message says what went wrong.
	Message string `json:"message"`
}

// Result is the end of a prompt.
type Result struct {
	// Subtype is `success` or one of the error subtypes.
	Subtype string `json:"subtype"`
	// IsError says that the prompt failed.
	IsError bool `json:"is_error"`
	// Result is the text of the result.
	Result *string `json:"result,omitempty"`
	// Errors are the texts of errors.
	Errors []string `json:"errors,omitempty"`
	// NumTurns counts the messages of the model.
	NumTurns int `json:"num_turns"`
	// TerminalReason says why the prompt ended.
	TerminalReason string `json:"terminal_reason,omitempty"`
	// APIStatus is the HTTP status of the failure that ended it.
	APIStatus int `json:"api_error_status,omitempty"`
	// TotalCostUSD is what the session has cost so far, in US dollars.
	TotalCostUSD float64 `json:"total_cost_usd"`
	// PermissionDenials are the calls that were not permitted.
	PermissionDenials []Denial `json:"permission_denials"`
}

// Denial is a call that was not permitted.
type Denial struct {
	// ToolName is the canonical name.
	ToolName string `json:"tool_name"`
	// ToolUseID is the call's id.
	ToolUseID string `json:"tool_use_id"`
	// ToolInput is the input that the model gave.
	ToolInput json.RawMessage `json:"tool_input"`
}

// Warning is a text for the user on stderr.
type Warning struct {
	// Text of the warning.
	Text string `json:"text"`
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

// promptLine and the others make the lines of events.
func promptLine(ev *protocol.PromptAccepted) (Prompt, error) {
	blocks, err := blocksOf(ev.Content)
	return Prompt{UUID: ev.UUID, Prompt: ev.Content.Plain(), Blocks: blocks, Injected: ev.Injected}, err
}

func modelLine(ev *protocol.Assistant) (Model, error) {
	blocks, err := protocol.Marshal(ev.Message.Content)
	l := Model{
		MessageID: ev.Message.ID, Model: ev.Message.Model, Blocks: blocks, Error: ev.Error,
		InputTokens: ev.Message.Usage.InputTokens, OutputTokens: ev.Message.Usage.OutputTokens,
	}
	if ev.Final != nil {
		l.GoesOn, l.More = ev.Final.ContinuesPrevious, ev.Final.HasMore
	}
	if ev.Message.StopReason != nil {
		l.StopReason = *ev.Message.StopReason
	}
	if ev.ParentToolUseID != nil {
		l.Agent = *ev.ParentToolUseID
	}
	return l, err
}

func resultLine(ev *protocol.Result) Result {
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

// blocksOf are the parts of a content that is more than text; nil = it is text.
func blocksOf(c protocol.Content) (json.RawMessage, error) {
	if c.Blocks == nil {
		return nil, nil
	}
	return protocol.Marshal(c.Blocks)
}

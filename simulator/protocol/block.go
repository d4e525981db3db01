package protocol

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Block is one content block of a message (Messages API "content"). The set is closed: [TextBlock], [ThinkingBlock],
// [ToolUse], [ToolResultBlock], [ImageBlock], [ServerToolCall] and [RawBlock] for every other kind.
type Block interface{ block() }

// TextBlock is plain text. [Text] creates one with Type set.
type TextBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Citations json.RawMessage `json:"citations,omitempty"` // a JSON list of the text's sources; nil if none exist
	// CacheControl is set by hosts; it may be nil.
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

// ThinkingBlock is the model's reasoning. Signature is opaque and never empty on the wire.
type ThinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// ToolUse is one tool call of the model. Input is a JSON object, kept byte for byte as it arrived.
type ToolUse struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	// Script is the scenario's instructions for this call; nil means none. It is not encoded.
	Script *CallScript `json:"-"`
	// Hook is the decision of a PreToolUse hook before the permission check; nil means none. It is not encoded.
	Hook *HookVerdict `json:"-"`
	// Agent is the sub-agent that makes the call; nil for the main conversation. It is not encoded.
	Agent *AgentRef `json:"-"`
	// UserModified is true if the host has changed the input, unless it changed only the file path. Results report this
	// as userModified. It is not encoded.
	UserModified bool `json:"-"`
	// Siblings is the number of other calls in the same message. It is not encoded.
	Siblings int `json:"-"`
	// Round is the position of the call's message among the messages with calls, from 1. It is not encoded.
	Round int `json:"-"`
	// Written is the input as the model wrote it, which the stream shows. It is not encoded.
	Written json.RawMessage `json:"-"`
	// ObservedInput is the input that hosts and hooks see, for example with an absolute path. Nil means that they see
	// Input. It is not encoded.
	ObservedInput json.RawMessage `json:"-"`
	// KeyOrder are the keys of the tool's input schema, in its order; nil means unknown. It is not encoded.
	KeyOrder []string `json:"-"`
}

// ChangeDirectoryPrefix returns the text that the CLI removes from the start of Bash commands if dir is the working directory.
func ChangeDirectoryPrefix(dir string) string { return "cd " + dir + " && " }

// CallerAgentID returns the id of the sub-agent that makes the call, or "" for the main conversation.
func (u ToolUse) CallerAgentID() string {
	if u.Agent == nil {
		return ""
	}
	return u.Agent.ID
}

// InputForModel returns the input that later requests contain: without the keys that the CLI adds to a call of SendMessage.
func (u ToolUse) InputForModel() json.RawMessage {
	if in, err := plainjson.Parse(u.Input); err == nil && u.Name == "SendMessage" {
		return in.Delete("type", "recipient", "recipient_kind", "content").Raw()
	}
	return u.Input
}

// InputForHooksAndHosts returns the input that hooks and hosts see. Its keys have the order of the schema.
func (u ToolUse) InputForHooksAndHosts() json.RawMessage {
	input := u.Input
	if u.ObservedInput != nil {
		input = u.ObservedInput
	}
	if keys, err := plainjson.Parse(input); err == nil && keys.SortKeys(u.KeyOrder) {
		return keys.Raw()
	}
	return input
}

// AgentRef identifies a running sub-agent.
type AgentRef struct {
	ID    string
	Type  string // "general-purpose", …
	Depth int    // 1 means started by the main conversation
	Dir   string // worktree in which the agent works; empty means the directory of the session
	// NoPrompts is true if no user may be asked about the agent's calls, as in the agent of a skill that the user typed.
	// Calls that need permission are denied, without an event.
	NoPrompts    bool
	Mode         string // permission mode of the agent's calls; empty means the mode of the session
	Model        string // full name of the agent's model
	Effort       string // effort level of the agent's model; empty means the level of the session
	InBackground bool
	Searches     bool // the agent's definition lists tools, but not Bash; only such an agent can have Glob and Grep
}

// HookVerdict is the decision of a PreToolUse hook. "allow" permits a call that would need a question, but does not
// overrule deny and ask rules. "ask" causes a question about a call that would be permitted.
type HookVerdict struct {
	Decision string // "allow" or "ask"
	Reason   string
	Origin   string // "settings", or [PluginHookOriginPrefix] and the name of the plugin; empty means hooks of several sources with the same decision
}

// PluginHookOriginPrefix precedes the plugin's name in [HookVerdict.Origin].
const PluginHookOriginPrefix = "plugin:"

// CallScript is the part of a scenario about one tool call.
type CallScript struct {
	Result   *string         // canned result text; nil if the tool runs
	IsError  bool            // the canned result is an error
	DelayMS  int             // wait before the call runs
	Subagent *SubagentScript // scripts the agent of an Agent call; if it is nil, the scenario's rules answer the agent's prompt
}

// SubagentScript is the part of a scenario about the sub-agent that one call starts.
type SubagentScript struct {
	Type       string // agent type if the call's input has none
	Background *bool  // run in the background unless the input says otherwise; nil means that the script does not set it
	Steps      any    // the agent's messages, in the form of the scenario engine
}

// ToolResultBlock is the result of a [ToolUse] as the model sees it.
type ToolResultBlock struct {
	ToolUseID string  `json:"tool_use_id"`
	Type      string  `json:"type"`
	Content   Content `json:"content"`
	// IsError is absent for most successes, false for Bash successes, true for errors (spec: cli-observed 2).
	IsError *bool `json:"is_error,omitempty"`
}

// MarshalJSON implements [json.Marshaler]. The keys have the order of the real CLI, which is a different one for failed calls.
func (b ToolResultBlock) MarshalJSON() ([]byte, error) {
	if b.IsError == nil || !*b.IsError {
		type success ToolResultBlock
		return Marshal(success(b))
	}
	return Marshal(struct {
		Type      string  `json:"type"`
		Content   Content `json:"content"`
		IsError   bool    `json:"is_error"`
		ToolUseID string  `json:"tool_use_id"`
	}{b.Type, b.Content, true, b.ToolUseID})
}

// ImageBlock is a base64 image.
type ImageBlock struct {
	Type   string      `json:"type"`
	Source ImageSource `json:"source"`
}

// ImageSource contains the data of an image; Type is "base64".
type ImageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// ServerToolCall is a call of a tool that the API itself runs. Its result is another block of the same message.
type ServerToolCall struct {
	Type  string          `json:"type"` // "server_tool_use"
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// RawBlock is a block of an unknown kind, kept unchanged.
type RawBlock struct{ JSON json.RawMessage }

// MarshalJSON returns the original JSON.
func (b RawBlock) MarshalJSON() ([]byte, error) { return b.JSON, nil }

func (TextBlock) block()       {}
func (ThinkingBlock) block()   {}
func (ToolUse) block()         {}
func (ToolResultBlock) block() {}
func (ImageBlock) block()      {}
func (ServerToolCall) block()  {}
func (RawBlock) block()        {}

// Text returns a text block.
func Text(s string) TextBlock { return TextBlock{Type: "text", Text: s} }

// Image returns an image block from base64 data.
func Image(mediaType, base64 string) ImageBlock {
	return ImageBlock{Type: "image", Source: ImageSource{Type: "base64", MediaType: mediaType, Data: base64}}
}

// Content is the content of a message or tool result: blocks, or a string if Blocks is nil. The zero value is "".
type Content struct {
	Text   string
	Blocks []Block
}

// MarshalJSON writes a JSON string or an array of blocks.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.Blocks == nil {
		return Marshal(c.Text)
	}
	return Marshal(c.Blocks)
}

// UnmarshalJSON reads a string or an array of blocks; null is "".
func (c *Content) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	*c = Content{}
	if len(data) == 0 || data[0] != '[' {
		return json.Unmarshal(data, &c.Text)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	c.Blocks = make([]Block, 0, len(raw))
	for _, r := range raw {
		b, err := UnmarshalBlock(r)
		if err != nil {
			return err
		}
		c.Blocks = append(c.Blocks, b)
	}
	return nil
}

// Plain returns the text of the content: the string, or the text blocks, each on a new line. Other blocks are left out.
func (c Content) Plain() (joinedTextBlocks string) {
	if c.Blocks == nil {
		return c.Text
	}
	var texts []string
	for _, b := range c.Blocks {
		if t, ok := b.(TextBlock); ok {
			if n := len(texts); n > 0 {
				texts[n-1] = strings.TrimSuffix(texts[n-1], "\n")
			}
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// SplitUserTypedText separates the text that the user typed from the blocks before it. The typed text is the string or the last
// block. ok is false if the last block is not a text.
func (c Content) SplitUserTypedText() (precedingBlocks []Block, typedText string, ok bool) {
	if last := len(c.Blocks) - 1; last >= 0 {
		typed, ok := c.Blocks[last].(TextBlock)
		return c.Blocks[:last], typed.Text, ok
	}
	return nil, c.Text, c.Blocks == nil
}

// UnmarshalBlock decodes one block. An unknown kind becomes a [RawBlock].
func UnmarshalBlock(data json.RawMessage) (Block, error) {
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, err
	}
	switch kind.Type {
	case "text":
		return decodeBlock[TextBlock](data)
	case "thinking":
		return decodeBlock[ThinkingBlock](data)
	case "tool_use":
		return decodeBlock[ToolUse](data)
	case "server_tool_use":
		return decodeBlock[ServerToolCall](data)
	case "tool_result":
		return decodeBlock[ToolResultBlock](data)
	case "image":
		var b ImageBlock
		if err := json.Unmarshal(data, &b); err == nil && b.Source.Type == "base64" {
			return b, nil
		}
	}
	return RawBlock{JSON: bytes.Clone(data)}, nil
}

func decodeBlock[B Block](data []byte) (Block, error) {
	var b B
	err := json.Unmarshal(data, &b)
	return b, err
}

// FormatNumber formats a number as JSON and the real CLI do: 0.5, 1e-7.
func FormatNumber(f float64) string {
	out, err := Marshal(f)
	if err != nil { // the number is infinite or NaN
		return "null"
	}
	return string(out)
}

// Marshal is json.Marshal without HTML escaping, as the real CLI writes its frames: `<`, `>` and `&` are written
// unchanged, U+2028 and U+2029 are escaped.
func Marshal(v any) ([]byte, error) { return plainjson.Marshal(v) }

// Field is one key of a [SystemEvent] or [Frame] event.
type Field struct {
	Key   string
	Value any
}

// MarshalFields writes fields as one JSON object, in their order.
func MarshalFields[F ~struct {
	Key   string
	Value any
}](parts ...[]F) ([]byte, error) {
	var object plainjson.Object
	for _, f := range slices.Concat(parts...) {
		value, err := Marshal(Field(f).Value)
		if err != nil {
			return nil, err
		}
		object = append(object, plainjson.Member{Key: Field(f).Key, Value: value})
	}
	return object.Raw(), nil
}

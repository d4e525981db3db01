package protocol

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Block is one content block of a message (Messages API "content"). The set
// is closed: [TextBlock], [ThinkingBlock], [ToolUse], [ToolResultBlock],
// [ImageBlock], [ServerCall] and [RawBlock] for every other kind.
type Block interface{ block() }

// TextBlock is plain text. Make it with [Text], which sets Type.
type TextBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Citations are where the text comes from, a JSON list; nil = none.
	Citations json.RawMessage `json:"citations,omitempty"`
	// CacheControl is a host's; nil = none.
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

// ThinkingBlock is the model's reasoning; Signature is opaque and never empty
// on the wire.
type ThinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// ToolUse is one tool call of the model. Input is a JSON object, kept byte for
// byte as the scenario (or the wire) gave it.
type ToolUse struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	// Script is what the scenario says about this very call; nil = nothing.
	// It never crosses the process boundary.
	Script *CallScript `json:"-"`
	// Hook is the verdict a PreToolUse hook gave before permission is decided;
	// nil = none. It never crosses the process boundary.
	Hook *HookVerdict `json:"-"`
	// Agent is the sub-agent that makes the call; nil = the main conversation.
	// It never crosses the process boundary.
	Agent *AgentRef `json:"-"`
	// Siblings is how many other calls the same message makes. It never crosses
	// the process boundary.
	Siblings int `json:"-"`
	// Seen is the input as hooks and hosts see it: a file's path is absolute
	// there; nil = as it is. It never crosses the process boundary.
	Seen json.RawMessage `json:"-"`
}

// Observed is the input as hooks and hosts see it.
func (u ToolUse) Observed() json.RawMessage {
	if u.Seen != nil {
		return u.Seen
	}
	return u.Input
}

// AgentRef names a running sub-agent.
type AgentRef struct {
	ID    string
	Type  string // "general-purpose", …
	Depth int    // 1 = started by the main conversation
}

// HookVerdict is what a PreToolUse hook says about permission: "allow" skips
// asking but no deny or ask rule, "ask" asks in any case.
type HookVerdict struct {
	Decision string // "allow" or "ask"
	Reason   string
	Origin   string // "settings", or [PluginHooks] and the name; empty = hooks from several places
}

// PluginHooks stands before the name of the plugin that a hook comes from.
const PluginHooks = "plugin:"

// CallScript carries the scenario's wishes for one tool call.
type CallScript struct {
	Result  *string // canned result text; nil = none
	IsError bool    // the canned result is an error
	DelayMS int     // wait before the call runs
	// Subagent scripts the agent that an Agent call starts; nil = the agent's
	// prompt is answered by the rules like any other.
	Subagent *SubagentScript
}

// SubagentScript is what the scenario says about the agent of one call.
type SubagentScript struct {
	Type       string // kind of agent when the call's input names none
	Background bool   // the call returns at once when its input does not say
	// Steps are the agent's messages, for the scenario engine that made them.
	Steps any
}

// ToolResultBlock is the answer to a [ToolUse], as the model sees it.
type ToolResultBlock struct {
	ToolUseID string  `json:"tool_use_id"`
	Type      string  `json:"type"`
	Content   Content `json:"content"`
	// IsError is absent for most successes, false for Bash successes, true
	// for errors (spec: cli-observed 2).
	IsError *bool `json:"is_error,omitempty"`
}

// ImageBlock is a base64 image.
type ImageBlock struct {
	Type   string      `json:"type"`
	Source ImageSource `json:"source"`
}

// ImageSource holds the bytes of an image; Type is "base64".
type ImageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// ServerCall is a call of a tool that the API itself runs; its result is a
// block of the same message.
type ServerCall struct {
	Type  string          `json:"type"` // "server_tool_use"
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// RawBlock is a block of a kind not known here, kept as it came.
type RawBlock struct{ JSON json.RawMessage }

// MarshalJSON returns the block as it came.
func (b RawBlock) MarshalJSON() ([]byte, error) { return b.JSON, nil }

func (TextBlock) block()       {}
func (ThinkingBlock) block()   {}
func (ToolUse) block()         {}
func (ToolResultBlock) block() {}
func (ImageBlock) block()      {}
func (ServerCall) block()      {}
func (RawBlock) block()        {}

// Text returns a text block.
func Text(s string) TextBlock { return TextBlock{Type: "text", Text: s} }

// Image returns an image block from base64 data.
func Image(mediaType, base64 string) ImageBlock {
	return ImageBlock{Type: "image", Source: ImageSource{Type: "base64", MediaType: mediaType, Data: base64}}
}

// Content is the content of a message or tool result: a plain string or a
// list of blocks. Blocks == nil means the string form; the zero value is "".
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

// Plain returns the text of the content: the string itself, or the text
// blocks joined by newlines. Other blocks are left out.
func (c Content) Plain() string {
	if c.Blocks == nil {
		return c.Text
	}
	var texts []string
	for _, b := range c.Blocks {
		if t, ok := b.(TextBlock); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Typed parts what somebody typed from what stands before it: the string itself,
// or the last block if that is text; ok = false: it is none.
func (c Content) Typed() (before []Block, text string, ok bool) {
	if c.Blocks == nil {
		return nil, c.Text, true
	}
	last := len(c.Blocks) - 1
	if last < 0 {
		return nil, "", false
	}
	typed, ok := c.Blocks[last].(TextBlock)
	if !ok {
		return nil, "", false
	}
	return c.Blocks[:last], typed.Text, true
}

// UnmarshalBlock reads one block; a kind without a type here gives [RawBlock].
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
		return decodeBlock[ServerCall](data)
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

// Number writes a number as JSON and the real CLI do: 0.5, 1e-7.
func Number(f float64) string {
	out, err := Marshal(f)
	if err != nil { // infinite, or none
		return "null"
	}
	return string(out)
}

// Marshal is json.Marshal without HTML escaping: `<`, `>` and `&` stay as they
// are, U+2028 and U+2029 are escaped, as the real CLI writes its frames.
func Marshal(v any) ([]byte, error) {
	return plainjson.Marshal(v)
}

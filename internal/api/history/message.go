package history

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Message is one parsed message of a request. It is immutable and shared by later requests that contain the same bytes.
type Message struct {
	Role  string // user, assistant or system
	parts []contentPart
	Uses  []ToolUse // calls of an assistant message

	// Steps are the parts of the message by their meaning, in order. context are the texts that accompany them.
	Steps   []Segment
	context []rankedContextText

	AnswerDigest Digest // digest of the text and the calls of an assistant message
	Text         string // text of an assistant message
}

// FirstText returns the first text of a message.
func (c *Message) FirstText() string {
	for _, p := range c.parts {
		if p.kind == "text" {
			return p.text
		}
	}
	return ""
}

// lastTextHasPrefix reports whether the last text of a message begins with prefix. Earlier texts do not count, because
// they may be prompts that were not answered.
func (c *Message) lastTextHasPrefix(prefix string) bool {
	for _, p := range slices.Backward(c.parts) {
		if p.kind == "text" {
			return strings.HasPrefix(p.text, prefix)
		}
	}
	return false
}

type wireMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Thinking  *string         `json:"thinking"`
	Signature *string         `json:"signature"`
}

// parseMessage parses the message at index. The error is a [*RejectedRequestError] that contains the position.
func parseMessage(raw []byte, index int) (*Message, error) {
	var m wireMessage
	at := fmt.Sprintf("messages.%d", index)
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, wrongTypeError(at, raw, err)
	}
	switch m.Role {
	case "user", "assistant", "system":
	case "":
		return nil, InvalidRequest(at+".role", "Field required")
	default:
		return nil, InvalidRequest(at+".role", "Input should be 'user', 'assistant' or 'system'")
	}
	c := &Message{Role: m.Role}
	if err := c.parseContent(m.Content, at+".content"); err != nil {
		return nil, err
	}
	if c.Role == "assistant" {
		c.setTextDigestAndCompactInputs()
	} else {
		c.Steps, c.context = interpretMessageParts(c.Role, c.parts)
	}
	return c, nil
}

func (c *Message) parseContent(raw json.RawMessage, at string) error {
	trimmed := bytes.TrimSpace(raw)
	switch {
	case len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null")):
		return InvalidRequest(at, "Field required")
	case trimmed[0] == '"':
		var text string
		if err := json.Unmarshal(trimmed, &text); err != nil {
			return InvalidRequest(at, "Input should be a valid string")
		}
		c.parts = []contentPart{{kind: "text", text: text}}
		return nil
	case trimmed[0] != '[':
		return InvalidRequest(at, "Input should be a valid string or a list of blocks")
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(trimmed, &blocks); err != nil {
		return InvalidRequest(at, "Input should be a valid list")
	}
	for i, b := range blocks {
		if err := c.parseBlock(b, i, fmt.Sprintf("%s.%d", at, i)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Message) parseBlock(raw json.RawMessage, i int, at string) error {
	var b wireBlock
	if err := json.Unmarshal(raw, &b); err != nil {
		return wrongTypeError(at, raw, err)
	}
	switch b.Type {
	case "":
		return InvalidRequest(at+".type", "Field required")
	case "text":
		if b.Text == nil {
			return InvalidRequest(at+".text", "Field required")
		}
		c.parts = append(c.parts, contentPart{kind: b.Type, text: *b.Text})
	case "tool_use":
		return c.addToolUse(&b, at)
	case "tool_result":
		return c.addToolResult(&b, i, at)
	case "thinking":
		switch {
		case b.Thinking == nil:
			return InvalidRequest(at+".thinking", "Field required")
		case b.Signature == nil:
			return InvalidRequest(at+".signature", "Field required")
		}
		c.parts = append(c.parts, contentPart{kind: b.Type, isUnsigned: *b.Signature == "", isAltered: hasThinkingChangedSinceSigning(*b.Thinking, *b.Signature)})
	default:
		if !isOtherKnownBlockType(b.Type) {
			return InvalidRequest(at, fmt.Sprintf("Input tag '%s' found using 'type' does not match any of the expected tags", b.Type))
		}
		c.parts = append(c.parts, contentPart{kind: b.Type, hasAttachments: b.Type == "image" || b.Type == "document"})
	}
	return nil
}

// hasThinkingChangedSinceSigning reports whether the text of a thinking block differs from the text that claudeless
// signed. It returns false if claudeless did not make the signature. It also returns false for an empty text, because a
// client that does not ask for the text gets none.
func hasThinkingChangedSinceSigning(thinking, signature string) bool {
	const size = 9 // length of the signatures that package scenarios generates
	sum, err := base64.StdEncoding.DecodeString(signature)
	own := sha256.Sum256([]byte(thinking))
	return err == nil && thinking != "" && len(sum) == size && !bytes.Equal(sum, own[:size])
}

func (c *Message) addToolUse(b *wireBlock, at string) error {
	switch {
	case c.Role != "assistant":
		return InvalidRequest(at, "`tool_use` blocks can only be in `assistant` messages")
	case b.ID == "":
		return InvalidRequest(at+".id", "Field required")
	case b.Name == "":
		return InvalidRequest(at+".name", "Field required")
	case len(b.Input) == 0 || b.Input[0] != '{':
		return InvalidRequest(at+".input", "Input should be a valid dictionary")
	}
	c.Uses = append(c.Uses, ToolUse{ID: b.ID, Name: b.Name, Input: b.Input})
	c.parts = append(c.parts, contentPart{kind: b.Type})
	return nil
}

func (c *Message) addToolResult(b *wireBlock, i int, at string) error {
	switch {
	case c.Role != "user":
		return InvalidRequest(at, "`tool_result` blocks can only be in `user` messages")
	case b.ToolUseID == "":
		return InvalidRequest(at+".tool_use_id", "Field required")
	}
	r := &ToolResult{index: i, ID: b.ToolUseID, Text: resultTextWithoutReminders(b.Content), Content: b.Content, IsError: b.IsError}
	r.digest = Digest{}.Chain(r.Text, strconv.FormatBool(r.IsError))
	c.parts = append(c.parts, contentPart{kind: b.Type, result: r})
	return nil
}

// isOtherKnownBlockType reports whether the API has this block type. Names of server tools' result blocks end in _tool_result.
func isOtherKnownBlockType(kind string) bool {
	return strings.HasSuffix(kind, "_tool_result") || strings.HasSuffix(kind, "_tool_use") || slices.Contains([]string{"image", "document", "search_result", "redacted_thinking", "server_tool_use", "container_upload", "compaction", "fallback", "mcp_tool_use", "browser_state", "tool_reference", "advisor_tool_result", "tool_addition", "tool_removal", "connector_text"}, kind)
}

func resultTextWithoutReminders(raw json.RawMessage) string {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 {
		return ""
	}
	if trimmed[0] == '"' {
		var text string
		if json.Unmarshal(trimmed, &text) == nil {
			return trimAppendedReminders(text)
		}
	}
	var blocks []wireBlock
	if json.Unmarshal(trimmed, &blocks) != nil {
		return ""
	}
	texts := make([]string, 0, len(blocks))
	for _, b := range blocks {
		if b.Type == "text" && b.Text != nil {
			texts = append(texts, trimAppendedReminders(*b.Text))
		}
	}
	return strings.Join(texts, "\n")
}

// setTextDigestAndCompactInputs sets the text and the digest of an assistant message. The digest covers the whole text and
// the names and inputs of its calls; it ignores ids, thinking and the division into blocks.
func (c *Message) setTextDigestAndCompactInputs() {
	parts := []string{"assistant"}
	var texts strings.Builder
	for _, p := range c.parts {
		texts.WriteString(p.text)
	}
	c.Text = texts.String()
	parts = append(parts, c.Text)
	for i := range c.Uses {
		var compact bytes.Buffer
		if json.Compact(&compact, c.Uses[i].Input) == nil {
			c.Uses[i].Input = compact.Bytes()
		}
		parts = append(parts, c.Uses[i].Name, string(c.Uses[i].Input))
	}
	c.AnswerDigest = Digest{}.Chain(parts...)
}

// RejectedRequestError is the API's answer to a request that it refuses.
type RejectedRequestError struct {
	Status  int
	Message string
	Code    string // details.error_code; "" means no details
	NoRetry bool   // the answer has the header x-should-retry: false
}

func (e *RejectedRequestError) Error() string { return strconv.Itoa(e.Status) + " " + e.Message }

// InvalidRequest returns the error for a wrong value. at is its position in the request, such as "messages.0.role".
func InvalidRequest(at, problem string) *RejectedRequestError {
	return &RejectedRequestError{Status: 400, Message: at + ": " + problem}
}

func wrongTypeError(at string, raw []byte, err error) error {
	if !json.Valid(raw) {
		return errSyntax
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
		return InvalidRequest(at+"."+e.Field, "Input should be a valid "+cmp.Or(map[reflect.Kind]string{reflect.Bool: "boolean", reflect.Slice: "list", reflect.Pointer: "string"}[e.Type.Kind()], e.Type.Kind().String()))
	}
	return InvalidRequest(at, "Input should be a valid dictionary")
}

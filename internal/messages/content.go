package messages

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// digest names a history: equal digests, equal histories.
type digest [16]byte

// chain is the digest of a history that d begins and parts go on.
func (d digest) chain(parts ...string) digest {
	h := sha256.New()
	h.Write(d[:])
	for _, p := range parts {
		var n [4]byte
		n[0], n[1], n[2], n[3] = byte(len(p)>>24), byte(len(p)>>16), byte(len(p)>>8), byte(len(p))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return digest(h.Sum(nil)[:len(d)])
}

// mix is the digest of a history that d begins and a part whose digest is known
// goes on. It is for long histories: nobody attacks them.
func (d digest) mix(part digest) digest {
	const p, q = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
	a, b := binary.LittleEndian.Uint64(d[:8]), binary.LittleEndian.Uint64(d[8:])
	x, y := binary.LittleEndian.Uint64(part[:8]), binary.LittleEndian.Uint64(part[8:])
	hi, lo := bits.Mul64(a^x^p, q|1)
	hi2, lo2 := bits.Mul64(b^y^q, p|1)
	a, b = bits.RotateLeft64(hi^lo2, 29)*p+x, bits.RotateLeft64(hi2^lo, 41)*q+y
	a ^= a >> 32
	b ^= b >> 29
	binary.LittleEndian.PutUint64(d[:8], a*q+b)
	binary.LittleEndian.PutUint64(d[8:], b*p+a)
	return d
}

// content is one message of a request, read and understood once: the same bytes
// come with every later request. It is never changed afterwards.
type content struct {
	role  string
	parts []part
	uses  []use

	// What the message means, in order, and what stands beside it.
	intents []intent
	context []string
	// digest of an assistant message: of what a scenario could have said.
	said digest
	text string // of an assistant message
	raws []json.RawMessage
}

// part is a text block, or the place of another one.
type part struct {
	kind        string // type of the block
	text        string
	result      *result
	attachments bool
}

// result is a tool_result block.
type result struct {
	at      int // index of the block
	id      string
	text    string
	content json.RawMessage // as it came
	isError bool
	sum     digest
}

// use is a tool_use block.
type use struct {
	at    int
	id    string
	name  string
	input json.RawMessage
}

// wireMessage is a message as it comes.
type wireMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// wireBlock is a block as it comes: the keys that count here.
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

// readContent reads the message at index; the error is a [*refusal] that names
// the place.
func readContent(raw []byte, index int) (*content, error) {
	var m wireMessage
	at := fmt.Sprintf("messages.%d", index)
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, shapeError(at, raw, err)
	}
	switch m.Role {
	case "user", "assistant", "system":
	case "":
		return nil, invalid(at+".role", "Field required")
	default:
		return nil, invalid(at+".role", "Input should be 'user', 'assistant' or 'system'")
	}
	c := &content{role: m.Role}
	if err := c.read(m.Content, at+".content"); err != nil {
		return nil, err
	}
	if c.role == "assistant" {
		c.saidDigest()
	} else {
		c.understand()
	}
	return c, nil
}

// read reads the string or the blocks of a message.
func (c *content) read(raw json.RawMessage, at string) error {
	trimmed := bytes.TrimSpace(raw)
	switch {
	case len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null")):
		return invalid(at, "Field required")
	case trimmed[0] == '"':
		var text string
		if err := json.Unmarshal(trimmed, &text); err != nil {
			return invalid(at, "Input should be a valid string")
		}
		c.parts = []part{{kind: "text", text: text}}
		return nil
	case trimmed[0] != '[':
		return invalid(at, "Input should be a valid string or a list of blocks")
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(trimmed, &blocks); err != nil {
		return invalid(at, "Input should be a valid list")
	}
	for i, b := range blocks {
		if err := c.block(b, i, fmt.Sprintf("%s.%d", at, i)); err != nil {
			return err
		}
	}
	return nil
}

// block reads one block.
func (c *content) block(raw json.RawMessage, i int, at string) error {
	var b wireBlock
	if err := json.Unmarshal(raw, &b); err != nil {
		return shapeError(at, raw, err)
	}
	switch b.Type {
	case "":
		return invalid(at+".type", "Field required")
	case "text":
		if b.Text == nil {
			return invalid(at+".text", "Field required")
		}
		c.parts = append(c.parts, part{kind: b.Type, text: *b.Text})
	case "tool_use":
		return c.toolUse(&b, i, at)
	case "tool_result":
		return c.toolResult(&b, i, at)
	case "thinking":
		switch {
		case b.Thinking == nil:
			return invalid(at+".thinking", "Field required")
		case b.Signature == nil:
			return invalid(at+".signature", "Field required")
		}
		c.parts = append(c.parts, part{kind: b.Type})
	default:
		if !knownBlock(b.Type) {
			return invalid(at, fmt.Sprintf("Input tag '%s' found using 'type' does not match any of the expected tags", b.Type))
		}
		if c.role == "assistant" {
			c.raws = append(c.raws, raw)
		}
		c.parts = append(c.parts, part{kind: b.Type, attachments: b.Type == "image" || b.Type == "document"})
	}
	return nil
}

// toolUse takes a call.
func (c *content) toolUse(b *wireBlock, i int, at string) error {
	switch {
	case c.role != "assistant":
		return invalid(at, "`tool_use` blocks can only be in `assistant` messages")
	case b.ID == "":
		return invalid(at+".id", "Field required")
	case b.Name == "":
		return invalid(at+".name", "Field required")
	case len(b.Input) == 0 || b.Input[0] != '{':
		return invalid(at+".input", "Input should be a valid dictionary")
	}
	c.uses = append(c.uses, use{at: i, id: b.ID, name: b.Name, input: b.Input})
	c.parts = append(c.parts, part{kind: b.Type})
	return nil
}

// toolResult takes what came of a call.
func (c *content) toolResult(b *wireBlock, i int, at string) error {
	switch {
	case c.role != "user":
		return invalid(at, "`tool_result` blocks can only be in `user` messages")
	case b.ToolUseID == "":
		return invalid(at+".tool_use_id", "Field required")
	}
	r := &result{at: i, id: b.ToolUseID, text: resultText(b.Content), content: b.Content, isError: b.IsError}
	r.sum = digest{}.chain(r.text, strconv.FormatBool(r.isError))
	c.parts = append(c.parts, part{kind: b.Type, result: r})
	return nil
}

// knownBlock tells whether the API has blocks of this type. New kinds of tools
// come with blocks of their own, by a name that follows from the tool's.
func knownBlock(kind string) bool {
	switch kind {
	case "image", "document", "search_result", "redacted_thinking", "server_tool_use", "container_upload", "compaction", "fallback", "mcp_tool_use",
		"browser_state", "tool_reference", "advisor_tool_result", "tool_addition", "tool_removal", "connector_text":
		return true
	}
	return strings.HasSuffix(kind, "_tool_result") || strings.HasSuffix(kind, "_tool_use")
}

// resultText is what the model sees of a result as text, without what Claude Code
// hides in it.
func resultText(raw json.RawMessage) string {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 {
		return ""
	}
	if trimmed[0] == '"' {
		var text string
		if json.Unmarshal(trimmed, &text) == nil {
			return withoutReminders(text)
		}
	}
	var blocks []wireBlock
	if json.Unmarshal(trimmed, &blocks) != nil {
		return ""
	}
	texts := make([]string, 0, len(blocks))
	for _, b := range blocks {
		if b.Type == "text" && b.Text != nil {
			texts = append(texts, withoutReminders(*b.Text))
		}
	}
	return strings.Join(texts, "\n")
}

// saidDigest sums up an assistant message: its text as a whole, its calls by name
// and input. Ids, reasoning and the cutting into blocks do not count.
func (c *content) saidDigest() {
	parts := []string{"assistant"}
	var texts strings.Builder
	for _, p := range c.parts {
		texts.WriteString(p.text)
	}
	c.text = texts.String()
	parts = append(parts, c.text)
	for i := range c.uses {
		var compact bytes.Buffer
		if json.Compact(&compact, c.uses[i].input) == nil {
			c.uses[i].input = compact.Bytes()
		}
		parts = append(parts, c.uses[i].name, string(c.uses[i].input))
	}
	c.said = digest{}.chain(parts...)
}

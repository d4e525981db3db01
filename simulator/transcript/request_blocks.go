package transcript

import (
	"encoding/json"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func blocksOf(c protocol.Content) []json.RawMessage {
	if c.Blocks == nil {
		return []json.RawMessage{textBlock(c.Text)}
	}
	var blocks []json.RawMessage
	for _, b := range c.Blocks {
		if raw, err := protocol.Marshal(b); err == nil {
			blocks = append(blocks, raw)
		}
	}
	return blocks
}

func textBlock(text string) json.RawMessage {
	return json.RawMessage(`{"type":"text","text":` + plainjson.MarshalString(text) + `}`)
}

func isBlockOfType(block json.RawMessage, kind string) bool {
	var b struct{ Type string }
	return json.Unmarshal(block, &b) == nil && b.Type == kind
}

func endTextWithNewline(block, next json.RawMessage) json.RawMessage {
	var b protocol.TextBlock
	if !isBlockOfType(next, "text") || json.Unmarshal(block, &b) != nil || b.Type != "text" {
		return block
	}
	return textBlock(b.Text + "\n")
}

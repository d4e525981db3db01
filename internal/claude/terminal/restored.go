package terminal

import (
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// restore shows a message of the conversation that the session continues.
func (v *eventView) restore(role string, content protocol.Content) {
	blocks := content.Blocks
	if blocks == nil {
		blocks = []protocol.Block{protocol.Text(content.Text)}
	}
	if role == "assistant" {
		reply := &protocol.Assistant{}
		reply.Message.Content = blocks
		v.showMessage(reply)
		return
	}
	for _, block := range blocks {
		switch block := block.(type) {
		case protocol.TextBlock:
			if text := strings.TrimSpace(block.Text); text != "" && !strings.HasPrefix(text, "<") { // texts for the model begin with a tag
				v.screen.entries = append(v.screen.entries, entry{glyph: promptGlyph + " ", text: text})
			}
		case protocol.ToolResultBlock:
			v.endCall(block, false)
		}
	}
}

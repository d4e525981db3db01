package servecmd

import (
	"bytes"
	"encoding/json"
	"strings"
)

// message is an assembled message of the model; unknown keys of its blocks are kept.
type message struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	Role         string          `json:"role"`
	Model        string          `json:"model"`
	Content      []*block        `json:"content"`
	StopReason   *string         `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	Usage        json.RawMessage `json:"usage,omitempty"`
}

type block struct {
	start map[string]json.RawMessage
	text  strings.Builder // content of text and thinking blocks
	input strings.Builder
}

// MarshalJSON writes the complete block. Signatures are omitted, because they are not useful and may look like secrets.
func (b *block) MarshalJSON() ([]byte, error) {
	key := "text"
	if _, ok := b.start["thinking"]; ok {
		key = "thinking"
	}
	if b.text.Len() > 0 {
		text, err := json.Marshal(b.text.String())
		if err != nil {
			return nil, err
		}
		b.start[key] = text
	}
	if in := json.RawMessage(b.input.String()); len(in) > 0 && json.Valid(in) {
		b.start["input"] = in
	}
	delete(b.start, "signature")
	return json.Marshal(b.start)
}

type streamEvent struct {
	Type    string                     `json:"type"`
	Index   int                        `json:"index"`
	Message *message                   `json:"message"`
	Block   map[string]json.RawMessage `json:"content_block"`
	Delta   struct {
		Text         string  `json:"text"`
		Thinking     string  `json:"thinking"`
		PartialJSON  string  `json:"partial_json"`
		StopReason   *string `json:"stop_reason"`
		StopSequence *string `json:"stop_sequence"`
	} `json:"delta"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// joinStream assembles the message of a stream, so that secrets split by the stream are recognised. An interrupted
// stream gives a partial message; a stream that ends in an error gives the error.
func joinStream(stream []byte) json.RawMessage {
	var m *message
	blocks := map[int]*block{}
	for line := range bytes.Lines(stream) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		var ev streamEvent
		if !ok || json.Unmarshal(data, &ev) != nil {
			continue
		}
		switch {
		case ev.Type == "error":
			return append([]byte(nil), bytes.TrimSpace(data)...)
		case ev.Type == "message_start" && ev.Message != nil:
			m = ev.Message
			m.Content = []*block{}
		case m == nil:
		case ev.Type == "content_block_start" && ev.Block != nil:
			blocks[ev.Index] = &block{start: ev.Block}
			m.Content = append(m.Content, blocks[ev.Index])
		case ev.Type == "content_block_delta" && blocks[ev.Index] != nil:
			b := blocks[ev.Index]
			b.text.WriteString(ev.Delta.Text + ev.Delta.Thinking)
			b.input.WriteString(ev.Delta.PartialJSON)
		case ev.Type == "message_delta":
			m.StopReason, m.StopSequence = ev.Delta.StopReason, ev.Delta.StopSequence
			if ev.Usage != nil {
				m.Usage = ev.Usage
			}
		}
	}
	if m == nil {
		return nil
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return raw
}

package messages

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// event is one event of a stream, and the pause before it.
type event struct {
	wait time.Duration
	name string
	data []byte
}

// script is the list of events that a message is.
type script struct {
	pace   scenarios.Stream
	random func() float64
	pad    bool
	events []event
	due    time.Duration // pause before the next event
}

// The forms of the events, with their keys in the order of the API.
type (
	messageStart struct {
		Type    string     `json:"type"`
		Message wireAnswer `json:"message"`
	}
	blockStart struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block any    `json:"content_block"`
	}
	blockDelta struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Delta delta  `json:"delta"`
	}
	blockStop struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}
	messageDelta struct {
		Type  string    `json:"type"`
		Delta lastDelta `json:"delta"`
		Usage any       `json:"usage"`
	}
	lastDelta struct {
		StopReason   string       `json:"stop_reason"`
		StopSequence *string      `json:"stop_sequence"`
		StopDetails  *stopDetails `json:"stop_details,omitempty"`
	}
	bare struct {
		Type string `json:"type"`
	}
)

// delta is a piece of a block; one of the texts is set.
type delta struct {
	Type      string  `json:"type"`
	Text      *string `json:"text,omitempty"`
	JSON      *string `json:"partial_json,omitempty"`
	Thinking  *string `json:"thinking,omitempty"`
	Signature *string `json:"signature,omitempty"`
}

// play makes the events of a message. The jitter depends on the message alone.
func (m *message) play(pace scenarios.Stream, pad bool, seed digest) *script {
	s := &script{pace: pace, pad: pad, random: jitter(seed), due: time.Duration(pace.TTFTMS) * time.Millisecond}
	start := m.wire([]protocol.Block{})
	start.StopReason, start.StopSequence, start.StopDetails = nil, nil, nil
	start.Usage.Output, start.Usage.Details = min(1, start.Usage.Output), nil
	s.add("message_start", messageStart{"message_start", start})
	for i, b := range m.blocks {
		s.block(i, b, m.hidden)
	}
	s.add("message_delta", messageDelta{"message_delta", lastDelta{m.stop, m.sequence, m.details()}, m.wireUsage()})
	s.add("message_stop", bare{"message_stop"})
	return s
}

func jitter(seed digest) func() float64 {
	var a, b uint64
	for i := range 8 {
		a, b = a<<8|uint64(seed[i]), b<<8|uint64(seed[8+i])
	}
	return rand.New(rand.NewPCG(a, b)).Float64
}

// add puts an event at the end.
func (s *script) add(name string, data any) {
	body, err := protocol.Marshal(data)
	if err != nil { // a raw block of the scenario that is no JSON: loading has refused it
		body = []byte(`{"type":"` + name + `"}`)
	}
	if s.pad {
		body = append(append(body[:len(body)-1], strings.Repeat(" ", len(s.events)*7%16)...), '}')
	}
	s.events = append(s.events, event{wait: s.due, name: name, data: body})
	s.due = 0
}

// block adds the events of one block.
func (s *script) block(i int, b protocol.Block, hidden bool) {
	open := func(empty any) {
		s.add("content_block_start", blockStart{"content_block_start", i, empty})
		if i == 0 {
			s.add("ping", bare{"ping"})
		}
	}
	switch b := b.(type) {
	case protocol.TextBlock:
		open(protocol.Text(""))
		for _, piece := range s.pace.Split(b.Text) {
			s.delta(i, piece, delta{Type: "text_delta", Text: &piece})
		}
	case protocol.ThinkingBlock:
		open(protocol.ThinkingBlock{Type: "thinking"})
		if !hidden {
			for _, piece := range s.thoughts(b.Thinking) {
				s.delta(i, piece, delta{Type: "thinking_delta", Thinking: &piece})
			}
		}
		s.delta(i, "", delta{Type: "signature_delta", Signature: &b.Signature})
	case protocol.ToolUse:
		empty := b
		empty.Input = json.RawMessage("{}")
		open(empty)
		none := ""
		s.delta(i, "", delta{Type: "input_json_delta", JSON: &none})
		for _, piece := range s.inputPieces(string(b.Input)) {
			s.delta(i, piece, delta{Type: "input_json_delta", JSON: &piece})
		}
	default:
		open(b)
	}
	s.add("content_block_stop", blockStop{"content_block_stop", i})
}

// thoughts are the pieces in which reasoning comes: at full speed it is one, as in
// the CLI face, which announces each.
func (s *script) thoughts(text string) []string {
	if s.pace.TokensPerSecond > 0 {
		return s.pace.Split(text)
	}
	return []string{text}
}

// inputPieces cuts the input of a call by the pace; at full speed it comes in two.
func (s *script) inputPieces(input string) []string {
	if s.pace.Chunk != (scenarios.Chunk{}) || s.pace.TokensPerSecond > 0 {
		return s.pace.Split(input)
	}
	head := firstBytes(input, (len(input)+1)/2)
	if head == "" || head == input {
		return []string{input}
	}
	return []string{head, input[len(head):]}
}

func (s *script) delta(i int, piece string, d delta) {
	if piece != "" {
		s.due += s.pace.Wait(piece, s.random)
	}
	s.add("content_block_delta", blockDelta{"content_block_delta", i, d})
}

// appendTo writes an event as it goes out.
func (e *event) appendTo(b *bytes.Buffer) {
	b.WriteString("event: ")
	b.WriteString(e.name)
	b.WriteString("\ndata: ")
	b.Write(e.data)
	b.WriteString("\n\n")
}

// fault spoils the events in one exact way. The result of a fault that ends in
// silence has silent set.
func (s *script) fault(kind string) (silent bool) {
	at := func(name string) int {
		for i := range s.events {
			if s.events[i].name == name {
				return i
			}
		}
		return len(s.events) - 1
	}
	insert := func(i int, e event) {
		s.events = append(s.events[:i:i], append([]event{e}, s.events[i:]...)...)
	}
	switch kind {
	case "ping-silence": // nothing but a ping comes after the beginning
		i := min(at("ping")+1, len(s.events))
		s.events = s.events[:i]
		return true
	case "stall-mid-stream":
		s.events = s.events[:at("content_block_delta")+1]
		return true
	case "delta-after-stop":
		stop := at("content_block_stop")
		if d := at("content_block_delta"); d < stop {
			insert(stop+1, s.events[d])
		}
	case "two-message-starts":
		insert(1, s.events[0])
	case "tool-json-truncated":
		s.dropLast(`"input_json_delta"`)
	case "usage-in-start-only":
		i := at("message_delta")
		var d messageDelta
		if json.Unmarshal(s.events[i].data, &d) == nil {
			if body, err := protocol.Marshal(struct {
				Type  string    `json:"type"`
				Delta lastDelta `json:"delta"`
			}{d.Type, d.Delta}); err == nil {
				s.events[i].data = body
			}
		}
	case "empty-content":
		first, last := at("content_block_start"), at("message_delta")
		s.events = append(s.events[:first:first], s.events[last:]...)
	}
	return false
}

// dropLast leaves out the last event that holds text.
func (s *script) dropLast(text string) {
	for i := len(s.events) - 1; i >= 0; i-- {
		if bytes.Contains(s.events[i].data, []byte(text)) {
			s.events = append(s.events[:i:i], s.events[i+1:]...)
			return
		}
	}
}

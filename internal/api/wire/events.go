// Package wire encodes the responses of the Messages API: messages, as one body or as a stream of events, errors, and the list of
// models. A message has the same content in both forms.
package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Event is one event of a stream, with the pause before it.
type Event struct {
	Pause time.Duration
	Name  string
	Data  []byte
}

// StreamOptions configure the conversion of a message to events.
type StreamOptions struct {
	Pace scenarios.Stream
	Pad  bool     // events have spaces before their closing braces
	Seed [16]byte // seed of the jitter
}

// EventList is the list of events of a message.
type EventList struct {
	StreamOptions

	random    *rand.Rand
	Events    []Event
	nextPause time.Duration
}

// eventData is the data of an event, with its keys in the order of the API. Each type of event has some of the keys.
type eventData struct {
	Type    string `json:"type"`
	Message any    `json:"message,omitempty"`
	Index   *int   `json:"index,omitempty"`
	Block   any    `json:"content_block,omitempty"`
	Delta   any    `json:"delta,omitempty"`
	Usage   any    `json:"usage,omitempty"`
}

type messageDeltaBody struct {
	StopReason   string          `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	StopDetails  json.RawMessage `json:"stop_details,omitempty"`
}

// deltaBody is a piece of a content block; exactly one of its strings is set.
type deltaBody struct {
	Type      string  `json:"type"`
	Text      *string `json:"text,omitempty"`
	JSON      *string `json:"partial_json,omitempty"`
	Thinking  *string `json:"thinking,omitempty"`
	Signature *string `json:"signature,omitempty"`
	// Citation is set for text blocks, and Content for compactions.
	Citation json.RawMessage `json:"citation,omitempty"`
	Content  *string         `json:"content,omitempty"`
}

// Events returns the events of a message. The jitter depends only on the message.
func (m *Message) Events(options StreamOptions) *EventList {
	jitter := rand.New(rand.NewPCG(binary.BigEndian.Uint64(options.Seed[:8]), binary.BigEndian.Uint64(options.Seed[8:])))
	s := &EventList{StreamOptions: options, random: jitter, nextPause: time.Duration(options.Pace.TTFTMS) * time.Millisecond}
	start := m.newResponseBodyWithContent([]protocol.Block{})
	start.StopReason, start.StopSequence, start.StopDetails = nil, nil, nil
	start.Usage.Output, start.Usage.Details = min(1, start.Usage.Output), nil
	s.addEventNamedByDataType(eventData{Type: "message_start", Message: start})
	for i, b := range m.Blocks {
		s.addBlock(i, b)
	}
	s.addEventNamedByDataType(eventData{Type: "message_delta", Delta: messageDeltaBody{m.StopReason, m.StopSequence, m.stopDetails()}, Usage: m.finalUsage()})
	s.addEventNamedByDataType(eventData{Type: "message_stop"})
	return s
}

func (s *EventList) addEventNamedByDataType(data eventData) { s.Add(data.Type, data) }

// Add appends an event.
func (s *EventList) Add(name string, data any) {
	body, err := protocol.Marshal(data)
	if err != nil { // only possible for an invalid raw block, which is refused when the scenario is loaded
		body = []byte(`{"type":"` + name + `"}`)
	}
	if s.Pad {
		body = append(append(body[:len(body)-1], strings.Repeat(" ", len(s.Events)*7%16)...), '}')
	}
	s.Events = append(s.Events, Event{Pause: s.nextPause, Name: name, Data: body})
	s.nextPause = 0
}

func (s *EventList) addBlock(i int, b protocol.Block) {
	open := func(empty any) {
		s.addEventNamedByDataType(eventData{Type: "content_block_start", Index: &i, Block: empty})
		if i == 0 {
			s.addEventNamedByDataType(eventData{Type: "ping"})
		}
	}
	switch b := b.(type) {
	case protocol.TextBlock:
		empty := protocol.Text("")
		if b.Citations != nil {
			empty.Citations = json.RawMessage("[]")
		}
		open(empty)
		var citations []json.RawMessage
		_ = json.Unmarshal(b.Citations, &citations) // citations that are not a list are refused when the scenario is loaded
		for _, c := range citations {
			s.addPacedDelta(i, "", deltaBody{Type: "citations_delta", Citation: c})
		}
		for _, piece := range s.Pace.Split(b.Text) {
			s.addPacedDelta(i, piece, deltaBody{Type: "text_delta", Text: &piece})
		}
	case protocol.ThinkingBlock:
		open(protocol.ThinkingBlock{Type: "thinking"})
		if b.Thinking != "" {
			pieces := []string{b.Thinking}
			if s.Pace.TokensPerSecond > 0 {
				pieces = s.Pace.Split(b.Thinking)
			}
			for _, piece := range pieces {
				s.addPacedDelta(i, piece, deltaBody{Type: "thinking_delta", Thinking: &piece})
			}
		}
		s.addPacedDelta(i, "", deltaBody{Type: "signature_delta", Signature: &b.Signature})
	case protocol.ToolUse:
		empty := b
		empty.Input = json.RawMessage("{}")
		open(empty)
		s.addInputDeltas(i, b.Input)
	case protocol.ServerToolCall:
		empty := b
		empty.Input = json.RawMessage("{}")
		open(empty)
		s.addInputDeltas(i, b.Input)
	case protocol.RawBlock:
		if text, ok := compactionText(b); ok {
			open(compactionContentBlock{Type: "compaction"})
			s.addPacedDelta(i, text, deltaBody{Type: "compaction_delta", Content: &text})
			break
		}
		open(b)
	default:
		open(b)
	}
	s.addEventNamedByDataType(eventData{Type: "content_block_stop", Index: &i})
}

// addInputDeltas adds the input of a call in pieces. The first piece is empty.
func (s *EventList) addInputDeltas(i int, input json.RawMessage) {
	for _, piece := range s.Pace.SplitInput(string(input)) {
		s.addPacedDelta(i, piece, deltaBody{Type: "input_json_delta", JSON: &piece})
	}
}

type compactionContentBlock struct {
	Type    string  `json:"type"`
	Content *string `json:"content"`
}

func compactionText(b protocol.RawBlock) (string, bool) {
	var c compactionContentBlock
	if json.Unmarshal(b.JSON, &c) != nil || c.Type != "compaction" || c.Content == nil {
		return "", false
	}
	return *c.Content, true
}

func (s *EventList) addPacedDelta(i int, piece string, d deltaBody) {
	if piece != "" {
		s.nextPause += s.Pace.Delay(piece, s.random.Float64)
	}
	s.addEventNamedByDataType(eventData{Type: "content_block_delta", Index: &i, Delta: d})
}

// Message is a response of the API.
type Message struct {
	ID, Model      string
	Blocks         []protocol.Block
	StopReason     string
	StopSequence   *string // the stop sequence that was found
	Usage          scenarios.Usage
	Cache          CacheTokens // cached input tokens
	ThinkingTokens int         // tokens of the output that are reasoning
}

// ClearThinkingTexts removes the texts of the thinking blocks.
func (m *Message) ClearThinkingTexts() {
	for i, b := range m.Blocks {
		if thinking, ok := b.(protocol.ThinkingBlock); ok {
			thinking.Thinking = ""
			m.Blocks[i] = thinking
		}
	}
}

// CacheTokens holds the input tokens of a message that were read from the prompt cache and those written to it.
type CacheTokens struct{ Read, Created5m, Created1h int }

// wireUsage is the usage of a response, in the API's order of keys. At the end of a stream, it has only the counts.
type wireUsage struct {
	Input         int                 `json:"input_tokens"`
	CacheCreated  int                 `json:"cache_creation_input_tokens"`
	CacheRead     int                 `json:"cache_read_input_tokens"`
	CacheCreation *wireCacheCreation  `json:"cache_creation,omitempty"`
	Output        int                 `json:"output_tokens"`
	Details       *outputTokenDetails `json:"output_tokens_details,omitempty"`
	Tier          string              `json:"service_tier,omitempty"`
}

type wireCacheCreation struct {
	Ephemeral5m int `json:"ephemeral_5m_input_tokens"`
	Ephemeral1h int `json:"ephemeral_1h_input_tokens"`
}

type outputTokenDetails struct {
	Thinking int `json:"thinking_tokens"`
}

// messageBody is a complete response, with keys in the order of the API.
type messageBody struct {
	ID           string           `json:"id"`
	Type         string           `json:"type"`
	Role         string           `json:"role"`
	Model        string           `json:"model"`
	Content      []protocol.Block `json:"content"`
	StopReason   *string          `json:"stop_reason"`
	StopSequence *string          `json:"stop_sequence"`
	StopDetails  json.RawMessage  `json:"stop_details,omitempty"`
	Usage        wireUsage        `json:"usage"`
}

// Body returns the response that is sent without streaming.
func (m *Message) Body() any { return m.newResponseBodyWithContent(m.Blocks) }

// newResponseBodyWithContent returns the response for the message, with contentBlocks as its content.
func (m *Message) newResponseBodyWithContent(contentBlocks []protocol.Block) messageBody {
	u := m.finalUsage()
	u.CacheCreation, u.Details, u.Tier = &wireCacheCreation{m.Cache.Created5m, m.Cache.Created1h}, &outputTokenDetails{m.ThinkingTokens}, "standard"
	return messageBody{
		ID: m.ID, Type: "message", Role: "assistant", Model: m.Model, Content: contentBlocks, StopReason: &m.StopReason, StopSequence: m.StopSequence,
		StopDetails: m.stopDetails(), Usage: u,
	}
}

func (m *Message) stopDetails() json.RawMessage {
	if m.StopReason != "refusal" {
		return nil
	}
	return json.RawMessage(`{"type":"refusal","category":null,"explanation":null}`)
}

func (m *Message) finalUsage() wireUsage {
	u := wireUsage{Input: m.Usage.InputTokens, CacheCreated: m.Cache.Created5m + m.Cache.Created1h, CacheRead: m.Cache.Read, Output: m.Usage.OutputTokens}
	if m.ThinkingTokens > 0 {
		u.Details = &outputTokenDetails{m.ThinkingTokens}
	}
	return u
}

// TrimPrefill removes prefill, the start of the answer in the request, from the beginning of the first text.
func (m *Message) TrimPrefill(prefill string) {
	for i, b := range m.Blocks {
		if text, ok := b.(protocol.TextBlock); ok {
			rest, cut := strings.CutPrefix(text.Text, prefill)
			if !cut {
				rest, cut = strings.CutPrefix(text.Text, strings.TrimRight(prefill, " \n"))
			}
			if cut {
				m.Blocks[i] = protocol.Text(rest)
			}
			return
		}
	}
}

// Truncate cuts the text at the first stop sequence or, if earlier, after maxTokens tokens (negative means no limit).
func (m *Message) Truncate(maxTokens int, stops []string) {
	left := maxTokens
	for i, b := range m.Blocks {
		text, ok := b.(protocol.TextBlock)
		if !ok {
			continue
		}
		said := text.Text
		cut := -1
		for _, stop := range stops {
			if at := strings.Index(said, stop); stop != "" && at >= 0 && (cut < 0 || at < cut) {
				cut, m.StopSequence = at, &stop
			}
		}
		if cut >= 0 {
			said = said[:cut]
		}
		switch {
		case maxTokens >= 0 && said != "" && scenarios.EstimateTokens(len(said)) > left:
			m.Blocks = append(slices.Clone(m.Blocks[:i]), protocol.Text(truncateAtRuneBoundary(said, 4*left)))
			m.StopReason, m.StopSequence = "max_tokens", nil
			return
		case cut >= 0:
			m.Blocks = append(slices.Clone(m.Blocks[:i]), protocol.Text(said))
			m.StopReason = "stop_sequence"
			return
		}
		left -= scenarios.EstimateTokens(len(said))
	}
}

// truncateAtRuneBoundary returns at most maxBytes bytes of text, which is longer, in whole characters.
func truncateAtRuneBoundary(text string, maxBytes int) string {
	for maxBytes > 0 && !utf8.RuneStart(text[maxBytes]) {
		maxBytes--
	}
	return text[:maxBytes]
}

// InjectFault changes the events as this kind of fault requires. mustKeepStreamOpen means that the stream must stay open
// after the events, although nothing follows.
func (s *EventList) InjectFault(faultKind string) (mustKeepStreamOpen bool) {
	at := func(name string) int {
		if i := slices.IndexFunc(s.Events, func(e Event) bool { return e.Name == name }); i >= 0 {
			return i
		}
		return len(s.Events) - 1
	}
	switch faultKind {
	case "ping-silence": // after the beginning, only pings are sent
		i := min(at("ping")+1, len(s.Events))
		s.Events = s.Events[:i]
		return true
	case "stall-mid-stream":
		s.Events = s.Events[:at("content_block_delta")+1]
		return true
	case "delta-after-stop":
		stop := at("content_block_stop")
		if d := at("content_block_delta"); d < stop {
			s.Events = slices.Insert(s.Events, stop+1, s.Events[d])
		}
	case "two-message-starts":
		s.Events = slices.Insert(s.Events, 1, s.Events[0])
	case "tool-json-truncated":
		for i, e := range slices.Backward(s.Events) {
			if bytes.Contains(e.Data, []byte(`"input_json_delta"`)) {
				s.Events = slices.Delete(s.Events, i, i+1)
				break
			}
		}
	case "usage-in-start-only":
		i := at("message_delta")
		var d struct { // without the usage
			Type  string           `json:"type"`
			Delta messageDeltaBody `json:"delta"`
		}
		if json.Unmarshal(s.Events[i].Data, &d) == nil {
			if body, err := protocol.Marshal(d); err == nil {
				s.Events[i].Data = body
			}
		}
	case "empty-content":
		first, last := at("content_block_start"), at("message_delta")
		s.Events = slices.Delete(s.Events, first, last)
	}
	return false
}

package wire

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

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

// HideThinking removes the texts of the thinking blocks.
func (m *Message) HideThinking() {
	for i, b := range m.Blocks {
		if thinking, ok := b.(protocol.ThinkingBlock); ok {
			thinking.Thinking = ""
			m.Blocks[i] = thinking
		}
	}
}

// CacheTokens holds the input tokens of a message that were read from the prompt cache, and those that were written to it.
type CacheTokens struct{ Read, Created5m, Created1h int }

// wireUsage is the usage of a response, with keys in the order of the API.
type wireUsage struct {
	Input         int                 `json:"input_tokens"`
	CacheCreated  int                 `json:"cache_creation_input_tokens"`
	CacheRead     int                 `json:"cache_read_input_tokens"`
	CacheCreation wireCacheCreation   `json:"cache_creation"`
	Output        int                 `json:"output_tokens"`
	Details       *outputTokenDetails `json:"output_tokens_details,omitempty"`
	Tier          string              `json:"service_tier"`
	Geo           string              `json:"inference_geo,omitempty"`
}

// finalUsage is the usage at the end of a stream. It contains only the final counts.
type finalUsage struct {
	Input        int                 `json:"input_tokens"`
	CacheCreated int                 `json:"cache_creation_input_tokens"`
	CacheRead    int                 `json:"cache_read_input_tokens"`
	Output       int                 `json:"output_tokens"`
	Details      *outputTokenDetails `json:"output_tokens_details,omitempty"`
}

type wireCacheCreation struct {
	Ephemeral5m int `json:"ephemeral_5m_input_tokens"`
	Ephemeral1h int `json:"ephemeral_1h_input_tokens"`
}

type outputTokenDetails struct {
	Thinking int `json:"thinking_tokens"`
}

type stopDetails struct {
	Type        string  `json:"type"`
	Category    *string `json:"category"`
	Explanation *string `json:"explanation"`
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
	StopDetails  *stopDetails     `json:"stop_details,omitempty"`
	Usage        wireUsage        `json:"usage"`
}

// Body returns the response that is sent without streaming.
func (m *Message) Body() any { return m.newBody(m.Blocks) }

// newBody returns the message with its content, or without content for the start of a stream.
func (m *Message) newBody(blocks []protocol.Block) messageBody {
	return messageBody{
		ID: m.ID, Type: "message", Role: "assistant", Model: m.Model, Content: blocks, StopReason: &m.StopReason, StopSequence: m.StopSequence,
		StopDetails: m.stopDetails(), Usage: m.initialUsage(),
	}
}

func (m *Message) stopDetails() *stopDetails {
	if m.StopReason != "refusal" {
		return nil
	}
	return &stopDetails{Type: "refusal"}
}

func (m *Message) initialUsage() wireUsage {
	c := m.Cache
	return wireUsage{
		Input: m.Usage.InputTokens, CacheRead: c.Read, CacheCreated: c.Created5m + c.Created1h,
		CacheCreation: wireCacheCreation{c.Created5m, c.Created1h},
		Output:        m.Usage.OutputTokens, Details: &outputTokenDetails{m.ThinkingTokens}, Tier: "standard",
	}
}

func (m *Message) finalUsage() finalUsage {
	u := finalUsage{Input: m.Usage.InputTokens, CacheCreated: m.Cache.Created5m + m.Cache.Created1h, CacheRead: m.Cache.Read, Output: m.Usage.OutputTokens}
	if m.ThinkingTokens > 0 {
		u.Details = &outputTokenDetails{m.ThinkingTokens}
	}
	return u
}

// TrimPrefill removes the prefill of the request from the first text.
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

// Truncate ends the text at the first stop sequence, or earlier, after maxTokens tokens (negative means no limit). The
// rest of the message is dropped.
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
		case maxTokens >= 0 && said != "" && scenarios.Tokens(len(said)) > left:
			m.Blocks = append(slices.Clone(m.Blocks[:i]), protocol.Text(firstBytes(said, 4*left)))
			m.StopReason, m.StopSequence = "max_tokens", nil
			return
		case cut >= 0:
			m.Blocks = append(slices.Clone(m.Blocks[:i]), protocol.Text(said))
			m.StopReason = "stop_sequence"
			return
		}
		left -= scenarios.Tokens(len(said))
	}
}

// firstBytes returns at most n bytes of text, in whole characters.
func firstBytes(text string, n int) string {
	n = max(0, min(n, len(text)))
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

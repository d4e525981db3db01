package messages

import (
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// structuredTool is the tool by which Claude Code takes a structured output.
const structuredTool = "StructuredOutput"

// message is an answer of the API.
type message struct {
	id, model string
	blocks    []protocol.Block
	stop      string
	sequence  *string // the stop sequence that was met
	usage     scenarios.Usage
	thinking  int // tokens of the output that are reasoning
	hidden    bool
}

// wireUsage is the usage of an answer, in the order of the API.
type wireUsage struct {
	Input         int               `json:"input_tokens"`
	CacheCreated  int               `json:"cache_creation_input_tokens"`
	CacheRead     int               `json:"cache_read_input_tokens"`
	CacheCreation wireCacheCreation `json:"cache_creation"`
	Output        int               `json:"output_tokens"`
	Details       *wireDetails      `json:"output_tokens_details,omitempty"`
	Tier          string            `json:"service_tier"`
	Geo           string            `json:"inference_geo,omitempty"`
}

type wireCacheCreation struct {
	Ephemeral5m int `json:"ephemeral_5m_input_tokens"`
	Ephemeral1h int `json:"ephemeral_1h_input_tokens"`
}

type wireDetails struct {
	Thinking int `json:"thinking_tokens"`
}

// stopDetails say more about a refusal.
type stopDetails struct {
	Type        string  `json:"type"`
	Category    *string `json:"category"`
	Explanation *string `json:"explanation"`
}

// wireAnswer is a whole answer, in the order of the API.
type wireAnswer struct {
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

// wire is the message with its content, or without it as a stream begins.
func (m *message) wire(blocks []protocol.Block) wireAnswer {
	a := wireAnswer{
		ID: m.id, Type: "message", Role: "assistant", Model: m.model, Content: blocks, StopReason: &m.stop, StopSequence: m.sequence,
		StopDetails: m.details(), Usage: m.wireUsage(),
	}
	return a
}

func (m *message) details() *stopDetails {
	if m.stop != "refusal" {
		return nil
	}
	return &stopDetails{Type: "refusal"}
}

func (m *message) wireUsage() wireUsage {
	return wireUsage{Input: m.usage.InputTokens, Output: m.usage.OutputTokens, Details: &wireDetails{m.thinking}, Tier: "standard"}
}

// id makes an id of the API's form from what it stands for: the same answer to
// the same history has the same ids on every server with the same seed.
func (s *Server) id(prefix string, key digest, parts ...string) string {
	sum := s.seed.chain(append([]string{prefix, string(key[:])}, parts...)...)
	return prefix + "_01" + strings.ToLower(idText.EncodeToString(sum[:]))[:22]
}

// idText writes ids; constant: only read.
var idText = base32.HexEncoding.WithPadding(base32.NoPadding)

// compose makes the API's message of what the scenario says.
func (f *fold) compose() *message {
	a, key := f.final.answer, f.key()
	m := &message{id: f.s.id("msg", key), model: f.r.model, stop: a.stop, hidden: f.thinkingHidden()}
	for _, b := range a.blocks {
		switch b := b.(type) {
		case protocol.ToolUse:
			m.blocks = append(m.blocks, f.use(b, len(m.blocks), key))
		case protocol.ThinkingBlock:
			m.blocks = append(m.blocks, scenarios.Signed(b))
		default:
			m.blocks = append(m.blocks, b)
		}
	}
	f.structure(m, a)
	if f.prefill != "" {
		m.unfill(f.prefill)
	}
	visible := slices.DeleteFunc(slices.Clone(m.blocks), func(b protocol.Block) bool { text, ok := b.(protocol.TextBlock); return ok && text.Text == "" })
	if m.blocks = visible; len(visible) == 0 {
		m.blocks = []protocol.Block{protocol.Text("")}
	}
	m.shorten(f.r)
	m.usage = scenarios.Estimate(a.asked, m.blocks)
	if a.usage != nil {
		m.usage = *a.usage
	}
	m.thinking = scenarios.ThinkingTokens(m.blocks)
	if m.stop == "" {
		m.stop = scenarios.StopReason(m.blocks)
	}
	return m
}

// thinkingHidden tells whether the client wants reasoning without its text.
func (f *fold) thinkingHidden() bool {
	var thinking struct {
		Display string `json:"display"`
	}
	return f.r.thinking != nil && json.Unmarshal(f.r.thinking, &thinking) == nil && thinking.Display == "omitted"
}

// use is a call as the request knows it: its tool under the name that is offered,
// an id and a complete input.
func (f *fold) use(b protocol.ToolUse, at int, key digest) protocol.ToolUse {
	b.Type = "tool_use"
	b.Name = f.toolName(b.Name)
	if b.ID == "" {
		b.ID = f.s.id("toolu", key, fmt.Sprint(at))
	}
	if len(b.Input) == 0 {
		b.Input = json.RawMessage("{}")
	}
	if b.Script != nil && b.Script.Subagent != nil {
		var input struct {
			Prompt string `json:"prompt"`
		}
		if json.Unmarshal(b.Input, &input) == nil {
			f.expect(b.ID, input.Prompt, f.final.engine.Subagent(b.Script.Subagent))
		}
	}
	return b
}

// toolName is the name under which the request offers a tool of the scenario.
func (f *fold) toolName(name string) string {
	offered := f.r.tools.names
	canonical := scenarios.CanonicalTool(name)
	if slices.Contains(offered, canonical) {
		return canonical
	}
	var found []string
	for _, o := range offered {
		if sameTool(name, o) {
			found = append(found, o)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	if name == "Task" && f.r.claudeCode() { // the wire knows it by its other name
		canonical = "Agent"
	}
	deferred := f.r.claudeCode() && strings.HasPrefix(canonical, "mcp__")
	if !deferred {
		f.findings = append(f.findings, fmt.Sprintf("the tool %s is not offered by the request", canonical))
	}
	return canonical
}

// structure adds the scripted structured output, in the way that the request asks
// for it.
func (f *fold) structure(m *message, a *answer) {
	if a.structured == nil {
		return
	}
	if slices.Contains(f.r.tools.names, structuredTool) {
		m.blocks = append(m.blocks, protocol.ToolUse{
			Type: "tool_use", ID: f.s.id("toolu", f.key(), structuredTool), Name: structuredTool, Input: a.structured,
		})
		return
	}
	var config struct {
		Format struct {
			Type string `json:"type"`
		} `json:"format"`
		Type string `json:"type"` // the older output_format
	}
	if f.r.outputConfig == nil || json.Unmarshal(f.r.outputConfig, &config) != nil {
		return
	}
	if config.Format.Type == "json_schema" || config.Type == "json_schema" {
		m.blocks = []protocol.Block{protocol.Text(string(a.structured))}
	}
}

// unfill takes what the request already says off the first text.
func (m *message) unfill(prefill string) {
	for i, b := range m.blocks {
		if text, ok := b.(protocol.TextBlock); ok {
			rest, cut := strings.CutPrefix(text.Text, prefill)
			if !cut {
				rest, cut = strings.CutPrefix(text.Text, strings.TrimRight(prefill, " \n"))
			}
			if cut {
				m.blocks[i] = protocol.Text(rest)
			}
			return
		}
	}
}

// shorten cuts the text at a stop sequence and at max_tokens. What follows a cut
// is not said.
func (m *message) shorten(r *request) {
	left := r.maxTokens
	for i, b := range m.blocks {
		text, ok := b.(protocol.TextBlock)
		if !ok {
			continue
		}
		said := text.Text
		cut := -1
		for _, stop := range r.stops {
			if at := strings.Index(said, stop); stop != "" && at >= 0 && (cut < 0 || at < cut) {
				cut, m.sequence = at, &stop
			}
		}
		if cut >= 0 {
			said = said[:cut]
		}
		switch {
		case r.hasMax && said != "" && scenarios.Tokens(len(said)) > left:
			m.blocks = append(slices.Clone(m.blocks[:i]), protocol.Text(firstBytes(said, 4*left)))
			m.stop, m.sequence = "max_tokens", nil
			return
		case cut >= 0:
			m.blocks = append(slices.Clone(m.blocks[:i]), protocol.Text(said))
			m.stop = "stop_sequence"
			return
		}
		left -= scenarios.Tokens(len(said))
	}
}

// firstBytes are at most n bytes of text, whole characters.
func firstBytes(text string, n int) string {
	n = max(0, min(n, len(text)))
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/claudeless/claudeless/internal/api/wire"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const structuredOutputTool = "StructuredOutput"

// BuildMessage builds the API's message from the scripted answer. now is the time for the prompt cache.
func (f *replay) BuildMessage(now time.Time) *wire.Message {
	a := f.finalState.answer
	m := &wire.Message{ID: f.id("msg"), Model: f.request.Model, StopReason: a.stopReason}
	for _, b := range a.blocks {
		switch b := b.(type) {
		case protocol.ToolUse:
			m.Blocks = append(m.Blocks, f.completeCall(b, len(m.Blocks)))
		case protocol.ThinkingBlock:
			m.Blocks = append(m.Blocks, scenarios.WithSignature(b))
		default:
			m.Blocks = append(m.Blocks, b)
		}
	}
	f.addStructuredOutput(m, a)
	if f.prefill != "" {
		m.TrimPrefill(f.prefill)
	}
	visible := slices.DeleteFunc(slices.Clone(m.Blocks), func(b protocol.Block) bool { text, ok := b.(protocol.TextBlock); return ok && text.Text == "" })
	if m.Blocks = visible; len(visible) == 0 {
		m.Blocks = []protocol.Block{protocol.Text("")}
	}
	m.Truncate(f.request.MaxTokens, f.request.StopSequences)
	m.Usage = scenarios.Estimate(a.lastRequest, m.Blocks)
	switch {
	case a.usage != nil:
		m.Usage = *a.usage
		m.Cache = wire.CacheTokens{Read: a.usage.CacheReadInputTokens, Created5m: a.usage.CacheCreationInputTokens}
	case f.replayer.scenario.API.Cache:
		share := f.memory.prompts.ComputeUsage(f.request, now)
		m.Usage.InputTokens = estimateTokens(share.Uncached)
		m.Cache = wire.CacheTokens{Read: estimateTokens(share.Read), Created5m: estimateTokens(share.Created5m), Created1h: estimateTokens(share.Created1h)}
	}
	m.ThinkingTokens = scenarios.ThinkingTokens(m.Blocks)
	m.StopReason = cmp.Or(m.StopReason, scenarios.StopReason(m.Blocks))
	if f.hidesThinking() {
		m.HideThinking()
	}
	return m
}

// estimateTokens returns the number of tokens in a part of a request; 0 for an empty part.
func estimateTokens(bytes int) int {
	if bytes == 0 {
		return 0
	}
	return scenarios.Tokens(bytes)
}

func (f *replay) hidesThinking() bool {
	var thinking struct {
		Display string `json:"display"`
	}
	return f.request.Thinking != nil && json.Unmarshal(f.request.Thinking, &thinking) == nil && thinking.Display == "omitted"
}

// completeCall fills in a scripted call for this request: the name under which the request offers the tool and, if they
// are missing, an id and an empty input. If the call starts a sub-agent with a script, completeCall remembers the
// script for the sub-agent.
func (f *replay) completeCall(b protocol.ToolUse, index int) protocol.ToolUse {
	b.Type = "tool_use"
	b.Name = f.offeredToolName(b.Name)
	if b.ID == "" {
		b.ID = f.id("toolu", fmt.Sprint(index))
	}
	if len(b.Input) == 0 {
		b.Input = json.RawMessage("{}")
	}
	if b.Script != nil && b.Script.Subagent != nil {
		var input struct {
			Prompt string `json:"prompt"`
		}
		if json.Unmarshal(b.Input, &input) == nil {
			f.rememberSubagent(b.ID, input.Prompt, f.finalState.engine.Subagent(b.Script.Subagent))
		}
	}
	return b
}

func (f *replay) offeredToolName(name string) string {
	offered := f.request.Tools.Names
	canonical := scenarios.CanonicalTool(name)
	if slices.Contains(offered, canonical) {
		return canonical
	}
	var found []string
	for _, o := range offered {
		if matchesToolName(name, o) {
			found = append(found, o)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	if name == "Task" && f.request.IsClaudeCode() { // the wire name of the tool
		canonical = "Agent"
	}
	if !f.request.IsClaudeCode() { // Claude Code has tools that requests do not list, such as WebFetch; the result shows whether the tool exists
		f.findings = append(f.findings, fmt.Sprintf("the tool %s is not offered by the request", canonical))
		f.unofferedTools = append(f.unofferedTools, canonical)
	}
	return canonical
}

// addStructuredOutput adds the scripted structured output, as a call of the tool for it or as the text of the message.
func (f *replay) addStructuredOutput(m *wire.Message, a *scriptedAnswer) {
	if a.structured == nil {
		return
	}
	if slices.Contains(f.request.Tools.Names, structuredOutputTool) {
		m.Blocks = append(m.Blocks, protocol.ToolUse{Type: "tool_use", ID: f.id("toolu", structuredOutputTool), Name: structuredOutputTool, Input: a.structured})
		return
	}
	var config struct {
		Format struct {
			Type string `json:"type"`
		} `json:"format"`
		Type string `json:"type"` // set in the older output_format
	}
	if f.request.OutputConfig == nil || json.Unmarshal(f.request.OutputConfig, &config) != nil {
		return
	}
	if config.Format.Type == "json_schema" || config.Type == "json_schema" {
		m.Blocks = []protocol.Block{protocol.Text(string(a.structured))}
	}
}

// id returns an id of the answer.
func (f *replay) id(prefix string, parts ...string) string {
	if f.replayer.bySession {
		parts = append(parts, f.request.Session, f.request.Agent)
	}
	return f.replayer.ID(prefix, f.HistoryDigest(), parts...)
}

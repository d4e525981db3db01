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

// BuildAnswerAndUpdateMemory builds the API's message from the scripted answer. now decides which cached prefixes have expired.
func (f *historyReplay) BuildAnswerAndUpdateMemory(now time.Time) *wire.Message {
	a := f.finalState.answer
	m := &wire.Message{ID: f.deriveAnswerID("msg"), Model: f.request.Model, StopReason: a.stopReason}
	for _, b := range a.blocks {
		switch b := b.(type) {
		case protocol.ToolUse:
			m.Blocks = append(m.Blocks, f.completeCallAndStoreScript(b, len(m.Blocks)))
		case protocol.ThinkingBlock:
			m.Blocks = append(m.Blocks, scenarios.WithDefaultSignature(b))
		default:
			m.Blocks = append(m.Blocks, b)
		}
	}
	f.addStructuredOutputAsCallOrText(m, a)
	if f.prefill != "" {
		m.TrimPrefill(f.prefill)
	}
	visible := slices.DeleteFunc(slices.Clone(m.Blocks), func(b protocol.Block) bool { text, ok := b.(protocol.TextBlock); return ok && text.Text == "" })
	if m.Blocks = visible; len(visible) == 0 {
		m.Blocks = []protocol.Block{protocol.Text("")}
	}
	m.Truncate(f.request.MaxTokens, f.request.StopSequences)
	m.Usage = scenarios.EstimateUsage(a.lastRequest, m.Blocks)
	switch {
	case a.usage != nil:
		m.Usage = *a.usage
		m.Cache = wire.CacheTokens{Read: a.usage.CacheReadInputTokens, Created5m: a.usage.CacheCreationInputTokens}
	case f.replayer.scenario.API.Cache:
		share := f.memory.prompts.ComputeUsageAndStorePrefixes(f.request, now)
		m.Usage.InputTokens = estimateTokens(share.Uncached)
		m.Cache = wire.CacheTokens{Read: estimateTokens(share.Read), Created5m: estimateTokens(share.Created5m), Created1h: estimateTokens(share.Created1h)}
	}
	m.ThinkingTokens = scenarios.EstimateThinkingTokens(m.Blocks)
	m.StopReason = cmp.Or(m.StopReason, scenarios.DefaultStopReason(m.Blocks))
	var thinking struct{ Display string }
	if json.Unmarshal(f.request.Thinking, &thinking) == nil && thinking.Display == "omitted" {
		m.ClearThinkingTexts()
	}
	return m
}

// estimateTokens returns the number of tokens in a part of a request; 0 for an empty part.
func estimateTokens(bytes int) int {
	if bytes == 0 {
		return 0
	}
	return scenarios.EstimateTokens(bytes)
}

// completeCallAndStoreScript completes a scripted call for this request. It sets the name under which the request offers the
// tool and, if they are missing, an id and an empty input. If the call starts a scripted sub-agent, it stores the script.
func (f *historyReplay) completeCallAndStoreScript(scriptedCall protocol.ToolUse, blockIndex int) protocol.ToolUse {
	scriptedCall.Type = "tool_use"
	scriptedCall.Name = f.offeredToolNameOrRecordFinding(scriptedCall.Name)
	if scriptedCall.ID == "" {
		scriptedCall.ID = f.deriveAnswerID("toolu", fmt.Sprint(blockIndex))
	}
	if len(scriptedCall.Input) == 0 {
		scriptedCall.Input = json.RawMessage("{}")
	}
	if scriptedCall.Script != nil && scriptedCall.Script.Subagent != nil {
		var input struct{ Prompt string }
		if json.Unmarshal(scriptedCall.Input, &input) == nil {
			f.storeSubagentScript(scriptedCall.ID, input.Prompt, f.finalState.engine.NewSubagentEngine(scriptedCall.Script.Subagent))
		}
	}
	return scriptedCall
}

func (f *historyReplay) offeredToolNameOrRecordFinding(name string) string {
	offered := f.request.Tools.Names
	canonical := scenarios.CanonicalToolName(name)
	if slices.Contains(offered, canonical) {
		return canonical
	}
	var found []string
	for _, o := range offered {
		if isSameTool(name, o) {
			found = append(found, o)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	if name == "Task" && f.request.IsClaudeCode() { // the name of the tool in requests of Claude Code is Agent
		canonical = "Agent"
	}
	if !f.request.IsClaudeCode() { // Claude Code has tools that requests do not list, such as WebFetch
		f.findings = append(f.findings, fmt.Sprintf("the tool %s is not offered by the request", canonical))
		f.unofferedTools = append(f.unofferedTools, canonical)
	}
	return canonical
}

func (f *historyReplay) addStructuredOutputAsCallOrText(m *wire.Message, a *scriptedAnswer) {
	if a.structured == nil {
		return
	}
	if slices.Contains(f.request.Tools.Names, structuredOutputTool) {
		m.Blocks = append(m.Blocks, protocol.ToolUse{Type: "tool_use", ID: f.deriveAnswerID("toolu", structuredOutputTool), Name: structuredOutputTool, Input: a.structured})
		return
	}
	var config struct {
		Format struct{ Type string } `json:"format"`
		Type   string                `json:"type"` // set in the older output_format
	}
	if f.request.OutputConfig == nil || json.Unmarshal(f.request.OutputConfig, &config) != nil {
		return
	}
	if config.Format.Type == "json_schema" || config.Type == "json_schema" {
		m.Blocks = []protocol.Block{protocol.Text(string(a.structured))}
	}
}

func (f *historyReplay) deriveAnswerID(prefix string, distinguishingParts ...string) string {
	if f.replayer.bySession {
		distinguishingParts = append(distinguishingParts, f.request.Session, f.request.Agent)
	}
	return f.replayer.ID(prefix, f.HistoryDigest(), distinguishingParts...)
}

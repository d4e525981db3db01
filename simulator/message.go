package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// streamedMessage is a reply of the model while it is streamed.
type streamedMessage struct {
	*turnContext
	messageHead
	index       *executor.ToolNameIndex
	pace        scenarios.Pace
	nextChunkAt time.Time // time at which the latest chunk was due; zero before the first
	calls       []preparedCall
	round       *toolCallRunner               // starts and refuses calls during the stream
	summary     protocol.CompletedMessageInfo // summary of the message, completed while its blocks are emitted

	openBlockText              strings.Builder    // streamed part of the open text block
	messageStartSent           bool               // message_start was emitted
	isUnstreamed               bool               // the message arrives without stream events
	hasSingleBlock             bool               // the message has one block; if it is an empty text, it is not shown
	receivedChars              int                // streamed characters of all blocks, without signatures
	openBlockIndex             int                // index of the open block; -1 if none
	lastCallFirstEffect        CallStartOrRefusal // first effect of the last call, if the stream has not reached it yet
	funcsQueuedForStreamEvents []func()           // functions to call after the next events of the stream, one after each event
	assistantEventCount        int
}

type messageHead struct {
	id, requestID string
	modelName     string // full name of the model, used in the totals
	wireModel     string // name of the model in the API's responses
	stopReason    string
	replyUsage
}

type preparedCall struct {
	toolUse          protocol.ToolUse           // the call; its Name is the tool that runs
	tool             protocol.Tool              // zero if the tool is unknown
	assistantEventID string                     // uuid of the assistant event
	writtenName      string                     // tool name that the model wrote, if another tool runs
	readOnly         bool                       // means that the call may run in parallel even if its tool is not read-only
	runsAlone        bool                       // means that the call must not run in parallel even if its tool is read-only
	refusal          *executor.Result           // result that replaces the run; nil means the call may run
	earlyResult      *executedCall              // the result that was emitted while the message was streamed; nil means none
	result           protocol.ToolResult        // set when the call has ended
	started          *callStartedWhileStreaming // set if the call has been running since its message was streamed; otherwise nil
}

// emitBlocks emits a message block by block, as the real CLI does: each assistant event precedes its content_block_stop.
func (m *streamedMessage) emitBlocks(ctx context.Context, blocks []protocol.Block) error {
	if err := m.waitAndEmitMessageStart(ctx); err != nil {
		return err
	}
	for _, b := range blocks {
		if use, is := b.(protocol.ToolUse); is {
			m.summary.Calls = append(m.summary.Calls, use.Name)
		}
	}
	m.hasSingleBlock = len(blocks) == 1
	for i, b := range blocks {
		m.summary.Index, m.summary.BlocksAfter, m.summary.InputStreamMS, m.summary.Displayed = i, len(blocks)-1-i, nil, nil
		m.openBlockText.Reset()
		if err := cmp.Or(m.streamBlockWithoutStop(ctx, i, b), m.out.errorIfConsumerStopped()); err != nil {
			return err
		}
		m.emitContentBlockStop(i)
		if err := m.startOrRefuseLastCallIfDue(ctx, StreamPointTwoEventsAfterBlockStop); err != nil {
			return err
		}
	}
	m.endStreamAndCountUsage()
	return m.out.errorIfConsumerStopped()
}

func (m *streamedMessage) waitAndEmitMessageStart(ctx context.Context) error {
	m.openBlockIndex = -1
	if err := m.background.sleepWhileEmittingTaskEvents(ctx, m.pace.TTFT()); err != nil {
		return err
	}
	if l := m.totals; l.firstToken.IsZero() {
		l.firstToken = l.clock.Now()
	}
	m.messageStartSent = true
	if m.areStreamEventsOmitted() {
		return nil
	}
	ev := m.newStreamEvent(orderedJSONObject{{"type", "message_start"}, {"message", orderedJSONObject{
		{"id", m.id},
		{"type", "message"},
		{"role", "assistant"},
		{"model", m.wireModel},
		{"content", []string{}},
		{"stop_reason", nil},
		{"stop_sequence", nil},
		{"usage", usageAtMessageStart(m.usage)},
	}}}, m.thinkingDisplay())
	ev.TTFTMS = new(milliseconds(m.pace.TTFT()))
	m.prompts.setPromptUUIDsOfFirstMessageStart(ev)
	m.totals.startedMessageIDs = append(m.totals.startedMessageIDs, m.id)
	m.out.emitAsIs(ev)
	return m.out.errorIfConsumerStopped()
}

// endStreamAndCountUsage emits message_delta and message_stop, and adds the usage of the message to the totals.
func (m *streamedMessage) endStreamAndCountUsage() {
	if m.out.consumerStopped {
		return
	}
	m.totals.lastReply = &m.replyUsage
	m.totals.addReplyToSession(m.modelName, m.replyUsage)
	if agent := m.sim.options.Agent; agent != nil && len(m.summary.Calls) > 0 { // the usage of the last reply is part of the result
		m.out.emitAsIs(&protocol.AgentUsage{Models: m.totals.session.takeModelsSinceResult(), BeforeAwaitedWork: agent.Depth == 1 && !agent.InBackground})
	}
	usage := orderedJSONObject{
		{"input_tokens", m.usage.InputTokens},
		{"cache_creation_input_tokens", m.usage.CacheCreationInputTokens},
		{"cache_read_input_tokens", m.usage.CacheReadInputTokens},
		{"output_tokens", m.usage.OutputTokens},
	}
	if m.thinkingTokens > 0 {
		usage = append(usage, jsonMember{"output_tokens_details", protocol.OutputTokenDetails{ThinkingTokens: m.thinkingTokens}})
	}
	m.emitStreamEventIfEnabled(orderedJSONObject{{"type", "message_delta"}, {"delta", orderedJSONObject{{"stop_reason", m.stopReason}, {"stop_sequence", nil}}}, {"usage", usage}}, "")
	m.runNextFuncQueuedForStreamEvent()
	m.emitStreamEventIfEnabled(orderedJSONObject{{"type", "message_stop"}}, "")
	m.runAllFuncsQueuedForStreamEvents()
}

// streamBlockWithoutStop emits a block except for its content_block_stop: first its other stream events, then its assistant event.
func (m *streamedMessage) streamBlockWithoutStop(ctx context.Context, i int, b protocol.Block) error {
	switch b := b.(type) {
	case protocol.TextBlock:
		return m.streamTextAndEmitAssistant(ctx, i, b)
	case protocol.ThinkingBlock:
		return m.streamThinking(ctx, i, b)
	case protocol.ToolUse:
		return m.streamToolUseAndStartCall(ctx, i, b)
	case protocol.ServerToolCall: // the API runs the tool
		empty := b
		empty.Input = json.RawMessage("{}")
		if err := m.streamToolInputWithoutStop(ctx, i, empty, b.Input); err != nil {
			return err
		}
	default: // blocks without deltas
		m.emitContentBlockStart(i, b, "")
	}
	m.emitAssistant(b, nil)
	return nil
}

// waitUntilChunkIsDue waits until a chunk is due. After a late chunk the wait is shorter, so that delays do not accumulate.
func (m *streamedMessage) waitUntilChunkIsDue(ctx context.Context, chunk string) error {
	if chunk == "" {
		return ctx.Err()
	}
	wait, now := m.pace.DelayBefore(chunk), m.sim.options.Clock.Now()
	if m.nextChunkAt.IsZero() || now.Sub(m.nextChunkAt) > time.Second { // the consumer was slow, so the chunk is due now
		m.nextChunkAt = now
	}
	m.nextChunkAt = m.nextChunkAt.Add(wait)
	return m.background.sleepWhileEmittingTaskEvents(ctx, min(wait, m.nextChunkAt.Sub(now)))
}

func (m *streamedMessage) streamToolInputWithoutStop(ctx context.Context, i int, empty protocol.Block, input json.RawMessage) error {
	m.emitContentBlockStart(i, empty, "")
	for _, chunk := range m.pace.SplitInput(string(input)) {
		if err := m.waitUntilChunkIsDue(ctx, chunk); err != nil {
			return err
		}
		m.emitContentBlockDelta(i, "partial_json", chunk, "")
	}
	return nil
}

func (m *streamedMessage) streamTextAndEmitAssistant(ctx context.Context, i int, b protocol.TextBlock) error {
	m.emitContentBlockStart(i, protocol.Text(""), "")
	m.streamCitations(i, b.Citations)
	for _, chunk := range m.pace.Split(b.Text) {
		if err := m.waitUntilChunkIsDue(ctx, chunk); err != nil {
			return err
		}
		m.openBlockText.WriteString(chunk)
		m.emitContentBlockDelta(i, "text", chunk, "")
	}
	var err error
	if m.summary.Displayed, err = m.hooks.runMessageDisplayHooks(ctx, b.Text); err != nil {
		return err
	}
	switch {
	case b.Text != "":
		m.emitAssistant(b, nil)
	case m.hasSingleBlock: // an empty text is recorded in the transcript, but stdout does not show it
		m.out.emitAsIs(&protocol.TranscriptOnlyEvent{Event: m.assistantEvent(b, nil)})
	}
	return nil
}

// streamIncompleteText streams an incomplete text block, without its content_block_stop.
func (m *streamedMessage) streamIncompleteText(ctx context.Context, text string) error {
	m.emitContentBlockStart(0, protocol.Text(""), "")
	for _, chunk := range m.pace.Split(text) {
		if err := m.background.sleepWhileEmittingTaskEvents(ctx, m.pace.DelayBefore(chunk)); err != nil {
			return err
		}
		m.emitContentBlockDelta(0, "text", chunk, "")
	}
	return nil
}

func (m *streamedMessage) streamCitations(i int, list json.RawMessage) {
	var each []json.RawMessage
	_ = json.Unmarshal(list, &each) // the list was validated when the scenario was loaded
	for _, c := range each {
		delta := orderedJSONObject{{"type", "citations_delta"}, {"citation", c}}
		m.emitStreamEventIfEnabled(orderedJSONObject{{"type", "content_block_delta"}, {"index", i}, {"delta", delta}}, "")
	}
}

// thinkingDisplay returns the value of thinking_display in the events of the message; empty means that they do not have the key.
func (m *streamedMessage) thinkingDisplay() string {
	if !m.sim.options.State.SessionStateSnapshot().Thinking.LetsModelThink(claudecode.FactsOfModel(m.sim.resolvedModelName())) {
		return ""
	}
	return cmp.Or(m.sim.options.Display.Thinking, "updates")
}

func (m *streamedMessage) streamThinking(ctx context.Context, i int, b protocol.ThinkingBlock) error {
	began, display := m.sim.options.Clock.Now(), m.thinkingDisplay()
	m.emitContentBlockStart(i, protocol.ThinkingBlock{Type: "thinking"}, display)
	chunks := []string{b.Thinking}
	if m.pace.TokensPerSecond > 0 {
		chunks = m.pace.Split(b.Thinking)
	}
	tokens := 0
	for _, chunk := range chunks {
		if err := m.waitUntilChunkIsDue(ctx, chunk); err != nil {
			return err
		}
		added := scenarios.EstimateTokens(len(utf16.Encode([]rune(chunk)))) // the real CLI counts characters here, not bytes
		tokens += added
		m.emitThinkingTokenEstimate(tokens, added)
		m.emitContentBlockDelta(i, "thinking", chunk, display)
	}
	if hidden := scenarios.EstimateTokens(len(b.Signature) * 3 / 4); hidden > tokens { // the real CLI estimates from the bytes in base64
		m.emitThinkingTokenEstimate(hidden, hidden-tokens)
	}
	m.emitContentBlockDelta(i, "signature", b.Signature, "")
	took := new(milliseconds(m.sim.options.Clock.Now().Sub(began)))
	m.emitAssistant(b, func(ev *protocol.AssistantEvent) { ev.ThinkingDurationMS, ev.ThinkingDisplay = took, display })
	return nil
}

func (m *streamedMessage) emitThinkingTokenEstimate(totalTokens, addedTokens int) {
	if !m.isUnstreamed {
		m.out.emitSystem("thinking_tokens", protocol.Field{Key: "estimated_tokens", Value: totalTokens}, protocol.Field{Key: "estimated_tokens_delta", Value: addedTokens})
	}
}

func (m *streamedMessage) streamToolUseAndStartCall(ctx context.Context, i int, b protocol.ToolUse) error {
	began := m.sim.options.Clock.Now()
	empty := b
	empty.Input = json.RawMessage("{}")
	if err := m.streamToolInputWithoutStop(ctx, i, empty, b.Written); err != nil {
		return err
	}
	m.summary.InputStreamMS = new(milliseconds(m.sim.options.Clock.Now().Sub(began)))
	var id string
	m.emitAssistant(b, func(ev *protocol.AssistantEvent) {
		id = ev.UUID
		if meta, ok := m.index.DisplayNames(b); ok {
			ev.ToolUseMeta = []protocol.ToolUseDisplayNames{meta}
		}
	})
	if err := m.out.errorIfConsumerStopped(); err != nil {
		return err
	}
	prepared := m.sim.options.Tools.Prepare(b)
	c := preparedCall{toolUse: b, assistantEventID: id, readOnly: prepared.ReadOnly, runsAlone: prepared.RunsAlone}
	if prepared.ExecutedName != "" {
		c.toolUse.Name, c.writtenName = prepared.ExecutedName, b.Name
	}
	known := false
	c.tool, known = m.index.Tool(c.toolUse.Name)
	// A call may be refused now if all earlier calls of the message already have results. If the session does not have the tool,
	// earlier calls without a result are allowed too if they can run in parallel.
	mayStart := m.canStartCallWhileStreaming(c)
	hasUnanswered := slices.ContainsFunc(m.calls, func(c preparedCall) bool { return c.earlyResult == nil })
	mayRefuse := !slices.ContainsFunc(m.calls, func(c preparedCall) bool { return c.earlyResult == nil && !c.canRunInParallel() })
	m.calls = append(m.calls, c)
	if (mayStart || mayRefuse) && !m.isUnstreamed {
		e := m.sim.options.Tools.FirstVisibleEffectOfCall(ctx, c.toolUse)
		if !e.Starts && c.toolUse.Name == structuredOutputTool && m.structured.schema != nil {
			e = CallStartOrRefusal{Point: StreamPointOneEventAfterBlockStop, Starts: true}
		}
		if e.Starts && mayStart || !e.Starts && mayRefuse && (!hasUnanswered || !known || e.ToolIsMissing) {
			m.lastCallFirstEffect = e
		}
	}
	return m.startOrRefuseLastCallIfDue(ctx, StreamPointBeforeBlockStop)
}

func (m *streamedMessage) emitAssistant(b protocol.Block, modify func(*protocol.AssistantEvent)) {
	m.runAllFuncsQueuedForStreamEvents()
	ev := m.assistantEvent(b, modify)
	m.assistantEventCount++
	m.out.emitAsIs(ev)
}

func (m *streamedMessage) assistantEvent(b protocol.Block, modify func(*protocol.AssistantEvent)) *protocol.AssistantEvent {
	final := m.summary
	final.StopReason, final.Usage = m.stopReason, finalUsage(m.usage, m.thinkingTokens)
	ev := &protocol.AssistantEvent{
		Type:      "assistant",
		Message:   protocol.AssistantMessage{ID: m.id, Type: "message", Role: "assistant", Model: m.wireModel, Content: []protocol.Block{b}, Usage: usageAtMessageStart(m.usage)},
		SessionID: m.sim.options.State.SessionID(), UUID: m.sim.options.Clock.NewID(), Timestamp: m.out.currentTimestamp(), RequestID: m.requestID,
		Final: &final,
	}
	if m.isUnstreamed {
		ev.Message.StopReason, ev.Message.Usage = &m.stopReason, finalUsage(m.usage, m.thinkingTokens)
	}
	m.prompts.setPromptUUIDsOfFirstAssistantEvent(ev)
	if modify != nil {
		modify(ev)
	}
	return ev
}

// emitAbortedTextAndCountUsage emits the text that was streamed before an interrupt, and counts the usage of the message.
// The output is estimated: one token for three characters.
func (m *streamedMessage) emitAbortedTextAndCountUsage() {
	if m.messageStartSent {
		m.totals.addReplyToSession(m.modelName, replyUsage{usage: scenarios.Usage{InputTokens: m.usage.InputTokens, OutputTokens: max(min(1, m.usage.OutputTokens), (m.receivedChars+1)/3)}})
	}
	if m.openBlockText.Len() > 0 {
		m.stopReason = ""
		m.emitAssistant(protocol.Text(m.openBlockText.String()), func(ev *protocol.AssistantEvent) { ev.Aborted, ev.Final.Usage = true, ev.Message.Usage })
	}
}

// emitStreamEndAfterInterrupt emits the stream events that end an interrupted message, if partial messages are enabled.
func (m *streamedMessage) emitStreamEndAfterInterrupt() {
	if !m.messageStartSent || !m.sim.options.Display.PartialMessages {
		return
	}
	if m.openBlockIndex >= 0 {
		m.emitContentBlockStop(m.openBlockIndex)
	}
	m.emitStreamEventIfEnabled(orderedJSONObject{
		{"type", "message_delta"},
		{"context_management", nil},
		{"delta", orderedJSONObject{{"container", nil}, {"stop_details", nil}, {"stop_reason", nil}, {"stop_sequence", nil}}},
		{"usage", orderedJSONObject{
			{"output_tokens_details", protocol.OutputTokenDetails{}},
			{"cache_creation_input_tokens", m.usage.CacheCreationInputTokens},
			{"cache_read_input_tokens", m.usage.CacheReadInputTokens},
			{"input_tokens", m.usage.InputTokens},
			{"iterations", []string{}},
			{"output_tokens", min(1, m.usage.OutputTokens)},
			{"server_tool_use", protocol.ServerToolUsage{}},
			{"fallback_credit", nil},
		}},
	}, "")
	m.emitMessageStopWithAbandonedBlocks()
}

// emitEndOfBrokenOffStream emits the stream events that end a message whose stream broke off, if partial messages are enabled.
// Its usage is not counted (observed with 2.1.330).
func (m *streamedMessage) emitEndOfBrokenOffStream() {
	if !m.sim.options.Display.PartialMessages {
		return
	}
	if m.openBlockIndex >= 0 {
		m.emitContentBlockStop(m.openBlockIndex)
	}
	m.emitMessageStopWithAbandonedBlocks()
}

func (m *streamedMessage) emitMessageStopWithAbandonedBlocks() {
	stop := m.newStreamEvent(orderedJSONObject{{"type", "message_stop"}}, "")
	stop.AbandonedBlocks = &protocol.AbandonedBlocks{APIMessageID: m.id, FromBlockIndex: m.assistantEventCount}
	m.out.emitAsIs(stop)
}

func (m *streamedMessage) emitContentBlockStart(i int, b protocol.Block, thinkingDisplay string) {
	m.openBlockIndex = i
	m.emitStreamEventIfEnabled(orderedJSONObject{{"type", "content_block_start"}, {"index", i}, {"content_block", b}}, thinkingDisplay)
	m.runNextFuncQueuedForStreamEvent()
}

// emitContentBlockDelta emits a chunk of a block as content_block_delta. key is the key that contains the chunk, such as "text".
func (m *streamedMessage) emitContentBlockDelta(i int, key, chunk, thinkingDisplay string) {
	kind := key + "_delta"
	if key == "partial_json" {
		kind = "input_json_delta"
	}
	if key != "signature" {
		m.receivedChars += utf8.RuneCountInString(chunk)
	}
	m.emitStreamEventIfEnabled(orderedJSONObject{{"type", "content_block_delta"}, {"index", i}, {"delta", orderedJSONObject{{"type", kind}, {key, chunk}}}}, thinkingDisplay)
	m.runNextFuncQueuedForStreamEvent()
}

func (m *streamedMessage) emitContentBlockStop(i int) {
	m.openBlockIndex = -1
	m.emitStreamEventIfEnabled(orderedJSONObject{{"type", "content_block_stop"}, {"index", i}}, "")
}

func (m *streamedMessage) areStreamEventsOmitted() bool {
	return m.isUnstreamed || !m.sim.options.Display.PartialMessages
}

func (m *streamedMessage) emitStreamEventIfEnabled(apiEvent orderedJSONObject, thinkingDisplay string) {
	if !m.areStreamEventsOmitted() {
		m.out.emitAsIs(m.newStreamEvent(apiEvent, thinkingDisplay))
	}
}

func (m *streamedMessage) newStreamEvent(apiEvent orderedJSONObject, thinkingDisplay string) *protocol.StreamEvent {
	return &protocol.StreamEvent{Type: "stream_event", Event: apiEvent, SessionID: m.sim.options.State.SessionID(), UUID: m.sim.options.Clock.NewID(), APIMessageID: m.id, ThinkingDisplay: thinkingDisplay}
}

type orderedJSONObject []jsonMember

type jsonMember protocol.Field

func (o orderedJSONObject) MarshalJSON() ([]byte, error) { return protocol.MarshalFields(o) }

// contentWithUnsentSchema returns the content of a result with the schema of the tool at the end, if the model did not have it
// (observed with 2.1.330). Scenarios see the result without the schema.
func contentWithUnsentSchema(tool string, res protocol.ToolResult) protocol.Content {
	text, isRefusal := strings.CutSuffix(res.Content.Text, "</tool_use_error>")
	switch schema := string(res.UnsentSchema); {
	case schema == "":
		return res.Content
	case isRefusal:
		return protocol.Content{Text: text + "\n\nThis tool's schema was not sent to the API — it was not in the discovered-tool set derived from message history. " +
			"To load it, call ToolSearch with query \"select:" + tool + "\", then call the tool again. For reference, this tool's input schema is: " + schema + "</tool_use_error>"}
	default:
		return protocol.Content{Text: text + "\n\nThis tool's input schema was not in your prompt when you called it. The input schema is: " + schema +
			"\nCompare your input with it: if they differ, correct the input and call the tool again. If the error stays, call ToolSearch with query \"select:" + tool + "\" first."}
	}
}

// mcpCallNotReadOnlyReason returns why a successful call of an MCP tool may have changed something: "declared" if
// readOnlyHint is false, "no_hint" if readOnlyHint is missing. Otherwise it returns "".
func mcpCallNotReadOnlyReason(mcpTool protocol.Tool, result protocol.ToolResult) string {
	var hints struct {
		ReadOnly *bool `json:"readOnlyHint"`
	}
	_ = json.Unmarshal(mcpTool.Annotations, &hints) // invalid annotations are ignored
	switch {
	case result.IsError || hints.ReadOnly != nil && *hints.ReadOnly:
		return ""
	case hints.ReadOnly != nil:
		return "declared"
	}
	return "no_hint"
}

// inputChanger returns who changed the input of a call that ran. If a hook and then the host changed it, it returns only the host.
func inputChanger(use protocol.ToolUse, res executor.Result) (settingsHookOrPermissionAnswerOrEmpty string) {
	written, executed := plainjson.DecodeIgnoringErrors[any](use.Input), plainjson.DecodeIgnoringErrors[any](res.ExecutedInput)
	if executed == nil || use.Name == "AskUserQuestion" || reflect.DeepEqual(written, executed) {
		return ""
	}
	return map[bool]string{true: "permission-answer", false: "settings-hook"}[res.Decision != nil && strings.HasPrefix(res.Decision.Source, "user_")]
}

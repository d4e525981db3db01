package telemetry

import (
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type recorderState struct {
	started       bool
	heldPrompt    *protocol.PromptAccepted // prompt that is kept until the start of the session is recorded; nil means none
	promptID      string
	sequence      int
	interaction   spanData
	turns         int
	traceID       hexID
	turnStart     time.Time
	prompts       attributeValues               // attributes of the span "interaction", one for each turn
	conversations map[string]*conversationState // state by agent id; "" is the main conversation
	servers       map[string]string             // sources of MCP servers
	connected     map[string]time.Time          // time at which each MCP server was connected
}

// conversationState is the state of the main conversation, or of the conversation of one agent.
type conversationState struct {
	requestSent     time.Time // time of the event that made the CLI send the running request
	answerStarted   time.Time
	messageID       string
	text            strings.Builder
	requestID       string    // request id of the last reply
	attempts        int       // failed attempts of the running request
	firstFailure    time.Time // time of the first failed attempt of the running request
	skill           string    // last skill that the turn has loaded
	server          string    // server and tool are the MCP call whose result the running request contains; empty means none
	tool            string
	agent           string // kind of the agent; empty means the main conversation
	messages, tools int
}

// Record records an event of the session. A nil recorder ignores it.
func (r *Recorder) Record(ev protocol.Event, at SessionModeAndModel) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moment = at
	r.recordSessionEvent(ev)
}

func (r *Recorder) recordSessionEvent(ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.TranscriptOnlyEvent:
		r.recordSessionEvent(ev.Event)
	case *protocol.PromptAccepted:
		r.beginTurn(ev)
	case *protocol.InitEvent:
		r.recordSessionStartAndHeldPrompt(ev)
	case *protocol.FailedAPIRequestBeforeRetry:
		line := r.findOrAddConversation("", "")
		if line.attempts++; line.attempts == 1 {
			line.firstFailure = r.options.Clock.Now()
		}
	case *protocol.AssistantEvent:
		r.recordSessionStartAndHeldPrompt(nil)
		r.recordAssistant(ev)
	case *protocol.ToolExecuted:
		r.recordTool(ev)
	case *protocol.SystemEvent:
		if ev.Subtype == "task_notification" {
			r.recordAgentEnd(ev)
		}
	case *protocol.ResultEvent:
		r.recordSessionStartAndHeldPrompt(nil)
		r.endTurn()
	}
}

func (r *Recorder) findOrAddConversation(agentID, agentKind string) *conversationState {
	l := r.state.conversations[agentID]
	if l == nil {
		now := r.options.Clock.Now()
		l = &conversationState{agent: agentKind, requestSent: now}
		r.state.conversations[agentID] = l
	}
	return l
}

// beginTurn begins a turn. The first prompt is recorded later, because telemetry reports the start
// of the session first. This needs the init event, which arrives after the prompt.
func (r *Recorder) beginTurn(ev *protocol.PromptAccepted) {
	if ev.Blocked || ev.WrittenByCLI && ev.Origin == nil && r.state.heldPrompt == nil && r.state.started && ev.PromptID == r.state.promptID {
		return // neither a blocked prompt nor a text that joins the running turn begins a turn
	}
	r.state.turnStart = r.options.Clock.Now()
	r.state.heldPrompt = ev
	main := r.findOrAddConversation("", "")
	main.requestSent, main.skill, main.server, main.tool = r.state.turnStart, "", "", ""
	if r.state.started {
		r.flushHeldPrompt()
	}
}

// flushHeldPrompt records the prompt that was kept until the session start was recorded.
func (r *Recorder) flushHeldPrompt() {
	ev := r.state.heldPrompt
	r.state.heldPrompt = nil
	r.state.promptID = ev.PromptID
	r.state.turns++
	r.state.traceID = r.newRepeatableID(16)
	r.state.interaction = spanData{SpanID: r.newRepeatableID(8), Start: toWholeMillisecondUnixNanos(r.state.turnStart)}
	text := ev.Content.Plain()
	shown := textOrSubstitute(r.options.Prompts, text, "")
	length := len([]rune(text))
	r.state.prompts = attributeValues{
		"gen_ai.operation.name": "invoke_agent", "user_prompt": shown, "user_prompt_length": length,
		"interaction.sequence": r.state.turns, "parent.source": "none", "queued_sends": 0,
	}
	r.recordLogEvent("user_prompt", r.state.interaction.SpanID, attributeValues{"prompt_length": strconv.Itoa(length), "prompt": shown, "prompt_text": shown, "message.uuid": ev.UUID})
}

func (r *Recorder) endTurn() {
	if r.state.interaction.SpanID == nil {
		return
	}
	took := r.options.Clock.Now().Sub(r.state.turnStart).Truncate(time.Millisecond)
	r.addToMetric("active_time.total", took.Seconds(), attributeValues{"type": "cli"})
	span := r.state.interaction
	span.End = toWholeMillisecondUnixNanos(r.options.Clock.Now())
	r.state.prompts["interaction.duration_ms"] = int(took.Milliseconds())
	r.recordSpan("interaction", span, r.state.prompts)
	r.state.interaction = spanData{}
}

// recordAssistant records a block of an answer. The last block ends the request.
func (r *Recorder) recordAssistant(ev *protocol.AssistantEvent) {
	id := ev.AgentID
	if id == "" && ev.ParentToolUseID != nil {
		id = *ev.ParentToolUseID
	}
	l := r.findOrAddConversation(id, ev.SubagentType)
	if ev.IsAPIErrorMessage {
		r.recordAPIErrorEvents(ev, l)
		return
	}
	if ev.Final == nil {
		return // the text comes from the CLI itself
	}
	if l.messageID != ev.Message.ID {
		l.messageID, l.answerStarted = ev.Message.ID, r.options.Clock.Now()
		l.text.Reset()
	}
	for _, b := range ev.Message.Content {
		if text, ok := b.(protocol.TextBlock); ok {
			l.text.WriteString(text.Text)
		}
	}
	if ev.Final.BlocksAfter == 0 {
		r.recordRequestEventsAndMetrics(ev, l, id)
	}
}

func (r *Recorder) recordRequestEventsAndMetrics(ev *protocol.AssistantEvent, l *conversationState, agentID string) {
	now, u, name := r.options.Clock.Now(), ev.Final.Usage, ev.Message.Model
	cost := claudecode.FactsOfModel(name).Cost(u.InputTokens, u.OutputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens)
	l.requestID = ev.RequestID
	v := r.querySourceAttributes(l, agentID)
	v["model"], v["effort"] = name, r.moment.Effort
	maps.Copy(v, map[string]any{
		"input_tokens": u.InputTokens, "output_tokens": u.OutputTokens, "cache_read_tokens": u.CacheReadInputTokens, "cache_creation_tokens": u.CacheCreationInputTokens,
		"cache_creation_5m_tokens": u.CacheCreation.Ephemeral5m, "cache_creation_1h_tokens": u.CacheCreation.Ephemeral1h,
		"cost_usd": cost, "cost_usd_micros": int(math.Round(cost * 1e6)), "duration_ms": milliseconds(now.Sub(l.requestSent)), "ttft_ms": milliseconds(l.answerStarted.Sub(l.requestSent)),
		"request_id": ev.RequestID, "speed": "normal", "message.uuid": ev.UUID,
	})
	r.recordLogEvent("api_request", r.state.interaction.SpanID, v)
	if text := l.text.String(); text != "" {
		v["response_length"], v["response"] = len([]rune(text)), textOrSubstitute(r.options.Responses, text, "")
		r.recordLogEvent("assistant_response", r.state.interaction.SpanID, v)
	}
	r.recordRequestSpan(ev, l, v)
	v["query_source"] = "main"
	if agentID != "" {
		v["query_source"] = "subagent"
	}
	r.addToMetric("cost.usage", cost, v)
	for _, kind := range []struct {
		name   string
		tokens int
	}{{"input", u.InputTokens}, {"output", u.OutputTokens}, {"cacheRead", u.CacheReadInputTokens}, {"cacheCreation", u.CacheCreationInputTokens}} {
		v["type"] = kind.name
		r.addToMetric("token.usage", float64(kind.tokens), v)
	}
	l.server, l.tool, l.attempts = "", "", 0
	l.messages++
	l.requestSent = now
}

func (r *Recorder) recordRequestSpan(ev *protocol.AssistantEvent, l *conversationState, attributes attributeValues) {
	v := attributeValues{
		"gen_ai.system": "anthropic", "gen_ai.request.model": attributes["model"], "llm_request.context": "interaction", "query_source_safe": attributes["query_source"],
		"success": true, "attempt": l.attempts + 1, "gen_ai.response.id": attributes["request_id"], "first_content_ms": attributes["ttft_ms"],
		"stop_reason": ev.Final.StopReason, "gen_ai.response.finish_reasons": []string{ev.Final.StopReason},
	}
	maps.Copy(v, attributes)
	r.recordSpan("llm_request", spanData{
		SpanID: r.newRepeatableID(8), Parent: r.state.interaction.SpanID, Start: toWholeMillisecondUnixNanos(l.requestSent), End: toWholeMillisecondUnixNanos(r.options.Clock.Now()),
		Events: []spanEvent{{Name: "gen_ai.request.attempt", Time: toWholeMillisecondUnixNanos(l.requestSent), Attributes: []attribute{{"attempt", newValue(l.attempts + 1)}}}},
	}, v)
}

func (r *Recorder) querySourceAttributes(conversation *conversationState, agentID string) attributeValues {
	v := attributeValues{"query_source": "sdk", "skill.name": conversation.skill}
	if r.options.Interactive {
		v["query_source"] = "repl_main_thread"
	}
	if agentID != "" {
		v["query_source"], v["agent.name"], v["agent_id"] = "agent:builtin:"+conversation.agent, conversation.agent, agentID
	}
	if conversation.server != "" {
		v["mcp_server.name"], v["mcp_tool.name"] = textOrSubstitute(r.options.ToolDetails, conversation.server, "custom"), textOrSubstitute(r.options.ToolDetails, conversation.tool, "custom")
	}
	return v
}

func (r *Recorder) recordAPIErrorEvents(failedReply *protocol.AssistantEvent, conversation *conversationState) {
	now := r.options.Clock.Now()
	v := r.querySourceAttributes(conversation, failedReply.AgentID)
	v["model"], v["effort"], v["error"], v["speed"] = r.moment.Model, r.moment.Effort, apiMessageOfCLIText(failedReply), "normal"
	v["duration_ms"], v["attempt"], v["request_id"] = milliseconds(now.Sub(conversation.requestSent)), conversation.attempts+1, failedReply.RequestID
	if failedReply.APIStatus != 0 {
		v["status_code"] = failedReply.APIStatus
	}
	r.recordLogEvent("api_error", r.state.interaction.SpanID, v)
	if conversation.attempts > 0 {
		v["total_attempts"], v["total_retry_duration_ms"] = conversation.attempts+1, milliseconds(now.Sub(conversation.firstFailure))
		r.recordLogEvent("api_retries_exhausted", r.state.interaction.SpanID, v)
	}
	conversation.attempts, conversation.requestSent = 0, now
}

// apiMessageOfCLIText extracts the message of the API from a text of the CLI such as "API Error: 529 Overloaded. …".
func apiMessageOfCLIText(ev *protocol.AssistantEvent) string {
	text := ""
	if len(ev.Message.Content) > 0 {
		if block, ok := ev.Message.Content[0].(protocol.TextBlock); ok {
			text = block.Text
		}
	}
	text = strings.TrimPrefix(strings.TrimPrefix(text, "API Error: "), strconv.Itoa(ev.APIStatus)+" ")
	short, _, _ := strings.Cut(text, ". ")
	return short
}

func (r *Recorder) recordAgentEnd(ev *protocol.SystemEvent) {
	id := ev.Text("task_id")
	l := r.state.conversations[id]
	if l == nil {
		return // the task is not an agent, or the agent has sent no request
	}
	var usage struct {
		TotalTokens int `json:"total_tokens"`
		ToolUses    int `json:"tool_uses"`
		DurationMS  int `json:"duration_ms"`
	}
	raw, err := json.Marshal(ev.FieldValue("usage"))
	if err == nil {
		err = json.Unmarshal(raw, &usage)
	}
	if err != nil {
		return
	}
	name := r.moment.Model
	r.recordLogEvent("subagent_completed", r.state.interaction.SpanID, attributeValues{
		"agent_type": l.agent, "agent.source": "built-in", "is_built_in": true, "is_async": true, "total_tokens": usage.TotalTokens,
		"total_tool_uses": usage.ToolUses, "duration_ms": usage.DurationMS, "model": name, "final_model": name, "model_swapped": false, "agent_id": id,
	})
	delete(r.state.conversations, id)
}

func (r *Recorder) recordTool(ev *protocol.ToolExecuted) {
	l := r.findOrAddConversation(ev.Use.CallerAgentID(), "")
	now, c := r.options.Clock.Now(), r.describeCall(ev)
	started := now.Add(-ev.Duration)
	span := spanData{SpanID: r.newRepeatableID(8), Parent: r.state.interaction.SpanID, Start: toWholeMillisecondUnixNanos(started), End: toWholeMillisecondUnixNanos(now)}
	c.attributes["request_id"] = l.requestID
	if d := ev.Result.Decision; d != nil {
		c.attributes["decision"], c.attributes["source"], c.attributes["permission_mode"] = d.Decision, d.Source, string(r.moment.Mode)
		r.recordLogEvent("tool_decision", span.SpanID, c.attributes)
		if c.editsFile {
			r.addToMetric("code_edit_tool.decision", 1, attributeValues{"decision": d.Decision, "source": d.Source, "tool_name": ev.Use.Name, "language": names().LanguageByExtension[strings.ToLower(filepath.Ext(c.path))]})
		}
		r.recordSpan("tool.blocked_on_user", spanData{SpanID: r.newRepeatableID(8), Parent: span.SpanID, Start: toWholeMillisecondUnixNanos(started), End: toWholeMillisecondUnixNanos(started)}, attributeValues{
			"duration_ms": 0, "decision": d.Decision, "source": d.Source,
		})
	}
	if ev.Result.NonExecutionKind == "" && (ev.Result.Decision == nil || ev.Result.Decision.Decision == "accept") {
		r.recordResultSpanAndMetrics(ev, c, span)
		if c.skill != "" && !ev.Result.IsError {
			l.skill = c.skill
		}
		if ev.Result.Server != "" {
			l.server, l.tool = ev.Result.Server, c.rawTool
		}
	}
	if r.options.ToolContent && !ev.Result.IsError {
		span.Events = c.contentEvents(ev, now)
	}
	r.recordSpan("tool", span, c.attributes)
	l.requestSent = now
	l.tools++
}

func (r *Recorder) recordResultSpanAndMetrics(ev *protocol.ToolExecuted, c toolCall, span spanData) {
	v, took := c.attributes, milliseconds(ev.Duration)
	ended := spanData{SpanID: r.newRepeatableID(8), Parent: span.SpanID, Start: span.Start, End: span.End}
	execution := attributeValues{"tool_use_id": ev.Use.ID, "gen_ai.tool.call.id": ev.Use.ID, "duration_ms": took, "success": !ev.Result.IsError}
	v["success"], v["duration_ms"] = strconv.FormatBool(!ev.Result.IsError), strconv.Itoa(took)
	v["tool_input_size_bytes"] = strconv.Itoa(len(c.input))
	if r.options.ToolDetails {
		v["tool_input"] = c.input
	}
	if ev.Result.IsError {
		kind := c.errorType()
		v["error_type"] = kind
		if r.options.ToolDetails {
			v["error"] = c.failedCallErrorText(ev)
		}
		text := textOrSubstitute(r.options.ToolDetails, c.failedCallErrorText(ev), kind)
		execution["error.type"], execution["error"], execution["error_class"] = "tool_error", text, kind
		ended.Status = spanStatus{Code: 2, Message: text}
	} else {
		v["tool_result_size_bytes"] = strconv.Itoa(len(ev.Result.Content.Plain()))
		r.recordToolMetrics(ev, c)
	}
	if c.skill != "" && !ev.Result.IsError {
		r.recordLogEvent("skill_activated", span.SpanID, attributeValues{
			"skill.name": textOrSubstitute(r.options.ToolDetails, c.skill, "custom_skill"), "invocation_trigger": "nested-skill", "skill.source": "projectSettings",
		})
	}
	if ev.Result.Server != "" {
		v["mcp_server_scope"] = r.state.servers[ev.Result.Server]
	}
	r.recordLogEvent("tool_result", r.state.interaction.SpanID, v)
	r.recordSpan("tool.execution", ended, execution)
	v["duration_ms"] = took
}

func (r *Recorder) recordToolMetrics(ev *protocol.ToolExecuted, c toolCall) {
	added, removed := 0, 0
	switch {
	case ev.Use.Name == "Bash":
		if regexp.MustCompile(`\bgit(?:\s+-[cC]\s+\S+|\s+--\S+)*\s+commit\b`).MatchString(c.command) {
			r.addToMetric("commit.count", 1, nil)
		}
		if regexp.MustCompile(`\bgh\s+pr\s+create\b`).MatchString(c.command) {
			r.addToMetric("pull_request.count", 1, nil)
		}
		return
	case !c.editsFile:
		return
	}
	if c.output.Type == "create" {
		added = strings.Count(c.output.Content, "\n") + 1
	}
	for _, hunk := range c.output.Patch {
		for _, line := range hunk.Lines {
			switch {
			case strings.HasPrefix(line, "+"):
				added++
			case strings.HasPrefix(line, "-"):
				removed++
			}
		}
	}
	r.addToMetric("lines_of_code.count", float64(added), attributeValues{"type": "added", "model": r.moment.Model})
	if removed > 0 || c.output.Type != "create" {
		r.addToMetric("lines_of_code.count", float64(removed), attributeValues{"type": "removed", "model": r.moment.Model})
	}
}

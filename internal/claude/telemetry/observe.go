package telemetry

import (
	"encoding/json"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// state is the recorder's state of the running session.
type state struct {
	started     bool
	prompt      *protocol.PromptAccepted // prompt whose event follows those of the session start
	promptID    string
	sequence    int
	interaction spanData
	turns       int
	trace       hexID
	turnStart   time.Time
	prompts     values                        // of the interaction
	lines       map[string]*conversationState // by agent; "" = the main conversation
	servers     map[string]string             // sources of MCP servers
	connected   map[string]time.Time          // since when they are
}

// conversationState is the main conversation or an agent.
type conversationState struct {
	requestSent time.Time // when the running request was sent, at the latest
	first       time.Time // when the answer began
	message     string    // id of the answer
	text        strings.Builder
	requestID   string // of the last answer
	attempts    int    // failed attempts of the running request
	attempted   time.Time
	skill       string // last skill that the turn has loaded
	server      string // MCP server and tool whose result the running request contains
	tool        string
	agent       string // type; empty = the main conversation
	messages    int
	tools       int
	began       time.Time
}

func newState() state {
	return state{lines: map[string]*conversationState{}, servers: map[string]string{}, connected: map[string]time.Time{}}
}

// Record takes an event of the session. A nil recorder ignores it.
func (r *Recorder) Record(ev protocol.Event, at Moment) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moment = at
	r.observe(ev)
}

func (r *Recorder) observe(ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.HiddenEvent:
		r.observe(ev.Event)
	case *protocol.PromptAccepted:
		r.beginTurn(ev)
	case *protocol.Init:
		r.begin(ev)
	case *protocol.CLIRetry:
		line := r.line("", "")
		if line.attempts++; line.attempts == 1 {
			line.attempted = r.o.Clock.Now()
		}
	case *protocol.Assistant:
		r.begin(nil)
		r.assistant(ev)
	case *protocol.ToolExecuted:
		r.tool(ev)
	case *protocol.System:
		if ev.Subtype == "task_notification" {
			r.agentEnded(ev)
		}
	case *protocol.Result:
		r.begin(nil)
		r.endTurn()
	}
}

// line returns the line of work of an agent.
func (r *Recorder) line(agent, kind string) *conversationState {
	l := r.state.lines[agent]
	if l == nil {
		now := r.o.Clock.Now()
		l = &conversationState{agent: kind, requestSent: now, began: now}
		r.state.lines[agent] = l
	}
	return l
}

// beginTurn begins a turn. The events of the start precede that of the first prompt, and the init
// event, from which they are made, follows it.
func (r *Recorder) beginTurn(ev *protocol.PromptAccepted) {
	if ev.Blocked || ev.Injected && ev.Origin == nil && r.state.prompt == nil && r.state.started && ev.PromptID == r.state.promptID {
		return // a text within the turn
	}
	r.state.turnStart = r.o.Clock.Now()
	r.state.prompt = ev
	main := r.line("", "")
	main.requestSent, main.skill, main.server, main.tool = r.state.turnStart, "", "", ""
	if r.state.started {
		r.user()
	}
}

// user records the prompt that waits.
func (r *Recorder) user() {
	ev := r.state.prompt
	r.state.prompt = nil
	r.state.promptID = ev.PromptID
	r.state.turns++
	r.state.trace = r.newID(16)
	r.state.interaction = spanData{SpanID: r.newID(8), Start: unix(r.state.turnStart)}
	text := ev.Content.Plain()
	shown := orElse(r.o.Prompts, text, "")
	length := len([]rune(text))
	r.state.prompts = values{
		"gen_ai.operation.name": "invoke_agent", "user_prompt": shown, "user_prompt_length": length,
		"interaction.sequence": r.state.turns, "parent.source": "none", "queued_sends": 0,
	}
	r.emit("user_prompt", r.state.interaction.SpanID, values{
		"prompt_length": strconv.Itoa(length), "prompt": shown, "prompt_text": shown, "message.uuid": ev.UUID,
	})
}

// endTurn records the end of a turn.
func (r *Recorder) endTurn() {
	if r.state.interaction.SpanID == nil {
		return
	}
	took := r.o.Clock.Now().Sub(r.state.turnStart).Truncate(time.Millisecond)
	r.add("active_time.total", took.Seconds(), values{"type": "cli"})
	span := r.state.interaction
	span.End = unix(r.o.Clock.Now())
	r.state.prompts["interaction.duration_ms"] = int(took.Milliseconds())
	r.end("interaction", span, r.state.prompts)
	r.state.interaction = spanData{}
}

// assistant records a block of an answer. The last block ends the request.
func (r *Recorder) assistant(ev *protocol.Assistant) {
	id := ev.AgentID
	if id == "" && ev.ParentToolUseID != nil {
		id = *ev.ParentToolUseID
	}
	l := r.line(id, ev.SubagentType)
	if ev.IsAPIErrorMessage {
		r.failure(ev, l)
		return
	}
	if ev.Final == nil {
		return // the text comes from the CLI itself
	}
	if l.message != ev.Message.ID {
		l.message, l.first = ev.Message.ID, r.o.Clock.Now()
		l.text.Reset()
	}
	for _, b := range ev.Message.Content {
		if text, ok := b.(protocol.TextBlock); ok {
			l.text.WriteString(text.Text)
		}
	}
	if ev.Final.BlocksAfter == 0 {
		r.answered(ev, l, id)
	}
}

// answered records a request that the model has answered.
func (r *Recorder) answered(ev *protocol.Assistant, l *conversationState, agent string) {
	now, u, name := r.o.Clock.Now(), ev.Final.Usage, ev.Message.Model
	facts := claudecode.FactsOfModel(name)
	cost := facts.Cost(u.InputTokens, u.OutputTokens) + facts.CacheCost(u.CacheReadInputTokens, u.CacheCreationInputTokens)
	l.requestID = ev.RequestID
	v := r.source(l, agent)
	v["model"], v["effort"] = name, r.moment.Effort
	maps.Copy(v, map[string]any{
		"input_tokens": u.InputTokens, "output_tokens": u.OutputTokens, "cache_read_tokens": u.CacheReadInputTokens, "cache_creation_tokens": u.CacheCreationInputTokens,
		"cache_creation_5m_tokens": u.CacheCreation.Ephemeral5m, "cache_creation_1h_tokens": u.CacheCreation.Ephemeral1h,
		"cost_usd": cost, "cost_usd_micros": int(math.Round(cost * 1e6)), "duration_ms": ms(now.Sub(l.requestSent)), "ttft_ms": ms(l.first.Sub(l.requestSent)),
		"request_id": ev.RequestID, "speed": "normal", "message.uuid": ev.UUID,
	})
	r.emit("api_request", r.state.interaction.SpanID, v)
	if text := l.text.String(); text != "" {
		v["response_length"], v["response"] = len([]rune(text)), orElse(r.o.Responses, text, "")
		r.emit("assistant_response", r.state.interaction.SpanID, v)
	}
	r.request(ev, l, v)
	v["query_source"] = "main"
	if agent != "" {
		v["query_source"] = "subagent"
	}
	r.add("cost.usage", cost, v)
	for _, kind := range []struct {
		name   string
		tokens int
	}{{"input", u.InputTokens}, {"output", u.OutputTokens}, {"cacheRead", u.CacheReadInputTokens}, {"cacheCreation", u.CacheCreationInputTokens}} {
		v["type"] = kind.name
		r.add("token.usage", float64(kind.tokens), v)
	}
	l.server, l.tool, l.attempts = "", "", 0
	l.messages++
	l.requestSent = now
}

// request records the span of a request.
func (r *Recorder) request(ev *protocol.Assistant, l *conversationState, of values) {
	v := values{
		"gen_ai.system": "anthropic", "gen_ai.request.model": of["model"], "llm_request.context": "interaction", "query_source_safe": of["query_source"],
		"success": true, "attempt": l.attempts + 1, "gen_ai.response.id": of["request_id"], "first_content_ms": of["ttft_ms"],
		"stop_reason": ev.Final.StopReason, "gen_ai.response.finish_reasons": []string{ev.Final.StopReason},
	}
	maps.Copy(v, of)
	r.end("llm_request", spanData{
		SpanID: r.newID(8), Parent: r.state.interaction.SpanID, Start: unix(l.requestSent), End: unix(r.o.Clock.Now()),
		Events: []spanEvent{{Name: "gen_ai.request.attempt", Time: unix(l.requestSent), Attributes: []attribute{{"attempt", newValue(l.attempts + 1)}}}},
	}, v)
}

// source returns the attributes that say who sent a request.
func (r *Recorder) source(l *conversationState, agent string) values {
	v := values{"query_source": "sdk", "skill.name": l.skill}
	if r.o.Interactive {
		v["query_source"] = "repl_main_thread"
	}
	if agent != "" {
		v["query_source"], v["agent.name"], v["agent_id"] = "agent:builtin:"+l.agent, l.agent, agent
	}
	if l.server != "" {
		v["mcp_server.name"], v["mcp_tool.name"] = orElse(r.o.ToolDetails, l.server, "custom"), orElse(r.o.ToolDetails, l.tool, "custom")
	}
	return v
}

// failure records a request that failed after all retries.
func (r *Recorder) failure(ev *protocol.Assistant, l *conversationState) {
	now := r.o.Clock.Now()
	v := r.source(l, ev.AgentID)
	v["model"], v["effort"], v["error"], v["speed"] = r.moment.Model, r.moment.Effort, apiError(ev), "normal"
	v["duration_ms"], v["attempt"], v["request_id"] = ms(now.Sub(l.requestSent)), l.attempts+1, ev.RequestID
	if ev.APIStatus != 0 {
		v["status_code"] = ev.APIStatus
	}
	r.emit("api_error", r.state.interaction.SpanID, v)
	if l.attempts > 0 {
		v["total_attempts"], v["total_retry_duration_ms"] = l.attempts+1, ms(now.Sub(l.attempted))
		r.emit("api_retries_exhausted", r.state.interaction.SpanID, v)
	}
	l.attempts, l.requestSent = 0, now
}

// apiError returns the message of the API in a text of the CLI: "API Error: 529 Overloaded. …".
func apiError(ev *protocol.Assistant) string {
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

// agentEnded records that an agent has ended.
func (r *Recorder) agentEnded(ev *protocol.System) {
	fields := map[string]any{}
	for _, f := range ev.Fields {
		fields[f.Key] = f.Value
	}
	id, _ := fields["task_id"].(string)
	l := r.state.lines[id]
	if l == nil {
		return // not an agent, or one without requests
	}
	var usage struct {
		TotalTokens int `json:"total_tokens"`
		ToolUses    int `json:"tool_uses"`
		DurationMS  int `json:"duration_ms"`
	}
	raw, err := json.Marshal(fields["usage"])
	if err == nil {
		err = json.Unmarshal(raw, &usage)
	}
	if err != nil {
		return
	}
	name := r.moment.Model
	r.emit("subagent_completed", r.state.interaction.SpanID, values{
		"agent_type": l.agent, "agent.source": "built-in", "is_built_in": true, "is_async": true, "total_tokens": usage.TotalTokens,
		"total_tool_uses": usage.ToolUses, "duration_ms": usage.DurationMS, "model": name, "final_model": name, "model_swapped": false, "agent_id": id,
	})
	delete(r.state.lines, id)
}

// tool records a call: the decision about it and its result.
func (r *Recorder) tool(ev *protocol.ToolExecuted) {
	agent := ""
	if ev.Use.Agent != nil {
		agent = ev.Use.Agent.ID
	}
	l := r.line(agent, "")
	now, c := r.o.Clock.Now(), r.describeCall(ev)
	started := now.Add(-ev.Duration)
	span := spanData{SpanID: r.newID(8), Parent: r.state.interaction.SpanID, Start: unix(started), End: unix(now)}
	c.all["request_id"] = l.requestID
	if d := ev.Result.Decision; d != nil {
		c.all["decision"], c.all["source"], c.all["permission_mode"] = d.Decision, d.Source, string(r.moment.Mode)
		r.emit("tool_decision", span.SpanID, c.all)
		if c.edits {
			r.add("code_edit_tool.decision", 1, values{"decision": d.Decision, "source": d.Source, "tool_name": ev.Use.Name, "language": language(c.path)})
		}
		r.end("tool.blocked_on_user", spanData{SpanID: r.newID(8), Parent: span.SpanID, Start: unix(started), End: unix(started)}, values{
			"duration_ms": 0, "decision": d.Decision, "source": d.Source,
		})
	}
	if ev.Result.NonExecutionKind == "" && (ev.Result.Decision == nil || ev.Result.Decision.Decision == "accept") {
		r.executed(ev, c, span)
		if c.skill != "" && !ev.Result.IsError {
			l.skill = c.skill
		}
		if ev.Result.Server != "" {
			l.server, l.tool = ev.Result.Server, c.rawTool
		}
	}
	if r.o.ToolContent && !ev.Result.IsError {
		span.Events = c.content(ev, now)
	}
	r.end("tool", span, c.all)
	l.requestSent = now
	l.tools++
}

// executed records a call that ran.
func (r *Recorder) executed(ev *protocol.ToolExecuted, c call, span spanData) {
	v, took := c.all, ms(ev.Duration)
	ended := spanData{SpanID: r.newID(8), Parent: span.SpanID, Start: span.Start, End: span.End}
	execution := values{"tool_use_id": ev.Use.ID, "gen_ai.tool.call.id": ev.Use.ID, "duration_ms": took, "success": !ev.Result.IsError}
	v["success"], v["duration_ms"] = strconv.FormatBool(!ev.Result.IsError), strconv.Itoa(took)
	v["tool_input_size_bytes"] = strconv.Itoa(len(c.input))
	if r.o.ToolDetails {
		v["tool_input"] = c.input
	}
	if ev.Result.IsError {
		kind := c.errorType()
		v["error_type"] = kind
		if r.o.ToolDetails {
			v["error"] = c.errorText(ev)
		}
		text := orElse(r.o.ToolDetails, c.errorText(ev), kind)
		execution["error.type"], execution["error"], execution["error_class"] = "tool_error", text, kind
		ended.Status = status{Code: 2, Message: text}
	} else {
		v["tool_result_size_bytes"] = strconv.Itoa(len(ev.Result.Content.Plain()))
		r.effects(ev, c)
	}
	if c.skill != "" && !ev.Result.IsError {
		r.emit("skill_activated", span.SpanID, values{
			"skill.name": orElse(r.o.ToolDetails, c.skill, "custom_skill"), "invocation_trigger": "nested-skill", "skill.source": "projectSettings",
		})
	}
	if ev.Result.Server != "" {
		v["mcp_server_scope"] = r.state.servers[ev.Result.Server]
	}
	r.emit("tool_result", r.state.interaction.SpanID, v)
	r.end("tool.execution", ended, execution)
	v["duration_ms"] = took
}

// effects records what a successful call has changed.
func (r *Recorder) effects(ev *protocol.ToolExecuted, c call) {
	added, removed := 0, 0
	switch {
	case ev.Use.Name == "Bash":
		if commitCommand().MatchString(c.command) {
			r.add("commit.count", 1, nil)
		}
		if pullRequestCommand().MatchString(c.command) {
			r.add("pull_request.count", 1, nil)
		}
		return
	case !c.edits:
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
	r.add("lines_of_code.count", float64(added), values{"type": "added", "model": r.moment.Model})
	if removed > 0 || c.output.Type != "create" {
		r.add("lines_of_code.count", float64(removed), values{"type": "removed", "model": r.moment.Model})
	}
}

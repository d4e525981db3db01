package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
)

// NewHistoryReplay returns the replay of a validated request. sharedMemory is the memory of the request's namespace.
func (s *historyReplayer) NewHistoryReplay(sharedMemory *requestNamespaceMemory, r *history.Request) *historyReplay {
	f := &historyReplay{replayer: s, memory: sharedMemory, request: r}
	messages := r.Messages
	for n := len(messages); n > 0 && messages[n-1].Role == "assistant"; n-- {
		f.prefill = messages[n-1].Text + f.prefill
		messages = messages[:n-1]
	}
	f.groups = historyGroupSplitter{f.memory, f.requestConversationKey(), &r.RequestSender, f.replayer.usesContext}.splitIntoGroupsWithKeys(messages)
	f.setVariablesAndAnswerSalt()
	if sharedMemory.ruleClaims != nil { // two sessions with equal histories may have different answers
		f.answerSalt = f.answerSalt.Chain("claims", r.Session, r.Agent)
	}
	return f
}

// Run replays the history. It changes only f and the memory of the namespace. The error comes from an expression or
// from ctx, or is a [*history.RejectedRequestError].
func (f *historyReplay) Run(ctx context.Context) error {
	last := len(f.groups) - 1
	var err error
	if f.attempt, err = f.memory.countAttempt(f.requestConversationKey(), f.HistoryDigest(), f.request.Retries); err != nil {
		f.findings = append(f.findings, "attempts: "+err.Error())
	}
	f.vars.Call.Attempt = f.attempt
	st, from := f.beginReplayAndStoreRoot()
	f.memory.mu.Lock()
	for i := last - 1; i >= from; i-- {
		if known, ok := f.memory.states.Get(f.stateKeyAfterGroup(i)); ok {
			st, from = known, i+1
			break
		}
	}
	f.memory.mu.Unlock()
	for i := from; i <= last; i++ {
		if i == last {
			f.stateBeforeLast = st
		}
		next, err := f.computeStateAfterGroup(ctx, st, i)
		if err != nil {
			return err
		}
		st = next
		f.memory.mu.Lock()
		f.memory.states.Put(f.stateKeyAfterGroup(i), st)
		f.memory.mu.Unlock()
	}
	f.finalState = st
	f.storeLastConversationState(st)
	return nil
}

func (f *historyReplay) stateKeyAfterGroup(groupIndex int) history.Digest {
	k := f.groups[groupIndex].key
	for j := range k {
		k[j] ^= f.answerSalt[j]
	}
	return k
}

func (f *historyReplay) computeStateAfterGroup(ctx context.Context, stateBefore *conversationState, groupIndex int) (*conversationState, error) {
	g := &f.groups[groupIndex]
	if g.Assistant {
		return f.compareScriptedAnswerWithHistory(stateBefore, g)
	}
	next := *stateBefore
	next.engine = stateBefore.engine.Fork()
	if f.replayer.usesContext {
		next.context = append(slices.Clip(stateBefore.context), g.Context...)
	}
	for _, step := range g.Steps {
		if err := f.advanceStateByHistoryStep(ctx, &next, g, step); err != nil {
			return nil, err
		}
	}
	return &next, nil
}

func (f *historyReplay) advanceStateByHistoryStep(ctx context.Context, state *conversationState, g *historyGroupWithKeys, step history.Segment) error {
	req := scenarios.Request{Prompt: step.Text}
	switch step.Kind {
	case history.KindSummaryReplacingHistory, history.KindResultsOfEndedTurn: // replaced by a summary, or never sent to the model
		return nil
	case history.KindInterrupt:
		state.pendingPrompts = nil
		return nil
	case history.KindAddedPrompt:
		state.pendingPrompts = append(slices.Clip(state.pendingPrompts), step.Text)
		return nil
	case history.KindResults:
		req = scenarios.Request{Results: f.toScenarioResultsInCallOrder(step.Results, g.Uses)}
	case history.KindClaudeCodeTextNeedingReply, history.KindTextRequestingNewReply:
		req.IsInjected, req.IsNotification = true, step.Kind == history.KindClaudeCodeTextNeedingReply
		if state.answer != nil && state.answer.hasMoreSteps && !state.answer.hasCalls {
			req = scenarios.Request{Results: []scenarios.ToolCallResult{}}
		}
	case history.KindTextRequestingRestOfReply:
		req = scenarios.Request{Results: []scenarios.ToolCallResult{}}
		state.wasReminded = true
	case history.KindBackgroundWorkNotice:
		req.IsInjected, req.IsNotification = true, true
		state.pendingPrompts, state.wasReminded = nil, false
	default:
		state.pendingPrompts, state.wasReminded = nil, false
		if f.replayer.usesContext {
			state.context = g.Context
		}
		f.vars.Call.Attachments = step.Files
	}
	req.Vars, req.Counter = f.vars, f.ruleCounterFor(g, step.Text)
	req.Vars.Context = state.context
	reply, err := state.engine.Next(ctx, req)
	if err != nil {
		return err
	}
	f.recordMissingValues(reply)
	switch {
	case reply.Failure != nil:
	case reply.Fault == "529-storm":
		reply.Failure = scenarios.FailureByName(string(scenarios.FailOverloaded))
	case scenarios.FaultChangesStreamedMessages(reply.Fault):
		reply.Failure = &scenarios.Failure{Type: scenarios.FailStreamFault, Fault: reply.Fault}
	}
	req.Vars, req.Counter = scenarios.ExpressionVars{}, nil // dropped, because they refer to the body, which is not kept
	state.answer = &scriptedAnswer{firstRequest: req, lastRequest: req, reply: reply}
	state.answer.addReplyBlocksUsageAndGates(reply)
	return f.appendRepliesUntilNextPrompt(ctx, state, g)
}

// ruleCounterFor returns the counter for the matches of rules in a step of group g. Nil means the engine counts them.
func (f *historyReplay) ruleCounterFor(g *historyGroupWithKeys, prompt string) scenarios.RuleCounter {
	if f.memory.ruleClaims == nil {
		return nil
	}
	return replayableMatchCounter{replay: f, keyUpToStep: g.key, prompt: prompt, isCurrent: g == &f.groups[len(f.groups)-1]}
}

func (f *historyReplay) recordMissingValues(reply scenarios.Reply) {
	for _, path := range reply.Missing {
		f.missingValues = append(f.missingValues, missingTemplateValue{reply.Rule, path})
	}
}

// appendRepliesUntilNextPrompt appends the replies that the CLI would request without a new prompt: those of the next
// steps, and those to prompts that were typed while the model worked. If the answer has calls, it appends nothing.
func (f *historyReplay) appendRepliesUntilNextPrompt(ctx context.Context, st *conversationState, g *historyGroupWithKeys) error {
	a := st.answer
	for !a.hasCalls && a.stopReason == "" {
		req := scenarios.Request{Results: []scenarios.ToolCallResult{}}
		added := false
		switch {
		case a.hasOnlyEmptyTexts() && !st.wasReminded && f.request.IsClaudeCode(): // the CLI asks again after an empty reply
			return nil
		case a.hasMoreSteps:
		case len(st.pendingPrompts) > 0:
			req, added = scenarios.Request{Prompt: st.pendingPrompts[0], IsInterjected: true}, true
			st.pendingPrompts = st.pendingPrompts[1:]
		default:
			return nil
		}
		req.Vars, req.Counter = f.vars, f.ruleCounterFor(g, req.Prompt)
		req.Vars.Context = st.context
		reply, err := st.engine.Next(ctx, req)
		if err != nil {
			return err
		}
		if added && reply.IsUnmatched {
			continue
		}
		f.recordMissingValues(reply)
		if reply.Failure != nil && a.reply.Failure == nil {
			a.reply.Failure, a.reply.Rule = reply.Failure, reply.Rule
		}
		req.Vars, req.Counter = scenarios.ExpressionVars{}, nil
		a.lastRequest = req
		a.addReplyBlocksUsageAndGates(reply)
	}
	return nil
}

func (f *historyReplay) toScenarioResultsInCallOrder(results []*history.ToolResult, toolUses []history.ToolUse) []scenarios.ToolCallResult {
	out := make([]scenarios.ToolCallResult, 0, len(results))
	for _, u := range toolUses {
		for _, r := range results {
			if r.ID != u.ID {
				continue
			}
			res := scenarios.ToolCallResult{ToolUseID: r.ID, Tool: u.Name, Text: r.Text, IsError: r.IsError, Content: r.Content}
			if strings.HasPrefix(u.Name, "mcp__") && strings.HasPrefix(r.Text, "{") && json.Valid([]byte(r.Text)) {
				res.Structured = json.RawMessage(r.Text)
			}
			out = append(out, res)
		}
	}
	return out
}

func (f *historyReplay) compareScriptedAnswerWithHistory(stateBefore *conversationState, assistantGroup *historyGroupWithKeys) (stateAfter *conversationState, refusalOfDivergence error) {
	a := stateBefore.answer
	if a == nil {
		return stateBefore, nil
	}
	next := *stateBefore
	if fail := a.reply.Failure; fail != nil && fail.Times > 0 {
		next.failureCounts = maps.Clone(stateBefore.failureCounts)
		if next.failureCounts == nil {
			next.failureCounts = map[string]int{}
		}
		next.failureCounts[a.reply.Rule.Name] = fail.Times
	}
	if what := a.diffHistory(assistantGroup, f.request.Tools); what != "" {
		text := fmt.Sprintf("history diverged at messages[%d]: %s", assistantGroup.Index, what)
		if f.replayer.scenario.API.Diverged == "error" {
			return nil, &history.RejectedRequestError{Status: 400, Message: text, NoRetry: true}
		}
		f.findings = append(f.findings, text)
	}
	return &next, nil
}

func (f *historyReplay) setVariablesAndAnswerSalt() {
	r, scenario := f.request, f.replayer.scenario
	var volatile []string
	is := func(value string, names ...string) bool {
		for _, name := range names {
			if scenario.UsesPerRequestVariable(name) {
				volatile = append(volatile, name, value)
				return true
			}
		}
		return false
	}
	f.vars.Model, f.vars.Session.ID = r.Model, r.Session
	is(r.Model, "model")
	is(r.Session, "session")
	if scenario.UsesPerRequestVariable("system") {
		f.vars.SystemPrompt = r.SystemText()
		is(f.vars.SystemPrompt, "system")
	}
	if is(string(r.Tools.Raw), "tools", "schemas") {
		f.vars.Tools = r.Tools.Names
		if scenario.UsesPerRequestVariable("schemas") {
			f.vars.Schemas = r.Tools.Schemas()
		}
	}
	if scenario.UsesPerRequestVariable("cwd") {
		f.vars.CWD = r.WorkingDirectory()
		is(f.vars.CWD, "cwd")
	}
	c := &f.vars.Call
	c.MaxTokens, c.Stream, c.Agent, c.Betas = r.MaxTokens, r.Stream, r.Agent, r.Betas
	c.ToolChoice, c.Thinking, c.OutputConfig, c.Metadata = r.ToolChoice, r.Thinking, r.OutputConfig, r.Metadata
	is(fmt.Sprint(r.MaxTokens), "max_tokens")
	is(fmt.Sprint(r.Stream), "stream")
	is(strings.Join(r.Betas, ","), "betas")
	is(r.Agent, "agent")
	is(string(r.ToolChoice), "tool_choice")
	is(string(r.Thinking), "thinking")
	is(string(r.OutputConfig), "output_config")
	is(string(r.Metadata), "metadata")
	if scenario.UsesPerRequestVariable("headers") {
		c.Headers = r.RedactedHeaders()
		volatile = append(volatile, "headers", fmt.Sprint(c.Headers))
	}
	if volatile != nil {
		f.answerSalt = history.Digest{}.Chain(volatile...)
	}
}

// replayableMatchCounter numbers the matches of rules in one step of a history. If a later request replays the step, each
// match gets the number that it got the first time.
type replayableMatchCounter struct {
	replay      *historyReplay
	keyUpToStep history.Digest // key of the history up to the step
	prompt      string
	isCurrent   bool // the step answers this request, not an earlier one
}

// Next returns a number for the next match of a rule. A replayed step gets the number that it got the first time. A forked
// session begins with the steps of another session; these steps keep the numbers of the other session.
func (c replayableMatchCounter) Next(rule string, previousNumber int) (int, error) {
	m, r := c.replay.memory, c.replay.request
	m.mu.Lock()
	defer m.mu.Unlock()
	anyone := history.Digest{}.Chain("claim", c.prompt, rule, strconv.Itoa(previousNumber))
	own := anyone.Chain(r.Session, r.Agent)
	if r.Session == "" {
		own = anyone.ChainDigest(c.keyUpToStep)
	}
	if n, ok := m.claimedSteps[own]; ok {
		return n, nil
	}
	n, known := m.claimedSteps[anyone]
	if !known || c.isCurrent {
		var err error
		if n, err = m.ruleClaims.Next(rule, previousNumber); err != nil {
			return 0, err
		}
	}
	m.claimedSteps[own], m.claimedSteps[anyone] = n, n
	return n, nil
}

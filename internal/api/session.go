package api

import (
	"context"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// beginReplayAndStoreRoot returns the state from which the replay starts, and the index of the first group to replay. Usually the
// replay starts at the beginning of the scenario or of a sub-agent's script. If the history of the session was cut, it
// starts from the last state of the session. beginReplayAndStoreRoot stores the beginning of the history in the memory of the
// namespace. After a cut, it also updates the attempt and the salt of the replay.
func (f *historyReplay) beginReplayAndStoreRoot() (initialState *conversationState, firstGroupIndex int) {
	start := &conversationState{engine: f.forkEngineOfMainOrSubagent()}
	if f.request.Session == "" {
		return start, 0
	}
	t := f.requestConversationKey()
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	first := f.groups[0].firstKey
	known, ok := f.memory.lastConversations.Get(t)
	if !ok || known.state == nil {
		known = &lastConversation{roots: []historyRoot{{firstGroup: first}}}
		if cut, forked := f.memory.compactedRoots.Get(f.groups[0].summary()); forked { // this session continues another, compacted session
			known.roots, known.compactions = append(known.roots, cut), cut.compactions
		}
		f.memory.lastConversations.Put(t, known)
	}
	for _, r := range slices.Backward(known.roots) {
		if r.firstGroup != first {
			continue
		}
		if r.state == nil {
			return start, 0
		}
		if from := f.groupIndexAfter(r.cutAfter); from >= 0 {
			f.setAttemptAndSaltAfterCut(r)
			return r.state, from
		}
	}
	r, from := f.newRootAfterHistoryCut(known)
	next := *known
	const most = 16 // roots stored per session
	next.roots = append(slices.Clone(known.roots[max(0, len(known.roots)-most):]), r)
	f.memory.lastConversations.Put(t, &next)
	if summary := f.groups[0].summary(); summary != "" {
		f.memory.compactedRoots.Put(summary, r)
	}
	f.setAttemptAndSaltAfterCut(r)
	return r.state, from
}

// newRootAfterHistoryCut is called after a cut: the new history begins differently from the session's earlier history. It returns a root
// for the new history and the index of its last group, with which the session continues. If this group repeats a request that failed, the
// session continues from the state before that request.
func (f *historyReplay) newRootAfterHistoryCut(known *lastConversation) (newRoot historyRoot, lastGroupIndex int) {
	r := historyRoot{firstGroup: f.groups[0].firstKey, state: known.state, compactions: known.compactions}
	from := len(f.groups) - 1
	if from > 0 {
		r.cutAfter = f.groups[from-1].key
	}
	if known.failures > 0 && known.lastRequest == f.groups[from].stepsDigest() {
		r.state, r.retryKey, r.failures = known.stateBefore, f.HistoryDigest(), known.failures
	}
	return r, from
}

// setAttemptAndSaltAfterCut prepares a replay that continues a session after a cut. It adds the failures before the
// cut to the number of attempts. It also changes the salt, because the state now also depends on the session.
func (f *historyReplay) setAttemptAndSaltAfterCut(cutRoot historyRoot) {
	if cutRoot.failures > 0 && cutRoot.retryKey == f.HistoryDigest() {
		f.attempt += cutRoot.failures
		f.vars.Call.Attempt = f.attempt
	}
	f.answerSalt = f.answerSalt.Chain("cut", f.request.Session, f.request.Agent, string(cutRoot.cutAfter[:]))
}

// stepsDigest returns the digest of the steps of a group, leaving out a summary that replaces the history. It does not depend on earlier
// groups.
func (g *historyGroupWithKeys) stepsDigest() history.Digest {
	var sum history.Digest
	for i := range g.Steps {
		if in := &g.Steps[i]; in.Kind != history.KindSummaryReplacingHistory {
			sum = sum.ChainDigest(in.Digest(g.Uses))
		}
	}
	return sum
}

func (f *historyReplay) requestConversationKey() conversationKey {
	return conversationKey{f.request.Session, f.request.Agent}
}

// groupIndexAfter returns the index of the group after the group with this key; 0 for a zero key, -1 if it is unknown.
func (f *historyReplay) groupIndexAfter(groupKey history.Digest) int {
	if groupKey == (history.Digest{}) {
		return 0
	}
	for i := range f.groups {
		if f.groups[i].key == groupKey {
			return i + 1
		}
	}
	return -1
}

// storeLastConversationState replaces the last state of the session, if one is stored, with stateAfterRequest.
func (f *historyReplay) storeLastConversationState(stateAfterRequest *conversationState) {
	if f.request.Session == "" {
		return
	}
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	t := f.requestConversationKey()
	if known, ok := f.memory.lastConversations.Get(t); ok {
		next := *known
		next.state, next.stateBefore, next.lastRequest, next.failures = stateAfterRequest, f.stateBeforeLast, f.groups[len(f.groups)-1].stepsDigest(), 0
		f.memory.lastConversations.Put(t, &next)
	}
}

// CountCompactionAndGetSummary returns the scenario's summary of a conversation to be compacted, or false if the session is unknown. It counts
// the compactions of the session.
func (m *requestNamespaceMemory) CountCompactionAndGetSummary(ctx context.Context, c *history.RequestSender) (summary string, isKnown bool) {
	key := conversationKey{c.Session, c.Agent}
	m.mu.Lock()
	known, ok := m.lastConversations.Get(key)
	if ok = ok && c.Session != "" && known.state != nil; ok {
		next := *known
		next.compactions++
		m.lastConversations.Put(key, &next)
	}
	m.mu.Unlock()
	if !ok {
		return "", false
	}
	reply, err := known.state.engine.Fork().Next(ctx, scenarios.Request{SideKind: "compact"})
	return protocol.Content{Blocks: reply.Blocks}.Plain(), err == nil
}

func (f *historyReplay) forkEngineOfMainOrSubagent() *scenarios.Engine {
	if f.request.Agent != "" {
		if e := f.getOrClaimSubagentEngine(); e != nil {
			f.answerSalt = f.answerSalt.Chain("agent", f.request.Session, f.request.Agent)
			return e.Fork()
		}
	}
	return f.replayer.initialEngine.Fork()
}

// getOrClaimSubagentEngine returns the engine that plays the scripted sub-agent of this conversation; nil means no known
// script. At the first call, it takes a script that waits for this prompt, so that no other conversation gets it.
func (f *historyReplay) getOrClaimSubagentEngine() *scenarios.Engine {
	t := f.requestConversationKey()
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	if e, ok := f.memory.agents.Get(t); ok {
		return e
	}
	prompt := ""
	for _, in := range f.groups[0].Steps {
		if in.Kind == history.KindPrompt {
			prompt = in.Text
			break
		}
	}
	waiting, _ := f.memory.scripts.Get(subagentScriptKey{f.request.Session, prompt})
	for _, c := range waiting {
		if c.ownerConversation == "" {
			c.ownerConversation = f.request.Agent
			f.memory.agents.Put(t, c.engine)
			return c.engine
		}
	}
	if f.replayer.hasSubagentScripts {
		f.findings = append(f.findings, fmt.Sprintf("the script of the sub-agent %s was lost: the rules answer its requests", f.request.Agent))
	}
	return nil
}

func (f *historyReplay) storeSubagentScript(toolCallID, firstPrompt string, scriptEngine *scenarios.Engine) {
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	key := subagentScriptKey{f.request.Session, firstPrompt}
	waiting, _ := f.memory.scripts.Get(key)
	if slices.ContainsFunc(waiting, func(c *subagentScript) bool { return c.toolCallID == toolCallID }) {
		return
	}
	f.memory.scripts.Put(key, append(slices.Clip(waiting), &subagentScript{toolCallID: toolCallID, engine: scriptEngine}))
}

// HistoryDigest returns the digest of the whole history.
func (f *historyReplay) HistoryDigest() history.Digest { return f.groups[len(f.groups)-1].key }

// HistoryPartKinds lists the kinds of the parts of the history, in order.
func (f *historyReplay) HistoryPartKinds() []string {
	out := make([]string, 0, 2*len(f.groups))
	for i := range f.groups {
		g := &f.groups[i]
		if g.Assistant {
			out = append(out, "answer")
			continue
		}
		for range g.Context {
			out = append(out, "context")
		}
		for _, in := range g.Steps {
			out = append(out, string(in.Kind))
		}
	}
	return out
}

// TakeFindings returns and clears the findings about the request.
func (f *historyReplay) TakeFindings() []string {
	found := f.findings
	f.findings = nil
	return found
}

// FirstReplyOfAnswer returns the first prompt, or the first tool results, after the model's last message, and the scenario's reply to
// them; ok is false if the scenario gave no reply. Call Run first.
func (f *historyReplay) FirstReplyOfAnswer() (request scenarios.Request, reply scenarios.Reply, ok bool) {
	if f.finalState == nil || f.finalState.answer == nil {
		return request, reply, false
	}
	return f.finalState.answer.firstRequest, f.finalState.answer.reply, true
}

// ShouldFail reports whether the scripted failure happens for this attempt.
func (f *historyReplay) ShouldFail() bool {
	a := f.finalState.answer
	fail := a.reply.Failure
	return fail != nil && (fail.Times == 0 || f.stateBeforeLast.failureCounts[a.reply.Rule.Name]+f.attempt-1 < fail.Times)
}

// recordAttemptOutcome records whether the attempt was answered or failed. After a failure the client repeats the request.
func (f *historyReplay) recordAttemptOutcome(failed bool) {
	m, by := f.memory, f.requestConversationKey()
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.lastConversations.Get(by); ok && failed {
		next := *known
		next.failures = f.attempt
		m.lastConversations.Put(by, &next)
	}
	key := by.attemptCounterKey(f.HistoryDigest())
	if t, ok := m.attempts.Get(key); ok {
		t.lastAttemptFailed = failed
		m.attempts.Put(key, t)
	}
}

// UnmetResultExpectationsOfLastGroup returns the expectations about results that the last group did not meet.
func (f *historyReplay) UnmetResultExpectationsOfLastGroup() []scenarios.ExpectationResult {
	return f.finalState.engine.UnmetResultExpectations()[len(f.stateBeforeLast.engine.UnmetResultExpectations()):]
}

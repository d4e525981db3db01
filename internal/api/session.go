package api

import (
	"context"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// startState returns the state from which the history continues, and the index of the next group. The state is the
// initial one, that of a sub-agent's script, or the last state of a session whose history was cut.
func (f *replay) startState() (*conversationState, int) {
	start := &conversationState{engine: f.initialEngine()}
	if f.request.Session == "" {
		return start, 0
	}
	t := f.conversationKey()
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	first := f.groups[0].firstKey
	known, ok := f.memory.lastConversations.Get(t)
	if !ok || known.state == nil {
		known = &lastConversation{roots: []historyRoot{{firstGroup: first}}}
		if cut, forked := f.memory.compactedRoots.Get(first); forked { // the history was cut in a session with another name
			known.roots = append(known.roots, cut)
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
			f.recordContinuation(r)
			return r.state, from
		}
	}
	r, from := f.findHistoryCut(known)
	next := *known
	const most = 16 // roots stored per session
	next.roots = append(slices.Clone(known.roots[max(0, len(known.roots)-most):]), r)
	f.memory.lastConversations.Put(t, &next)
	if steps := f.groups[0].Steps; len(steps) > 0 && steps[0].Kind == history.KindSummary {
		f.memory.compactedRoots.Put(first, r)
	}
	f.recordContinuation(r)
	return r.state, from
}

// findHistoryCut handles a history whose beginning differs from the history that its session had before. It returns a
// root for the new history, and the index of its last group, with which the session continues. If this group repeats a
// request that failed, the session continues from the state before that request.
func (f *replay) findHistoryCut(known *lastConversation) (historyRoot, int) {
	r := historyRoot{firstGroup: f.groups[0].firstKey, state: known.state}
	from := len(f.groups) - 1
	if from > 0 {
		r.cutAfter = f.groups[from-1].key
	}
	if known.failures > 0 && known.lastRequest == f.groups[from].questionKey() {
		r.state, r.retryKey, r.failures = known.stateBefore, f.HistoryDigest(), known.failures
	}
	return r, from
}

// recordContinuation records that the history continues after a cut. States that depend on a
// session are stored separately from those that do not.
func (f *replay) recordContinuation(r historyRoot) {
	if r.failures > 0 && r.retryKey == f.HistoryDigest() {
		f.attempt += r.failures
		f.vars.Call.Attempt = f.attempt
	}
	f.salt = f.salt.Chain("cut", f.request.Session, f.request.Agent, string(r.cutAfter[:]))
}

// questionKey returns the digest of the question in a group. It does not depend on earlier groups.
func (g *replayedGroup) questionKey() history.Digest {
	var sum history.Digest
	for i := range g.Steps {
		if in := &g.Steps[i]; in.Kind != history.KindSummary {
			sum = sum.ChainDigest(in.Digest(g.Uses))
		}
	}
	return sum
}

func (f *replay) conversationKey() conversationKey {
	return conversationKey{f.request.Session, f.request.Agent}
}

// groupIndexAfter returns the index that follows the group with the key at, or -1 if none has that key. A zero key
// means the beginning of the history.
func (f *replay) groupIndexAfter(at history.Digest) int {
	if at == (history.Digest{}) {
		return 0
	}
	for i := range f.groups {
		if f.groups[i].key == at {
			return i + 1
		}
	}
	return -1
}

// rememberConversation makes st the stored state of the session. It does nothing for a session without a stored
// conversation.
func (f *replay) rememberConversation(st *conversationState) {
	if f.request.Session == "" {
		return
	}
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	t := f.conversationKey()
	if known, ok := f.memory.lastConversations.Get(t); ok {
		next := *known
		next.state, next.stateBefore, next.lastRequest, next.failures = st, f.stateBeforeLast, f.groups[len(f.groups)-1].questionKey(), 0
		f.memory.lastConversations.Put(t, &next)
	}
}

// Summarize returns the scenario's summary of a conversation that is to be compacted. It returns
// false if the session is not known.
func (m *namespaceMemory) Summarize(ctx context.Context, c *history.Client) (string, bool) {
	m.mu.Lock()
	known, ok := m.lastConversations.Get(conversationKey{c.Session, c.Agent})
	m.mu.Unlock()
	if !ok || c.Session == "" || known.state == nil {
		return "", false
	}
	reply, err := known.state.engine.Fork().Next(ctx, scenarios.Request{SideKind: "compact"})
	return protocol.Content{Blocks: reply.Blocks}.Plain(), err == nil
}

func (f *replay) initialEngine() *scenarios.Engine {
	if f.request.Agent != "" {
		if e := f.subagentEngine(); e != nil {
			f.salt = f.salt.Chain("agent", f.request.Session, f.request.Agent)
			return e.Fork()
		}
	}
	return f.replayer.initialEngine.Fork()
}

// subagentEngine returns the engine that plays the scripted sub-agent of this conversation. It returns nil if the call
// that started the sub-agent has no script, or if the memory no longer contains the script.
func (f *replay) subagentEngine() *scenarios.Engine {
	t := conversationKey{f.request.Session, f.request.Agent}
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
		if c.owner == "" {
			c.owner = f.request.Agent
			f.memory.agents.Put(t, c.engine)
			return c.engine
		}
	}
	if f.replayer.hasSubagentScripts {
		f.findings = append(f.findings, fmt.Sprintf("the script of the sub-agent %s was lost: the rules answer its requests", f.request.Agent))
	}
	return nil
}

// rememberSubagent stores the script of a sub-agent that the call will start.
func (f *replay) rememberSubagent(call, prompt string, e *scenarios.Engine) {
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	key := subagentScriptKey{f.request.Session, prompt}
	waiting, _ := f.memory.scripts.Get(key)
	if slices.ContainsFunc(waiting, func(c *subagentScript) bool { return c.call == call }) {
		return
	}
	f.memory.scripts.Put(key, append(slices.Clip(waiting), &subagentScript{call: call, engine: e}))
}

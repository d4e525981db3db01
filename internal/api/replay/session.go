package replay

import (
	"context"
	"slices"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// base is what the history goes on from, and the first group that is not part of
// it: the beginning, the script of a sub-agent, or where a session stood when its
// history was cut.
func (f *Replay) base() (*state, int) {
	start := &state{engine: f.engine()}
	if f.r.Session == "" {
		return start, 0
	}
	t := f.talk()
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	first := f.groups[0].first
	known, ok := f.memory.last.Get(t)
	if !ok || known.state == nil {
		known = &lastConversation{roots: []historyRoot{{first: first}}}
		if cut, forked := f.memory.cuts.Get(first); forked { // by a session of another name
			known.roots = append(known.roots, cut)
		}
		f.memory.last.Put(t, known)
	}
	for _, r := range slices.Backward(known.roots) {
		if r.first != first {
			continue
		}
		if r.state == nil {
			return start, 0
		}
		if from := f.after(r.at); from >= 0 {
			f.continues(r)
			return r.state, from
		}
	}
	r, from := f.cut(known)
	next := *known
	const most = 16 // cuts of a session that are remembered
	next.roots = append(slices.Clone(known.roots[max(0, len(known.roots)-most):]), r)
	f.memory.last.Put(t, &next)
	if steps := f.groups[0].Steps; len(steps) > 0 && steps[0].Kind == history.Summary {
		f.memory.cuts.Put(first, r)
	}
	f.continues(r)
	return r.state, from
}

// cut is what a history stands for that the session has not begun with, and the
// replayedGroup that goes on with it: the last. What had failed is asked again.
func (f *Replay) cut(known *lastConversation) (historyRoot, int) {
	r := historyRoot{first: f.groups[0].first, state: known.state}
	from := len(f.groups) - 1
	if from > 0 {
		r.at = f.groups[from-1].key
	}
	if known.tries > 0 && known.asked == f.groups[from].asked() {
		r.state, r.again, r.tries = known.before, f.Key(), known.tries
	}
	return r, from
}

// continues notes that the history goes on behind a cut. States that depend on a
// session are kept apart from those that do not.
func (f *Replay) continues(r historyRoot) {
	if r.tries > 0 && r.again == f.Key() {
		f.attempt += r.tries
		f.vars.Call.Attempt = f.attempt
	}
	f.salt = f.salt.Chain("cut", f.r.Session, f.r.Agent, string(r.at[:]))
}

// asked is what a group asks, whatever stands before it.
func (g *replayedGroup) asked() history.Digest {
	var sum history.Digest
	for i := range g.Steps {
		if in := &g.Steps[i]; in.Kind != history.Summary {
			sum = sum.Mix(in.Digest(g.Uses))
		}
	}
	return sum
}

// conversationKey is the conversation that asks.
func (f *Replay) talk() conversationKey { return conversationKey{f.r.Session, f.r.Agent} }

// after is the group behind the one with that key; negative when there is none.
func (f *Replay) after(at history.Digest) int {
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

// stand notes where a session stands.
func (f *Replay) stand(st *state) {
	if f.r.Session == "" {
		return
	}
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	t := f.talk()
	if known, ok := f.memory.last.Get(t); ok {
		next := *known
		next.state, next.before, next.asked, next.tries = st, f.before, f.groups[len(f.groups)-1].asked(), 0
		f.memory.last.Put(t, &next)
	}
}

// Summary is what the scenario says of a conversation that is to be cut; false = the
// session is not known.
func (m *Memory) Summary(ctx context.Context, c *history.Client) (string, bool) {
	m.mu.Lock()
	known, ok := m.last.Get(conversationKey{c.Session, c.Agent})
	m.mu.Unlock()
	if !ok || c.Session == "" || known.state == nil {
		return "", false
	}
	reply, err := known.state.engine.Fork().Next(ctx, scenarios.Request{Side: "compact"})
	return protocol.Content{Blocks: reply.Blocks}.Plain(), err == nil
}

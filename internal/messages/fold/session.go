package fold

import (
	"slices"

	"github.com/claudeless/claudeless/internal/messages/history"
)

// base is what the history goes on from, and the first group that is not part of
// it: the beginning, the script of a sub-agent, or where a session stood when its
// history was cut.
func (f *Fold) base() (*state, int) {
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
		f.memory.last.Put(t, &lastTalk{roots: []root{{first: first}}})
		return start, 0
	}
	for _, r := range slices.Backward(known.roots) {
		if r.first != first {
			continue
		}
		if r.state == nil {
			return start, 0
		}
		if from := f.after(r.at); from >= 0 {
			f.salted(t, r.at)
			return r.state, from
		}
	}
	r := root{first: first, state: known.state}
	from := len(f.groups) - 1
	if from > 0 {
		r.at = f.groups[from-1].key
	}
	next := *known
	const most = 16 // cuts of a session that are remembered
	next.roots = append(slices.Clone(known.roots[max(0, len(known.roots)-most):]), r)
	f.memory.last.Put(t, &next)
	f.salted(t, r.at)
	return r.state, from
}

// talk is the conversation that asks.
func (f *Fold) talk() talk { return talk{f.r.Session, f.r.Agent} }

// after is the group behind the one with that key; negative when there is none.
func (f *Fold) after(at history.Digest) int {
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

// salted keeps states that depend on a session apart from those that do not.
func (f *Fold) salted(t talk, at history.Digest) {
	f.salt = f.salt.Chain("cut", t.session, t.agent, string(at[:]))
}

// stand notes where a session stands.
func (f *Fold) stand(st *state) {
	if f.r.Session == "" {
		return
	}
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	t := f.talk()
	if known, ok := f.memory.last.Get(t); ok {
		next := *known
		next.state = st
		f.memory.last.Put(t, &next)
	}
}

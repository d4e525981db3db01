package messages

import (
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/scenarios"
)

// group is what stands between two answers of the assistant, or one such answer:
// neighbours of one role are one message to the API.
type group struct {
	assistant bool
	index     int // of its first message
	steps     []intent
	context   []string
	text      string // of an answer
	said      digest // of an answer
	uses      []use  // of an answer, or of the one before
	first     digest // of the history up to the first step
	key       digest // of the history up to here
}

// split makes groups of the messages.
func (f *fold) split(messages []*content) []group {
	groups := make([]group, 0, len(messages))
	for i, m := range messages {
		assistant := m.role == "assistant"
		if len(groups) == 0 || groups[len(groups)-1].assistant != assistant {
			groups = append(groups, group{assistant: assistant, index: i})
		}
		groups[len(groups)-1].take(m)
	}
	var key digest
	var uses []use
	for i := range groups {
		g := &groups[i]
		if g.assistant {
			key = key.mix(g.said)
			g.key, uses = key, g.uses
			continue
		}
		g.uses = uses
		g.settle(i == len(groups)-1)
		key = f.keys(g, key)
	}
	return groups
}

// take adds one message.
func (g *group) take(m *content) {
	g.context = append(g.context, m.context...)
	if m.role == "assistant" {
		if g.said == (digest{}) {
			g.said = m.said
		} else {
			g.said = g.said.mix(m.said)
		}
	}
	g.text += m.text
	g.uses = append(g.uses, m.uses...)
	if len(g.steps) == 0 {
		g.steps = slices.Clip(m.intents) // those of the message, which nobody changes
		return
	}
	for _, in := range m.intents {
		if n := len(g.steps); in.kind == "results" && g.steps[n-1].kind == "results" {
			both := in
			both.results = append(slices.Clip(g.steps[n-1].results), in.results...)
			g.steps = append(slices.Clone(g.steps[:n-1]), both)
			continue
		}
		g.steps = append(g.steps, in)
	}
}

// settle decides what the steps of a group mean together. The last group of a
// history always asks something.
func (g *group) settle(last bool) {
	at := slices.IndexFunc(g.steps, func(in intent) bool { return in.kind == "interrupt" })
	if at >= 0 { // what was under way was given up
		g.steps = slices.DeleteFunc(slices.Clone(g.steps), func(in intent) bool { return in.kind == "results" })
	}
	has := func(kinds ...string) bool {
		return slices.ContainsFunc(g.steps, func(in intent) bool { return slices.Contains(kinds, in.kind) })
	}
	if has("notice") && has("results", "prompt") { // news beside something else is read with it
		g.steps = slices.DeleteFunc(slices.Clone(g.steps), func(in intent) bool { return in.kind == "notice" })
	}
	if has("results") { // prompts that came meanwhile are known when the results are
		g.steps = slices.Clone(g.steps)
		slices.SortStableFunc(g.steps, func(a, b intent) int { return g.rank(a) - g.rank(b) })
	}
	if has("added") && !has("results", "prompt", "injected", "notice") {
		g.steps = slices.Clone(g.steps)
		for i := range g.steps {
			if in := &g.steps[i]; in.kind == "added" {
				in.kind = "prompt"
				in.sum = in.own()
			}
		}
	}
	if last && !has("results", "prompt", "injected", "notice") {
		text := ""
		if n := len(g.context); n > 0 {
			text = g.context[n-1]
		}
		in := intent{kind: "prompt", text: text, pieces: []string{text}}
		in.sum = in.own()
		g.steps = append(slices.Clip(g.steps), in)
	}
}

// rank puts added prompts before the results that they came with.
func (g *group) rank(in intent) int {
	if in.kind == "added" {
		return 0
	}
	return 1
}

// keys gives the group its digests. A prompt whose first blocks failed when they
// came alone is two prompts: clients send them again with the next one.
func (f *fold) keys(g *group, key digest) digest {
	steps := make([]intent, 0, len(g.steps))
	for _, in := range g.steps {
		for in.kind == "prompt" && len(in.pieces) > 1 {
			n := f.failedPieces(key, in)
			if n == 0 {
				break
			}
			head := intent{kind: "prompt", text: joinPieces(trimLast(in.pieces[:n])), pieces: in.pieces[:n]}
			key = key.mix(head.own())
			if len(steps) == 0 {
				g.first = key
			}
			steps = append(steps, head)
			in.pieces = in.pieces[n:]
			in.text = joinPieces(in.pieces)
			in.sum = in.own()
		}
		key = key.mix(in.digest(g.uses))
		if len(steps) == 0 {
			g.first = key
		}
		steps = append(steps, in)
	}
	g.steps = steps
	if f.s.mentionsContext {
		key = key.chain(append([]string{"context"}, g.context...)...)
	}
	g.key = key
	return key
}

// failedPieces is how many of a prompt's blocks were a prompt of their own, which
// failed.
func (f *fold) failedPieces(key digest, in intent) int {
	f.ns.mu.Lock()
	defer f.ns.mu.Unlock()
	for n := 1; n < len(in.pieces); n++ {
		head := intent{kind: "prompt", text: joinPieces(trimLast(in.pieces[:n]))}
		if t, ok := f.ns.attempts.get(triesKey(f.r.agent, key.mix(head.own()))); ok && t.failed {
			return n
		}
	}
	return 0
}

// trimLast takes off the newline that Claude Code puts behind a prompt when it
// joins another one to it.
func trimLast(pieces []string) []string {
	out := slices.Clone(pieces)
	if n := len(out) - 1; len(out[n]) > 0 && out[n][len(out[n])-1] == '\n' {
		out[n] = out[n][:len(out[n])-1]
	}
	return out
}

// own is the digest of a step by itself.
func (in *intent) own() digest {
	return digest{}.chain(append([]string{in.kind, in.text}, in.files...)...)
}

// digest is that of a step where it stands: results count in the order of their
// calls.
func (in *intent) digest(uses []use) digest {
	if in.kind != "results" {
		return in.sum
	}
	sum := digest{1}
	for i := range uses {
		for _, r := range in.results {
			if r.id == uses[i].id {
				sum = sum.mix(r.sum)
			}
		}
	}
	return sum
}

// kinds lists the history as it was understood.
func (f *fold) kinds() []string {
	out := make([]string, 0, 2*len(f.groups))
	for i := range f.groups {
		g := &f.groups[i]
		if g.assistant {
			out = append(out, "answer")
			continue
		}
		for range g.context {
			out = append(out, "context")
		}
		for _, in := range g.steps {
			out = append(out, in.kind)
		}
	}
	return out
}

// triesKey names a history of a conversation: sub-agents count for themselves.
func triesKey(agent string, key digest) digest {
	if agent == "" {
		return key
	}
	return key.chain("agent", agent)
}

// tried counts one more attempt at a history.
func (ns *namespace) tried(agent string, key digest) *tries {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	key = triesKey(agent, key)
	t, ok := ns.attempts.get(key)
	if !ok {
		t = &tries{}
	}
	next := &tries{n: t.n + 1, failed: t.failed}
	ns.attempts.put(key, next)
	return &tries{n: next.n}
}

// mark notes how the last attempt went.
func (f *fold) mark(failed bool) {
	f.ns.mu.Lock()
	defer f.ns.mu.Unlock()
	key := triesKey(f.r.agent, f.key())
	if t, ok := f.ns.attempts.get(key); ok {
		f.ns.attempts.put(key, &tries{n: t.n, failed: failed})
	}
}

// base is what the history goes on from, and the first group that is not part of
// it: the beginning, the script of a sub-agent, or where a session stood when its
// history was cut.
func (f *fold) base() (*state, int) {
	start := &state{engine: f.engine()}
	if f.r.session == "" {
		return start, 0
	}
	t := talk{f.r.session, f.r.agent}
	f.ns.mu.Lock()
	defer f.ns.mu.Unlock()
	first := f.groups[0].first
	known, ok := f.ns.last.get(t)
	if !ok || known.state == nil {
		f.ns.last.put(t, &lastTalk{roots: []root{{first: first}}})
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
	f.ns.last.put(t, &next)
	f.salted(t, r.at)
	return r.state, from
}

// after is the group behind the one with that key; negative when there is none.
func (f *fold) after(at digest) int {
	if at == (digest{}) {
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
func (f *fold) salted(t talk, at digest) {
	f.salt = f.salt.chain("cut", t.session, t.agent, string(at[:]))
}

// stand notes where a session stands.
func (f *fold) stand(st *state) {
	if f.r.session == "" {
		return
	}
	f.ns.mu.Lock()
	defer f.ns.mu.Unlock()
	t := talk{f.r.session, f.r.agent}
	if known, ok := f.ns.last.get(t); ok {
		next := *known
		next.state = st
		f.ns.last.put(t, &next)
	}
}

// engine is the engine at the beginning of the conversation.
func (f *fold) engine() *scenarios.Engine {
	if f.r.agent != "" {
		if e := f.scripted(); e != nil {
			f.salt = f.salt.chain("agent", f.r.session, f.r.agent)
			return e.Fork()
		}
	}
	return f.s.blank.Fork()
}

// scripted is the engine of a sub-agent whose steps hang on the call that started
// it; nil = it has none, or it was forgotten.
func (f *fold) scripted() *scenarios.Engine {
	t := talk{f.r.session, f.r.agent}
	f.ns.mu.Lock()
	defer f.ns.mu.Unlock()
	if e, ok := f.ns.agents.get(t); ok {
		return e
	}
	prompt := ""
	for _, in := range f.groups[0].steps {
		if in.kind == "prompt" {
			prompt = in.text
			break
		}
	}
	waiting, _ := f.ns.scripts.get(scriptKey{f.r.session, prompt})
	for _, c := range waiting {
		if c.agent == "" {
			c.agent = f.r.agent
			f.ns.agents.put(t, c.engine)
			return c.engine
		}
	}
	if f.s.scripts {
		f.findings = append(f.findings, fmt.Sprintf("the sub-agent %s has no script any more: the rules answer it", f.r.agent))
	}
	return nil
}

// expect remembers the script of a sub-agent that a call is about to start.
func (f *fold) expect(call, prompt string, e *scenarios.Engine) {
	f.ns.mu.Lock()
	defer f.ns.mu.Unlock()
	key := scriptKey{f.r.session, prompt}
	waiting, _ := f.ns.scripts.get(key)
	if slices.ContainsFunc(waiting, func(c *child) bool { return c.call == call }) {
		return
	}
	f.ns.scripts.put(key, append(slices.Clip(waiting), &child{call: call, engine: e}))
}

package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
)

// Fold returns the replay of a request that was checked, with the memory of its
// namespace.
func (s *Replayer) Fold(m *Memory, r *history.Request) *Replay {
	f := &Replay{s: s, memory: m, r: r}
	messages := r.Messages
	for n := len(messages); n > 0 && messages[n-1].Role == "assistant"; n-- {
		f.prefill = messages[n-1].Text + f.prefill
		messages = messages[:n-1]
	}
	f.groups = splitter{f.memory, f.talk(), &r.Client, f.s.mentionsContext}.split(messages)
	f.request()
	return f
}

// Run folds the history. Only the memory has changed then. The error is an
// expression's, ctx's, or a [*history.RefusalError].
func (f *Replay) Run(ctx context.Context) error {
	last := len(f.groups) - 1
	var err error
	if f.attempt, err = f.memory.tried(f.talk(), f.Key(), f.r.Retries); err != nil {
		f.findings = append(f.findings, "attempts: "+err.Error())
	}
	f.vars.Call.Attempt = f.attempt
	st, from := f.base()
	f.memory.mu.Lock()
	for i := last - 1; i >= from; i-- {
		if known, ok := f.memory.states.Get(f.memoKey(i)); ok {
			st, from = known, i+1
			break
		}
	}
	f.memory.mu.Unlock()
	for i := from; i <= last; i++ {
		if i == last {
			f.before = st
		}
		next, err := f.apply(ctx, st, i)
		if err != nil {
			return err
		}
		st = next
		f.memory.mu.Lock()
		f.memory.states.Put(f.memoKey(i), st)
		f.memory.mu.Unlock()
	}
	f.final = st
	f.stand(st)
	return nil
}

func (f *Replay) memoKey(i int) history.Digest {
	k := f.groups[i].key
	for j := range k {
		k[j] ^= f.salt[j]
	}
	return k
}

// apply goes on from st with one group.
func (f *Replay) apply(ctx context.Context, st *state, i int) (*state, error) {
	g := &f.groups[i]
	if g.Assistant {
		return f.follow(st, g)
	}
	next := *st
	next.engine = st.engine.Fork()
	if f.s.mentionsContext {
		next.context = append(slices.Clip(st.context), g.Context...)
	}
	for _, step := range g.Steps {
		if err := f.step(ctx, &next, g, step); err != nil {
			return nil, err
		}
	}
	return &next, nil
}

// step asks the engine what a step means.
func (f *Replay) step(ctx context.Context, st *state, g *replayedGroup, in history.Step) error {
	req := scenarios.Request{Prompt: in.Text}
	switch in.Kind {
	case history.Summary, history.Closed: // of what a cut took away; what nobody was asked about
		return nil
	case history.Interrupt:
		st.waiting = nil
		return nil
	case history.Added:
		st.waiting = append(slices.Clip(st.waiting), in.Text)
		return nil
	case history.Results:
		req = scenarios.Request{Results: f.results(in.Results, g.Uses)}
	case history.Injected:
		req.Injected = true
		if st.answer != nil && st.answer.more && !st.answer.calls {
			req = scenarios.Request{Results: []scenarios.Result{}}
		}
	case history.Resumed:
		req = scenarios.Request{Results: []scenarios.Result{}}
		st.prodded = true
	case history.Notice:
		req.Injected, req.Notice = true, true
		st.waiting, st.prodded = nil, false
	default:
		st.waiting, st.prodded = nil, false
		if f.s.mentionsContext {
			st.context = g.Context
		}
		f.vars.Call.Attachments = in.Files
	}
	req.Vars = f.vars
	req.Vars.Context = st.context
	reply, err := st.engine.Next(ctx, req)
	if err != nil {
		return err
	}
	f.missed(reply)
	spoil(&reply)
	req.Vars = scenarios.Vars{} // parts of the body, which nobody keeps
	st.answer = &answer{began: req, asked: req, reply: reply}
	st.answer.add(reply)
	return f.goOn(ctx, st)
}

// missed notes the paths in templates of a reply that had no value.
func (f *Replay) missed(reply scenarios.Reply) {
	for _, path := range reply.Missing {
		f.valueless = append(f.valueless, Valueless{reply.Rule, path})
	}
}

// spoil makes a failure of a fault that the API can have. The others are the
// CLI's own.
func spoil(reply *scenarios.Reply) {
	switch {
	case reply.Failure != nil:
	case reply.Fault == "529-storm":
		reply.Failure = scenarios.FailureByName(string(scenarios.FailOverloaded))
	case scenarios.StreamFault(reply.Fault):
		reply.Failure = &scenarios.Failure{Type: scenarios.FailStreamFault, Fault: reply.Fault}
	}
}

// goOn adds what the CLI would ask for by itself: steps behind a message that has
// nothing to run, and what a rule says to prompts that came meanwhile.
func (f *Replay) goOn(ctx context.Context, st *state) error {
	a := st.answer
	for !a.calls && a.stop == "" {
		req := scenarios.Request{Results: []scenarios.Result{}}
		added := false
		switch {
		case a.silent() && !st.prodded && f.r.ClaudeCode(): // it asks about it
			return nil
		case a.more:
		case len(st.waiting) > 0:
			req, added = scenarios.Request{Prompt: st.waiting[0], Added: true}, true
			st.waiting = st.waiting[1:]
		default:
			return nil
		}
		req.Vars = f.vars
		req.Vars.Context = st.context
		reply, err := st.engine.Next(ctx, req)
		if err != nil {
			return err
		}
		if added && reply.Unmatched {
			continue
		}
		f.missed(reply)
		if reply.Failure != nil && a.reply.Failure == nil {
			a.reply.Failure, a.reply.Rule = reply.Failure, reply.Rule
		}
		req.Vars = scenarios.Vars{}
		a.asked = req
		a.add(reply)
	}
	return nil
}

// results are tool results in the order of their calls.
func (f *Replay) results(came []*history.Result, uses []history.Use) []scenarios.Result {
	out := make([]scenarios.Result, 0, len(came))
	for _, u := range uses {
		for _, r := range came {
			if r.ID != u.ID {
				continue
			}
			res := scenarios.Result{ToolUseID: r.ID, Tool: u.Name, Text: r.Text, IsError: r.IsError, Content: r.Content}
			if strings.HasPrefix(u.Name, "mcp__") && strings.HasPrefix(r.Text, "{") && json.Valid([]byte(r.Text)) {
				res.Structured = json.RawMessage(r.Text)
			}
			out = append(out, res)
		}
	}
	return out
}

// follow takes what the assistant said, and says where the scenario would have
// said something else.
func (f *Replay) follow(st *state, g *replayedGroup) (*state, error) {
	a := st.answer
	if a == nil {
		return st, nil
	}
	next := *st
	if fail := a.reply.Failure; fail != nil && fail.Times > 0 {
		next.struck = maps.Clone(st.struck)
		if next.struck == nil {
			next.struck = map[string]int{}
		}
		next.struck[a.reply.Rule.Name] = fail.Times
	}
	if what := a.differs(g, f.r.Tools); what != "" {
		text := fmt.Sprintf("history diverged at messages[%d]: %s", g.Index, what)
		if f.s.scenario.API.Diverged == "error" {
			return nil, &history.RefusalError{Status: 400, Message: text, Final: true}
		}
		f.findings = append(f.findings, text)
	}
	return &next, nil
}

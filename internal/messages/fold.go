package messages

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// state is a conversation after some of its history. It is never changed: going
// on makes another one.
type state struct {
	engine  *scenarios.Engine
	answer  *answer        // to what was asked last; nil = nothing was
	waiting []string       // added prompts that nothing has answered
	context []string       // texts beside the prompt and the results, for expressions
	struck  map[string]int // how often a rule's failure struck before it was overcome
}

// answer is what the scenario says to the last group of a history.
type answer struct {
	asked      scenarios.Request // the last that was answered
	reply      scenarios.Reply   // the first: its rule, failure, delay and pace count
	blocks     []protocol.Block
	stop       string // scripted stop reason
	usage      *scenarios.Usage
	structured json.RawMessage
	more       bool // a step follows that needs no results
	calls      bool
}

// fold is one request on its way through its history.
type fold struct {
	s        *Server
	ns       *namespace
	r        *request
	vars     scenarios.Vars
	salt     digest // of what the answers depend on beside the history
	findings []string
	groups   []group
	prefill  string // text of an assistant message at the end
	try      *tries
	before   *state // the last group
	final    *state
}

// newFold makes the fold of a request whose messages were read.
func (s *Server) newFold(ns *namespace, r *request, messages []*content) *fold {
	f := &fold{s: s, ns: ns, r: r}
	if last := messages[len(messages)-1]; last.role == "assistant" {
		for len(messages) > 0 && messages[len(messages)-1].role == "assistant" {
			f.prefill = messages[len(messages)-1].text + f.prefill
			messages = messages[:len(messages)-1]
		}
	}
	f.groups = f.split(messages)
	f.request(messages)
	return f
}

// request fills in what expressions see of the request itself, as far as any of
// them looks.
func (f *fold) request(messages []*content) {
	r, scenario := f.r, f.s.o.Scenario
	var volatile []string
	is := func(value string, names ...string) bool {
		for _, name := range names {
			if scenario.Mentions(name) {
				volatile = append(volatile, name, value)
				return true
			}
		}
		return false
	}
	f.vars.Model, f.vars.Session.ID = r.model, r.session
	is(r.model, "model")
	is(r.session, "session")
	if scenario.Mentions("system") {
		f.vars.SystemPrompt = r.systemText()
		is(f.vars.SystemPrompt, "system")
	}
	if is(string(r.tools.raw), "tools", "schemas") {
		f.vars.Tools = r.tools.names
		if scenario.Mentions("schemas") {
			f.vars.Schemas = r.tools.schemas()
		}
	}
	if scenario.Mentions("cwd") {
		f.vars.CWD = f.directory(messages)
		is(f.vars.CWD, "cwd")
	}
	c := &f.vars.Call
	c.MaxTokens, c.Stream, c.Agent, c.Betas = r.maxTokens, r.stream, r.agent, r.betas
	c.ToolChoice, c.Thinking, c.OutputConfig, c.Metadata = r.toolChoice, r.thinking, r.outputConfig, r.metadata
	is(fmt.Sprint(r.maxTokens), "max_tokens")
	is(fmt.Sprint(r.stream), "stream")
	is(strings.Join(r.betas, ","), "betas")
	is(r.agent, "agent")
	is(string(r.toolChoice), "tool_choice")
	is(string(r.thinking), "thinking")
	is(string(r.outputConfig), "output_config")
	is(string(r.metadata), "metadata")
	if scenario.Mentions("headers") {
		c.Headers = r.headers()
		volatile = append(volatile, "headers", fmt.Sprint(c.Headers))
	}
	if volatile != nil {
		f.salt = digest{}.chain(volatile...)
	}
}

// run folds the history. What it did is in f.final; nothing outside of the
// memories of the namespace has changed.
func (f *fold) run(ctx context.Context) error {
	last := len(f.groups) - 1
	f.try = f.ns.tried(f.r.agent, f.key())
	f.vars.Call.Attempt = f.try.n
	st, from := f.base()
	f.ns.mu.Lock()
	for i := last - 1; i >= from; i-- {
		if known, ok := f.ns.states.get(f.memoKey(i)); ok {
			st, from = known, i+1
			break
		}
	}
	f.ns.mu.Unlock()
	for i := from; i <= last; i++ {
		if i == last {
			f.before = st
		}
		next, err := f.apply(ctx, st, i)
		if err != nil {
			return err
		}
		st = next
		f.ns.mu.Lock()
		f.ns.states.put(f.memoKey(i), st)
		f.ns.mu.Unlock()
	}
	f.final = st
	f.stand(st)
	return nil
}

// key names the whole history.
func (f *fold) key() digest { return f.groups[len(f.groups)-1].key }

func (f *fold) memoKey(i int) digest {
	k := f.groups[i].key
	for j := range k {
		k[j] ^= f.salt[j]
	}
	return k
}

// apply goes on from st with one group.
func (f *fold) apply(ctx context.Context, st *state, i int) (*state, error) {
	g := &f.groups[i]
	if g.assistant {
		return f.follow(st, g)
	}
	next := *st
	next.engine = st.engine.Fork()
	if f.s.mentionsContext {
		next.context = append(slices.Clip(st.context), g.context...)
	}
	for _, step := range g.steps {
		if err := f.step(ctx, &next, g, step); err != nil {
			return nil, err
		}
	}
	return &next, nil
}

// step asks the engine what a step means.
func (f *fold) step(ctx context.Context, st *state, g *group, in intent) error {
	req := scenarios.Request{Prompt: in.text}
	switch in.kind {
	case "summary": // of what a cut took away
		return nil
	case "interrupt":
		st.waiting = nil
		return nil
	case "added":
		st.waiting = append(slices.Clip(st.waiting), in.text)
		return nil
	case "results":
		req = scenarios.Request{Results: f.results(in.results, g.uses)}
	case "injected":
		req.Injected = true
		if st.answer != nil && st.answer.more && !st.answer.calls {
			req = scenarios.Request{Results: []scenarios.Result{}}
		}
	case "notice":
		req.Injected, req.Notice = true, true
		st.waiting = nil
	default:
		st.waiting = nil
		if f.s.mentionsContext {
			st.context = g.context
		}
		f.vars.Call.Attachments = in.files
	}
	req.Vars = f.vars
	req.Vars.Context = st.context
	reply, err := st.engine.Next(ctx, req)
	if err != nil {
		return err
	}
	req.Vars = scenarios.Vars{} // parts of the body, which nobody keeps
	st.answer = &answer{asked: req, reply: reply}
	st.answer.add(reply)
	return f.goOn(ctx, st)
}

// goOn adds what the CLI would ask for by itself: steps behind a message that has
// nothing to run, and what a rule says to prompts that came meanwhile.
func (f *fold) goOn(ctx context.Context, st *state) error {
	a := st.answer
	for !a.calls && a.stop == "" {
		req := scenarios.Request{Results: []scenarios.Result{}}
		added := false
		switch {
		case a.more && a.silent():
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
		if reply.Failure != nil && a.reply.Failure == nil {
			a.reply.Failure, a.reply.Rule = reply.Failure, reply.Rule
		}
		req.Vars = scenarios.Vars{}
		a.asked = req
		a.add(reply)
	}
	return nil
}

// silent tells whether nothing of the answer can be seen.
func (a *answer) silent() bool {
	return !slices.ContainsFunc(a.blocks, func(b protocol.Block) bool { text, ok := b.(protocol.TextBlock); return !ok || text.Text != "" })
}

// add puts a message of the scenario behind those before.
func (a *answer) add(reply scenarios.Reply) {
	a.blocks = append(a.blocks, reply.Blocks...)
	a.stop, a.more = reply.StopReason, reply.More
	if a.stop == "end_turn" {
		a.stop = ""
	}
	if reply.StructuredOutput != nil {
		a.structured = reply.StructuredOutput
	}
	if u := reply.Usage; u != nil {
		sum := *u
		if a.usage != nil {
			sum.InputTokens += a.usage.InputTokens
			sum.OutputTokens += a.usage.OutputTokens
		}
		a.usage = &sum
	}
	a.calls = scenarios.StopReason(reply.Blocks) == "tool_use"
}

// results are tool results in the order of their calls.
func (f *fold) results(came []*result, uses []use) []scenarios.Result {
	out := make([]scenarios.Result, 0, len(came))
	for _, u := range uses {
		for _, r := range came {
			if r.id != u.id {
				continue
			}
			res := scenarios.Result{ToolUseID: r.id, Tool: u.name, Text: r.text, IsError: r.isError, Content: r.content}
			if strings.HasPrefix(u.name, "mcp__") && strings.HasPrefix(r.text, "{") && json.Valid([]byte(r.text)) {
				res.Structured = map[string]json.RawMessage{"structuredContent": json.RawMessage(r.text)}
			}
			out = append(out, res)
		}
	}
	return out
}

// follow takes what the assistant said, and says where the scenario would have
// said something else.
func (f *fold) follow(st *state, g *group) (*state, error) {
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
	if what := f.differs(a, g); what != "" {
		text := fmt.Sprintf("history diverged at messages[%d]: %s", g.index, what)
		if f.s.o.Scenario.API.Diverged == "error" {
			return nil, &refusal{status: 400, message: text, final: true}
		}
		f.findings = append(f.findings, text)
	}
	return &next, nil
}

// differs compares a scripted answer with what the history holds; "" = they are
// the same.
func (f *fold) differs(a *answer, g *group) string {
	var text strings.Builder
	var calls []use
	for _, b := range a.blocks {
		switch b := b.(type) {
		case protocol.TextBlock:
			text.WriteString(b.Text)
		case protocol.ToolUse:
			calls = append(calls, use{name: b.Name, input: b.Input})
		}
	}
	if a.structured != nil {
		if len(g.uses) == len(calls)+1 {
			calls = append(calls, use{name: structuredTool, input: a.structured})
		} else if len(calls) == 0 && sameJSON(a.structured, json.RawMessage(g.text)) {
			return ""
		}
	}
	where := "the scenario"
	if ref := a.reply.Rule; ref.Line > 0 {
		where = fmt.Sprintf("scenario line %d", ref.Line)
	}
	if !sameCalls(calls, g.uses) {
		return fmt.Sprintf("%s says %s, history has %s", where, callsText(calls), callsText(g.uses))
	}
	if said, has := strings.TrimSpace(text.String()), strings.TrimSpace(g.text); said != has && (has == "" || !strings.HasPrefix(said, has)) {
		return fmt.Sprintf("%s says %s, history has %s", where, clip(said), clip(has))
	}
	return ""
}

func sameCalls(scripted, has []use) bool {
	return slices.EqualFunc(scripted, has, func(a, b use) bool {
		return sameTool(a.name, b.name) && sameJSON(a.input, b.input)
	})
}

// sameTool tells whether a name of the scenario may have become name on the wire.
func sameTool(scripted, name string) bool {
	scripted = scenarios.CanonicalTool(scripted)
	return scripted == name || scripted == "Task" && name == "Agent" || scripted == "Agent" && name == "Task" ||
		strings.HasPrefix(name, "mcp__") && strings.HasSuffix(name, "__"+scripted)
}

func sameJSON(a, b json.RawMessage) bool {
	if string(a) == string(b) {
		return true
	}
	var x, y any
	if len(a) == 0 {
		a = json.RawMessage("{}")
	}
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && equal(x, y)
}

func equal(x, y any) bool {
	switch x := x.(type) {
	case map[string]any:
		y, ok := y.(map[string]any)
		return ok && maps.EqualFunc(x, y, equal)
	case []any:
		y, ok := y.([]any)
		return ok && slices.EqualFunc(x, y, equal)
	}
	return x == y
}

// callsText writes calls as Bash(echo one): the name, and the one text of the
// input or all of it.
func callsText(calls []use) string {
	if len(calls) == 0 {
		return "no call"
	}
	texts := make([]string, len(calls))
	for i, c := range calls {
		var input map[string]any
		texts[i] = c.name + "(" + string(c.input) + ")"
		if json.Unmarshal(c.input, &input) == nil {
			if text, ok := input["command"].(string); ok {
				texts[i] = c.name + "(" + text + ")"
			}
		}
	}
	return strings.Join(texts, ", ")
}

func clip(text string) string {
	const most = 120
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

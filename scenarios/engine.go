package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/eval"
	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// EngineOptions are what an engine is told beside the scenario. The zero value
// works.
type EngineOptions struct {
	// Env is `env` in expressions, as "K=V"; of two equal keys the last wins.
	Env []string
	// Args is `args` in expressions: the arguments of the program as given.
	Args []string
	// CWD is `cwd` in expressions.
	CWD string
	// Claims are those of the other engines of the run; nil = there are none.
	Claims Claims
	// Failure strikes every answer that has none of its own; nil = nothing does.
	Failure *Failure
}

// Claims says which engine of a run has a rule that answers once.
type Claims interface {
	// Take takes a rule by its name and place, for good; false = it has been taken.
	Take(rule string) (bool, error)
}

// Engine answers the requests of one session. It is for one goroutine at a
// time.
type Engine struct {
	s   *Scenario
	o   EngineOptions
	env map[string]string

	turns   int         // prompts of the user so far
	counts  map[int]int // matches by rule
	active  *sequence   // nil = no turn is expected
	left    *sequence   // what the last prompt broke off; nil = nothing
	running *response   // nil = nothing to go on with
	seen    Seen
	missed  []ExpectationResult // results that a call's `expect` did not match
	script  *matchedRule        // answers the first prompt of a sub-agent; nil = the rules do
	agents  agents
}

// sequence is a rule whose turns are expected next.
type sequence struct {
	rule   int
	next   int               // the turn that is expected
	groups map[string]string // named captures of the prompts so far
}

// NewEngine makes an engine at the beginning of a session. A scenario that was
// built in Go is compiled first; NewEngine panics when it is not valid.
func NewEngine(s *Scenario, o EngineOptions) *Engine {
	if s.library == nil {
		if err := s.Compile(); err != nil {
			panic("scenarios: " + err.Error())
		}
	}
	e := &Engine{s: s, o: o, counts: map[int]int{}, env: make(map[string]string, len(o.Env))}
	for _, kv := range o.Env {
		if key, value, ok := strings.Cut(kv, "="); ok {
			e.env[key] = value
		}
	}
	return e
}

// ScriptError is an expression or a template of a rule that failed while it ran.
type ScriptError struct {
	Rule RuleRef
	Err  error
}

// Error names the rule, then what failed.
func (e *ScriptError) Error() string { return e.Rule.String() + ": " + e.Err.Error() }

// Unwrap gives what failed.
func (e *ScriptError) Unwrap() error { return e.Err }

// Next answers one request. The error is a [*ScriptError] for expressions that fail
// while they run, or that of a done ctx; what the scenario scripts is never an error.
func (e *Engine) Next(ctx context.Context, r Request) (Reply, error) {
	ctx = eval.Together(ctx)
	reply, err := e.next(ctx, r)
	if err == nil && reply.Failure == nil {
		reply.Failure = e.o.Failure
	}
	reply.Missing = eval.Missing(ctx)
	return reply, err
}

func (e *Engine) next(ctx context.Context, r Request) (Reply, error) {
	if err := ctx.Err(); err != nil {
		return Reply{}, err
	}
	if r.Side != "" {
		return Reply{Blocks: []protocol.Block{protocol.Text(e.beside(r.Side))}}, nil
	}
	if r.Results != nil {
		return e.resume(ctx, r)
	}
	if !r.Injected {
		e.turns++
	}
	e.running = nil
	h, err := e.scripted(r), error(nil)
	if h == nil {
		h, err = e.find(ctx, r)
	}
	if err != nil {
		return Reply{}, err
	}
	e.running = newResponse(h)
	reply, err := e.running.next(ctx)
	if err != nil {
		return Reply{}, &ScriptError{h.ref, err}
	}
	if h.rule >= 0 && h.turn < 0 && reply.Fault == "" {
		reply.Fault = e.s.Responses[h.rule].Fault
	}
	reply.Unmatched = h.ref.Name == "" || h.ref.Name == defaultName
	if h.ref.Name == "" && e.s.Unmatched == "error" {
		reply.NearMisses = e.Explain(r)
	}
	return reply, e.fail(ctx, h, &reply)
}

// beside answers a request beside the conversation.
func (e *Engine) beside(kind string) string {
	if text, ok := e.s.API.SideText(kind); ok {
		return text
	}
	answered := strconv.Itoa(e.turns) + " prompts and each was"
	if e.turns == 1 {
		answered = "one prompt and it was"
	}
	return "<summary>\nThe user sent " + answered + " answered.\n</summary>"
}

// fail adds the failure of a rule to its reply.
func (e *Engine) fail(ctx context.Context, h *matchedRule, reply *Reply) error {
	if h.failure == nil {
		return nil
	}
	f, err := failureOf(ctx, h.scope, h.failure)
	if err != nil {
		return &ScriptError{h.ref, err}
	}
	reply.Failure = f
	return nil
}

// resume goes on with the active response after its tool calls.
func (e *Engine) resume(ctx context.Context, r Request) (Reply, error) {
	run := e.running
	if run == nil {
		return Reply{Blocks: emptyText()}, nil
	}
	for i, want := range run.expected {
		if want.pattern != nil && i < len(r.Results) {
			e.checkResult(want, r.Results[i])
		}
	}
	vars := e.vars(r)
	sc := run.hit.scope
	vars["prompt"] = sc.Vars["prompt"]
	sc.Vars, sc.Results = vars, append(sc.Results, e.results(r.Results)...)
	reply, err := run.next(ctx)
	if err != nil {
		return Reply{}, &ScriptError{run.hit.ref, err}
	}
	return reply, nil
}

// find decides what answers a prompt and counts it.
func (e *Engine) find(ctx context.Context, r Request) (*matchedRule, error) {
	vars := e.vars(r)
	if !r.Injected {
		e.left = nil
	}
	if e.active != nil && (!r.Injected || r.Notice) {
		h, err := e.turn(ctx, r.Prompt, vars)
		if h != nil || err != nil {
			return h, err
		}
		if !r.Injected {
			e.left, e.active = e.active, nil
		}
	}
	for i := range e.s.candidates(r.Prompt) {
		rule := &e.s.Responses[i]
		if rule.spent(e.counts[i]) {
			continue
		}
		c, ok := rule.match.Match(r.Prompt)
		if !ok {
			continue
		}
		sc := e.scope(&rule.compiledRule, c, vars)
		if ok, err := sc.Condition(ctx, rule.When); err != nil {
			return nil, &ScriptError{e.ref(i, -1), err}
		} else if !ok {
			continue
		}
		if mine, err := e.claim(i); err != nil {
			return nil, fmt.Errorf("%s: %w", e.ref(i, -1), err)
		} else if !mine {
			continue
		}
		e.counts[i]++
		if len(rule.Turns) > 0 && !r.Injected {
			e.active = &sequence{rule: i, groups: sc.Named()}
		}
		return &matchedRule{ref: e.ref(i, -1), rule: i, turn: -1, response: rule.Response, failure: rule.Failure, scope: sc}, nil
	}
	sc := &fill.Scope{Library: e.s.library, Source: e.s.source, Match: map[any]any{}, Vars: vars}
	if e.s.DefaultResponse == nil {
		return &matchedRule{rule: -1, turn: -1, scope: sc}, nil
	}
	return &matchedRule{ref: e.defaultRef(), rule: -1, turn: -1, response: e.s.DefaultResponse, scope: sc}, nil
}

// spent tells whether a rule that has answered so often in a session may not do
// so again.
func (r *Rule) spent(count int) bool {
	return r.MaxMatches != nil && count >= *r.MaxMatches || r.Once && count > 0
}

// claim takes a rule that answers once in a run.
func (e *Engine) claim(rule int) (bool, error) {
	if !e.s.Responses[rule].Once || e.o.Claims == nil {
		return true, nil
	}
	return e.o.Claims.Take(e.ref(rule, -1).String())
}

// turn tries the turn that is expected next; nil = the prompt is another one.
func (e *Engine) turn(ctx context.Context, prompt string, vars map[string]any) (*matchedRule, error) {
	at := *e.active
	turns := e.s.Responses[at.rule].Turns
	turn := &turns[at.next]
	c, ok := turn.match.Match(prompt)
	if !ok {
		return nil, nil
	}
	sc := e.scope(&turn.compiledRule, c, vars)
	sc.Inherit(at.groups)
	if ok, err := sc.Condition(ctx, turn.When); err != nil {
		return nil, &ScriptError{e.ref(at.rule, at.next), err}
	} else if !ok {
		return nil, nil
	}
	e.active = &sequence{rule: at.rule, next: at.next + 1, groups: sc.Named()}
	if e.active.next == len(turns) {
		e.active = nil
	}
	return &matchedRule{ref: e.ref(at.rule, at.next), rule: at.rule, turn: at.next, response: turn.Response, failure: turn.Failure, scope: sc}, nil
}

func (e *Engine) scope(r *compiledRule, c match.Captures, vars map[string]any) *fill.Scope {
	groups := map[any]any{}
	for i, text := range c.Groups {
		groups[i] = text
		if i < len(c.Names) && c.Names[i] != "" {
			if _, twice := groups[c.Names[i]]; !twice || text != "" {
				groups[c.Names[i]] = text
			}
		}
	}
	return &fill.Scope{Library: e.s.library, Source: r.source, Groups: r.groups, Match: groups, Vars: vars}
}

// vars are the variables of a request, without match and results.
func (e *Engine) vars(r Request) map[string]any {
	v := r.Vars
	session := v.Session
	session.Turn = cmp.Or(session.Turn, e.turns)
	schemas := map[string]any{}
	if e.s.library.Mentions("schemas") {
		for name, raw := range v.Schemas {
			schemas[name] = fill.Decode(raw)
		}
	}
	vars := map[string]any{
		"prompt": r.Prompt, "turn": session.Turn, "context": v.Context, "tools": v.Tools, "model": v.Model,
		"permission_mode": v.PermissionMode, "system_prompt": v.SystemPrompt, "cwd": cmp.Or(v.CWD, e.o.CWD), "env": e.env,
		"args": e.o.Args, "session": map[string]any{"id": session.ID, "resumed": session.Resumed, "turn": session.Turn}, "schemas": schemas,
	}
	if slices.ContainsFunc(fill.CallNames(), e.s.library.Mentions) {
		v.Call.vars(vars)
	}
	vars["system"] = v.SystemPrompt
	return vars
}

func (e *Engine) defaultRef() RuleRef {
	pos := e.s.source.Index.Pos(diag.Path{defaultName})
	return RuleRef{Name: defaultName, File: pos.File, Line: pos.Line}
}

// ref names a rule, or one of its turns when turn is not negative.
func (e *Engine) ref(rule, turn int) RuleRef {
	r := &e.s.Responses[rule]
	ref := RuleRef{Name: ruleName(rule)}
	path := diag.Path{"responses", r.index}
	if turn >= 0 {
		ref.Name += ".turns[" + strconv.Itoa(turn) + "]"
		path = append(path, "turns", turn)
	}
	pos := r.source.Index.Pos(path)
	ref.File, ref.Line = pos.File, pos.Line
	return ref
}

// results is what expressions see of results. Their content is decoded only
// where something asks for it.
func (e *Engine) results(results []Result) []fill.Result {
	vars := make([]fill.Result, len(results))
	for i, r := range results {
		vars[i] = fill.Result{Text: r.Text, IsError: r.IsError, Tool: r.Tool, ID: r.ToolUseID}
		if !e.s.library.Mentions("results") {
			continue
		}
		vars[i].Content = fill.Decode(r.Content)
		if raw, err := json.Marshal(r.Structured); err == nil && r.Structured != nil {
			vars[i].Structured = fill.Decode(raw)
		}
	}
	return vars
}

// checkResult records a result that its call's `expect` does not match.
func (e *Engine) checkResult(c expectedResult, r Result) {
	t, _, err := compilePattern(c.pattern, nil)
	if err != nil {
		return
	}
	if _, ok := t.Match(r.Text); !ok {
		e.missed = append(e.missed, ExpectationResult{
			At:   c.at,
			Text: fmt.Sprintf("expected the result of %s to match %s: %s; the result is %s", c.tool, c.pattern, t.Explain(r.Text, e.s.excerpts), e.s.excerpts.clip(r.Text)),
		})
	}
}

// ObserveCall records a tool call of the run, by its canonical name.
func (e *Engine) ObserveCall(name string, input json.RawMessage) { e.seen.Call(name, input) }

// ObservePrompt records a prompt of the run.
func (e *Engine) ObservePrompt(text string) { e.seen.Prompt(text) }

// Seen is what the run of the engine has done so far; what the engine cannot see
// itself may be added to it.
func (e *Engine) Seen() *Seen { return &e.seen }

// Unmet says which expectations the run so far does not fulfil: results that
// did not match their call's `expect`, then the [[expect]] blocks in file
// order. Each is one line, with its place where that is known.
func (e *Engine) Unmet() []string {
	var unmet []string
	for _, j := range append(e.Misses(), e.s.Judge(&e.seen)...) {
		if !j.Met {
			unmet = append(unmet, j.String())
		}
	}
	return unmet
}

// agents are the engines of sub-agents, for the misses of their calls. Agents
// may start at the same time.
type agents struct {
	mu   sync.Mutex
	list []*Engine
}

// Subagent makes the engine of a sub-agent, which is a session of its own: its
// first prompt is answered by the script, everything else by the rules. A nil
// script, or one without steps, leaves all to the rules. It may be called from
// many goroutines.
func (e *Engine) Subagent(s *protocol.SubagentScript) *Engine {
	sub := &Engine{s: e.s, o: e.o, env: e.env, counts: map[int]int{}}
	if s != nil {
		if sc, ok := s.Steps.(*script); ok && len(sc.steps) > 0 {
			sub.script = &matchedRule{ref: sc.ref, response: &Response{Steps: sc.steps}, scope: sc.scope}
		}
	}
	e.agents.mu.Lock()
	defer e.agents.mu.Unlock()
	e.agents.list = append(e.agents.list, sub)
	return sub
}

// Misses are the results that a call's `expect` did not match, those of
// sub-agents after our own.
func (e *Engine) Misses() []ExpectationResult {
	misses := slices.Clone(e.missed)
	e.agents.mu.Lock()
	defer e.agents.mu.Unlock()
	for _, sub := range e.agents.list {
		misses = append(misses, sub.Misses()...)
	}
	return misses
}

// scripted answers the first prompt of a scripted sub-agent; nil = it is none,
// or a later prompt.
func (e *Engine) scripted(r Request) *matchedRule {
	h := e.script
	if h == nil {
		return nil
	}
	e.script = nil
	h.scope.Vars = e.vars(r)
	return h
}

// Sample answers what an MCP server asks of the model: the first answer for the
// server, by its raw name, and the text of its last message, with the templates
// filled in; nil = there is none. The error is for expressions that fail while
// they run. An engine that is only sampled may be by many goroutines.
func (e *Engine) Sample(ctx context.Context, server, prompt string) (answer *Sampling, err error) {
	all := e.s.MCP.Sampling
	for i := 0; i < len(all) && answer == nil; i++ {
		a := all[i]
		c, ok := a.match.Match(prompt)
		if !ok || a.Server != "" && a.Server != server {
			continue
		}
		sc := e.scope(&a.compiledRule, c, e.vars(Request{Prompt: prompt}))
		if a.Text, err = sc.Text(ctx, a.Text); err == nil {
			a.Error, err = sc.Text(ctx, a.Error)
		}
		if err != nil {
			return nil, fmt.Errorf("mcp.sampling[%d]: %w", i, err)
		}
		answer = &a
	}
	return answer, nil
}

package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/diag"
	"github.com/claudeless/claudeless/internal/eval"
	"github.com/claudeless/claudeless/internal/match"
)

// EngineOptions are what an engine is told beside the scenario. The zero value
// works.
type EngineOptions struct {
	// NewID makes the ids of tool calls that the scenario gives none; nil =
	// they stay empty and the caller makes them.
	NewID func() string
	// Env is `env` in expressions, as "K=V"; of two equal keys the last wins.
	Env []string
	// Args is `args` in expressions: the arguments of the program as given.
	Args []string
	// CWD is `cwd` in expressions.
	CWD string
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
	running *response   // nil = nothing to go on with
	seen    Seen
	missed  []Judged // results that a call's `expect` did not match
	script  *hit     // answers the first prompt of a sub-agent; nil = the rules do
	agents  agents
}

// sequence is a rule whose turns are expected next.
type sequence struct {
	rule   int
	next   int               // the turn that is expected
	groups map[string]string // named captures of the rule's own prompt
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

// Next answers one request. The error is for expressions that fail while they
// run and for a done ctx; what the scenario scripts is never an error.
func (e *Engine) Next(ctx context.Context, r Request) (Reply, error) {
	if err := ctx.Err(); err != nil {
		return Reply{}, err
	}
	ctx = eval.Together(ctx)
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
	reply, err := e.running.next(ctx, e.o.NewID)
	if err != nil {
		return Reply{}, fmt.Errorf("%s: %w", h.ref, err)
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

// fail adds the failure of a rule to its reply.
func (e *Engine) fail(ctx context.Context, h *hit, reply *Reply) error {
	if h.failure == nil {
		return nil
	}
	f, err := h.scope.failure(ctx, h.failure)
	reply.Failure = f
	return err
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
	vars["prompt"], vars["match"] = run.hit.scope.vars["prompt"], run.hit.scope.vars["match"]
	run.hit.scope.vars = vars
	run.hit.scope.results = append(run.hit.scope.results, e.s.library.resultVars(r.Results)...)
	reply, err := run.next(ctx, e.o.NewID)
	if err != nil {
		return Reply{}, fmt.Errorf("%s: %w", run.hit.ref, err)
	}
	return reply, nil
}

// hit is what answers a prompt.
type hit struct {
	ref      RuleRef
	rule     int // -1 = default_response, or none
	turn     int // -1 = the rule's own response
	response *Response
	failure  *Failure
	scope    *scope
}

const defaultName = "default_response"

// find decides what answers a prompt and counts it.
func (e *Engine) find(ctx context.Context, r Request) (*hit, error) {
	vars := e.vars(r)
	if e.active != nil && (!r.Injected || r.Notice) {
		h, err := e.turn(ctx, r.Prompt, vars)
		if h != nil || err != nil {
			return h, err
		}
		if !r.Injected {
			e.active = nil
		}
	}
	for i := range e.s.Responses {
		rule := &e.s.Responses[i]
		if rule.MaxMatches != nil && e.counts[i] >= *rule.MaxMatches {
			continue
		}
		c, ok := rule.match.Match(r.Prompt)
		if !ok {
			continue
		}
		sc := e.scope(&rule.compiledRule, c, vars)
		if ok, err := sc.condition(ctx, rule.When); err != nil {
			return nil, fmt.Errorf("%s: %w", e.ref(i, -1), err)
		} else if !ok {
			continue
		}
		e.counts[i]++
		if len(rule.Turns) > 0 && !r.Injected {
			e.active = &sequence{rule: i, groups: sc.named()}
		}
		return &hit{ref: e.ref(i, -1), rule: i, turn: -1, response: rule.Response, failure: rule.Failure, scope: sc}, nil
	}
	vars["match"] = map[any]any{}
	sc := &scope{lib: e.s.library, src: e.s.source, vars: vars}
	if e.s.DefaultResponse == nil {
		return &hit{rule: -1, turn: -1, scope: sc}, nil
	}
	return &hit{ref: e.defaultRef(), rule: -1, turn: -1, response: e.s.DefaultResponse, scope: sc}, nil
}

// turn tries the turn that is expected next; nil = the prompt is another one.
func (e *Engine) turn(ctx context.Context, prompt string, vars map[string]any) (*hit, error) {
	at := *e.active
	turns := e.s.Responses[at.rule].Turns
	turn := &turns[at.next]
	c, ok := turn.match.Match(prompt)
	if !ok {
		return nil, nil
	}
	sc := e.scope(&turn.compiledRule, c, vars)
	sc.inherit(at.groups)
	if ok, err := sc.condition(ctx, turn.When); err != nil {
		return nil, fmt.Errorf("%s: %w", e.ref(at.rule, at.next), err)
	} else if !ok {
		return nil, nil
	}
	e.active = &sequence{rule: at.rule, next: at.next + 1, groups: at.groups}
	if e.active.next == len(turns) {
		e.active = nil
	}
	return &hit{ref: e.ref(at.rule, at.next), rule: at.rule, turn: at.next, response: turn.Response, failure: turn.Failure, scope: sc}, nil
}

func (e *Engine) scope(r *compiledRule, c match.Captures, vars map[string]any) *scope {
	groups := map[any]any{}
	for i, text := range c.Groups {
		groups[i] = text
		if i < len(c.Names) && c.Names[i] != "" {
			if _, twice := groups[c.Names[i]]; !twice || text != "" {
				groups[c.Names[i]] = text
			}
		}
	}
	vars["match"] = groups
	return &scope{lib: e.s.library, src: r.source, groups: r.groups, vars: vars}
}

// named returns the captures that have a name.
func (s *scope) named() map[string]string {
	groups := map[string]string{}
	for key, text := range s.captures() {
		if name, ok := key.(string); ok {
			groups[name] = text.(string) //nolint:forcetypeassert // made by Engine.scope
		}
	}
	return groups
}

// inherit adds the captures of the rule that a turn belongs to; its own win.
func (s *scope) inherit(groups map[string]string) {
	own := s.captures()
	for name, text := range groups {
		if _, ok := own[name]; !ok {
			own[name] = text
		}
	}
}

func (s *scope) captures() map[any]any {
	return s.vars["match"].(map[any]any) //nolint:forcetypeassert // made by Engine.scope
}

// vars are the variables of a request, without match and results.
func (e *Engine) vars(r Request) map[string]any {
	v := r.Vars
	session := v.Session
	if session.Turn == 0 {
		session.Turn = e.turns
	}
	schemas := map[string]any{}
	if e.s.library.schemas {
		for name, raw := range v.Schemas {
			schemas[name] = decode(raw)
		}
	}
	vars := map[string]any{
		"prompt": r.Prompt, "match": map[any]any{}, "turn": session.Turn, "context": v.Context, "tools": v.Tools, "model": v.Model,
		"permission_mode": v.PermissionMode, "system_prompt": v.SystemPrompt, "cwd": cmp.Or(v.CWD, e.o.CWD), "env": e.env,
		"args": e.o.Args, "session": map[string]any{"id": session.ID, "resumed": session.Resumed, "turn": session.Turn}, "schemas": schemas, "results": []resultVar(nil),
	}
	for _, name := range callNames() {
		if e.s.library.mentioned[name] {
			v.Call.vars(vars)
			break
		}
	}
	vars["system"] = v.SystemPrompt
	return vars
}

func ruleName(i int) string { return "responses[" + strconv.Itoa(i) + "]" }

func (e *Engine) defaultRef() RuleRef {
	pos := e.s.source.ix.Pos(diag.Path{defaultName})
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
	pos := r.source.ix.Pos(path)
	ref.File, ref.Line = pos.File, pos.Line
	return ref
}

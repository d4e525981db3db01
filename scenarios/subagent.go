package scenarios

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// script is what the steps of a [protocol.SubagentScript] hold: steps with the
// names that they see.
type script struct {
	ref   RuleRef
	steps []Step
	scope *scope
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
			sub.script = &hit{ref: sc.ref, response: &Response{Steps: sc.steps}, scope: sc.scope}
		}
	}
	e.agents.mu.Lock()
	defer e.agents.mu.Unlock()
	e.agents.list = append(e.agents.list, sub)
	return sub
}

// Misses are the results that a call's `expect` did not match, those of
// sub-agents after our own.
func (e *Engine) Misses() []Judged {
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
func (e *Engine) scripted(r Request) *hit {
	h := e.script
	if h == nil {
		return nil
	}
	e.script = nil
	vars := e.vars(r)
	vars["match"] = h.scope.vars["match"]
	h.scope.vars = vars
	return h
}

// subagent is the script of a call's agent; nil = it has none.
func (r *response) subagent(s *Subagent) *protocol.SubagentScript {
	if s == nil {
		return nil
	}
	sc := *r.hit.scope
	sc.vars, sc.results = maps.Clone(sc.vars), nil
	return &protocol.SubagentScript{
		Type: s.Type, Background: s.Background, Steps: &script{ref: r.hit.ref, steps: s.Steps, scope: &sc},
	}
}

// tool fills in one call of a reply.
func (r *response) tool(ctx context.Context, c *ToolCall) (protocol.ToolUse, error) {
	use, err := r.hit.scope.call(ctx, c)
	if sub := r.subagent(c.Subagent); sub != nil {
		if use.Script == nil {
			use.Script = &protocol.CallScript{}
		}
		use.Script.Subagent = sub
	}
	return use, err
}

// ScriptsAgents tells whether some call of the scenario scripts the agent that it
// starts.
func (s *Scenario) ScriptsAgents() bool {
	if s.DefaultResponse.scriptsAgents() {
		return true
	}
	for i := range s.Responses {
		if s.Responses[i].Response.scriptsAgents() {
			return true
		}
		for t := range s.Responses[i].Turns {
			if s.Responses[i].Turns[t].Response.scriptsAgents() {
				return true
			}
		}
	}
	return false
}

func (r *Response) scriptsAgents() bool {
	scripts := func(c ToolCall) bool { return c.Subagent != nil && len(c.Subagent.Steps) > 0 }
	return r != nil && (slices.ContainsFunc(r.ToolCalls, scripts) || slices.ContainsFunc(r.Steps, func(s Step) bool {
		return slices.ContainsFunc(s.ToolCalls, scripts) || slices.ContainsFunc(s.Blocks, func(b Block) bool { return scripts(b.ToolCall) })
	}))
}

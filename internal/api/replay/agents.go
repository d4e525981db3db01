package replay

import (
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
)

// engine is the engine at the beginning of the conversation.
func (f *Replay) engine() *scenarios.Engine {
	if f.r.Agent != "" {
		if e := f.scripted(); e != nil {
			f.salt = f.salt.Chain("agent", f.r.Session, f.r.Agent)
			return e.Fork()
		}
	}
	return f.s.blank.Fork()
}

// scripted is the engine of a sub-agent whose steps hang on the call that started
// it; nil = it has none, or it was forgotten.
func (f *Replay) scripted() *scenarios.Engine {
	t := conversationKey{f.r.Session, f.r.Agent}
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	if e, ok := f.memory.agents.Get(t); ok {
		return e
	}
	prompt := ""
	for _, in := range f.groups[0].Steps {
		if in.Kind == history.Prompt {
			prompt = in.Text
			break
		}
	}
	waiting, _ := f.memory.scripts.Get(scriptKey{f.r.Session, prompt})
	for _, c := range waiting {
		if c.agent == "" {
			c.agent = f.r.Agent
			f.memory.agents.Put(t, c.engine)
			return c.engine
		}
	}
	if f.s.scripts {
		f.findings = append(f.findings, fmt.Sprintf("the sub-agent %s has no script any more: the rules answer it", f.r.Agent))
	}
	return nil
}

// expect remembers the script of a sub-agent that a call is about to start.
func (f *Replay) expect(call, prompt string, e *scenarios.Engine) {
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	key := scriptKey{f.r.Session, prompt}
	waiting, _ := f.memory.scripts.Get(key)
	if slices.ContainsFunc(waiting, func(c *subagentScript) bool { return c.call == call }) {
		return
	}
	f.memory.scripts.Put(key, append(slices.Clip(waiting), &subagentScript{call: call, engine: e}))
}

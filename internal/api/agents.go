package api

import (
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/scenarios"
)

// initialEngine returns the scenario engine at the beginning of the conversation.
func (f *replay) initialEngine() *scenarios.Engine {
	if f.request.Agent != "" {
		if e := f.subagentEngine(); e != nil {
			f.salt = f.salt.Chain("agent", f.request.Session, f.request.Agent)
			return e.Fork()
		}
	}
	return f.replayer.initialEngine.Fork()
}

// subagentEngine returns the engine that plays the scripted sub-agent of this conversation. It
// returns nil if the call that started the sub-agent has no script or was forgotten.
func (f *replay) subagentEngine() *scenarios.Engine {
	t := conversationKey{f.request.Session, f.request.Agent}
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
	waiting, _ := f.memory.scripts.Get(scriptKey{f.request.Session, prompt})
	for _, c := range waiting {
		if c.takenBy == "" {
			c.takenBy = f.request.Agent
			f.memory.agents.Put(t, c.engine)
			return c.engine
		}
	}
	if f.replayer.hasSubagentScripts {
		f.findings = append(f.findings, fmt.Sprintf("the script of the sub-agent %s was lost: the rules answer its requests", f.request.Agent))
	}
	return nil
}

// rememberSubagent stores the script of a sub-agent that a call is about to start.
func (f *replay) rememberSubagent(call, prompt string, e *scenarios.Engine) {
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	key := scriptKey{f.request.Session, prompt}
	waiting, _ := f.memory.scripts.Get(key)
	if slices.ContainsFunc(waiting, func(c *subagentScript) bool { return c.call == call }) {
		return
	}
	f.memory.scripts.Put(key, append(slices.Clip(waiting), &subagentScript{call: call, engine: e}))
}

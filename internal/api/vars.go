package api

import (
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/api/history"
)

// bindRequestVars sets the variables that expressions can read from the request, if the scenario
// uses any.
func (f *replay) bindRequestVars() {
	r, scenario := f.request, f.replayer.scenario
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
	f.vars.Model, f.vars.Session.ID = r.Model, r.Session
	is(r.Model, "model")
	is(r.Session, "session")
	if scenario.Mentions("system") {
		f.vars.SystemPrompt = r.SystemText()
		is(f.vars.SystemPrompt, "system")
	}
	if is(string(r.Tools.Raw), "tools", "schemas") {
		f.vars.Tools = r.Tools.Names
		if scenario.Mentions("schemas") {
			f.vars.Schemas = r.Tools.Schemas()
		}
	}
	if scenario.Mentions("cwd") {
		f.vars.CWD = r.WorkingDirectory()
		is(f.vars.CWD, "cwd")
	}
	c := &f.vars.Call
	c.MaxTokens, c.Stream, c.Agent, c.Betas = r.MaxTokens, r.Stream, r.Agent, r.Betas
	c.ToolChoice, c.Thinking, c.OutputConfig, c.Metadata = r.ToolChoice, r.Thinking, r.OutputConfig, r.Metadata
	is(fmt.Sprint(r.MaxTokens), "max_tokens")
	is(fmt.Sprint(r.Stream), "stream")
	is(strings.Join(r.Betas, ","), "betas")
	is(r.Agent, "agent")
	is(string(r.ToolChoice), "tool_choice")
	is(string(r.Thinking), "thinking")
	is(string(r.OutputConfig), "output_config")
	is(string(r.Metadata), "metadata")
	if scenario.Mentions("headers") {
		c.Headers = r.VisibleHeaders()
		volatile = append(volatile, "headers", fmt.Sprint(c.Headers))
	}
	if volatile != nil {
		f.salt = history.Digest{}.Chain(volatile...)
	}
}

package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claudeless/claudeless/internal/claude/checkpoint"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/outputschema"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
	"github.com/claudeless/claudeless/simulator/task"
)

// A session as its host sees it: what it may be asked, and what of it may be changed while it runs.

// ID is that of the session as it was last shown.
func (s *Session) ID() string { return s.records.id() }

// Plan is what the session began with.
func (s *Session) Plan() *launch.Plan { return &s.plan }

// Live is what changes while the session runs.
func (s *Session) Live() *simulator.SessionState { return s.live }

// Policy decides about calls.
func (s *Session) Policy() *permission.Policy { return s.policy.Policy }

// Servers are the MCP servers; nil = there can be none.
func (s *Session) Servers() *mcp.Manager { return s.servers.manager }

// Hooks are those in force.
func (s *Session) Hooks() *hook.Runner { return s.hooks.Runner }

// Tasks is the work in the background.
func (s *Session) Tasks() *task.Set { return s.work.tasks }

// Checkpoints are the copies of files; nil = none are kept.
func (s *Session) Checkpoints() *checkpoint.History { return s.records.checkpoints }

// Warn tells about something on stderr.
func (s *Session) Warn(text string) { s.records.Warn(text) }

// Hint tells about something that is passed over, unless our name is claude.
func (s *Session) Hint(text string) { s.records.Hint(text) }

// Ready waits until a turn may begin.
func (s *Session) Ready(ctx context.Context) error { return s.servers.settle(ctx) }

// Started waits until Start's servers have settled, or its context has ended.
func (s *Session) Started() { <-s.servers.guests.settled }

// Busy tells whether work runs beside turns or a turn is to follow from it.
func (s *Session) Busy() bool {
	sim, release := s.talk.locked()
	defer release()
	return sim.Busy()
}

// Idle shows what the work shows until a turn is to follow, nothing is left, or ctx ends.
func (s *Session) Idle(ctx context.Context) Events { return s.watch(s.talk.sim.Idle(ctx)) }

// Notice takes the prompt of a turn that is to follow; false = there is none.
func (s *Session) Notice() (protocol.UserMessage, bool) { return s.talk.sim.Notice() }

// Configuration is what a host may say before the first turn that is otherwise said by flags.
type Configuration struct {
	System  *string // system prompt; nil = as it is
	Append  string  // text to add to it; empty = as it is
	Schema  string  // of the answer; what is none is passed over
	Aliases map[string]string
}

// Configure applies it.
func (s *Session) Configure(c Configuration) error {
	prompt := s.plan.Prompt
	if c.System != nil {
		prompt.System = *c.System
	}
	if c.Append != "" {
		prompt.Append = c.Append
	}
	if _, err := outputschema.Compile(c.Schema); err == nil {
		prompt.Schema = c.Schema
	}
	s.box.inventory.hostSchema.Store(prompt.Schema != "" && !prompt.SchemaFlag)
	s.box.aliases = c.Aliases
	s.plan.Prompt = prompt
	return s.renew(prompt)
}

// ShowAgents shows the texts of agents that are waited for.
func (s *Session) ShowAgents() { s.work.shown.Store(true) }

// AllowSkills leaves the model these skills.
func (s *Session) AllowSkills(names []string) { s.library.allowed.Store(&names) }

// AddPlugins loads the plugins of these directories; with tells of each whether its servers come too, which
// [Session.Connect] connects.
func (s *Session) AddPlugins(dirs []string, with map[string]bool) {
	for _, parts := range s.plan.Catalog.AddPlugins(launch.OpenDir, dirs...) {
		if !s.hooks.off {
			for _, w := range s.hooks.Add(ofPlugin(parts)) {
				s.records.Warn(w.Text)
			}
		}
		if with[parts.Dir] && !s.plan.Servers.Fixed {
			s.servers.plug(s.plan.PluginServers(parts))
		}
	}
}

// Connect connects the servers inside the host, these among them, and those of its plugins.
func (s *Session) Connect(ctx context.Context, names []string) error {
	if err := s.servers.introduce(ctx, names); err != nil {
		return err
	}
	return s.servers.connectPlugged(ctx)
}

// SetServers replaces the servers that came with --mcp-config or later from the host by those of an mcpServers object.
func (s *Session) SetServers(ctx context.Context, object json.RawMessage) (mcp.Change, error) {
	return s.servers.replace(ctx, object)
}

// Statuses are the servers that were tried.
func (s *Session) Statuses() []mcp.ServerStatus { return s.servers.statuses() }

// Rename titles the session. The transcript gets the title between turns.
func (s *Session) Rename(title string) { s.talk.entitle(title) }

// Model is the model in force, as the API names it.
func (s *Session) Model() string { return model.Resolve(s.live.Model()) }

// SetModel changes it, by a name that the environment may have another model for.
func (s *Session) SetModel(name string) { s.live.SetModel(s.plan.Model.Aliases.Name(name)) }

// Cost is what the session had cost when the last turn had ended.
func (s *Session) Cost() slash.Cost { return s.talk.spent() }

// Context is how full the context is.
func (s *Session) Context() slash.Context {
	sim, release := s.talk.locked()
	defer release()
	return sim.Context()
}

// Ask has the scripted model answer beside the conversation, of which it takes no note. A failure is told in failed.
func (s *Session) Ask(ctx context.Context, question string) (reply scenarios.Reply, failed string, err error) {
	reply, err = s.records.engine.Subagent(nil).Next(ctx, scenarios.Request{Prompt: question})
	if err == nil {
		err = s.plan.Clock.Sleep(ctx, time.Duration(reply.DelayMS)*time.Millisecond)
	}
	if err == nil && reply.Failure != nil {
		sim, release := s.talk.locked()
		failed = sim.FailureText(reply.Failure)
		release()
	}
	return reply, failed, err
}

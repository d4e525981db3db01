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
func (s *Session) ID() string { return s.records.shownID() }

// Plan is what the session began with.
func (s *Session) Plan() *launch.Plan { return &s.plan }

// State is what changes while the session runs.
func (s *Session) State() *simulator.SessionState { return s.state }

// Policy decides about calls.
func (s *Session) Policy() *permission.Policy { return s.policy.Policy }

// Servers are the MCP servers; nil = there can be none.
func (s *Session) Servers() *mcp.Manager { return s.servers.manager }

// Hooks are those in force.
func (s *Session) Hooks() *hook.Runner { return s.hooks.Runner }

// Tasks is the work in the background.
func (s *Session) Tasks() *task.Set { return s.background.tasks }

// Checkpoints are the copies of files; nil = none are kept.
func (s *Session) Checkpoints() *checkpoint.History { return s.records.checkpoints }

// Warn tells about something on stderr.
func (s *Session) Warn(text string) { s.records.Warn(text) }

// Hint tells about something that is passed over, unless our name is claude.
func (s *Session) Hint(text string) { s.records.Hint(text) }

// WaitReady waits until a turn may begin.
func (s *Session) WaitReady(ctx context.Context) error { return s.servers.waitSettled(ctx) }

// WaitStarted waits until Start's servers have settled, or its context has ended.
func (s *Session) WaitStarted() { <-s.servers.dynamic.settled }

// Busy tells whether work runs beside turns or a turn is to follow from it.
func (s *Session) Busy() bool {
	sim, release := s.conversation.lockSimulator()
	defer release()
	return sim.Busy()
}

// BackgroundEvents shows what the work shows until a turn is to follow, nothing is left, or ctx ends.
func (s *Session) BackgroundEvents(ctx context.Context) Events {
	return s.recordEvents(s.conversation.sim.BackgroundEvents(ctx))
}

// TakeNotice takes the prompt of a turn that is to follow; false = there is none.
func (s *Session) TakeNotice() (protocol.UserMessage, bool) { return s.conversation.sim.NextNotice() }

// HostConfiguration is what a host may say before the first turn that is otherwise said by flags.
type HostConfiguration struct {
	SystemPrompt *string // system prompt; nil = as it is
	AppendPrompt string  // text to add to it; empty = as it is
	Schema       string  // of the answer; what is none is passed over
	ToolAliases  map[string]string
}

// Configure applies it.
func (s *Session) Configure(c HostConfiguration) error {
	prompt := s.plan.Prompt
	if c.SystemPrompt != nil {
		prompt.System = *c.SystemPrompt
	}
	if c.AppendPrompt != "" {
		prompt.Append = c.AppendPrompt
	}
	if _, err := outputschema.Compile(c.Schema); err == nil {
		prompt.Schema = c.Schema
	}
	s.tools.inventory.hostSchema.Store(prompt.Schema != "" && !prompt.SchemaFlag)
	s.tools.aliases = c.ToolAliases
	s.plan.Prompt = prompt
	return s.rebuildSimulator(prompt)
}

// ShowAgents shows the texts of agents that are waited for.
func (s *Session) ShowAgents() { s.background.showAgentText.Store(true) }

// AllowSkills leaves the model these skills.
func (s *Session) AllowSkills(names []string) { s.library.allowed.Store(&names) }

// AddPlugins loads the plugins of these directories; with tells of each whether its servers come too, which
// [Session.Connect] connects.
func (s *Session) AddPlugins(dirs []string, with map[string]bool) {
	for _, parts := range s.plan.Catalog.AddPlugins(launch.OpenDir, dirs...) {
		if !s.hooks.disabled {
			for _, w := range s.hooks.Add(pluginHooks(parts)) {
				s.records.Warn(w.Text)
			}
		}
		if with[parts.Dir] && !s.plan.Servers.NoPluginServers {
			s.servers.addPluginServers(s.plan.PluginServers(parts))
		}
	}
}

// Connect connects the servers inside the host, these among them, and those of its plugins.
func (s *Session) Connect(ctx context.Context, names []string) error {
	if err := s.servers.connectHosted(ctx, names); err != nil {
		return err
	}
	return s.servers.connectPluginServers(ctx)
}

// SetServers replaces the servers that came with --mcp-config or later from the host by those of an mcpServers object.
func (s *Session) SetServers(ctx context.Context, object json.RawMessage) (mcp.Change, error) {
	return s.servers.replaceHostServers(ctx, object)
}

// ServerStatuses are the servers that were tried.
func (s *Session) ServerStatuses() []mcp.ServerStatus { return s.servers.statuses() }

// Rename titles the session. The transcript gets the title between turns.
func (s *Session) Rename(title string) { s.conversation.addTitle(title) }

// Model is the model in force, as the API names it.
func (s *Session) Model() string { return model.Resolve(s.state.Model()) }

// SetModel changes it, by a name that the environment may have another model for.
func (s *Session) SetModel(name string) { s.state.SetModel(s.plan.Model.Aliases.Name(name)) }

// Cost is what the session had cost when the last turn had ended.
func (s *Session) Cost() slash.Cost { return s.conversation.lastCost() }

// Context is how full the context is.
func (s *Session) Context() slash.Context {
	sim, release := s.conversation.lockSimulator()
	defer release()
	return sim.Context()
}

// AskSideQuestion has the scripted model answer beside the conversation, of which it takes no note. A failure is told in failed.
func (s *Session) AskSideQuestion(ctx context.Context, question string) (reply scenarios.Reply, failed string, err error) {
	reply, err = s.records.scenario.Subagent(nil).Next(ctx, scenarios.Request{Prompt: question})
	if err == nil {
		err = s.plan.Clock.Sleep(ctx, time.Duration(reply.DelayMS)*time.Millisecond)
	}
	if err == nil && reply.Failure != nil {
		sim, release := s.conversation.lockSimulator()
		failed = sim.FailureText(reply.Failure)
		release()
	}
	return reply, failed, err
}

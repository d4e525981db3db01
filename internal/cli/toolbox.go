package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/catalog"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// toolbox is what the session knows of calls and of the tools they name.
type toolbox struct {
	executor.Executor // the chain
	r                 *run
	canned            executor.CannedOptions
}

// Prepare looks at a call as the model has written it. The name of an alias is
// not looked up again.
func (t toolbox) Prepare(call protocol.ToolUse) simulator.Prepared {
	p := simulator.Prepared{Input: t.r.tools.Prepare(call), Runs: t.r.aliases[call.Name]}
	if p.Runs != "" {
		call.Name = p.Runs
	}
	p.ReadOnly = t.r.readOnly(call)
	return p
}

// Ready looks at a call that is about to run. What is answered without a tool is
// not checked.
func (t toolbox) Ready(ctx context.Context, call protocol.ToolUse) simulator.Ready {
	ready := simulator.Ready{Seen: t.r.tools.Observed(call)}
	if !t.canned.Answers(call) {
		ready.Refused = t.r.check(ctx, call)
	}
	return ready
}

// Server names the MCP server of a tool; nil = none.
func (t toolbox) Server(tool string) *protocol.ServerRef { return t.r.serverOf(tool) }

// Rewrite gives the content of a built-in tool's result.
func (t toolbox) Rewrite(tool string, output json.RawMessage) (protocol.Content, bool) {
	return builtin.Rewrite(tool, output)
}

// place is where the session stands.
type place struct{ r *run }

func (p place) Dir() string                   { return p.r.tools.Dir() }
func (p place) Mode() protocol.PermissionMode { return p.r.policy.Mode() }

// mentions reads what prompts name with @.
type mentions struct{ r *run }

func (m mentions) Open(ctx context.Context, named simulator.Mention) (simulator.Mentioned, bool) {
	return m.r.openMention(ctx, named)
}

func (m mentions) Read(ctx context.Context, text string) []simulator.Mentioned {
	return m.r.readResources(ctx, text)
}

// commands are the session's slash commands.
type commands struct{ r *run }

// Find finds a command: a custom one or a skill, one of the CLI itself, or an MCP
// prompt.
func (c commands) Find(name string) (simulator.Command, bool) {
	k, custom := c.r.Catalog.Command(name)
	switch {
	case c.r.Custom.NoCommands:
		return simulator.Unavailable{}, simulator.OwnCommand(name) || knownCommand(name)
	case custom && !k.NoUser:
		return customCommand{c.r, k}, true
	case simulator.OwnCommand(name):
		return nil, false
	case custom:
		return modelsCommand(k.Name), true
	case slices.Contains(persona.Unavailable(), name):
		return simulator.Unavailable{}, true
	}
	if b, ok := persona.BuiltinNamed(name); ok && !b.Skill {
		return builtinCommand{c.r, b.Name}, true
	}
	for _, p := range c.r.prompts() {
		if mcp.CanonicalName(p.Server, p.Name) == name {
			return promptCommand{c.r, p}, true
		}
	}
	return nil, false
}

func (c commands) Loaded() slash.Loaded { return c.r.loaded() }

func (c commands) Grant(rules []string) { c.r.grant(rules) }

// customCommand is a command or a skill found on disk.
type customCommand struct {
	r *run
	k catalog.Command
}

func (c customCommand) Run(_ context.Context, call slash.Call) (*slash.Said, *slash.Expansion) {
	return nil, &slash.Expansion{
		Text: commandText(c.k, call.Args), Kind: "slash_command", Source: c.k.Source, Tools: c.k.Tools, Model: c.r.commandModel(c.k),
	}
}

// modelsCommand is a skill that users cannot call.
type modelsCommand string

func (c modelsCommand) Run(context.Context, slash.Call) (*slash.Said, *slash.Expansion) {
	return &slash.Said{
		Text: fmt.Sprintf("This skill can only be invoked by Claude, not directly by users. Ask Claude to use the %q skill for you.", string(c)),
	}, nil
}

// builtinCommand is one of the CLI itself.
type builtinCommand struct {
	r    *run
	name string
}

func (c builtinCommand) Run(_ context.Context, call slash.Call) (*slash.Said, *slash.Expansion) {
	return c.r.local(c.name, call.Args), nil
}

// promptCommand is a prompt of an MCP server.
type promptCommand struct {
	r *run
	p mcp.Prompt
}

func (c promptCommand) Run(ctx context.Context, call slash.Call) (*slash.Said, *slash.Expansion) {
	text, err := c.r.promptText(ctx, c.p, call.Args)
	name := c.p.Server + ":" + c.p.Name + " (MCP)"
	if err != nil {
		return &slash.Said{Text: err.Error(), Name: name, Result: "mcp", Failed: true}, nil
	}
	return nil, &slash.Expansion{Text: text, Kind: "mcp_prompt", Name: name, Source: "mcp"}
}

// family is what agents know of their session.
type family struct{ r *run }

func (f family) Options() simulator.Options { return f.r.options }
func (f family) Name() string               { return f.r.sessionName() }
func (f family) Shown() bool                { return f.r.forwardAgents.Load() }

func (f family) Find(name string) (agent.Definition, bool) {
	a, ok := f.r.Catalog.Agent(name)
	return agent.Definition{
		Name: a.Name, Description: a.Description, Prompt: a.Prompt, Tools: a.Tools, Disallowed: a.Disallowed,
		Model: a.Model, MaxTurns: a.MaxTurns, Background: a.Background,
	}, ok
}

func (f family) Names() []string { return f.r.Catalog.AgentNames() }

func (f family) Denied(name string) (rule, source string) { return f.r.policy.DeniedAgent(name) }

// performers play agents.
type performers struct{ r *run }

func (p performers) Script(script *protocol.SubagentScript) simulator.Model {
	if p.r.Scenario.Failure != nil {
		return p.r.options.Model
	}
	return p.r.engine.Subagent(script)
}

func (p performers) Name(name string) string { return p.r.Model.Aliases.Name(name) }

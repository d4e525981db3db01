// Package host is what an SDK host may ask of a session: to play its prompts, to tell of itself, and to change while it
// runs.
//
// Its one invariant: it drives the session by its public methods and holds no state of it but the settings that came from
// the host. The wire is internal/control.
package host

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/checkpoint"
	"github.com/claudeless/claudeless/internal/control"
	"github.com/claudeless/claudeless/internal/launch"
	"github.com/claudeless/claudeless/internal/output"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/internal/session"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// ErrInterrupted ends a run whose turn was interrupted by SIGINT.
var ErrInterrupted = errors.New("interrupted")

// Host drives a session over the control protocol.
type Host struct {
	s       *session.Session
	plan    *launch.Plan
	peer    *control.Peer
	signals *process.Signals

	mu   sync.Mutex // guards what follows
	live live
}

// New makes the driver of a session whose host the peer speaks with. It starts nothing.
func New(s *session.Session, p *control.Peer, signals *process.Signals) *Host {
	return &Host{s: s, plan: s.Plan(), peer: p, signals: signals}
}

// Serve plays the host's prompts until there are none, and answers its requests. The session is started and not closed.
func (h *Host) Serve(ctx context.Context) error {
	if err := h.s.Start(ctx); err != nil {
		return err
	}
	err := h.peer.Serve(ctx, h)
	h.s.Started()
	return err
}

var _ control.Session = (*Host)(nil)

// First is the prompt that goes on with a call that an earlier process put off.
func (h *Host) First() *protocol.UserMessage {
	if in, ok := h.s.Deferred(); ok {
		return &in
	}
	return nil
}

// Ready waits until a turn may begin.
func (h *Host) Ready(ctx context.Context) error { return h.s.Ready(ctx) }

// Busy tells whether work runs or a turn is to follow from it.
func (h *Host) Busy() bool { return h.s.Busy() }

// Idle writes what the work shows.
func (h *Host) Idle(_, until context.Context) error {
	return output.StreamJSON(h.peer.Events(), h.s.Idle(until))
}

// Notice takes the prompt of a turn that is to follow.
func (h *Host) Notice() (protocol.UserMessage, bool) { return h.s.Notice() }

// Policy decides about calls.
func (h *Host) Policy() *permission.Policy { return h.s.Policy() }

// Servers are the MCP servers.
func (h *Host) Servers() *mcp.Manager { return h.s.Servers() }

// SetServers replaces the servers that the host may change.
func (h *Host) SetServers(ctx context.Context, servers json.RawMessage) (mcp.Change, error) {
	return h.s.SetServers(ctx, servers)
}

// Model is the model in force.
func (h *Host) Model() string { return h.s.Model() }

// SetModel changes it.
func (h *Host) SetModel(name string) { h.s.SetModel(name) }

// Rename titles the session.
func (h *Host) Rename(title string) { h.s.Rename(title) }

// StopTask ends a task in the background.
func (h *Host) StopTask(id string) { h.s.Tasks().Stop(id, task.ByUser) }

// Interrupt ends the agents in the background.
func (h *Host) Interrupt() { h.s.Tasks().Interrupt() }

// Build is the version of the CLI and when it was built.
func (h *Host) Build() (version, built string) { return h.plan.Version, persona.BuildTime }

// Tell answers requests that only want to know something.
func (h *Host) Tell(subtype string) (any, bool) {
	switch subtype {
	case "get_context_usage":
		return h.contextUsage(), true
	case "get_settings":
		return h.settingsInForce(), true
	case "get_usage":
		return h.usage(), true
	case "list_permission_rules":
		return h.rules(), true
	case "list_models":
		return models{persona.Models()}, true
	case "get_session_cost":
		return costs{h.s.Cost().Text()}, true
	case "get_hooks_listing":
		return h.hooksListing(), true
	case "reload_skills":
		return skills{h.skillCommands()}, true
	case "reload_plugins":
		return h.reloadPlugins(), true
	case "reload_output_styles":
		return styles{h.plan.Catalog.Styles()}, true
	}
	return nil, false
}

type costs struct {
	Text string `json:"text"`
}

type models struct {
	Models []persona.Model `json:"models"`
}

type skills struct {
	Skills []control.Command `json:"skills"`
}

type styles struct {
	Styles []string `json:"available_output_styles"`
}

// Turn plays one prompt. SIGINT ends it with its result and the run after it.
func (h *Host) Turn(_, interrupt context.Context, in protocol.UserMessage) (completed bool, err error) {
	ctx, cancel := context.WithCancel(interrupt)
	defer cancel()
	h.signals.Interrupts(cancel)
	err = output.StreamJSON(h.peer.Events(), h.s.Turn(ctx, in))
	if h.signals.Interrupted() && err == nil {
		return false, ErrInterrupted
	}
	last := h.s.Last()
	return last != nil && simulator.Completed(last), err
}

// Initialize takes the host's settings. Those that turns are built with are heeded only before the first turn.
func (h *Host) Initialize(_ context.Context, in control.Initialize) (control.Description, error) {
	if !in.Begun {
		if err := h.configure(in); err != nil {
			return control.Description{}, err
		}
	}
	if given(in.Agents) {
		if err := h.plan.Catalog.DefineAgents(in.Agents, "flagSettings"); err != nil {
			h.s.Hint(err.Error()) // one that is none leaves out all
		}
	}
	if in.ForwardSubagent {
		h.s.ShowAgents()
	}
	if in.Hooks != nil {
		h.s.Hooks().Callbacks(in.Hooks)
	}
	if in.Title != "" {
		h.s.Rename(in.Title)
	}
	if in.Skills != nil {
		h.s.AllowSkills(in.Skills)
	}
	var plugins *bool
	if len(in.Plugins) > 0 {
		applied := h.addPlugins(in)
		plugins = &applied
	}
	d := h.describe()
	d.PluginsApplied = plugins
	d.HooksApplied = in.Hooks != nil
	if given(in.MCPServers) {
		applied := h.plan.Host.AwaitInitialize
		d.MCPServersApplied = &applied
	}
	return d, nil
}

// given tells whether a key of a request holds something.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// configure applies what is otherwise given by flags.
func (h *Host) configure(in control.Initialize) error {
	if in.SystemPrompt == nil && in.AppendSystemPrompt == "" && in.JSONSchema == nil && in.ToolAliases == nil {
		return nil
	}
	c := session.Configuration{Append: in.AppendSystemPrompt, Schema: string(in.JSONSchema), Aliases: in.ToolAliases}
	if in.SystemPrompt != nil {
		system := strings.Join(in.SystemPrompt, "\n")
		c.System = &system
	}
	return h.s.Configure(c)
}

// addPlugins loads the plugins that initialize names, before the first turn of a process that waits for initialize; it
// tells whether all of them are loaded.
func (h *Host) addPlugins(in control.Initialize) bool {
	var dirs []string
	withServers := map[string]bool{}
	for _, raw := range in.Plugins {
		var p struct {
			Path    string `json:"path"`
			SkipMCP bool   `json:"skipMcpDiscovery"`
		}
		if json.Unmarshal(raw, &p) != nil || p.Path == "" {
			continue
		}
		abs := h.plan.Abs(p.Path)
		dirs = append(dirs, abs)
		withServers[abs] = !p.SkipMCP
	}
	if h.plan.Host.AwaitInitialize && !in.Begun {
		h.s.AddPlugins(dirs, withServers)
	}
	return h.plan.Catalog.HasPlugins(dirs...)
}

// Connect connects the servers that came with initialize. One that fails shows so in its status.
func (h *Host) Connect(ctx context.Context, in control.Initialize) {
	err := h.s.Connect(ctx, in.SDKMCPServers)
	if err == nil && h.plan.Host.AwaitInitialize && given(in.MCPServers) {
		_, err = h.s.SetServers(ctx, in.MCPServers)
	}
	if err != nil && ctx.Err() == nil {
		h.s.Warn("connecting the host's servers: " + err.Error())
	}
}

// Preview tells what [Host.Rewind] would do.
func (h *Host) Preview(uuid string) (control.Rewind, error) {
	history := h.s.Checkpoints()
	if history == nil {
		return control.Rewind{}, control.ErrNoRewind
	}
	c, err := history.Preview(uuid)
	return rewound(c), err
}

// Rewind restores the files of a prompt.
func (h *Host) Rewind(uuid string) (control.Rewind, error) {
	history := h.s.Checkpoints()
	if history == nil {
		return control.Rewind{}, control.ErrNoRewind
	}
	c, err := history.Rewind(uuid)
	return rewound(c), err
}

func rewound(c checkpoint.Change) control.Rewind {
	return control.Rewind{FilesChanged: c.Files, Insertions: c.Insertions, Deletions: c.Deletions, SkippedLinks: c.Skipped}
}

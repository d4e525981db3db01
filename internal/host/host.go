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

	"github.com/claudeless/claudeless/internal/control"
	"github.com/claudeless/claudeless/internal/launch"
	"github.com/claudeless/claudeless/internal/output"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/internal/session"
	"github.com/claudeless/claudeless/simulator"
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
	err := h.peer.Serve(ctx, h.session())
	h.s.Started()
	return err
}

// session is what the peer controls.
func (h *Host) session() control.Session {
	var first *protocol.UserMessage
	if in, ok := h.s.Deferred(); ok {
		first = &in
	}
	c := control.Session{
		First: first, Turn: h.turn, Ready: h.s.Ready, Background: h.background(), Initialize: h.initialize, Connect: h.connect,
		Policy: h.s.Policy(), Servers: h.s.Servers(), SetServers: h.s.SetServers,
		Model: h.s.Model, SetModel: h.s.SetModel, Rename: h.rename, StopTask: func(id string) { h.s.Tasks().Stop(id, task.ByUser) },
		ReadFile: h.readFile, ContextUsage: h.contextUsage, Settings: h.settingsInForce, Usage: h.usage, Rules: h.rules,
		Models: func() any { return models{persona.Models()} },
		Cost:   h.costText, Version: h.plan.Version, BuildTime: persona.BuildTime, TaskOutput: h.taskOutput,
		ApplySettings: h.applySettings, UpdateSettings: h.updateSettings, SideQuestion: h.sideQuestion, RegisterRoot: h.registerRoot,
		Hooks:         h.hooksListing,
		ReloadSkills:  func() any { return skills{h.skillCommands()} },
		ReloadPlugins: h.reloadPlugins,
		ReloadStyles:  func() any { return styles{h.plan.Catalog.Styles()} },
	}
	if h.s.Checkpoints() != nil {
		c.Rewind = h.rewind
	}
	return c
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

// turn plays one prompt. SIGINT ends it with its result and the run after it.
func (h *Host) turn(_, interrupt context.Context, in protocol.UserMessage) (completed bool, err error) {
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

func (h *Host) background() *control.Background {
	return &control.Background{
		Busy:    h.s.Busy,
		Idle:    func(_, until context.Context) error { return output.StreamJSON(h.peer.Events(), h.s.Idle(until)) },
		Notice:  h.s.Notice,
		Ceiling: h.plan.Limits.BackgroundCeiling,
	}
}

// initialize takes the host's settings. Those that turns are built with are heeded only before the first turn.
func (h *Host) initialize(_ context.Context, in control.Initialize, begun bool) (control.Description, error) {
	if !begun {
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
		applied := h.addPlugins(in.Plugins, begun)
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
func (h *Host) addPlugins(in []json.RawMessage, begun bool) bool {
	var dirs []string
	withServers := map[string]bool{}
	for _, raw := range in {
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
	if h.plan.Host.AwaitInitialize && !begun {
		h.s.AddPlugins(dirs, withServers)
	}
	return h.plan.Catalog.HasPlugins(dirs...)
}

// connect connects the servers that came with initialize. One that fails shows so in its status.
func (h *Host) connect(ctx context.Context, in control.Initialize) {
	err := h.s.Connect(ctx, in.SDKMCPServers)
	if err == nil && h.plan.Host.AwaitInitialize && given(in.MCPServers) {
		_, err = h.s.SetServers(ctx, in.MCPServers)
	}
	if err != nil && ctx.Err() == nil {
		h.s.Warn("connecting the host's servers: " + err.Error())
	}
}

func (h *Host) rewind(uuid string, dryRun bool) (control.Rewind, error) {
	do := h.s.Checkpoints().Rewind
	if dryRun {
		do = h.s.Checkpoints().Preview
	}
	c, err := do(uuid)
	return control.Rewind{FilesChanged: c.Files, Insertions: c.Insertions, Deletions: c.Deletions, SkippedLinks: c.Skipped}, err
}

func (h *Host) rename(title string) error {
	h.s.Rename(title)
	return nil
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/catalog"
	"github.com/claudeless/claudeless/internal/launch"
	"github.com/claudeless/claudeless/internal/output"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/internal/proc"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// commandModel is the model that a command wants; empty = none.
func (r *run) commandModel(k catalog.Command) string {
	if k.Model == "" {
		return ""
	}
	return r.Model.Aliases.Name(k.Model)
}

// grant lets what a command or a skill allows run unasked.
func (r *run) grant(rules []string) {
	var granted []permission.Rule
	for _, text := range rules {
		granted = append(granted, permission.Rule{Behavior: permission.BehaviorAllow, Source: "command", Text: text})
	}
	r.policy.Replace("command", granted)
}

// command finds a custom command or a skill as the Skill tool names it.
func (r *run) command(name string) (catalog.Command, bool) {
	return r.Catalog.Command(strings.TrimPrefix(name, "/"))
}

// skill is what the Skill tool loads.
func (r *run) skill(name, args string) (builtin.Skill, error) {
	if err := r.checkSkill(name); err != nil {
		return builtin.Skill{}, err
	}
	k, _ := r.command(name)
	r.grant(k.Tools)
	r.skillHooks(k)
	return builtin.Skill{Text: commandText(k, args), Tools: k.Tools}, nil
}

// checkSkill says, in the words that users see, why the model cannot load a
// skill.
func (r *run) checkSkill(name string) error {
	name = strings.TrimPrefix(name, "/")
	k, ok := r.command(name)
	allowed := r.allowedSkills.Load()
	reserved := " Ask the user to run /" + name + " themselves — it cannot be invoked via the Skill tool."
	switch {
	case !ok && slices.Contains(persona.Unavailable(), name):
		return errors.New(name + " is a UI command, not a skill." + reserved)
	case !ok && knownCommand(name):
		return errors.New(name + " is a built-in CLI command, not a skill." + reserved)
	case !ok:
		return errors.New("Unknown skill: " + name)
	case k.NoModel:
		return errors.New("Skill " + name + " cannot be used with Skill tool due to disable-model-invocation." + reserved)
	case allowed != nil && !slices.Contains(*allowed, k.Name) && !slices.Contains(*allowed, name):
		return fmt.Errorf("Skill %s is not in this session's skills allowlist", name) //nolint:staticcheck // the text users see
	}
	return nil
}

// skillHooks puts the hooks of a skill in force when it is first used.
func (r *run) skillHooks(k catalog.Command) {
	if _, known := r.hooked.LoadOrStore(k.Name, true); known || k.Hooks == nil || r.Settings.DisableAllHooks {
		return
	}
	for _, w := range r.hooks.Add(hook.Source{Name: "skill " + k.Name, Raw: k.Hooks, Skill: true}) {
		r.hint(w.Text)
	}
}

// makeTasks prepares sub-agents and the background. It starts nothing.
func (r *run) makeTasks() error {
	r.tasks = task.New(task.Options{
		NewID: r.Clock.NewID, Now: r.Clock.Now, Dir: r.taskDir, Ordered: r.Clock.Repeatable(),
	})
	r.agents = agent.New(agent.Options{Tasks: r.tasks, Kinds: family{r}, Models: performers{r}, Session: family{r}, CWD: r.CWD})
	r.forwardAgents.Store(r.Output.AgentText)
	return nil
}

// taskDir holds the output of tasks: below the temporary directory, one folder
// for each user, project and session (observed with 2.1.329), or in a directory
// that goes when nothing is to be kept.
func (r *run) taskDir() string {
	if r.TaskTemp != "" {
		project := filepath.Base(filepath.Dir(r.session.Path()))
		return filepath.Join(r.TaskTemp, fmt.Sprintf("claude-%d", r.UID), project, r.session.ID(), "tasks")
	}
	r.scratch.once.Do(func() {
		dir, remove, err := proc.TempDir("claudeless-tasks-")
		if err != nil {
			return // tasks then write nowhere
		}
		r.scratch.dir, r.scratch.remove = dir, remove
	})
	return r.scratch.dir
}

// readOnly tells which calls run beside their neighbours. Agents do, unless
// the run must be repeatable.
func (r *run) readOnly(use protocol.ToolUse) bool {
	if r.script != nil && r.script.Counts(use.Name) {
		return false
	}
	return builtin.ReadOnlyCall(use) || agent.IsCall(use.Name) && !r.Clock.Repeatable()
}

// settled is the turns of these prompts and everything that follows from their
// background work.
func (r *run) settled(ctx context.Context, prompts []protocol.UserMessage) output.Events {
	return func(yield func(protocol.Event, error) bool) {
		var turns []output.Events
		for _, in := range prompts {
			turns = append(turns, r.lifecycle(in, "started"), r.sim.Turn(ctx, in), r.lifecycle(in, "completed"))
		}
		for _, events := range append(turns, r.sim.Settle(ctx, r.Limits.BackgroundCeiling)) {
			for ev, err := range events {
				if !yield(ev, err) || err != nil {
					return
				}
			}
		}
	}
}

// lifecycle tells how far the prompts are that have an id.
func (r *run) lifecycle(in protocol.UserMessage, state string) output.Events {
	return func(yield func(protocol.Event, error) bool) {
		for _, id := range in.UUIDs {
			frame := protocol.Lifecycle(id, state)
			frame.UUID, frame.SessionID = r.Clock.NewID(), r.session.ID()
			if !yield(frame, nil) {
				return
			}
		}
	}
}

// planFile is where the session keeps its plan; empty = nowhere.
func (r *run) planFile() string {
	if r.Transcript.NoPersist {
		return ""
	}
	return filepath.Join(r.State, "plans", r.session.ID()+".md")
}

// closeTasks ends what still runs in the background.
func (r *run) closeTasks() {
	r.tasks.Close()
	if r.scratch.remove == nil {
		return
	}
	if err := r.scratch.remove(); err != nil {
		r.warn(err.Error())
	}
}

func pluginEnv(parts catalog.Parts) string { return "CLAUDE_PLUGIN_ROOT=" + parts.Dir }

// pluginHooks are the hooks of a plugin, which find its directory in their
// environment.
func pluginHooks(parts catalog.Parts) hook.Source {
	return hook.Source{Name: "plugin " + parts.Name, Raw: parts.Hooks, Environ: []string{pluginEnv(parts)}}
}

// addPlugins loads the plugins that initialize names, before the first turn of
// a process that waits for initialize; it tells whether all of them are loaded.
func (h *host) addPlugins(in []json.RawMessage, begun bool) bool {
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
		abs := h.Abs(p.Path)
		dirs = append(dirs, abs)
		withServers[abs] = !p.SkipMCP
	}
	if !h.Host.AwaitInitialize || begun {
		return h.Catalog.HasPlugins(dirs...)
	}
	for _, parts := range h.Catalog.AddPlugins(launch.OpenDir, dirs...) {
		if !h.Settings.DisableAllHooks {
			for _, w := range h.hooks.Add(pluginHooks(parts)) {
				h.warn(w.Text)
			}
		}
		if withServers[parts.Dir] && !h.Servers.Fixed {
			h.mu.Lock()
			h.plugged = append(h.plugged, h.PluginServers(parts)...)
			h.mu.Unlock()
		}
	}
	return h.Catalog.HasPlugins(dirs...)
}

// connectPlugins connects the servers of the plugins that initialize named.
func (h *host) connectPlugins(ctx context.Context) error {
	h.mu.Lock()
	servers := h.plugged
	h.mu.Unlock()
	if len(servers) == 0 {
		return nil
	}
	all := append([]mcp.ServerConfig{}, servers...)
	for _, s := range h.Servers.Configs {
		if s.Source == launch.PluginSource {
			all = append(all, s)
		}
	}
	_, err := h.manager.SetServers(ctx, launch.PluginSource, all)
	return err
}

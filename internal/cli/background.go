package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/catalog"
	"github.com/claudeless/claudeless/internal/output"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/internal/proc"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// loadCatalog finds agents, commands, skills, styles and plugins.
func (r *run) loadCatalog() error {
	o := catalog.Options{
		Agents: r.f.Agents, Disabled: r.f.Bare || r.f.SafeMode || r.f.Restricted,
		Open: func(dir string) fs.FS { return os.DirFS(dir) },
	}
	if r.reads("user") {
		o.UserDir = r.dir
	}
	if r.reads("project") {
		o.ProjectDir = filepath.Join(cmp.Or(r.f.ProjectConfigRoot, r.cwd), ".claude")
	}
	for _, dir := range slices.Concat(r.f.PluginDirs, r.f.PluginDirsNoMCP) {
		abs, err := r.f.Abs(r.sys, dir)
		if err != nil {
			return err
		}
		o.Plugins = append(o.Plugins, abs)
	}
	var warnings []string
	r.catalog, warnings = catalog.New(o)
	for _, w := range warnings {
		r.warn(w)
	}
	return r.asAgent()
}

// asAgent makes the session that of --agent, or of an agent that the settings
// name: its prompt, model and tools, where flags do not give others.
func (r *run) asAgent() error {
	if _, ok := r.catalog.Agent(r.settings.Agent); ok && r.f.Agent == "" {
		r.f.Agent = r.settings.Agent
	}
	if r.f.Agent == "" {
		return nil
	}
	a, ok := r.catalog.Agent(r.f.Agent)
	if !ok {
		return agentNotFound(r.f.Agent, r.catalog.AgentNames())
	}
	if r.f.SystemPrompt == "" {
		r.f.SystemPrompt = a.Prompt
	}
	if r.f.Model == "" && a.Model != "inherit" {
		r.f.Model = a.Model
	}
	r.agentHides = toolNames(a.Disallowed)
	if a.Tools == nil || slices.Contains(a.Tools, "*") {
		return nil
	}
	tools := toolNames(a.Tools)
	if r.f.Has("tools") && !slices.Equal(r.f.Tools, []string{"default"}) {
		tools = slices.DeleteFunc(tools, func(name string) bool { return !slices.Contains(r.f.Tools, name) })
	}
	r.f.Tools, r.f.Given["tools"] = tools, a.Tools
	return nil
}

// agentNotFound is the error of an --agent that no source of agents knows.
func agentNotFound(name string, available []string) error {
	return process.Verbatimf("--agent '%s' not found. Available agents: %s", name, strings.Join(available, ", "))
}

// toolNames are the tools that rules such as Bash(git *) are about.
func toolNames(rules []string) []string {
	names := make([]string, len(rules))
	for i, rule := range rules {
		names[i], _, _ = strings.Cut(rule, "(")
	}
	return names
}

// commandModel is the model that a command wants; empty = none.
func (r *run) commandModel(k catalog.Command) string {
	if k.Model == "" {
		return ""
	}
	return r.aliased(k.Model)
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
	return r.catalog.Command(strings.TrimPrefix(name, "/"))
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
	if _, known := r.hooked.LoadOrStore(k.Name, true); known || k.Hooks == nil || r.settings.DisableAllHooks {
		return
	}
	for _, w := range r.hooks.Add(hook.Source{Name: "skill " + k.Name, Raw: k.Hooks, Skill: true}) {
		r.hint(w.Text)
	}
}

// reads tells whether --setting-sources leaves a source.
func (r *run) reads(source string) bool {
	return !r.f.Has("setting-sources") || slices.Contains(r.f.SettingSources, source)
}

// makeTasks prepares sub-agents and the background. It starts nothing.
func (r *run) makeTasks() error {
	r.tasks = task.New(task.Options{
		NewID: r.clock.NewID, Now: r.clock.Now, Dir: r.taskDir, Ordered: r.clock.Repeatable(),
	})
	r.agents = agent.New(agent.Options{
		Tasks: r.tasks, Find: r.agentKind, Names: r.catalog.AgentNames, Model: r.agentModel, Session: r.agentSession,
		ModelName:      r.aliased,
		Denied:         r.policy.DeniedAgent,
		CWD:            r.cwd,
		Shown:          func() bool { return r.forwardAgents.Load() },
		PromptID:       func() string { return r.hookBase().PromptID },
		TranscriptPath: r.agentTranscript, SessionName: r.sessionName, Now: r.clock.Now,
	})
	r.forwardAgents.Store(r.f.ForwardSubagentText)
	return nil
}

// taskDir holds the output of tasks: below the temporary directory, one folder
// for each user, project and session (observed with 2.1.329), or in a directory
// that goes when nothing is to be kept.
func (r *run) taskDir() string {
	if !r.f.NoSessionPersistence {
		tmp := cmp.Or(r.sys.Getenv("CLAUDE_CODE_TMPDIR"), r.sys.Getenv("TMPDIR"), os.TempDir())
		project := filepath.Base(filepath.Dir(r.session.Path()))
		return filepath.Join(tmp, fmt.Sprintf("claude-%d", r.sys.UID), project, r.session.ID(), "tasks")
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

func (r *run) agentKind(name string) (agent.Definition, bool) {
	a, ok := r.catalog.Agent(name)
	return agent.Definition{
		Name: a.Name, Description: a.Description, Prompt: a.Prompt, Tools: a.Tools, Disallowed: a.Disallowed,
		Model: a.Model, MaxTurns: a.MaxTurns, Background: a.Background,
	}, ok
}

func (r *run) agentModel(script *protocol.SubagentScript) simulator.Model {
	if r.f.Failure != "" {
		return r.options.Model
	}
	return r.engine.Subagent(script)
}

// agentSession is how the session runs right now.
func (r *run) agentSession() simulator.Options {
	o := r.options
	o.Deferred, o.Mentions = nil, simulator.Mentions{}
	o.SessionID, o.ModelName = r.session.ID(), r.sim.ModelName()
	return o
}

func (r *run) agentTranscript(id string) string {
	return filepath.Join(strings.TrimSuffix(r.session.Path(), ".jsonl"), "subagents", "agent-"+id+".jsonl")
}

// readOnly tells which calls run beside their neighbours. Agents do, unless
// the run must be repeatable.
func (r *run) readOnly(use protocol.ToolUse) bool {
	if r.script != nil && r.script.Counts(use.Name) {
		return false
	}
	return builtin.ReadOnlyCall(use) || agent.IsCall(use.Name) && !r.clock.Repeatable()
}

// bgWaitCeiling is how long a run waits for background work after its last
// prompt.
func (r *run) bgWaitCeiling() time.Duration {
	return r.millis("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", 10*time.Minute)
}

// settled is the turns of these prompts and everything that follows from their
// background work.
func (r *run) settled(ctx context.Context, prompts []protocol.UserMessage) output.Events {
	return func(yield func(protocol.Event, error) bool) {
		var turns []output.Events
		for _, in := range prompts {
			turns = append(turns, r.lifecycle(in, "started"), r.sim.Turn(ctx, in), r.lifecycle(in, "completed"))
		}
		for _, events := range append(turns, r.sim.Settle(ctx, r.bgWaitCeiling())) {
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
			frame.UUID, frame.SessionID = r.clock.NewID(), r.session.ID()
			if !yield(frame, nil) {
				return
			}
		}
	}
}

// planFile is where the session keeps its plan; empty = nowhere.
func (r *run) planFile() string {
	if r.dir == "" || r.f.NoSessionPersistence {
		return ""
	}
	return filepath.Join(r.dir, "plans", r.session.ID()+".md")
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

// pluginSource is the source of a plugin's servers.
const pluginSource = "plugin"

func pluginEnv(parts catalog.Parts) string { return "CLAUDE_PLUGIN_ROOT=" + parts.Dir }

// pluginHooks are the hooks of a plugin, which find its directory in their
// environment.
func pluginHooks(parts catalog.Parts) hook.Source {
	return hook.Source{Name: "plugin " + parts.Name, Raw: parts.Hooks, Environ: []string{pluginEnv(parts)}}
}

// pluginServers are the servers of a plugin, under names of their own. What
// cannot be read is left out.
func (r *run) pluginServers(parts catalog.Parts) []mcp.ServerConfig {
	if parts.Servers == nil {
		return nil
	}
	value, err := protocol.Marshal(map[string]json.RawMessage{"mcpServers": parts.Servers})
	if err != nil {
		return nil
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{Values: []string{string(value)}, CWD: r.cwd, Environ: r.environ(), ValuesOnly: true})
	if err != nil {
		return nil
	}
	for i := range config.Servers {
		s := &config.Servers[i]
		s.Name, s.Source = "plugin:"+parts.Name+":"+s.Name, pluginSource
		env := map[string]string{"CLAUDE_PLUGIN_ROOT": parts.Dir}
		maps.Copy(env, s.Env)
		s.Env = env
	}
	return config.Servers
}

// addPlugins loads the plugins that initialize names, before the first turn of
// a process that waits for initialize; it tells whether all of them are loaded.
func (h *host) addPlugins(in []json.RawMessage, begun bool) (applied bool, err error) {
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
		abs, err := h.f.Abs(h.sys, p.Path)
		if err != nil {
			return false, err
		}
		dirs = append(dirs, abs)
		withServers[abs] = !p.SkipMCP
	}
	if !h.f.AwaitInitialize || begun {
		return h.catalog.HasPlugins(dirs...), nil
	}
	for _, parts := range h.catalog.AddPlugins(func(dir string) fs.FS { return os.DirFS(dir) }, dirs...) {
		if !h.settings.DisableAllHooks {
			for _, w := range h.hooks.Add(pluginHooks(parts)) {
				h.warn(w.Text)
			}
		}
		if withServers[parts.Dir] && !h.f.StrictMCPConfig {
			h.mu.Lock()
			h.plugged = append(h.plugged, h.pluginServers(parts)...)
			h.mu.Unlock()
		}
	}
	return h.catalog.HasPlugins(dirs...), nil
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
	for _, s := range h.servers.Servers {
		if s.Source == pluginSource {
			all = append(all, s)
		}
	}
	_, err := h.manager.SetServers(ctx, pluginSource, all)
	return err
}

// addPluginServers adds the servers of the plugins that flags name.
func (r *run) addPluginServers() {
	for _, parts := range r.catalog.Parts() {
		if r.bringsServers(parts.Dir) {
			r.servers.Servers = append(r.servers.Servers, r.pluginServers(parts)...)
		}
	}
}

// bringsServers tells whether a plugin was given with its servers.
func (r *run) bringsServers(dir string) bool {
	return slices.ContainsFunc(r.f.PluginDirs, func(given string) bool {
		abs, err := r.f.Abs(r.sys, given)
		return err == nil && abs == dir
	})
}

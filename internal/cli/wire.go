package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/catalog"
	"github.com/claudeless/claudeless/internal/checkpoint"
	"github.com/claudeless/claudeless/internal/clock"
	"github.com/claudeless/claudeless/internal/control"
	"github.com/claudeless/claudeless/internal/debug/client"
	"github.com/claudeless/claudeless/internal/debug/script"
	"github.com/claudeless/claudeless/internal/flags"
	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/mcpcmd"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/outputschema"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
	"github.com/claudeless/claudeless/simulator/task"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// run is one assembled session: everything that a turn needs, connected.
type run struct {
	sys *process.System
	f   *flags.Flags
	cwd string
	dir string // state directory; empty = none, nothing is kept

	scenario     *scenarios.Scenario
	scenarioPath string // the file's path; empty = not from a file
	settings     settings.Settings
	clock        *clock.Source
	session      *transcript.Transcript
	servers      mcp.Config
	manager      *mcp.Manager // nil = no servers
	tools        *builtin.Tools
	policy       *permission.Policy
	hooks        *hook.Runner
	mirror       *mirror        // nil = no --session-mirror
	gate         *client.Client // nil = no --debugger
	script       *script.Gate   // nil = the scenario has no breakpoints
	listed       func(context.Context) ([]protocol.Tool, error)
	engine       *scenarios.Engine
	options      simulator.Options // of the session
	sim          *simulator.Simulator

	agentHides    []string               // tools that the agent of the session is without
	title, color  string                 // given by /rename and /color
	style, level  atomic.Pointer[string] // output style and effort set since the start; nil = as at the start
	catalog       *catalog.Catalog
	hooked        sync.Map // names of the skills whose hooks are in force
	tasks         *task.Set
	agents        *agent.Agents
	forwardAgents atomic.Bool              // show the texts of agents in the foreground
	aliases       map[string]string        // tools that the host wants in the place of others
	allowedSkills atomic.Pointer[[]string] // that the model may load; nil = all
	scratch       struct {
		once   sync.Once
		dir    string       // for task output when nothing is kept; empty = not made
		remove func() error // nil = not made
	}

	peer        *control.Peer                 // the host; nil = there is none
	hosted      []mcp.ServerConfig            // servers inside the host
	checkpoints *checkpoint.History           // nil = files are not kept
	shown       atomic.Pointer[protocol.Init] // the last init yielded
	modelsNoted []string                      // unknown models that have been warned of
	firstID     string                        // of the session before that

	journal  *journal.Journal // nil = no --capture
	captured io.Closer
	debug    *debugLog                       // nil = no --debug
	last     atomic.Pointer[protocol.Result] // the last result yielded
}

// assemble builds a session in the order in which its parts depend on each
// other. It starts no process; [run.start] does.
func assemble(s *process.System, f *flags.Flags) (*run, error) {
	r := &run{sys: s, f: f}
	steps := []func() error{
		r.locate, r.loadScenario, r.openClock, r.checkConfig, r.loadSettings, r.loadCatalog, r.loadServers, r.openSession, r.openPeer,
		r.makePolicy, r.makeTasks, r.makeTools, r.makeManager, r.makeHooks, r.makeGates, r.makeSimulator, r.openJournal, r.openDebug,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *run) settingsOptions() settings.Options {
	o := settings.Options{
		StateDir: r.dir, GlobalFile: r.store().File, CWD: r.cwd, FlagValue: strings.Join(r.f.Settings, ""), ManagedDir: r.sys.ManagedDir(),
	}
	if r.f.Has("setting-sources") {
		o.Sources = append([]string{}, r.f.SettingSources...)
	}
	if r.f.ManagedSettings != "" {
		o.Managed = []byte(r.f.ManagedSettings)
	}
	return o
}

func (r *run) loadSettings() error {
	loaded, err := settings.Load(r.settingsOptions())
	if managed, ok := errors.AsType[*settings.ManagedError](err); ok {
		return process.Verbatimf("%v", managed)
	}
	if err != nil {
		return process.Verbatimf("Error: %v", err)
	}
	r.settings = loaded
	if len(loaded.ManagedFaults) > 0 {
		fmt.Fprintln(r.sys.Stderr, "Managed settings contain invalid entries (remaining valid policies are still enforced):\n"+strings.Join(loaded.ManagedFaults, "\n"))
	}
	if loaded.TrustWarning != "" {
		fmt.Fprintln(r.sys.Stderr, loaded.TrustWarning)
	}
	r.sys = r.sys.With(loaded.Env)
	if r.f.PermissionMode == "" && r.scenario.PermissionMode == "" && r.mode() == string(protocol.ModeBypass) {
		return r.sys.MayBypass()
	}
	return nil
}

func (r *run) loadServers() error {
	scripted, err := r.scenarioServers()
	if err != nil {
		return err
	}
	values := r.f.MCPConfig
	if scripted != "" {
		values = append([]string{scripted}, values...)
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{
		Values: values, CWD: r.cwd, Environ: r.environ(), ValuesOnly: r.f.StrictMCPConfig || r.f.Bare, Scopes: r.scopes(),
		NoProject: !r.reads("project"), DisabledProject: r.settings.DisabledMCPJSONServers, Disabled: r.store().Disabled(),
	})
	if broken, ok := errors.AsType[*mcp.ConfigError](err); ok {
		return process.Verbatimf("Error: %v", broken)
	}
	r.servers = config
	if err == nil && !r.f.StrictMCPConfig {
		r.addPluginServers()
	}
	r.dropServers()
	return err
}

func (r *run) openClock() error {
	o := clock.Options{Now: r.sys.Now, NewID: r.sys.NewID, Seed: r.scenario.Seed}
	if text := r.scenario.LaunchTimestamp; text != "" {
		start, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return fmt.Errorf("launch_timestamp: %w", err)
		}
		o.Start = &start
	}
	if r.f.Continue || r.f.Resume != "" {
		// Another part of the session must not repeat the ids of the first.
		o.Salt = r.sys.Now().String()
	}
	r.clock = clock.New(o)
	return nil
}

func (r *run) makePolicy() error {
	rules := policyRules(r.settings, "")
	for _, text := range r.allowedTools() {
		rules = append(rules, permission.Rule{Behavior: permission.BehaviorAllow, Source: "cliArg", Text: text})
	}
	for _, text := range r.f.DisallowedTools {
		rules = append(rules, permission.Rule{Behavior: permission.BehaviorDeny, Source: "cliArg", Text: text})
	}
	mode, err := permission.ParseMode(r.mode())
	if err != nil {
		return err
	}
	canned := r.canned()
	r.policy, err = permission.New(permission.Options{
		Mode: mode, CWD: r.cwd, AdditionalDirs: r.workspace(), Home: r.sys.Getenv("HOME"), Rules: rules,
		AutoApprove:   func(tool string) bool { return canned.Tools[tool].AutoApprove || r.answered(tool) },
		NoPrompts:     r.f.PermissionPrompts == "none",
		Tool:          r.tool,
		Resolve:       resolveLinks,
		IsDir:         isDir,
		Dir:           func() string { return r.tools.Dir() },
		HasAsker:      r.f.PermissionPromptTool != "",
		BypassAllowed: r.f.DangerouslySkipPermissions || r.f.AllowDangerouslySkipPermissions,
		NoBypass:      r.settings.Permissions.DisableBypass,
		NoAuto:        r.settings.Permissions.DisableAuto,
		OnDirectories: r.setRoots,
		AskSkill:      func(name string) bool { k, ok := r.command(name); return ok && len(k.Tools) > 0 },
	})
	if err != nil {
		return err
	}
	for _, w := range r.policy.Warnings() {
		r.hint(w)
	}
	return nil
}

// allowedTools are the rules of --allowedTools, as far as the machine lets them
// count.
func (r *run) allowedTools() []string {
	if r.settings.Permissions.ManagedOnly {
		return nil
	}
	return r.f.AllowedTools
}

// mode is the permission mode at start, unless the settings forbid it.
func (r *run) mode() string {
	mode, forbidden := r.wantedMode(), r.settings.Permissions
	if parsed, err := permission.ParseMode(mode); err == nil &&
		(parsed == protocol.ModeBypass && forbidden.DisableBypass || parsed == protocol.ModeAuto && forbidden.DisableAuto) {
		return string(protocol.ModeDefault)
	}
	return mode
}

// wantedMode is the mode that is asked for: flag, scenario, settings.
func (r *run) wantedMode() string {
	switch {
	case r.f.DangerouslySkipPermissions:
		return string(protocol.ModeBypass)
	case r.f.PermissionMode != "":
		return r.f.PermissionMode
	case r.scenario.PermissionMode != "":
		return r.scenario.PermissionMode
	case r.settings.Permissions.DefaultMode != "":
		if _, err := permission.ParseMode(r.settings.Permissions.DefaultMode); err == nil {
			return r.settings.Permissions.DefaultMode
		}
		return string(protocol.ModeDefault)
	default:
		return string(protocol.ModeDefault)
	}
}

func (r *run) makeTools() error {
	var err error
	r.tools, err = builtin.New(builtin.Options{
		CWD: r.cwd, AdditionalDirs: r.addDirs(), OutputDir: r.session.ToolResultsDir(),
		Environ: r.shellEnviron(), Script: func() string { return r.hooks.Script() }, Announce: r.announce,
		Now: r.clock.Now, NewID: r.clock.NewID, Allowed: r.exists, Answers: r.answers(),
		Tasks: r.tasks, Skill: r.skill, CheckSkill: r.checkSkill,
		Mode: r.policy.Mode, SetMode: r.policy.SetMode, PlanFile: r.planFile, Readable: r.policy.Readable,
	})
	return err
}

func (r *run) makeManager() error {
	if len(r.servers.Servers) == 0 && r.peer == nil {
		return nil
	}
	o := mcp.Options{
		Servers: r.servers.Servers, ClientVersion: r.version(), Environ: r.environ(), CWD: r.cwd,
		Roots: r.policy.Directories(), SessionID: r.session.ID(),
		ConnectTimeout: r.millis("MCP_TIMEOUT", 0), ToolTimeout: r.toolTimeout(),
		LocalBatch: r.number("MCP_SERVER_CONNECTION_BATCH_SIZE"), RemoteBatch: r.number("MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE"),
		MaxOutputTokens: r.number("MAX_MCP_OUTPUT_TOKENS"), SaveBlob: r.saveBlob, SaveText: r.saveText,
		Elicit: r.elicit, Sample: r.sampler(), Records: r.callLog(), Probe: r.sys.Getenv("MCP_PROTOCOL_NEGOTIATION") == "auto",
	}
	if r.peer != nil {
		o.SDK = r.peer.Message
	}
	if r.f.MCPDebug {
		o.Debug = r.sys.Stderr
	}
	var err error
	r.manager, err = mcp.New(o)
	return err
}

// makeHooks reads the hooks of the settings (spec: cli-contract 5.5).
func (r *run) makeHooks() error {
	o := hook.Options{
		CWD: r.cwd, ToldCWD: r.scenario.WorkingDirectory, SessionID: r.session.ID(), TranscriptPath: r.session.Path(),
		Environ: r.environ(), PID: os.Getpid(),
		Entrypoint: r.entrypoint(), NewID: r.clock.NewID, Now: r.clock.Now,
		DefaultTimeout: r.timeout(r.scenario.Timeouts.HookTimeoutMS, "CLAUDELESS_HOOK_TIMEOUT_MS", 0),
		MCPTool:        r.hookTool, MatchRule: r.policy.Covers, EnvDir: filepath.Join(r.dir, "session-env", r.session.ID()),
	}
	if r.clock.Repeatable() {
		o.ProgressEvery = -1
	}
	if r.peer != nil {
		o.Callback = hostHooks(r.peer)
	}
	for _, h := range r.settings.Hooks {
		o.Settings = append(o.Settings, hook.Source{Name: string(h.Source), Raw: h.Raw})
	}
	if !r.settings.DisableAllHooks {
		for _, parts := range r.catalog.Parts() {
			o.Settings = append(o.Settings, pluginHooks(parts))
		}
	}
	runner, warnings := hook.New(o)
	for _, w := range warnings {
		r.hint(w.Text)
	}
	r.hooks = runner
	return nil
}

func (r *run) makeSimulator() error {
	r.engine = scenarios.NewEngine(r.scenario, r.engineOptions())
	if state := r.session.ScenarioState(); state != nil {
		if err := r.engine.Restore(state); err != nil {
			r.warn("the state of the scenario was not restored: " + err.Error())
		}
	}
	schema, err := schemaOf(r.f.JSONSchema, r.number("MAX_STRUCTURED_OUTPUT_RETRIES"))
	if err != nil {
		return err
	}
	model, err := r.model()
	if err != nil {
		return err
	}
	chain, check := r.chain()
	r.options = simulator.Options{
		Model: model, Executor: chain, Check: check, Prepare: r.tools.Prepare, Observed: r.tools.Observed, Aliases: r.aliases, ReadOnly: r.readOnly, Transcript: r.session,
		Tasks: r.tasks, Commands: r.commands(), Mentions: simulator.Mentions{Open: r.openMention, Read: r.readResources}, TranscriptPath: r.session.Path,
		Hooks: r.hooks, HookEvents: r.f.IncludeHookEvents, Effort: r.effort(), StopBlockCap: r.number("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"),
		SessionID: r.session.ID(), Resumed: r.session.Resumed(), Forked: r.f.ForkSession && r.session.Resumed(), Dir: r.tools.Dir,
		Setup: r.setup(), AgentType: r.f.Agent, Instructions: r.instructions(), Init: r.init, ModelName: r.modelName(), Mode: r.policy.Mode,
		SystemPrompt: r.f.SystemPrompt + r.f.AppendSystemPrompt, Costs: r.session.Costs(), Title: r.session.Title(), Fallback: r.f.FallbackModel,
		Reduced:  r.f.Bare || r.f.SafeMode,
		MaxTurns: r.f.MaxTurns, MaxBudgetUSD: r.f.MaxBudgetUSD, MaxRetries: r.retries(), RetryScale: r.retryScale(),
		ResponseDelay: r.responseDelay(), Partial: r.f.IncludePartialMessages, Replay: r.f.ReplayUserMessages, ThinkingDisplay: thinkingDisplay(r.f.ThinkingDisplay),
		Stream: r.scenario.Stream, Schema: schema, Compat: r.sys.Getenv("CLAUDELESS_COMPAT") == flags.CompatRust,
		InOrder: r.clock.Repeatable(), Now: r.clock.Now, Sleep: r.clock.Sleep, NewID: r.clock.NewID, Rand: r.clock.Rand(),
	}
	if r.peer != nil {
		r.options.Queue = simulator.Queue{Absorb: r.peer.Absorb, Waiting: r.peer.Waiting}
	}
	if use, message, ok := r.session.Deferred(); ok {
		r.options.Deferred = &simulator.Deferred{Use: use, Message: message}
	}
	r.sim, err = simulator.New(r.options)
	return err
}

// schemaOf is the schema of --json-schema for the simulator; an empty text is none. Tries may be 0.
func schemaOf(text string, tries int) (*simulator.Schema, error) {
	if text == "" {
		return nil, nil
	}
	compiled, err := outputschema.Compile(text)
	if err != nil {
		return nil, process.Verbatimf("Error: %v", err)
	}
	return &simulator.Schema{Tries: tries, Validate: compiled.Validate}, nil
}

// thinkingDisplay is how events of reasoning are marked: of what the flag may say, one thing shows.
func thinkingDisplay(given string) string {
	if given == "summarized" {
		return given
	}
	return ""
}

// chain is the one place where the layers around the tools are put in order:
// hooks(permission(breakpoint(canned(composite)))).
func (r *run) chain() (executor.Executor, func(context.Context, protocol.ToolUse) *executor.Result) {
	base := executor.Composite{r.agents}
	base = append(base, r.serverTools()...)
	base = append(base, r.search(append(slices.Clone(base), r.tools)), r.tools)
	canned := r.canned()
	hooks := simulator.HookOptions{Runner: r.hooks, Base: r.hookBase, Frames: r.f.IncludeHookEvents, Server: r.serverOf, Dir: r.tools.Dir, Rewrite: builtin.Rewrite}
	ask := simulator.AskHooks(hooks, r.asker())
	check := func(ctx context.Context, call protocol.ToolUse) *executor.Result {
		if canned.Answers(call) {
			return nil
		}
		return r.check(ctx, call)
	}
	chain := executor.Chain(base,
		simulator.Hooks(hooks), simulator.Permission(r.policy, ask, check, r.clock.Now), r.breakpoints(), executor.Canned(canned))
	r.listed = chain.Tools
	return chain, check
}

// check refuses calls that no tool of the session can take.
func (r *run) check(ctx context.Context, call protocol.ToolUse) *executor.Result {
	if v, refused := r.policy.Refuses(call); refused {
		denied := simulator.Denial(v)
		return &denied
	}
	if refused := r.tools.Check(ctx, call); refused != nil {
		refused := executor.Plain(*refused)
		return &refused
	}
	if _, known := r.tool(call.Name); known {
		return nil
	}
	names := persona.Tools(r.toolOptions(r.manager != nil && r.manager.HasResources()))
	if i := slices.Index(names, "Task"); i >= 0 {
		names[i] = "Agent" // as calls name it
	}
	unknown := executor.Plain(executor.Unknown(call.Name, names))
	return &unknown
}

// tool finds a tool by its canonical name.
func (r *run) tool(name string) (protocol.Tool, bool) {
	if t, ok := r.serverTool(name); ok {
		return t, true
	}
	return r.tools.Tool(name)
}

// start brings the servers up and applies --strict-mcp-config and
// --mcp-require (design: decisions).
func (r *run) start(ctx context.Context) error {
	if r.manager != nil {
		if err := mcpcmd.Start(ctx, r.manager, r.sys.Progress()); err != nil {
			return err
		}
	}
	if err := r.strict(); err != nil {
		return err
	}
	return r.registerTools(ctx)
}

// close ends what start began and tells about what could not be written.
func (r *run) close(ctx context.Context) {
	r.closeTasks()
	r.tools.Close()
	r.sim.Close(ctx, "")
	if r.manager != nil {
		if err := r.manager.Close(ctx); err != nil {
			r.warn("ending the MCP servers: " + err.Error())
		}
	}
	r.closeSession()
	if r.script != nil {
		for _, text := range r.script.Warnings() {
			r.warn(text)
		}
		r.script.Close()
	}
	if r.gate != nil {
		r.gate.Close()
	}
	r.debug.close()
	if r.journal != nil {
		if err := errors.Join(r.journal.Err(), r.captured.Close()); err != nil {
			r.warn("writing --capture: " + err.Error())
		}
	}
}

// hint warns of settings that are passed over, of which the real CLI says
// nothing (spec: cli-observed 1).
func (r *run) hint(text string) {
	if !r.sys.AsClaude() {
		r.warn(text)
	}
}

func (r *run) warn(text string) { fmt.Fprintf(r.sys.Stderr, "claudeless: warning: %s\n", text) }

// hostHooks runs the host's hooks.
func hostHooks(p *control.Peer) hook.Callback {
	return func(ctx context.Context, id string, input json.RawMessage, toolUseID string) (json.RawMessage, error) {
		out, err := p.Callback(ctx, id, input, toolUseID)
		if errors.Is(err, control.ErrClosed) {
			err = fmt.Errorf("%w: %w", hook.ErrGone, err)
		}
		return out, err
	}
}

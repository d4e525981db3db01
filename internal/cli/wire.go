package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/checkpoint"
	"github.com/claudeless/claudeless/internal/control"
	"github.com/claudeless/claudeless/internal/debug/client"
	"github.com/claudeless/claudeless/internal/debug/script"
	"github.com/claudeless/claudeless/internal/flags"
	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/launch"
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
	"github.com/claudeless/claudeless/simulator/task"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// run is one assembled session: everything that a turn needs, connected.
type run struct {
	launch.Plan
	sys *process.System

	session *transcript.Transcript
	manager *mcp.Manager // nil = no servers
	tools   *builtin.Tools
	policy  *permission.Policy
	hooks   *hook.Runner
	mirror  *mirror        // nil = no --session-mirror
	gate    *client.Client // nil = no --debugger
	script  *script.Gate   // nil = the scenario has no breakpoints
	listed  func(context.Context) ([]protocol.Tool, error)
	engine  *scenarios.Engine
	current *simulator.Live
	options simulator.Options // of the session
	sim     *simulator.Simulator

	title, color  string                 // given by /rename and /color
	style         atomic.Pointer[string] // output style set since the start; nil = as at the start
	hooked        sync.Map               // names of the skills whose hooks are in force
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
	checkpoints *checkpoint.History           // nil = files are not kept
	shown       atomic.Pointer[protocol.Init] // the last init yielded
	modelsNoted []string                      // unknown models that have been warned of
	firstID     string                        // of the session before that

	journal  *journal.Journal // nil = no --capture
	captured captured
	debug    *debugLog                       // nil = no --debug
	last     atomic.Pointer[protocol.Result] // the last result yielded
}

// assemble builds a session in the order in which its parts depend on each
// other. It starts no process; [run.start] does.
func assemble(s *process.System, f *flags.Flags) (*run, error) {
	plan, err := launch.Resolve(s, f)
	r := &run{sys: s, Plan: plan, current: &simulator.Live{}}
	if err != nil {
		return r, err
	}
	steps := []func() error{
		r.openSession, r.begin, r.openPeer,
		r.makePolicy, r.makeTasks, r.makeTools, r.makeManager, r.makeHooks, r.makeGates, r.makeSimulator, r.openJournal, r.openDebug,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *run) makePolicy() error {
	var err error
	canned := r.canned()
	r.policy, err = permission.New(permission.Options{
		Mode: r.Permission.Mode, CWD: r.CWD, AdditionalDirs: r.Permission.Directories, Home: r.Home, Rules: r.Permission.Rules,
		AutoApprove:   func(tool string) bool { return canned.Tools[tool].AutoApprove || r.answered(tool) },
		NoPrompts:     r.Permission.NoPrompts,
		Tool:          r.tool,
		Resolve:       resolveLinks,
		IsDir:         isDir,
		Glob:          matchFiles,
		Dir:           func() string { return r.tools.Dir() },
		HasAsker:      r.Permission.PromptTool != "",
		BypassAllowed: r.Permission.BypassAllowed,
		NoBypass:      r.Settings.Permissions.DisableBypass,
		NoAuto:        r.Settings.Permissions.DisableAuto,
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

func (r *run) makeTools() error {
	var err error
	r.tools, err = builtin.New(builtin.Options{
		CWD: r.CWD, AdditionalDirs: r.Permission.Paths(), OutputDir: r.session.ToolResultsDir(),
		Environ: r.shellEnviron(), Script: func() string { return r.hooks.Script() }, Announce: r.announce,
		Now: r.Clock.Now, NewID: r.Clock.NewID, Allowed: r.exists, Answers: r.answers(),
		Tasks: r.tasks, Skill: r.skill, CheckSkill: r.checkSkill,
		Mode: r.policy.Mode, SetMode: r.policy.SetMode, PlanFile: r.planFile, Readable: r.policy.Readable, Hidden: r.policy.Hidden,
	})
	return err
}

func (r *run) makeManager() error {
	if len(r.Servers.Configs) == 0 && r.peer == nil {
		return nil
	}
	o := r.Servers.Client
	o.Servers, o.Roots, o.SessionID = r.Servers.Configs, r.policy.Directories(), r.session.ID()
	o.SaveBlob, o.SaveText, o.Elicit, o.Sample, o.Records = r.saveBlob, r.saveText, r.elicit, r.sampler(), r.callLog()
	if r.peer != nil {
		o.SDK = r.peer.Message
	}
	var err error
	r.manager, err = mcp.New(o)
	return err
}

// makeHooks reads the hooks of the settings (spec: cli-contract 5.5).
func (r *run) makeHooks() error {
	o := hook.Options{
		CWD: r.CWD, ToldCWD: r.Scenario.WorkingDirectory, SessionID: r.session.ID(), TranscriptPath: r.session.Path(),
		Environ: r.Environ, PID: r.PID,
		Entrypoint: r.Entrypoint, NewID: r.Clock.NewID, Now: r.Clock.Now,
		DefaultTimeout: r.Limits.HookTimeout,
		MCPTool:        r.hookTool, MatchRule: r.policy.Covers, EnvDir: filepath.Join(r.State, "session-env", r.session.ID()),
	}
	if r.Clock.Repeatable() {
		o.ProgressEvery = -1
	}
	if r.peer != nil {
		o.Callback = hostHooks(r.peer)
	}
	for _, h := range r.Settings.Hooks {
		o.Settings = append(o.Settings, hook.Source{Name: string(h.Source), Raw: h.Raw})
	}
	if !r.Settings.DisableAllHooks {
		for _, parts := range r.Catalog.Parts() {
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
	r.engine = scenarios.NewEngine(r.Scenario.Scenario, r.Scenario.Engine)
	if state := r.session.ScenarioState(); state != nil {
		if err := r.engine.Restore(state); err != nil {
			r.warn("the state of the scenario was not restored: " + err.Error())
		}
	}
	schema, err := schemaOf(r.Prompt.Schema)
	if err != nil {
		return err
	}
	r.options = simulator.Options{
		Model: r.model(), Tools: r.chain(), Hooks: r.hooks, Clock: r.Clock, Rand: r.Clock.Rand(), Live: r.current, Here: place{r},
		System: r.Prompt.System + r.Prompt.Append, Limits: r.limits(), Show: r.show(),
		Main: &simulator.Main{
			Start: simulator.Start{
				Resumed: r.session.Resumed(), Forked: r.Transcript.Fork && r.session.Resumed(), Setup: r.Custom.Setup, Agent: r.Custom.Agent,
				Title: r.session.Title(), Reduced: r.Custom.Reduced(), Instructions: r.Custom.Instructions,
			},
			Init: r.init, Transcript: r.session, Tasks: r.tasks, Commands: commands{r}, Mentions: mentions{r}, Schema: schema, Costs: r.session.Costs(),
		},
	}
	if r.peer != nil {
		r.options.Main.Prompts = r.peer
	}
	if use, message, ok := r.session.Deferred(); ok {
		r.options.Main.Deferred = &simulator.Deferred{Use: use, Message: message}
	}
	r.sim, err = simulator.New(r.options)
	return err
}

// begin notes how the session starts.
func (r *run) begin() error {
	r.current.Begin(r.session.ID(), r.session.Path())
	r.current.SetModel(r.Model.Name)
	r.current.SetEffort(r.Model.Effort)
	return nil
}

func (r *run) limits() simulator.Limits {
	return simulator.Limits{
		Turns: r.Limits.MaxTurns, BudgetUSD: r.Limits.MaxBudgetUSD, Retries: r.Limits.MaxRetries, RetryScale: r.Limits.RetryScale,
		Fallback: r.Model.Fallback, StopBlocks: r.Limits.StopBlockCap, SchemaTries: r.Prompt.SchemaTries,
	}
}

func (r *run) show() simulator.Show {
	return simulator.Show{
		Partial: r.Output.Partial, Replay: r.Output.Replay, Hooks: r.Output.HookEvents, Compat: r.Compat, InOrder: r.Clock.Repeatable(),
		Thinking: r.Output.ThinkingDisplay, Stream: r.Scenario.Stream, ResponseDelay: r.Limits.ResponseDelay, CompactDelay: r.Limits.CompactDelay,
	}
}

// schemaOf is the schema of --json-schema; an empty text is none.
func schemaOf(text string) (simulator.Schema, error) {
	if text == "" {
		return nil, nil
	}
	compiled, err := outputschema.Compile(text)
	if err != nil {
		return nil, process.Verbatimf("Error: %v", err)
	}
	return compiled, nil
}

// chain is the one place where the layers around the tools are put in order:
// hooks(permission(breakpoint(canned(composite)))).
func (r *run) chain() simulator.Tools {
	base := executor.Composite{r.agents}
	base = append(base, r.serverTools()...)
	base = append(base, r.search(append(slices.Clone(base), r.tools)), r.tools)
	tools := toolbox{r: r, canned: r.canned()}
	hooks := simulator.HookOptions{Runner: r.hooks, Live: r.current, Here: place{r}, Tools: tools, Frames: r.Output.HookEvents}
	permit := simulator.PermitOptions{Policy: r.policy, Ask: simulator.AskHooks(hooks, r.asker()), Tools: tools, Clock: r.Clock}
	tools.Executor = executor.Chain(base, simulator.Hooks(hooks), simulator.Permission(permit), r.breakpoints(), executor.Canned(tools.canned))
	r.listed = tools.Tools
	return tools
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
	if !r.AsClaude {
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

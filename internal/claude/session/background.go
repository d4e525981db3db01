package session

import (
	"cmp"
	"context"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/command"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// backgroundTasksAndAgents holds the background tasks and sub-agents of a session.
type backgroundTasksAndAgents struct {
	tasks         *task.Set
	agents        *agent.CallExecutor
	model         *scriptedModel
	plan          launch.Plan
	tools         *toolbox
	policy        *permissionPolicy
	records       *recorder
	state         *simulator.SessionState
	showAgentText atomic.Bool       // show what agents say while a turn waits for them
	options       simulator.Options // options of the main conversation, set before its first turn
	tempDir       lazyTempDir
}

// lazyTempDir is a temporary directory. It is created at its first use and removed when the session is closed.
type lazyTempDir struct {
	once sync.Once
	dir  *proc.TempDir // nil means that the directory does not exist yet
}

// newBackgroundTasksAndAgents prepares agents and tasks. It starts nothing.
func newBackgroundTasksAndAgents(plan launch.Plan, state *simulator.SessionState, p *permissionPolicy, t *toolbox, l *skillLibrary) *backgroundTasksAndAgents {
	b := &backgroundTasksAndAgents{plan: plan, tools: t, policy: p, records: p.records, state: state}
	b.tasks = task.New(task.Options{NewID: plan.Clock.NewID, Now: plan.Clock.Now, Dir: b.ensureTaskOutputDir, Ordered: plan.Clock.IsReproducible(), IsTerminal: plan.Records.Run.Interactive})
	b.model = &scriptedModel{
		modelNameOverrider: plan.Model.Aliases, records: p.records, engine: p.records.scenario.Engine, failure: plan.Scenario.Failure,
		fault: plan.Scenario.Fault, stdout: plan.Stdout, gates: plan.Records.Gates,
	}
	b.agents = agent.New(agent.Options{Tasks: b.tasks, Definitions: b, Models: b.model, Session: b, Skills: l, CWD: plan.CWD, Model: plan.Model.Subagents, Foreground: plan.Tools.NoBackground, IsTerminal: plan.Records.Run.Interactive})
	b.showAgentText.Store(plan.Output.AgentText)
	return b
}

// ensureTaskOutputDir returns the directory for the output of tasks: the session's folder below TaskTemp (observed
// with 2.1.329) or, without TaskTemp, a temporary directory. If it returns "", the output is discarded.
func (b *backgroundTasksAndAgents) ensureTaskOutputDir() string {
	if b.plan.TaskTemp != "" {
		return filepath.Join(sessionDirBelowTaskTemp(b.plan, b.records.transcript.Path(), b.records.ID()), "tasks")
	}
	b.tempDir.once.Do(func() { b.tempDir.dir, _ = proc.MakeTempDir("claudeless-tasks-") })
	if b.tempDir.dir == nil {
		return "" // the temporary directory could not be created
	}
	return b.tempDir.dir.Path
}

// TaskListDir returns the directory of the task list, which sessions with the same CLAUDE_CODE_TASK_LIST_ID share (observed with 2.1.330).
func (b *backgroundTasksAndAgents) TaskListDir() string {
	list := cmp.Or(proc.Getenv(b.plan.Environ, "CLAUDE_CODE_TASK_LIST_ID"), b.records.ID())
	return filepath.Join(cmp.Or(b.plan.State, b.ensureTaskOutputDir()), "tasks", regexp.MustCompile(`[^a-zA-Z0-9_-]`).ReplaceAllString(list, "-"))
}

// PlanFileCreatingName returns the path of the plan file, whose name it creates if necessary.
func (b *backgroundTasksAndAgents) PlanFileCreatingName() string {
	return b.plan.PlanModeFile(b.records.transcript.EnsurePlanName(""))
}

func (b *backgroundTasksAndAgents) close() {
	b.tasks.Close()
	if err := b.tempDir.dir.Remove(); err != nil {
		b.records.WarnOnStderr(err.Error())
	}
}

func (b *backgroundTasksAndAgents) Options() simulator.Options { return b.options }

// SessionName returns the name by which other sessions address this one.
func (b *backgroundTasksAndAgents) SessionName() string {
	return command.SessionName(b.state.SessionStateSnapshot().Title, b.records.ID())
}

// ShowsTextOfAwaitedAgents reports whether stdout shows the text of agents for which a turn waits.
func (b *backgroundTasksAndAgents) ShowsTextOfAwaitedAgents() bool { return b.showAgentText.Load() }

func (b *backgroundTasksAndAgents) FindAgentEvenIfDenied(name string) (agent.Definition, bool) {
	a, ok := b.plan.Catalog.Agent(name)
	mode, _ := permission.ParseMode(a.Mode) // an unknown mode is ignored
	if mode == protocol.ModeBypass {
		mode = "" // an agent cannot have this mode (observed with 2.1.330)
	}
	effort, _ := a.Effort.(string) // a number has no effect
	return agent.Definition{
		Effort: effort, Name: a.Name, Prompt: a.Prompt, Tools: a.Tools, DisallowedTools: a.Disallowed,
		Model: a.Model, MaxTurns: a.MaxTurns, Background: a.Background, UsesWorktree: a.Isolation == "worktree",
		Mode: mode, Hooks: a.Hooks, Skills: a.Skills,
	}, ok
}

// RunSkill runs a skill, invoked by the user, in a new agent and returns the agent's answer.
func (b *backgroundTasksAndAgents) RunSkill(ctx context.Context, skill catalog.Command, text string, addedContext []string) (string, error) {
	return b.agents.RunSkill(ctx, forkedSkill(skill, text), addedContext)
}

func (b *backgroundTasksAndAgents) AllAgentTypeNames() []string { return b.plan.Catalog.AgentNames() }

// DenyRuleForAgentType returns the deny rule that forbids agents of a type, and its source. Both are empty if none does.
func (b *backgroundTasksAndAgents) DenyRuleForAgentType(agentType string) (rule, source string) {
	return b.policy.DenyRuleForAgentType(agentType)
}

// worktreeAgentTools are the built-in tools of agents that work in a separate git worktree. The zero value has none.
type worktreeAgentTools struct {
	gitLock sync.Mutex // git must not read the list of worktrees while another git process changes it

	mu     sync.Mutex
	agents map[string]worktreeAgent // by agent id; kept until the end of the session, for agents that continue
}

type worktreeAgent struct {
	tree  gitworktree.Worktree
	tools *builtin.Tools
}

func (i *worktreeAgentTools) find(id string) (worktreeAgent, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	a, ok := i.agents[id]
	return a, ok
}

func (i *worktreeAgentTools) addAgent(agentID string, a worktreeAgent) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.agents == nil {
		i.agents = map[string]worktreeAgent{}
	}
	i.agents[agentID] = a
}

func (i *worktreeAgentTools) closeToolsOfAllAgents() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, a := range i.agents {
		a.tools.Close()
	}
}

// builtinToolsForCaller returns the built-in tools that run a call. An agent in a worktree has separate tools.
func (t *toolbox) builtinToolsForCaller(call protocol.ToolUse) *builtin.Tools {
	if call.Agent != nil && call.Agent.Dir != "" {
		if a, ok := t.worktreeAgents.find(call.Agent.ID); ok {
			return a.tools
		}
	}
	return t.builtin
}

// TakeFileChangedSinceCall returns the path of the file that a call has written, if the file has changed since; otherwise "".
func (t *toolbox) TakeFileChangedSinceCall(call protocol.ToolUse) string {
	return t.builtinToolsForCaller(call).TakeFileChangedSinceCall(call)
}

// builtinCallRouter runs the calls of built-in tools. Agents in a worktree have their own tools.
type builtinCallRouter struct{ *toolbox }

func (b builtinCallRouter) Tools(ctx context.Context) ([]protocol.Tool, error) {
	return b.builtin.Tools(ctx)
}

type agentIDContextKey struct{}

func (b builtinCallRouter) Execute(ctx context.Context, call protocol.ToolUse) (executor.Result, error) {
	if call.Agent != nil {
		ctx = context.WithValue(ctx, agentIDContextKey{}, call.Agent.ID)
	}
	return b.builtinToolsForCaller(call).Execute(ctx, call)
}

// CreateAgentWorktree creates a git worktree for an agent and returns its directory (observed with 2.1.330).
func (b *backgroundTasksAndAgents) CreateAgentWorktree(ctx context.Context, id string) (dir string, err error) {
	t := b.tools
	git := gitworktree.Git{Environ: t.options.Environ}
	top, err := git.MainWorktreeTop(ctx, t.builtin.Dir())
	if err != nil {
		return "", realCLITextError("Cannot create agent worktree: not in a git repository and no WorktreeCreate hooks are configured. " +
			"Configure WorktreeCreate/WorktreeRemove hooks in settings.json to use worktree isolation with other VCS systems.")
	}
	t.worktreeAgents.gitLock.Lock()
	w, err := git.CreateOrReuse(ctx, gitworktree.Options{Top: top, Name: "agent-" + id})
	t.worktreeAgents.gitLock.Unlock()
	if err != nil {
		return "", err
	}
	o := t.options
	o.CWD, o.Worktree = w.Path, &builtin.Worktree{Worktree: w, PreviousDir: w.Path, BelongsToAgent: true}
	tools, err := builtin.New(o)
	if err != nil {
		return "", err
	}
	t.worktreeAgents.addAgent(id, worktreeAgent{w, tools})
	return w.Path, nil
}

// RemoveAgentWorktreeIfUnchanged removes the worktree of an agent. If the worktree has changes or cannot be removed, RemoveAgentWorktreeIfUnchanged keeps the
// worktree and returns its path and branch.
func (b *backgroundTasksAndAgents) RemoveAgentWorktreeIfUnchanged(ctx context.Context, id string) (path, branch string) {
	a, ok := b.tools.worktreeAgents.find(id)
	if !ok {
		return "", ""
	}
	b.tools.worktreeAgents.gitLock.Lock()
	defer b.tools.worktreeAgents.gitLock.Unlock()
	git := gitworktree.Git{Environ: b.tools.options.Environ}
	if git.UnsavedWork(ctx, a.tree) != (gitworktree.UnsavedWork{}) || git.ForceRemoveWithBranch(ctx, a.tree) != nil {
		return a.tree.Path, a.tree.Branch
	}
	return "", ""
}

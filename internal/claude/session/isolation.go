package session

import (
	"context"
	"sync"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/simulator/protocol"
)

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
		if a, ok := t.isolated.find(call.Agent.ID); ok {
			return a.tools
		}
	}
	return t.builtin
}

// RecheckFile returns the current content of the file that a call wrote, if it has changed since; "" means unchanged.
func (t *toolbox) RecheckFile(call protocol.ToolUse) string {
	return t.builtinToolsForCaller(call).RecheckFile(call)
}

// builtinToolExecutor runs the calls of built-in tools. Agents in a worktree have their own tools.
type builtinToolExecutor struct{ *toolbox }

func (b builtinToolExecutor) Tools(ctx context.Context) ([]protocol.Tool, error) {
	return b.builtin.Tools(ctx)
}

type agentIDContextKey struct{}

func (b builtinToolExecutor) Execute(ctx context.Context, call protocol.ToolUse) (executor.Result, error) {
	if call.Agent != nil {
		ctx = context.WithValue(ctx, agentIDContextKey{}, call.Agent.ID)
	}
	return b.builtinToolsForCaller(call).Execute(ctx, call)
}

// IsolateAgent creates a worktree for an agent (observed with 2.1.330).
func (b *backgroundTasksAndAgents) IsolateAgent(ctx context.Context, id string) (dir string, err error) {
	t := b.tools
	git := gitworktree.Git{Environ: t.options.Environ}
	top, err := git.Top(ctx, t.builtin.Dir())
	if err != nil {
		return "", realCLITextError("Cannot create agent worktree: not in a git repository and no WorktreeCreate hooks are configured. " +
			"Configure WorktreeCreate/WorktreeRemove hooks in settings.json to use worktree isolation with other VCS systems.")
	}
	t.isolated.gitLock.Lock()
	w, err := git.Add(ctx, gitworktree.Options{Top: top, Name: "agent-" + id})
	t.isolated.gitLock.Unlock()
	if err != nil {
		return "", err
	}
	o := t.options
	o.CWD, o.Worktree = w.Path, &builtin.Worktree{Worktree: w, PreviousDir: w.Path, BelongsToAgent: true}
	tools, err := builtin.New(o)
	if err != nil {
		return "", err
	}
	t.isolated.addAgent(id, worktreeAgent{w, tools})
	return w.Path, nil
}

// ReleaseAgent removes the worktree of an agent. If the worktree has changes or cannot be removed, ReleaseAgent keeps the
// worktree and returns its path and branch.
func (b *backgroundTasksAndAgents) ReleaseAgent(ctx context.Context, id string) (path, branch string) {
	a, ok := b.tools.isolated.find(id)
	if !ok {
		return "", ""
	}
	b.tools.isolated.gitLock.Lock()
	defer b.tools.isolated.gitLock.Unlock()
	git := gitworktree.Git{Environ: b.tools.options.Environ}
	if git.UnsavedWork(ctx, a.tree) != (gitworktree.UnsavedWork{}) || git.Remove(ctx, a.tree) != nil {
		return a.tree.Path, a.tree.Branch
	}
	return "", ""
}

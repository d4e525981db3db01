package session

import (
	"context"
	"sync"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// isolatedTools are the built-in tools of agents that work in a separate git worktree. The zero value has none.
type isolatedTools struct {
	gitLock sync.Mutex // git must not read the list of worktrees while another git process changes it

	mu     sync.Mutex
	agents map[string]isolatedAgent // by agent id; kept until the end of the session, for agents that continue
}

type isolatedAgent struct {
	tree  gitworktree.Worktree
	tools *builtin.Tools
}

func (i *isolatedTools) find(id string) (isolatedAgent, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	a, ok := i.agents[id]
	return a, ok
}

func (i *isolatedTools) add(id string, a isolatedAgent) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.agents == nil {
		i.agents = map[string]isolatedAgent{}
	}
	i.agents[id] = a
}

func (i *isolatedTools) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, a := range i.agents {
		a.tools.Close()
	}
}

// builtinTools returns the built-in tools that run a call. An agent in a worktree has separate tools.
func (t *toolbox) builtinTools(call protocol.ToolUse) *builtin.Tools {
	if call.Agent != nil && call.Agent.Dir != "" {
		if a, ok := t.isolated.find(call.Agent.ID); ok {
			return a.tools
		}
	}
	return t.builtin
}

// RecheckFile returns the current content of the file that a call wrote, if it has changed since; "" means unchanged.
func (t *toolbox) RecheckFile(call protocol.ToolUse) string {
	return t.builtinTools(call).RecheckFile(call)
}

// builtinExecutor runs the calls of built-in tools. Agents in a worktree have their own tools.
type builtinExecutor struct{ *toolbox }

func (b builtinExecutor) Tools(ctx context.Context) ([]protocol.Tool, error) {
	return b.builtin.Tools(ctx)
}

type agentIDContextKey struct{}

func (b builtinExecutor) Execute(ctx context.Context, call protocol.ToolUse) (executor.Result, error) {
	if call.Agent != nil {
		ctx = context.WithValue(ctx, agentIDContextKey{}, call.Agent.ID)
	}
	return b.builtinTools(call).Execute(ctx, call)
}

// IsolateAgent creates a worktree for an agent (observed with 2.1.330).
func (b *backgroundWork) IsolateAgent(ctx context.Context, id string) (dir string, err error) {
	t := b.tools
	git := gitworktree.Git{Environ: t.options.Environ}
	top, err := git.Top(ctx, t.builtin.Dir())
	if err != nil {
		return "", shellError("Cannot create agent worktree: not in a git repository and no WorktreeCreate hooks are configured. " +
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
	t.isolated.add(id, isolatedAgent{w, tools})
	return w.Path, nil
}

// ReleaseAgent removes the worktree of an agent. If the worktree has changes or cannot be removed, ReleaseAgent keeps the
// worktree and returns its path and branch.
func (b *backgroundWork) ReleaseAgent(ctx context.Context, id string) (path, branch string) {
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

package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claude/launch"
)

// enterWorktree creates the worktree of --worktree and moves the run into it; it returns nil without the flag. The
// worktree is kept when the run ends.
func enterWorktree(ctx context.Context, sys *process.System, f *flags.Flags) (*launch.Worktree, error) {
	if !f.Has("worktree") {
		return nil, nil
	}
	dir, err := f.Dir(sys)
	if err != nil {
		return nil, err
	}
	git := gitworktree.Git{Environ: sys.Environ}
	top, err := git.Top(ctx, dir)
	if err != nil {
		return nil, process.Verbatimf("Error: Can only use --worktree in a git repository, but %s is not a git repository. "+
			"Configure a WorktreeCreate hook to use --worktree with other VCS systems.", dir)
	}
	name := cmp.Or(f.Worktree, gitworktree.RandomName(sys.Now().UnixNano()))
	if fault := gitworktree.CheckName(name); fault != "" {
		return nil, process.Verbatimf("Error creating worktree: %s", fault)
	}
	former := git.Branch(ctx, dir)
	tree, err := git.Add(ctx, gitworktree.Options{
		Top: top, Name: name, Lock: fmt.Sprintf("claude session %s (pid %d)", strings.ReplaceAll(name, "/", "+"), sys.PID),
	})
	if err != nil {
		return nil, process.Verbatimf("Error creating worktree: %v", err)
	}
	f.WorktreeDir = tree.Path
	return &launch.Worktree{Worktree: tree, Name: name, OriginalDir: dir, OriginalBranch: former}, nil
}

func resolvePlan(ctx context.Context, sys *process.System, f *flags.Flags) (launch.Plan, error) {
	tree, err := enterWorktree(ctx, sys, f)
	if err != nil {
		return launch.Plan{}, err
	}
	plan, err := launch.Resolve(sys, f)
	plan.Worktree = tree
	return plan, err
}

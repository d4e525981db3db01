package launch

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/base/gitworktree"
)

// gitCheckout is the data about the session's git repository in transcripts.
type gitCheckout struct {
	isRepository     bool
	isLinkedWorktree bool   // the checkout is a linked worktree
	branch           string // "HEAD" if no branch is checked out
}

// findCheckout looks for a repository around dir without running git.
func findCheckout(dir string) gitCheckout {
	top := gitworktree.RepositoryOf(dir)
	git := filepath.Join(top, ".git")
	info, err := os.Stat(git)
	if top == "" || err != nil {
		return gitCheckout{}
	}
	return readCheckout(git, info.IsDir())
}

func readCheckout(git string, isDir bool) gitCheckout {
	c := gitCheckout{isRepository: true}
	if !isDir {
		pointer, err := os.ReadFile(git)
		target, ok := strings.CutPrefix(strings.TrimSpace(string(pointer)), "gitdir: ")
		if err != nil || !ok {
			return gitCheckout{}
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(git), target)
		}
		c.isLinkedWorktree = filepath.Base(filepath.Dir(target)) == "worktrees"
		git = target
	}
	head, err := os.ReadFile(filepath.Join(git, "HEAD"))
	if err != nil {
		return gitCheckout{}
	}
	c.branch = "HEAD"
	if branch, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: refs/heads/"); ok {
		c.branch = branch
	}
	return c
}

package launch

import (
	"os"
	"path/filepath"
	"strings"
)

// gitCheckout is the data about the session's git repository in transcripts.
type gitCheckout struct {
	isRepository     bool
	isLinkedWorktree bool   // a linked one
	branch           string // "HEAD" when it is on none
}

// findCheckout looks for a repository around dir without running git.
func findCheckout(dir string) gitCheckout {
	for ; ; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		if info, err := os.Stat(git); err == nil {
			return readCheckout(git, info.IsDir())
		}
		if dir == filepath.Dir(dir) {
			return gitCheckout{}
		}
	}
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

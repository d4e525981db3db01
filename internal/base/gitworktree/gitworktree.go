// Package gitworktree creates and finds the git worktrees of sessions and agents, which are below .claude/worktrees
// of a repository, each with a separate branch.
package gitworktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// Git runs git with an environment ("K=V").
type Git struct{ Environ []string }

// Worktree is one worktree of a repository.
type Worktree struct {
	Top     string // top directory of its repository
	Path    string
	Branch  string // "" means none
	Base    string // all commits after this one count as new; "" means unknown
	Resumed bool   // the worktree already existed
}

// UnsavedWork is the number of changed files and new commits that removing a worktree would lose.
type UnsavedWork struct{ Files, Commits int }

// Options describe the worktree to create.
type Options struct {
	Top  string // top directory of the repository
	Name string // name of its directory, in which "/" becomes "+"
	Lock string // why the worktree is locked; "" means that it is not locked
}

// realCLIError is an error message of the real CLI.
type realCLIError string

func (f realCLIError) Error() string { return string(f) }

func realCLIErrorf(format string, args ...any) error {
	return realCLIError(fmt.Sprintf(format, args...))
}

func (g Git) trimmedGitOutput(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := g.gitOutput(ctx, dir, args...)
	return strings.TrimRight(string(out), "\r\n"), err
}

// gitOutput runs git in a directory and returns its output. If git fails, the error is its message.
func (g Git) gitOutput(ctx context.Context, dir string, args ...string) ([]byte, error) {
	res, err := proc.Run(ctx, proc.RunOptions{Command: proc.Command{Path: "git", Args: args, Dir: dir, Env: append(slices.Clone(g.Environ), "PWD="+dir)}})
	if err == nil && (res.Exit.Code != 0 || res.Exit.Signal != "") {
		err = fmt.Errorf("git: %s", strings.TrimSpace(string(res.Stderr)))
	}
	return res.Stdout, err
}

// WorktreesDir returns the directory of the named worktrees of a repository.
func WorktreesDir(top string) string { return filepath.Join(top, ".claude", "worktrees") }

// MainWorktreeTop returns the top directory of the repository that contains a directory; outside a repository it returns an error.
// For a linked worktree, it is the top directory of the main worktree.
func (g Git) MainWorktreeTop(ctx context.Context, dir string) (string, error) {
	out, err := g.trimmedGitOutput(ctx, dir, "rev-parse", "--show-toplevel", "--path-format=absolute", "--git-common-dir")
	top, common, _ := strings.Cut(out, "\n")
	if main, ok := strings.CutSuffix(common, "/.git"); ok {
		top = main
	}
	return top, err
}

const maxNameLength = 64

var nameSegmentPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w.-]+$`) })

// WorktreeNameProblem returns the error message of the real CLI for an invalid worktree name; "" means valid.
func WorktreeNameProblem(name string) string {
	if len(name) > maxNameLength {
		return fmt.Sprintf("Invalid worktree name: must be %d characters or fewer (got %d)", maxNameLength, len(name))
	}
	for segment := range strings.SplitSeq(name, "/") {
		switch {
		case segment == "." || segment == "..":
			return fmt.Sprintf(`Invalid worktree name "%s": must not contain "." or ".." path segments`, name)
		case !nameSegmentPattern().MatchString(segment):
			return fmt.Sprintf(`Invalid worktree name "%s": each "/"-separated segment must be non-empty and contain only letters, digits, dots, underscores, and dashes`, name)
		}
	}
	return ""
}

// CreateOrReuse creates the worktree that o describes, or reuses it if it exists. Its errors are worded as in the real CLI.
func (g Git) CreateOrReuse(ctx context.Context, o Options) (Worktree, error) {
	name := strings.ReplaceAll(o.Name, "/", "+")
	w := Worktree{Top: o.Top, Path: filepath.Join(WorktreesDir(o.Top), name), Branch: "worktree-" + name}
	from := "HEAD"
	if remote, err := g.trimmedGitOutput(ctx, w.Top, "rev-parse", "--abbrev-ref", "origin/HEAD"); err == nil {
		from = remote
	}
	var err error
	if w.Base, err = g.trimmedGitOutput(ctx, w.Top, "rev-parse", "--verify", "--quiet", from+"^{commit}"); err != nil {
		return w, realCLIErrorf("Failed to resolve base branch %q: git rev-parse returned no commit for %[1]s (for example in a new repository, or on a branch without "+
			"a commit yet), so Claude Code has nothing to base a worktree on. It may also be that the git that Claude Code runs (which may not be "+
			"the one in your shell) is not working. Running git status in this repository may show more.", from)
	}
	if all := g.List(ctx, w.Top); slices.ContainsFunc(all, func(o Worktree) bool { return o.Path == w.Path }) {
		w.Branch, w.Resumed = g.Branch(ctx, w.Path), true
		return w, nil
	}
	if _, err := g.trimmedGitOutput(ctx, w.Top, "worktree", "add", "--quiet", "-B", w.Branch, w.Path, w.Base); err != nil {
		return w, realCLIErrorf("Failed to create worktree: %v", err)
	}
	if o.Lock != "" {
		if _, err := g.trimmedGitOutput(ctx, w.Top, "worktree", "lock", "--reason", o.Lock, w.Path); err != nil {
			return w, realCLIErrorf("Failed to create worktree: %v", err)
		}
	}
	return w, g.copyIncludedFiles(ctx, w)
}

// copyIncludedFiles copies the files that .worktreeinclude lists and git ignores.
func (g Git) copyIncludedFiles(ctx context.Context, w Worktree) error {
	patterns := filepath.Join(w.Top, ".worktreeinclude")
	if _, err := os.Stat(patterns); err != nil {
		return nil
	}
	named, err := g.trimmedGitOutput(ctx, w.Top, "ls-files", "-z", "--others", "--ignored", "--exclude-from="+patterns)
	if err != nil {
		return err
	}
	ignored, err := g.trimmedGitOutput(ctx, w.Top, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
	if err != nil {
		return err
	}
	also := strings.Split(ignored, "\x00")
	for file := range strings.SplitSeq(named, "\x00") {
		if file == "" || !slices.Contains(also, file) || IsInside(WorktreesDir(w.Top), filepath.Join(w.Top, file)) {
			continue
		}
		if err := copyFileIfMissing(filepath.Join(w.Top, file), filepath.Join(w.Path, file)); err != nil {
			return err
		}
	}
	return nil
}

// IsInside reports whether a path is in a directory, or is the directory.
func IsInside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// copyFileIfMissing copies a regular file unless the copy already exists. It skips all other kinds of files.
func copyFileIfMissing(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}

// List lists the worktrees of a repository, the main one first.
func (g Git) List(ctx context.Context, top string) []Worktree {
	list, err := g.trimmedGitOutput(ctx, top, "worktree", "list", "--porcelain")
	if err != nil {
		return nil
	}
	var out []Worktree
	for line := range strings.SplitSeq(list, "\n") {
		if path, ok := strings.CutPrefix(line, "worktree "); ok {
			out = append(out, Worktree{Top: top, Path: filepath.FromSlash(path)})
		} else if branch, ok := strings.CutPrefix(line, "branch refs/heads/"); ok && len(out) > 0 {
			out[len(out)-1].Branch = branch
		}
	}
	return out
}

// UnsavedWork counts the changed files of a worktree and the commits since its creation.
func (g Git) UnsavedWork(ctx context.Context, w Worktree) UnsavedWork {
	var u UnsavedWork
	if status, err := g.trimmedGitOutput(ctx, w.Path, "status", "--porcelain"); err == nil && status != "" {
		u.Files = strings.Count(status, "\n") + 1
	}
	if count, err := g.trimmedGitOutput(ctx, w.Path, "rev-list", "--count", w.Base+"..HEAD"); err == nil {
		_, _ = fmt.Sscan(count, &u.Commits) // git prints a number
	}
	return u
}

// Branch returns the branch of a directory; empty means none.
func (g Git) Branch(ctx context.Context, dir string) string {
	name, _ := g.trimmedGitOutput(ctx, dir, "branch", "--show-current")
	return name
}

const maxStatusBytes = 2000 // length of a list of changed files in bytes

// DescribeRepository describes the state of a directory's repository to the model (observed with 2.1.330).
func (g Git) DescribeRepository(ctx context.Context, dir string) string {
	var texts [5]string
	var all sync.WaitGroup
	for i, command := range []string{
		"branch --show-current", "for-each-ref --format=%(refname)\t%(symref) refs/remotes/origin/HEAD refs/remotes/origin/main refs/remotes/origin/master",
		"config user.name", "status --short", "log --oneline -n 5",
	} {
		all.Go(func() { texts[i], _ = g.trimmedGitOutput(ctx, dir, strings.Split(command, " ")...) })
	}
	all.Wait()
	mains, status := strings.Fields(texts[1]), cmp.Or(texts[3], "(clean)")
	if len(status) > maxStatusBytes {
		status = status[:maxStatusBytes] + "\n... (git status prints more)"
	}
	main := "main"
	if len(mains) > 0 {
		main = strings.TrimPrefix(mains[min(1, len(mains)-1)], "refs/remotes/origin/")
	}
	parts := []string{"The state of the git repository when this conversation began.", "Current branch: " + cmp.Or(texts[0], "HEAD"), "Main branch (you will usually use this for PRs): " + main}
	if texts[2] != "" {
		parts = append(parts, "Git user: "+texts[2])
	}
	return strings.Join(append(parts, "Status:\n"+status, "Recent commits:\n"+texts[4]), "\n\n")
}

// Unlock removes the lock of a worktree, if it has one.
func (g Git) Unlock(ctx context.Context, w Worktree) {
	_, _ = g.trimmedGitOutput(ctx, w.Top, "worktree", "unlock", w.Path)
}

// ForceRemoveWithBranch removes a worktree and its branch, even with uncommitted changes.
func (g Git) ForceRemoveWithBranch(ctx context.Context, w Worktree) error {
	if _, err := g.trimmedGitOutput(ctx, w.Top, "worktree", "remove", "--force", "--force", w.Path); err != nil {
		return err
	}
	_, _ = g.trimmedGitOutput(ctx, w.Top, "branch", "-D", w.Branch) // if git refuses, the branch is kept
	return nil
}

// WorktreeNameFromNumber returns a random name for a worktree. n selects the words and must not be negative.
func WorktreeNameFromNumber(n int64) string {
	words := [3][]string{
		{"quiet", "amber", "brisk", "gentle", "lucid", "mellow", "nimble", "sunny"},
		{"drifting", "humming", "leaping", "musing", "roaming", "singing", "waving", "winding"},
		{"babbage", "curie", "euler", "hopper", "kepler", "lovelace", "noether", "turing"},
	}
	name := make([]string, len(words))
	for i, list := range words {
		name[i] = list[n%int64(len(list))]
		n /= int64(len(list))
	}
	return strings.Join(name, "-")
}

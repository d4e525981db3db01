package gitworktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/gitworktree"
)

func TestCheckName(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"feature", ""},
		{"a/b-c_d.e", ""},
		{strings.Repeat("x", 64), ""},
		{strings.Repeat("x", 65), "Invalid worktree name: must be 64 characters or fewer (got 65)"},
		{"../x", `Invalid worktree name "../x": must not contain "." or ".." path segments`},
		{"a b", `Invalid worktree name "a b": each "/"-separated segment must be non-empty and contain only letters, digits, dots, underscores, and dashes`},
		{"/abs", `Invalid worktree name "/abs": each "/"-separated segment must be non-empty and contain only letters, digits, dots, underscores, and dashes`},
	} {
		if got := gitworktree.WorktreeNameProblem(tt.name); got != tt.want {
			t.Errorf("CheckName(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}

// newRepository creates a repository with one commit, an ignored file that is copied to worktrees and one that is
// not.
func newRepository(t *testing.T) (gitworktree.Git, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".gitignore": ".env\n*.log\n", ".worktreeinclude": ".env\nnew.txt\n", ".env": "A=1\n", "a.log": "x\n", "new.txt": "x\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, "init", "-q", "-b", "main", ".")
	run(t, dir, "add", ".gitignore")
	run(t, dir, "commit", "-q", "-m", "x")
	return gitworktree.Git{Environ: os.Environ()}, dir
}

func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=b@c"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
}

func TestAdd(t *testing.T) {
	git, top := newRepository(t)
	w, err := git.CreateOrReuse(t.Context(), gitworktree.Options{Top: top, Name: "a/b", Lock: "for a test"})
	if err != nil {
		t.Fatal(err)
	}
	want := gitworktree.Worktree{Top: top, Path: filepath.Join(top, ".claude", "worktrees", "a+b"), Branch: "worktree-a+b", Base: w.Base}
	if diff := cmp.Diff(want, w); diff != "" || w.Base == "" {
		t.Errorf("Add: base %q (-want +got)\n%s", w.Base, diff)
	}
	files := map[string]bool{}
	entries, err := os.ReadDir(w.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		files[e.Name()] = true
	}
	if diff := cmp.Diff(map[string]bool{".git": true, ".gitignore": true, ".env": true}, files); diff != "" {
		t.Errorf("files of the worktree: (-want +got)\n%s", diff)
	}

	want.Resumed = true
	if again, err := git.CreateOrReuse(t.Context(), gitworktree.Options{Top: top, Name: "a/b"}); err != nil || again != want {
		t.Errorf("Add of a name that exists = %+v, %v; want %+v", again, err, want)
	}
	if got := git.UnsavedWork(t.Context(), w); got != (gitworktree.UnsavedWork{}) {
		t.Errorf("Unsaved of a fresh worktree = %+v", got)
	}
	if err := os.WriteFile(filepath.Join(w.Path, "b.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, w.Path, "commit", "-q", "--allow-empty", "-m", "y")
	if got, want := git.UnsavedWork(t.Context(), w), (gitworktree.UnsavedWork{Files: 1, Commits: 1}); got != want {
		t.Errorf("Unsaved = %+v, want %+v", got, want)
	}
	if err := git.ForceRemoveWithBranch(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if all := git.List(t.Context(), top); len(all) != 1 || all[0].Branch != "main" {
		t.Errorf("after Remove there are %+v", all)
	}
}

func TestAddFails(t *testing.T) {
	git, top := newRepository(t)
	run(t, top, "checkout", "-q", "--orphan", "empty")
	if _, err := git.CreateOrReuse(t.Context(), gitworktree.Options{Top: top, Name: "x"}); err == nil || !strings.HasPrefix(err.Error(), `Failed to resolve base branch "HEAD": `) {
		t.Errorf("Add without a commit: %v", err)
	}
	if _, err := git.MainWorktreeTop(t.Context(), t.TempDir()); err == nil {
		t.Error("Top outside a repository has no error")
	}
}

func TestStatusText(t *testing.T) {
	git, top := newRepository(t)
	run(t, top, "config", "user.name", "Ann")
	run(t, top, "checkout", "-q", "-b", "feature")
	run(t, top, "update-ref", "refs/remotes/origin/master", "HEAD")
	if err := os.WriteFile(filepath.Join(top, "b.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	text := git.DescribeRepository(t.Context(), top)
	for _, want := range []string{"\n\nCurrent branch: feature\n\nMain branch (you will usually use this for PRs): master\n\nGit user: Ann\n\nStatus:\n", "?? b.txt", "\n\nRecent commits:\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if text := git.DescribeRepository(t.Context(), t.TempDir()); !strings.Contains(text, "branch: HEAD") {
		t.Errorf("outside a repository:\n%s", text)
	}
}

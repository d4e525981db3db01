package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/executor/shell"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// worktree is the git work tree that the session has moved into.
type worktree struct {
	top    string // root of its repository
	path   string
	branch string // "" = none
	base   string // the commit from which its new work is counted
	former string // previous directory of the session
	owned  bool   // created or selected by name, so it may be removed
}

// worktrees moves the session into work trees and back.
type worktrees struct {
	shell *shell.Shell
	clock tool.Clock // provides names of work trees
	dir   string     // initial directory of the session

	mu   sync.Mutex
	tree *worktree // current work tree; nil = none
}

func (s *worktrees) inWorktree() (worktree, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tree == nil {
		return worktree{}, false
	}
	return *s.tree, true
}

// checkInWorktree refuses a change of a repository file that is outside the session's work
// tree; nil = allowed.
func (s *worktrees) checkInWorktree(path string) *protocol.ToolResult {
	w, inside := s.inWorktree()
	if !inside || within(w.path, path) || !within(w.top, path) {
		return nil
	}
	return new(tool.Refuse("This session is isolated in the worktree %s. Edit the worktree copy of this file instead of the shared-checkout path.", w.path))
}

// withinWorktree wraps a tool that changes files, so that it stays within the work tree.
func (s *worktrees) withinWorktree(t tool.Tool) tool.Tool {
	check := t.Check
	t.Check = func(ctx context.Context, raw json.RawMessage) *protocol.ToolResult {
		in, err := tool.Decode[struct {
			Path string `json:"file_path"`
		}](raw)
		if err == nil {
			if r := s.checkInWorktree(s.shell.Path(in.Path)); r != nil {
				return r
			}
		}
		return check(ctx, raw)
	}
	return t
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// enter enters a work tree and records it.
func (s *worktrees) enter(w worktree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shell.SetRoot(w.path, w.path)
	s.tree = &w
}

type enterWorktreeInput struct {
	Name *string `json:"name"`
	Path *string `json:"path"`
}

func enterWorktreeTool(s *worktrees) tool.Tool {
	return tool.Tool{
		Name:        "EnterWorktree",
		Description: "Moves the session into a git work tree, a new one or one that exists.",
		Input:       tool.Object(tool.Opt("name", tool.Str("Name of the new work tree")), tool.Opt("path", tool.Str("A work tree that exists"))),
		Check: tool.TypedCheck(s, func(_ context.Context, s *worktrees, in enterWorktreeInput) *protocol.ToolResult {
			if r := tool.Invalid("EnterWorktree", in.issues()); r != nil {
				return r
			}
			if _, inside := s.inWorktree(); inside && in.Path == nil {
				r := tool.Refuse("Already in a worktree session. Pass `path` to switch into another existing worktree, or use ExitWorktree to leave this one before creating a new worktree.")
				return &r
			}
			return nil
		}),
		Run: tool.TypedRun(s, enterWorktree),
	}
}

// maxTreeName is the maximum length of a name in characters.
const maxTreeName = 64

var treeSegment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w.-]+$`) })

func (in enterWorktreeInput) issues() []tool.Issue {
	bad := func(format string, args ...any) []tool.Issue {
		return []tool.Issue{tool.CustomIssue(fmt.Sprintf("Invalid worktree name"+format, args...), "name").WithMessageFirst()}
	}
	switch {
	case in.Name == nil:
		return nil
	case in.Path != nil:
		return []tool.Issue{tool.CustomIssue("Provide at most one of `name` or `path`, not both.")}
	case len(*in.Name) > maxTreeName:
		return bad(": must be %d characters or fewer (got %d)", maxTreeName, len(*in.Name))
	}
	for segment := range strings.SplitSeq(*in.Name, "/") {
		switch {
		case segment == "." || segment == "..":
			return bad(` "%s": must not contain "." or ".." path segments`, *in.Name)
		case !treeSegment().MatchString(segment):
			return bad(` "%s": each "/"-separated segment must be non-empty and contain only letters, digits, dots, underscores, and dashes`, *in.Name)
		}
	}
	return nil
}

func enterWorktree(ctx context.Context, s *worktrees, in enterWorktreeInput) protocol.ToolResult {
	top, err := s.git(ctx, s.shell.Dir(), "rev-parse", "--show-toplevel")
	now, inside := s.inWorktree()
	if inside {
		top = now.top
	}
	switch {
	case err != nil && in.Path != nil:
		return tool.Fail("Cannot enter an existing worktree: the current directory is not in a git repository.")
	case err != nil:
		return tool.Fail("Cannot create a worktree: not in a git repository and no WorktreeCreate hooks are configured. " +
			"Configure WorktreeCreate/WorktreeRemove hooks in settings.json to use worktree isolation with other VCS systems.")
	}
	w := worktree{top: top, former: s.shell.Dir()}
	if inside {
		w.former = now.former
	}
	head, refusal := "", (*protocol.ToolResult)(nil)
	if in.Path != nil {
		head, refusal = "Entered worktree at", s.findTree(ctx, &w, *in.Path)
	} else {
		name := s.newTreeName()
		if in.Name != nil {
			name = *in.Name
		}
		head, refusal = s.makeTree(ctx, &w, name)
	}
	if refusal != nil {
		return *refusal
	}
	s.enter(w)
	message := head + " " + w.String() + "."
	if strings.HasPrefix(head, "Resumed") {
		message += " A worktree with this name already existed and was resumed as-is — it may carry an earlier session’s commits. " +
			"Pass a different name if you wanted a fresh worktree."
	}
	message += " The session is now working in the worktree. Use ExitWorktree to leave mid-session, or exit the session to be prompted."
	return tool.Text(message, struct {
		Path    string `json:"worktreePath"`
		Branch  string `json:"worktreeBranch,omitempty"`
		Message string `json:"message"`
	}{w.path, w.branch, message})
}

// String describes a work tree: “path” on branch “name”.
func (w worktree) String() string {
	if w.branch == "" {
		return "“" + w.path + "”"
	}
	return "“" + w.path + "” on branch “" + w.branch + "”"
}

// treesDir returns the directory of the named work trees of a repository.
func treesDir(top string) string { return filepath.Join(top, ".claude", "worktrees") }

// newTreeName returns a name for a work tree without one.
func (s *worktrees) newTreeName() string {
	words := [3][]string{
		{"quiet", "amber", "brisk", "gentle", "lucid", "mellow", "nimble", "sunny"},
		{"drifting", "humming", "leaping", "musing", "roaming", "singing", "waving", "winding"},
		{"babbage", "curie", "euler", "hopper", "kepler", "lovelace", "noether", "turing"},
	}
	n, _ := strconv.ParseUint(s.clock.NewID()[:8], 16, 32) // if it is not a number, the first words are used
	name := make([]string, len(words))
	for i, list := range words {
		name[i] = list[n%uint64(len(list))]
		n /= uint64(len(list))
	}
	return strings.Join(name, "-")
}

// makeTree creates the work tree with a name, or uses the existing one.
func (s *worktrees) makeTree(ctx context.Context, w *worktree, name string) (head string, refusal *protocol.ToolResult) {
	no := func(format string, args ...any) (string, *protocol.ToolResult) {
		return "", new(tool.Fail(format, args...))
	}
	name = strings.ReplaceAll(name, "/", "+")
	w.path, w.branch, w.owned = filepath.Join(treesDir(w.top), name), "worktree-"+name, true
	from := "HEAD"
	if remote, err := s.git(ctx, w.top, "rev-parse", "--abbrev-ref", "origin/HEAD"); err == nil {
		from = remote
	}
	var err error
	if w.base, err = s.git(ctx, w.top, "rev-parse", "--verify", "--quiet", from+"^{commit}"); err != nil {
		return no("Failed to resolve base branch %q: git rev-parse returned no commit for %[1]s (for example in a new repository, or on a branch without "+
			"a commit yet), so Claude Code has nothing to base a worktree on. It may also be that the git that Claude Code runs (which may not be "+
			"the one in your shell) is not working. Running git status in this repository may show more.", from)
	}
	if trees := s.trees(ctx, w.top); slices.ContainsFunc(trees, func(o worktree) bool { return o.path == w.path }) {
		w.branch, _ = s.git(ctx, w.path, "branch", "--show-current")
		return "Resumed worktree at", nil
	}
	if _, err := s.git(ctx, w.top, "worktree", "add", "--quiet", "-B", w.branch, w.path, w.base); err != nil {
		return no("Failed to create worktree: %v", err)
	}
	if _, err := s.git(ctx, w.top, "worktree", "lock", "--reason", "claude session "+name, w.path); err != nil {
		return no("Failed to create worktree: %v", err)
	}
	return "Created worktree at", nil
}

// findTree finds the work tree at a path.
func (s *worktrees) findTree(ctx context.Context, w *worktree, path string) *protocol.ToolResult {
	no := func(format string, args ...any) *protocol.ToolResult {
		return new(tool.Fail("Cannot enter worktree: "+format, args...))
	}
	path = s.shell.Path(path)
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return no("%s: ENOENT: no such file or directory, realpath '%[1]s'", path)
	}
	_, inside := s.inWorktree()
	trees := s.trees(ctx, w.top)
	i := slices.IndexFunc(trees, func(o worktree) bool { return o.path == target })
	managed := treesDir(w.top)
	switch {
	case i == 0:
		return no("%s is the main working tree, not a linked worktree.", target)
	case target == s.shell.Dir():
		return no("%s is the current working directory.", target)
	case inside && !isDir(managed):
		return no("%s does not exist, so %s cannot be a worktree managed by Claude Code.", managed, target)
	case i < 0 || inside && !within(managed, target):
		return no("%s is not a registered worktree of %s. Run 'git -C %[2]s worktree list' to see registered worktrees.", target, w.top)
	}
	w.path, w.branch = target, trees[i].branch
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// trees lists the work trees of a repository, the main one first.
func (s *worktrees) trees(ctx context.Context, top string) []worktree {
	list, err := s.git(ctx, top, "worktree", "list", "--porcelain")
	if err != nil {
		return nil
	}
	var out []worktree
	for line := range strings.SplitSeq(list, "\n") {
		if path, ok := strings.CutPrefix(line, "worktree "); ok {
			out = append(out, worktree{path: filepath.FromSlash(path)})
		} else if branch, ok := strings.CutPrefix(line, "branch refs/heads/"); ok && len(out) > 0 {
			out[len(out)-1].branch = branch
		}
	}
	return out
}

// git runs git in a directory and returns its output without the last line end.
func (s *worktrees) git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := s.shell.Git(ctx, dir, args...)
	return strings.TrimRight(out, "\r\n"), err
}

type exitWorktreeInput struct {
	Action  string `json:"action"`
	Discard bool   `json:"discard_changes"`
}

func exitWorktreeTool(s *worktrees) tool.Tool {
	return tool.Tool{
		Name:        "ExitWorktree",
		Description: "Moves the session back to where it was before EnterWorktree.",
		Input: tool.Object(
			tool.Req("action", tool.Str("What becomes of the work tree", "keep", "remove")),
			tool.Opt("discard_changes", tool.Boolean("Remove it even if work in it is lost")),
		),
		Check: tool.TypedCheck(s, func(ctx context.Context, s *worktrees, in exitWorktreeInput) *protocol.ToolResult {
			_, _, refusal := s.worktreeToLeave(ctx, in)
			return refusal
		}),
		Run: tool.TypedRun(s, exitWorktree),
	}
}

// unsavedWork counts the work in a work tree that its removal would lose.
type unsavedWork struct{ files, commits int }

// worktreeToLeave returns the work tree to leave and the unsaved work in it, or the result
// that says why it cannot be left.
func (s *worktrees) worktreeToLeave(ctx context.Context, in exitWorktreeInput) (worktree, unsavedWork, *protocol.ToolResult) {
	w, inside := s.inWorktree()
	no := func(format string, args ...any) (worktree, unsavedWork, *protocol.ToolResult) {
		return w, unsavedWork{}, new(tool.Refuse(format, args...))
	}
	switch {
	case !inside:
		return no("No-op: there is no active EnterWorktree session to exit. This tool only operates on worktrees created by EnterWorktree in the current " +
			"session — it will not touch worktrees created manually or in a previous session. No filesystem changes were made.")
	case in.Action != "remove":
		return w, unsavedWork{}, nil
	case !w.owned:
		return no("This session is not the owner of the worktree at “%s” — it either entered a pre-existing worktree via EnterWorktree({path}) or resumed into "+
			"a checkout whose liveness lock another running Claude Code session still holds — so this tool will not remove it. Use action: \"keep\" to "+
			"return to “%s”. If no other session is using it, remove it yourself with `git worktree remove`; while a live session's lock is present, git "+
			"will refuse and name the owner.", w.path, w.former)
	}
	var u unsavedWork
	if status, err := s.git(ctx, w.path, "status", "--porcelain"); err == nil && status != "" {
		u.files = strings.Count(status, "\n") + 1
	}
	if count, err := s.git(ctx, w.path, "rev-list", "--count", w.base+"..HEAD"); err == nil {
		u.commits, _ = strconv.Atoi(count) // git prints a number
	}
	if u != (unsavedWork{}) && !in.Discard {
		commits := pluralize(u.commits, "commit")
		if commits != "" {
			commits += " on “" + w.branch + "”"
		}
		return no("Worktree has %s. Removing will discard this work permanently. Confirm with the user, then re-invoke with discard_changes: true — "+
			"or use action: \"keep\" to preserve the worktree.", joinNonEmpty(pluralize(u.files, "uncommitted file"), commits))
	}
	return w, u, nil
}

// pluralize formats a number of things; "" for zero.
func pluralize(n int, what string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func joinNonEmpty(a, b string) string {
	if a != "" && b != "" {
		return a + " and " + b
	}
	return a + b
}

type exitWorktreeOutput struct {
	Action   string `json:"action"`
	Original string `json:"originalCwd"`
	Path     string `json:"worktreePath"`
	Branch   string `json:"worktreeBranch,omitempty"`
	Files    *int   `json:"discardedFiles,omitempty"`
	Commits  *int   `json:"discardedCommits,omitempty"`
	Restored string `json:"restoredCwd"`
	Missing  bool   `json:"originalCwdMissing"`
	Message  string `json:"message"`
}

func exitWorktree(ctx context.Context, s *worktrees, in exitWorktreeInput) protocol.ToolResult {
	w, lost, refusal := s.worktreeToLeave(ctx, in)
	if refusal != nil {
		return *refusal
	}
	out := exitWorktreeOutput{Action: in.Action, Original: w.former, Path: w.path, Branch: w.branch, Restored: w.former}
	if !isDir(w.former) {
		out.Restored, out.Missing = s.dir, true
	}
	if in.Action == "remove" {
		if _, err := s.git(ctx, w.top, "worktree", "remove", "--force", "--force", w.path); err != nil {
			return tool.Fail("Failed to remove worktree: %v", err)
		}
		_, _ = s.git(ctx, w.top, "branch", "-D", w.branch) // git may refuse; then the branch stays
		out.Files, out.Commits = &lost.files, &lost.commits
		out.Message = "Exited and removed worktree at “" + w.path + "”."
		if what := joinNonEmpty(pluralize(lost.commits, "commit"), pluralize(lost.files, "uncommitted file")); what != "" {
			out.Message += " Discarded " + what + "."
		}
	} else {
		if w.owned {
			_, _ = s.git(ctx, w.top, "worktree", "unlock", w.path) // it may not be locked
		}
		out.Message = "Exited worktree. Your work is preserved at " + w.String() + "."
	}
	out.Message += " Session is now back in “" + out.Restored + "”."
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shell.SetRoot(s.dir, out.Restored)
	s.tree = nil
	return tool.Text(out.Message, out)
}

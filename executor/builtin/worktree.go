package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type worktree struct {
	gitworktree.Worktree
	previousDir    string
	isOwned        bool // the session created the worktree or selected it by name, so the session may remove it
	belongsToAgent bool // the worktree belongs to a sub-agent, not to the session
}

// worktreeSwitcher moves the session into a git worktree and back.
type worktreeSwitcher struct {
	shell *tool.Shell
	git   gitworktree.Git
	clock tool.ClockWithIDs // provides ids, from which random names are made
	dir   string            // initial directory of the session

	mu          sync.Mutex
	currentTree *worktree // worktree in which the session works; nil means none
}

// Worktree is a git worktree in which a session or a sub-agent works from the start.
type Worktree struct {
	gitworktree.Worktree
	PreviousDir    string // directory to which the session returns when it leaves the worktree
	BelongsToAgent bool   // the worktree belongs to a sub-agent, not to the session
}

func newWorktreeSwitcher(o Options, sh *tool.Shell) *worktreeSwitcher {
	s := &worktreeSwitcher{shell: sh, git: gitworktree.Git{Environ: o.Environ}, clock: o.Clock, dir: o.CWD}
	if w := o.Worktree; w != nil {
		s.currentTree, s.dir = &worktree{Worktree: w.Worktree, previousDir: w.PreviousDir, isOwned: !w.Resumed, belongsToAgent: w.BelongsToAgent}, w.PreviousDir
	}
	return s
}

func (s *worktreeSwitcher) currentWorktree() (worktree, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.currentTree == nil {
		return worktree{}, false
	}
	return *s.currentTree, true
}

// refusePathInRepositoryOutsideWorktree refuses a path that is in the repository but not in the session's worktree. Nil means allowed.
func (s *worktreeSwitcher) refusePathInRepositoryOutsideWorktree(path string) (refusal *protocol.ToolResult) {
	w, inside := s.currentWorktree()
	if !inside || gitworktree.IsInside(w.Path, path) || !gitworktree.IsInside(w.Top, path) {
		return nil
	}
	who := "session"
	if w.belongsToAgent {
		who = "agent"
	}
	return new(tool.Refuse("This "+who+" is isolated in the worktree %s. Edit the worktree copy of this file instead of the shared-checkout path.", w.Path))
}

// restrictFileWritesToWorktree makes tools with the key file_path refuse files of the repository outside of the worktree.
func (s *worktreeSwitcher) restrictFileWritesToWorktree(tools []tool.Tool) []tool.Tool {
	for i, t := range tools {
		if row := claudecode.ToolNamed(t.Name); row.Class == claudecode.ToolClassWrite && row.Subject == "file_path" {
			tools[i] = s.addWorktreePathCheck(t)
		}
	}
	return tools
}

func (s *worktreeSwitcher) addWorktreePathCheck(fileTool tool.Tool) (toolWithPathCheck tool.Tool) {
	check := fileTool.Check
	fileTool.Check = func(ctx context.Context, raw json.RawMessage) *protocol.ToolResult {
		in, err := tool.Decode[struct {
			Path string `json:"file_path"`
		}](raw)
		if err == nil {
			if r := s.refusePathInRepositoryOutsideWorktree(s.shell.Path(in.Path)); r != nil {
				return r
			}
		}
		return check(ctx, raw)
	}
	return fileTool
}

func (s *worktreeSwitcher) switchToWorktree(w worktree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shell.SetDirs(w.Path, w.Path)
	s.currentTree = &w
}

type enterWorktreeInput struct {
	Name *string `json:"name"`
	Path *string `json:"path"`
}

func (s *worktreeSwitcher) tools() []tool.Tool {
	return []tool.Tool{enterWorktreeTool(s), exitWorktreeTool(s)}
}

func enterWorktreeTool(s *worktreeSwitcher) tool.Tool {
	return tool.Tool{
		Name: "EnterWorktree",
		Check: tool.TypedCheck(s, func(_ context.Context, s *worktreeSwitcher, in enterWorktreeInput) *protocol.ToolResult {
			if r := tool.InvalidInputResult("EnterWorktree", in.issues()); r != nil {
				return r
			}
			if _, inside := s.currentWorktree(); inside && in.Path == nil {
				return new(tool.Refuse("Already in a worktree session. Pass `path` to switch into another existing worktree, or use ExitWorktree to leave this one before creating a new worktree."))
			}
			return nil
		}),
		Run: tool.TypedRun(s, enterWorktree),
	}
}

func (in enterWorktreeInput) issues() []tool.Issue {
	switch {
	case in.Name == nil:
		return nil
	case in.Path != nil:
		return []tool.Issue{tool.CustomIssue("Provide at most one of `name` or `path`, not both.")}
	}
	if fault := gitworktree.WorktreeNameProblem(*in.Name); fault != "" {
		return []tool.Issue{tool.CustomIssue(fault, "name").WithMessageBeforePathInJSON()}
	}
	return nil
}

func enterWorktree(ctx context.Context, s *worktreeSwitcher, in enterWorktreeInput) protocol.ToolResult {
	top, err := s.git.MainWorktreeTop(ctx, s.shell.Dir())
	now, inside := s.currentWorktree()
	if inside {
		top = now.Top
	}
	switch {
	case err != nil && in.Path != nil:
		return tool.Fail("Cannot enter an existing worktree: the current directory is not in a git repository.")
	case err != nil:
		return tool.Fail("Cannot create a worktree: not in a git repository and no WorktreeCreate hooks are configured. " +
			"Configure WorktreeCreate/WorktreeRemove hooks in settings.json to use worktree isolation with other VCS systems.")
	}
	w := worktree{Worktree: gitworktree.Worktree{Top: top}, previousDir: s.shell.Dir()}
	if inside {
		w.previousDir = now.previousDir
	}
	head, refusal := "", (*protocol.ToolResult)(nil)
	if in.Path != nil {
		head, refusal = "Entered worktree at", s.fillFromExistingWorktree(ctx, &w, *in.Path)
	} else {
		n, _ := strconv.ParseInt(s.clock.NewID()[:8], 16, 64) // an id that is not hexadecimal counts as 0
		name := gitworktree.WorktreeNameFromNumber(n)
		if in.Name != nil {
			name = *in.Name
		}
		head, refusal = s.createOrResumeWorktree(ctx, &w, name)
	}
	if refusal != nil {
		return *refusal
	}
	s.switchToWorktree(w)
	message := head + " " + w.String() + "."
	if strings.HasPrefix(head, "Resumed") {
		message += " A worktree with this name already existed and was resumed as-is — it may carry an earlier session’s commits. " +
			"Pass a different name if you wanted a fresh worktree."
	}
	message += " The session is now working in the worktree. Use ExitWorktree to leave mid-session, or exit the session to be prompted."
	return tool.TextResult(message, struct {
		Path    string `json:"worktreePath"`
		Branch  string `json:"worktreeBranch,omitempty"`
		Message string `json:"message"`
	}{w.Path, w.Branch, message})
}

// String formats a worktree for messages: “path” on branch “name”.
func (w worktree) String() (quotedPathAndBranch string) {
	if w.Branch == "" {
		return "“" + w.Path + "”"
	}
	return "“" + w.Path + "” on branch “" + w.Branch + "”"
}

// createOrResumeWorktree creates the worktree with this name, or opens it if it exists, and stores it in w. messageStart is
// the beginning of the text for the model: "Created worktree at" or "Resumed worktree at".
func (s *worktreeSwitcher) createOrResumeWorktree(ctx context.Context, w *worktree, name string) (messageStart string, refusal *protocol.ToolResult) {
	made, err := s.git.CreateOrReuse(ctx, gitworktree.Options{Top: w.Top, Name: name, Lock: "claude session " + strings.ReplaceAll(name, "/", "+")})
	if err != nil {
		return "", new(tool.Fail("%v", err))
	}
	w.Worktree, w.isOwned = made, true
	if made.Resumed {
		return "Resumed worktree at", nil
	}
	return "Created worktree at", nil
}

// fillFromExistingWorktree stores the path and branch of the existing worktree at existingPath in destination. If the
// worktree cannot be entered, it returns a refusal.
func (s *worktreeSwitcher) fillFromExistingWorktree(ctx context.Context, destination *worktree, existingPath string) (refusal *protocol.ToolResult) {
	no := func(format string, args ...any) *protocol.ToolResult {
		return new(tool.Fail("Cannot enter worktree: "+format, args...))
	}
	existingPath = s.shell.Path(existingPath)
	target, err := filepath.EvalSymlinks(existingPath)
	if err != nil {
		return no("%s: ENOENT: no such file or directory, realpath '%[1]s'", existingPath)
	}
	_, inside := s.currentWorktree()
	trees := s.git.List(ctx, destination.Top)
	i := slices.IndexFunc(trees, func(o gitworktree.Worktree) bool { return o.Path == target })
	managed := gitworktree.WorktreesDir(destination.Top)
	switch {
	case i == 0:
		return no("%s is the main working tree, not a linked worktree.", target)
	case target == s.shell.Dir():
		return no("%s is the current working directory.", target)
	case inside && !isDir(managed):
		return no("%s does not exist, so %s cannot be a worktree managed by Claude Code.", managed, target)
	case i < 0 || inside && !gitworktree.IsInside(managed, target):
		return no("%s is not a registered worktree of %s. Run 'git -C %[2]s worktree list' to see registered worktrees.", target, destination.Top)
	}
	destination.Path, destination.Branch = target, trees[i].Branch
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

type exitWorktreeInput struct {
	Action  string `json:"action"`
	Discard bool   `json:"discard_changes"`
}

func exitWorktreeTool(s *worktreeSwitcher) tool.Tool {
	return tool.Tool{
		Name: "ExitWorktree",
		Check: tool.TypedCheck(s, func(ctx context.Context, s *worktreeSwitcher, in exitWorktreeInput) *protocol.ToolResult {
			_, _, refusal := s.worktreeToLeave(ctx, in)
			return refusal
		}),
		Run: tool.TypedRun(s, exitWorktree),
	}
}

// worktreeToLeave returns the current worktree and its unsaved work, or a refusal if the session cannot leave it.
func (s *worktreeSwitcher) worktreeToLeave(ctx context.Context, in exitWorktreeInput) (worktree, gitworktree.UnsavedWork, *protocol.ToolResult) {
	w, inside := s.currentWorktree()
	no := func(format string, args ...any) (worktree, gitworktree.UnsavedWork, *protocol.ToolResult) {
		return w, gitworktree.UnsavedWork{}, new(tool.Refuse(format, args...))
	}
	switch {
	case !inside:
		return no("No-op: there is no active EnterWorktree session to exit. This tool only operates on worktrees created by EnterWorktree in the current " +
			"session — it will not touch worktrees created manually or in a previous session. No filesystem changes were made.")
	case in.Action != "remove":
		return w, gitworktree.UnsavedWork{}, nil
	case !w.isOwned:
		return no("This session is not the owner of the worktree at “%s” — it either entered a pre-existing worktree via EnterWorktree({path}) or resumed into "+
			"a checkout whose liveness lock another running Claude Code session still holds — so this tool will not remove it. Use action: \"keep\" to "+
			"return to “%s”. If no other session is using it, remove it yourself with `git worktree remove`; while a live session's lock is present, git "+
			"will refuse and name the owner.", w.Path, w.previousDir)
	}
	u := s.git.UnsavedWork(ctx, w.Worktree)
	if u != (gitworktree.UnsavedWork{}) && !in.Discard {
		commits := countWithNounUnlessZero(u.Commits, "commit")
		if commits != "" {
			commits += " on “" + w.Branch + "”"
		}
		return no("Worktree has %s. Removing will discard this work permanently. Confirm with the user, then re-invoke with discard_changes: true — "+
			"or use action: \"keep\" to preserve the worktree.", joinNonEmptyWithAnd(countWithNounUnlessZero(u.Files, "uncommitted file"), commits))
	}
	return w, u, nil
}

func countWithNounUnlessZero(n int, noun string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func joinNonEmptyWithAnd(a, b string) string {
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

func exitWorktree(ctx context.Context, s *worktreeSwitcher, in exitWorktreeInput) protocol.ToolResult {
	w, lost, refusal := s.worktreeToLeave(ctx, in)
	if refusal != nil {
		return *refusal
	}
	out := exitWorktreeOutput{Action: in.Action, Original: w.previousDir, Path: w.Path, Branch: w.Branch, Restored: w.previousDir}
	if !isDir(w.previousDir) {
		out.Restored, out.Missing = s.dir, true
	}
	if in.Action == "remove" {
		if err := s.git.ForceRemoveWithBranch(ctx, w.Worktree); err != nil {
			return tool.Fail("Failed to remove worktree: %v", err)
		}
		out.Files, out.Commits = &lost.Files, &lost.Commits
		out.Message = "Exited and removed worktree at “" + w.Path + "”."
		if what := joinNonEmptyWithAnd(countWithNounUnlessZero(lost.Commits, "commit"), countWithNounUnlessZero(lost.Files, "uncommitted file")); what != "" {
			out.Message += " Discarded " + what + "."
		}
	} else {
		if w.isOwned {
			s.git.Unlock(ctx, w.Worktree)
		}
		out.Message = "Exited worktree. Your work is preserved at " + w.String() + "."
	}
	out.Message += " Session is now back in “" + out.Restored + "”."
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shell.SetDirs(s.dir, out.Restored)
	s.currentTree = nil
	return tool.TextResult(out.Message, out)
}

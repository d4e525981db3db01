package builtin

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/tests/tooltest"
)

// newRepository creates a repository with one commit.
func newRepository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	runGit(t, dir, "init", "-q", ".")
	runGit(t, dir, "commit", "-q", "--allow-empty", "-m", "x")
	return dir
}

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=b@c"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Texts observed with 2.1.329.
const (
	inside = " The session is now working in the worktree. Use ExitWorktree to leave mid-session, or exit the session to be prompted."
	noTree = "<tool_use_error>No-op: there is no active EnterWorktree session to exit. This tool only operates on worktrees created by EnterWorktree in the " +
		"current session — it will not touch worktrees created manually or in a previous session. No filesystem changes were made.</tool_use_error>"
	lost = " Removing will discard this work permanently. Confirm with the user, then re-invoke with discard_changes: true — or use action: \"keep\" " +
		"to preserve the worktree.</tool_use_error>"
)

func TestWorktree(t *testing.T) {
	dir := newRepository(t)
	tools := newTools(t, Options{CWD: dir})
	tree := filepath.Join(dir, ".claude", "worktrees", "a+b")
	named := "“" + tree + "” on branch “worktree-a+b”."

	tooltest.WantText(t, call(t, tools, "EnterWorktree", tooltest.Input{"name": "a/b"}).ToolResult, "Created worktree at "+named+inside)
	if got := runGit(t, dir, "worktree", "list", "--porcelain"); !strings.Contains(got, "\nlocked claude session a+b") {
		t.Errorf("not locked: %s", got)
	}
	tooltest.WantText(t, call(t, tools, "Bash", tooltest.Input{"command": "pwd; mkdir d; cd d"}).ToolResult, tree)
	if tools.Dir() != filepath.Join(tree, "d") {
		t.Errorf("the shell is in %s", tools.Dir())
	}
	tooltest.WantText(t, call(t, tools, "Bash", tooltest.Input{"command": "cd ../../../.."}).ToolResult, "Shell cwd was reset to "+tree)
	call(t, tools, "Bash", tooltest.Input{"command": "echo > f; echo > g; git -c user.name=a -c user.email=b@c commit -q --allow-empty -m y"})
	tooltest.WantError(t, call(t, tools, "ExitWorktree", tooltest.Input{"action": "remove"}).ToolResult,
		"<tool_use_error>Worktree has 2 uncommitted files and 1 commit on “worktree-a+b”."+lost)
	tooltest.WantText(t, call(t, tools, "ExitWorktree", tooltest.Input{"action": "keep"}).ToolResult,
		"Exited worktree. Your work is preserved at "+named+" Session is now back in “"+dir+"”.")
	tooltest.WantError(t, call(t, tools, "ExitWorktree", tooltest.Input{"action": "keep"}).ToolResult, noTree)

	tooltest.WantText(t, call(t, tools, "EnterWorktree", tooltest.Input{"name": "a/b"}).ToolResult, "Resumed worktree at "+named+
		" A worktree with this name already existed and was resumed as-is — it may carry an earlier session’s commits. "+
		"Pass a different name if you wanted a fresh worktree."+inside)
	r := call(t, tools, "ExitWorktree", tooltest.Input{"action": "remove", "discard_changes": true})
	message := "Exited and removed worktree at “" + tree + "”. Discarded 1 commit and 2 uncommitted files. Session is now back in “" + dir + "”."
	tooltest.WantText(t, r.ToolResult, message)
	tooltest.WantOutput(t, r.ToolResult, `{"action":"remove","originalCwd":"`+dir+`","worktreePath":"`+tree+`","worktreeBranch":"worktree-a+b","discardedFiles":2,`+
		`"discardedCommits":1,"restoredCwd":"`+dir+`","originalCwdMissing":false,"message":"`+message+`"}`)
	if _, err := os.Stat(tree); err == nil || strings.Contains(runGit(t, dir, "branch"), "worktree-") {
		t.Error("the work tree or its branch is still there")
	}
	tooltest.WantText(t, call(t, tools, "Bash", tooltest.Input{"command": "pwd"}).ToolResult, dir)
}

func TestEnterByPath(t *testing.T) {
	dir := newRepository(t)
	runGit(t, dir, "worktree", "add", "-q", "--detach", "one")
	tools := newTools(t, Options{CWD: dir})
	tree := filepath.Join(dir, "one")
	r := call(t, tools, "EnterWorktree", tooltest.Input{"path": "one"})
	message := "Entered worktree at “" + tree + "”." + inside
	tooltest.WantText(t, r.ToolResult, message)
	tooltest.WantOutput(t, r.ToolResult, `{"worktreePath":"`+tree+`","message":"`+message+`"}`)
	for path, want := range map[string]string{
		"nope": tree + "/nope: ENOENT: no such file or directory, realpath '" + tree + "/nope'",
		".":    tree + " is the current working directory.",
		"..":   dir + " is the main working tree, not a linked worktree.",
		"/":    dir + "/.claude/worktrees does not exist, so / cannot be a worktree managed by Claude Code.",
	} {
		tooltest.WantError(t, call(t, tools, "EnterWorktree", tooltest.Input{"path": path}).ToolResult, "Cannot enter worktree: "+want)
	}
	if r := check(t, tools, "EnterWorktree", `{"name":"x"}`); r == nil || !strings.Contains(r.Content.Text, "Already in a worktree session.") {
		t.Errorf("a second work tree: %+v", r)
	}
	if r := check(t, tools, "ExitWorktree", `{"action":"remove"}`); r == nil || !strings.Contains(r.Content.Text, "This session is not the owner of the worktree at “"+tree+"”") {
		t.Errorf("removal: %+v", r)
	}
	const isolated = ". Edit the worktree copy of this file instead of the shared-checkout path."
	for name, input := range map[string]string{
		"Write": `{"file_path":"` + dir + `/x","content":"a"}`,
		"Edit":  `{"file_path":"../x","old_string":"a","new_string":"b"}`,
	} {
		if r := check(t, tools, name, input); r == nil || r.Output != "Error: This session is isolated in the worktree "+tree+isolated {
			t.Errorf("%s outside: %+v", name, r)
		}
	}
	if r := check(t, tools, "Write", `{"file_path":"x","content":"a"}`); r != nil {
		t.Errorf("Write inside: %+v", r)
	}
	call(t, tools, "ExitWorktree", tooltest.Input{"action": "keep"})
	tooltest.WantError(t, call(t, tools, "EnterWorktree", tooltest.Input{"path": "/"}).ToolResult,
		"Cannot enter worktree: / is not a registered worktree of "+dir+". Run 'git -C "+dir+" worktree list' to see registered worktrees.")
}

func TestEnterWorktreeRefusals(t *testing.T) {
	tools := newTools(t, Options{})
	tooltest.WantError(t, call(t, tools, "EnterWorktree", tooltest.Input{}).ToolResult, "Cannot create a worktree: not in a git repository and no WorktreeCreate hooks are configured. "+
		"Configure WorktreeCreate/WorktreeRemove hooks in settings.json to use worktree isolation with other VCS systems.")
	tooltest.WantError(t, call(t, tools, "EnterWorktree", tooltest.Input{"path": "x"}).ToolResult, "Cannot enter an existing worktree: the current directory is not in a git repository.")
	for input, want := range map[string]string{
		`{"name":"a b"}`: "[\n  {\n    \"code\": \"custom\",\n    \"message\": \"Invalid worktree name \\\"a b\\\": each \\\"/\\\"-separated segment must be non-empty " +
			"and contain only letters, digits, dots, underscores, and dashes\",\n    \"path\": [\n      \"name\"\n    ]\n  }\n]",
		`{"name":"a/.."}`: "[\n  {\n    \"code\": \"custom\",\n    \"message\": \"Invalid worktree name \\\"a/..\\\": must not contain \\\".\\\" or \\\"..\\\" path segments\",\n" +
			"    \"path\": [\n      \"name\"\n    ]\n  }\n]",
		`{"name":"a","path":"b"}`: "[\n  {\n    \"code\": \"custom\",\n    \"path\": [],\n    \"message\": \"Provide at most one of `name` or `path`, not both.\"\n  }\n]",
	} {
		r := check(t, tools, "EnterWorktree", input)
		if r == nil {
			t.Fatalf("%s passes", input)
		}
		if diff := cmp.Diff("InputValidationError: "+want, r.Output); diff != "" {
			t.Errorf("%s (-want +got):\n%s", input, diff)
		}
	}
	empty := t.TempDir()
	runGit(t, empty, "init", "-q", ".")
	r := call(t, newTools(t, Options{CWD: empty}), "EnterWorktree", tooltest.Input{"name": "x"})
	if want := `Failed to resolve base branch "HEAD": git rev-parse returned no commit for HEAD (`; !r.IsError || !strings.HasPrefix(r.Content.Text, want) {
		t.Errorf("%q, want %q", r.Content.Text, want)
	}
}

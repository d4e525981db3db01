// Package builtin implements the built-in tools of Claude Code. They read and write real files and run real commands.
//
// Invalid calls and failures are reported as a [protocol.ToolResult], never as a panic or a Go error. Permissions are
// checked before a call reaches this package.
package builtin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/internal/bash"
	"github.com/claudeless/claudeless/executor/internal/files"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// Options configure [New]. CWD is required.
type Options struct {
	CWD            string   // absolute initial directory of the session
	PID            int      // process id of the session; 0 means unknown
	AdditionalDirs []string // other directories that the shell may change to
	Environ        []string // environment of commands ("K=V")
	// OutputDir is the directory, created when needed, for results that are too large to show. If it is empty, such results are truncated.
	OutputDir string
	// Clock provides the time, and the ids of saved outputs, notebook cells and worktrees. Nil means that the time is
	// constant and the ids are consecutive numbers.
	Clock ClockWithIDs
	// Worktree is the git worktree in which the session works; its root is CWD. Calls may not change a file of the same
	// repository outside of the worktree. Nil means that the session does not start in a worktree.
	Worktree *Worktree
	Allowed  func(name string) bool // reports whether the session has a tool; nil means that it has all
	Access   FileAccess             // reports which files may be read and changed; nil means all
	Hooks    Hooks                  // runs the hooks of events that tools raise; nil means none
	// Tasks holds the background commands; nil means that commands cannot run in the background. The caller closes it.
	Tasks     *task.Set
	Skills    Skills            // loads the skills; nil means that no skill is available
	Modes     PermissionModes   // reads and changes the permission mode; nil means that the mode does not change
	Paths     SessionPaths      // nil means that plans are not saved; the tools of the task list need it
	ReadFiles map[string]string // holds the files the model saw in earlier runs of the session: content by path, with "\n" between lines
	// Answers are the scripted answers to AskUserQuestion, by question. Answers in a call take precedence.
	Answers map[string]string
}

// SessionPaths are the paths of files that belong to the session.
type SessionPaths interface {
	PlanFileCreatingName() string // path of the plan file; "" means that plans are not saved
	TaskListDir() string          // directory of the task list
}

// FileAccess reports which files may be read and changed.
type FileAccess interface {
	// IsChangeableUnread reports whether an agent (nil means the session) may change a file that its model has not read.
	IsChangeableUnread(path string, agent *protocol.AgentRef) bool
	// IsReadDenied reports whether a deny rule forbids reading a file. Searches skip such files.
	IsReadDenied(path string) bool
}

// ClockWithIDs provides the time and unique ids.
type ClockWithIDs = tool.ClockWithIDs

// fixedTimeSequentialIDClock is a Clock with a constant time and consecutive ids.
type fixedTimeSequentialIDClock struct {
	mu     sync.Mutex
	lastID int
}

func (*fixedTimeSequentialIDClock) Now() (zeroTime time.Time) { return time.Time{} }

func (n *fixedTimeSequentialIDClock) NewID() (nextSequentialID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lastID++
	return fmt.Sprintf("%08d", n.lastID)
}

// Tools are the built-in tools of one session. Methods may be called from many goroutines.
type Tools struct {
	allowed     func(name string) bool
	registry    map[string]tool.Tool
	definitions func() []protocol.Tool // returns all tools, sorted by name; computed at the first call

	shell *tool.Shell
	files *files.SeenFileTracker
}

var _ executor.Executor = (*Tools)(nil)

// New creates the tools of a session. It starts no process.
func New(o Options) (*Tools, error) {
	if !filepath.IsAbs(o.CWD) {
		return nil, fmt.Errorf("builtin tools: working directory %q is not absolute", o.CWD)
	}
	o.CWD = filepath.Clean(o.CWD)
	o.Clock = cmp.Or[ClockWithIDs](o.Clock, &fixedTimeSequentialIDClock{})
	t := &Tools{allowed: o.Allowed, shell: newShell(o), definitions: sync.OnceValue(Definitions)}
	if t.allowed == nil {
		t.allowed = func(string) bool { return true }
	}
	t.files = files.New(files.Options{Paths: t.shell, Clock: o.Clock, Access: o.Access})
	for path, content := range o.ReadFiles {
		if !filepath.IsAbs(path) { // an earlier run recorded the path as written in the call, so it may be relative
			path = filepath.Join(o.CWD, path)
		}
		t.files.RecordSeenInEarlierRun(path, content)
	}
	f := toolStates{
		files:     t.files,
		finder:    files.NewFinder(files.FinderOptions{Paths: t.shell, Clock: o.Clock, Access: o.Access}),
		commands:  bash.New(bash.Options{Shell: t.shell, Clock: o.Clock, Files: t.files, Tasks: o.Tasks, OutputDir: o.OutputDir, Snapshot: t.newRepositorySnapshotFunc(o)}),
		worktrees: newWorktreeSwitcher(o, t.shell),
		cron:      &cronJobs{tasks: o.Tasks, clock: o.Clock, projectDir: o.CWD, pid: o.PID, sessionID: t.shell.Getenv("CLAUDE_CODE_SESSION_ID")},
		todos:     &todoList{},
		tasks:     &checklist{taskHooks: o.Hooks, paths: o.Paths},
		planMode:  &planTools{modes: o.Modes, paths: o.Paths},
		skills:    o.Skills,
		answers:   maps.Clone(o.Answers),
	}
	tools := f.allBuiltinToolsSortedByName()
	t.registry = make(map[string]tool.Tool, len(tools))
	for _, one := range tools {
		t.registry[one.Name] = one
	}
	return t, nil
}

func newShell(o Options) *tool.Shell {
	s := tool.ShellOptions{CWD: o.CWD, Dirs: slices.Clone(o.AdditionalDirs), Environ: append(slices.Clone(o.Environ), "CLAUDECODE=1", "GIT_EDITOR=true")}
	if o.Hooks != nil {
		s.Script = o.Hooks.ShellCodeForLaterCommands
	}
	return tool.NewShell(s)
}

// Close stops the background processes that finished commands have left running. Commands that start later fail. Close
// may be called more than once.
func (t *Tools) Close() { t.shell.Close() }

// Tools returns the tools of this session, sorted by name, including those that are not simulated.
func (t *Tools) Tools(context.Context) ([]protocol.Tool, error) {
	return slices.DeleteFunc(slices.Clone(t.definitions()), func(d protocol.Tool) bool { return !t.allowed(d.Name) }), nil
}

// PrepareInput returns the input with which a call is shown and run. It adds the defaults that the real CLI adds, and removes trailing spaces
// from text that will be written to a file. An input is unchanged if it is not a JSON object, or if the session does not have the tool.
func (t *Tools) PrepareInput(call protocol.ToolUse) (inputWithDefaults json.RawMessage) {
	if !t.allowed(call.Name) {
		return call.Input
	}
	return t.registry[call.Name].PreparedInput(call.Input)
}

// Precheck returns the error result of a call that cannot run, or nil. A call cannot run if the session does not have the tool,
// if the input is invalid, or if a check of the tool refuses it. Precheck is called before permissions are checked.
func (t *Tools) Precheck(ctx context.Context, call protocol.ToolUse) *protocol.ToolResult {
	b, ok := t.registry[replaceTaskStopAlias(call.Name)]
	if !ok {
		return nil
	}
	call.Input, _ = b.ResolveAliases(call.Input)
	if r := t.refuseDisallowedOrInvalid(b, call); r != nil {
		return r
	}
	if b.Check == nil {
		return nil
	}
	return b.Check(files.WithCall(ctx, call), call.Input)
}

func (t *Tools) refuseDisallowedOrInvalid(b tool.Tool, call protocol.ToolUse) *protocol.ToolResult {
	if !t.allowed(b.Name) {
		return new(protocol.UsageErrorResult(fmt.Sprintf("Error: No such tool available: %s. %[1]s is disabled for this session, in subagents as well as here.", call.Name)))
	}
	return b.Validate(call)
}

// Execute runs one call of a built-in tool. For all other tools the error is [executor.ErrUnknownTool].
func (t *Tools) Execute(ctx context.Context, call protocol.ToolUse) (executor.Result, error) {
	b, ok := t.registry[replaceTaskStopAlias(call.Name)]
	if !ok {
		return executor.Result{}, executor.ErrUnknownTool
	}
	var note string
	call.Input, note = b.ResolveAliases(call.Input)
	if r := t.refuseDisallowedOrInvalid(b, call); r != nil {
		return executor.ResultOf(*r), nil
	}
	if ctx.Err() != nil {
		return executor.ResultOf(executor.InterruptedResult()), nil
	}
	r := b.Run(files.WithCall(ctx, call), call)
	if note != "" && !r.IsError {
		r.Content.Text += "\n\n" + note
	}
	return executor.Result{ToolResult: r.ToolResult, MiddlewareReport: executor.MiddlewareReport{EventsBefore: r.EventsBefore, EventsAfter: r.EventsAfter}}, nil
}

// Tool returns the built-in tool with this name, if the session has it.
func (t *Tools) Tool(name string) (protocol.Tool, bool) {
	name = replaceTaskStopAlias(name)
	tools := t.definitions()
	i, ok := slices.BinarySearchFunc(tools, name, func(d protocol.Tool, name string) int { return strings.Compare(d.Name, name) })
	if !ok || !t.allowed(name) {
		return protocol.Tool{}, false
	}
	return tools[i], true
}

// Dir returns the current directory, from which relative paths start.
func (t *Tools) Dir() string { return t.shell.Dir() }

// ObservedInput returns a call's input as hooks and hosts see it: aliases of keys are replaced by the keys of the tool's schema,
// the path of a file to read, write or edit is absolute, and ToolSearch has its default limit. Nil means that the input is unchanged.
func (t *Tools) ObservedInput(call protocol.ToolUse) (inputForHooksAndHosts json.RawMessage) {
	known, _ := t.registry[replaceTaskStopAlias(call.Name)].ResolveAliases(removePlanWrittenByModel(call))
	var in tool.OrderedObject
	if call.Name == "ToolSearch" && json.Unmarshal(known, &in) == nil && in.Get("query") != nil && in.Get("max_results") == nil {
		known, _ = in.Set("max_results", json.RawMessage("5")).MarshalJSON() // decoded values can be encoded
	}
	changed := !bytes.Equal(known, call.Input)
	call.Input = known
	if whole := t.files.InputWithAbsolutePath(call); whole != nil {
		return whole
	}
	if changed {
		return known
	}
	return nil
}

// TargetFile returns the absolute path of the file that a call reads or writes; empty means none.
func (t *Tools) TargetFile(call protocol.ToolUse) string { return t.files.TargetFile(call) }

// TakeFileChangedSinceCall returns the path of the file that an Edit or Write call wrote if the file has changed since the call, for
// example because a hook formatted it, and "" otherwise. It records that the model has not seen the new content.
func (t *Tools) TakeFileChangedSinceCall(call protocol.ToolUse) (changedPath string) {
	return t.files.TrackerOfSubagentOrSession(call.Agent).RecordChangeSinceCallAsUnseen(call)
}

// ChangedFile is a file that was changed after the session had written it.
type ChangedFile = files.FileChangedAfterWrite

// TakeFilesChangedAfterWrite returns the files that changed after the agent had written them. A nil agent means the session itself. Each
// change is returned only once.
func (t *Tools) TakeFilesChangedAfterWrite(agent *protocol.AgentRef) (filesChangedAfterAgentWroteThem []ChangedFile) {
	return t.files.TrackerOfSubagentOrSession(agent).TakeFilesChangedAfterWrite()
}

// RecordInstructionsAsRead records that the model of the session has received the text of an instruction file.
func (t *Tools) RecordInstructionsAsRead(path string) { t.files.RecordPartlySeen(path) }

// ForgetSeenFiles forgets which files the model of the session has seen, because a compaction has removed them from the conversation. It
// returns their paths, the last modified one first.
func (t *Tools) ForgetSeenFiles() (paths []string) { return t.files.ForgetAll() }

// MaxWholeFileBytes is the size of the largest file that is read as a whole.
const MaxWholeFileBytes = files.MaxWholeFileBytes

// ReadFile reads a file as the Read tool does, even if the session does not have that tool. first is the first line,
// from 1; 0 means the whole file. lines is the number of lines. The file counts as read, so it may be edited. If the
// model has already seen the whole file in its current state, wasSeen is true, and first and lines are ignored.
func (t *Tools) ReadFile(ctx context.Context, path string, firstLine, lineCount int) (result protocol.ToolResult, wasSeen bool) {
	return t.files.ReadLines(ctx, path, firstLine, lineCount)
}

// newRepositorySnapshotFunc returns a function that records a repository's state before a Bash command. The function returns nil, so that
// no changed files are listed, if the session lacks the tool Edit or its mode is neither bypassPermissions nor auto. If the session began
// outside of a repository, only the first command in a repository gets a snapshot. The result of this command then reports its changes as
// unknown (observed with 2.1.330).
func (t *Tools) newRepositorySnapshotFunc(o Options) (snapshotRepositoryBeforeBash func(context.Context, string) *gitworktree.Snapshot) {
	startedInRepository, hasSnapshot := gitworktree.NearestDirectoryWithDotGit(o.CWD) != "", atomic.Bool{}
	return func(ctx context.Context, dir string) *gitworktree.Snapshot {
		if o.Modes == nil || !t.allowed("Edit") || o.Modes.Mode() != protocol.ModeBypass && o.Modes.Mode() != protocol.ModeAuto {
			return nil
		}
		if !startedInRepository {
			if gitworktree.NearestDirectoryWithDotGit(dir) == "" || hasSnapshot.Swap(true) {
				return nil
			}
			return &gitworktree.Snapshot{IsNew: true}
		}
		return gitworktree.Git{Environ: o.Environ}.Snapshot(ctx, dir)
	}
}

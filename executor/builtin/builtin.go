// Package builtin implements the built-in tools of Claude Code: they read and
// write real files and run real commands.
//
// Problems with a call, such as an invalid input, are reported as a
// [protocol.ToolResult], never as a panic or a Go error. Permissions are
// checked before a call reaches this package.
package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/internal/bash"
	"github.com/claudeless/claudeless/executor/internal/files"
	"github.com/claudeless/claudeless/executor/internal/search"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/executor/shell"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// Options says where the tools work. CWD is required.
type Options struct {
	// CWD is the absolute directory the session starts in.
	CWD string
	// AdditionalDirs are directories a shell may stay in beside CWD.
	AdditionalDirs []string
	// Environ is the environment of commands ("K=V").
	Environ []string
	// OutputDir keeps results that are too large to show; it is made when
	// needed. Empty = such results are cut.
	OutputDir string
	// Clock tells the time, and names kept results, cells and work trees. Nil =
	// no time passes, and names are numbers.
	Clock Clock
	// Allowed says which tools exist in this session; nil = all.
	Allowed func(name string) bool
	// Access says which files may be read; nil = all.
	Access Access
	// Hooks is what users run beside the tools; nil = nothing.
	Hooks Hooks
	// Tasks keeps commands in the background; nil = there are none. The caller
	// closes it.
	Tasks *task.Set
	// Skills are what the model may load; nil = there are none.
	Skills Skills
	// Modes is the permission mode; nil = it stays as it is.
	Modes Modes
	// PlanFile tells where the plan is kept; nil, or an empty answer = nowhere.
	PlanFile func() string
	// Answers to AskUserQuestion by question; the call's own come first.
	Answers map[string]string
}

// Access tells what may be done with files.
type Access interface {
	// Readable tells whether a file may be read without a question. One that may
	// not is not written or edited either before it has been read.
	Readable(path string) bool
	// Hidden tells whether a deny rule keeps a file from being read: searches pass
	// it over.
	Hidden(path string) bool
}

// Clock tells the time and makes names that nothing else has.
type Clock = tool.Clock

// numbers is a clock that stands still and counts.
type numbers struct {
	mu   sync.Mutex
	last int
}

// Now is always the same.
func (*numbers) Now() time.Time { return time.Time{} }

// NewID is the next number.
func (n *numbers) NewID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	return fmt.Sprintf("%08d", n.last)
}

// Tools is the set of built-in tools of one session. Methods may be called
// from many goroutines.
type Tools struct {
	allowed     func(name string) bool
	registry    map[string]tool.Tool
	definitions func() []protocol.Tool // by name, made when first needed

	shell *shell.Shell
	files *files.Files
}

var _ executor.Executor = (*Tools)(nil)

// New makes the tools of a session. It starts nothing and touches no file.
func New(o Options) (*Tools, error) {
	if !filepath.IsAbs(o.CWD) {
		return nil, fmt.Errorf("builtin tools: working directory %q is not absolute", o.CWD)
	}
	o.CWD = filepath.Clean(o.CWD)
	if o.Clock == nil {
		o.Clock = &numbers{}
	}
	t := &Tools{allowed: o.Allowed, shell: newShell(o), definitions: sync.OnceValue(Definitions)}
	if t.allowed == nil {
		t.allowed = func(string) bool { return true }
	}
	t.files = files.New(files.Options{Where: t.shell, Clock: o.Clock, Access: o.Access})
	f := toolFamilies{
		files:    t.files,
		finder:   search.New(search.Options{Where: t.shell, Clock: o.Clock, Access: o.Access}),
		commands: bash.New(bash.Options{Shell: t.shell, Clock: o.Clock, Reader: t.files, Tasks: o.Tasks, OutputDir: o.OutputDir}),
		trees:    &worktrees{shell: t.shell, clock: o.Clock, dir: o.CWD},
		jobs:     &cronJobs{tasks: o.Tasks, clock: o.Clock, dir: o.CWD, session: t.shell.Getenv("CLAUDE_CODE_SESSION_ID")},
		todos:    &todoList{},
		tasks:    &checklist{hooks: o.Hooks},
		plans:    &planTools{modes: o.Modes, file: o.PlanFile},
		skills:   o.Skills,
		answers:  maps.Clone(o.Answers),
	}
	tools := f.all()
	t.registry = make(map[string]tool.Tool, len(tools))
	for _, one := range tools {
		t.registry[one.Name] = one
	}
	return t, nil
}

func newShell(o Options) *shell.Shell {
	s := shell.Options{
		CWD: o.CWD, Dirs: slices.Clone(o.AdditionalDirs), Environ: append(slices.Clone(o.Environ), "CLAUDECODE=1", "GIT_EDITOR=true"),
	}
	if o.Hooks != nil {
		s.Script = o.Hooks.Script
	}
	return shell.New(s)
}

// Close ends what commands have left behind. It may be called more than once;
// commands that come later fail.
func (t *Tools) Close() { t.shell.Close() }

// Tools lists the tools that exist in this session by name, those that are
// listed but not simulated included.
func (t *Tools) Tools(context.Context) ([]protocol.Tool, error) {
	definitions := t.definitions()
	out := make([]protocol.Tool, 0, len(definitions))
	for _, d := range definitions {
		if t.allowed(d.Name) {
			out = append(out, d)
		}
	}
	return out, nil
}

// Prepare returns a call's input as it is shown and run: a default that the
// real CLI shows is filled in, and blanks at line ends are taken from what is
// written to a file. Input that is not for one of these tools, or that is no
// object, comes back as it is.
func (t *Tools) Prepare(call protocol.ToolUse) json.RawMessage {
	return t.registry[call.Name].Prepared(call.Input)
}

// Check refuses calls that never reach permission checks: tools that do not
// exist in this session, and bad input. Nil = the call may go on, also when
// the tool is none of ours.
func (t *Tools) Check(ctx context.Context, call protocol.ToolUse) *protocol.ToolResult {
	b, ok := t.registry[canonical(call.Name)]
	if !ok {
		return nil
	}
	call.Input, _ = b.Known(call.Input)
	if r := t.admit(b, call); r != nil {
		return r
	}
	if b.Check == nil {
		return nil
	}
	return b.Check(ctx, call.Input)
}

func (t *Tools) admit(b tool.Tool, call protocol.ToolUse) *protocol.ToolResult {
	if !t.allowed(b.Name) {
		return new(protocol.UsageError(fmt.Sprintf(
			"Error: No such tool available: %s. %[1]s is disabled for this session, in subagents as well as here.", call.Name)))
	}
	return b.Input.Validate(call)
}

// Execute runs one call. A tool that is none of ours is
// [executor.ErrUnknownTool].
func (t *Tools) Execute(ctx context.Context, call protocol.ToolUse) (executor.Result, error) {
	b, ok := t.registry[canonical(call.Name)]
	if !ok {
		return executor.Result{}, executor.ErrUnknownTool
	}
	var note string
	call.Input, note = b.Known(call.Input)
	if r := t.admit(b, call); r != nil {
		return executor.Plain(*r), nil
	}
	if ctx.Err() != nil {
		return executor.Plain(executor.Interrupted()), nil
	}
	r := b.Run(ctx, call)
	if note != "" && !r.IsError {
		r.Content.Text += "\n\n" + note
	}
	return executor.Result{ToolResult: r.ToolResult, Trace: executor.Trace{Before: r.Before, After: r.After}}, nil
}

// Tool returns the tool with this name if it exists in this session.
func (t *Tools) Tool(name string) (protocol.Tool, bool) {
	name = canonical(name)
	tools := t.definitions()
	i, ok := slices.BinarySearchFunc(tools, name, func(d protocol.Tool, name string) int { return strings.Compare(d.Name, name) })
	if !ok || !t.allowed(name) {
		return protocol.Tool{}, false
	}
	return tools[i], true
}

// Dir is the directory the shell is in now: relative paths start from it.
func (t *Tools) Dir() string { return t.shell.Dir() }

// Observed returns a call's input as hooks and hosts see it: keys have the
// tool's own names there, and the path of a file to read, write or edit is
// absolute. Nil = the input itself.
func (t *Tools) Observed(call protocol.ToolUse) json.RawMessage {
	known, _ := t.registry[canonical(call.Name)].Known(call.Input)
	changed := !bytes.Equal(known, call.Input)
	call.Input = known
	if whole := t.files.Observed(call); whole != nil {
		return whole
	}
	if changed {
		return known
	}
	return nil
}

// Touched names the file that a call reads or writes, as an absolute path;
// empty = none.
func (t *Tools) Touched(call protocol.ToolUse) string { return t.files.Touched(call) }

// Open reads a file as the Read tool does, whether or not the session has that
// tool; first and lines of 0 are all of it. Edits may follow as after a Read.
func (t *Tools) Open(ctx context.Context, path string, first, lines int) protocol.ToolResult {
	return t.files.Open(ctx, path, first, lines)
}

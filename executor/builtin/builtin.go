// Package builtin holds the built-in tools: it really reads and writes files
// and really runs commands.
//
// Its one invariant: no input makes a tool panic or a call fail as a Go error;
// whatever is wrong with a call is its [protocol.ToolResult]. It knows nothing
// of permissions, scenarios or who asks.
package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/shell"
	"github.com/claudeless/claudeless/internal/ordered"
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
	// Announce runs the hooks of a task's creation or completion. A feedback keeps
	// it from happening; the events are shown before the result. Nil = there are
	// none.
	Announce func(ctx context.Context, in protocol.HookInput) (feedback string, shown []protocol.Event)
	// Script is shell code that runs before each command, in its shell; nil = none.
	Script func() string
	// OutputDir keeps results that are too large to show; it is made when
	// needed. Empty = such results are cut.
	OutputDir string
	Now       func() time.Time // nil = durations are 0
	NewID     func() string    // names of kept results; nil = they are numbered
	// Allowed says which tools exist in this session; nil = all.
	Allowed func(name string) bool
	// Tasks keeps commands in the background; nil = there are none. The caller
	// closes it.
	Tasks *task.Set
	// Skill loads a skill, or says why it cannot be had; nil = there are none.
	Skill func(ctx context.Context, name, args string) (Skill, error)
	// CheckSkill says why a skill cannot be had before anybody is asked for
	// permission; nil = there is nothing to say.
	CheckSkill func(name string) error
	// Readable tells whether a file may be read without a question. One that may
	// not is not written or edited either before it has been read. Nil = all may.
	Readable func(path string) bool
	// Hidden tells whether a deny rule keeps a file from being read: searches pass
	// it over. Nil = none is.
	Hidden func(path string) bool
	// Mode and SetMode are the permission mode, for the tools that begin and end
	// planning; nil = it stays as it is.
	Mode    func() protocol.PermissionMode
	SetMode func(protocol.PermissionMode) error
	// PlanFile tells where the plan is kept; nil, or an empty answer = nowhere.
	PlanFile func() string
	// Answers to AskUserQuestion by question; the call's own come first.
	Answers map[string]string
}

// Tools is the set of built-in tools of one session. Methods may be called
// from many goroutines.
type Tools struct {
	o           Options // fixed at creation
	registry    map[string]tool
	definitions func() []protocol.Tool // by name, made when first needed

	shell *shell.Shell

	mu    sync.Mutex
	seen  map[string]sight // of files, by path
	kept  int              // names given by newName
	tree  *worktree        // that the session is in; nil = none
	todos []todo
	tasks []*entry
}

var _ executor.Executor = (*Tools)(nil)

// New makes the tools of a session. It starts nothing and touches no file.
func New(o Options) (*Tools, error) {
	if !filepath.IsAbs(o.CWD) {
		return nil, fmt.Errorf("builtin tools: working directory %q is not absolute", o.CWD)
	}
	o.CWD = filepath.Clean(o.CWD)
	o.AdditionalDirs = slices.Clone(o.AdditionalDirs)
	o.Environ = slices.Clone(o.Environ)
	o.Answers = maps.Clone(o.Answers)
	if o.Now == nil {
		o.Now = func() time.Time { return time.Time{} }
	}
	if o.Readable == nil {
		o.Readable = func(string) bool { return true }
	}
	if o.Allowed == nil {
		o.Allowed = func(string) bool { return true }
	}
	return &Tools{
		o: o, registry: byName(), definitions: sync.OnceValue(Definitions), seen: map[string]sight{},
		shell: shell.New(shell.Options{
			CWD: o.CWD, Dirs: o.AdditionalDirs, Environ: append(slices.Clone(o.Environ), "CLAUDECODE=1", "GIT_EDITOR=true"), Script: o.Script,
		}),
	}, nil
}

// Close ends what commands have left behind. It may be called more than once;
// commands that come later fail.
func (t *Tools) Close() { t.shell.Close() }

// Tools lists the tools that exist in this session by name, those that are
// listed but not simulated included.
func (t *Tools) Tools(context.Context) ([]protocol.Tool, error) {
	var out []protocol.Tool
	for _, d := range t.definitions() {
		if t.o.Allowed(d.Name) {
			out = append(out, d)
		}
	}
	return out, nil
}

// Check refuses calls that never reach permission checks: tools that do not
// exist in this session, and bad input. Nil = the call may go on, also when
// the tool is none of ours.
func (t *Tools) Check(ctx context.Context, call protocol.ToolUse) *protocol.ToolResult {
	b, ok := t.registry[canonical(call.Name)]
	if !ok {
		return nil
	}
	if r := t.admit(b, call); r != nil {
		return r
	}
	if b.check == nil {
		return nil
	}
	return b.check(ctx, t, call.Input)
}

func (t *Tools) admit(b tool, call protocol.ToolUse) *protocol.ToolResult {
	if !t.o.Allowed(b.name) {
		r := protocol.UsageError(fmt.Sprintf(
			"Error: No such tool available: %s. %[1]s is disabled for this session, in subagents as well as here.", call.Name))
		return &r
	}
	return b.input.validate(call)
}

// Execute runs one call. A tool that is none of ours is
// [executor.ErrUnknownTool].
func (t *Tools) Execute(ctx context.Context, call protocol.ToolUse) (executor.Result, error) {
	b, ok := t.registry[canonical(call.Name)]
	if !ok {
		return executor.Result{}, executor.ErrUnknownTool
	}
	if r := t.admit(b, call); r != nil {
		return executor.Plain(*r), nil
	}
	if ctx.Err() != nil {
		return executor.Plain(executor.Interrupted()), nil
	}
	return b.run(ctx, t, call), nil
}

// Tool returns the tool with this name if it exists in this session.
func (t *Tools) Tool(name string) (protocol.Tool, bool) {
	name = canonical(name)
	tools := t.definitions()
	i, ok := slices.BinarySearchFunc(tools, name, func(d protocol.Tool, name string) int { return strings.Compare(d.Name, name) })
	if !ok || !t.o.Allowed(name) {
		return protocol.Tool{}, false
	}
	return tools[i], true
}

// Dir is the directory the shell is in now: relative paths start from it.
func (t *Tools) Dir() string { return t.shell.Dir() }

// named is a path as results name it: as the call gave it, cleaned.
func named(p string) string { return filepath.Clean(p) }

// path makes a path absolute; "~/" is the home directory.
func (t *Tools) path(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		if home := t.env("HOME"); home != "" {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(t.Dir(), p)
}

// Observed returns a call's input as hooks and hosts see it: the path of a file
// to read, write or edit is absolute there. Nil = the input itself.
func (t *Tools) Observed(call protocol.ToolUse) json.RawMessage {
	switch call.Name {
	case "Read", "Write", "Edit":
	default:
		return nil
	}
	const key = "file_path"
	in, err := ordered.Parse(call.Input)
	var path string
	if err != nil || json.Unmarshal(in.Get(key), &path) != nil || path == "" {
		return nil
	}
	whole := t.path(path)
	if whole == path {
		return nil
	}
	out, err := in.With(key, quote(whole)).MarshalJSON()
	if err != nil {
		return nil
	}
	return out
}

// env reads a variable of the session's environment; the last one counts.
func (t *Tools) env(key string) string {
	for _, kv := range slices.Backward(t.o.Environ) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}

// sight is what the session last saw of a file.
type sight struct {
	digest [sha256.Size]byte
	shown  bool // the model has all of it
}

// know notes that the model has the current content of a file.
func (t *Tools) know(path, content string) { t.saw(path, content, true) }

// saw notes the current content of a file.
func (t *Tools) saw(path, content string, shown bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[path] = sight{sha256.Sum256([]byte(content)), shown}
}

// knows tells whether the session has seen a file, whether what it saw is still
// what the file holds, and whether the model has that.
func (t *Tools) knows(path, content string) (read, current, shown bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, read := t.seen[path]
	current = read && was.digest == sha256.Sum256([]byte(content))
	return read, current, current && was.shown
}

// newName names a kept result or a cell.
func (t *Tools) newName() string {
	if t.o.NewID != nil {
		return t.o.NewID()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept++
	return fmt.Sprintf("%08d", t.kept)
}

// text is a successful result.
func text(s string, output any) protocol.ToolResult {
	return protocol.ToolResult{Content: protocol.Content{Text: s}, Output: output}
}

// refuse is a call that was understood and is not possible: the model sees it
// in tags, hosts see "Error: …".
func refuse(format string, args ...any) protocol.ToolResult {
	r := protocol.UsageError(fmt.Sprintf(format, args...))
	r.Output = "Error: " + fmt.Sprintf(format, args...)
	return r
}

// maxError bounds the text of a failure; the middle of a longer one is left
// out.
const maxError = 10_000

// fail is a tool that failed while it ran.
func fail(format string, args ...any) protocol.ToolResult {
	text := fmt.Sprintf(format, args...)
	if runes := []rune(text); len(runes) > maxError {
		const half = maxError / 2
		text = fmt.Sprintf("%s\n\n... [%d characters truncated] ...\n\n%s",
			string(runes[:half]), len(runes)-maxError, string(runes[len(runes)-half:]))
	}
	return protocol.ErrorResult(text)
}

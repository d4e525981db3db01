// Package files implements the tools that read and change files (Read, Write, Edit, NotebookEdit), and the tools that
// search files (Glob, Grep). Searches skip files that a permission rule hides.
//
// The tools change a file only if the session has read its current content, or if Options.Access allows changing it unread.
package files

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// UnreadChangeAccess reports whether an agent may change a file that its model has not read. A nil agent means the session itself.
type UnreadChangeAccess interface {
	IsChangeableUnread(path string, agent *protocol.AgentRef) bool
}

// Options configure [New]. Paths and Clock are required.
type Options struct {
	Paths  *tool.Shell        // resolves paths relative to its working directory
	Clock  tool.ClockWithIDs  // provides the ids of new notebook cells
	Access UnreadChangeAccess // nil means all files may be changed
}

// Tools returns the Edit, NotebookEdit, Read and Write tools.
func Tools(f *SeenFileTracker) []tool.Tool {
	return []tool.Tool{Edit(f), NotebookEdit(f), Read(f), Write(f)}
}

// SeenFileTracker records which contents of files the model of a session has read or written. Many goroutines may use it.
type SeenFileTracker struct {
	options      Options
	seenByModel  *seenFiles
	seenByAgents *seenFilesByAgent
	agent        *protocol.AgentRef // the sub-agent that has read the contents; nil means the session
}

type seenFilesByAgent struct {
	mu   sync.Mutex
	seen map[string]*seenFiles
}

type callContextKey struct{}

// WithCall stores a call in a context. [SeenFileTracker.TrackerOfCallerInContext] uses it to find out whether the session or a
// sub-agent makes the call, because a sub-agent knows only the files that it has read itself.
func WithCall(ctx context.Context, call protocol.ToolUse) context.Context {
	return context.WithValue(ctx, callContextKey{}, call)
}

// TrackerOfCallerInContext returns the tracker of the caller, which is the session or a sub-agent; see [WithCall].
func (f *SeenFileTracker) TrackerOfCallerInContext(ctxWithCall context.Context) *SeenFileTracker {
	call, _ := ctxWithCall.Value(callContextKey{}).(protocol.ToolUse)
	return f.TrackerOfSubagentOrSession(call.Agent)
}

func hasUserModifiedInputOfCall(ctxWithCall context.Context) bool {
	call, _ := ctxWithCall.Value(callContextKey{}).(protocol.ToolUse)
	return call.UserModified
}

// TrackerOfSubagentOrSession returns the tracker of a sub-agent, or that of the session if the argument is nil.
func (f *SeenFileTracker) TrackerOfSubagentOrSession(agentOrNilForSession *protocol.AgentRef) *SeenFileTracker {
	if agentOrNilForSession == nil {
		return f
	}
	f.seenByAgents.mu.Lock()
	defer f.seenByAgents.mu.Unlock()
	if f.seenByAgents.seen[agentOrNilForSession.ID] == nil {
		f.seenByAgents.seen[agentOrNilForSession.ID] = &seenFiles{byPath: map[string]seenContent{}}
	}
	return &SeenFileTracker{f.options, f.seenByAgents.seen[agentOrNilForSession.ID], f.seenByAgents, agentOrNilForSession}
}

// typedRunForCaller and typedCheckForCaller are like [tool.TypedRun] and [tool.TypedCheck], but pass the function the tracker of the caller.
func typedRunForCaller[In any](f *SeenFileTracker, do func(context.Context, *SeenFileTracker, In) protocol.ToolResult) tool.Run {
	return tool.TypedRun(f, func(ctx context.Context, f *SeenFileTracker, in In) protocol.ToolResult {
		return do(ctx, f.TrackerOfCallerInContext(ctx), in)
	})
}

func typedCheckForCaller[In any](f *SeenFileTracker, do func(context.Context, *SeenFileTracker, In) *protocol.ToolResult) tool.Check {
	return tool.TypedCheck(f, func(ctx context.Context, f *SeenFileTracker, in In) *protocol.ToolResult {
		return do(ctx, f.TrackerOfCallerInContext(ctx), in)
	})
}

// RecordSeenInEarlierRun records that the model saw this content in an earlier run. content has "\n" between lines.
func (f *SeenFileTracker) RecordSeenInEarlierRun(path, content string) {
	if data, err := readRegularFile(path); err == nil && strings.ReplaceAll(string(data), "\r\n", "\n") == content {
		content = string(data)
	}
	f.seenByModel.recordShown(path, content)
}

// New returns the SeenFileTracker of a session. It accesses no file.
func New(o Options) *SeenFileTracker {
	o.Access = cmp.Or[UnreadChangeAccess](o.Access, allUnreadChangesAllowed{})
	return &SeenFileTracker{options: o, seenByModel: &seenFiles{byPath: map[string]seenContent{}}, seenByAgents: &seenFilesByAgent{seen: map[string]*seenFiles{}}}
}

type allUnreadChangesAllowed struct{}

func (allUnreadChangesAllowed) IsChangeableUnread(string, *protocol.AgentRef) bool { return true }

// RecordSeenIfPrintedWhole is called when a command has printed a file. If commandOutput is the whole content of the
// file, it records that the model has seen the file.
func (f *SeenFileTracker) RecordSeenIfPrintedWhole(file, commandOutput string) {
	path := f.options.Paths.Path(file)
	if data, err := readRegularFile(path); err == nil && string(data) == commandOutput {
		f.seenByModel.recordShown(path, commandOutput)
	}
}

// RecordPartlySeen records that the model has seen a part of a file because a command printed it.
func (f *SeenFileTracker) RecordPartlySeen(file string) {
	path := f.options.Paths.Path(file)
	data, err := readRegularFile(path)
	if err != nil {
		return
	}
	if _, current, _ := f.seenByModel.compareWithSeenContent(path, string(data)); !current {
		f.seenByModel.recordSeenContent(path, string(data), false)
	}
}

// RecordChangeSinceCallAsUnseen returns the path of the file that an Edit or Write call wrote, if the file has changed since
// then; otherwise "". It also records that the model has not seen the new content.
func (f *SeenFileTracker) RecordChangeSinceCallAsUnseen(call protocol.ToolUse) (changedPath string) {
	if call.Name != "Edit" && call.Name != "Write" {
		return ""
	}
	path := f.TargetFile(call)
	data, err := readRegularFile(path)
	if err != nil {
		return ""
	}
	if read, current, _ := f.seenByModel.compareWithSeenContent(path, string(data)); !read || current {
		return ""
	}
	f.seenByModel.recordWritten(path, string(data), false)
	return path
}

// TakeFilesChangedAfterWrite returns the files that changed after the session had written them. It also records the new content as seen by
// the model, so it returns each change only once.
func (f *SeenFileTracker) TakeFilesChangedAfterWrite() []FileChangedAfterWrite {
	return f.seenByModel.takeFilesChangedAfterWrite()
}

// ForgetAll forgets what the model has seen, and returns the paths of these files, the last modified one first.
func (f *SeenFileTracker) ForgetAll() (paths []string) { return f.seenByModel.forgetAll() }

// CurrentModTimes returns the modification times of the files that the session has read or written and that exist.
func (f *SeenFileTracker) CurrentModTimes() ModificationTimesByPath {
	return f.seenByModel.currentModificationTimes()
}

// PathsWithChangedModTime returns the sorted paths of the files whose modification time differs from that in
// earlierTimes. Deleted files are not included.
func (f *SeenFileTracker) PathsWithChangedModTime(earlierTimes ModificationTimesByPath) []string {
	var paths []string
	for path, was := range earlierTimes {
		if info, err := os.Stat(path); err == nil && !info.ModTime().Equal(was) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// TargetFile returns the absolute path of the file that a call reads or writes; empty means none.
func (f *SeenFileTracker) TargetFile(call protocol.ToolUse) string {
	in := plainjson.DecodeIgnoringErrors[struct {
		Path     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Command  string `json:"command"`
	}](call.Input)
	path := ""
	switch call.Name {
	case "Read", "Write", "Edit":
		path = in.Path
	case "NotebookEdit":
		path = in.Notebook
	case "Bash":
		path = tool.PrintedFile(in.Command)
	}
	if path == "" {
		return ""
	}
	return f.options.Paths.Path(path)
}

// InputWithAbsolutePath returns the input of a call in which the path of the file to read, write or
// edit is absolute, as hooks and hosts see it. Nil means that the input is unchanged.
func (f *SeenFileTracker) InputWithAbsolutePath(call protocol.ToolUse) (inputOrNilIfUnchanged json.RawMessage) {
	key := "file_path"
	switch call.Name {
	case "Read", "Write", "Edit":
	case "NotebookEdit":
		key = "notebook_path"
	default:
		return nil
	}
	in, err := plainjson.Parse(call.Input)
	var path string
	if err != nil || plainjson.TypeOf(in.Get(key)) != "string" || json.Unmarshal(in.Get(key), &path) != nil {
		return nil
	}
	whole := f.options.Paths.Path(path)
	if whole == path {
		return nil
	}
	out, err := in.Set(key, tool.Quote(whole)).MarshalJSON()
	if err != nil {
		return nil
	}
	return out
}

package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type checklistTask struct {
	ID          string   `json:"id"`
	Subject     string   `json:"subject"`
	Description string   `json:"description"`
	Status      string   `json:"status"`
	Owner       string   `json:"owner,omitempty"`
	Blocks      []string `json:"blocks"`
	BlockedBy   []string `json:"blockedBy"`

	activeForm string
	metadata   map[string]json.RawMessage
	isDeleted  bool
}

// Hooks runs user code around the tools.
type Hooks interface {
	// ShellCodeForLaterCommands returns shell code that the shell of each command runs before the command.
	ShellCodeForLaterCommands() string
	// RunHooks runs the hooks of an event that a tool raises. If feedback is not empty, a hook forbids what the
	// call would do. The events in shown must be shown before the result of the call.
	RunHooks(ctx context.Context, in protocol.HookInput) (feedback string, shown []protocol.Event)
}

// checklist is the task list of the model. It is unrelated to background tasks.
type checklist struct {
	taskHooks Hooks // nil means none

	mu    sync.Mutex
	tasks []*checklistTask
}

// findTask returns the task with this id, or nil. l.mu must be locked.
func (l *checklist) findTask(id string) *checklistTask {
	for _, k := range l.tasks {
		if k.ID == id && !k.isDeleted {
			return k
		}
	}
	return nil
}

func (l *checklist) tools() []tool.Tool {
	return []tool.Tool{
		taskCreateTool(l), taskUpdateTool(l),
		{Name: "TaskGet", Run: tool.TypedRun(l, taskGet)},
		{Name: "TaskList", Run: tool.TypedRun(l, taskList)},
	}
}

func taskCreateTool(l *checklist) tool.Tool {
	return tool.Tool{
		Name: "TaskCreate",
		RenameAliases: func(in *tool.Keys) (string, bool) {
			renamed := tool.RenameNonEmptyStringKey(in, "title", "subject")
			renamed = tool.RenameNonEmptyStringKey(in, "name", "subject") || renamed
			renamed = tool.RenameNonEmptyStringKey(in, "content", "description") || renamed
			if subject := in.Get("subject"); tool.IsString(subject) {
				renamed = tool.RemoveKeys(in, "title", "name") || renamed
				if in.Get("description") == nil {
					*in, renamed = in.Set("description", subject), true
				}
			}
			return "", renamed
		},
		Run: tool.TypedRunReturningEvents(l, taskCreate),
	}
}

type taskCreateInput struct {
	Subject     string                     `json:"subject"`
	Description string                     `json:"description"`
	ActiveForm  string                     `json:"activeForm"`
	Metadata    map[string]json.RawMessage `json:"metadata"`
}

func taskCreate(ctx context.Context, l *checklist, in taskCreateInput) tool.Result {
	l.mu.Lock()
	k := &checklistTask{
		ID: strconv.Itoa(len(l.tasks) + 1), Subject: in.Subject, Description: in.Description, Status: "pending",
		Blocks: []string{}, BlockedBy: []string{}, activeForm: in.ActiveForm, metadata: in.Metadata,
	}
	l.tasks = append(l.tasks, k)
	l.mu.Unlock()
	feedback, shown := l.runTaskHooks(ctx, protocol.TaskCreatedHook{HookChecklistTask: k.taskForHooks()})
	if feedback != "" {
		l.mu.Lock()
		k.isDeleted = true
		l.mu.Unlock()
		r := tool.ResultWithoutEvents(tool.Fail("%s", strings.TrimSpace(feedback)))
		r.EventsBefore = shown
		return r
	}
	type created struct {
		ID          string `json:"id"`
		Subject     string `json:"subject"`
		Description string `json:"description"`
	}
	r := tool.ResultWithoutEvents(tool.Text(fmt.Sprintf("Task #%s created successfully: %s", k.ID, k.Subject), struct {
		Task created `json:"task"`
	}{created{k.ID, k.Subject, k.Description}}))
	r.EventsBefore = shown
	return r
}

func (k *checklistTask) taskForHooks() protocol.HookChecklistTask {
	return protocol.HookChecklistTask{TaskID: k.ID, TaskSubject: k.Subject, TaskDescription: k.Description}
}

func (l *checklist) runTaskHooks(ctx context.Context, in protocol.HookInput) (feedback string, shown []protocol.Event) {
	if l.taskHooks == nil {
		return "", nil
	}
	return l.taskHooks.RunHooks(ctx, in)
}

func taskGet(_ context.Context, l *checklist, in struct{ TaskID string }) protocol.ToolResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out struct {
		Task *checklistTask `json:"task"`
	}
	k := l.findTask(in.TaskID)
	if k == nil {
		return tool.Text("Task not found", out)
	}
	view := *k
	// Only TaskList shows the owner.
	view.Blocks, view.BlockedBy, view.Owner = slices.Clone(k.Blocks), slices.Clone(k.BlockedBy), ""
	out.Task = &view
	lines := []string{"Task #" + k.ID + ": " + k.Subject, "Status: " + k.Status, "Description: " + k.Description}
	if len(k.BlockedBy) > 0 {
		lines = append(lines, "Blocked by: "+formatTaskIDs(k.BlockedBy))
	}
	if len(k.Blocks) > 0 {
		lines = append(lines, "Blocks: "+formatTaskIDs(k.Blocks))
	}
	return tool.Text(strings.Join(lines, "\n"), out)
}

func formatTaskIDs(ids []string) string { return "#" + strings.Join(ids, ", #") }

func taskList(_ context.Context, l *checklist, _ struct{}) protocol.ToolResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	type line struct {
		ID        string   `json:"id"`
		Subject   string   `json:"subject"`
		Status    string   `json:"status"`
		Owner     string   `json:"owner,omitempty"`
		BlockedBy []string `json:"blockedBy"`
	}
	out := struct {
		Tasks []line `json:"tasks"`
	}{[]line{}}
	var lines []string
	for _, k := range l.tasks {
		if k.isDeleted {
			continue
		}
		blocked := slices.DeleteFunc(slices.Clone(k.BlockedBy), func(id string) bool {
			other := l.findTask(id)
			return other == nil || other.Status == "completed"
		})
		s := fmt.Sprintf("#%s [%s] %s", k.ID, k.Status, k.Subject)
		if k.Owner != "" {
			s += " (" + k.Owner + ")"
		}
		if len(blocked) > 0 {
			s += " [blocked by " + formatTaskIDs(blocked) + "]"
		}
		lines = append(lines, s)
		out.Tasks = append(out.Tasks, line{k.ID, k.Subject, k.Status, k.Owner, tool.NonNilCopy(blocked)})
	}
	if len(lines) == 0 {
		return tool.Text("No tasks found", out)
	}
	return tool.Text(strings.Join(lines, "\n"), out)
}

func taskUpdateTool(l *checklist) tool.Tool {
	return tool.Tool{
		Name: "TaskUpdate",
		RenameAliases: func(in *tool.Keys) (string, bool) {
			renamed := tool.RenameNonEmptyStringKey(in, "task_id", "taskId")
			return "", tool.RenameNonEmptyStringKey(in, "id", "taskId") || renamed
		},
		Run: tool.TypedRunReturningEvents(l, taskUpdate),
	}
}

type taskUpdateInput struct {
	TaskID       string                     `json:"taskId"`
	Subject      *string                    `json:"subject"`
	Description  *string                    `json:"description"`
	ActiveForm   *string                    `json:"activeForm"`
	Status       *string                    `json:"status"`
	Owner        *string                    `json:"owner"`
	AddBlocks    []string                   `json:"addBlocks"`
	AddBlockedBy []string                   `json:"addBlockedBy"`
	Metadata     map[string]json.RawMessage `json:"metadata"`
}

type taskStatusChange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type taskUpdateOutput struct {
	Success       bool              `json:"success"`
	TaskID        string            `json:"taskId"`
	UpdatedFields []string          `json:"updatedFields"`
	Error         string            `json:"error,omitempty"`
	StatusChange  *taskStatusChange `json:"statusChange,omitempty"`
}

func taskUpdate(ctx context.Context, l *checklist, in taskUpdateInput) tool.Result {
	feedback, shown := l.runCompletedHooks(ctx, in)
	if feedback != "" {
		r := tool.ResultWithoutEvents(tool.Text(feedback, taskUpdateOutput{TaskID: in.TaskID, UpdatedFields: []string{}, Error: feedback}))
		r.EventsBefore = shown
		return r
	}
	r := tool.ResultWithoutEvents(l.updateTask(in))
	r.EventsBefore = shown
	return r
}

func (l *checklist) runCompletedHooks(ctx context.Context, in taskUpdateInput) (feedback string, shown []protocol.Event) {
	l.mu.Lock()
	k := l.findTask(in.TaskID)
	if k == nil || in.Status == nil || *in.Status != "completed" || k.Status == *in.Status {
		l.mu.Unlock()
		return "", nil
	}
	hookTask := k.taskForHooks()
	l.mu.Unlock()
	return l.runTaskHooks(ctx, protocol.TaskCompletedHook{HookChecklistTask: hookTask})
}

func (l *checklist) updateTask(in taskUpdateInput) protocol.ToolResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := taskUpdateOutput{TaskID: in.TaskID, UpdatedFields: []string{}}
	k := l.findTask(in.TaskID)
	if k == nil {
		out.Error = "Task not found"
		return tool.Text(out.Error, out)
	}
	set := func(name string, field, value *string) {
		if value != nil && *value != *field {
			*field = *value
			out.UpdatedFields = append(out.UpdatedFields, name)
		}
	}
	status := k.Status
	if in.Status != nil && *in.Status == "deleted" { // a deletion ignores all other fields of the call
		k.Status, k.isDeleted = *in.Status, true
		out.Success, out.UpdatedFields, out.StatusChange = true, []string{k.Status}, &taskStatusChange{status, k.Status}
		return tool.Text("Updated task #"+k.ID+" "+k.Status, out)
	}
	set("subject", &k.Subject, in.Subject)
	set("description", &k.Description, in.Description)
	set("activeForm", &k.activeForm, in.ActiveForm)
	set("owner", &k.Owner, in.Owner)
	set("status", &k.Status, in.Status)
	out.UpdatedFields = append(out.UpdatedFields, l.addDependencies(k, in)...)
	if len(in.Metadata) > 0 {
		k.mergeMetadata(in.Metadata)
		out.UpdatedFields = append(out.UpdatedFields, "metadata")
	}
	if k.Status != status {
		out.StatusChange = &taskStatusChange{status, k.Status}
	}
	out.Success = true
	return tool.Text(fmt.Sprintf("Updated task #%s %s", k.ID, strings.Join(out.UpdatedFields, ", ")), out)
}

// addDependencies records, in both tasks, that k blocks another task or is blocked by it. changed lists the fields of k
// for which the input has a new id, even if no task has this id (observed with 2.1.329). l.mu must be locked.
func (l *checklist) addDependencies(k *checklistTask, in taskUpdateInput) (changed []string) {
	add := func(first, second *checklistTask) {
		if first != nil && second != nil && !slices.Contains(first.Blocks, second.ID) {
			first.Blocks = append(first.Blocks, second.ID)
			second.BlockedBy = append(second.BlockedBy, first.ID)
		}
	}
	isNew := func(to []string) func(string) bool {
		return func(id string) bool { return !slices.Contains(to, id) }
	}
	if slices.ContainsFunc(in.AddBlocks, isNew(k.Blocks)) {
		changed = append(changed, "blocks")
	}
	for _, id := range in.AddBlocks {
		add(k, l.findTask(id))
	}
	if slices.ContainsFunc(in.AddBlockedBy, isNew(k.BlockedBy)) {
		changed = append(changed, "blockedBy")
	}
	for _, id := range in.AddBlockedBy {
		add(l.findTask(id), k)
	}
	return changed
}

func (k *checklistTask) mergeMetadata(keys map[string]json.RawMessage) {
	if k.metadata == nil {
		k.metadata = map[string]json.RawMessage{}
	}
	for key, value := range keys {
		if string(value) == "null" {
			delete(k.metadata, key)
			continue
		}
		k.metadata[key] = value
	}
}

type todoItem struct {
	Content    string `json:"content"`
	Status     string `json:"status"`
	ActiveForm string `json:"activeForm"`
}

type todoList struct {
	mu    sync.Mutex
	todos []todoItem
}

func todoWrite(_ context.Context, l *todoList, in struct{ Todos []todoItem }) protocol.ToolResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := struct {
		OldTodos []todoItem `json:"oldTodos"`
		NewTodos []todoItem `json:"newTodos"`
	}{tool.NonNilCopy(l.todos), tool.NonNilCopy(in.Todos)}
	l.todos = slices.Clone(in.Todos)
	if !slices.ContainsFunc(l.todos, func(d todoItem) bool { return d.Status != "completed" }) {
		l.todos = nil // a list whose tasks are all completed is cleared
	}
	return tool.Text("Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. "+
		"Please proceed with the current tasks if applicable", out)
}

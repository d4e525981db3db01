package builtin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// checklistTask is a task as its file contains it.
type checklistTask struct {
	ID          string             `json:"id"`
	Subject     string             `json:"subject"`
	Description string             `json:"description"`
	ActiveForm  *string            `json:"activeForm,omitempty"`
	Owner       *string            `json:"owner,omitempty"`
	Status      string             `json:"status"`
	Blocks      []string           `json:"blocks"`
	BlockedBy   []string           `json:"blockedBy"`
	Metadata    tool.OrderedObject `json:"metadata,omitempty"`

	saved     []byte   // the task as JSON, as it was read
	addedKeys []string // keys that this call adds at the end of the file; later calls sort them
}

// Hooks runs user code around the tools.
type Hooks interface {
	// ShellCodeForLaterCommands returns shell code that the shell of each command runs before the command.
	ShellCodeForLaterCommands() string
	// RunHooks runs the hooks of an event that a tool raises. If feedback is not empty, a hook forbids what the
	// call would do. The events in shown must be shown before the result of the call.
	RunHooks(ctx context.Context, in protocol.HookInput) (feedback string, shown []protocol.Event)
}

// checklist is the task list of the model, in files that other sessions may read and change. It is unrelated to background tasks.
type checklist struct {
	taskHooks Hooks // nil means none
	paths     SessionPaths

	mu sync.Mutex // locked while files are changed
}

// checklistTasks are sorted by id.
type checklistTasks []*checklistTask

func (l checklistTasks) find(id string) *checklistTask {
	if i := slices.IndexFunc(l, func(k *checklistTask) bool { return k.ID == id }); i >= 0 {
		return l[i]
	}
	return nil
}

func (l *checklist) path(fileName string) string {
	return filepath.Join(l.paths.TaskListDir(), fileName)
}

// highestDeletedID returns the highest id of the deleted tasks; 0 means none.
func (l *checklist) highestDeletedID() int {
	text, _ := os.ReadFile(l.path(".highwatermark"))
	id, _ := strconv.Atoi(string(text))
	return id
}

// read returns the tasks whose files are valid, and the highest id that was ever used.
func (l *checklist) read() (tasks checklistTasks, lastID int) {
	lastID = l.highestDeletedID()
	files, _ := os.ReadDir(l.path(""))
	for _, f := range files {
		id, _ := strconv.Atoi(strings.TrimSuffix(f.Name(), ".json"))
		lastID = max(lastID, id)
		data, _ := os.ReadFile(l.path(f.Name()))
		k := &checklistTask{}
		if json.Unmarshal(data, k) == nil && k.Blocks != nil && k.BlockedBy != nil && slices.Contains([]string{"pending", "in_progress", "completed"}, k.Status) {
			k.saved, _ = protocol.Marshal(k)
			tasks = append(tasks, k)
		}
	}
	slices.SortFunc(tasks, func(a, b *checklistTask) int { return cmp.Or(len(a.ID)-len(b.ID), strings.Compare(a.ID, b.ID)) })
	return tasks, lastID
}

// write writes the files of the tasks that have changed.
func (l *checklist) write(tasks ...*checklistTask) (err error) {
	for _, k := range tasks {
		data, _ := protocol.Marshal(k) // cannot fail
		if bytes.Equal(data, k.saved) {
			continue
		}
		var o tool.OrderedObject
		_ = json.Unmarshal(data, &o)
		for _, key := range k.addedKeys {
			value := o.Get(key) // Delete changes o
			o = o.Delete(key).Set(key, value)
		}
		err = errors.Join(err, os.WriteFile(l.path(k.ID+".json"), []byte(o.Indented()), 0o644))
	}
	return err
}

// createWithNextID gives a task the next free id and writes its file.
func (l *checklist) createWithNextID(k *checklistTask) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = errors.Join(os.MkdirAll(l.path(""), 0o755), os.WriteFile(l.path(".lock"), nil, 0o644)) // the file below gets the same error
	for {
		_, lastID := l.read()
		k.ID = strconv.Itoa(lastID + 1)
		f, err := os.OpenFile(l.path(k.ID+".json"), os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			return errors.Join(f.Close(), l.write(k))
		}
		if !errors.Is(err, fs.ErrExist) { // otherwise another session has just used the id
			return err
		}
	}
}

// remove deletes a task and the references to it. l.mu must be locked.
func (l *checklist) remove(tasks checklistTasks, removed *checklistTask) error {
	id, _ := strconv.Atoi(removed.ID)
	err := os.WriteFile(l.path(".highwatermark"), []byte(strconv.Itoa(max(id, l.highestDeletedID()))), 0o644)
	tasks = slices.DeleteFunc(tasks, func(k *checklistTask) bool { return k == removed })
	isRemoved := func(id string) bool { return id == removed.ID }
	for _, k := range tasks {
		k.Blocks, k.BlockedBy = slices.DeleteFunc(k.Blocks, isRemoved), slices.DeleteFunc(k.BlockedBy, isRemoved)
	}
	return errors.Join(err, os.Remove(l.path(removed.ID+".json")), l.write(tasks...))
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
		RenameAliases: func(in *tool.OrderedObject) (string, bool) {
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
	Subject     string             `json:"subject"`
	Description string             `json:"description"`
	ActiveForm  *string            `json:"activeForm"`
	Metadata    tool.OrderedObject `json:"metadata"`
}

func taskCreate(ctx context.Context, l *checklist, in taskCreateInput) tool.Result {
	k := &checklistTask{
		Subject: in.Subject, Description: in.Description, ActiveForm: in.ActiveForm, Status: "pending",
		Blocks: []string{}, BlockedBy: []string{}, Metadata: in.Metadata,
	}
	if err := l.createWithNextID(k); err != nil {
		return tool.ResultWithoutEvents(tool.Fail("%v", err))
	}
	feedback, shown := l.runTaskHooks(ctx, protocol.TaskCreatedHookInput{HookChecklistTask: k.taskForHooks()})
	created := tool.StructuredOutput("id", k.ID, "subject", k.Subject, "description", k.Description)
	r := tool.ResultWithoutEvents(tool.TextResult(fmt.Sprintf("Task #%s created successfully: %s", k.ID, k.Subject), tool.StructuredOutput("task", created)))
	if feedback != "" {
		_, _ = l.updateTask(taskUpdateInput{TaskID: k.ID, Status: new("deleted")}) // the call fails anyway
		r = tool.ResultWithoutEvents(tool.Fail("%s", strings.TrimSpace(feedback)))
	}
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
	tasks, _ := l.read()
	k := tasks.find(in.TaskID)
	if k == nil {
		return tool.TextResult("Task not found", tool.StructuredOutput("task", k))
	}
	k.ActiveForm, k.Owner, k.Metadata = nil, nil, nil // not part of the result
	lines := []string{"Task #" + k.ID + ": " + k.Subject, "Status: " + k.Status, "Description: " + k.Description}
	if len(k.BlockedBy) > 0 {
		lines = append(lines, "Blocked by: "+formatTaskIDs(k.BlockedBy))
	}
	if len(k.Blocks) > 0 {
		lines = append(lines, "Blocks: "+formatTaskIDs(k.Blocks))
	}
	return tool.TextResult(strings.Join(lines, "\n"), tool.StructuredOutput("task", k))
}

func formatTaskIDs(ids []string) string { return "#" + strings.Join(ids, ", #") }

func taskList(_ context.Context, l *checklist, _ struct{}) protocol.ToolResult {
	tasks, _ := l.read()
	type line struct {
		ID        string   `json:"id"`
		Subject   string   `json:"subject"`
		Status    string   `json:"status"`
		Owner     *string  `json:"owner,omitempty"`
		BlockedBy []string `json:"blockedBy"`
	}
	list, lines := []line{}, []string{}
	for _, k := range tasks {
		blocked := slices.DeleteFunc(slices.Clone(k.BlockedBy), func(id string) bool {
			other := tasks.find(id)
			return other == nil || other.Status == "completed"
		})
		s := fmt.Sprintf("#%s [%s] %s", k.ID, k.Status, k.Subject)
		if k.Owner != nil && *k.Owner != "" {
			s += " (" + *k.Owner + ")"
		}
		if len(blocked) > 0 {
			s += " [blocked by " + formatTaskIDs(blocked) + "]"
		}
		lines = append(lines, s)
		list = append(list, line{k.ID, k.Subject, k.Status, k.Owner, tool.NonNilCopy(blocked)})
	}
	return tool.TextResult(cmp.Or(strings.Join(lines, "\n"), "No tasks found"), tool.StructuredOutput("tasks", list))
}

func taskUpdateTool(l *checklist) tool.Tool {
	return tool.Tool{
		Name: "TaskUpdate",
		RenameAliases: func(in *tool.OrderedObject) (string, bool) {
			renamed := tool.RenameNonEmptyStringKey(in, "task_id", "taskId")
			return "", tool.RenameNonEmptyStringKey(in, "id", "taskId") || renamed
		},
		Run: tool.TypedRunReturningEvents(l, taskUpdate),
	}
}

type taskUpdateInput struct {
	TaskID       string             `json:"taskId"`
	Subject      *string            `json:"subject"`
	Description  *string            `json:"description"`
	ActiveForm   *string            `json:"activeForm"`
	Status       *string            `json:"status"`
	Owner        *string            `json:"owner"`
	AddBlocks    []string           `json:"addBlocks"`
	AddBlockedBy []string           `json:"addBlockedBy"`
	Metadata     tool.OrderedObject `json:"metadata"`
}

type taskUpdateOutput struct {
	Success       bool               `json:"success"`
	TaskID        string             `json:"taskId"`
	UpdatedFields []string           `json:"updatedFields"`
	Error         string             `json:"error,omitempty"`
	StatusChange  tool.OrderedObject `json:"statusChange,omitempty"`
}

func taskUpdate(ctx context.Context, l *checklist, in taskUpdateInput) tool.Result {
	feedback, shown := l.runHooksIfTaskCompletes(ctx, in)
	result, err := tool.TextResult(feedback, taskUpdateOutput{TaskID: in.TaskID, UpdatedFields: []string{}, Error: feedback}), error(nil)
	if feedback == "" {
		result, err = l.updateTask(in)
	}
	if err != nil {
		result = tool.Fail("%v", err)
	}
	r := tool.ResultWithoutEvents(result)
	r.EventsBefore = shown
	return r
}

func (l *checklist) runHooksIfTaskCompletes(ctx context.Context, in taskUpdateInput) (feedback string, shown []protocol.Event) {
	tasks, _ := l.read()
	k := tasks.find(in.TaskID)
	if k == nil || in.Status == nil || *in.Status != "completed" || k.Status == *in.Status {
		return "", nil
	}
	return l.runTaskHooks(ctx, protocol.TaskCompletedHookInput{HookChecklistTask: k.taskForHooks()})
}

func (l *checklist) updateTask(in taskUpdateInput) (protocol.ToolResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tasks, _ := l.read()
	out := taskUpdateOutput{TaskID: in.TaskID, UpdatedFields: []string{}}
	k := tasks.find(in.TaskID)
	if k == nil {
		out.Error = "Task not found"
		return tool.TextResult(out.Error, out), nil
	}
	out.Success = true
	if in.Status != nil && *in.Status != k.Status {
		out.StatusChange = tool.StructuredOutput("from", k.Status, "to", *in.Status)
		if *in.Status == "deleted" { // a deletion ignores all other fields of the call
			out.UpdatedFields = []string{*in.Status}
			return tool.TextResult("Updated task #"+k.ID+" "+*in.Status, out), l.remove(tasks, k)
		}
	}
	set := func(name string, value, newValue *string) *string {
		if newValue == nil || value != nil && *value == *newValue {
			return value
		}
		out.UpdatedFields = append(out.UpdatedFields, name)
		if value == nil {
			k.addedKeys = append(k.addedKeys, name)
		}
		return newValue
	}
	k.Subject, k.Description = *set("subject", &k.Subject, in.Subject), *set("description", &k.Description, in.Description)
	k.ActiveForm, k.Owner = set("activeForm", k.ActiveForm, in.ActiveForm), set("owner", k.Owner, in.Owner)
	if in.Metadata != nil {
		if k.Metadata == nil {
			k.addedKeys = append(k.addedKeys, "metadata")
		}
		k.mergeMetadata(in.Metadata)
		out.UpdatedFields = append(out.UpdatedFields, "metadata")
	}
	k.Status = *set("status", &k.Status, in.Status)
	out.UpdatedFields = append(out.UpdatedFields, tasks.addDependencies(k, in)...)
	return tool.TextResult(fmt.Sprintf("Updated task #%s %s", k.ID, strings.Join(out.UpdatedFields, ", ")), out), l.write(tasks...)
}

// addDependencies records, in both tasks, that k blocks another task or is blocked by it. changed lists the fields of k
// for which the input has a new id, even if no task has this id (observed with 2.1.329).
func (l checklistTasks) addDependencies(k *checklistTask, in taskUpdateInput) (changed []string) {
	add := func(first, second *checklistTask) {
		if first != nil && second != nil && !slices.Contains(first.Blocks, second.ID) {
			first.Blocks = append(first.Blocks, second.ID)
			second.BlockedBy = append(second.BlockedBy, first.ID)
			first.addedKeys, second.addedKeys = nil, nil // the real CLI reads and writes both files again
		}
	}
	isNew := func(to []string) func(string) bool { return func(id string) bool { return !slices.Contains(to, id) } }
	if slices.ContainsFunc(in.AddBlocks, isNew(k.Blocks)) {
		changed = append(changed, "blocks")
	}
	for _, id := range in.AddBlocks {
		add(k, l.find(id))
	}
	if slices.ContainsFunc(in.AddBlockedBy, isNew(k.BlockedBy)) {
		changed = append(changed, "blockedBy")
	}
	for _, id := range in.AddBlockedBy {
		add(l.find(id), k)
	}
	return changed
}

func (k *checklistTask) mergeMetadata(keys tool.OrderedObject) {
	for _, m := range keys {
		if string(m.Value) == "null" {
			k.Metadata = k.Metadata.Delete(m.Key)
		} else {
			k.Metadata = k.Metadata.Set(m.Key, m.Value)
		}
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
	out := tool.StructuredOutput("oldTodos", tool.NonNilCopy(l.todos), "newTodos", tool.NonNilCopy(in.Todos))
	l.todos = slices.Clone(in.Todos)
	if !slices.ContainsFunc(l.todos, func(d todoItem) bool { return d.Status != "completed" }) {
		l.todos = nil // a list whose tasks are all completed is cleared
	}
	return tool.TextResult("Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. "+
		"Please proceed with the current tasks if applicable", out)
}

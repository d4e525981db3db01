package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type todo struct {
	Content    string `json:"content"`
	Status     string `json:"status"`
	ActiveForm string `json:"activeForm"`
}

func todoWriteTool() tool {
	return tool{
		name:        "TodoWrite",
		description: "Replaces the session's list of things to do.",
		input: object(req("todos", list("The whole new list", object(
			req("content", str("What to do")),
			req("status", str("How far it is", "pending", "in_progress", "completed")),
			req("activeForm", str("The same, worded as being done")),
		)))),
		run: typed(todoWrite),
	}
}

func todoWrite(_ context.Context, t *Tools, in struct{ Todos []todo }) protocol.ToolResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := struct {
		OldTodos []todo `json:"oldTodos"`
		NewTodos []todo `json:"newTodos"`
	}{nonNil(t.todos), nonNil(in.Todos)}
	t.todos = slices.Clone(in.Todos)
	if !slices.ContainsFunc(t.todos, func(d todo) bool { return d.Status != "completed" }) {
		t.todos = nil // a finished list starts over
	}
	return text("Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. "+
		"Please proceed with the current tasks if applicable", out)
}

func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

type entry struct {
	ID          string   `json:"id"`
	Subject     string   `json:"subject"`
	Description string   `json:"description"`
	Status      string   `json:"status"`
	Owner       string   `json:"owner,omitempty"`
	Blocks      []string `json:"blocks"`
	BlockedBy   []string `json:"blockedBy"`

	activeForm string
	metadata   map[string]json.RawMessage
	deleted    bool
}

// task returns the task with this id; t.mu is held.
func (t *Tools) task(id string) *entry {
	for _, k := range t.tasks {
		if k.ID == id && !k.deleted {
			return k
		}
	}
	return nil
}

func taskCreateTool() tool {
	return tool{
		name:        "TaskCreate",
		description: "Adds a task to the session's task list.",
		input: object(
			req("subject", str("Short title")),
			req("description", str("What has to be done")),
			opt("activeForm", str("The title worded as being done")),
			opt("metadata", schema{Type: "object", Desc: "Anything to keep with the task", Open: true}),
		),
		run: traced(taskCreate),
	}
}

type taskCreateInput struct {
	Subject     string                     `json:"subject"`
	Description string                     `json:"description"`
	ActiveForm  string                     `json:"activeForm"`
	Metadata    map[string]json.RawMessage `json:"metadata"`
}

func taskCreate(ctx context.Context, t *Tools, in taskCreateInput) executor.Result {
	t.mu.Lock()
	k := &entry{
		ID: strconv.Itoa(len(t.tasks) + 1), Subject: in.Subject, Description: in.Description, Status: "pending",
		Blocks: []string{}, BlockedBy: []string{}, activeForm: in.ActiveForm, metadata: in.Metadata,
	}
	t.tasks = append(t.tasks, k)
	t.mu.Unlock()
	feedback, shown := t.announce(ctx, protocol.TaskCreatedHook{HookTask: k.told()})
	if feedback != "" {
		t.mu.Lock()
		k.deleted = true
		t.mu.Unlock()
		r := executor.Plain(fail("%s", strings.TrimSpace(feedback)))
		r.Before = shown
		return r
	}
	type created struct {
		ID          string `json:"id"`
		Subject     string `json:"subject"`
		Description string `json:"description"`
	}
	r := executor.Plain(text(fmt.Sprintf("Task #%s created successfully: %s", k.ID, k.Subject), struct {
		Task created `json:"task"`
	}{created{k.ID, k.Subject, k.Description}}))
	r.Before = shown
	return r
}

// told is what hooks are told of a task.
func (k *entry) told() protocol.HookTask {
	return protocol.HookTask{TaskID: k.ID, TaskSubject: k.Subject, TaskDescription: k.Description}
}

func (t *Tools) announce(ctx context.Context, in protocol.HookInput) (feedback string, shown []protocol.Event) {
	if t.o.Announce == nil {
		return "", nil
	}
	return t.o.Announce(ctx, in)
}

func taskGetTool() tool {
	return tool{
		name: "TaskGet", readOnly: true,
		description: "Shows one task.",
		input:       object(req("taskId", str("Number of the task"))),
		run:         typed(taskGet),
	}
}

func taskGet(_ context.Context, t *Tools, in struct{ TaskID string }) protocol.ToolResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out struct {
		Task *entry `json:"task"`
	}
	k := t.task(in.TaskID)
	if k == nil {
		return text("Task not found", out)
	}
	view := *k
	view.Blocks, view.BlockedBy = slices.Clone(k.Blocks), slices.Clone(k.BlockedBy)
	out.Task = &view
	lines := []string{"Task #" + k.ID + ": " + k.Subject, "Status: " + k.Status, "Description: " + k.Description}
	if len(k.BlockedBy) > 0 {
		lines = append(lines, "Blocked by: "+numbered(k.BlockedBy))
	}
	if len(k.Blocks) > 0 {
		lines = append(lines, "Blocks: "+numbered(k.Blocks))
	}
	return text(strings.Join(lines, "\n"), out)
}

func numbered(ids []string) string { return "#" + strings.Join(ids, ", #") }

func taskListTool() tool {
	return tool{
		name: "TaskList", readOnly: true,
		description: "Lists the session's tasks.",
		input:       object(),
		run:         typed(taskList),
	}
}

func taskList(_ context.Context, t *Tools, _ struct{}) protocol.ToolResult {
	t.mu.Lock()
	defer t.mu.Unlock()
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
	for _, k := range t.tasks {
		if k.deleted {
			continue
		}
		blocked := slices.DeleteFunc(slices.Clone(k.BlockedBy), func(id string) bool {
			other := t.task(id)
			return other == nil || other.Status == "completed"
		})
		s := fmt.Sprintf("#%s [%s] %s", k.ID, k.Status, k.Subject)
		if k.Owner != "" {
			s += " (" + k.Owner + ")"
		}
		if len(blocked) > 0 {
			s += " [blocked by " + numbered(blocked) + "]"
		}
		lines = append(lines, s)
		out.Tasks = append(out.Tasks, line{k.ID, k.Subject, k.Status, k.Owner, nonNil(blocked)})
	}
	if len(lines) == 0 {
		return text("No tasks found", out)
	}
	return text(strings.Join(lines, "\n"), out)
}

func taskUpdateTool() tool {
	return tool{
		name:        "TaskUpdate",
		description: "Changes one task.",
		input: object(
			req("taskId", str("Number of the task")),
			opt("subject", str("New title")),
			opt("description", str("New description")),
			opt("activeForm", str("New title worded as being done")),
			opt("status", str("New status; deleted removes the task", "pending", "in_progress", "completed", "deleted")),
			opt("owner", str("Who does it")),
			opt("addBlocks", list("Tasks that wait for this one", str(""))),
			opt("addBlockedBy", list("Tasks this one waits for", str(""))),
			opt("metadata", schema{Type: "object", Desc: "Keys to set; null removes one", Open: true}),
		),
		run: traced(taskUpdate),
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

type statusChange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type taskUpdateOutput struct {
	Success       bool          `json:"success"`
	TaskID        string        `json:"taskId"`
	UpdatedFields []string      `json:"updatedFields"`
	Error         string        `json:"error,omitempty"`
	StatusChange  *statusChange `json:"statusChange,omitempty"`
}

func taskUpdate(ctx context.Context, t *Tools, in taskUpdateInput) executor.Result {
	feedback, shown := t.completing(ctx, in)
	if feedback != "" {
		r := executor.Plain(text(feedback, taskUpdateOutput{TaskID: in.TaskID, UpdatedFields: []string{}, Error: feedback}))
		r.Before = shown
		return r
	}
	r := executor.Plain(t.update(in))
	r.Before = shown
	return r
}

// completing runs the hooks of a task that is about to be completed.
func (t *Tools) completing(ctx context.Context, in taskUpdateInput) (feedback string, shown []protocol.Event) {
	t.mu.Lock()
	k := t.task(in.TaskID)
	if k == nil || in.Status == nil || *in.Status != "completed" || k.Status == *in.Status {
		t.mu.Unlock()
		return "", nil
	}
	told := k.told()
	t.mu.Unlock()
	return t.announce(ctx, protocol.TaskCompletedHook{HookTask: told})
}

func (t *Tools) update(in taskUpdateInput) protocol.ToolResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := taskUpdateOutput{TaskID: in.TaskID, UpdatedFields: []string{}}
	k := t.task(in.TaskID)
	if k == nil {
		out.Error = "Task not found"
		return text(out.Error, out)
	}
	set := func(name string, field, value *string) {
		if value != nil && *value != *field {
			*field = *value
			out.UpdatedFields = append(out.UpdatedFields, name)
		}
	}
	status := k.Status
	set("subject", &k.Subject, in.Subject)
	set("description", &k.Description, in.Description)
	set("activeForm", &k.activeForm, in.ActiveForm)
	set("owner", &k.Owner, in.Owner)
	set("status", &k.Status, in.Status)
	out.UpdatedFields = append(out.UpdatedFields, t.link(k, in)...)
	if len(in.Metadata) > 0 {
		k.merge(in.Metadata)
		out.UpdatedFields = append(out.UpdatedFields, "metadata")
	}
	if k.Status != status {
		out.StatusChange = &statusChange{status, k.Status}
	}
	k.deleted = k.Status == "deleted"
	out.Success = true
	return text(fmt.Sprintf("Updated task #%s %s", k.ID, strings.Join(out.UpdatedFields, ", ")), out)
}

// link adds dependencies on both sides and names those that are new to k; unknown
// tasks and the task itself are left out. t.mu is held.
func (t *Tools) link(k *entry, in taskUpdateInput) (changed []string) {
	add := func(name string, first, second *entry) {
		if first == nil || second == nil || first == second || slices.Contains(first.Blocks, second.ID) {
			return
		}
		first.Blocks = append(first.Blocks, second.ID)
		second.BlockedBy = append(second.BlockedBy, first.ID)
		if !slices.Contains(changed, name) {
			changed = append(changed, name)
		}
	}
	for _, id := range in.AddBlocks {
		add("blocks", k, t.task(id))
	}
	for _, id := range in.AddBlockedBy {
		add("blockedBy", t.task(id), k)
	}
	return changed
}

func (k *entry) merge(keys map[string]json.RawMessage) {
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

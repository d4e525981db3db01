package builtin

import (
	"context"
	"slices"
	"sync"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type todo struct {
	Content    string `json:"content"`
	Status     string `json:"status"`
	ActiveForm string `json:"activeForm"`
}

// todoList is the session's todo list.
type todoList struct {
	mu    sync.Mutex
	todos []todo
}

func (l *todoList) tools() []tool.Tool { return []tool.Tool{todoWriteTool(l)} }

func todoWriteTool(l *todoList) tool.Tool {
	return tool.Tool{
		Name:        "TodoWrite",
		Description: "Replaces the session's list of things to do.",
		Input: tool.Object(tool.Required("todos", tool.List("The whole new list", tool.OpenObject(
			tool.Required("content", tool.NonEmpty("What to do", "Content cannot be empty")),
			tool.Required("status", tool.String("How far it is", "pending", "in_progress", "completed")),
			tool.Required("activeForm", tool.NonEmpty("The same, worded as being done", "Active form cannot be empty")),
		)))),
		Run: tool.TypedRun(l, todoWrite),
	}
}

func todoWrite(_ context.Context, l *todoList, in struct{ Todos []todo }) protocol.ToolResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := struct {
		OldTodos []todo `json:"oldTodos"`
		NewTodos []todo `json:"newTodos"`
	}{tool.NonNil(l.todos), tool.NonNil(in.Todos)}
	l.todos = slices.Clone(in.Todos)
	if !slices.ContainsFunc(l.todos, func(d todo) bool { return d.Status != "completed" }) {
		l.todos = nil // a finished list is cleared
	}
	return tool.Text("Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. "+
		"Please proceed with the current tasks if applicable", out)
}

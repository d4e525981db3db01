package bash

import (
	"cmp"
	"context"
	"fmt"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

type stopInput struct {
	TaskID  string `json:"task_id"`
	ShellID string `json:"shell_id"`
}

// Stop returns the tool that stops a background task.
func Stop(c *Commands) tool.Tool {
	return tool.Tool{
		Name:        "TaskStop",
		Description: "Stops a background task.",
		Input:       tool.Object(tool.Optional("task_id", tool.String("Id of the task")), tool.Optional("shell_id", tool.String("Id of the task, from older clients"))),
		Check: tool.TypedCheck(c, func(_ context.Context, c *Commands, in stopInput) *protocol.ToolResult {
			_, refusal := c.findTask(in)
			return refusal
		}),
		Run: tool.TypedRun(c, runStop),
	}
}

// findTask returns the task to stop. The second result explains why it cannot be stopped.
func (c *Commands) findTask(in stopInput) (task.Info, *protocol.ToolResult) {
	no := func(format string, args ...any) (task.Info, *protocol.ToolResult) {
		return task.Info{}, new(tool.Refuse(format, args...))
	}
	id := cmp.Or(in.TaskID, in.ShellID)
	if id == "" {
		return no("Missing required parameter: task_id")
	}
	if c.options.Tasks == nil {
		return no("No task found with ID: %s", id)
	}
	info, found := c.options.Tasks.Find(id)
	if !found {
		return no("No task found with ID: %s", id)
	}
	return info, nil
}

func runStop(_ context.Context, c *Commands, in stopInput) protocol.ToolResult {
	info, refusal := c.findTask(in)
	if refusal != nil {
		return *refusal
	}
	if !c.options.Tasks.Stop(info.ID, task.KilledByParent) {
		return tool.Refuse("Task %s is not running", info.ID)
	}
	what := cmp.Or(info.Command, info.Description)
	out := struct {
		Message string    `json:"message"`
		TaskID  string    `json:"task_id"`
		Type    task.Kind `json:"task_type"`
		Command string    `json:"command,omitempty"`
	}{fmt.Sprintf("Successfully stopped task: %s (%s)", info.ID, what), info.ID, info.Kind, info.Command}
	text, err := protocol.Marshal(out)
	if err != nil {
		return tool.Fail("%v", err)
	}
	return tool.Text(string(text), out)
}

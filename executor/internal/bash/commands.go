// Package bash implements the tools that run and stop commands: Bash, Monitor and TaskStop.
//
// A background command is a task of a [task.Set]. Closing the set stops it.
package bash

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/claudeless/claudeless/executor/internal/files"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// Options configure [New]. Shell, Clock and Files are required.
type Options struct {
	Shell *tool.Shell
	Clock tool.Clock             // provides the names of files with saved output
	Files *files.SeenFileTracker // records the files that a command prints
	// Tasks contains the background commands; nil means that commands cannot run in the background.
	Tasks *task.Set
	// Snapshot returns the state of the repository of a directory before a command. The result of the command lists the
	// files that differ from this state. If Snapshot is nil or returns nil, the result lists no files.
	Snapshot func(ctx context.Context, dir string) *gitworktree.Snapshot
	// OutputDir is the directory, created when needed, for output that is too large to show, which is truncated if OutputDir is
	// empty.
	OutputDir string
}

// Commands runs the commands of a session. Many goroutines may call its methods.
type Commands struct {
	options Options
	differ  gitworktree.SessionDiffer
}

// New returns the Commands of a session. It starts no process.
func New(o Options) *Commands { return &Commands{options: o} }

const (
	defaultTimeoutMS           = 120_000
	maxTimeoutMS               = 600_000
	defaultBackgroundTimeoutMS = 600_000
	maxBackgroundTimeoutMS     = 7_200_000
)

type bashInput struct {
	Command         string                  `json:"command"`
	Timeout         *tool.IntFromJSONNumber `json:"timeout"`
	Description     string                  `json:"description"`
	RunInBackground bool                    `json:"run_in_background"`
	NoSandbox       bool                    `json:"dangerouslyDisableSandbox"`
}

func taskInfo(call protocol.ToolUse, in bashInput) task.Info {
	info := task.Info{Kind: task.KindBash, ToolUseID: call.ID, Description: cmp.Or(in.Description, in.Command), Command: in.Command}
	if a := call.Agent; a != nil {
		info.ParentID, info.EndsWithAgent = a.ID, !a.InBackground
	}
	return info
}

func (c *Commands) timeout(in bashInput) time.Duration {
	ms, most := defaultBackgroundTimeoutMS, maxBackgroundTimeoutMS
	if !in.RunInBackground {
		ms = cmp.Or(c.envMilliseconds("BASH_DEFAULT_TIMEOUT_MS"), defaultTimeoutMS)
		most = max(ms, cmp.Or(c.envMilliseconds("BASH_MAX_TIMEOUT_MS"), maxTimeoutMS))
	}
	if in.Timeout != nil && *in.Timeout > 0 {
		ms = int(*in.Timeout)
	}
	return time.Duration(min(ms, most)) * time.Millisecond
}

func (c *Commands) areBackgroundTasksDisabled() bool {
	return c != nil && isTrueVariable(c.options.Shell.Getenv("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")) // c is nil if only the definition of a tool is needed
}

func isTrueVariable(value string) bool { return value != "" && value != "0" && value != "false" }

func (c *Commands) envMilliseconds(key string) int {
	n, err := strconv.Atoi(c.options.Shell.Getenv(key))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

type taskStopInput struct {
	TaskID  string `json:"task_id"`
	ShellID string `json:"shell_id"`
}

// TaskStop returns the tool that stops a background task.
func TaskStop(c *Commands) tool.Tool {
	return tool.Tool{
		Name:        "TaskStop",
		Description: "Stops a background task.",
		Input:       tool.Object(tool.Optional("task_id", tool.String("Id of the task")), tool.Optional("shell_id", tool.String("Id of the task, from older clients"))),
		Check: tool.TypedCheck(c, func(_ context.Context, c *Commands, in taskStopInput) *protocol.ToolResult {
			_, refusal := c.findTask(in)
			return refusal
		}),
		Run: tool.TypedRun(c, runTaskStop),
	}
}

func (c *Commands) findTask(in taskStopInput) (task.Info, *protocol.ToolResult) {
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

func runTaskStop(_ context.Context, c *Commands, in taskStopInput) protocol.ToolResult {
	info, refusal := c.findTask(in)
	if refusal != nil {
		return *refusal
	}
	if c.options.Tasks.Stop(info.ID, task.KilledByParent) == nil {
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

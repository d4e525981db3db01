// Package bash implements the tools that run and stop commands: Bash, Monitor and TaskStop.
//
// A background command is a task of a [task.Set]. Closing the set stops it.
package bash

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/claudeless/claudeless/executor/internal/files"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// Options configure Commands. Shell, Clock and Files are required.
type Options struct {
	Shell *tool.Shell
	Clock tool.Clock   // provides the names of files with saved output
	Files *files.Files // records the files that a command prints
	// Tasks contains the background commands; nil means that commands cannot run in the background.
	Tasks *task.Set
	// Snapshot returns the state of the repository of a directory, so that the result can list the changes of a
	// command. It returns nil if the result must not list them. The function itself may be nil.
	Snapshot func(ctx context.Context, dir string) *gitworktree.Snapshot
	// OutputDir is the directory for output that is too large to show. It is created when needed. Empty means that such
	// output is truncated.
	OutputDir string
}

// Commands runs the commands of a session. Many goroutines may call its methods.
type Commands struct {
	options Options
	differ  gitworktree.Differ
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
	Command         string       `json:"command"`
	Timeout         *tool.Number `json:"timeout"`
	Description     string       `json:"description"`
	RunInBackground bool         `json:"run_in_background"`
	NoSandbox       bool         `json:"dangerouslyDisableSandbox"`
}

func taskInfo(call protocol.ToolUse, in bashInput) task.Info {
	info := task.Info{Kind: task.KindBash, ToolUseID: call.ID, Description: cmp.Or(in.Description, in.Command), Command: in.Command}
	if call.Agent != nil {
		info.ParentID = call.Agent.ID
	}
	return info
}

// timeout returns the time after which a command is stopped or moved to the background.
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

// foregroundOnly reports whether the environment disables background commands.
func (c *Commands) foregroundOnly() bool {
	return c != nil && isEnabled(c.options.Shell.Getenv("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")) // nil: only definitions
}

func isEnabled(value string) bool { return value != "" && value != "0" && value != "false" }

func (c *Commands) envMilliseconds(key string) int {
	n, err := strconv.Atoi(c.options.Shell.Getenv(key))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

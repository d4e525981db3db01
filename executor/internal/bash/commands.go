// Package bash implements the tools that run and stop commands: Bash, Monitor and TaskStop.
//
// A background command is registered as a task, and closing the tasks ends it.
package bash

import (
	"context"

	"github.com/claudeless/claudeless/executor/internal/files"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/simulator/task"
)

// Options configure Commands. Shell, Clock and Files are required.
type Options struct {
	Shell *tool.Shell
	Clock tool.Clock   // names saved output
	Files *files.Files // is notified when a command has printed the content of a file
	// Tasks holds background commands; nil means no background commands.
	Tasks *task.Set
	// Snapshot returns the state of the repository of a directory if results must list the changes of a command there,
	// otherwise nil. The function itself may be nil.
	Snapshot func(ctx context.Context, dir string) *gitworktree.Snapshot
	// OutputDir is the directory for output that is too large to show; it is
	// created when needed. Empty means such output is truncated.
	OutputDir string
}

// Commands runs the commands of a session. Its methods may be called from many goroutines.
type Commands struct {
	options Options
	differ  gitworktree.Differ
}

// New returns the Commands of a session; it starts nothing.
func New(o Options) *Commands { return &Commands{options: o} }

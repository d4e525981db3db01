// Package bash implements the tools that run and stop commands: Bash, Monitor and
// TaskStop.
//
// A background command is registered as a task, and closing the tasks ends it.
package bash

import (
	"github.com/claudeless/claudeless/executor/internal/files"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/task"
)

// Options configure Commands. Shell, Clock and Files are required.
type Options struct {
	Shell *tool.Shell
	Clock tool.Clock   // names saved output
	Files *files.Files // is notified of files whose content a command has printed
	// Tasks holds background commands; nil = no background commands.
	Tasks *task.Set
	// OutputDir is the directory for output that is too large to show; it is
	// created when needed. Empty = such output is truncated.
	OutputDir string
}

// Commands runs the commands of a session. Its methods may be called from many
// goroutines.
type Commands struct{ options Options }

// New returns the Commands of a session; it starts nothing.
func New(o Options) *Commands { return &Commands{o} }

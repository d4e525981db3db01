// Package bash implements the tools that run commands and stop them: Bash,
// Monitor and TaskStop.
//
// A command that runs in the background is registered as a task, and closing
// the tasks ends it.
package bash

import (
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/executor/shell"
	"github.com/claudeless/claudeless/simulator/task"
)

// Reader is told of files that a command has shown.
type Reader interface {
	// Printed notes that a command has shown a file, if that is what it printed.
	Printed(file, printed string)
}

// Options says how commands run. Shell, Clock and Reader are required.
type Options struct {
	Shell  *shell.Shell
	Clock  tool.Clock // names kept output
	Reader Reader
	// Tasks keeps commands in the background; nil = there are none.
	Tasks *task.Set
	// OutputDir keeps output that is too large to show; it is made when needed.
	// Empty = such output is cut.
	OutputDir string
}

// Commands runs the commands of a session. Its methods may be called from many
// goroutines.
type Commands struct{ o Options }

// New makes the commands of a session. It starts none.
func New(o Options) *Commands { return &Commands{o} }

// Package bash is the tools that run command lines and end what they have begun:
// Bash, Monitor and TaskStop.
//
// Its one invariant: a command that no call waits for is a task, which whoever
// closes the tasks ends. It knows nothing of permissions.
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

package runner

import (
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/screens/console"
)

// Options configure a run. Command, Setup.Executable and System are required.
type Options struct {
	Command []string
	// Setup describes the simulated claude. The runner itself sets Journal, Config and RunID.
	Setup ClaudeSetup
	// Rules define what counts as a failure.
	Rules verdict.Rules
	// Capture is the file that keeps the journal; empty means it is deleted with the private directory.
	Capture string
	// RecordOutput also keeps the output of each claude in the journal.
	RecordOutput bool
	Guard        guard.Level
	// JudgeLater omits the verdict. The journal in the file Capture then contains all that a later verdict needs.
	JudgeLater bool
	// FreshHome gives the command an empty home directory.
	FreshHome bool
	// EnvFor lists variables that are set to the path of claude. An entry is the name of a variable, or the name of a
	// host such as zed. The name of a host stands for the variable in which this host looks for claude.
	EnvFor []string

	// Terminal gives the command a pseudo-terminal; nil means it has the streams of this process.
	Terminal *Terminal

	// Faults are tried one after another, with one run of the command each; empty means one run without a fault.
	Faults []string

	// System is this process; the command uses its streams and signals.
	System *process.System
}

// Terminal is a pseudo-terminal for the command.
type Terminal = console.Settings

// ParseTerminal reads the flags of a pseudo-terminal: its size, "COLSxROWS" or empty, and a directory for its screens.
func ParseTerminal(size, screens string) (*Terminal, error) {
	t := &Terminal{Screens: screens}
	if size == "" {
		return t, nil
	}
	var err error
	t.Size, err = console.ParseSize(size)
	return t, err
}

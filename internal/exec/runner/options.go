package runner

import (
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// Options say what to run and how. Command, Setup.Self and System are required.
type Options struct {
	Command []string
	// Setup is what claude is to be; where processes write to is filled in.
	Setup Setup
	// Rules say what counts as wrong.
	Rules verdict.Rules
	// Capture keeps the journal there; empty = it goes with the private directory.
	Capture string
	// Reports says what is written beside the lines on Stderr.
	Reports Reports
	Guard   guard.Level
	// JudgeLater leaves the verdict to those who read the journal of Capture.
	JudgeLater bool
	// FreshHome gives the command an empty home directory.
	FreshHome bool
	// EnvFor are hosts, or variables, that are told where claude is.
	EnvFor []string

	// Faults are tried one by one, a run of the command each; empty = it is run once,
	// without any.
	Faults []string

	// System is this process: its streams and signals are those of the command.
	System *process.System
}

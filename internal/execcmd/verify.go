package execcmd

import (
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/internal/verdict"
)

// Verify judges journals that were written earlier.
type Verify struct {
	Journals []string `arg:"" name:"journal" help:"Journals of one run, in any order."`
	Scenario string   `short:"s" placeholder:"FILE" help:"Scenario whose expectations count; default the one that the run was given."`
	Lenient  bool     `help:"Leave out what --strict finds."`

	Reports `embed:""`
}

// Run exits as exec would have done.
func (c *Verify) Run(s *process.System) error {
	in := verdict.Input{Lenient: c.Lenient}
	if err := in.ReadFiles(c.Journals, c.Scenario); err != nil {
		return err
	}
	report := verdict.Judge(in)
	err := c.reports(s).Write(&report, s.Stderr)
	if code := report.ExitCode(); code != 0 {
		return &process.ExitError{Code: code, Err: err}
	}
	return err
}

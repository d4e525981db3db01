package execcmd

import (
	"context"
	"errors"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/runner"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// Verify judges journals that were written earlier.
type Verify struct {
	Journals []string `arg:"" name:"journal" help:"Journals of one run, in any order"`
	Scenario string   `short:"s" placeholder:"FILE" help:"Scenario with the expectations (default: the scenario of the run)"`
	Strict   bool     `help:"Also fail on warnings about the scenario, such as a rule that answered no prompt"`
	Lenient  bool     `help:"Do not report set-up findings (S01, S02, …)"`
	NoRuns   bool     `name:"allow-no-runs" help:"Accept a journal in which claude was never started"`
	Sweep    string   `placeholder:"RUN" help:"Kill processes left over from this CLAUDELESS_RUN and report each as a finding"`

	Reports `embed:""`
	Accept  `embed:""`
}

// Run exits as exec would have done.
func (c *Verify) Run(ctx context.Context, s *process.System) error {
	in := verdict.Input{Lenient: c.Lenient, Strict: c.Strict, AllowNoRuns: c.NoRuns}
	if c.Sweep != "" {
		runner.Sweep(c.Sweep, &in)
	}
	if err := in.ReadFiles(c.Journals, c.Scenario); err != nil {
		return err
	}
	report := verdict.Judge(in)
	err := c.reports(s).Write(&report, s.Stderr)
	if in.Scenario != nil {
		err = errors.Join(err, c.write(ctx, s, in.Scenario.File(), report.Unmatched))
	}
	if code := report.ExitCode(); code != 0 {
		return &process.ExitError{Code: code, Err: err}
	}
	return err
}

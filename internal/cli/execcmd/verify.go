package execcmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/runner"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// Verify judges existing journals.
type Verify struct {
	Journals []string `arg:"" name:"journal" help:"Journals of one run or of its shards, in any order"`
	Scenario string   `short:"s" placeholder:"FILE" help:"Check every run against this scenario (default: the scenario of each run)"`
	Runs     int      `placeholder:"N" help:"Fail unless the journals contain exactly N runs of claude"`
	Shards   int      `placeholder:"N" help:"Fail unless N different journals are given"`
	Strict   bool     `help:"Also fail on warnings about the scenario, such as a rule that answered no prompt"`
	Lenient  bool     `help:"Do not report problems of the test set-up (findings S01, S02, …)"`
	NoRuns   bool     `name:"allow-no-runs" help:"Accept a journal in which claude was never started"`
	Sweep    string   `placeholder:"RUN" help:"Kill processes left over from the run with this id (its CLAUDELESS_RUN) and report each as a finding"`

	Reports `embed:""`
	Accept  `embed:""`
}

// Run exits with the code that exec would have returned.
func (c *Verify) Run(ctx context.Context, s *process.System) error {
	in := verdict.Input{Environ: s.Environ, Lenient: c.Lenient, Rules: verdictRules(c.Strict, c.NoRuns), RequiredRuns: c.Runs, RequiredJournals: c.Shards}
	if c.Sweep != "" {
		runner.KillLeftovers(c.Sweep, &in)
	}
	if err := in.ReadFiles(c.Journals, c.Scenario); err != nil {
		return err
	}
	report := verdict.Judge(in)
	err := errors.Join(c.outputFiles(s).Write(&report, in.Entries, s.Stderr), c.addRules(ctx, s, report.Unmatched))
	if code := report.ExitCode(); code != 0 {
		return &process.ExitError{Code: code, Err: err}
	}
	return err
}

// Accept is the flag --accept, which adds missing rules.
type Accept struct {
	Accept bool `help:"Add a rule with a placeholder answer to the scenario for each prompt that no rule matched"`
}

// addRules adds rules for the unmatched prompts of a report to their scenarios, and prints what it did.
func (f *Accept) addRules(ctx context.Context, s *process.System, unmatched []verdict.Unmatched) error {
	if !f.Accept {
		return nil
	}
	prompts := map[string][]string{} // prompts by file
	for _, u := range unmatched {
		if u.File != "" {
			prompts[u.File] = append(prompts[u.File], u.Prompt)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(prompts)) {
		if err := verdict.WriteMissingRules(ctx, file, prompts[file]); err != nil {
			return fmt.Errorf("--accept: %w", err)
		}
		for _, prompt := range prompts[file] {
			fmt.Fprintf(s.Stderr, "claudeless: accepted: %s: added a rule for %q; write its answer\n", file, prompt)
		}
	}
	return nil
}

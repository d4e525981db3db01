package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/parity/suite"
)

type parityCmd struct {
	Claude        string                 `placeholder:"PATH" help:"Path of the real claude (default: CLAUDE_BIN, else the one on PATH)"`
	ClaudeVersion string                 `placeholder:"V" help:"Download this version of the real claude from npm"`
	Between       comparedClaudeVersions `placeholder:"A B" help:"Compare two versions of the real claude"`
	Known         string                 `default:"docs/parity/known.toml" placeholder:"FILE" help:"File that lists the known differences (default: docs/parity/known.toml, or else the built-in list)"`
	JSON          string                 `placeholder:"FILE" help:"Write the report as JSON to FILE"`
	JUnit         string                 `name:"junit" placeholder:"FILE" help:"Write the report as JUnit XML to FILE"`
	Verbose       bool                   `short:"v" help:"Print every difference, and the number of differences by area and kind of output"`
	ShowNormal    bool                   `help:"Print the output of both programs as it is compared, with placeholders for values that vary between runs"`
	DefaultURL    bool                   `name:"default-url" help:"Let both programs use the default URL of the API instead of ANTHROPIC_BASE_URL (Linux)"`
	Protocol      string                 `placeholder:"REVISION,…" help:"Restrict the fixtures of all cases to these MCP revisions"`
	Timeout       time.Duration          `default:"30s" help:"Timeout of one run of claude"`
	Retries       int                    `placeholder:"N" help:"If a case differs, run it up to N more times, and report it as flaky unless it differs every time"`
	Jobs          int                    `placeholder:"N" help:"Number of cases to run at the same time (default: one per processor, at least 2)"`
	Permissions   []string               `sep:"none" placeholder:"FILE" help:"Instead of cases, compare the permission decisions about the tool calls listed in FILE"`
	Isolated      bool                   `hidden:"" help:"Run the job read from stdin in its own network namespace"`
	Cases         []string               `arg:"" optional:"" name:"case" help:"Cases: .txtar files, scenarios with a [parity] table, or directories of these"`
}

type comparedClaudeVersions []string

// Decode reads the words after the option.
func (p *comparedClaudeVersions) Decode(c *kong.DecodeContext) error {
	for range 2 {
		if c.Scan.Peek().IsEOL() || !c.Scan.Peek().IsValue() {
			return process.WithHint("--between takes two versions", "for example: claudeless parity --between OLD NEW CASE…")
		}
		*p = append(*p, c.Scan.Pop().String())
	}
	return nil
}

// Run compares claudeless with the real CLI, and exits with the result.
func (c *parityCmd) Run(ctx context.Context, s *process.System) error {
	ctx, signals := s.WatchSignals(ctx)
	defer signals.StopAndCancelContext()
	if c.Isolated {
		return suite.RunJobFromStdin(ctx, s)
	}
	self, err := s.Executable()
	if err != nil {
		return fmt.Errorf("finding the path of the claudeless binary: %w", err)
	}
	o := suite.Options{
		Cases: c.Cases, Known: c.Known, ShowNormalised: c.ShowNormal, Timeout: c.Timeout, Jobs: c.Jobs, Retries: c.Retries, DefaultURL: c.DefaultURL, Protocol: c.Protocol,
		IsolatedArgs: []string{"parity", "--isolated"}, Executable: self, System: s,
	}
	if err := c.findOrFetchClaudes(ctx, s, &o); err != nil {
		if errors.Is(err, suite.ErrNoClaude) {
			fmt.Fprintf(s.Stderr, "claudeless: skipped: %v\n", err)
			return &process.ExitError{Code: suite.ExitNoClaude}
		}
		return err
	}
	res, err := c.compareCasesOrDecisions(ctx, o)
	if err != nil {
		return process.SignalErrorOr(ctx, err)
	}
	if err := res.Write(suite.ReportOptions{JSON: c.JSON, JUnit: c.JUnit, Verbose: c.Verbose}, s); err != nil {
		return err
	}
	code := res.ExitCode()
	if sig, ok := errors.AsType[*process.SignalError](context.Cause(ctx)); ok { // the report contains the cases that were compared before
		if number, ok := sig.Signal.(syscall.Signal); ok {
			code = 128 + int(number)
		}
	}
	if code != 0 {
		return &process.ExitError{Code: code}
	}
	return nil
}

type parityResult interface {
	Write(f suite.ReportOptions, s *process.System) error
	ExitCode() int
}

func (c *parityCmd) compareCasesOrDecisions(ctx context.Context, o suite.Options) (parityResult, error) {
	if len(c.Permissions) == 0 {
		return suite.Run(ctx, o)
	}
	if len(o.Cases) > 0 {
		return nil, process.WithHint("--permissions cannot be combined with the case "+o.Cases[0], "to compare several files, repeat --permissions")
	}
	o.Cases = c.Permissions
	return suite.CompareDecisions(ctx, o)
}

func (c *parityCmd) findOrFetchClaudes(ctx context.Context, s *process.System, o *suite.Options) (err error) {
	switch {
	case len(c.Between) > 0:
		if o.Left, err = suite.FetchClaude(ctx, s, c.Between[0]); err == nil {
			o.Right, err = suite.FetchClaude(ctx, s, c.Between[1])
		}
	case c.ClaudeVersion != "":
		o.Right, err = suite.FetchClaude(ctx, s, c.ClaudeVersion)
	default:
		path := c.Claude
		if path != "" {
			if path, err = filepath.Abs(path); err != nil {
				return err
			}
		}
		o.Right, err = suite.FindClaude(ctx, s, path, o.Executable)
	}
	return err
}

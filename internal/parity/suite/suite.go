// Package suite runs parity cases with claudeless and the real claude and reports the differences. Every readable
// case gets a verdict, even if others fail.
//
// Each program runs in its own environment (a lane): only the listed environment variables are passed on, and when a run returns,
// its processes have exited and its files are removed.
package suite

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/parity"
	"github.com/claudeless/claudeless/internal/parity/permissions"
)

// Options configure a comparison. System, Executable and Cases are required.
type Options struct {
	Cases []string // files and directories
	// Left and Right are the programs to compare; Program{} means claudeless.
	Left, Right Program
	// Known is the file of known differences between claudeless and the real CLI.
	// Differences between two versions of the real CLI are never accepted.
	Known          string
	ShowNormalised bool          // prints the compared recordings on stdout
	Timeout        time.Duration // bounds each run of a program; 0 means 30 s
	Jobs           int           // the number of parallel cases; 0 means one per processor, at least two
	DefaultURL     bool          // plays the cases with the API at its default URL, which needs a separate network
	Protocol       string        // lists the revisions of MCP that the fixtures of all cases speak; empty means those in the fixture files
	// Retries is how often a case that differs is repeated. Only differences that occur every time are reported,
	// because races can cause a difference by chance.
	Retries      int
	IsolatedArgs []string // arguments with which Executable calls [RunJobFromStdin]
	Executable   string
	System       *process.System
}

// Result is the report about all cases, together with problems of the input files.
type Result struct {
	parity.Report

	Unreadable diag.List // holds the problems of cases that could not be read
	Stale      diag.List // holds known differences that no longer occur
	Normal     string    // holds the normalised recordings, if requested
}

// Run compares all cases. It returns an error only if no case could be compared.
func Run(ctx context.Context, o Options) (*Result, error) {
	res := &Result{}
	between := o.Left.Path != ""
	if between {
		o.Known = ""
	}
	known, err := parity.LoadKnownDifferences(o.Known)
	if list, ok := errors.AsType[diag.List](err); ok {
		res.Unreadable = list
		return res, nil
	}
	if err != nil {
		return nil, err
	}
	var all []*parity.Case
	all, res.Unreadable = parity.LoadCases(o.Cases)
	r := &caseRunner{laneRunner: newLaneRunner(o), known: known, normalisedTexts: make([]string, len(all))}
	if len(all) == 0 && len(res.Unreadable) == 0 {
		return nil, process.WithHint("missing case", "give .txtar files, scenarios with [parity], or directories of these: claudeless parity CASE…")
	}
	if len(all) > 0 {
		r.tryNetworkIsolationOrWarn(ctx)
	}
	res.Cases = make([]*parity.Verdict, len(all))
	for i, c := range all {
		res.Cases[i] = r.newVerdict(c)
		res.Cases[i].Status, res.Cases[i].Reasons = parity.StatusNotCompared, []string{"the run was interrupted"}
	}
	r.runAllInParallelWithRetries(ctx, len(all), func(i int) {
		if v := r.runAndCompareCase(ctx, i, all[i], res.Cases[i]); ctx.Err() == nil {
			res.Cases[i] = v
		}
	}, func(i int) bool {
		v := res.Cases[i]
		return v.Status == parity.StatusDiffers || v.Status == parity.StatusNotCompared || v.Status != parity.StatusNotComparable && r.known.HasUnneededEntryForCase(v.Case, v.File, v.Version)
	})
	for _, text := range r.normalisedTexts {
		res.Normal += text
	}
	if ctx.Err() == nil {
		res.Stale = append(known.ReportPatternsNoLongerNeeded(o.Right.Version), known.ReportOverdueConfirmations(o.System.Now())...)
	}
	if between {
		res.ConvertToVersionComparison(listOptionsAndCommandsInHelp(ctx, o.System, o.Left), listOptionsAndCommandsInHelp(ctx, o.System, o.Right))
	}
	return res, nil
}

type caseRunner struct {
	laneRunner
	normalisedTexts []string

	mu    sync.Mutex
	known *parity.KnownDifferenceFile
}

func (r *caseRunner) newVerdict(c *parity.Case) *parity.Verdict {
	return &parity.Verdict{Case: c.Name, Area: c.AreaFromDirectoryName(), Version: r.Right.Version, File: c.File, Line: c.ScenarioLine, Differences: []parity.Difference{}}
}

// runAndCompareCase runs a case with both programs and compares their recordings. previous is the verdict of the attempt before, if any.
func (r *caseRunner) runAndCompareCase(ctx context.Context, caseIndex int, c *parity.Case, previous *parity.Verdict) *parity.Verdict {
	v := r.newVerdict(c)
	if len(c.Incomparable) > 0 && r.Left.Path == "" {
		v.Status, v.Reasons = parity.StatusNotComparable, c.Incomparable
		return v
	}
	recordings, err := r.playLanes(ctx, r.Timeout, func(string) (*parity.Case, error) { return c, nil })
	if err != nil {
		v.Differences = append(v.Differences, parity.Difference{Path: "run", Real: err.Error(), Count: 1})
		v.SetStatusFromDifferences()
		return v
	}
	left, right := recordings[0], recordings[1]
	v.OursMS, v.RealMS = left.Duration.Milliseconds(), right.Duration.Milliseconds()
	if v.Reasons = parity.TextsOfTimeoutProblems(left, right); v.Reasons != nil {
		v.Status = parity.StatusNotCompared
		return v
	}
	if r.Left.Path == "" {
		left.ReplaceCLIProseByPlaceholders()
		right.ReplaceCLIProseByPlaceholders()
	}
	v.Differences = append(v.Differences, parity.Compare(left, right)...)
	if r.ShowNormalised {
		r.normalisedTexts[caseIndex] = parity.FormatNormalisedRecordings(c.Name, left, right)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.MarkKnownAndRecordPatternUse(c.Name, c.File, r.Right.Version, v.Differences)
	v.SetStatusFromDifferences()
	if refusal := parity.RefusalByBothPrograms(left, right); refusal != "" && !c.Refuses && v.Status != parity.StatusDiffers {
		v.Status, v.Reasons = parity.StatusNotCompared, []string{refusal}
	}
	if previous.Status == parity.StatusDiffers && v.Status != parity.StatusDiffers {
		v.Flaky = previous.UnknownDifferencePaths()
	}
	return v
}

// ReportOptions are the paths of reports; empty means not written.
type ReportOptions struct {
	JSON, JUnit string
	Verbose     bool // prints the complete report instead of one screen
}

// Write writes the reports and prints the summary.
func (res *Result) Write(f ReportOptions, s *process.System) error {
	res.Verbose = f.Verbose
	diag.Render(s.Stderr, res.Unreadable)
	diag.Render(s.Stderr, res.Stale)
	_, err := io.WriteString(s.Stdout, res.Normal)
	return errors.Join(err, f.writeFiles(&res.Report), res.WriteText(s.Stdout))
}

func writeReportFile(name string, data []byte) error {
	if err := os.WriteFile(name, data, 0o644); err != nil {
		return fmt.Errorf("writing a report: %w", err)
	}
	return nil
}

// The exit codes.
const (
	ExitDiffers    = 1
	ExitUnreadable = 2
	ExitNoClaude   = 77
)

// ExitCode returns 0 if all cases could be read, all comparable cases were compared, no case differs unexpectedly, and every
// known difference still occurs.
func (res *Result) ExitCode() int {
	switch {
	case len(res.Unreadable) > 0:
		return ExitUnreadable
	case res.Count(parity.StatusDiffers)+res.Count(parity.StatusNotCompared) > 0 || len(res.Stale) > 0:
		return ExitDiffers
	}
	return 0
}

type laneRunner struct {
	Options
	isIsolated bool // each program has its own network namespace
}

func newLaneRunner(o Options) laneRunner {
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	return laneRunner{Options: o}
}

func (r *laneRunner) tryNetworkIsolationOrWarn(ctx context.Context) {
	_, err := PlayIsolated(ctx, r.System, &CaseJob{Case: &parity.Case{}, Executable: r.Executable}, r.IsolatedArgs...)
	if r.isIsolated = err == nil; err != nil && ctx.Err() == nil {
		fmt.Fprintf(r.System.Stderr, "claudeless: warning: claudeless and the real claude share this machine's network: %v\n", err)
	}
}

// runAllInParallelWithRetries calls runItem(i) for all i below itemCount. It then repeats the calls for which
// needsRepeat(i) is true, up to Retries times. Several calls run at the same time.
func (r *laneRunner) runAllInParallelWithRetries(ctx context.Context, itemCount int, runItem func(i int), needsRepeat func(i int) bool) {
	again := make([]int, itemCount)
	for i := range again {
		again[i] = i
	}
	jobs := r.Jobs
	if jobs <= 0 {
		jobs = max(2, runtime.NumCPU())
	}
	for left := r.Retries; len(again) > 0 && ctx.Err() == nil; left-- {
		var calls sync.WaitGroup
		running := make(chan struct{}, jobs)
		for _, i := range again {
			if ctx.Err() != nil {
				break
			}
			running <- struct{}{}
			calls.Go(func() { // returns when runItem does
				runItem(i)
				<-running
			})
		}
		calls.Wait()
		if left <= 0 {
			return
		}
		again = slices.DeleteFunc(again, func(i int) bool { return !needsRepeat(i) })
	}
}

// playLanes runs a case with both programs. makeCase is called with the new directory of the job.
func (r *laneRunner) playLanes(ctx context.Context, timeout time.Duration, makeCase func(dir string) (*parity.Case, error)) (recordings []*parity.Recording, err error) {
	dir, err := proc.MakeTempDir("claudeless-parity-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	c, err := makeCase(dir.Path)
	if err != nil {
		return nil, err
	}
	job := &CaseJob{Case: c, Dir: dir.Path, Executable: r.Executable, Timeout: timeout, DefaultURL: r.DefaultURL || c.DefaultURL, Protocol: r.Protocol, Lanes: []Lane{
		{Program: r.Left.Path, Version: r.Right.Version}, {Program: r.Right.Path},
	}}
	if !r.isIsolated {
		if job.DefaultURL {
			return nil, ErrNotIsolated
		}
		return Play(ctx, r.System, job)
	}
	return PlayIsolated(ctx, r.System, job, r.IsolatedArgs...)
}

// DecisionReport compares how two programs decide about tool calls.
type DecisionReport struct {
	permissions.CallVerdictsReport

	Unreadable diag.List // holds the problems of files that could not be read
	Stale      diag.List // reports known decisions whose calls no longer differ
}

// CompareDecisions plays files of calls with two programs and compares the decisions about the calls. Options.Cases
// names the files. Each program plays each group of calls in one session.
func CompareDecisions(ctx context.Context, o Options) (*DecisionReport, error) {
	res := &DecisionReport{}
	var files []*permissions.CallGroupsFile
	files, res.Unreadable = permissions.Load(o.Cases)
	if res.Unreadable.Err() != nil {
		return res, nil
	}
	r := newLaneRunner(o)
	r.tryNetworkIsolationOrWarn(ctx)
	var groups []*permissions.CallGroup
	for _, f := range files {
		groups = append(groups, f.Groups...)
	}
	verdicts := make([][]*permissions.DecisionComparison, len(groups))
	for i, g := range groups {
		verdicts[i] = g.AllNotComparedBecause("the run was interrupted")
	}
	r.runAllInParallelWithRetries(ctx, len(groups), func(i int) {
		if found := r.playAndCompareGroup(ctx, groups[i]); ctx.Err() == nil {
			verdicts[i] = found
		}
	}, func(i int) bool {
		return slices.ContainsFunc(verdicts[i], func(v *permissions.DecisionComparison) bool { return v.Status != permissions.StatusSame })
	})
	res.Calls = slices.Concat(verdicts...)
	for _, f := range files {
		res.Stale = append(res.Stale, f.ReportUnusedKnownDecisions(res.Calls)...)
	}
	return res, nil
}

func (r *laneRunner) playAndCompareGroup(ctx context.Context, g *permissions.CallGroup) []*permissions.DecisionComparison {
	const each = time.Second // additional time for each call of a session
	recordings, err := r.playLanes(ctx, r.Timeout+time.Duration(len(g.Calls))*each, func(dir string) (*parity.Case, error) {
		cwd, home := filepath.Join(dir, "w", "cwd"), filepath.Join(dir, "w", "home")
		c, err := g.SessionAsParityCase(filepath.Join(dir, "scenario.json"), cwd, home)
		if err != nil {
			return nil, err
		}
		model, err := g.ScenarioJSON(cwd, home)
		if err != nil {
			return nil, err
		}
		return c, os.WriteFile(c.File, model, 0o644)
	})
	if err != nil {
		return g.AllNotComparedBecause(err.Error())
	}
	return g.CompareOutcomes(permissions.ReadOutcomes(recordings[0], len(g.Calls)), permissions.ReadOutcomes(recordings[1], len(g.Calls)))
}

// Write writes the report files, and prints the calls that were decided differently or not compared.
func (d *DecisionReport) Write(f ReportOptions, s *process.System) error {
	d.Verbose = f.Verbose
	diag.Render(s.Stderr, d.Unreadable)
	diag.Render(s.Stderr, d.Stale)
	if d.Unreadable.Err() != nil {
		return nil
	}
	return errors.Join(f.writeFiles(&d.CallVerdictsReport), d.WriteText(s.Stdout))
}

type report interface {
	JSON() ([]byte, error)
	WriteJUnit(w io.Writer) error
}

func (f ReportOptions) writeFiles(r report) (err error) {
	if f.JSON != "" {
		raw, failed := r.JSON()
		err = errors.Join(failed, writeReportFile(f.JSON, raw))
	}
	if f.JUnit != "" {
		var b bytes.Buffer
		err = errors.Join(err, r.WriteJUnit(&b), writeReportFile(f.JUnit, b.Bytes()))
	}
	return err
}

// ExitCode returns 0 if every call was compared and no decision differs, except for known reasons.
func (d *DecisionReport) ExitCode() int {
	switch {
	case d.Unreadable.Err() != nil:
		return ExitUnreadable
	case d.Count(permissions.StatusSame)+d.Count(permissions.StatusKnown) < len(d.Calls), len(d.Stale) > 0:
		return ExitDiffers
	}
	return 0
}

package suite

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/parity"
	"github.com/claudeless/claudeless/internal/parity/permissions"
)

// DecisionReport compares how two programs decide about tool calls.
type DecisionReport struct {
	permissions.Report

	// Unreadable holds the problems of files that could not be read.
	Unreadable diag.List
	// Stale reports known decisions whose calls no longer differ.
	Stale diag.List
}

// CompareDecisions plays files of calls with two programs and compares the decisions about the calls. Options.Cases
// names the files. Each program plays each group of calls in one session.
func CompareDecisions(ctx context.Context, o Options) (*DecisionReport, error) {
	res := &DecisionReport{}
	var files []*permissions.File
	files, res.Unreadable = permissions.Load(o.Cases)
	if res.Unreadable.Err() != nil {
		return res, nil
	}
	r := newLaneRunner(o)
	r.checkIsolation(ctx)
	var groups []*permissions.CallGroup
	for _, f := range files {
		groups = append(groups, f.Groups...)
	}
	verdicts := make([][]*permissions.Verdict, len(groups))
	for i, g := range groups {
		verdicts[i] = g.NotCompared("the run was interrupted")
	}
	r.runWithRetries(ctx, len(groups), func(i int) {
		if found := r.compareGroup(ctx, groups[i]); ctx.Err() == nil {
			verdicts[i] = found
		}
	}, func(i int) bool {
		return slices.ContainsFunc(verdicts[i], func(v *permissions.Verdict) bool { return v.Status != permissions.StatusSame })
	})
	res.Calls = slices.Concat(verdicts...)
	for _, f := range files {
		res.Stale = append(res.Stale, f.Stale(res.Calls)...)
	}
	return res, nil
}

func (r *laneRunner) compareGroup(ctx context.Context, g *permissions.CallGroup) []*permissions.Verdict {
	const each = time.Second // additional time for each call of a session
	recordings, err := r.playLanes(ctx, r.Timeout+time.Duration(len(g.Calls))*each, func(dir string) (*parity.Case, error) {
		cwd, home := Directories(dir)
		c, err := g.Case(filepath.Join(dir, "scenario.json"), cwd, home)
		if err != nil {
			return nil, err
		}
		model, err := g.Scenario(cwd, home)
		if err != nil {
			return nil, err
		}
		return c, os.WriteFile(c.File, model, 0o644)
	})
	if err != nil {
		return g.NotCompared(err.Error())
	}
	return g.Judge(permissions.ReadOutcomes(recordings[0], len(g.Calls)), permissions.ReadOutcomes(recordings[1], len(g.Calls)))
}

// Write writes the report files, and prints the calls that were decided differently or not compared.
func (d *DecisionReport) Write(f ReportFiles, s *process.System) error {
	d.Verbose = f.Verbose
	diag.Render(s.Stderr, d.Unreadable)
	diag.Render(s.Stderr, d.Stale)
	if d.Unreadable.Err() != nil {
		return nil
	}
	return errors.Join(f.write(&d.Report), d.WriteText(s.Stdout))
}

type report interface {
	JSON() ([]byte, error)
	JUnit(w io.Writer) error
}

func (f ReportFiles) write(r report) (err error) {
	if f.JSON != "" {
		raw, failed := r.JSON()
		err = errors.Join(failed, writeFile(f.JSON, raw))
	}
	if f.JUnit != "" {
		var b bytes.Buffer
		err = errors.Join(err, r.JUnit(&b), writeFile(f.JUnit, b.Bytes()))
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

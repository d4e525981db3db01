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
	"github.com/claudeless/claudeless/internal/parity/cases"
	"github.com/claudeless/claudeless/internal/parity/lane"
	"github.com/claudeless/claudeless/internal/parity/permissions"
)

// Decisions compares how two programs decide about tool calls.
type Decisions struct {
	permissions.Report

	// Unreadable are the problems of files that could not be read.
	Unreadable diag.List
	// Stale are known decisions that are not different any more.
	Stale diag.List
}

// Decide plays files of calls, each group of calls in one session of either program. Options.Cases are the files.
func Decide(ctx context.Context, o Options) (*Decisions, error) {
	res := &Decisions{}
	var files []*permissions.File
	files, res.Unreadable = permissions.Load(o.Cases)
	if res.Unreadable.Err() != nil {
		return res, nil
	}
	r := newLaneRunner(o)
	r.probe(ctx)
	var groups []*permissions.Group
	for _, f := range files {
		groups = append(groups, f.Groups...)
	}
	verdicts := make([][]*permissions.Verdict, len(groups))
	again := make([]int, len(groups))
	for i, g := range groups {
		again[i], verdicts[i] = i, g.Missed("the run was interrupted")
	}
	for left := o.Retries; len(again) > 0 && ctx.Err() == nil; left-- {
		r.each(ctx, again, func(i int) {
			if found := r.decide(ctx, groups[i]); ctx.Err() == nil {
				verdicts[i] = found
			}
		})
		if left <= 0 {
			break
		}
		again = slices.DeleteFunc(again, func(i int) bool { return !slices.ContainsFunc(verdicts[i], different) })
	}
	res.Calls = slices.Concat(verdicts...)
	for _, f := range files {
		res.Stale = append(res.Stale, f.Stale(res.Calls)...)
	}
	return res, nil
}

func different(v *permissions.Verdict) bool { return v.Status != permissions.Same }

// decide plays one group.
func (r *laneRunner) decide(ctx context.Context, g *permissions.Group) []*permissions.Verdict {
	const each = time.Second // of a session, on top of Timeout
	recordings, err := r.play(ctx, r.Timeout+time.Duration(len(g.Calls))*each, func(dir string) (*cases.Case, error) {
		cwd, home := lane.Directories(dir)
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
		return g.Missed(err.Error())
	}
	return g.Judge(permissions.Read(recordings[0], len(g.Calls)), permissions.Read(recordings[1], len(g.Calls)))
}

// Write writes the reports and the verdicts that are not the same.
func (d *Decisions) Write(f Files, s *process.System) error {
	d.Verbose = f.Verbose
	diag.Render(s.Stderr, d.Unreadable)
	diag.Render(s.Stderr, d.Stale)
	if d.Unreadable.Err() != nil {
		return nil
	}
	return errors.Join(f.write(&d.Report), d.WriteText(s.Stdout))
}

// report is what can be written to files.
type report interface {
	JSON() ([]byte, error)
	JUnit(w io.Writer) error
}

// write writes a report to the files that were asked for.
func (f Files) write(r report) (err error) {
	if f.JSON != "" {
		raw, failed := r.JSON()
		err = errors.Join(failed, write(f.JSON, raw))
	}
	if f.JUnit != "" {
		var b bytes.Buffer
		err = errors.Join(err, r.JUnit(&b), write(f.JUnit, b.Bytes()))
	}
	return err
}

// ExitCode is 0 when every call was compared and is decided the same, or differently for a known reason.
func (d *Decisions) ExitCode() int {
	switch {
	case d.Unreadable.Err() != nil:
		return ExitUnreadable
	case d.Count(permissions.Same)+d.Count(permissions.Excused) < len(d.Calls), len(d.Stale) > 0:
		return ExitDiffers
	}
	return 0
}

package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/parity"
)

type laneRunner struct {
	Options
	isIsolated bool // lanes have their own network namespace
}

func newLaneRunner(o Options) laneRunner {
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	return laneRunner{Options: o}
}

// checkIsolation checks whether the lanes can have their own network namespace, and warns if they cannot.
func (r *laneRunner) checkIsolation(ctx context.Context) {
	err := CheckIsolation(ctx, r.System, r.Self, r.IsolatedArgs...)
	if r.isIsolated = err == nil; err != nil && ctx.Err() == nil {
		fmt.Fprintf(r.System.Stderr, "claudeless: warning: claudeless and the real claude share this machine's network: %v\n", err)
	}
}

// forEach calls the function do for every number, with limited concurrency.
func (r *laneRunner) forEach(ctx context.Context, numbers []int, do func(i int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	jobs := r.Jobs
	if jobs <= 0 {
		jobs = max(2, runtime.NumCPU())
	}
	for range min(jobs, len(numbers)) {
		workers.Go(func() { // returns when next has no more work
			for i := range next {
				do(i)
			}
		})
	}
	for _, i := range numbers {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
}

// play runs a case with both programs. makeCase is called with the new directory of the job.
func (r *laneRunner) play(ctx context.Context, timeout time.Duration, makeCase func(dir string) (*parity.Case, error)) (recordings []*parity.Recording, err error) {
	dir, err := proc.MakeTempDir("claudeless-parity-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	c, err := makeCase(dir.Path)
	if err != nil {
		return nil, err
	}
	job := &Job{Case: c, Dir: dir.Path, Self: r.Self, Timeout: timeout, DefaultURL: r.DefaultURL || c.DefaultURL, Protocol: r.Protocol, Lanes: []Lane{
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

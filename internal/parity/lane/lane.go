// Package lane runs a parity case with one program, claudeless or the real
// claude, in an environment that is the same for both, and records everything
// that is visible from outside.
//
// Only the listed environment variables are passed on. Processes and files of a
// run are gone when it returns.
package lane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/parity"
	"github.com/claudeless/claudeless/internal/parity/cases"
)

// Job is a case and the programs that run it, one after the other.
type Job struct {
	Case  *cases.Case `json:"case"`
	Lanes []Lane      `json:"lanes"`
	// Dir is a fresh directory; the lanes use the same place in it.
	Dir string `json:"dir"`
	// Self is this binary: the double, and the fixtures.
	Self string `json:"self"`
	// Timeout bounds each run of a program.
	Timeout time.Duration `json:"timeout"`
	// DefaultURL lets the programs reach the API at its default URL, in a network of their own.
	DefaultURL bool `json:"default_url,omitempty"`
	// Isolated says that the network has nothing but loopback.
	Isolated bool `json:"isolated"`
}

// Lane is one program.
type Lane struct {
	// Program is claude; empty = the double.
	Program string `json:"program,omitempty"`
	// Version that the double claims.
	Version string `json:"version,omitempty"`
}

// Play runs the lanes of a job, in their order.
func Play(ctx context.Context, s *process.System, job *Job) ([]*parity.Recording, error) {
	var all []*parity.Recording
	for _, l := range job.Lanes {
		p := &play{Job: job, Lane: l, sys: s, began: s.Now()}
		if err := p.prepare(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("preparing %s: %w", job.Case.Name, err), p.close(ctx))
		}
		before := unrouted()
		p.runs(ctx)
		if n := unrouted() - before; job.Isolated && n > 0 {
			p.problem("network", fmt.Sprintf("tried to reach the network (%d times)", n))
		}
		err := errors.Join(p.close(ctx), p.gather())
		if err != nil {
			return nil, fmt.Errorf("recording %s: %w", job.Case.Name, err)
		}
		p.rec.Took = s.Now().Sub(p.began)
		all = append(all, &p.rec)
	}
	return all, nil
}

// Answer is what [Serve] writes.
type Answer struct {
	Recordings []*parity.Recording `json:"recordings,omitempty"`
	Error      string              `json:"error,omitempty"`
}

// Serve plays the job that it reads, in a network of its own, and writes what came
// of it. It is the other half of [Isolate].
func Serve(ctx context.Context, s *process.System) error {
	var job Job
	if err := json.NewDecoder(s.Stdin).Decode(&job); err != nil {
		return fmt.Errorf("reading a job: %w", err)
	}
	var a Answer
	err := guard.Loopback()
	if err == nil && job.DefaultURL {
		var names io.Closer
		if names, err = guard.ServeName(apiHost); err == nil {
			defer func() { _ = names.Close() }() // the network ends with this process
		}
	}
	if err == nil {
		a.Recordings, err = Play(ctx, s, &job)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return json.NewEncoder(s.Stdout).Encode(a)
}

// ErrNotIsolated says that the system gives no network of their own to processes.
var ErrNotIsolated = errors.New("no network namespace")

// Isolate plays a job in a process that reaches nothing but itself, and whose end
// is the end of all that it has started. words are the command that calls [Serve].
func Isolate(ctx context.Context, s *process.System, job *Job, words ...string) ([]*parity.Recording, error) {
	job.Isolated = true
	raw, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	const most = 512 << 20
	limit := time.Duration(len(job.Lanes)*max(1, len(job.Case.Runs)))*(job.Timeout+5*time.Second) + 30*time.Second
	res, err := proc.Run(ctx, proc.RunOptions{
		Command: proc.Command{Path: job.Self, Args: words, Env: s.Environ, Isolated: true},
		Stdin:   raw, Limit: most, Timeout: limit,
	})
	if err != nil {
		return nil, errors.Join(ErrNotIsolated, err)
	}
	var a Answer
	if err := json.Unmarshal(res.Stdout, &a); err != nil {
		return nil, fmt.Errorf("the lanes ended with %s: %s", res.Exit, lastOf(res.Stderr))
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Recordings, nil
}

func lastOf(b []byte) string {
	const most = 500
	return string(b[max(0, len(b)-most):])
}

// Probe finds out whether [Isolate] works here.
func Probe(ctx context.Context, s *process.System, self string, words ...string) error {
	_, err := Isolate(ctx, s, &Job{Case: &cases.Case{}, Self: self}, words...)
	return err
}

// unrouted counts what this process's network could not send anywhere: what tried
// to leave a network that has only loopback.
func unrouted() int {
	table, _ := os.ReadFile("/proc/self/net/snmp") // elsewhere nothing is counted
	var names []string
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "Ip:" {
			continue
		}
		if names == nil {
			names = words
			continue
		}
		for i, name := range names {
			if name == "OutNoRoutes" && i < len(words) {
				n, _ := strconv.Atoi(words[i]) // the kernel writes numbers
				return n
			}
		}
	}
	return 0
}

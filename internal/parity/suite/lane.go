package suite

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
)

// Job is a case with the programs that run it, one after the other.
type Job struct {
	Case  *parity.Case `json:"case"`
	Lanes []Lane       `json:"lanes"`
	// Dir is a new directory. The lanes run one after the other at one path in it.
	Dir string `json:"dir"`
	// Self is the claudeless binary, which is also used for fixtures.
	Self string `json:"self"`
	// Timeout bounds each run of a program.
	Timeout time.Duration `json:"timeout"`
	// DefaultURL lets the programs reach the API at its default URL, in a separate network.
	DefaultURL bool `json:"default_url,omitempty"`
	// Protocol lists the revisions of MCP that the fixtures speak; empty means those of their files.
	Protocol string `json:"protocol,omitempty"`
	// Isolated is true if the network has only the loopback interface.
	Isolated bool `json:"isolated"`
}

// Lane is one program.
type Lane struct {
	// Program is the path of claude; empty means claudeless.
	Program string `json:"program,omitempty"`
	// Version is the version that claudeless reports.
	Version string `json:"version,omitempty"`
}

// Play runs the lanes of a job in order.
func Play(ctx context.Context, s *process.System, job *Job) ([]*parity.Recording, error) {
	var all []*parity.Recording
	for _, l := range job.Lanes {
		p := &laneRun{Job: job, Lane: l, sys: s, started: s.Now()}
		if err := p.prepare(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("preparing %s: %w", job.Case.Name, err), p.close(ctx))
		}
		before := unroutedPackets()
		p.runAll(ctx)
		if n := unroutedPackets() - before; job.Isolated && n > 0 {
			p.addProblem("network", fmt.Sprintf("tried to reach the network (%d times)", n))
		}
		err := errors.Join(p.close(ctx), p.collectResults())
		if err != nil {
			return nil, fmt.Errorf("recording %s: %w", job.Case.Name, err)
		}
		p.recording.Duration = s.Now().Sub(p.started)
		all = append(all, &p.recording)
	}
	return all, nil
}

// ServeResult is the output of [ServeJob].
type ServeResult struct {
	Recordings []*parity.Recording `json:"recordings,omitempty"`
	Error      string              `json:"error,omitempty"`
}

// ServeJob reads a job, runs it in its own network namespace, and writes the result. [PlayIsolated] is its caller.
func ServeJob(ctx context.Context, s *process.System) error {
	var job Job
	if err := json.NewDecoder(s.Stdin).Decode(&job); err != nil {
		return fmt.Errorf("reading a job: %w", err)
	}
	var a ServeResult
	err := guard.BringUpLoopback()
	if err == nil && job.DefaultURL {
		var names io.Closer
		if names, err = guard.ServeDNSName(apiHost); err == nil {
			defer func() { _ = names.Close() }() // the network disappears when this process exits
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

// ErrNotIsolated means that the system does not allow separate network namespaces.
var ErrNotIsolated = errors.New("no network namespace")

// PlayIsolated runs a job in a process without network access. When the process exits, all processes that it has
// started are killed. words are the command that calls [ServeJob].
func PlayIsolated(ctx context.Context, s *process.System, job *Job, words ...string) ([]*parity.Recording, error) {
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
	var a ServeResult
	if err := json.Unmarshal(res.Stdout, &a); err != nil {
		return nil, fmt.Errorf("a run of the case failed with %s: %s", res.Exit, lastBytes(res.Stderr))
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Recordings, nil
}

func lastBytes(b []byte) string {
	const most = 500
	return string(b[max(0, len(b)-most):])
}

// CheckIsolation reports whether [PlayIsolated] works on this system.
func CheckIsolation(ctx context.Context, s *process.System, self string, words ...string) error {
	_, err := PlayIsolated(ctx, s, &Job{Case: &parity.Case{}, Self: self}, words...)
	return err
}

// unroutedPackets returns the number of packets that the kernel could not route. In a network with only loopback, these
// are attempts to reach an outside address.
func unroutedPackets() int {
	table, _ := os.ReadFile("/proc/self/net/snmp") // only Linux counts unroutable packets
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

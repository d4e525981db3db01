package runner

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/exec/procio"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

const (
	// patience is how long a command may take under a fault beyond the time that it
	// takes without one; atMost is the limit for both together, unless the machine is
	// so slow that slower times that time is more.
	patience = 12 * time.Second
	atMost   = 18 * time.Second
	slower   = 3
	// first is how long it may take without any.
	first = time.Minute
	// sideBySide is how many faults are tried at once; of what keeps a processor busy, as
	// a real claude does, there are no more at once than processors.
	sideBySide = 4
)

// limit is how long a command may take under a fault, after that time without one.
func limit(plain time.Duration) time.Duration {
	return max(min(atMost, plain+patience), slower*plain)
}

// atOnce is how many faults are tried side by side, of a command that took so long
// without one, and that much of a processor. One that starts slower than alone would
// seem to hang.
func (o Options) atOnce(plain, cpu time.Duration) int {
	if o.Setup.Real.Path != "" || 2*cpu > plain {
		return min(sideBySide, runtime.NumCPU())
	}
	return sideBySide
}

// TryFaults runs the command once without a fault, and then once under each. It is
// not shown what the command prints.
func TryFaults(ctx context.Context, o Options) (*verdict.Report, error) {
	faults, err := chosen(o.Faults)
	if err != nil {
		return nil, err
	}
	report := &verdict.Report{Verdict: "ok", Findings: []verdict.Finding{}, Expectations: []verdict.Expectation{}, Unmatched: []verdict.Unmatched{}, Runs: []verdict.Run{}}
	plain := o.try(ctx, procio.Fault{Truth: "success"}, first)
	if plain.err != nil {
		return nil, plain.err
	}
	report.Command = &verdict.Command{Argv: o.Command, Code: plain.row.Code, MS: plain.row.MS}
	if plain.row.Outcome != "survived" {
		report.Verdict = "failed"
		report.Findings = append(report.Findings, verdict.Finding{
			ID: "F01", Level: "error", Text: fmt.Sprintf("without any fault the command %s with exit code %d", plain.row.Outcome, plain.row.Code),
			Advice: "make it pass first:\n" + plain.said,
		})
		if report.Command.Code == 0 {
			report.Command.Code = verdict.ExitConduct
		}
		return report, o.Reports.Write(report, o.System.Stderr)
	}
	if !plain.started && !o.Rules.AllowNoRuns && !o.Setup.Lenient {
		report.Verdict, report.Findings = "failed", append(report.Findings, verdict.NoRuns())
		return report, o.Reports.Write(report, o.System.Stderr)
	}
	took := time.Duration(plain.row.MS * float64(time.Millisecond))
	most := limit(took)
	report.Faults = make([]verdict.Fault, len(faults))
	var wg sync.WaitGroup
	turns := make(chan struct{}, o.atOnce(took, plain.cpu))
	for i, f := range faults {
		turns <- struct{}{}
		wg.Go(func() {
			report.Faults[i] = o.try(ctx, f, most).row
			<-turns
		})
	}
	wg.Wait()
	if report.ExitCode() != 0 {
		report.Verdict = "failed"
	}
	return report, o.Reports.Write(report, o.System.Stderr)
}

// chosen are the faults with these names; "all" is the catalogue.
func chosen(names []string) ([]procio.Fault, error) {
	all, err := procio.Faults()
	if err != nil || slices.Contains(names, "all") {
		return all, err
	}
	var list []procio.Fault
	for _, name := range names {
		f := procio.FaultByName(name)
		if f == nil {
			var known []string
			for _, f := range all {
				known = append(known, f.Name)
			}
			return nil, fmt.Errorf("--faults: unknown fault %q; choose from %s", name, strings.Join(known, ", "))
		}
		list = append(list, *f)
	}
	return list, nil
}

// faultResult is how one run ended.
type faultResult struct {
	row     verdict.Fault
	cpu     time.Duration // that the command took
	said    string        // on stderr
	started bool          // claude was
	err     error         // of the preparation
}

// try runs the command under a fault, for at most that long.
func (o Options) try(ctx context.Context, f procio.Fault, most time.Duration) faultResult {
	if o.Setup.Real.Path != "" {
		f.Truth = cmp.Or(f.RealTruth, f.Truth)
	}
	t := faultResult{row: verdict.Fault{Name: f.Name, Bug: f.Bug, Advice: f.Caller}}
	o.Setup.Fault, o.Capture = f.Name, ""
	r, err := prepare(ctx, o)
	if err != nil {
		t.err = err
		return t
	}
	defer r.close()
	var out outputTail
	began := o.System.Now()
	c, err := r.start(ctx, proc.AttachOptions{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
	if err != nil {
		t.err = err
		return t
	}
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-c.Done():
	case <-late.C:
		t.row.Outcome = "hung"
		c.Kill()
	case <-ctx.Done():
		t.err = errors.Join(t.err, ctx.Err())
		c.Kill()
	}
	finish(c.leftovers(r.Setup.Run), 0)
	exit := c.Exit()
	t.cpu = c.CPU()
	c.Stop(0)
	c.close()
	var in verdict.Input
	t.started = in.ReadFiles([]string{r.journal}, r.Setup.Scenario) != nil || in.Started()
	t.row.Code, t.row.MS, t.said = exit.Code, float64(o.System.Now().Sub(began).Microseconds())/1000, out.String()
	if t.row.Outcome == "" {
		t.row.Outcome = outcome(f, exit, t.said)
	}
	return t
}

// outcome says how a command came through a fault that it has outlived.
func outcome(f procio.Fault, exit proc.Exit, said string) string {
	switch {
	case exit.Signal != "" || exit.Code >= 128 || crashed(said):
		return "crashed"
	case exit.Code != 0:
		return "failed"
	case f.Truth == "failure":
		return "lied"
	}
	return "survived"
}

// crashed tells from what was printed that nobody caught an error.
func crashed(said string) bool {
	for _, sign := range []string{"Traceback (most recent call last)", "\nNode.js v", "panic: ", "goroutine 1 [", "Unhandled promise rejection", "thread 'main' panicked"} {
		if strings.Contains(said, sign) {
			return true
		}
	}
	return false
}

// outputTail keeps the last of what is written to it.
type outputTail struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

func (t *outputTail) Write(p []byte) (int, error) {
	const most = 64 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Write(p)
	if over := t.kept.Len() - most; over > 0 {
		t.kept.Next(over)
	}
	return len(p), nil
}

func (t *outputTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept.String()
}

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/exec/procio"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

const (
	// maxExtraDurationOfRunWithFault is how much longer a run may take with a fault than without one. In addition,
	// maxTotalDurationOfRunWithFault limits the total time. On a slow machine both limits can be too short. Therefore
	// alwaysAllowedMultipleOfDurationWithoutFault times the duration without a fault is always allowed.
	maxExtraDurationOfRunWithFault              = 12 * time.Second
	maxTotalDurationOfRunWithFault              = 18 * time.Second
	alwaysAllowedMultipleOfDurationWithoutFault = 3
	timeLimitWithoutFault                       = time.Minute
	// maxFaultRunsAtSameTime limits the faults that are tried at the same time. Busy runs get fewer: see faultRunsAtSameTime.
	maxFaultRunsAtSameTime = 4
)

func timeLimitOfRunWithFault(durationWithoutFault time.Duration) time.Duration {
	return max(min(maxTotalDurationOfRunWithFault, durationWithoutFault+maxExtraDurationOfRunWithFault), alwaysAllowedMultipleOfDurationWithoutFault*durationWithoutFault)
}

// faultRunsAtSameTime returns how many faults are tried at the same time, given the duration and processor time of the run
// without a fault. Too many parallel runs would be slow and look like hangs.
func (o Options) faultRunsAtSameTime(durationWithoutFault, cpuTimeWithoutFault time.Duration) int {
	if o.Setup.Real.Path != "" || 2*cpuTimeWithoutFault > durationWithoutFault {
		return min(maxFaultRunsAtSameTime, runtime.NumCPU())
	}
	return maxFaultRunsAtSameTime
}

// TryFaults runs the command once without a fault, and then once with each fault. It does not show the output of the
// command. The returned Input is always nil; TryFaults returns it to have the same signature as [Run].
func TryFaults(ctx context.Context, o Options) (*verdict.Report, *verdict.Input, error) {
	faults, err := selectFaults(o.Faults)
	if err != nil {
		return nil, nil, err
	}
	report := &verdict.Report{Verdict: "ok", Findings: []verdict.Finding{}, Expectations: []verdict.ExpectationResult{}, Unmatched: []verdict.UnmatchedPrompt{}, Runs: []verdict.Run{}}
	plain := o.runCommandOnceWithFault(ctx, procio.Fault{AllowedEnd: "success"}, timeLimitWithoutFault)
	if plain.err != nil {
		return nil, nil, plain.err
	}
	report.Command = &verdict.CommandOutcome{Argv: o.Command, Code: plain.reportRow.Code, MS: plain.reportRow.MS}
	if plain.reportRow.Outcome != "survived" {
		report.Verdict = "failed"
		report.Findings = append(report.Findings, verdict.Finding{
			ID: "F01", Level: "error", Text: fmt.Sprintf("without any fault the command %s with exit code %d", plain.reportRow.Outcome, plain.reportRow.Code),
			Advice: "make the command pass without faults first; its stderr:\n" + plain.stderr,
		})
		report.Command.Code = cmp.Or(report.Command.Code, verdict.ExitWrongUsage)
		return report, nil, nil
	}
	if !plain.claudeStarted && !o.Rules.AllowNoRuns && !o.Setup.Lenient {
		report.Verdict, report.Findings = "failed", append(report.Findings, verdict.NoRunsFinding())
		return report, nil, nil
	}
	if slices.Contains(o.Faults, "all") && (!plain.interactive || o.Setup.Real.Path != "") {
		faults = slices.DeleteFunc(faults, func(f procio.Fault) bool { return f.Interface == "screen" })
	}
	took := time.Duration(plain.reportRow.MS * float64(time.Millisecond))
	most := timeLimitOfRunWithFault(took)
	report.Faults = make([]verdict.FaultResult, len(faults))
	var wg sync.WaitGroup
	turns := make(chan struct{}, o.faultRunsAtSameTime(took, plain.cpu))
	for i, f := range faults {
		turns <- struct{}{}
		wg.Go(func() {
			report.Faults[i] = o.runCommandOnceWithFault(ctx, f, most).reportRow
			<-turns
		})
	}
	wg.Wait()
	if report.ExitCode() != 0 {
		report.Verdict = "failed"
	}
	return report, nil, nil
}

func selectFaults(namesOrAll []string) ([]procio.Fault, error) {
	all := procio.AllFaults()
	if slices.Contains(namesOrAll, "all") {
		return all, nil
	}
	var list []procio.Fault
	for _, name := range namesOrAll {
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

type faultResult struct {
	reportRow     verdict.FaultResult
	cpu           time.Duration
	stderr        string // the end of the command's stderr
	claudeStarted bool
	interactive   bool  // true if a session ran on a terminal
	err           error // why the trial of the fault could not be completed
}

func (o Options) runCommandOnceWithFault(ctx context.Context, fault procio.Fault, timeLimit time.Duration) faultResult {
	if o.Setup.Real.Path != "" {
		fault.AllowedEnd = cmp.Or(fault.RealAllowedEnd, fault.AllowedEnd)
	}
	t := faultResult{reportRow: verdict.FaultResult{Name: fault.Name, Bug: fault.BugReport, Advice: fault.CallerAdvice}}
	o.Setup.Fault, o.Capture = fault.Name, ""
	r, err := setUpRunAndStartServers(ctx, o)
	if err != nil {
		t.err = err
		return t
	}
	defer r.close()
	out := proc.TailBuffer{Limit: 64 << 10}
	began := o.System.Now()
	c, err := r.startCommand(ctx, proc.ForegroundOptions{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
	if err != nil {
		t.err = err
		return t
	}
	select {
	case <-c.Done():
	case <-time.After(timeLimit):
		t.reportRow.Outcome = "hung"
		c.KillGroup()
	case <-ctx.Done():
		t.err = errors.Join(t.err, ctx.Err())
		c.KillGroup()
	}
	killIfStillRunningAfterGrace(c.findLeftoverProcesses(r.Setup.RunID), 0)
	exit := c.WaitExit()
	t.cpu = c.CPU()
	c.StopGroupAndReclaimTerminal(0)
	c.close()
	var in verdict.Input
	t.claudeStarted = in.ReadJournalsAndLoadScenarios([]string{r.journal}, r.Setup.Scenario) != nil || in.HasRunsOrRequests()
	t.interactive = in.IsInteractive()
	t.reportRow.Code, t.reportRow.MS, t.stderr = exit.Code, float64(o.System.Now().Sub(began).Microseconds())/1000, out.String()
	t.reportRow.Outcome = cmp.Or(t.reportRow.Outcome, outcomeOfFaultRun(fault, exit, t.stderr))
	return t
}

func outcomeOfFaultRun(f procio.Fault, exit proc.ExitStatus, stderr string) string {
	switch {
	case exit.Signal != "" || exit.Code >= 128 || crashTracePattern().MatchString(stderr):
		return "crashed"
	case exit.Code != 0:
		return "failed"
	case f.AllowedEnd == "failure":
		return "lied"
	}
	return "survived"
}

var crashTracePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`Traceback \(most recent call last\)|\nNode\.js v|panic: |goroutine 1 \[|Unhandled promise rejection|thread 'main' panicked`)
})

type leftoverProcess struct {
	pid      int
	argv     []string
	role     string // "mcp" for an MCP server; empty means claude or another program
	isClaude bool
}

// findLeftoverProcesses returns the processes that the command left running, except helpers of this program. These are
// the descendants of this program or, if it has other runs, all processes with runID in their environment.
func (c *startedCommand) findLeftoverProcesses(runID string) []leftoverProcess {
	mark := "CLAUDELESS_RUN=" + runID
	all := guard.Descendants(os.Getpid())
	if c.hasOtherRuns {
		all = guard.ProcessesWithVariable(mark)
	}
	var left []leftoverProcess
	for _, pid := range all {
		if !slices.Contains(c.ownProcesses, pid) && !guard.HasEnded(pid) {
			left = append(left, identifyLeftover(pid, mark))
		}
	}
	return left
}

// identifyLeftover describes a leftover process. isClaude requires the name claude, and mark in the environment.
func identifyLeftover(pid int, mark string) leftoverProcess {
	p, vars := leftoverProcess{pid: pid, argv: guard.Argv(pid)}, guard.Environ(pid)
	for _, kv := range vars {
		if part, ok := strings.CutPrefix(kv, "CLAUDELESS_PART="); ok {
			p.role = part
		}
	}
	p.isClaude = len(p.argv) > 0 && strings.TrimSuffix(filepath.Base(p.argv[0]), ".exe") == "claude" && slices.Contains(vars, mark)
	return p
}

// KillLeftoverClaudesAndServers kills claude processes and MCP servers left over from a run, and adds a finding for each to `in`. runID is the
// value of CLAUDELESS_RUN in their environment. A process that exits within half a second is neither killed nor reported.
func KillLeftoverClaudesAndServers(runID string, in *verdict.Input) {
	const moment = 500 * time.Millisecond
	mark := "CLAUDELESS_RUN=" + runID
	var left []leftoverProcess
	for _, pid := range guard.ProcessesWithVariable(mark) {
		if p := identifyLeftover(pid, mark); (p.isClaude || p.role != "") && !guard.HasEnded(pid) {
			left = append(left, p)
		}
	}
	waitForExit(left, moment)
	left = slices.DeleteFunc(left, func(p leftoverProcess) bool { return guard.HasEnded(p.pid) })
	for _, p := range left {
		p.sendSignalIgnoringErrors(syscall.SIGTERM)
		in.Killed = append(in.Killed, p.pid)
	}
	killIfStillRunningAfterGrace(left, leftoverGrace)
	in.Findings = append(in.Findings, leftoverFindings(left)...)
}

// killIfStillRunningAfterGrace waits up to grace for processes that were signalled, and kills the rest.
func killIfStillRunningAfterGrace(processes []leftoverProcess, grace time.Duration) {
	waitForExit(processes, grace)
	for _, p := range processes {
		if !guard.HasEnded(p.pid) {
			p.sendSignalIgnoringErrors(syscall.SIGKILL)
		}
	}
}

func waitForExit(processes []leftoverProcess, limit time.Duration) {
	proc.WaitWhile(func() bool {
		return slices.ContainsFunc(processes, func(p leftoverProcess) bool { return !guard.HasEnded(p.pid) })
	}, limit)
}

func (p leftoverProcess) sendSignalIgnoringErrors(sig os.Signal) {
	if process, err := os.FindProcess(p.pid); err == nil {
		_ = process.Signal(sig)
	}
}

// leftoverFindings returns C06 and C15 for processes that outlived the command.
func leftoverFindings(processes []leftoverProcess) []verdict.Finding {
	var found []verdict.Finding
	for _, p := range processes {
		switch {
		case p.role == "mcp":
			found = append(found, verdict.Finding{
				ID: "C15", Level: "error", PID: p.pid, Text: "an MCP server was still running after the run: " + strings.Join(p.argv, " "),
				Advice: "make the server exit when its stdin is closed; claudeless has killed it",
			})
		case p.isClaude:
			found = append(found, verdict.Finding{
				ID: "C06", Level: "error", PID: p.pid, Text: "claude was left running: " + strings.Join(p.argv, " "),
				Advice: "wait for every claude process before exiting; claudeless has killed it",
			})
		}
	}
	return found
}

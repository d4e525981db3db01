// Package runner runs a command with claudeless in place of claude. It puts shims first on PATH,
// creates a private directory and one journal for all processes, and judges the run at the end.
//
// The command's own streams and signals pass through unchanged. All processes that it has started
// are stopped when it exits. The report is always written. Package verdict checks the run.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/procio"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/screens/console"
)

// The exit codes of shells for a command that does not exist, or cannot be executed.
const (
	ExitNotFound      = 127
	exitNotExecutable = 126
)

// Run runs the command and judges the run. The report also tells how the command ended; the returned Input is the
// evidence that was judged. An error means that the run could not be prepared or could not be judged. If it could not
// be prepared, there is no report. With JudgeLater, nothing is judged, and the report tells only how the command ended.
func Run(ctx context.Context, o Options) (*verdict.Report, *verdict.Input, error) {
	r, err := setUpRunAndStartServers(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	defer r.close()
	began := o.System.Now()
	result := verdict.CommandOutcome{Argv: o.Command}
	exit, left, seen, err := r.runCommand(ctx)
	result.Code, result.Signal, result.MS = exit.Code, exit.Signal, float64(o.System.Now().Sub(began).Microseconds())/1000
	if errors.Is(err, errStrictGuardFailed) {
		return nil, nil, err
	}
	if err != nil {
		fmt.Fprintf(o.System.Stderr, "claudeless: error: %v\n", err)
	}
	if r.Setup.Real.Path != "" {
		if err := (procio.RealClaudeMCPServerRecords{Journal: r.journal, Dir: r.serverRecordsDir(), StartedAt: began}).Write(o.System); err != nil {
			fmt.Fprintf(o.System.Stderr, "claudeless: error: %v\n", err)
		}
	}
	if o.JudgeLater {
		fmt.Fprintf(r.System.Stderr, "claudeless: verdict: postponed; run claudeless verify %s\n", r.Capture)
		later := verdict.Report{Findings: append(leftoverFindings(left), r.api.guardFindings()...)}
		return &verdict.Report{Command: &result}, nil, later.AppendToJournalFile(r.journal, r.System.Now, r.System.PID, r.System.Environ)
	}
	report, in, judgeErr := r.judgeAndRecordVerdict(left)
	if report == nil {
		return nil, nil, judgeErr
	}
	report.Command, report.Terminal = &result, seen
	if report.ExitCode() != 0 {
		report.Verdict = "failed"
	}
	return report, in, judgeErr
}

// runCommand runs the command until it ends. left lists the processes that the command left running. screens is the
// content of the command's pseudo-terminal; nil means that it has none.
func (r *preparedRun) runCommand(ctx context.Context) (exit proc.ExitStatus, left []leftoverProcess, screens *verdict.TerminalSummary, err error) {
	attach := proc.ForegroundOptions{Stdin: r.System.Stdin, Stdout: r.System.Stdout, Stderr: r.System.Stderr, Terminal: r.System.StdinIsTTY}
	var terminal *console.Console
	if r.Terminal != nil {
		if terminal, attach, err = r.openTerminal(); err != nil {
			return proc.ExitStatus{Code: exitNotExecutable}, nil, nil, err
		}
		defer func() {
			var closed error
			screens, closed = stopConsoleAndSummarizeScreens(terminal)
			err = errors.Join(err, closed)
		}()
	}
	c, err := r.startCommand(ctx, attach)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return proc.ExitStatus{Code: ExitNotFound}, nil, nil, err
	case err != nil:
		return proc.ExitStatus{Code: exitNotExecutable}, nil, nil, err
	}
	if terminal != nil {
		if err := terminal.StartForwarding(); err != nil {
			fmt.Fprintf(r.System.Stderr, "claudeless: error: %v\n", err)
			c.KillGroup()
		}
	}
	stop, stopFollowing := r.relaySignalsAndKillOnRepeat(c.ForegroundCommand), r.resizeConsoleWithOwnTerminal(terminal)
	exit = c.WaitExit()
	stop()
	stopFollowing()
	c.poller.ScanOnceMoreAndStop() // stop before leftover processes are killed
	left = c.findLeftoverProcesses(r.Setup.RunID)
	for _, p := range left {
		p.sendSignalIgnoringErrors(syscall.SIGTERM)
	}
	c.StopGroupAndReclaimTerminal(leftoverGrace)
	killIfStillRunningAfterGrace(left, leftoverGrace)
	c.close()
	return exit, left, nil, nil // the deferred function sets screens
}

// relaySignalsAndKillOnRepeat forwards signals to the command until stop is called. A repeated signal kills it two seconds later.
func (r *preparedRun) relaySignalsAndKillOnRepeat(a *proc.ForegroundCommand) (stop func()) {
	seen := map[os.Signal]int{}
	return process.OnSignals(r.System.Lifetime, func(sig os.Signal) {
		s, ok := sig.(syscall.Signal)
		if !ok {
			return
		}
		a.SignalGroup(s)
		if seen[sig]++; seen[sig] == 2 {
			go a.KillIfRunningAfter(2 * time.Second) // returns when the command exits
		}
	}, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
}

// judgeAndRecordVerdict reads the journal, checks the run against the scenario, appends the verdict, and returns the check's input.
func (r *preparedRun) judgeAndRecordVerdict(leftovers []leftoverProcess) (*verdict.Report, *verdict.Input, error) {
	in := verdict.Input{Environ: r.System.Environ, Lenient: r.Setup.Lenient, JudgingOptions: r.Rules, Findings: append(leftoverFindings(leftovers), r.api.guardFindings()...)}
	for _, p := range leftovers {
		in.Killed = append(in.Killed, p.pid)
	}
	if err := in.ReadJournalsAndLoadScenarios([]string{r.journal}, r.Setup.Scenario); err != nil {
		return nil, nil, err
	}
	if len(in.Entries) == 0 && r.Setup.Scenario == "" && !r.Rules.AllowNoRuns {
		in.Findings = append(in.Findings, verdict.Finding{
			ID: "S01", Level: "error", Text: "no scenario was given, and claude was not called", Advice: "give a scenario with -s FILE",
		})
	}
	report := verdict.Judge(in)
	report.Guard = r.Guard.String()
	if r.Capture == "" {
		return &report, &in, nil
	}
	return &report, &in, report.AppendToJournalFile(r.journal, r.System.Now, r.System.PID, r.System.Environ)
}

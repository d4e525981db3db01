package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

type leftoverProcess struct {
	pid      int
	argv     []string
	role     string // "mcp" for an MCP server; empty means claude or another program
	isClaude bool
}

// leftovers returns the processes that the command left running: descendants of this program or, if it runs other
// commands too, processes with runID in their environment. Helpers of this program are omitted.
func (c *startedCommand) leftovers(runID string) []leftoverProcess {
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

// identifyLeftover identifies a process of a run. A claude is called claude and has the mark in its environment.
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

// KillLeftovers kills the claude processes and MCP servers that are left over from a run, and adds a finding for each
// to in. runID is the value of CLAUDELESS_RUN in their environment. A process that exits within half a second is
// neither killed nor reported.
func KillLeftovers(runID string, in *verdict.Input) {
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
		p.signal(syscall.SIGTERM)
		in.Killed = append(in.Killed, p.pid)
	}
	endProcesses(left, leftoverGrace)
	in.Findings = append(in.Findings, leftoverFindings(left)...)
}

// endProcesses waits up to grace for processes that were signalled, and kills the rest.
func endProcesses(processes []leftoverProcess, grace time.Duration) {
	waitForExit(processes, grace)
	for _, p := range processes {
		if !guard.HasEnded(p.pid) {
			p.signal(syscall.SIGKILL)
		}
	}
}

func waitForExit(processes []leftoverProcess, limit time.Duration) {
	proc.WaitWhile(func() bool {
		return slices.ContainsFunc(processes, func(p leftoverProcess) bool { return !guard.HasEnded(p.pid) })
	}, limit)
}

// signal sends a signal to the process, which may have exited in the meantime.
func (p leftoverProcess) signal(sig os.Signal) {
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

package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/claudeless/claudeless/internal/exec/guard"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// leftoverProcess is one of the run that the command left running.
type leftoverProcess struct {
	pid  int
	argv []string
	part string // "mcp" of an MCP server; empty = claude, or anything else
	shim bool   // it is a claude
}

// leftovers are the processes of a run that are there still: what it has marked, or
// what descends from this program and was not started by it. On systems that do
// not tell there are none.
func (c *startedCommand) leftovers(run string) []leftoverProcess {
	mark := "CLAUDELESS_RUN=" + run
	all := guard.Descendants(os.Getpid())
	if c.beside {
		all = guard.Marked(mark)
	}
	var left []leftoverProcess
	for _, pid := range all {
		if !slices.Contains(c.known, pid) && !guard.Ended(pid) {
			left = append(left, lookAt(pid, mark))
		}
	}
	return left
}

// lookAt says what a process of a run is. A claude is started by that name, and
// carries the mark of the run.
func lookAt(pid int, mark string) leftoverProcess {
	p, vars := leftoverProcess{pid: pid, argv: guard.Argv(pid)}, guard.Environ(pid)
	for _, kv := range vars {
		if part, ok := strings.CutPrefix(kv, "CLAUDELESS_PART="); ok {
			p.part = part
		}
	}
	p.shim = len(p.argv) > 0 && strings.TrimSuffix(filepath.Base(p.argv[0]), ".exe") == "claude" && slices.Contains(vars, mark)
	return p
}

// Sweep ends the claudes and the MCP servers of a run that are there still, by its
// CLAUDELESS_RUN; each is a finding of in. Those that are about to end have a moment.
func Sweep(run string, in *verdict.Input) {
	const moment = 500 * time.Millisecond
	mark := "CLAUDELESS_RUN=" + run
	var left []leftoverProcess
	for _, pid := range guard.Marked(mark) {
		if p := lookAt(pid, mark); (p.shim || p.part != "") && !guard.Ended(pid) {
			left = append(left, p)
		}
	}
	await(left, moment)
	left = slices.DeleteFunc(left, func(p leftoverProcess) bool { return guard.Ended(p.pid) })
	for _, p := range left {
		p.signal(syscall.SIGTERM)
		in.Killed = append(in.Killed, p.pid)
	}
	finish(left, grace)
	in.Findings = append(in.Findings, findings(left)...)
}

// finish gives processes that were asked to end their time, and ends the rest.
func finish(left []leftoverProcess, grace time.Duration) {
	await(left, grace)
	for _, p := range left {
		if !guard.Ended(p.pid) {
			p.signal(syscall.SIGKILL)
		}
	}
}

// await waits until all have ended, or the time is over.
func await(left []leftoverProcess, most time.Duration) {
	over := time.After(most)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for slices.ContainsFunc(left, func(p leftoverProcess) bool { return !guard.Ended(p.pid) }) {
		select {
		case <-tick.C:
		case <-over:
			return
		}
	}
}

// signal sends a signal to what was left; it may have ended by now.
func (p leftoverProcess) signal(sig os.Signal) {
	if process, err := os.FindProcess(p.pid); err == nil {
		_ = process.Signal(sig)
	}
}

// findings are C06 and C15: what outlived the command.
func findings(left []leftoverProcess) []verdict.Finding {
	var found []verdict.Finding
	for _, p := range left {
		switch {
		case p.part == "mcp":
			found = append(found, verdict.Finding{
				ID: "C15", Level: "error", PID: p.pid, Text: "an MCP server outlived the run: " + strings.Join(p.argv, " "),
				Advice: "let a server end when its stdin ends; it was ended now",
			})
		case p.shim:
			found = append(found, verdict.Finding{
				ID: "C06", Level: "error", PID: p.pid, Text: "claude was left running: " + strings.Join(p.argv, " "),
				Advice: "wait for every claude before you end; it was ended now",
			})
		}
	}
	return found
}

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claudeless/claudeless/internal/verdict"
)

// leftover is one of the run that the command left running.
type leftover struct {
	pid  int
	argv []string
	part string // "mcp" of an MCP server; empty = claude, or anything else
	shim bool   // it is a claude
}

// leftovers finds the processes of a run by the mark in their environment. Where
// there is no /proc it finds none.
func leftovers(run string) []leftover {
	mark := "CLAUDELESS_RUN=" + run
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var left []leftover
	for _, dir := range dirs {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(environ), "\x00"), mark) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || ended(pid) {
			continue
		}
		p := leftover{pid: pid, argv: argvOf(pid)}
		for kv := range strings.SplitSeq(string(environ), "\x00") {
			if part, ok := strings.CutPrefix(kv, "CLAUDELESS_PART="); ok {
				p.part = part
			}
		}
		p.shim = len(p.argv) > 0 && filepath.Base(filepath.Dir(p.argv[0])) == inner
		left = append(left, p)
	}
	return left
}

func argvOf(pid int) []string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
}

// ended tells whether a process is gone, or only waits to be reaped.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

// finish gives processes that were asked to end their time, and ends the rest.
func finish(left []leftover, grace time.Duration) {
	over := time.After(grace)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for waits := true; waits; {
		if !slices.ContainsFunc(left, func(p leftover) bool { return !ended(p.pid) }) {
			return
		}
		select {
		case <-tick.C:
		case <-over:
			waits = false
		}
	}
	for _, p := range left {
		if !ended(p.pid) {
			p.signal(syscall.SIGKILL)
		}
	}
}

// signal sends a signal to what was left; it may have ended by now.
func (p leftover) signal(sig os.Signal) {
	if process, err := os.FindProcess(p.pid); err == nil {
		_ = process.Signal(sig)
	}
}

// findings are C06 and C15: what outlived the command.
func findings(left []leftover) []verdict.Finding {
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

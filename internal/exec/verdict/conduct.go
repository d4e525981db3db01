package verdict

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/claudecode"
)

// addFindingsOfWrongClaudeUsage adds findings about wrong use of claude. It adds only findings that
// are certain, because a false alarm is worse than a missed problem.
func (l *findingCollector) addFindingsOfWrongClaudeUsage(processes []*journaledProcess, pidsKilledFromOutside []int) {
	for _, p := range processes {
		l.addFindingsOfUnreadStdout(p)
		l.addFindingsOfControlProtocol(p)
		l.addFindingsOfProcessEnd(p, pidsKilledFromOutside)
		l.addFindingsOfProcessStart(p)
		l.addFindingsOfHooks(p)
	}
	l.addFindingsOfRapidReruns(processes)
	l.addFindingsOfSharedSessions(processes)
}

// addFindingsOfUnreadStdout adds finding C01: stdout was not read, or was closed before the result was written. A subcommand has no
// result, so closing its stdout is not reported.
func (l *findingCollector) addFindingsOfUnreadStdout(p *journaledProcess) {
	const advice = "read stdout to its end in a separate thread or task, also after the result"
	if h := p.firstHostAction("stdout_closed"); h != nil && h.Results == 0 && !p.isSubcommand() {
		l.addFindingOfProcess(p, "C01", levelError, "stdout was closed before the result was written", advice)
	} else if p.firstHostAction("stdout_blocked") != nil {
		l.addFindingOfProcess(p, "C01", levelError, "stdout was not read for more than a second while claude had something to write", advice)
	}
}

// addFindingsOfControlProtocol adds findings C02 (requests without one timely answer) and C03 (late hooks).
func (l *findingCollector) addFindingsOfControlProtocol(p *journaledProcess) {
	for _, h := range p.host {
		request := fmt.Sprintf("the control_request %s (%s)", h.RequestID, h.Subtype)
		switch h.What {
		case "request_unanswered":
			l.addFindingOfProcess(p, "C02", levelError, request+" was never answered, and stdin was closed",
				"answer every control_request with a control_response before stdin is closed")
		case "answered_twice":
			l.addFindingOfProcess(p, "C02", levelError, request+" was answered twice", "answer each control_request once")
		case "answered_late":
			l.addFindingOfProcess(p, "C02", levelError, fmt.Sprintf("%s was answered %.0f s after it had been cancelled", request, h.MS/1000),
				"stop handling a request when a control_cancel_request for it arrives")
		case "late_initialize":
			l.addFindingOfProcess(p, "C03", levelWarn, "hooks were registered after the first message was sent",
				"send the initialize request first: hooks do not run for earlier messages")
		}
	}
}

// addFindingsOfProcessEnd adds findings C04 and C05, which are about the end of the process.
func (l *findingCollector) addFindingsOfProcessEnd(p *journaledProcess, pidsKilledFromOutside []int) {
	if slices.Contains(pidsKilledFromOutside, p.PID) {
		return
	}
	signal := p.firstHostAction("signal")
	open := p.usesControlProtocol && len(p.results) > 0 && p.firstHostAction("stdin_closed") == nil
	ended := p.exit != nil
	if open && (!ended || signal != nil && signal.Signal == "SIGTERM" && signal.StdinOpen) {
		l.addFindingOfProcess(p, "C04", levelWarn, "stdin was left open after the last result until the process was killed",
			"close stdin after the last prompt: claude then exits")
	}
	switch {
	case ended || p.setup == nil:
	case signal == nil:
		l.addFindingOfProcess(p, "C05", levelWarn, "the process was killed with SIGKILL without a SIGTERM first",
			"close stdin or send SIGTERM, wait a few seconds, and only then send SIGKILL")
	case p.start == nil || p.start.Fault == "":
		l.addFindingOfProcess(p, "C05", levelWarn, "the process was killed right after "+signal.Signal, "wait a few seconds after SIGTERM before you send SIGKILL")
	}
}

// addFindingsOfProcessStart adds findings about command line, settings and environment: C08, C09, C10, C13, C17 and S22.
func (l *findingCollector) addFindingsOfProcessStart(p *journaledProcess) {
	switch x := p.exit; {
	case x == nil:
	case x.Rejection != "" && p.setup == nil:
		l.addFindingOfProcess(p, "C08", levelError, "claude refused the command line: "+x.Rejection,
			"use only flags and combinations of flags that this version of claude accepts")
	case x.Code > 0 && x.Code < 128 && len(p.Prompts) == 0 && !p.isSubcommand() && (p.start == nil || p.start.Fault == "") && (l.input.Scenario == nil || !l.input.Scenario.HasExpectationAboutExitCode(x.Code)):
		text := fmt.Sprintf("claude exited with code %d before it answered a prompt", x.Code)
		if x.Rejection != "" {
			text += ": " + x.Rejection
		}
		l.addFindingOfProcess(p, "C17", levelWarn, text,
			fmt.Sprintf("correct the problem that claude reported on stderr; `[[expect]] exit = %d` accepts this exit code", x.Code))
	}
	if p.setup != nil {
		for _, fault := range p.setup.IgnoredSettings {
			text, _, _ := strings.Cut(fault, " Valid events:")
			l.addFindingOfProcess(p, "S22", l.errorLevelIfStrictElseWarn(), "a part of the settings has no effect: "+text, "correct the settings file; until then, claude ignores this part")
		}
	}
	if s := p.start; s != nil {
		if len(s.SecretArguments) > 0 {
			l.addFindingOfProcess(p, "C09", levelError, "the command line contains a secret, in "+strings.Join(s.SecretArguments, ", "),
				"every user of the machine can read command lines: pass secrets in environment variables")
		}
		if len(s.InheritedVariables) > 0 {
			l.addFindingOfProcess(p, "C13", levelWarn, "claude inherited variables of another session: "+strings.Join(s.InheritedVariables, ", "),
				"before you start claude, remove these variables: a claude session sets them for its tools and hooks")
		}
	}
	if p.setup != nil && p.setup.SkipsPermissions {
		l.addFindingOfProcess(p, "C10", levelInfo, "claude was started with --dangerously-skip-permissions outside of a sandbox (no IS_SANDBOX=1)",
			"set IS_SANDBOX=1 inside a sandbox; elsewhere, use --allowedTools to allow only the tools that are needed")
	}
}

// addFindingsOfHooks adds finding C16: hooks that are too slow, did not run, or fail instead of blocking.
func (l *findingCollector) addFindingsOfHooks(p *journaledProcess) {
	const advice = "exit with code 2 to block the event: claude ignores exit code 1"
	for _, e := range p.entries {
		if e.Attachment == nil {
			continue
		}
		a, _ := e.Attachment.Attachment.(map[string]any)
		name, _ := a["hookName"].(string)
		event, _ := a["hookEvent"].(string)
		code, _ := a["exitCode"].(float64)
		stdout, _ := a["stdout"].(string)
		switch kind, _ := a["type"].(string); {
		case kind == "hook_cancelled":
			l.addFindingOfProcess(p, "C16", levelWarn, "the hook "+name+" exceeded its timeout and was killed",
				"make the hook faster, or give it a longer `timeout`")
		case kind == "hook_success" && strings.HasPrefix(strings.TrimSpace(stdout), "{") && !json.Valid([]byte(stdout)):
			l.addFindingOfProcess(p, "C16", levelWarn, "the hook "+name+" printed text that begins like JSON but is not valid JSON, so claude ignored the decision", "change the hook so that it prints one valid JSON object")
		case kind == "hook_non_blocking_error" && (code == 126 || code == 127):
			l.addFindingOfProcess(p, "C16", levelWarn, fmt.Sprintf("the command of the hook %s could not be run: it exited with code %.0f", name, code), "correct the command of the hook")
		case kind == "hook_non_blocking_error" && code == 1 && claudecode.HookEventNamed(event).CanBlock:
			l.addFindingOfProcess(p, "C16", levelWarn, "the hook "+name+" exited with 1, which does not block the event", advice)
		}
	}
}

const (
	// minIdenticalFailingCallsInRetryStorm is the number of identical failing calls that are reported as a retry storm.
	// If the error is permanent, such as status 401, minPermanentlyFailingCallsInRetryStorm are enough.
	minIdenticalFailingCallsInRetryStorm   = 10
	minPermanentlyFailingCallsInRetryStorm = 4
	maxPauseBetweenCallsOfRetryStorm       = time.Second
)

// addFindingsOfRapidReruns adds finding C07: a failed call is repeated many times without a pause.
func (l *findingCollector) addFindingsOfRapidReruns(processes []*journaledProcess) {
	last := map[string]*journaledProcess{}
	row := map[string]int{}
	for _, p := range processes {
		if p.exit == nil || p.exit.Code == 0 || len(p.results) == 0 || !p.results[len(p.results)-1].IsError {
			continue
		}
		key := strings.Join(append([]string{p.CWD}, append(p.Argv[1:], p.Prompts...)...), "\x00")
		if before := last[key]; before != nil && p.startedAt.Sub(before.ended) < maxPauseBetweenCallsOfRetryStorm {
			row[key]++
		} else {
			row[key] = 1
		}
		last[key] = p
		switch n := row[key]; {
		case n == minPermanentlyFailingCallsInRetryStorm && p.hasPermanentAPIErrorStatus():
			l.addFindingOfProcess(p, "C07", levelError, fmt.Sprintf("a permanent error (status %d) was retried", p.lastResultAPIStatus()),
				"do not retry 400, 401, 403 and 413: the same request fails again")
		case n == minIdenticalFailingCallsInRetryStorm && !p.hasPermanentAPIErrorStatus():
			l.addFindingOfProcess(p, "C07", levelError, fmt.Sprintf("the same call failed %d times within a second of each other", n),
				"wait longer after each failure, and give up after a few attempts")
		}
	}
}

func (p *journaledProcess) lastResultAPIStatus() int { return p.results[len(p.results)-1].APIStatus }

func (p *journaledProcess) hasPermanentAPIErrorStatus() bool {
	return slices.Contains([]int{400, 401, 403, 413}, p.lastResultAPIStatus())
}

// addFindingsOfSharedSessions adds finding C11: two processes write one session at the same time.
func (l *findingCollector) addFindingsOfSharedSessions(processes []*journaledProcess) {
	latest := map[string]*journaledProcess{} // the process with the latest result so far, by configuration directory and session
	for _, p := range processes {
		if p.SessionID == "" || p.firstTurn < 0 {
			continue
		}
		session := p.SessionID
		if p.setup != nil {
			session += "\x00" + p.setup.Env["CLAUDE_CONFIG_DIR"]
		}
		q := latest[session]
		if q != nil && q.lastResult > p.firstTurn {
			l.addFindingOfProcess(p, "C11", levelError,
				fmt.Sprintf("two processes (%d and %d) wrote the session %s at the same time", q.PID, p.PID, p.SessionID),
				"resume a session only after its process has exited, or use --fork-session")
		}
		if q == nil || p.lastResult > q.lastResult {
			latest[session] = p
		}
	}
}

package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// conduct finds what callers do wrong, as far as it can be seen for certain: a
// false alarm is worse than a miss.
func conduct(runs []*process, killed []int) []Finding {
	var found []Finding
	for _, p := range runs {
		found = append(found, p.streams()...)
		found = append(found, p.dialogue()...)
		found = append(found, p.ending(killed)...)
		found = append(found, p.setting()...)
		found = append(found, p.hooks()...)
	}
	found = append(found, storms(runs)...)
	return append(found, shared(runs)...)
}

// streams is C01: what the caller did with stdout.
func (p *process) streams() []Finding {
	const advice = "read stdout to its end, in a thread or task of its own, also after the result"
	if h := p.did("stdout_closed"); h != nil && h.Results == 0 {
		return []Finding{p.finding("C01", levelError, "stdout was closed before the result was written", advice)}
	}
	if p.did("stdout_blocked") != nil {
		return []Finding{p.finding("C01", levelError, "stdout was not read for more than a second while claude had something to write", advice)}
	}
	return nil
}

// dialogue is C02 and C03: the control protocol.
func (p *process) dialogue() []Finding {
	var found []Finding
	for _, h := range p.host {
		request := fmt.Sprintf("the control_request %s (%s)", h.RequestID, h.Subtype)
		switch h.What {
		case "request_unanswered":
			found = append(found, p.finding("C02", levelError, request+" was never answered, and stdin was closed",
				"answer every control_request with a control_response before stdin is closed"))
		case "answered_twice":
			found = append(found, p.finding("C02", levelError, request+" was answered twice", "answer each control_request once"))
		case "answered_late":
			found = append(found, p.finding("C02", levelError, fmt.Sprintf("%s was answered %.0f s after it had been withdrawn", request, h.MS/1000),
				"give up what a control_cancel_request names"))
		case "late_initialize":
			found = append(found, p.finding("C03", levelWarn, "initialize registered hooks after the first message was sent",
				"send initialize first: hooks do not see what came before"))
		}
	}
	return found
}

// ending is C04 and C05: how the process came to its end.
func (p *process) ending(killed []int) []Finding {
	if slices.Contains(killed, p.PID) {
		return nil
	}
	signal := p.did("signal")
	open := p.streamed && len(p.results) > 0 && p.did("stdin_closed") == nil
	ended := p.exit != nil
	var found []Finding
	if open && (!ended || signal != nil && signal.Signal == "SIGTERM" && signal.StdinOpen) {
		found = append(found, p.finding("C04", levelWarn, "stdin was left open after the last result until the process was killed",
			"close stdin when nothing more will be asked: claude then ends by itself"))
	}
	switch {
	case ended || p.setup == nil:
	case signal == nil:
		found = append(found, p.finding("C05", levelWarn, "the process did not end in order: it was killed without SIGTERM",
			"close stdin or send SIGTERM, wait some seconds, and only then kill"))
	case p.start == nil || p.start.Fault == "":
		found = append(found, p.finding("C05", levelWarn, "the process was killed right after "+signal.Signal,
			"wait some seconds after SIGTERM before you kill"))
	}
	return found
}

// setting is C08, C09, C10 and C13: the command line and the environment.
func (p *process) setting() []Finding {
	var found []Finding
	if p.exit != nil && p.exit.Refused != "" && p.setup == nil {
		found = append(found, p.finding("C08", levelError, "claude refused the command line: "+p.exit.Refused,
			"give the flags that this version of claude has, in combinations that it takes"))
	}
	if s := p.start; s != nil {
		if len(s.Secrets) > 0 {
			found = append(found, p.finding("C09", levelError, "a secret stands in the command line, in "+strings.Join(s.Secrets, ", "),
				"every user of the machine can read command lines: hand secrets over in the environment"))
		}
		if len(s.Leaks) > 0 {
			found = append(found, p.finding("C13", levelWarn, "the environment of another session came along: "+strings.Join(s.Leaks, ", "),
				"start claude without the variables that a session gives to its tools and hooks"))
		}
	}
	if p.setup != nil && p.setup.SkipsPermissions {
		found = append(found, p.finding("C10", levelInfo, "--dangerously-skip-permissions without IS_SANDBOX",
			"set IS_SANDBOX=1 where it is one; else allow single tools"))
	}
	return found
}

// hooks is C16: hooks that are too slow, or that fail where they meant to block.
func (p *process) hooks() []Finding {
	const advice = "a hook blocks with exit code 2; 1 is an error that claude passes over"
	var found []Finding
	for _, e := range p.entries {
		if e.Attachment == nil {
			continue
		}
		a, _ := e.Attachment.Attachment.(map[string]any)
		name, _ := a["hookName"].(string)
		event, _ := a["hookEvent"].(string)
		code, _ := a["exitCode"].(float64)
		switch kind, _ := a["type"].(string); {
		case kind == "hook_cancelled":
			found = append(found, p.finding("C16", levelWarn, "the hook "+name+" was slower than its time-out and was ended",
				"make the hook faster, or give it a longer `timeout`"))
		case kind == "hook_non_blocking_error" && code == 1 && blocks(event):
			found = append(found, p.finding("C16", levelWarn, "the hook "+name+" exited with 1 and blocked nothing", advice))
		}
	}
	return found
}

// blocks tells of an event that its hooks can forbid something.
func blocks(event string) bool {
	return slices.Contains([]string{"PreToolUse", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact"}, event)
}

const (
	// storm is how many identical calls that fail are too many, fatal how many of
	// those that cannot succeed.
	storm = 10
	fatal = 4
	// hasty is how soon after a failure the next call comes in a storm.
	hasty = time.Second
)

// storms is C07: a call that failed is made again and again, at once.
func storms(runs []*process) []Finding {
	var found []Finding
	last := map[string]*process{}
	row := map[string]int{}
	for _, p := range runs {
		if p.exit == nil || p.exit.Code == 0 || !p.failed() {
			continue
		}
		key := strings.Join(append([]string{p.CWD}, append(p.Argv[1:], p.Prompts...)...), "\x00")
		if before := last[key]; before != nil && p.began.Sub(before.ended) < hasty {
			row[key]++
		} else {
			row[key] = 1
		}
		last[key] = p
		switch n := row[key]; {
		case n == fatal && p.hopeless():
			found = append(found, p.finding("C07", levelError, fmt.Sprintf("an error that does not go away (status %d) was retried", p.status()),
				"give up on 400, 401, 403 and 413: the same request fails the same way"))
		case n == storm && !p.hopeless():
			found = append(found, p.finding("C07", levelError, fmt.Sprintf("the same call failed %d times within a second of each other", n),
				"wait longer after each failure, and give up after a few"))
		}
	}
	return found
}

func (p *process) failed() bool {
	return len(p.results) > 0 && p.results[len(p.results)-1].IsError
}

func (p *process) status() int { return p.results[len(p.results)-1].APIStatus }

func (p *process) hopeless() bool { return slices.Contains([]int{400, 401, 403, 413}, p.status()) }

// shared is C11: two processes write one session at the same time.
func shared(runs []*process) []Finding {
	var found []Finding
	latest := map[string]*process{} // of each session: that with the last result so far
	for _, p := range runs {
		if p.SessionID == "" || p.firstTurn < 0 {
			continue
		}
		q := latest[p.SessionID]
		if q != nil && q.lastResult > p.firstTurn {
			found = append(found, p.finding("C11", levelError,
				fmt.Sprintf("two processes (%d and %d) wrote the session %s at the same time", q.PID, p.PID, p.SessionID),
				"wait for the end of a process before its session is resumed, or give --fork-session"))
		}
		if q == nil || p.lastResult > q.lastResult {
			latest[p.SessionID] = p
		}
	}
	return found
}

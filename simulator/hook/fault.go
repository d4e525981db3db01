package hook

import (
	"fmt"
	"strings"
)

// faulty takes a hook that gave no verdict (spec: cli-contract 5.1 and 5.5; the
// rest was observed with 2.1.329).
func (o *Outcome) faulty(c *call, a *answer) {
	callback := a.entry.callback != ""
	o.Failed = o.Failed || !callback && !a.timedOut && a.fault != faultUnknown
	switch {
	case a.fault == faultUnknown:
		o.Notices = append(o.Notices, notSimulated(c, a.entry))
	case a.fault == faultGone:
		o.Gone = true
	case callback && a.fault == faultSilent:
		o.silent(c, a)
	case callback && a.fault == faultInvalid:
		o.broken(c, a)
	default:
		if callback {
			o.Notices = append(o.Notices, callbackFailed(c, a))
		}
		if a.entry.mustBlock(c.event) {
			o.mustBlock(c, a)
		} else if c.event == "PreToolUse" && !callback && (a.fault != faultFailed || a.killed) {
			o.Notices = append(o.Notices, noVerdict(c, a))
		}
	}
}

// silent takes a callback that did not answer in time. Where the host decides
// what goes on, nothing does without it.
func (o *Outcome) silent(c *call, a *answer) {
	switch {
	case c.event == "PreToolUse":
		o.refuse(notInTime)
	case ofPrompt(c.event):
		reason := fmt.Sprintf("%s hook callback timed out after %dms", c.event, a.entry.timeout.Milliseconds())
		o.refusePrompt(c, reason, "", promptOutcome{Kind: "no_verdict", NoVerdict: "callback_timed_out"})
	case ends(c.event):
		o.message(c, hostSilent)
	}
}

// broken takes a callback whose answer is for another event.
func (o *Outcome) broken(c *call, a *answer) {
	switch c.event {
	case "PreToolUse":
		o.refuse(unexpectedError)
	case "UserPromptSubmit":
		keepFirst(&o.CrashError, a.stderr)
	case "Stop":
		ev := informational("warning", "Stop hook failed: "+a.stderr)
		ev.Shown = false
		o.Notices = append(o.Notices, ev)
	}
}

// mustBlock makes a refusal of a failure (onFailure "block").
func (o *Outcome) mustBlock(c *call, a *answer) {
	how, kind := "failed", "hook_failed"
	if a.timedOut {
		how, kind = "timed out", "hook_timed_out"
	}
	short := fmt.Sprintf("[%s]: %s; blocking because onFailure is \"block\"", a.entry.label(), how)
	reason, detail := short, strings.TrimSpace(a.stderr)
	if a.entry.callback != "" {
		detail = "Hook callback " + a.entry.callback + " failed: " + badAnswer
	}
	if detail != "" && !a.timedOut {
		reason += "\n" + detail
	}
	if ofPrompt(c.event) {
		o.refusePrompt(c, reason, "", promptOutcome{Kind: "no_verdict", NoVerdict: kind, Reason: short})
		return
	}
	if canBlock(c.event) {
		o.block(c, a, reason, reason)
	}
}

// refusePrompt keeps a prompt from the model; more is said behind the reason.
func (o *Outcome) refusePrompt(c *call, reason, more string, outcome promptOutcome) {
	if !o.Block {
		o.Reason = reason
	}
	o.Block = true
	text := c.event + " operation blocked by hook:\n" + reason + more
	o.Texts = append(o.Texts, text)
	o.Notices = append(o.Notices, promptRefused(c, text, outcome))
}

// refuse keeps a call from running.
func (o *Outcome) refuse(text string) { keepFirst(&o.NotExecuted, text) }

func keepFirst(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

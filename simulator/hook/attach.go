package hook

import (
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// attachAnswer notes for the transcript how a hook ended that has a verdict
// other than a refusal. One after a tool that ends the turn leaves no other
// trace, one at the end of the turn says so first.
func (o *Outcome) attachAnswer(c *call, a *answer) {
	stops := a.output.Continue != nil && !*a.output.Continue
	switch {
	case stops && c.event == "PostToolUse":
		o.attachStop(c, a.output.StopReason)
	case stops && ends(c.event):
		o.attachStop(c, a.output.StopReason)
		o.attach(c, a)
	case stops:
		o.attach(c, a)
		o.attachStop(c, a.output.StopReason)
	default:
		o.attach(c, a)
	}
}

// ofPrompt names the events that precede a prompt.
func ofPrompt(event string) bool {
	return event == "UserPromptSubmit" || event == "UserPromptExpansion"
}

// ends names the events that precede the end of a conversation.
func ends(event string) bool { return event == "Stop" || event == "SubagentStop" }

// attach notes for the transcript how a configured hook ended that did not
// refuse.
func (o *Outcome) attach(c *call, a *answer) {
	if a.entry.callback != "" || a.fault == faultUnknown {
		return
	}
	command := protocol.Field{Key: "command", Value: a.entry.shown()}
	took := protocol.Field{Key: "durationMs", Value: a.took.Milliseconds()}
	stdout := protocol.Field{Key: "stdout", Value: a.stdout}
	code := protocol.Field{Key: "exitCode", Value: 1}
	if a.exit != nil {
		code.Value = *a.exit
	}
	switch {
	case a.outcome == succeeded:
		if a.plain == "" && ofPrompt(c.event) {
			return
		}
		o.ended(c, "hook_success", protocol.Field{Key: "content", Value: strings.TrimSpace(a.plain)},
			stdout, protocol.Field{Key: "stderr", Value: a.stderr}, code, command, took)
		if a.plain != "" && takesPlainText(c.event) {
			o.render(c.name + " hook success: " + strings.TrimSpace(a.plain))
		}
	case a.outcome == cancelled && (c.event == "PostToolUse" || c.event == "PostToolUseFailure"):
		o.ended(c, "hook_cancelled")
	case a.outcome == cancelled:
		o.ended(c, "hook_cancelled", command, took,
			protocol.Field{Key: "timedOut", Value: a.timedOut},
			protocol.Field{Key: "timeoutMs", Value: int64(a.entry.timeout / time.Millisecond)})
	case a.outcome == failed:
		o.ended(c, "hook_non_blocking_error", protocol.Field{Key: "stderr", Value: a.complaint()}, stdout, code, command, took)
	}
}

// complaint is what a transcript keeps as the error output of a hook that
// failed.
func (a *answer) complaint() string {
	if a.exit == nil || a.fault == faultInvalid {
		return a.stderr
	}
	text := strings.TrimSpace(a.stderr)
	if text == "" {
		text = "No stderr output"
	}
	return "Failed with non-blocking status code: " + text
}

// attachBlock notes for the transcript that a hook refused. What the user or
// the model is told in another way is not kept twice.
func (o *Outcome) attachBlock(c *call, a *answer, reason string) {
	switch c.event {
	case "PreToolUse", "PermissionRequest", "UserPromptSubmit", "UserPromptExpansion":
		return
	case "Stop", "SubagentStop":
		if a.blocked { // the user message says it
			return
		}
	case "PostToolBatch":
		o.stopped(c, reason, "")
		return
	}
	o.ended(c, "hook_blocking_error", protocol.Field{Key: "blockingError", Value: blockingError{reason, a.entry.shown()}})
	o.render(c.name + ` hook blocking error from command: "` + a.entry.shown() + `": ` + reason)
}

type blockingError struct {
	BlockingError string `json:"blockingError"`
	Command       string `json:"command"`
}

// attachIgnored notes a refusal where there is nothing to refuse.
func (o *Outcome) attachIgnored(c *call, a *answer, reason string) {
	o.ended(c, "hook_non_blocking_error", protocol.Field{Key: "stderr", Value: reason}, protocol.Field{Key: "stdout", Value: ""},
		protocol.Field{Key: "exitCode", Value: exitBlock}, protocol.Field{Key: "command", Value: a.entry.shown()})
}

// attachStop notes for the transcript that a hook ends the turn. Of prompts the
// user is told instead.
func (o *Outcome) attachStop(c *call, reason string) {
	switch {
	case c.event == "PostToolUse", c.event == "PostToolBatch":
		o.stopped(c, reason, "Execution stopped by "+c.event+" hook")
	case ends(c.event):
		named := *c
		named.name = "Stop"
		o.stopped(&named, reason, "Stop hook prevented continuation")
	case c.event == "PreToolUse":
		o.stopped(c, reason, "Execution stopped by hook")
	}
}

func (o *Outcome) stopped(c *call, reason, otherwise string) {
	if reason == "" {
		reason = otherwise
	}
	o.said(c, "hook_stopped_continuation", "message", reason)
	o.render(c.name + " hook stopped continuation: " + reason)
}

// attachContext notes for the transcript what a hook adds for the model.
func (o *Outcome) attachContext(c *call, text string) {
	named := *c
	switch {
	case c.event == "SessionStart":
		named.name, named.toolUseID = c.event, c.event
	case c.event == "SubagentStart":
		named.name = c.event
	case ofPrompt(c.event):
		named.toolUseID = "hook-" + c.toolUseID
	}
	o.said(&named, "hook_additional_context", "content", []string{text})
	o.render(named.name + " hook additional context: " + text)
}

// ended adds an attachment of the kinds that say how a hook ended.
func (o *Outcome) ended(c *call, kind string, fields ...protocol.Field) {
	o.keep(c, kind, append(origin(c), fields...))
}

// said adds an attachment of the kinds that keep what a hook said.
func (o *Outcome) said(c *call, kind, key string, value any) {
	o.keep(c, kind, append([]protocol.Field{{Key: key, Value: value}}, origin(c)...))
}

func (o *Outcome) keep(c *call, kind string, fields []protocol.Field) {
	if c.event == "PostToolBatch" {
		fields = append(fields, protocol.Field{Key: "accountMemoryBatch", Value: false})
	}
	o.Attachments = append(o.Attachments, protocol.HookAttachment{Type: kind, Fields: fields})
}

// render says how the model reads the last attachment.
func (o *Outcome) render(text string) { o.Attachments[len(o.Attachments)-1].Rendered = text }

func origin(c *call) []protocol.Field {
	return []protocol.Field{{Key: "hookName", Value: c.name}, {Key: "toolUseID", Value: c.toolUseID}, {Key: "hookEvent", Value: c.event}}
}

// Attached are the events by which transcripts keep the outcome.
func (o *Outcome) Attached() []protocol.Event {
	var events []protocol.Event
	for _, a := range o.Attachments {
		ev := &protocol.Attached{Attachment: a}
		if a.Rendered != "" {
			ev.Role, ev.Rendered = "system", protocol.Reminder(a.Rendered)
		}
		events = append(events, ev)
	}
	return events
}

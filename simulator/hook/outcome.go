package hook

import (
	"encoding/json"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Outcome is what all hooks of one event say together. The zero value says
// nothing. Events have no session and uuid; the caller sets them.
type Outcome struct {
	// Block: the action is refused (PreToolUse, UserPromptSubmit, …), the turn
	// goes on (Stop, SubagentStop), or the model is told so (PostToolUse).
	Block bool
	// Reason is that of the first hook that blocked or, for a decision other
	// than deny, of the hook that won; a command's is "[command]: stderr".
	Reason string
	// Texts are the full texts of all blocks in order, as the event shows them:
	// the tool result of PreToolUse, the result of UserPromptSubmit, the user
	// messages of Stop.
	Texts []string

	// Decision of PreToolUse and PreModelSwitch: deny over defer over ask over
	// allow; empty = none.
	Decision string
	// Permission is PermissionRequest's verdict, a denial over an allowance;
	// nil = none.
	Permission *protocol.PermissionAnswer

	UpdatedInput  json.RawMessage // the last given; nil = none
	UpdatedOutput json.RawMessage // of PostToolUse, the last given; nil = none
	// AdditionalContext is text for the model, one a hook.
	AdditionalContext []string
	// Specific holds the rarer keys, the last given of each: SessionTitle,
	// InitialUserMessage, WatchPaths (all of them), Retry, Action, Content, …
	Specific protocol.HookSpecific

	// Failed: a configured hook ended without a verdict.
	Failed bool
	// StopTurn: a hook answered continue:false. For tool events the tool still
	// runs and its result is shown.
	StopTurn   bool
	StopReason string // empty = none given

	// NotExecuted is the tool result of a call that must not run because a
	// PreToolUse hook gave no usable answer; empty = none.
	NotExecuted string
	// Gone: the host had to be asked and can answer no more. A tool call must not
	// run; anything else goes on as if there were no hook.
	Gone bool
	// CrashError ends the session: a UserPromptSubmit callback that broke the
	// contract; empty = none.
	CrashError string

	// Frames are hook_started and hook_response of configured hooks, the
	// started ones first. They are shown for SessionStart always, otherwise
	// with --include-hook-events only. Nil for SessionEnd.
	Frames []protocol.Event
	// Notices are informational events, shown always: system messages, hooks
	// that failed, the block of a prompt.
	Notices []protocol.Event
	// Attachments are for the transcript, in order.
	Attachments []protocol.HookAttachment
}

// merge joins the answers in configured order.
func merge(c *call, answers []answer) Outcome {
	o := Outcome{Frames: frames(c, answers)}
	for i := range answers {
		a := &answers[i]
		o.attach(c, a)
		switch {
		case a.detached:
			continue
		case a.fault != noFault:
			o.faulty(c, a)
			continue
		case a.blocked && canBlock(c.event):
			o.block(c, a, a.block, a.bare)
			continue
		}
		o.add(c, a)
	}
	return o
}

// block notes that a hook refused.
func (o *Outcome) block(c *call, a *answer, reason, bare string) {
	if !o.Block {
		o.Reason = reason
	}
	o.Block = true
	text := blockText(c, reason)
	o.Texts = append(o.Texts, text)
	switch c.event {
	case "PreToolUse", "PreModelSwitch":
		o.Decision = "deny"
	case "UserPromptSubmit":
		o.Notices = append(o.Notices, promptBlocked(text, bare))
	}
	o.attachment(c, "hook_blocking_error", protocol.Field{Key: "blockingError", Value: blockingError{reason, a.entry.label()}})
}

type blockingError struct {
	BlockingError string `json:"blockingError"`
	Command       string `json:"command"`
}

// add takes one hook's output.
func (o *Outcome) add(c *call, a *answer) {
	out := a.output
	if a.plain != "" && takesPlainText(c.event) {
		o.AdditionalContext = append(o.AdditionalContext, a.plain)
	}
	if out.Async {
		return
	}
	if out.SystemMessage != "" {
		o.Notices = append(o.Notices, notice(c.name+" says: "+out.SystemMessage))
	}
	if out.Continue != nil && !*out.Continue {
		o.StopTurn = true
		if o.StopReason == "" {
			o.StopReason = out.StopReason
		}
		if c.event == "UserPromptSubmit" {
			o.Texts = append(o.Texts, stoppedText(out.StopReason))
			o.Notices = append(o.Notices, promptStopped(out.StopReason))
		}
		o.attachment(c, "hook_stopped_continuation", protocol.Field{Key: "message", Value: out.StopReason})
	}
	s := out.Specific
	if s == nil {
		s = &protocol.HookSpecific{}
	}
	o.decide(c, a, s)
	o.specific(c, s)
}

// decide takes the verdict of an output.
func (o *Outcome) decide(c *call, a *answer, s *protocol.HookSpecific) {
	out := a.output
	reason := s.PermissionDecisionReason
	if reason == "" {
		reason = out.Reason
	}
	decision := s.PermissionDecision
	switch {
	case c.event != "PreToolUse" && c.event != "PreModelSwitch":
		decision = ""
	case decision == "" && out.Decision == "approve":
		decision = "allow"
	}
	if decision == "deny" || out.Decision == "block" && canBlock(c.event) {
		if reason == "" {
			reason = "Blocked by hook"
		}
		o.block(c, a, reason, reason)
		return
	}
	if rank(decision) > rank(o.Decision) {
		o.Decision, o.Reason = decision, reason
	}
	if decision == "allow" {
		o.attach1(c, "hook_permission_decision", protocol.Field{Key: "decision", Value: decision})
	}
	if d := s.Decision; d != nil && c.event == "PermissionRequest" {
		o.permission(protocol.PermissionAnswer{
			Allow: d.Behavior == "allow", UpdatedInput: given(d.UpdatedInput), UpdatedPermissions: d.UpdatedPermissions,
			Message: d.Message, Interrupt: d.Interrupt, Source: "hook",
		})
	}
}

// permission keeps the first verdict, or the first denial.
func (o *Outcome) permission(p protocol.PermissionAnswer) {
	if o.Permission == nil || o.Permission.Allow && !p.Allow {
		o.Permission = &p
	}
}

// rank orders the decisions of hooks that disagree.
func rank(decision string) int {
	switch decision {
	case "allow":
		return 1
	case "ask":
		return 2
	case "defer":
		return 3
	case "deny":
		return 4
	}
	return 0
}

// specific takes what else an event's hooks may say.
func (o *Outcome) specific(c *call, s *protocol.HookSpecific) {
	if s.AdditionalContext != "" {
		o.AdditionalContext = append(o.AdditionalContext, s.AdditionalContext)
		o.attachment(c, "hook_additional_context", protocol.Field{Key: "content", Value: []string{s.AdditionalContext}})
	}
	last(&o.UpdatedInput, given(s.UpdatedInput))
	last(&o.UpdatedOutput, given(s.UpdatedToolOutput))
	last(&o.UpdatedOutput, given(s.UpdatedMCPToolOutput))
	last(&o.Specific.Content, given(s.Content))
	keep(&o.Specific.ClassifierContext, s.ClassifierContext)
	keep(&o.Specific.SessionTitle, s.SessionTitle)
	keep(&o.Specific.InitialUserMessage, s.InitialUserMessage)
	keep(&o.Specific.Action, s.Action)
	keep(&o.Specific.WorktreePath, s.WorktreePath)
	keep(&o.Specific.DisplayContent, s.DisplayContent)
	o.Specific.WatchPaths = append(o.Specific.WatchPaths, s.WatchPaths...)
	o.Specific.SuppressOriginalPrompt = o.Specific.SuppressOriginalPrompt || s.SuppressOriginalPrompt
	o.Specific.ReloadSkills = o.Specific.ReloadSkills || s.ReloadSkills
	o.Specific.Retry = o.Specific.Retry || s.Retry
}

// given is raw, or nil when it is absent or null.
func given(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

func last(field *json.RawMessage, value json.RawMessage) {
	if value != nil {
		*field = value
	}
}

func keep(field *string, value string) {
	if value != "" {
		*field = value
	}
}

// faulty takes a hook that gave no verdict (spec: cli-contract 5.1 and 5.5).
func (o *Outcome) faulty(c *call, a *answer) {
	if a.fault == faultUnknown {
		o.Notices = append(o.Notices, notSimulated(c, a.entry))
		return
	}
	if a.fault == faultGone {
		o.Gone = true
		return
	}
	callback := a.entry.callback != ""
	o.Failed = o.Failed || !callback && !a.timedOut
	tool := c.event == "PreToolUse"
	switch {
	case tool && callback && a.fault == faultSilent:
		o.refuse(notInTime)
	case tool && callback && a.fault == faultInvalid, tool && a.entry.mustAnswer:
		o.refuse(unexpectedError)
	case callback && a.fault == faultInvalid && c.event == "UserPromptSubmit":
		keepFirst(&o.CrashError, a.stderr)
	case callback:
		o.Notices = append(o.Notices, callbackFailed(c, a))
	case tool && (a.fault == faultSilent || a.fault == faultMissing || a.fault == faultInvalid || a.killed):
		o.Notices = append(o.Notices, noVerdict(c, a))
	}
	if a.entry.mustAnswer && !tool && o.CrashError == "" && canBlock(c.event) {
		o.block(c, a, c.event+" hook failed", c.event+" hook failed")
	}
}

// refuse keeps a call from running.
func (o *Outcome) refuse(text string) { keepFirst(&o.NotExecuted, text) }

func keepFirst(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// canBlock names the events whose hooks can refuse or give feedback; for the
// others exit status 2 is an error like any other.
func canBlock(event string) bool {
	switch event {
	case "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "PermissionRequest",
		"UserPromptSubmit", "UserPromptExpansion", "Stop", "SubagentStop", "PreCompact", "PreModelSwitch",
		"ConfigChange", "TeammateIdle", "TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult", "WorktreeCreate":
		return true
	}
	return false
}

// takesPlainText names the events for which printed text that is no JSON is
// context for the model.
func takesPlainText(event string) bool {
	return event == "SessionStart" || event == "UserPromptSubmit" || event == "UserPromptExpansion"
}

package hook

import (
	"cmp"
	"encoding/json"
	"strings"

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
	// Reports say how each configured hook around a compaction went.
	Reports []string
	// Attachments are for the transcript, in order.
	Attachments []protocol.HookAttachment
}

// merge joins the answers in configured order.
func merge(c *call, answers []answer) Outcome {
	o := Outcome{Frames: frames(c, answers)}
	for i := range answers {
		a := &answers[i]
		o.report(c, a)
		reason, bare, refused := a.refusal(c)
		switch {
		case a.detached:
		case a.fault != noFault:
			o.attach(c, a)
			o.faulty(c, a)
		case refused:
			o.block(c, a, reason, bare)
			o.add(c, a)
		default:
			o.attachAnswer(c, a)
			o.add(c, a)
		}
	}
	if unseen(c.event) {
		o.Attachments = nil
	}
	return o
}

// report notes how a hook around a compaction went.
func (o *Outcome) report(c *call, a *answer) {
	if c.event != "PreCompact" && c.event != "PostCompact" || a.entry.callback != "" || a.detached {
		return
	}
	text, said := c.event+" ["+a.entry.label()+"] completed successfully", strings.TrimSpace(a.stdout)
	if a.outcome != succeeded {
		text, said = c.event+" ["+a.entry.label()+"] failed", strings.TrimSpace(a.stderr)
	}
	if said != "" {
		text += ": " + said
	}
	o.Reports = append(o.Reports, text)
}

// unseen names the events whose hooks leave no trace but their frames and
// failures.
func unseen(event string) bool {
	return event == "MessageDisplay" || event == "PermissionRequest" || event == "InstructionsLoaded"
}

// block notes that a hook refused; bare is the reason as it was given, empty
// when none was.
func (o *Outcome) block(c *call, a *answer, reason, bare string) {
	if !canBlock(c.event) {
		o.attachIgnored(c, a, reason)
		return
	}
	if ofPrompt(c.event) {
		more := originalPrompt + c.prompt
		if s := a.output.Specific; s != nil && s.SuppressOriginalPrompt {
			more = ""
		}
		o.refusePrompt(c, reason, more, promptOutcome{Kind: "blocked_by_hook", Reason: bare})
		return
	}
	if !o.Block {
		o.Reason = reason
	}
	o.Block = true
	o.Texts = append(o.Texts, blockText(c, reason))
	if decides(c.event) {
		o.Decision = "deny"
	}
	o.attachBlock(c, a, reason)
}

// add takes one hook's output beside its refusal.
func (o *Outcome) add(c *call, a *answer) {
	out := a.output
	if a.plain != "" && takesPlainText(c.event) {
		o.AdditionalContext = append(o.AdditionalContext, a.plain)
	}
	if out.Async {
		return
	}
	if out.SystemMessage != "" {
		o.message(c, out.SystemMessage)
	}
	if out.Continue != nil && !*out.Continue {
		o.StopTurn = true
		if o.StopReason == "" {
			o.StopReason = out.StopReason
		}
		if ofPrompt(c.event) {
			text := stoppedText(out.StopReason)
			o.Texts = append(o.Texts, text)
			o.Notices = append(o.Notices, promptRefused(c, text, promptOutcome{Kind: "stopped_by_hook", Kept: true, Reason: out.StopReason}))
		}
	}
	s := out.Specific
	if s == nil {
		s = &protocol.HookSpecific{}
	}
	o.decide(c, out, s)
	o.specific(c, s)
}

// message takes what a hook says to the user. At the start of a session nobody
// listens yet, and agents do not talk to users.
func (o *Outcome) message(c *call, text string) {
	switch {
	case unseen(c.event), c.event == "SessionStart", c.event == "SubagentStart", c.event == "SubagentStop":
	default:
		o.Notices = append(o.Notices, informational("notice", c.name+" says: "+text))
	}
	o.said(c, "hook_system_message", "content", text)
}

// refusal is the reason of a hook that refused: as users see it, and as it was
// given, empty when none was.
func (a *answer) refusal(c *call) (reason, bare string, refused bool) {
	if a.blocked {
		return a.block, a.bare, true
	}
	s := a.output.Specific
	if s == nil {
		s = &protocol.HookSpecific{}
	}
	if a.output.Async || a.output.Decision != "block" && (s.PermissionDecision != "deny" || !decides(c.event)) {
		return "", "", false
	}
	bare = cmp.Or(s.PermissionDecisionReason, a.output.Reason)
	return cmp.Or(bare, "Blocked by hook"), bare, true
}

// decides names the events whose hooks give a permission decision.
func decides(event string) bool { return event == "PreToolUse" || event == "PreModelSwitch" }

// decide takes the verdict of an output that does not refuse.
func (o *Outcome) decide(c *call, out protocol.HookOutput, s *protocol.HookSpecific) {
	decision := s.PermissionDecision
	if decision == "" && out.Decision == "approve" {
		decision = "allow"
	}
	if decides(c.event) && rank(decision) > rank(o.Decision) {
		o.Decision, o.Reason = decision, cmp.Or(s.PermissionDecisionReason, out.Reason)
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
		o.attachContext(c, s.AdditionalContext)
	}
	last(&o.UpdatedInput, given(s.UpdatedInput))
	last(&o.UpdatedOutput, given(s.UpdatedToolOutput))
	last(&o.Specific.UpdatedMCPToolOutput, given(s.UpdatedMCPToolOutput))
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

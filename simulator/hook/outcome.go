package hook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Outcome combines the results of the hooks of an event. The zero value has no effect. The caller must set the session
// id and the uuid of the events in an Outcome.
type Outcome struct {
	// Block is true if a hook blocked. Depending on the event, the call or prompt is refused (PreToolUse,
	// UserPromptSubmit, …), the turn continues (Stop, SubagentStop), or the model receives the reason (PostToolUse).
	Block bool
	// Reason is the reason of the first hook that blocked or, if none blocked, of the hook that made the Decision.
	// If a command blocked, Reason is "[command]: stderr".
	Reason string
	// Texts are the complete messages of all hooks that blocked the event or stopped the prompt, in order; for a tool call, the message
	// of one hook. They are shown as a tool result (PreToolUse), as the result of the turn (UserPromptSubmit) or as user messages (Stop).
	Texts []string

	// Decision of PreToolUse and PreModelSwitch hooks; precedence: deny, defer, ask, allow. Empty means none.
	Decision string
	Origin   string // the source of the hook that made the Decision; empty means that hooks from several sources agree
	// Permission is the decision of PermissionRequest hooks; a denial takes precedence. Nil means none.
	Permission *protocol.PermissionAnswer

	StopTurn   bool   // true if a hook answered continue:false; a tool call still runs after this answer, and shows its result
	StopReason string // empty means none

	Changes
	FailureEffects
	EventsAndAttachments
}

// Changes are values that hooks replace or add.
type Changes struct {
	UpdatedInput      json.RawMessage // input from the last hook that set one; nil means none
	UpdatedOutput     json.RawMessage // output from the last PostToolUse hook that set one; nil means none
	AdditionalContext []string        // text for the model, one per hook
	// Specific contains less frequent keys: SessionTitle, InitialUserMessage, Action, Content, … If several hooks set a
	// key, the last value is used.
	Specific protocol.HookSpecificOutput
}

// FailureEffects describes the hooks that gave no valid answer, and the effect on the call, the turn or the session.
type FailureEffects struct {
	// Failed is true if a hook other than a host's callback failed. Timeouts and unsimulated hook types do not count.
	Failed      bool
	NotExecuted string // the result of a call that must not run, because a PreToolUse hook gave no usable answer; empty means none
	// HostGone is true if the host has disconnected and a hook needed its answer. A tool call must not run; everything
	// else continues as if no hook existed.
	HostGone   bool
	CrashError string // the error that ends the session after an invalid answer to UserPromptSubmit; empty means none
}

func mergeResults(c *eventRun, answers []hookResult) Outcome {
	o := Outcome{EventsAndAttachments: EventsAndAttachments{Frames: startedProgressAndResponseEvents(c, answers)}}
	for i := range answers {
		a := &answers[i]
		o.addCompactionHookReport(c, a)
		if c.event == "SessionEnd" && strings.TrimSpace(a.stderr) != "" && a.exitCode != nil && *a.exitCode != 0 { // no event can show the failure
			o.Notices = append(o.Notices, &protocol.VerbatimOutput{Stderr: "SessionEnd hook [" + a.entry.config.Command + "] failed: " + a.stderr + "\n"})
		}
		reason, bare, refused := a.refusalReason(c)
		switch {
		case a.detached != nil:
		case a.missingVerdictReason != verdictGiven:
			o.addNonRefusalAttachment(c, a)
			o.addEffectOfMissingVerdict(c, a)
		case refused:
			o.recordRefusal(c, a, reason, bare)
			if a.hasRefused && a.outcome == outcomeSuccess && a.stdout != "" { // exit code 2 with JSON output
				o.addNonRefusalAttachment(c, a)
			}
			if !a.hasRefused || !claudecode.HookEventNamed(c.event).PrecedesPrompt {
				o.mergeHookOutput(c, a)
			}
			if a.entry.config.Type == "prompt" && a.output.StopReason != "" {
				o.addTurnStopAttachment(c, a.output.StopReason)
			}
		default:
			o.addAttachmentsOfHookAndTurnStop(c, a)
			o.mergeHookOutput(c, a)
		}
	}
	o.addStartContextAttachment(c, answers)
	if claudecode.HookEventNamed(c.event).FramesOnly {
		o.Attachments = nil
	}
	if p := o.Permission; p != nil && !p.Interrupt {
		decision := "deny"
		if p.Allow {
			decision = "allow"
		}
		o.addAttachment(c, "hook_permission_decision", []protocol.Field{{Key: "decision", Value: decision}, {Key: "toolUseID", Value: c.toolUseID}, {Key: "hookEvent", Value: c.event}})
	}
	if c.event == "Stop" {
		o.setStopHookSummary(c, answers)
	}
	return o
}

// recordRefusal records a refusal. rawReason is the unchanged reason of the hook; it may be empty.
func (o *Outcome) recordRefusal(c *eventRun, a *hookResult, reason, rawReason string) {
	if !claudecode.HookEventNamed(c.event).CanBlock {
		own := *c
		own.toolUseID = c.nextAttachmentIDOrToolUseID()
		o.addOutcomeAttachment(&own, "hook_non_blocking_error", protocol.Field{Key: "stderr", Value: reason}, protocol.Field{Key: "stdout", Value: ""},
			protocol.Field{Key: "exitCode", Value: blockExitCode}, protocol.Field{Key: "command", Value: a.entry.singleLineLabel()})
		return
	}
	if claudecode.HookEventNamed(c.event).PrecedesPrompt {
		more := originalPromptHeading + c.promptText
		if s := a.output.Specific; s != nil && s.SuppressOriginalPrompt {
			more = ""
		}
		o.recordPromptRefusal(c, reason, more, protocol.PromptSubmitOutcome{Kind: "blocked_by_hook", Reason: rawReason})
		return
	}
	if !o.Block {
		o.Reason = reason
	}
	o.Block = true
	if c.event == "PreToolUse" {
		o.setDenialTextFromLastHook(c, a, reason)
	} else {
		o.Texts = append(o.Texts, blockingHookMessage(c, reason))
	}
	if claudecode.HookEventNamed(c.event).DecidesPermission {
		o.Decision = "deny"
	}
	o.addRefusalAttachmentUnlessShown(c, a, reason)
	if c.event == "PostToolUse" || c.event == "PostToolUseFailure" { // for other events, a tool result or a prompt contains the reason
		o.AdditionalContext = append(o.AdditionalContext, blockingErrorTextForModel(c, a, reason))
	}
}

// maxGapOfSimultaneousHookEnds is the time within which hooks count as finished at the same time.
const maxGapOfSimultaneousHookEnds = 100 * time.Millisecond

// setDenialTextFromLastHook sets the text of a refused call. If several hooks refuse it, the text comes from the hook that finished
// last. Of hooks that finished at about the same time, the last one in configured order counts (observed with 2.1.330).
func (o *Outcome) setDenialTextFromLastHook(c *eventRun, a *hookResult, reason string) {
	if len(o.Texts) > 0 && a.duration+maxGapOfSimultaneousHookEnds < c.slowestDenial {
		return
	}
	text := blockingHookMessage(c, reason)
	s := cmp.Or(a.output.Specific, &protocol.HookSpecificOutput{PermissionDecisionReason: a.output.Reason})
	if c.hasBareDenials && !a.hasRefused && (s.PermissionDecision == "" || s.PermissionDecision == "deny") {
		text = cmp.Or(s.PermissionDecisionReason, "Hook "+c.hookName+" denied this tool")
	}
	o.Texts, c.slowestDenial = []string{text}, max(c.slowestDenial, a.duration)
}

// mergeHookOutput merges one hook's output, except its refusal.
func (o *Outcome) mergeHookOutput(c *eventRun, a *hookResult) {
	out := a.output
	if a.plainText != "" && claudecode.HookEventNamed(c.event).TextIsContext {
		o.AdditionalContext = append(o.AdditionalContext, a.plainText)
	}
	if out.Async {
		return
	}
	if out.SystemMessage != "" {
		o.recordAndShowMessageToUser(c, out.SystemMessage)
	}
	if out.Continue != nil && !*out.Continue {
		o.StopTurn = true
		o.StopReason = cmp.Or(o.StopReason, out.StopReason)
		if claudecode.HookEventNamed(c.event).PrecedesPrompt {
			text := "Operation stopped by hook"
			if out.StopReason != "" {
				text += ": " + out.StopReason
			}
			o.Texts = append(o.Texts, text)
			o.Notices = append(o.Notices, promptRefusedEvent(c, text, protocol.PromptSubmitOutcome{Kind: "stopped_by_hook", IsKept: true, Reason: out.StopReason}))
		}
	}
	s := cmp.Or(out.Specific, &protocol.HookSpecificOutput{})
	o.mergeDecision(c, a, s)
	o.mergeHookSpecificOutput(c, s)
}

// recordAndShowMessageToUser records a hook's message to the user in the transcript, and adds a notice with it. The notice is omitted at the
// start of a conversation, at the end of an agent, and for events whose hooks appear only in frames. Messages of compaction hooks are only
// in [EventsAndAttachments.Reports].
func (o *Outcome) recordAndShowMessageToUser(c *eventRun, text string) {
	if c.isCompactionEvent() {
		return
	}
	o.addTextAttachment(c, "hook_system_message", "content", text)
	switch {
	case claudecode.HookEventNamed(c.event).FramesOnly, c.isSessionOrSubagentStart(), c.event == "SubagentStop", c.inAgent:
	default:
		notice := informationalEventOutsideTranscript("notice", c.hookName+" says: "+text)
		o.Notices, o.Attachments[len(o.Attachments)-1].Notice = append(o.Notices, notice), notice
	}
}

// refusalReason returns why the hook refused. reason is for users. rawReason is the hook's own text, which may be empty.
func (a *hookResult) refusalReason(c *eventRun) (reason, rawReason string, refused bool) {
	if a.hasRefused {
		return a.refusalReasonForUser, a.rawReason, true
	}
	if a.output.Async || !a.refusesInOutput(c.event) {
		return "", "", false
	}
	rawReason = cmp.Or(cmp.Or(a.output.Specific, &protocol.HookSpecificOutput{}).PermissionDecisionReason, a.output.Reason)
	return cmp.Or(rawReason, "Blocked by hook"), rawReason, true
}

func (a *hookResult) refusesInOutput(event string) bool {
	s := a.output.Specific
	return a.output.Decision == "block" || s != nil && s.PermissionDecision == "deny" && claudecode.HookEventNamed(event).DecidesPermission
}

func (o *Outcome) mergeDecision(c *eventRun, a *hookResult, s *protocol.HookSpecificOutput) {
	decision := s.PermissionDecision
	if decision == "" && a.output.Decision == "approve" {
		decision = "allow"
	}
	switch {
	case !claudecode.HookEventNamed(c.event).DecidesPermission:
	case decisionRank(decision) > decisionRank(o.Decision):
		o.Decision, o.Reason, o.Origin = decision, cmp.Or(s.PermissionDecisionReason, a.output.Reason), a.entry.pluginOrSettingsOrigin()
	case decision == o.Decision && o.Origin != a.entry.pluginOrSettingsOrigin():
		o.Origin = ""
	}
	if d := s.Decision; d != nil && c.event == "PermissionRequest" {
		p := protocol.PermissionAnswer{Allow: d.Behavior == "allow", UpdatedInput: plainjson.NilIfNull(d.UpdatedInput), UpdatedPermissions: d.UpdatedPermissions, Message: d.Message, Interrupt: d.Interrupt, Source: "hook"}
		if o.Permission == nil || o.Permission.Allow && !p.Allow { // the first denial wins, otherwise the first verdict
			o.Permission = &p
		}
	}
}

// decisionRank returns the rank of a decision; of conflicting decisions, the highest rank applies.
func decisionRank(decision string) int {
	return 1 + slices.Index([]string{"allow", "ask", "defer", "deny"}, decision)
}

// mergeHookSpecificOutput merges the keys of hookSpecificOutput, except decisions.
func (o *Outcome) mergeHookSpecificOutput(c *eventRun, s *protocol.HookSpecificOutput) {
	if s.AdditionalContext != "" {
		o.AdditionalContext = append(o.AdditionalContext, s.AdditionalContext)
		if !c.isSessionOrSubagentStart() {
			o.addContextAttachment(c, s.AdditionalContext)
		}
	}
	overwriteIfSet(&o.UpdatedInput, plainjson.NilIfNull(s.UpdatedInput))
	overwriteIfSet(&o.UpdatedOutput, plainjson.NilIfNull(s.UpdatedToolOutput))
	overwriteIfSet(&o.Specific.UpdatedMCPToolOutput, plainjson.NilIfNull(s.UpdatedMCPToolOutput))
	overwriteIfSet(&o.Specific.Content, plainjson.NilIfNull(s.Content))
	overwriteIfNotEmpty(&o.Specific.SessionTitle, s.SessionTitle)
	overwriteIfNotEmpty(&o.Specific.InitialUserMessage, s.InitialUserMessage)
	overwriteIfNotEmpty(&o.Specific.Action, s.Action)
	overwriteIfNotEmpty(&o.Specific.WorktreePath, s.WorktreePath)
	if s.DisplayContent != nil {
		o.Specific.DisplayContent = s.DisplayContent
	}
	o.Specific.SuppressOriginalPrompt = o.Specific.SuppressOriginalPrompt || s.SuppressOriginalPrompt
	o.Specific.ReloadSkills = o.Specific.ReloadSkills || s.ReloadSkills
}

func overwriteIfSet(field *json.RawMessage, value json.RawMessage) {
	if value != nil {
		*field = value
	}
}

func overwriteIfNotEmpty(field *string, value string) { *field = cmp.Or(value, *field) }

// addEffectOfMissingVerdict handles a hook without a decision (spec: cli-contract 5.1 and 5.5; otherwise observed with 2.1.329).
func (o *Outcome) addEffectOfMissingVerdict(c *eventRun, a *hookResult) {
	callback := a.entry.callbackID != ""
	o.Failed = o.Failed || !callback && !a.timedOut && a.missingVerdictReason != noVerdictBecauseTypeNotSimulated
	switch {
	case a.missingVerdictReason == noVerdictBecauseTypeNotSimulated && c.event == "PreToolUse":
		a.entry.uncheckedNoticeOnce.Do(func() { o.Notices = append(o.Notices, missingVerdictWarning(c, a)) })
	case a.missingVerdictReason == noVerdictBecauseTypeNotSimulated:
		text := fmt.Sprintf("%s hook of type %s was not run: it needs a model and is not simulated", c.hookName, a.entry.config.Type)
		o.Notices = append(o.Notices, informationalEventOutsideTranscript("warning", text, protocol.Field{Key: "tag", Value: "hook_not_simulated"}))
	case a.missingVerdictReason == noVerdictBecauseHostGone:
		o.HostGone = true
	case callback && a.missingVerdictReason == noVerdictBecauseTimedOut:
		o.addEffectOfCallbackTimeout(c, a)
	case callback && a.missingVerdictReason == noVerdictBecauseInvalidOutput:
		o.addEffectOfWrongEventAnswer(c, a)
	default:
		if callback {
			if a.stderr != "" {
				o.Notices = append(o.Notices, &protocol.VerbatimOutput{Stderr: a.stderr})
			}
			o.Notices = append(o.Notices, callbackFailedEvent(c, a))
		}
		if a.entry.canFailureBlockEvent(c.event) {
			o.blockOnFailure(c, a)
		}
	}
}

// addEffectOfCallbackTimeout handles a callback that did not answer in time. A tool call or a prompt that waited for the answer
// is refused. If the callback was asked whether a turn may end, the turn ends.
func (o *Outcome) addEffectOfCallbackTimeout(c *eventRun, a *hookResult) {
	switch {
	case c.event == "PreToolUse":
		setIfUnset(&o.NotExecuted, preToolUseTimeoutText)
	case claudecode.HookEventNamed(c.event).PrecedesPrompt:
		reason := fmt.Sprintf("%s hook callback timed out after %dms", c.event, a.entry.timeout.Milliseconds())
		o.recordPromptRefusal(c, reason, "", protocol.PromptSubmitOutcome{Kind: "no_verdict", NoVerdict: "callback_timed_out"})
	case claudecode.HookEventNamed(c.event).PrecedesEnd:
		o.recordAndShowMessageToUser(c, hostSilentText)
	}
}

// addEffectOfWrongEventAnswer handles a callback whose answer is for another event.
func (o *Outcome) addEffectOfWrongEventAnswer(c *eventRun, a *hookResult) {
	switch c.event {
	case "PreToolUse":
		setIfUnset(&o.NotExecuted, preToolUseErrorText)
	case "UserPromptSubmit":
		setIfUnset(&o.CrashError, a.stderr)
	case "Stop":
		ev := informationalEventOutsideTranscript("warning", "Stop hook failed: "+a.stderr)
		ev.StreamOnly = false
		o.Notices = append(o.Notices, ev)
	}
}

// blockOnFailure turns a failure into a refusal (onFailure "block").
func (o *Outcome) blockOnFailure(c *eventRun, a *hookResult) {
	how, kind := "failed", "hook_failed"
	if a.timedOut {
		how, kind = "timed out", "hook_timed_out"
	}
	short := fmt.Sprintf("[%s]: %s; blocking because onFailure is \"block\"", a.entry.messageLabel(), how)
	reason, detail := short, strings.TrimSpace(a.stderr)
	if a.entry.callbackID != "" {
		detail = "Hook callback " + a.entry.callbackID + " failed: " + callbackFailedText
	}
	if detail != "" && !a.timedOut {
		reason += "\n" + detail
	}
	if claudecode.HookEventNamed(c.event).PrecedesPrompt {
		o.recordPromptRefusal(c, reason, "", protocol.PromptSubmitOutcome{Kind: "no_verdict", NoVerdict: kind, Reason: short})
		return
	}
	if claudecode.HookEventNamed(c.event).CanBlock {
		o.recordRefusal(c, a, reason, reason)
	}
}

func (o *Outcome) recordPromptRefusal(c *eventRun, reason, suffix string, outcome protocol.PromptSubmitOutcome) {
	if !o.Block {
		o.Reason = reason
	}
	o.Block = true
	text := c.event + " operation blocked by hook:\n" + reason + suffix
	o.Texts = append(o.Texts, text)
	o.Notices = append(o.Notices, promptRefusedEvent(c, text, outcome))
}

func setIfUnset(field *string, value string) { *field = cmp.Or(*field, value) }

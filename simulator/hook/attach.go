package hook

import (
	"cmp"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// EventsAndAttachments contains events and records of hooks.
type EventsAndAttachments struct {
	// Frames are the events hook_started and hook_response of configured hooks; all hook_started events come first.
	// Those of SessionStart are always shown, others only with --include-hook-events. SessionEnd has none.
	Frames      []protocol.Event
	Notices     []protocol.Event          // informational events that are always shown: system messages, failed hooks, a blocked prompt
	Reports     []string                  // describe, for the user, the result of each configured hook before or after a compaction
	Attachments []protocol.HookAttachment // for the transcript, in order
	StopHooks   *protocol.StopHooksRan    // describes the Stop hooks; nil means none ran
}

func (c *eventRun) isCompactionEvent() bool {
	return c.event == "PreCompact" || c.event == "PostCompact"
}

func (t *EventsAndAttachments) addCompactionHookReport(c *eventRun, a *hookResult) {
	if !c.isCompactionEvent() || a.detached != nil {
		return
	}
	text, said := c.event+" ["+a.entry.messageLabel()+"] completed successfully", strings.TrimSpace(a.stdout)
	switch {
	case a.entry.callbackID != "": // even if the host answers with an error
		said = a.output.SystemMessage
	case a.outcome != outcomeSuccess:
		text, said = c.event+" ["+a.entry.messageLabel()+"] failed", strings.TrimSpace(a.stderr)
	}
	if said != "" {
		text += ": " + said
	}
	t.Reports = append(t.Reports, text)
}

// addAttachmentsOfHookAndTurnStop records a hook that did not refuse and, if it stopped the turn, the stop. For a PostToolUse hook, a stop
// is recorded alone. For an event right before the end of a turn, the stop is recorded before the hook, otherwise after it.
func (t *EventsAndAttachments) addAttachmentsOfHookAndTurnStop(c *eventRun, a *hookResult) {
	stops := a.output.Continue != nil && !*a.output.Continue
	switch {
	case stops && c.event == "PostToolUse":
		t.addTurnStopAttachment(c, a.output.StopReason)
	case stops && claudecode.HookEventNamed(c.event).PrecedesEnd:
		t.addTurnStopAttachment(c, a.output.StopReason)
		t.addNonRefusalAttachment(c, a)
	case stops:
		t.addNonRefusalAttachment(c, a)
		t.addTurnStopAttachment(c, a.output.StopReason)
	default:
		t.addNonRefusalAttachment(c, a)
	}
}

// addNonRefusalAttachment records in the transcript a configured hook that did not refuse.
func (t *EventsAndAttachments) addNonRefusalAttachment(c *eventRun, a *hookResult) {
	if a.entry.callbackID != "" || a.missingVerdictReason == noVerdictBecauseTypeNotSimulated {
		return
	}
	command := protocol.Field{Key: "command", Value: a.entry.singleLineLabel()}
	details := []protocol.Field{command, {Key: "durationMs", Value: a.duration.Milliseconds()}}
	stdout, code := protocol.Field{Key: "stdout", Value: a.stdout}, protocol.Field{Key: "exitCode", Value: 1}
	if a.entry.config.Type == "http" {
		details, code.Value = details[:1], 0
	}
	if a.exitCode != nil {
		code.Value = *a.exitCode
	}
	switch {
	case a.outcome == outcomeSuccess:
		if a.plainText == "" && claudecode.HookEventNamed(c.event).PrecedesPrompt || strings.TrimSpace(a.stdout+a.stderr) == "" {
			return
		}
		t.addOutcomeAttachment(c, "hook_success", append([]protocol.Field{
			{Key: "content", Value: strings.TrimSpace(a.plainText)},
			stdout,
			{Key: "stderr", Value: a.stderr},
			code,
		}, details...)...)
		if a.plainText != "" && claudecode.HookEventNamed(c.event).TextIsContext {
			t.setRenderedTextOfLastAttachment(c.hookName + " hook success: " + strings.TrimSpace(a.plainText))
		}
	case a.outcome == outcomeCancelled && (c.event == "PostToolUse" || c.event == "PostToolUseFailure"):
		t.addOutcomeAttachment(c, "hook_cancelled")
	case a.outcome == outcomeCancelled:
		t.addOutcomeAttachment(c, "hook_cancelled", append(details, protocol.Field{Key: "timedOut", Value: a.timedOut},
			protocol.Field{Key: "timeoutMs", Value: int64(a.entry.timeout / time.Millisecond)})...)
	case a.outcome == outcomeError:
		fields := []protocol.Field{{Key: "stderr", Value: a.nonBlockingErrorText()}, stdout, code}
		if a.entry.config.Type != "http" {
			fields = append(fields, details...)
		}
		t.addOutcomeAttachment(c, "hook_non_blocking_error", fields...)
	}
}

func (a *hookResult) nonBlockingErrorText() string {
	if a.exitCode == nil || a.missingVerdictReason == noVerdictBecauseInvalidOutput {
		return a.stderr
	}
	return cmp.Or(a.refusalReasonForUser, "Failed with non-blocking status code: "+cmp.Or(strings.TrimSpace(a.stderr), "No stderr output"))
}

// addRefusalAttachmentUnlessShown records a hook's refusal in the transcript, unless a message to the user or the model already
// contains the refusal.
func (t *EventsAndAttachments) addRefusalAttachmentUnlessShown(c *eventRun, a *hookResult, reason string) {
	switch c.event {
	case "PreToolUse", "PermissionRequest", "UserPromptSubmit", "UserPromptExpansion", "PreCompact":
		return
	case "Stop", "SubagentStop":
		if a.hasRefused { // the user message already contains the reason
			return
		}
		if a.entry.callbackID != "" {
			c = &eventRun{event: c.event, hookName: c.event + ":Callback", toolUseID: c.toolUseID}
		}
	case "PostToolBatch":
		t.addStopAttachment(c, reason, "")
		return
	}
	t.addOutcomeAttachment(c, "hook_blocking_error", protocol.Field{Key: "blockingError", Value: blockingError{reason, a.entry.singleLineLabel()}})
	t.setRenderedTextOfLastAttachment(blockingErrorTextForModel(c, a, reason))
}

func blockingErrorTextForModel(c *eventRun, a *hookResult, reason string) string {
	return c.hookName + ` hook blocking error from command: "` + a.entry.singleLineLabel() + `": ` + reason
}

type blockingError struct {
	BlockingError string `json:"blockingError"`
	Command       string `json:"command"`
}

// addTurnStopAttachment records that a hook ends the turn. It records nothing if the hook ran for a prompt, because a message tells the
// user about the stop.
func (t *EventsAndAttachments) addTurnStopAttachment(c *eventRun, reason string) {
	switch {
	case c.event == "PostToolUse", c.event == "PostToolBatch":
		t.addStopAttachment(c, reason, "Execution stopped by "+c.event+" hook")
	case claudecode.HookEventNamed(c.event).PrecedesEnd:
		named := *c
		named.hookName, named.event = "Stop", "Stop"
		t.addStopAttachment(&named, reason, "Stop hook prevented continuation")
	case c.event == "PreToolUse":
		t.addStopAttachment(c, reason, "Execution stopped by hook")
	}
}

func (t *EventsAndAttachments) addStopAttachment(c *eventRun, reason, fallback string) {
	reason = cmp.Or(reason, fallback)
	t.addTextAttachment(c, "hook_stopped_continuation", "message", reason)
	t.setRenderedTextOfLastAttachment(c.hookName + " hook stopped continuation: " + reason)
}

func (t *EventsAndAttachments) addContextAttachment(c *eventRun, nonEmptyTexts ...string) {
	named := *c
	switch {
	case c.event == "SessionStart":
		named.hookName, named.toolUseID = c.event, c.event
	case c.event == "SubagentStart":
		named.hookName, named.toolUseID = c.event, c.nextAttachmentIDOrToolUseID()
	case claudecode.HookEventNamed(c.event).PrecedesPrompt:
		named.toolUseID = "hook-" + c.nextAttachmentIDOrToolUseID()
	}
	t.addTextAttachment(&named, "hook_additional_context", "content", nonEmptyTexts)
	t.setRenderedTextOfLastAttachment(named.hookName + " hook additional context: " + strings.Join(nonEmptyTexts, "\n"))
}

// nextAttachmentIDOrToolUseID removes and returns the first of attachmentIDs. If there is none, it returns toolUseID.
func (c *eventRun) nextAttachmentIDOrToolUseID() string {
	if len(c.attachmentIDs) == 0 {
		return c.toolUseID
	}
	id := c.attachmentIDs[0]
	c.attachmentIDs = c.attachmentIDs[1:]
	return id
}

// isSessionOrSubagentStart reports whether a conversation starts. All hooks then share one attachment for context.
func (c *eventRun) isSessionOrSubagentStart() bool {
	return c.event == "SessionStart" || c.event == "SubagentStart"
}

func (t *EventsAndAttachments) addStartContextAttachment(c *eventRun, answers []hookResult) {
	var texts []string
	for _, a := range answers {
		if s := a.output.Specific; c.isSessionOrSubagentStart() && s != nil && s.AdditionalContext != "" {
			texts = append(texts, s.AdditionalContext)
		}
	}
	if texts != nil {
		t.addContextAttachment(c, texts...)
	}
}

// HookModifiedFileContext returns the text for the model and the event about a file that a PostToolUse hook changed after a call.
func HookModifiedFileContext(hookName, toolUseID, file string) (textForModel string, attachmentEvent protocol.Event) {
	var t EventsAndAttachments
	text := "PostToolUse hook modified " + file + " after your edit (likely a formatter). Your next Edit will not fail with a stale-file error, " +
		"but if its old_string targets a region the hook reformatted, Read the file first."
	c := &eventRun{event: "PostToolUse", hookName: hookName, toolUseID: toolUseID}
	t.addAttachment(c, "hook_additional_context", append([]protocol.Field{{Key: "content", Value: []string{text}}, {Key: "isOwnText", Value: true}}, hookNameToolUseAndEventFields(c)...))
	t.setRenderedTextOfLastAttachment(hookName + " hook additional context: " + text)
	return text, t.AttachmentEvents()[0]
}

func (t *EventsAndAttachments) addOutcomeAttachment(c *eventRun, kind string, fields ...protocol.Field) {
	t.addAttachment(c, kind, append(hookNameToolUseAndEventFields(c), fields...))
}

func (t *EventsAndAttachments) addTextAttachment(c *eventRun, kind, key string, value any) {
	t.addAttachment(c, kind, append([]protocol.Field{{Key: key, Value: value}}, hookNameToolUseAndEventFields(c)...))
}

func (t *EventsAndAttachments) addAttachment(c *eventRun, kind string, fields []protocol.Field) {
	if c.event == "PostToolBatch" {
		fields = append(fields, protocol.Field{Key: "accountMemoryBatch", Value: false})
	}
	t.Attachments = append(t.Attachments, protocol.HookAttachment{Type: kind, Fields: fields})
}

func (o *Outcome) setStopHookSummary(c *eventRun, answers []hookResult) {
	sum := protocol.StopHookSummary{Hooks: []protocol.StopHookInfo{}, Errors: []string{}, Failed: []int{}, Context: append([]string{}, o.AdditionalContext...), Prevented: o.StopTurn, Reason: o.StopReason}
	for i := range answers {
		a := &answers[i]
		if a.missingVerdictReason == noVerdictBecauseTypeNotSimulated {
			continue
		}
		sum.Count++
		info := protocol.StopHookInfo{Command: a.entry.singleLineLabel(), Prompt: a.entry.config.Prompt}
		reason, _, refused := a.refusalReason(c)
		switch {
		case refused:
			sum.Errors = append(sum.Errors, reason)
		case a.outcome == outcomeError:
			sum.Failed = append(sum.Failed, len(sum.Errors))
			sum.Errors = append(sum.Errors, a.nonBlockingErrorText())
		}
		if !refused && a.detached == nil && a.entry.callbackID == "" && a.entry.config.Type != "http" {
			info.DurationMS = new(a.duration.Milliseconds())
		}
		sum.Hooks = append(sum.Hooks, info)
		sum.HasOutput = sum.HasOutput || strings.TrimSpace(a.stdout+a.stderr) != "" || refused || a.outcome == outcomeError
	}
	if sum.Count > 0 {
		o.StopHooks = &protocol.StopHooksRan{Summary: sum, ToolUseID: c.toolUseID}
	}
}

func (t *EventsAndAttachments) setRenderedTextOfLastAttachment(text string) {
	t.Attachments[len(t.Attachments)-1].Rendered = text
}

func hookNameToolUseAndEventFields(c *eventRun) []protocol.Field {
	return []protocol.Field{{Key: "hookName", Value: c.hookName}, {Key: "toolUseID", Value: c.toolUseID}, {Key: "hookEvent", Value: c.event}}
}

// AttachmentEvents returns the events that record the attachments in transcripts.
func (t *EventsAndAttachments) AttachmentEvents() []protocol.Event {
	var events []protocol.Event
	for _, a := range t.Attachments {
		ev := &protocol.AttachmentAdded{Attachment: a}
		if a.Rendered != "" {
			ev.Role, ev.Rendered = "system", []string{a.Rendered}
		}
		events = append(events, ev)
	}
	return events
}

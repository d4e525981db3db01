package hook

import (
	"bytes"
	_ "embed" // for expected_output.json
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Tool results of calls that were stopped because a PreToolUse hook gave no valid answer.
const (
	preToolUseTimeoutText = "PreToolUse hook did not respond before its timeout (host client may be unreachable). The tool call was not executed; other configured hooks may not have completed."
	preToolUseErrorText   = "PreToolUse hook failed with an unexpected error. The tool call was not executed; other configured hooks may not have completed."
)

// originalPromptHeading separates the reason of a refusal from the refused prompt.
const originalPromptHeading = "\n\nOriginal prompt: "

// blockingHookMessage returns the message with which an event reports that a hook blocked (spec: cli-contract 5.3).
func blockingHookMessage(c *eventRun, reason string) string {
	switch c.event {
	case "Stop", "SubagentStop":
		return "Stop hook feedback:\n" + reason
	case "TeammateIdle", "TaskCreated", "TaskCompleted":
		return c.event + " hook feedback:\n" + reason
	}
	return c.hookName + " hook error: " + reason
}

// StopHookErrorNotification returns the event about a Stop hook that blocked or failed. If a hook blocked, the feedback is shown before
// this event.
func StopHookErrorNotification() *protocol.SystemEvent {
	return &protocol.SystemEvent{Subtype: "notification", Fields: []protocol.Field{
		{Key: "key", Value: "stop-hook-error"},
		{Key: "text", Value: "stop hook problem · ctrl+o to see"},
		{Key: "priority", Value: "immediate"},
	}}
}

// informationalEventOutsideTranscript returns an event that is not written to the transcript: there, an attachment has its content.
func informationalEventOutsideTranscript(level, content string, more ...protocol.Field) *protocol.SystemEvent {
	fields := []protocol.Field{{Key: "content", Value: content}, {Key: "level", Value: level}}
	return &protocol.SystemEvent{Subtype: "informational", Fields: append(fields, more...), StreamOnly: true}
}

// promptRefusedEvent returns the event for a prompt that a hook stopped. For UserPromptSubmit it contains outcome.
func promptRefusedEvent(c *eventRun, text string, outcome protocol.PromptSubmitOutcome) *protocol.SystemEvent {
	fields := []protocol.Field{{Key: "prevent_continuation", Value: true}}
	if c.event == "UserPromptSubmit" {
		fields = append(fields, protocol.Field{Key: "prompt_submit_outcome", Value: outcome})
	}
	ev := informationalEventOutsideTranscript("warning", text, fields...)
	ev.StreamOnly = false // transcripts contain the event, because no attachment contains its text
	return ev
}

// callbackFailedText is the message about a callback that failed. Like the real CLI's text, it does not quote the host.
const callbackFailedText = "the SDK host replied with an error or an invalid answer."

// hostSilentText is shown if the host does not answer a callback that decides whether a turn may end.
const hostSilentText = "The app driving this session didn't respond, so this turn ended without it."

func callbackFailedEvent(c *eventRun, a *hookResult) *protocol.SystemEvent {
	so := "Its answer was treated as empty."
	if a.entry.canFailureBlockEvent(c.event) {
		so = `onFailure is "block", so this failure counts as a block.`
	}
	return informationalEventOutsideTranscript("warning", fmt.Sprintf("%s: Hook callback %s failed: %s %s", c.event, a.entry.callbackID, callbackFailedText, so),
		protocol.Field{Key: "tag", Value: "hook_callback_failed"})
}

func missingVerdictWarning(c *eventRun, a *hookResult) *protocol.SystemEvent {
	text := "A hook gave no usable answer, so it didn't check this action."
	if a.timedOut {
		text = "A hook didn't answer in time, so it didn't check this action."
	}
	return informationalEventOutsideTranscript("warning", text,
		protocol.Field{Key: "tag", Value: "hook_no_verdict"},
		protocol.Field{Key: "hook_no_verdict", Value: missingVerdictData{c.event, c.toolUseID, a.timedOut}})
}

type missingVerdictData struct {
	HookEvent string `json:"hook_event"`
	ToolUseID string `json:"tool_use_id"`
	TimedOut  bool   `json:"timed_out"`
}

func hookStartedEvents(c *eventRun, answers []hookResult) []protocol.Event {
	var started []protocol.Event
	for i := range answers {
		if e := answers[i].entry; e.callbackID == "" && e.config.Type != "prompt" && e.config.Type != "agent" {
			started = append(started, &protocol.SystemEvent{Subtype: "hook_started", Fields: hookIDNameAndEventFields(c, &answers[i])})
		}
	}
	return started
}

// startedProgressAndResponseEvents returns the hook_started, hook_progress and hook_response events that were not shown yet, and
// warnings about hooks that gave no usable answer.
func startedProgressAndResponseEvents(c *eventRun, answers []hookResult) []protocol.Event {
	if c.event == "SessionEnd" {
		return nil
	}
	var started, between, ended []protocol.Event
	if !c.startShown {
		started = hookStartedEvents(c, answers)
	}
	for i := range answers {
		a := &answers[i]
		if a.entry.callbackID != "" || a.missingVerdictReason == noVerdictBecauseTypeNotSimulated {
			continue
		}
		for _, p := range a.outputsWhileRunning {
			between = append(between, hookProgressEvent(c, a, p))
		}
		if a.detached == nil && (a.entry.config.Type != "prompt" || c.event == "SessionStart") {
			ended = append(ended, hookResponseEvent(c, a))
		}
		hasRunAndFailed := a.missingVerdictReason == noVerdictBecauseFailed && !a.wasKilled
		if c.event == "PreToolUse" && a.missingVerdictReason != verdictGiven && !a.entry.canFailureBlockEvent(c.event) && !hasRunAndFailed {
			a.entry.uncheckedNoticeOnce.Do(func() { ended = append(ended, missingVerdictWarning(c, a)) })
		}
	}
	return slices.Concat(started, between, ended)
}

func hookIDNameAndEventFields(c *eventRun, a *hookResult) []protocol.Field {
	return []protocol.Field{{Key: "hook_id", Value: a.id}, {Key: "hook_name", Value: c.hookName}, {Key: "hook_event", Value: c.event}}
}

func hookProgressEvent(c *eventRun, a *hookResult, output partialOutput) *protocol.SystemEvent {
	return &protocol.SystemEvent{Subtype: "hook_progress", Fields: append(hookIDNameAndEventFields(c, a),
		protocol.Field{Key: "stdout", Value: output.stdout},
		protocol.Field{Key: "stderr", Value: output.stderr},
		protocol.Field{Key: "output", Value: output.stdout + output.stderr})}
}

func hookResponseEvent(c *eventRun, a *hookResult) *protocol.SystemEvent {
	output := a.stdout + a.stderr
	switch {
	case a.missingVerdictReason == noVerdictBecauseInvalidOutput && a.stdout != "":
		output = a.stdout // stderr contains the message about the invalid output
	case a.timedOut && a.entry.config.Type == "http":
		output = "Hook cancelled"
	}
	fields := append(hookIDNameAndEventFields(c, a),
		protocol.Field{Key: "output", Value: output},
		protocol.Field{Key: "stdout", Value: a.stdout},
		protocol.Field{Key: "stderr", Value: a.stderr})
	if a.exitCode != nil {
		fields = append(fields, protocol.Field{Key: "exit_code", Value: *a.exitCode})
	}
	outcome := a.outcome
	if outcome == outcomeSuccess && a.entry.config.Type == "command" && a.exitCode != nil && *a.exitCode != 0 {
		outcome = outcomeError // although its JSON output applies
	}
	return &protocol.SystemEvent{Subtype: "hook_response", Fields: append(fields, protocol.Field{Key: "outcome", Value: outcome})}
}

// expectedOutput is the description of a hook's output that the real CLI adds to the message about an output that does not fit.
//
//go:embed expected_output.json
var expectedOutput string

func invalidOutputMessage(object json.RawMessage, err error) string {
	var shown bytes.Buffer
	if bad, ok := errors.AsType[*shapeError](err); ok && json.Indent(&shown, object, "", "  ") == nil {
		return "Hook JSON output validation failed — " + bad.Error() + "\n\nThe hook's output was: " + shown.String() + "\n\nExpected schema:\n" + strings.TrimSpace(expectedOutput)
	}
	return "Failed to run: " + err.Error()
}

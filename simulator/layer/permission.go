// Package layer provides the middleware around tool calls: hooks and permission checks.
package layer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// PermissionOptions configures [Permission]. Policy and Clock are required.
type PermissionOptions struct {
	Policy        *permission.Policy
	Ask           permission.Prompter // answers questions; nil means a question becomes a denial
	Tools         CallPrechecker      // validates inputs that a prompter has changed; nil means no validation
	Clock         simulator.ClockWithIDs
	ReportChanges bool                  // sets [protocol.ToolUse.UserModified] in calls whose input the prompter has changed
	Files         PermissionUpdateSaver // stores permission updates permanently; nil means they last until the end of the session
}

// PermissionUpdateSaver saves permission updates in the settings files of a session.
type PermissionUpdateSaver interface {
	Save(updates []protocol.PermissionUpdate)
}

// CallPrechecker validates calls that are about to run.
type CallPrechecker interface {
	Precheck(ctx context.Context, call protocol.ToolUse) simulator.PrecheckResult
}

// Permission returns the middleware that allows a call, denies it, or asks.
func Permission(o PermissionOptions) executor.Middleware {
	p, ask, now := o.Policy, o.Ask, o.Clock.Now
	o.Tools = cmp.Or[CallPrechecker](o.Tools, simulator.NonInspectingExecutor(nil))
	var warned sync.Once
	denial := func(v permission.Verdict) executor.Result {
		r := Denial(v)
		if r.Denied != nil && r.Denied.DecisionReasonCode == missingClassifierDenialReasonCode {
			warned.Do(func() { r.EventsBefore = append(r.EventsBefore, classifierMissingEvent(now)) })
		}
		return r
	}
	return executor.NewMiddleware(func(ctx context.Context, use protocol.ToolUse, next executor.Executor) (executor.Result, error) {
		v := combineHookAndPolicyVerdicts(use, p.Decide(use))
		switch {
		case v.Behavior == permission.Allow:
			return runCallAndRecordDecision(ctx, use, next, v.Decision, now)
		case use.Agent != nil && use.Agent.NoPrompts:
			r := denial(v)
			r.Denied = nil
			return r, nil
		case v.Behavior == permission.Deny || ask == nil:
			return denial(v), nil
		}
		answer, err := ask.Ask(protocol.WithRequestSentCallback(ctx, func() { simulator.LetMessageStreamContinue(ctx) }), permissionRequest(p, use, v))
		switch {
		case err != nil && ctx.Err() == nil:
			r := executor.ResultOf(toolCallErrorResult(use, err.Error()))
			r.Stop = &executor.StopTurn{Err: err} // ends the run (observed with 2.1.329)
			return r, nil
		case err != nil:
			return executor.Result{}, &simulator.InterruptedPermissionError{Call: use.ID, Err: err}
		}
		switch {
		case answer.Undecided:
			return prependEventsToResult(answer.Before, denial(v)), nil
		case !answer.Allow:
			return prependEventsToResult(answer.Before, resultOfCallDeniedByAnswer(use, answer, v.Decision)), nil
		}
		if answer.UpdatedInput != nil {
			changed := withInputKeepingWrittenPath(use, o.Policy.RemoveUnknownBuiltinInputKeys(use.Name, answer.UpdatedInput))
			changed.UserModified = o.ReportChanges && answer.Source != hookDecisionSource && !equalExceptFilePath(use.Input, changed.Input)
			use = changed
			check := o.Tools.Precheck(ctx, use)
			if check.Refusal != nil {
				return resultOfInvalidInputFromPrompter(use, *check.Refusal, answer.Before), nil
			}
			if answer.Source == hookDecisionSource && use.ObservedInput == nil && check.ObservedInput != nil {
				use.Input = check.ObservedInput // the path of another file becomes absolute (observed with 2.1.330)
			}
		}
		before := answer.Before
		if ev := applyAndSavePermissionUpdates(o, answer.UpdatedPermissions); ev != nil && !simulator.ShowRunningCallEventAndWait(ctx, ev) {
			before = append(before, ev)
		}
		result, err := runCallAndRecordDecision(ctx, use, next, decisionOfPermittedCall(v.Decision, answer), now)
		result.Feedback = answer.Feedback
		return prependEventsToResult(before, result), err
	})
}

func prependEventsToResult(events []protocol.Event, r executor.Result) executor.Result {
	r.EventsBefore = append(events, r.EventsBefore...)
	return r
}

// FirstVisibleEffect returns the first visible effect of a call: hooks start, the call is denied, or the prompter is
// asked. Denials by a hook or a classifier do not count. prompter is nil if there is none.
func FirstVisibleEffect(policy *permission.Policy, hooks *hook.Runner, prompter permission.Prompter, call protocol.ToolUse) simulator.CallStartOrRefusal {
	if hooks.Matches("PreToolUse", permission.CanonicalToolName(call.Name)) {
		return simulator.CallStartOrRefusal{Point: simulator.StreamPointBeforeBlockStop, Starts: true}
	}
	v, mode := policy.Decide(call), policy.ModeOf(call.Agent)
	switch {
	case v.Behavior == permission.Allow:
		return simulator.CallStartOrRefusal{}
	case v.DenyRule:
		return simulator.CallStartOrRefusal{Point: simulator.StreamPointOneEventAfterBlockStop}
	case mode == protocol.ModePlan || mode == protocol.ModeAuto, prompter == nil && hooks.Matches("PermissionRequest", permission.CanonicalToolName(call.Name)):
		return simulator.CallStartOrRefusal{}
	}
	return simulator.CallStartOrRefusal{Point: simulator.StreamPointOneEventAfterBlockStop, Starts: v.Behavior != permission.Deny && prompter != nil}
}

// IsInputSchemaError reports whether a call was refused because its input does not match the tool's schema.
func IsInputSchemaError(refusal executor.Result) bool {
	_, schema := inputIssueFromErrorResult(refusal)
	return schema
}

// Denial returns the result of a call that a verdict denies.
func Denial(v permission.Verdict) executor.Result {
	r, event := v.Denial()
	return executor.Result{ToolResult: r, MiddlewareReport: executor.MiddlewareReport{Denied: event, CountDenial: v.CountDenial}}
}

func toolCallErrorResult(use protocol.ToolUse, reason string) protocol.ToolResult {
	return protocol.UsageErrorResult("Error calling tool (" + use.Name + "): " + reason)
}

// permissionRequest returns the permission request for a prompter. It shows the name of an MCP tool in readable form,
// not its title (observed with 2.1.329).
func permissionRequest(p *permission.Policy, use protocol.ToolUse, v permission.Verdict) protocol.PermissionRequest {
	r := p.BuildPermissionRequest(use, v)
	if r.Server != nil {
		r.DisplayName = executor.DisplayName(protocol.Tool{RawName: r.DisplayName})
	}
	return r
}

// withInputKeepingWrittenPath returns the call with an input that a hook or a host has set. Hooks and hosts receive the absolute path of
// a file. If they return it unchanged, the call keeps the path that the model wrote (observed with 2.1.329).
func withInputKeepingWrittenPath(use protocol.ToolUse, input json.RawMessage) protocol.ToolUse {
	const key = "file_path"
	written, seen, given := plainjson.DecodeIgnoringErrors[plainjson.Object](use.Input).Get(key), plainjson.DecodeIgnoringErrors[plainjson.Object](use.ObservedInput).Get(key), plainjson.DecodeIgnoringErrors[plainjson.Object](input)
	use.Input, use.ObservedInput = input, nil
	other, field := written, &use.Input // *field is set to the input with other as its path
	switch path := given.Get(key); {
	case len(seen) == 0 || len(path) == 0:
		return use
	case bytes.Equal(path, seen):
		use.ObservedInput = input
	case bytes.Equal(path, written):
		other, field = seen, &use.ObservedInput
	default:
		return use
	}
	if encoded, err := plainjson.Marshal(given.Set(key, other)); err == nil {
		*field = encoded
	}
	return use
}

func equalExceptFilePath(a, b json.RawMessage) bool {
	before, after := plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](a), plainjson.DecodeIgnoringErrors[map[string]json.RawMessage](b)
	delete(before, "file_path")
	delete(after, "file_path")
	return maps.EqualFunc(before, after, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) })
}

// missingClassifierDenialReasonCode is the reason code of a denial in auto or plan mode. The real CLI would ask a classifier
// about the call, but claudeless has none. The first denial with this code in a session also emits a warning.
const missingClassifierDenialReasonCode = "auto_mode_no_check_in_session"

func classifierMissingEvent(now func() time.Time) protocol.Event {
	return &protocol.SystemEvent{Subtype: "informational", StreamOnly: true, Fields: []protocol.Field{
		{Key: "content", Value: "Auto mode can't check actions in this session. There is no classifier here, so every call that needs its check is refused."},
		{Key: "isMeta", Value: false},
		{Key: "timestamp", Value: now().UTC().Format("2006-01-02T15:04:05.000Z")},
		{Key: "level", Value: "warning"},
		{Key: "tag", Value: "auto_mode_no_server_check"},
	}}
}

// combineHookAndPolicyVerdicts combines a PreToolUse hook's verdict with policyVerdict. "allow" permits a call that the
// policy would ask about or that the mode denies. It does not overrule deny and ask rules, or the refusal to write
// through a link. "ask" turns a permission into a question (spec: cli-contract 6.1).
func combineHookAndPolicyVerdicts(use protocol.ToolUse, policyVerdict permission.Verdict) permission.Verdict {
	h := use.Hook
	switch {
	case h == nil:
	case policyVerdict.DenyRule:
		if h.Decision == "allow" { // no event reports the refusal if the hook allowed the call (observed with 2.1.330)
			policyVerdict.Event = nil
		}
	case h.Decision == "allow" && !policyVerdict.AskRule:
		policyVerdict.Behavior = permission.Allow
		policyVerdict.Decision = protocol.PermissionDecision{Decision: "accept", Source: "hook", ReasonType: "hook"}
	case h.Decision == "ask" && policyVerdict.Behavior != permission.Deny && !policyVerdict.AskRule && !policyVerdict.RequiresUser:
		policyVerdict.Behavior, policyVerdict.Suggestions, policyVerdict.BlockedPath = permission.Ask, nil, ""
		message := cmp.Or(h.Reason, "Hook PreToolUse:"+use.Name+" asked for confirmation for this tool")
		policyVerdict.Reason, policyVerdict.ReasonType = h.Reason, "hook"
		policyVerdict.Message, policyVerdict.CountDenial, policyVerdict.NonExecutionKind = message, true, "user-rejected"
		policyVerdict.Decision = protocol.PermissionDecision{Decision: "reject", Source: "config", ReasonCode: preToolUseHookAskReasonCode}
		policyVerdict.Event = &protocol.PermissionDeniedEvent{ToolName: use.Name, ToolUseID: use.ID, DecisionReasonType: "hook", DecisionReason: h.Reason, Message: message}
	}
	return policyVerdict
}

// runCallAndRecordDecision runs the call and records its duration. It also records the decision d, unless d is zero or an inner
// layer has already recorded a decision.
func runCallAndRecordDecision(
	ctx context.Context, use protocol.ToolUse, next executor.Executor, d protocol.PermissionDecision, now func() time.Time,
) (executor.Result, error) {
	began := now()
	result, err := next.Execute(ctx, use)
	result.Duration = now().Sub(began)
	if result.ExecutedInput == nil {
		result.ExecutedInput = use.Input
	}
	if d != (protocol.PermissionDecision{}) && result.Decision == nil {
		result.Decision = &d
	}
	return result, err
}

// decisionOfPermittedCall returns the decision to record for a call that answer permits. policyDecision led to the question. Its reason
// code stays in the result, unless a PreToolUse hook asked and no hook answered.
func decisionOfPermittedCall(policyDecision protocol.PermissionDecision, answer protocol.PermissionAnswer) protocol.PermissionDecision {
	policyDecision.Decision, policyDecision.Source, policyDecision.ReasonType = "accept", cmp.Or(answer.Source, "user_temporary"), ""
	if answer.Source == hookDecisionSource {
		policyDecision.ReasonType = hookDecisionSource
		return policyDecision
	}
	if policyDecision.ReasonCode == preToolUseHookAskReasonCode {
		policyDecision.ReasonCode = ""
	}
	policyDecision.GrantScope = permissionGrantLifetime(answer.UpdatedPermissions)
	return policyDecision
}

// permissionGrantLifetime returns how long a permission from a host is valid: "once", "session", or "" if it is saved in a file.
func permissionGrantLifetime(updates []protocol.PermissionUpdate) (onceOrSession string) {
	scope := "once"
	for _, u := range updates {
		switch {
		case u.Type != "setMode" && u.Type != "addDirectories" && u.Behavior != permission.BehaviorAllow:
		case u.Destination == "session":
			scope = "session"
		default:
			return ""
		}
	}
	return scope
}

// resultOfCallDeniedByAnswer returns the result of a call that a person or a hook denied (spec: cli-contract 6.3).
func resultOfCallDeniedByAnswer(use protocol.ToolUse, answer protocol.PermissionAnswer, policyDecision protocol.PermissionDecision) executor.Result {
	var r executor.Result
	message := answer.Message
	if answer.Source == hookDecisionSource {
		message = cmp.Or(message, "Permission denied by hook")
	}
	switch {
	case answer.CallFailed:
		return executor.ResultOf(toolCallErrorResult(use, answer.AskFailure))
	case answer.AskFailure != "":
		r = failedResult(answer.AskFailure)
	case answer.Interrupt:
		r = executor.ResultOf(executor.InterruptedResult())
		r.Stop = &executor.StopTurn{TerminalReason: "aborted_tools", Interrupted: true}
		r.DeniedBeforeRun = true
	case answer.Feedback != "":
		r = failedResult(executor.RejectedTextPrefix + "To tell you how to proceed, the user said:\n" + answer.Feedback)
		r.NonExecutionKind, r.Feedback = executor.InterruptedResult().NonExecutionKind, answer.Feedback
	default:
		r = failedResult(message)
	}
	r.NonExecutionKind = cmp.Or(r.NonExecutionKind, "permission-rule")
	switch {
	case answer.AskFailure != "":
		r.Decision = &protocol.PermissionDecision{Decision: "reject", Source: "config", ReasonType: "other", ReasonCode: "unknown"}
	case answer.Interrupt:
	case answer.Source == hookDecisionSource:
		r.Decision = &protocol.PermissionDecision{Decision: "reject", Source: hookDecisionSource, ReasonType: hookDecisionSource, ReasonCode: "hook:PermissionRequest"}
	default:
		policyDecision.Decision, policyDecision.Source, policyDecision.ReasonType = "reject", cmp.Or(answer.Source, "user_reject"), ""
		if policyDecision.ReasonCode == preToolUseHookAskReasonCode {
			policyDecision.ReasonCode = "permissionPromptTool"
		}
		r.Decision = &policyDecision
	}
	if answer.Source == hookDecisionSource && !answer.HasPrompter {
		r.Denied = &protocol.PermissionDeniedEvent{ToolName: use.Name, ToolUseID: use.ID, DecisionReasonType: hookDecisionSource, DecisionReason: answer.Message, Message: message}
	}
	r.CountDenial = true
	return r
}

func failedResult(text string) executor.Result { return executor.ResultOf(protocol.ErrorResult(text)) }

func resultOfInvalidInputFromPrompter(use protocol.ToolUse, inputError executor.Result, eventsBefore []protocol.Event) executor.Result {
	issue, _ := inputIssueFromErrorResult(inputError)
	r := executor.ResultOf(protocol.UsageErrorResult("The permission handler returned updatedInput for " + use.Name + " that failed schema validation: " + issue +
		"\nThis is a configuration issue in your canUseTool callback, PermissionRequest hook, or permission-prompt tool — " +
		"updatedInput must satisfy the tool's input schema. The tool input from the model was valid."))
	r.Output = "InputValidationError: permission handler updatedInput failed schema for " + use.Name
	r.Decision = &protocol.PermissionDecision{Decision: "reject", Source: "permission_updated_input_invalid"}
	r.EventsBefore = eventsBefore
	return r
}

// inputIssueFromErrorResult returns the problem of an input, and whether the input violates the tool's schema.
func inputIssueFromErrorResult(errorResult executor.Result) (issue string, violatesSchema bool) {
	issue = strings.TrimSuffix(strings.TrimPrefix(errorResult.Content.Plain(), "<tool_use_error>"), "</tool_use_error>")
	return strings.CutPrefix(issue, "InputValidationError: ")
}

const preToolUseHookAskReasonCode = "hook:PreToolUse"

const hookDecisionSource = "hook"

// applyAndSavePermissionUpdates changes rules and saves updates in o.Files, if set. It returns the event for a new mode, otherwise nil.
func applyAndSavePermissionUpdates(o PermissionOptions, updates []protocol.PermissionUpdate) (modeChange protocol.Event) {
	if len(updates) == 0 {
		return nil
	}
	before := o.Policy.Mode()
	o.Policy.Apply(updates)
	if o.Files != nil {
		o.Files.Save(updates)
	}
	if o.Policy.Mode() == before {
		return nil
	}
	return protocol.ModeChangedEvent(o.Policy.Mode())
}

package layer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
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

// HookOptions configures [Hooks]. Runner is required. A nil Location or Tools provides no information to hooks.
type HookOptions struct {
	Runner   *hook.Runner
	State    *simulator.SessionState // nil means no session state is passed to hooks
	Location simulator.DirectoryAndMode
	Tools    ToolsForHooks
	Frames   bool // emit hook_started and hook_response (--include-hook-events)
}

// ToolsForHooks provides information about tools for their hooks.
type ToolsForHooks interface {
	// Server returns the MCP server of a tool; nil means none.
	Server(tool string) *protocol.ServerNameAndSource
	// ContentOfHookOutput converts the output that a hook sets for a built-in tool into the content of the tool's result. ok is false
	// if the tool is unknown or the output does not have the tool's structure. The caller then keeps the result unchanged.
	ContentOfHookOutput(tool string, output json.RawMessage) (protocol.Content, bool)
	// CompleteAndCheckHookInput returns a call with the input that a hook has set. It removes keys that the tool does not
	// have. If the tool refuses the input, CompleteAndCheckHookInput also returns the error result, otherwise nil.
	CompleteAndCheckHookInput(ctx context.Context, call protocol.ToolUse) (protocol.ToolUse, *executor.Result)
	// TakeFileChangedSinceCall returns the path of the file that a call wrote, if the file has changed since the call; otherwise "".
	// It remembers the new content, so that a change is reported only once.
	TakeFileChangedSinceCall(call protocol.ToolUse) string
}

type defaultHookToolInfo struct{}

func (defaultHookToolInfo) Server(string) *protocol.ServerNameAndSource { return nil }

func (defaultHookToolInfo) ContentOfHookOutput(string, json.RawMessage) (noContent protocol.Content, isRewritten bool) {
	return protocol.Content{}, false
}

func (defaultHookToolInfo) CompleteAndCheckHookInput(_ context.Context, call protocol.ToolUse) (unchangedCall protocol.ToolUse, noRefusal *executor.Result) {
	return call, nil
}

func (defaultHookToolInfo) TakeFileChangedSinceCall(protocol.ToolUse) (path string) { return "" }

type defaultLocation struct{}

func (defaultLocation) Dir() string                   { return "" }
func (defaultLocation) Mode() protocol.PermissionMode { return protocol.ModeDefault }

// Hooks returns the middleware that runs the hooks around every tool call (spec: cli-contract 5.3 and 5.4).
func Hooks(o HookOptions) executor.Middleware {
	return executor.NewMiddleware(newHookMiddleware(o).runCallWithHooks)
}

type hookMiddleware struct{ options HookOptions }

func newHookMiddleware(o HookOptions) *hookMiddleware {
	o.State = cmp.Or(o.State, &simulator.SessionState{})
	o.Location = cmp.Or[simulator.DirectoryAndMode](o.Location, defaultLocation{})
	o.Tools = cmp.Or[ToolsForHooks](o.Tools, defaultHookToolInfo{})
	return &hookMiddleware{o}
}

func (h *hookMiddleware) baseInput() protocol.HookBase {
	now := h.options.State.SessionStateSnapshot()
	return protocol.HookBase{SessionID: now.SessionID, TranscriptPath: now.TranscriptPath, PromptID: now.PromptID, CWD: h.options.Location.Dir(), PermissionMode: h.options.Location.Mode(), Effort: now.HookEffort()}
}

func (h *hookMiddleware) runCallWithHooks(ctx context.Context, use protocol.ToolUse, next executor.Executor) (executor.Result, error) {
	before := h.runHooks(ctx, use, protocol.PreToolUseHookInput{ToolName: permission.CanonicalToolName(use.Name), ToolInput: use.InputForHooksAndHosts(), ToolUseID: use.ID, MCPServer: h.options.Tools.Server(use.Name), InputChanged: use.ObservedInput != nil})
	if h.options.Runner.Matches("PreToolUse", permission.CanonicalToolName(use.Name)) {
		simulator.LetMessageStreamContinue(ctx) // the stream continues even if the "if" rules of the hooks exclude the call
	}
	simulator.WaitForMessageStreamEnd(ctx)
	if err := ctx.Err(); err != nil {
		return executor.Result{}, err
	}
	shown, ends := splitOffTurnEndEvents(h.showHookEventsNowIfPossible(ctx, before))
	if before.Decision == "defer" && use.Siblings > 0 {
		before.Decision = "" // a call can be deferred to a later run only if its message has no other calls
		text := "PreToolUse:" + use.Name + " hook asked to defer, which works only for the single call of a message; it is ignored."
		shown = append(shown, &protocol.SystemEvent{Subtype: "informational", Fields: []protocol.Field{{Key: "content", Value: text}, {Key: "level", Value: "warning"}}})
	}
	answer := resultIfHookPreventsCall(use, before)
	if answer == nil && before.UpdatedInput != nil {
		use, answer = h.withHookInputOrRejection(ctx, use, before.UpdatedInput)
	}
	if answer != nil {
		answer.EventsBefore, answer.EventsAfter = append(shown, answer.EventsBefore...), append(ends, answer.EventsAfter...)
		answer.Context = before.AdditionalContext
		return *answer, nil
	}
	if before.Decision == "allow" || before.Decision == "ask" {
		use.Hook = &protocol.HookVerdict{Decision: before.Decision, Reason: before.Reason, Origin: before.Origin}
	}
	dir := h.options.Location.Dir()
	result, err := next.Execute(ctx, use)
	if err != nil {
		return result, err
	}
	result.EventsBefore = append(shown, result.EventsBefore...)
	if result.NonExecutionKind == "" { // if the call was refused, a hook cannot end the turn
		result.EventsAfter = append(ends, result.EventsAfter...)
	}
	result.Context = append(before.AdditionalContext, result.Context...)
	if result.NonExecutionKind == "" {
		h.runPostToolUseAndUpdateResult(ctx, use, &result)
	}
	if now := cmp.Or(result.ForbiddenDir, h.options.Location.Dir()); now != dir {
		h.runCwdChangedAndAddEvents(ctx, use, &result, protocol.CwdChangedHookInput{OldCWD: dir, NewCWD: now})
	}
	if before.UpdatedInput != nil && result.CountDenial && result.ExecutedInput == nil {
		result.ExecutedInput = use.InputForHooksAndHosts()
	}
	if before.StopTurn && result.Stop == nil && result.NonExecutionKind == "" {
		result.Stop = &executor.StopTurn{TerminalReason: "hook_stopped"}
	}
	return result, nil
}

// runPostToolUseAndUpdateResult runs PostToolUse, or PostToolUseFailure if the tool failed.
func (h *hookMiddleware) runPostToolUseAndUpdateResult(ctx context.Context, use protocol.ToolUse, result *executor.Result) {
	if result.ExecutedInput != nil && !bytes.Equal(result.ExecutedInput, use.Input) {
		use = withInputKeepingWrittenPath(use, result.ExecutedInput)
	}
	var in protocol.HookInput
	took := int(result.Duration / time.Millisecond)
	if result.IsError {
		in = protocol.PostToolUseFailureHookInput{
			ToolName: permission.CanonicalToolName(use.Name), ToolInput: use.InputForHooksAndHosts(), ToolUseID: use.ID, Error: result.Content.Plain(), DurationMS: &took,
			MCPServer: h.options.Tools.Server(use.Name),
		}
	} else {
		response := result.Output
		switch {
		case result.MCP != nil:
			response = result.MCP.Content
		case response == nil:
			response = result.Content
		}
		in = protocol.PostToolUseHookInput{ToolName: permission.CanonicalToolName(use.Name), ToolInput: use.InputForHooksAndHosts(), ToolUseID: use.ID, ToolResponse: response, DurationMS: &took, MCPServer: h.options.Tools.Server(use.Name)}
	}
	result.Screened = slices.Contains([]string{"Edit", "Write"}, use.Name) && slices.ContainsFunc([]string{"Bash", "Grep", "Read"}, func(tool string) bool { return h.options.Runner.Matches("PostToolUse", tool) })
	out := h.runHooks(ctx, use, in)
	h.replaceResultByHookOutput(use, result, out)
	result.Context = append(result.Context, out.AdditionalContext...)
	result.EventsBefore = append(result.EventsBefore, h.showHookFramesNowIfPossible(ctx, out.Frames)...)
	result.EventsAfter = append(append(result.EventsAfter, out.AttachmentEvents()...), out.Notices...)
	if event, _ := protocol.HookEvent(in); !result.IsError && h.options.Runner.Has(event) {
		if file := h.options.Tools.TakeFileChangedSinceCall(use); file != "" {
			text, ev := hook.HookModifiedFileContext(event+":"+permission.CanonicalToolName(use.Name), use.ID, file)
			result.EventsAfter, result.Context = append(result.EventsAfter, ev), append(result.Context, text)
		}
	}
	if out.StopTurn && !result.IsError && result.Stop == nil {
		result.Stop = &executor.StopTurn{TerminalReason: "hook_stopped"}
	}
}

// replaceResultByHookOutput replaces a tool's result with the output that a hook has set. The output for an MCP
// tool may be any value; for a built-in tool, it is ignored unless it has the structure of the tool's output.
func (h *hookMiddleware) replaceResultByHookOutput(use protocol.ToolUse, result *executor.Result, hookOutcome hook.Outcome) {
	output, ours := hookOutcome.UpdatedOutput, h.options.Tools.Server(use.Name) == nil
	if !ours && hookOutcome.Specific.UpdatedMCPToolOutput != nil {
		output = hookOutcome.Specific.UpdatedMCPToolOutput
	}
	if output == nil {
		return
	}
	content, ok := contentFromHookOutput(output), true
	if ours {
		content, ok = h.options.Tools.ContentOfHookOutput(use.Name, output)
	}
	if !ok {
		return
	}
	result.Content, result.Output = content, output
	if result.MCP != nil {
		updated := *result.MCP
		updated.Content = output
		result.MCP, result.Output = &updated, struct {
			Content any `json:"content"`
			protocol.MCPResult
		}{output, updated}
	}
}

func (h *hookMiddleware) runCwdChangedAndAddEvents(ctx context.Context, use protocol.ToolUse, result *executor.Result, in protocol.CwdChangedHookInput) {
	if event, _ := protocol.HookEvent(in); !h.options.Runner.Has(event) {
		return
	}
	base := h.baseInput()
	base.PermissionMode, base.Effort = "", nil
	out := h.options.Runner.Run(ctx, hook.EventInput{Base: base, Event: in, ToolUseID: use.ID})
	if h.options.Frames {
		result.EventsBefore = append(result.EventsBefore, out.Frames...)
	}
	result.EventsAfter = append(result.EventsAfter, out.Notices...)
}

func (h *hookMiddleware) runHooks(ctx context.Context, use protocol.ToolUse, in protocol.HookInput) hook.Outcome {
	if event, _ := protocol.HookEvent(in); !h.options.Runner.Has(event) {
		return hook.Outcome{}
	}
	base := h.baseInput()
	if use.Agent != nil {
		base.AgentID, base.AgentType = use.Agent.ID, use.Agent.Type
		base.CWD, base.PermissionMode = cmp.Or(use.Agent.Dir, base.CWD), cmp.Or(protocol.PermissionMode(use.Agent.Mode), base.PermissionMode)
		if base.Effort != nil && use.Agent.Effort != "" {
			base.Effort = &protocol.HookEffort{Level: use.Agent.Effort}
		}
	}
	if simulator.CanShowRunningCallEvents(ctx) {
		ctx = hook.WithHookStartedCallback(ctx, func(events []protocol.Event) {
			h.showHookFramesNowIfPossible(ctx, events)
			simulator.LetMessageStreamContinue(ctx)
		})
	}
	return h.options.Runner.Run(ctx, hook.EventInput{Base: base, Event: in, ToolUseID: use.ID})
}

// showHookEventsNowIfPossible shows hook frames, and notices that the transcript does not contain, immediately if possible.
// It returns all other events; the caller shows them with the result of the call.
func (h *hookMiddleware) showHookEventsNowIfPossible(ctx context.Context, out hook.Outcome) []protocol.Event {
	later := append(h.showHookFramesNowIfPossible(ctx, out.Frames), out.AttachmentEvents()...)
	for _, notice := range out.Notices {
		isRecorded := slices.ContainsFunc(out.Attachments, func(a protocol.HookAttachment) bool { return a.Notice == notice })
		if isRecorded || !simulator.ShowRunningCallEventAndWait(ctx, notice) {
			later = append(later, notice)
		}
	}
	return later
}

// showHookFramesNowIfPossible shows hook events immediately, and returns those that can be shown only with the result.
func (h *hookMiddleware) showHookFramesNowIfPossible(ctx context.Context, frames []protocol.Event) (framesToShowWithResult []protocol.Event) {
	var later []protocol.Event
	for _, frame := range frames {
		ev, _ := frame.(*protocol.SystemEvent) // a warning is always shown
		if (h.options.Frames || ev != nil && ev.Subtype == "informational") && !simulator.ShowRunningCallEventAndWait(ctx, frame) {
			later = append(later, frame)
		}
	}
	return later
}

// splitOffTurnEndEvents separates the events by which a hook ends the turn. In transcripts, they follow the call's result.
func splitOffTurnEndEvents(shown []protocol.Event) (others, ends []protocol.Event) {
	for _, ev := range shown {
		if at, is := ev.(*protocol.AttachmentAdded); is {
			if kept, is := at.Attachment.(protocol.HookAttachment); is && kept.Type == "hook_stopped_continuation" {
				ends = append(ends, ev)
				continue
			}
		}
		others = append(others, ev)
	}
	return others, ends
}

// resultIfHookPreventsCall returns the result of a call that a PreToolUse hook stops; nil means that the call continues.
func resultIfHookPreventsCall(use protocol.ToolUse, out hook.Outcome) *executor.Result {
	switch {
	case out.HostGone:
		return new(executor.ResultOf(executor.NotStartedResult()))
	case out.NotExecuted != "":
		return new(failedResult(out.NotExecuted))
	case out.Block || out.Decision == "deny":
		r := preToolUseRejectionResult(strings.Join(out.Texts, "\n"))
		if out.StopTurn {
			r.Stop = &executor.StopTurn{TerminalReason: "hook_stopped"}
		}
		return &r
	case out.Decision == "defer":
		return &executor.Result{MiddlewareReport: executor.MiddlewareReport{Stop: &executor.StopTurn{TerminalReason: "tool_deferred", StopReason: "tool_deferred", Deferred: new(use)}}}
	}
	return nil
}

// withHookInputOrRejection sets the input from a hook, or returns the error result if the tool does not accept the input.
func (h *hookMiddleware) withHookInputOrRejection(ctx context.Context, use protocol.ToolUse, input json.RawMessage) (protocol.ToolUse, *executor.Result) {
	use, bad := h.options.Tools.CompleteAndCheckHookInput(ctx, withInputKeepingWrittenPath(use, input))
	if bad == nil {
		return use, nil
	}
	issue, schema := inputIssueFromErrorResult(*bad)
	how := "the tool refused"
	if schema {
		how = "failed schema validation"
	}
	return use, new(preToolUseRejectionResult("PreToolUse hook for " + use.Name + " returned updatedInput that " + how + ": " + issue +
		"\nThe tool input from the model was valid; the hook's rewrite of it was not."))
}

func preToolUseRejectionResult(hookText string) executor.Result {
	r := failedResult(hookText)
	r.NonExecutionKind = "permission-rule"
	r.Decision = &protocol.PermissionDecision{Decision: "reject", Source: hookDecisionSource, ReasonType: hookDecisionSource}
	r.CountDenial = true
	return r
}

// contentFromHookOutput converts a hook's output. A string or blocks stay unchanged; anything else becomes JSON text.
func contentFromHookOutput(hookOutput json.RawMessage) protocol.Content {
	var text string
	if json.Unmarshal(hookOutput, &text) == nil {
		return protocol.Content{Text: text}
	}
	var content protocol.Content
	if strings.HasPrefix(strings.TrimSpace(string(hookOutput)), "[") && content.UnmarshalJSON(hookOutput) == nil {
		return content
	}
	return protocol.Content{Text: string(plainjson.Compact(hookOutput))}
}

// NewPrompterRacingHooks combines PermissionRequest hooks with a prompter: both are asked at the same time, and the first decision
// is used (spec: cli-contract 5.4). If the hooks decide, the question to the prompter is cancelled. If the prompter decides, the hooks
// run to their end. If prompter is nil, only the hooks are asked; if they return no decision, the answer is zero with Undecided set.
func NewPrompterRacingHooks(o HookOptions, prompter permission.Prompter) permission.Prompter {
	return &racingPrompter{hooks: newHookMiddleware(o), prompter: prompter}
}

type racingPrompter struct {
	hooks    *hookMiddleware
	prompter permission.Prompter
}

func (a *racingPrompter) Ask(ctx context.Context, r protocol.PermissionRequest) (protocol.PermissionAnswer, error) {
	if askedByHook := r.Use.Hook != nil && r.Use.Hook.Decision == "ask"; !a.hooks.options.Runner.Has("PermissionRequest") || a.prompter == nil && askedByHook {
		if a.prompter == nil {
			return protocol.PermissionAnswer{Undecided: true}, nil
		}
		return a.prompter.Ask(ctx, r)
	}
	byHook := make(chan hook.Outcome, 1)
	hookCtx, stopHooks := context.WithCancel(context.WithoutCancel(ctx))
	prompterAsked := make(chan struct{})
	notePrompterAsked := sync.OnceFunc(func() { close(prompterAsked) })
	go func() { // returns when the hooks have finished; an interrupt stops them, the end of the call does not
		defer stopHooks()
		if a.prompter != nil {
			<-prompterAsked // the host gets the question before its hooks
		}
		byHook <- a.hooks.runHooks(hookCtx, r.Use, protocol.PermissionRequestHookInput{ToolName: permission.CanonicalToolName(r.Use.Name), ToolInput: r.Use.Input, Suggestions: suggestionsShownToPermissionHooks(r.Suggestions, a.prompter), MCPServer: r.Server})
	}()
	if a.prompter == nil {
		defer context.AfterFunc(ctx, stopHooks)()
		return a.answerAndShowHookEvents(ctx, <-byHook), nil
	}
	type verdict struct {
		answer protocol.PermissionAnswer
		err    error
	}
	askCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	byHost := make(chan verdict, 1)
	go func() { // returns when the prompter does; ctx stops it
		defer notePrompterAsked()
		answer, err := a.prompter.Ask(protocol.WithRequestSentCallback(askCtx, func() { protocol.NoteRequestSent(ctx); notePrompterAsked() }), r)
		byHost <- verdict{answer, err}
	}()
	select {
	case out := <-byHook:
		if out.Permission != nil {
			cancel()
			<-byHost // the host gets the notification before the tool runs
			answer := a.answerAndShowHookEvents(ctx, out)
			answer.Message, answer.HasPrompter = cmp.Or(answer.Message, "Permission denied by PermissionRequest hook"), true
			return answer, nil
		}
		v := <-byHost
		v.answer.Before = a.hooks.showHookEventsNowIfPossible(ctx, out)
		return v.answer, v.err
	case v := <-byHost:
		if v.err != nil {
			stopHooks()
		}
		return v.answer, v.err
	}
}

func (a *racingPrompter) answerAndShowHookEvents(ctx context.Context, hookOutcome hook.Outcome) protocol.PermissionAnswer {
	answer := protocol.PermissionAnswer{Undecided: true}
	if hookOutcome.Permission != nil {
		answer = *hookOutcome.Permission
		answer.Source = cmp.Or(answer.Source, "hook")
	}
	answer.Before = a.hooks.showHookEventsNowIfPossible(ctx, hookOutcome)
	return answer
}

// suggestionsShownToPermissionHooks returns the suggestions that PermissionRequest hooks receive. If a Bash call has several suggestions
// and no user can be asked (prompter is nil), hooks do not receive the first suggestion, which is a rule that allows the command.
func suggestionsShownToPermissionHooks(allSuggestions []protocol.PermissionUpdate, prompter permission.Prompter) []protocol.PermissionUpdate {
	if prompter == nil && len(allSuggestions) > 1 && allSuggestions[0].Type == "addRules" && allSuggestions[0].Rules[0].ToolName == "Bash" {
		return allSuggestions[1:]
	}
	return allSuggestions
}

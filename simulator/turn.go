package simulator

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
	"github.com/claudeless/claudeless/simulator/task"
)

// RunTurn runs one prompt and yields its events in order, ending with exactly one result. If a SessionOrigin hook set an
// initial message, that message's events and result come first. Cancelling ctx interrupts the turn as in the real CLI:
// it still ends with a result (spec: cli-contract 4.4). Breaking out of the loop abandons the turn. Only the last pair
// can have an error: a [*CrashError] of the scenario, or an internal failure. Turns of a simulator must not overlap.
func (s *Simulator) RunTurn(ctx context.Context, in protocol.UserMessage) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		for prompt := &in; prompt != nil; {
			st := newTurnContext(s, *prompt, yield)
			round := &toolCallRunner{turnContext: st}
			x := &modelClient{turnContext: st, round: round}
			t := &turn{turnContext: st, exchange: x, round: round, continuation: &turnContinuationDecider{turnContext: st, exchange: x}, commands: &localCommandRunner{turnContext: st}}
			err := t.run(ctx)
			s.history.turnCount++
			if err != nil {
				t.out.yieldErrorToConsumer(err)
				return
			}
			if prompt = t.postponedPrompt; t.out.consumerStopped {
				return
			}
		}
	}
}

type turn struct {
	*turnContext
	exchange        *modelClient
	round           *toolCallRunner
	continuation    *turnContinuationDecider
	commands        *localCommandRunner
	postponedPrompt *protocol.UserMessage // the prompt to run after the initial message
}

// run runs the turn and emits its result. After an interrupt, it still emits the result.
func (t *turn) run(ctx context.Context) error {
	err := t.emitTurnEventsExceptResult(ctx)
	t.round.cancelAndAwaitStartedCalls()
	t.prompts.replayPromptIfPending() // does nothing if the model was asked, because the prompt was replayed then
	if executor.IsProcessEnding(ctx) {
		return context.Cause(ctx)
	}
	end, isEnd := errors.AsType[*turnEndError](err)
	if !isEnd && ctx.Err() != nil && !t.out.consumerStopped {
		end, isEnd = t.emitInterruptEventsAndReturnTurnEnd(context.Cause(ctx)), true
	}
	if !isEnd || t.out.consumerStopped {
		return err
	}
	if end.crashReason != "" {
		t.out.emitAsIs(t.hookCrashResult(end.crashReason))
		return &CrashError{ExitCode: 1}
	}
	if failure, hooks := end.apiFailure, t.sim.options.Hooks; ctx.Err() == nil && failure != nil && hooks != nil {
		hooks.Run(ctx, hook.EventInput{Base: t.hooks.hookBase(failure.hookInput), Event: failure.hookInput})
	}
	if ctx.Err() == nil {
		t.background.waitForAgentsBeforeResult(ctx)
	}
	t.emitResult(end)
	t.sim.options.State.SetTurnModel("")
	return nil
}

// emitTurnEventsExceptResult emits the turn's events except its result. It always returns an error: at a normal end, a [turnEndError].
func (t *turn) emitTurnEventsExceptResult(ctx context.Context) (turnEnd error) {
	in := t.prompts.prompt
	if in.Source == promptSourceDeferred {
		return t.runDeferredCallAndRequestReply(ctx)
	}
	t.prompts.recordedContent = in.Content
	if isNonEmptyWhiteSpace(in.Content) {
		return t.commands.endTurnWithBlankPromptWarning(ctx)
	}
	var command *slash.Expansion
	call, isCall := t.commands.parsePrompt()
	if isCall {
		said, expansion := t.commands.runSessionCommand(ctx, call)
		if said != nil {
			end := t.commands.endTurnWithCommandOutcome(ctx, call, *said, nil)
			if t.commands.stopFeedback == "" {
				return end
			}
			return t.requestUntilDone(ctx, scenarios.Request{Prompt: t.commands.stopFeedback, IsInjected: true, IsNotification: true})
		}
		if expansion == nil && IsConversationCommand(call.Name) {
			return t.commands.runConversationCommand(ctx, call)
		}
		command = expansion
	}
	defer t.commands.applyExpansionToolsAndEffort(command)()
	if command != nil {
		call.Name = cmp.Or(command.Name, call.Name)
		if command.Kind == "mcp_prompt" {
			call.Name = command.UsedTool // which differs from what the user typed
		}
		t.prompts.recordedContent = protocol.Content{Text: call.Tags()}
	} else if t.sim.main.Context != nil {
		t.prompts.noteUnknownCommandForModel(ctx, call.Name)
	}
	if err := t.runHooksAndEmitInitBeforeRequest(ctx, call, command); err != nil {
		return err
	}
	in = t.prompts.prompt
	if in.NoQuery {
		t.sim.history.unansweredTexts = append(t.sim.history.unansweredTexts, promptTextOrPlaceholder(in.Content))
		t.sim.history.pendingContext = append(t.sim.history.pendingContext, t.prompts.addedContext...)
		return turnEndWithoutModelRequest("")
	}
	req := scenarios.Request{Prompt: promptTextOrPlaceholder(in.Content), IsInjected: in.Source == promptSourceSystem, IsNotification: in.Source == promptSourceSystem}
	if in.Typed != "" {
		req.Prompt = in.Typed
		for _, block := range in.Content.Blocks {
			t.prompts.addedContext = append(t.prompts.addedContext, protocol.Content{Blocks: []protocol.Block{block}}.Plain())
		}
	}
	if command != nil {
		req = scenarios.Request{Prompt: promptTextOrPlaceholder(t.prompts.expandedContent(command))}
	}
	req.Prompt = strings.Join(append(t.sim.history.unansweredTexts, req.Prompt), "\n")
	t.sim.history.unansweredTexts = nil
	return t.requestUntilDone(ctx, req)
}

// runHooksAndEmitInitBeforeRequest runs the hooks of the session start and of the prompt, and emits the events before the first request.
// If a hook gave an initial prompt, it postpones the prompt of the turn. The error is a [turnEndError] if hooks refuse the prompt.
func (t *turn) runHooksAndEmitInitBeforeRequest(ctx context.Context, call slash.Call, commandExpansion *slash.Expansion) error {
	if err := t.hooks.emitQueuedPromptAndRunStartHooks(ctx); err != nil {
		return err
	}
	text := t.sim.history.initialPromptFromHook
	t.sim.history.initialPromptFromHook = ""
	if text != "" && commandExpansion == nil {
		t.postponedPrompt, t.prompts.createdByHook = new(t.prompts.prompt), true
		t.prompts.prompt = protocol.UserMessage{Content: protocol.Content{Text: text}}
		t.prompts.recordedContent = t.prompts.prompt.Content
	}
	sub, err := t.hooks.runPromptHooksAndEmitPrompt(ctx, call, commandExpansion)
	if err != nil {
		return err
	}
	t.prompts.emitInit(ctx)
	t.out.assignIDsAndEmitAll(sub.noticesAfterInit)
	if sub.refusalTurnEnd != nil {
		return sub.refusalTurnEnd
	}
	t.prompts.replayPending = true
	return nil
}

// runDeferredCallAndRequestReply runs the deferred call with its hooks, then asks the model. If the tool is missing, the turn
// ends and the hooks of the call do not run.
func (t *turn) runDeferredCallAndRequestReply(ctx context.Context) error {
	d := t.sim.main.Deferred
	t.prompts.prompt.UUIDs = nil // no host sent the prompt, so init and the result do not list it
	if err := t.hooks.runStartHooksIfNotStarted(ctx); err != nil {
		return err
	}
	tools, err := t.sim.options.Tools.Tools(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(tools, func(tool protocol.Tool) bool { return tool.Name == d.Use.Name })
	if at < 0 {
		const reason = "tool_deferred_unavailable"
		text := d.Use.Name + " isn't available, so its deferred call didn't run. Reconnect the tool and resume, or resume with a prompt and " +
			"CLAUDE_CODE_DROP_UNAVAILABLE_DEFERRED_TOOL=1 to drop the call and continue."
		return &turnEndError{subtype: "success", isError: true, terminalReason: reason, stopReason: reason, deferredCall: &d.Use, resultText: &text}
	}
	calls := []preparedCall{{toolUse: d.Use, tool: tools[at], assistantEventID: d.Message}}
	results, err := t.round.runCallsAndEmitResults(ctx, calls)
	if err != nil {
		return err
	}
	t.totals.rounds++
	if err := t.round.runBatchHooksAndAddContextFiles(ctx, calls, results); err != nil {
		return err
	}
	t.out.userEventCount = 0 // the call was already counted in the run that made it
	t.prompts.emitInit(ctx)
	return t.requestUntilDone(ctx, scenarios.Request{Results: results})
}

func (t *turn) requestUntilDone(ctx context.Context, req scenarios.Request) error {
	for {
		if err := t.totals.turnEndErrorIfBudgetSpent(false); err != nil {
			return err
		}
		calls, err := t.exchange.requestModelAndEmitReply(ctx, req)
		if err != nil {
			return err
		}
		if err := t.totals.turnEndErrorIfBudgetSpent(true); err != nil {
			return err
		}
		next, err := t.runCallsAndReturnNextRequest(ctx, calls)
		if err != nil {
			return err
		}
		if next == nil {
			return &turnEndError{subtype: "success", terminalReason: cmp.Or(t.continuation.terminalReason, "completed")}
		}
		req = *next
	}
}

// runCallsAndReturnNextRequest runs the calls of a reply. It returns the next request, or nil at the end of the turn.
func (t *turn) runCallsAndReturnNextRequest(ctx context.Context, calls []preparedCall) (nextRequest *scenarios.Request, turnEnd error) {
	if len(calls) == 0 {
		return t.continuation.continueTurnOrReturnNil(ctx)
	}
	results, err := t.round.runCallsAndEmitResults(ctx, calls)
	if err != nil {
		return nil, err
	}
	if end := t.structured.turnEndErrorIfDone(); end != nil {
		if t.structured.validOutput != nil {
			err = t.continuation.runHooksAfterStructuredOutput(ctx)
		}
		return nil, cmp.Or(err, end)
	}
	if err := t.round.runBatchHooksAndAddContextFiles(ctx, calls, results); err != nil {
		return nil, err
	}
	if err := t.totals.countRoundAndCheckLimit(); err != nil {
		return nil, err
	}
	t.background.addTaskNoticesToRunningTurn()
	if err := t.hooks.addPromptsQueuedDuringTurn(ctx); err != nil {
		return nil, err
	}
	t.hooks.addAsyncHookAnswers()
	if texts := t.prompts.permissionFeedback; texts != nil {
		t.prompts.permissionFeedback = nil
		return &scenarios.Request{Prompt: strings.Join(texts, "\n")}, nil
	}
	return &scenarios.Request{Results: results}, nil
}

// emitInterruptEventsAndReturnTurnEnd emits the events of an interrupt and returns the end of the turn (spec: cli-contract 4.4).
func (t *turn) emitInterruptEventsAndReturnTurnEnd(cause error) *turnEndError {
	open, superseded := t.exchange.currentMessage, errors.Is(cause, ErrSuperseded)
	if open != nil {
		open.emitAbortedTextAndCountUsage()
	}
	switch {
	case t.round.isRunning && superseded:
		return &turnEndError{subtype: "success", terminalReason: "aborted_tools", stopReason: "tool_use", resultText: new("")}
	case t.round.isRunning:
		return t.round.emitInterruptTextAndReturnTurnEnd()
	case errors.Is(cause, ErrWithdrawn) && t.totals.rounds == 0 && open == nil:
		t.out.emitAsIs(&protocol.TurnPromptWithdrawnByUser{})
	case !superseded:
		t.out.emitInjectedText("[Request interrupted by user]", false)
	}
	if open != nil {
		open.emitStreamEndAfterInterrupt()
	}
	stop := "null"
	if t.exchange.lastReply.stopReason != nil {
		stop = *t.exchange.lastReply.stopReason
	}
	return &turnEndError{subtype: "error_during_execution", terminalReason: "aborted_streaming", isError: true, errors: []string{"[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=" + stop}}
}

func (t *turn) emitResult(end *turnEndError) {
	if !end.excludeLastReply {
		t.totals.addLastReplyUsageToTurn()
	}
	s, stop := t.sim, t.exchange.lastReply.stopReason
	if end.stopReason != "" {
		stop = &end.stopReason
	}
	r := &protocol.ResultEvent{
		Type: "result", Subtype: end.subtype, IsError: end.isError, SessionID: s.options.State.SessionID(), UUID: s.options.Clock.NewID(), NumTurns: t.numTurns(end),
		StopReason: stop, TerminalReason: end.terminalReason, FastModeState: s.options.Display.FastModeState, FastModeDisabledReason: s.options.Display.FastModeDisabledReason,
		SubagentStats: new(t.sim.main.Tasks.Stats()), SafetyStops: new(s.history.safetyStops), QueuedTurnCount: new(int), ResultIndex: s.history.resultCount,
		Errors: end.errors, Origin: t.prompts.promptOriginJSON(), StructuredOutput: end.structuredOutput, LocalCommand: end.localCommand,
	}
	t.totals.fillResultAndAddTimesToSession(r, time.Duration(s.options.State.asked.Swap(0)))
	r.UserMessageUUID, r.UserMessageUUIDs = t.prompts.promptUUIDsFromHost()
	if s.main.Prompts != nil {
		*r.QueuedTurnCount = s.main.Prompts.CountWaitingUserPrompts()
	}
	if end.deferredCall != nil {
		r.DeferredToolUse = &protocol.DeferredToolUse{ID: end.deferredCall.ID, Name: end.deferredCall.Name, Input: end.deferredCall.Input}
	}
	if end.subtype == "success" {
		t.fillSuccessFields(r, end)
	}
	s.history.resultCount++
	t.prompts.emitAbsorbedPromptsEnded(r)
	t.out.emitAsIs(r)
}

func (t *turn) hookCrashResult(reason string) *protocol.ResultEvent {
	r := FailedResult(reason, "[session_crash] error_name=TelemetrySafeError api_error_status=none cause_name=none")
	r.SessionID, r.UUID, r.ResultIndex = t.sim.options.State.SessionID(), t.sim.options.Clock.NewID(), t.sim.history.resultCount
	r.ModelUsageSince = &map[string]protocol.ModelUsage{}
	return r
}

// numTurns returns the value of num_turns: one more than the number of user events or, at the turn limit, one more than
// the number of rounds. It is 0 if the model was not asked.
func (t *turn) numTurns(end *turnEndError) int {
	if end.withoutModelRequest {
		return 0
	}
	if end.subtype == maxTurnsSubtype {
		return 1 + t.totals.rounds
	}
	return 1 + t.out.userEventCount
}

// fillSuccessFields sets the fields that only the success subtype has, including those of API errors.
func (t *turn) fillSuccessFields(r *protocol.ResultEvent, end *turnEndError) {
	r.Result = cmp.Or(end.resultText, t.exchange.lastReply.displayedText, &t.exchange.lastReply.text)
	if end.deferredCall != nil {
		return
	}
	if t.totals.hasModelRequest {
		r.APIErrorStatus = protocol.NullValue[int]()
	}
	if f := end.apiFailure; f != nil {
		if f.status != 0 {
			r.APIErrorStatus = protocol.NullOf(f.status)
		}
		r.APIErrorType, r.APIError, r.APIErrorCode = f.errorType, f.apiError, f.code
		return
	}
	t.totals.fillFirstTokenTimes(r, t.prompts.prompt.UUID != "")
}

// RunBackgroundUntilNotice yields the events of background tasks between turns. It stops when ctx is cancelled,
// when no task is running, or when the model must be notified that a task has ended. In the last case,
// [Simulator.TakeNextNotice] returns the next prompt. The iteration must not overlap a turn.
func (s *Simulator) RunBackgroundUntilNotice(ctx context.Context) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		tasks := s.main.Tasks
		o := &recordingEmitter{sim: s, yield: yield}
		b := &backgroundTaskReporter{sim: s, out: o, totals: &turnTotals{session: &s.totals, budgetUSD: s.options.Limits.BudgetUSD}}
		for {
			if b.emitTaskEventsAndEnforceBudget(task.ConversationPhaseBetweenTurns); o.consumerStopped || tasks.HasPendingNotice() || !tasks.HasRunningBackgroundTask() {
				break
			}
			tasks.StartNextAgent()
			select {
			case <-ctx.Done():
				return
			case <-tasks.ChangeSignal():
			}
		}
		// A task may have ended since the last check of the queue.
		b.emitTaskEventsAndEnforceBudget(task.ConversationPhaseBetweenTurns)
	}
}

// TakeNextNotice removes and returns the next prompt about a finished background task. It returns false if none is pending, or if
// [Simulator.RunBackgroundUntilNotice] has not yielded all events yet.
func (s *Simulator) TakeNextNotice() (protocol.UserMessage, bool) {
	n, ok := s.main.Tasks.TakeNextNotice(task.ConversationPhaseBetweenTurns)
	return protocol.UserMessage{Content: protocol.Content{Text: n.Text}, Origin: n.Origin, Source: promptSourceSystem, Preamble: n.ToolsUsed, NoQuery: s.main.Tasks.HasPendingNotice()}, ok
}

// HasBackgroundWorkOrNotice reports whether background tasks run or a notice about an ended task is pending.
func (s *Simulator) HasBackgroundWorkOrNotice() bool {
	return s.main.Tasks.HasRunningBackgroundTask() || s.main.Tasks.HasPendingNotice()
}

// BackgroundWorkWillCauseTurn reports whether background work will cause another turn, because an
// agent is running or the model does not know yet that a task has ended.
func (s *Simulator) BackgroundWorkWillCauseTurn() bool {
	return s.main.Tasks.HasRunningOrUnshownBackgroundAgent() || s.main.Tasks.HasPendingNotice()
}

// WaitForBackgroundAndItsTurns waits for background tasks, as the real CLI does before it exits. It yields the events of the tasks and of the
// turns that they cause, until no task is running or ceiling has passed. Cancelling ctx stops the wait and interrupts a running turn.
func (s *Simulator) WaitForBackgroundAndItsTurns(ctx context.Context, ceiling time.Duration) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		limited, cancel := context.WithTimeout(ctx, ceiling)
		defer cancel()
		for limited.Err() == nil && s.HasBackgroundWorkOrNotice() {
			for ev, err := range s.RunBackgroundUntilNotice(limited) {
				if !yield(ev, err) {
					return
				}
			}
			prompt, ok := s.TakeNextNotice()
			if !ok {
				continue
			}
			for ev, err := range s.RunTurn(ctx, prompt) {
				if !yield(ev, err) {
					return
				}
			}
		}
	}
}

// RunEndHooksAndCloseHookRunner runs the SessionEnd hooks, and closes the hook runner. If the session had no turn, it runs the
// initial hooks first. The notices report hooks that failed.
func (s *Simulator) RunEndHooksAndCloseHookRunner(ctx context.Context) (notices []protocol.Event) {
	if s.options.Hooks == nil {
		return nil
	}
	if !s.history.sessionStarted && s.history.earlySessionStartOutcome == nil {
		RunSetupAndSessionStartHooks(ctx, s)
	}
	notices = s.options.Hooks.Run(ctx, hook.EventInput{Base: s.sessionEndHookBaseWithPromptID(), Event: protocol.SessionEndHookInput{Reason: "other"}}).Notices
	limited, cancel := context.WithTimeout(ctx, asyncHookGrace)
	defer cancel()
	s.options.Hooks.WaitForAsyncHooksAndClose(limited)
	return notices
}

package simulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

type toolCallRunner struct {
	*turnContext
	isRunning                 bool                    // calls are running, or a call has ended the turn
	resultsOfInterruptedCalls map[int]executor.Result // results of interrupted calls, by index

	events       chan runningCallEvent // events of running calls; nil before the first
	startedCalls []*callStartedWhileStreaming
	messageEnd   chan struct{} // closed after the message that started calls; nil means none
}

type executedCall struct {
	index    int
	result   executor.Result
	started  time.Time
	duration time.Duration
	err      error
}

// rankAmongSimultaneousResults orders calls that finish simultaneously: denied calls come first, because a denial takes less time.
func (r *executedCall) rankAmongSimultaneousResults() int {
	if r.result.Denied != nil {
		return 0
	}
	return 1
}

// runCallsAndEmitResults runs the calls of one message as the real CLI does: adjacent read-only calls in parallel, all others one
// after another. A failed call does not stop the others (spec: cli-observed 2). Results are in call order.
func (d *toolCallRunner) runCallsAndEmitResults(ctx context.Context, calls []preparedCall) ([]scenarios.ToolCallResult, error) {
	d.isRunning = true
	d.letStartedCallsContinueAfterMessage()
	defer d.cancelAndAwaitStartedCalls()
	d.sim.history.toolRounds++
	round := d.sim.history.toolRounds
	results := make([]scenarios.ToolCallResult, len(calls))
	shown := make([]bool, len(calls))
	for i := range calls {
		calls[i].toolUse.Siblings, calls[i].toolUse.Round = len(calls)-1, round
	}
	for i, c := range calls {
		if c.earlyResult != nil {
			shown[i], results[i], calls[i].result = true, scenarioResult(c, c.earlyResult.result.ToolResult), c.earlyResult.result.ToolResult
		}
	}
	for start := 0; start < len(calls); {
		end := start + 1
		for calls[start].canRunInParallel() && end < len(calls) && calls[end].canRunInParallel() {
			end++
		}
		stop, err := d.runCallsInParallel(ctx, calls, start, end, func(r executedCall) {
			shown[r.index], calls[r.index].result = true, r.result.ToolResult
			results[r.index] = scenarioResult(calls[r.index], r.result.ToolResult)
			d.emitEventsAndResultOfCall(calls[r.index], r)
		})
		if err != nil {
			return nil, d.emitResultsOfInterruptedCalls(ctx, calls, shown, end, err)
		}
		if stop != nil {
			return nil, d.endTurnBeforeRemainingCalls(calls[end:], end, *stop)
		}
		d.letStartedCallsContinueAfterMessage()
		start = end
	}
	d.isRunning = false
	return results, nil
}

func (d *toolCallRunner) precheckAndUpdateCall(ctx context.Context, call *preparedCall) {
	ready := d.sim.options.Tools.Precheck(ctx, call.toolUse)
	call.toolUse.ObservedInput, call.refusal = ready.ObservedInput, ready.Refusal
	if call.tool.Server == "" {
		call.toolUse.KeyOrder = call.tool.InputKeys()
	}
}

// canRunInParallel reports whether the call may run at the same time as an adjacent one: it is read-only, or its result
// is already known, for example because it was refused.
func (c preparedCall) canRunInParallel() bool {
	return (c.readOnly || c.tool.ReadOnly) && !c.runsAlone || c.earlyResult != nil
}

// runCallsInParallel runs calls[firstIndex:endIndex] in parallel and emits each result when it arrives or, if the
// output must be repeatable, in call order.
func (d *toolCallRunner) runCallsInParallel(ctx context.Context, calls []preparedCall, firstIndex, endIndex int, showResult func(executedCall)) (turnStop *executor.StopTurn, turnError error) {
	callsCtx := ctx
	ctx, cancel := context.WithCancel(ctx)
	ctx = context.WithValue(context.WithValue(ctx, runningCallEventsKey{}, d.runningCallEventChannel()), callStartedWhileStreamingKey{}, nil)
	done := make(chan executedCall, endIndex-firstIndex)
	var wg sync.WaitGroup
	var running []preparedCall
	for i := firstIndex; i < endIndex; i++ {
		if calls[i].earlyResult != nil {
			continue
		}
		running = append(running, calls[i])
		if calls[i].started == nil {
			d.precheckAndUpdateCall(ctx, &calls[i])
		}
		wg.Go(func() { done <- d.awaitOrExecuteCall(ctx, i, calls[i]) }) // the goroutine returns when the call returns, and ctx limits the call
	}
	defer wg.Wait()
	defer cancel()
	alive := &runningCallHeartbeat{ticker: time.NewTicker(runningCallHeartbeatInterval), runningCalls: running, runningCallEvents: d.events}
	defer alive.ticker.Stop()
	d.resultsOfInterruptedCalls = map[int]executor.Result{}
	var stop *executor.StopTurn
	var interrupted error
	for left := len(running); left > 0; {
		ready, err := d.waitForNextFinishedCalls(done, left, alive)
		if err != nil {
			return nil, err
		}
		left -= len(ready)
		if left == 0 && endIndex < len(calls) && ready[0].err == nil && ready[0].result.Stop == nil {
			d.emitDenialIfPending(&ready[0].result)
			d.startWaitingCallIfHooksDue(callsCtx, &calls[endIndex])
		}
		for _, r := range ready {
			alive.runningCalls = slices.DeleteFunc(alive.runningCalls, func(c preparedCall) bool { return c.assistantEventID == calls[r.index].assistantEventID })
			if r.err != nil {
				d.resultsOfInterruptedCalls[r.index] = r.result
				if interrupted = r.err; !errors.Is(context.Cause(ctx), ErrSuperseded) {
					return nil, interrupted
				}
				continue
			}
			stop = cmp.Or(stop, r.result.Stop)
			showResult(r)
			if err := cmp.Or(d.out.errorIfConsumerStopped(), d.background.budgetEnd); err != nil {
				return nil, err
			}
		}
	}
	return stop, interrupted
}

// awaitOrExecuteCall returns the outcome of a call that has started already, or executes the call.
func (d *toolCallRunner) awaitOrExecuteCall(ctx context.Context, index int, call preparedCall) executedCall {
	if call.started == nil {
		return d.executeAndTimeCall(ctx, index, call)
	}
	context.AfterFunc(ctx, call.started.cancel)
	outcome := <-call.started.done
	outcome.index = index
	return outcome
}

const maxTimeBetweenSimultaneousCallEnds = time.Millisecond

// waitForNextFinishedCalls waits for the next calls to finish, and emits task events and heartbeats in the meantime. Calls that
// finish simultaneously are sorted: denied ones first, then in call order, so that the order of quick calls is stable.
// If the output must be repeatable, it waits for all calls.
func (d *toolCallRunner) waitForNextFinishedCalls(done <-chan executedCall, remaining int, heartbeats *runningCallHeartbeat) ([]executedCall, error) {
	var batch []executedCall
	var late <-chan time.Time // nil until a call has finished, and always nil if all calls must be awaited
	for len(batch) < remaining {
		select {
		case r := <-done:
			if batch = append(batch, r); len(batch) == 1 && !d.sim.options.Display.OrderedResults {
				late = time.After(maxTimeBetweenSimultaneousCallEnds)
			}
		case <-d.background.taskEventQueuedSignal():
			d.background.emitTaskEventsAndEnforceBudget(task.ConversationPhaseInTurn)
		case <-heartbeats.ticker.C:
			d.emitHeartbeats(heartbeats)
		case e := <-heartbeats.runningCallEvents:
			d.showRunningCallEvent(e)
		case <-late:
			remaining = len(batch)
		}
		if err := cmp.Or(d.out.errorIfConsumerStopped(), d.background.budgetEnd); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(batch, func(a, b executedCall) int {
		return cmp.Or(a.rankAmongSimultaneousResults()-b.rankAmongSimultaneousResults(), a.index-b.index)
	})
	return batch, nil
}

// executeAndTimeCall runs one call through the executor chain. It sets err only if the turn was interrupted or must end.
func (d *toolCallRunner) executeAndTimeCall(ctx context.Context, i int, c preparedCall) executedCall {
	r := executedCall{index: i, started: d.sim.options.Clock.Now()}
	if r.err = ctx.Err(); r.err != nil {
		return r
	}
	r.result, r.err = d.executeOrRefuse(ctx, c)
	r.duration = d.sim.options.Clock.Now().Sub(r.started)
	if ctx.Err() != nil && r.err == nil && (r.result.NonExecutionKind != "" || !executor.IsProcessEnding(ctx)) {
		r.err = ctx.Err()
	}
	return r
}

func (d *toolCallRunner) executeOrRefuse(ctx context.Context, c preparedCall) (executor.Result, error) {
	if c.writtenName != "" && c.tool.Name == "" {
		return executor.ResultOf(executor.ToolNotOfferedResult(c.writtenName)), nil
	}
	isStructured := c.toolUse.Name == structuredOutputTool && d.sim.main.Schema != nil
	if c.refusal != nil && !isStructured {
		return *c.refusal, nil
	}
	if isStructured {
		ctx = context.WithValue(ctx, structuredOutputToolRoundKey{}, d)
	}
	result, err := d.sim.options.Tools.Execute(ctx, c.toolUse)
	_, asked := errors.AsType[*InterruptedPermissionError](err)
	_, crashes := errors.AsType[*CrashError](err) // the script of a sub-agent makes the process exit
	switch {
	case err == nil:
		return result, nil
	case isStructured && errors.Is(err, executor.ErrUnknownTool): // the session's tools do not include [StructuredOutputExecutor]
		return StructuredOutputExecutor{}.Execute(ctx, c.toolUse)
	case errors.Is(err, executor.ErrUnknownTool):
		return executor.ResultOf(executor.UnknownToolResult(c.toolUse.Name, nil)), nil
	case ctx.Err() != nil && !asked:
		return result, ctx.Err()
	case ctx.Err() != nil, crashes:
		return result, err
	default:
		return executor.ResultOf(protocol.ErrorResult(err.Error())), nil
	}
}

// InterruptedPermissionError is returned by a layer around the tools if the turn ended while a permission question about a call
// was open. The call counts as denied.
type InterruptedPermissionError struct {
	Call string // id of the call
	Err  error  // error of the permission request
}

func (e *InterruptedPermissionError) Error() string { return "asking for permission: " + e.Err.Error() }

func (e *InterruptedPermissionError) Unwrap() error { return e.Err }

// emitEventsAndResultOfCall omits the result of an agent that has spent the budget, because the turn ends first.
func (d *toolCallRunner) emitEventsAndResultOfCall(c preparedCall, r executedCall) {
	d.emitPreResultEventsAndAddContext(r)
	if isAgent := c.toolUse.Name == "Agent" || c.toolUse.Name == "Skill"; isAgent && d.background.endTurnIfBudgetIsSpent() {
		return
	}
	d.emitResultAndCountIfDenied(c, r)
}

func (d *toolCallRunner) emitPreResultEventsAndAddContext(r executedCall) {
	d.background.emitTaskEventsAndEnforceBudget(task.ConversationPhaseInTurn)
	d.emitDenialIfPending(&r.result)
	d.prompts.addedContext = append(d.prompts.addedContext, r.result.Context...)
	d.out.assignIDsAndEmitAll(r.result.EventsBefore)
}

// emitDenialIfPending emits permission_denied and the events before it, and removes them from the result. Messages of hooks follow later.
func (d *toolCallRunner) emitDenialIfPending(res *executor.Result) {
	no := res.Denied
	if no == nil || res.Stop != nil && res.Stop.Deferred != nil {
		return
	}
	notices := slices.IndexFunc(res.EventsBefore, func(ev protocol.Event) bool { // messages of hooks, which follow permission_denied
		e, is := ev.(*protocol.SystemEvent)
		return is && e.Text("level") == "notice"
	})
	if notices < 0 {
		notices = len(res.EventsBefore)
	}
	d.out.assignIDsAndEmitAll(res.EventsBefore[:notices])
	no.Type, no.Subtype, no.UUID, no.SessionID = "system", "permission_denied", d.sim.options.Clock.NewID(), d.sim.options.State.SessionID()
	d.out.emitAsIs(no)
	res.EventsBefore, res.Denied = res.EventsBefore[notices:], nil
}

func (d *toolCallRunner) emitResultAndCountIfDenied(c preparedCall, r executedCall) {
	res := r.result
	if res.Stop != nil && res.Stop.Deferred != nil {
		return // a deferred call has no result
	}
	if res.CountDenial {
		input := c.toolUse.InputForHooksAndHosts()
		if res.ExecutedInput != nil { // a hook has changed the input
			input = res.ExecutedInput
		}
		d.totals.recordDenial(c.toolUse, input)
	}
	d.out.emitAsIs(&protocol.ToolExecuted{
		Use: c.toolUse, Result: res.ToolResult, Breakpoints: res.Breakpoints, CountDenial: res.CountDenial, ExecutedInput: res.ExecutedInput, Duration: r.duration,
	})
	d.out.emitAsIs(d.buildResultEventAndRecordFeedback(c, res))
	for _, ev := range res.EventsAfter {
		if text, is := ev.(*protocol.UserEvent); is && text.Companion && c.toolUse.Name == "Skill" {
			text.ToolUseID = c.toolUse.ID
			d.prompts.addedContext = append(d.prompts.addedContext, strings.TrimSpace(text.Message.Content.Plain()))
		}
	}
	d.out.assignIDsAndEmitAll(res.EventsAfter)
}

func (d *toolCallRunner) buildResultEventAndRecordFeedback(c preparedCall, res executor.Result) *protocol.UserEvent {
	block := protocol.ToolResultBlock{ToolUseID: c.toolUse.ID, Type: "tool_result", Content: contentWithUnsentSchema(c.toolUse.Name, res.ToolResult)}
	if res.IsError || res.ShowsIsErrorFalse {
		block.IsError = &res.IsError
	}
	output := res.Output
	switch {
	case output != nil:
	case res.IsError:
		output = "Error: " + res.Content.Plain()
	default:
		output = res.Content
	}
	blocks := []protocol.Block{block}
	if res.Feedback != "" && res.NonExecutionKind == "" {
		blocks = append(blocks, protocol.Text(res.Feedback))
		d.prompts.permissionFeedback = append(d.prompts.permissionFeedback, res.Feedback)
	}
	ev := &protocol.UserEvent{
		Type:      "user",
		Message:   protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: blocks}},
		SessionID: d.sim.options.State.SessionID(), UUID: d.sim.options.Clock.NewID(), Timestamp: d.out.currentTimestamp(),
		ToolUseResult: output, SourceUUID: c.assistantEventID, Tool: c.toolUse.Name,
	}
	if c.tool.Server != "" {
		ev.MCP = &protocol.MCPCall{Server: c.tool.Server, Tool: c.tool.RawName, Result: res.MCP, NotReadOnly: mcpCallNotReadOnlyReason(c.tool, res.ToolResult)}
	}
	meta := protocol.ToolResultMeta{ID: c.toolUse.ID, NonExecutionKind: res.NonExecutionKind, PermissionDecision: res.Decision, DeniedBeforeRun: res.DeniedBeforeRun, Feedback: res.Feedback}
	if text, _ := output.(string); d.sim.options.Display.ChangedInput {
		meta.Screened, meta.InputChanger = res.Screened, inputChanger(c.toolUse, res)
		meta.IsInputChanged = meta.InputChanger != ""
		if strings.HasPrefix(text, "InputValidationError: ") {
			meta.Remedy = map[string]string{"kind": "advice_to_claude"}
		}
	}
	if res.Decision != nil || res.NonExecutionKind != "" || meta.Remedy != nil || meta.IsInputChanged || meta.Screened {
		ev.ToolResultMeta = []protocol.ToolResultMeta{meta}
	}
	return ev
}

func (d *toolCallRunner) emitResultsOfInterruptedCalls(ctx context.Context, calls []preparedCall, hasShownResult []bool, startedCount int, cause error) error {
	if ctx.Err() == nil || d.out.consumerStopped {
		return cause
	}
	superseded := errors.Is(context.Cause(ctx), ErrSuperseded)
	for i, c := range calls {
		if hasShownResult[i] || executor.IsProcessEnding(ctx) {
			continue
		}
		result := executor.ResultOf(executor.InterruptedResult())
		unanswered, ok := errors.AsType[*InterruptedPermissionError](cause)
		waits := ok && unanswered.Call == c.toolUse.ID // the call is waiting for a permission decision
		result.CountDenial = waits && !superseded
		result.DeniedBeforeRun = result.CountDenial
		switch {
		case superseded && i < startedCount:
			result.ToolResult = executor.AbortedByPromptResult()
			if ended := d.resultsOfInterruptedCalls[i]; ended.Output != nil && c.toolUse.Name == "Bash" {
				result.Output, result.Decision = ended.Output, ended.Decision
				if ended.NonExecutionKind == "" { // the command has run to its end
					result = ended
				}
			}
		case superseded:
			result.ToolResult = executor.NotStartedResult()
		case i < startedCount && !waits && !errors.Is(context.Cause(ctx), ErrSignalled) && (d.sim.options.Agent == nil || !d.sim.options.Agent.InBackground):
			result.ToolResult = executor.InterruptedWhileRunningResult()
		}
		d.emitEventsAndResultOfCall(c, executedCall{index: i, result: result, started: d.sim.options.Clock.Now()})
	}
	d.background.emitTaskEventsAndEnforceBudget(task.ConversationPhaseAfterInterrupt)
	return cause
}

// endTurnBeforeRemainingCalls ends the turn before all calls of a message have run. If a refusal by the user stopped the turn, it
// also emits a result for each remaining call. These results do not count as denials.
func (d *toolCallRunner) endTurnBeforeRemainingCalls(remainingCalls []preparedCall, startedCount int, stop executor.StopTurn) error {
	if stop.Interrupted {
		for i, c := range remainingCalls {
			d.emitEventsAndResultOfCall(c, executedCall{index: startedCount + i, result: executor.ResultOf(executor.InterruptedResult()), started: d.sim.options.Clock.Now()})
		}
	}
	return d.endStoppedTurn(stop)
}

func (d *toolCallRunner) endStoppedTurn(stop executor.StopTurn) error {
	switch {
	case stop.Err != nil:
		return stop.Err
	case stop.Interrupted:
		return d.emitInterruptTextAndReturnTurnEnd()
	}
	end := &turnEndError{subtype: "success", terminalReason: stop.TerminalReason, stopReason: stop.StopReason, deferredCall: stop.Deferred, resultText: new("")}
	end.stopReason = cmp.Or(end.stopReason, "tool_use")
	return end
}

// emitInterruptTextAndReturnTurnEnd emits the text that reports an interrupt, and returns the error that ends the turn. It is
// called after calls were interrupted, or after a refusal that ends the turn. The caller must emit the results of the calls first.
func (d *toolCallRunner) emitInterruptTextAndReturnTurnEnd() *turnEndError {
	d.out.emitInjectedText("[Request interrupted by user for tool use]", false)
	return &turnEndError{
		subtype: "error_during_execution", terminalReason: "aborted_tools", isError: true, stopReason: "tool_use",
		errors: []string{"[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=tool_use"},
	}
}

// runBatchHooksAndAddContextFiles runs the PostToolBatch hooks, then adds the context files of the successful calls. A hook that
// blocks ends the turn.
func (d *toolCallRunner) runBatchHooksAndAddContextFiles(ctx context.Context, calls []preparedCall, results []scenarios.ToolCallResult) error {
	in := protocol.PostToolBatchHookInput{}
	for _, c := range calls {
		in.ToolCalls = append(in.ToolCalls, protocol.PostToolBatchCall{ToolName: c.toolUse.Name, ToolInput: c.toolUse.Input, ToolUseID: c.toolUse.ID, ToolResponse: contentWithUnsentSchema(c.toolUse.Name, c.result)})
	}
	out, err := d.hooks.runHooksEmittingFramesAndAttachments(ctx, in)
	if err != nil {
		return err
	}
	d.out.assignIDsAndEmitAll(out.Notices)
	if !out.Block && !out.StopTurn {
		return d.hooks.addNewContextFiles(ctx, succeededCalls(calls, results))
	}
	return d.endStoppedTurn(executor.StopTurn{TerminalReason: "hook_stopped"})
}

func succeededCalls(calls []preparedCall, results []scenarios.ToolCallResult) []protocol.ToolUse {
	uses := make([]protocol.ToolUse, 0, len(calls))
	for i, c := range calls {
		if !results[i].IsError {
			uses = append(uses, c.toolUse)
		}
	}
	return uses
}

func scenarioResult(c preparedCall, r protocol.ToolResult) scenarios.ToolCallResult {
	content, err := protocol.Marshal(r.Content)
	if err != nil {
		content = nil
	}
	return scenarios.ToolCallResult{ToolUseID: c.toolUse.ID, Tool: cmp.Or(c.writtenName, c.toolUse.Name), Text: r.Content.Plain(), IsError: r.IsError, Content: content, Structured: mcpStructuredContentOrToolOutput(c.toolUse.Name, r)}
}

// mcpStructuredContentOrToolOutput returns an MCP result's structured content, or a built-in tool's output; nil means none.
func mcpStructuredContentOrToolOutput(tool string, r protocol.ToolResult) any {
	if !strings.HasPrefix(tool, "mcp__") {
		return r.Output
	}
	if r.MCP == nil || r.MCP.Structured == nil {
		return nil
	}
	return r.MCP.Structured
}

const runningCallHeartbeatInterval = 30 * time.Second

// runningCallHeartbeat contains the state of the messages that regularly report that the calls of a batch are still running.
type runningCallHeartbeat struct {
	ticker            *time.Ticker
	runningCalls      []preparedCall
	reportCount       int // number of reports so far
	runningCallEvents <-chan runningCallEvent
}

func (d *toolCallRunner) emitHeartbeats(h *runningCallHeartbeat) {
	h.reportCount++
	for _, c := range h.runningCalls {
		d.out.emitAsIs(d.out.assignIDs(&protocol.Frame{Type: "tool_progress", Fields: []protocol.Field{
			{Key: "tool_use_id", Value: fmt.Sprintf("%s-heartbeat-%d", c.toolUse.ID, h.reportCount-1)},
			{Key: "tool_name", Value: c.toolUse.Name},
			{Key: "parent_tool_use_id", Value: c.toolUse.ID},
			{Key: "elapsed_time_seconds", Value: h.reportCount * int(runningCallHeartbeatInterval/time.Second)},
			{Key: "heartbeat", Value: true},
		}}))
	}
}

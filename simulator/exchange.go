package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

type modelClient struct {
	*turnContext
	round          *toolCallRunner
	currentMessage *streamedMessage // the message being streamed; nil if none exists
	lastReply      replySummary
	// nextReplyIsUnstreamed is true if the next reply arrives as a whole, without stream events: after a
	// stream broke off, and after a model was not available.
	nextReplyIsUnstreamed bool
	usedFallbackModels    int // how many of the Limits.FallbackModels this turn has switched to
}

type replySummary struct {
	text                 string  // last text block; empty if the reply ends with a tool use
	stopReason           *string // nil if there was no reply
	messageID, requestID string
	displayedText        *string // what the user sees instead of text; nil means that the user sees text
	isEmpty              bool    // the reply has no visible content
	hasMoreSteps         bool    // the response has another step
	isContinuation       bool    // the next reply continues this one; the Messages API returns both as one message
}

func (a *replySummary) setIDsAndLastText(head messageHead, blocks []protocol.Block) {
	before := *a
	a.messageID, a.requestID, a.text, a.displayedText, a.isContinuation = head.id, head.requestID, "", nil, false
	a.isEmpty = !slices.ContainsFunc(blocks, func(b protocol.Block) bool { text, ok := b.(protocol.TextBlock); return !ok || text.Text != "" })
	if before.isContinuation && a.isEmpty {
		a.text, a.displayedText, a.isEmpty = before.text, before.displayedText, before.isEmpty
		return
	}
	if _, ok := blocks[len(blocks)-1].(protocol.ToolUse); ok {
		return
	}
	for _, b := range slices.Backward(blocks) {
		if text, ok := b.(protocol.TextBlock); ok {
			a.text = text.Text
			return
		}
	}
}

// requestModelAndEmitReply asks the model, emits its message and returns the tool calls to run. The error may be a [turnEndError].
func (x *modelClient) requestModelAndEmitReply(ctx context.Context, req scenarios.Request) (callsToRun []preparedCall, turnEndOrError error) {
	x.totals.addLastReplyUsageToTurn()
	x.background.emitTaskEventsAndEnforceBudget(task.ConversationPhaseInTurn)
	fits, err := (&compaction{x.turnContext}).compactIfRequestMayNotFit(ctx, req)
	switch {
	case errors.Is(err, errThrashing):
		return nil, x.emitFailureAndEndTurn(ctx, apiFailure{ErrorClass: "invalid_request", APIError: "autocompact_thrashing", TerminalReason: "rapid_refill_breaker", DisplayText: thrashingText})
	case err != nil:
		return nil, err
	case !fits:
		return nil, x.emitFailureAndEndTurn(ctx, apiFailure{ErrorClass: "invalid_request", TerminalReason: "blocking_limit", DisplayText: "Prompt is too long"})
	}
	tools, err := x.sim.options.Tools.Tools(ctx)
	if err != nil {
		return nil, err
	}
	req.Vars = x.sim.scenarioTemplateVars(tools)
	if untold := x.sim.history.pendingContext; untold != nil {
		x.prompts.addedContext, x.sim.history.pendingContext = append(untold, x.prompts.addedContext...), nil
	}
	req.Vars.Context = x.prompts.addedContext
	x.prompts.emitUnsentContextTexts()
	if err := x.out.errorIfConsumerStopped(); err != nil {
		return nil, err
	}
	x.emitRequestIfProcessEnds(ctx)
	asked := x.sim.options.Clock.Now()
	x.totals.hasModelRequest, x.totals.firstRequest = true, cmp.Or(x.totals.firstRequest, asked)
	reply, err := x.sim.options.Model.Next(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := x.emitEventsAndWaitBeforeReply(ctx, req, reply); err != nil {
		return nil, err
	}
	if err := x.prompts.appendAnswersToAbsorbedPrompts(&req, &reply, func(req scenarios.Request) (next scenarios.Reply, err error) {
		if next, err = x.sim.options.Model.Next(ctx, req); err == nil && next.IsUnmatched {
			err = x.emitRuleMatchOrEndTurn(req, next)
		} else if err == nil {
			err = x.emitEventsAndWaitBeforeReply(ctx, req, next)
		}
		return next, err
	}); err != nil {
		return nil, err
	}
	x.nextReplyIsUnstreamed = false
	if f := reply.Failure; f != nil && !x.sim.isFailureUsedUp(reply.Rule.Name, f) {
		err := x.simulateFailureAndRetries(ctx, reply.Rule.Name, f)
		x.totals.apiTime += x.sim.options.Clock.Now().Sub(asked)
		if err != nil {
			return nil, err
		}
		x.nextReplyIsUnstreamed = x.nextReplyIsUnstreamed || f.Type == scenarios.FailStreamError && !f.Whole
	}
	x.lastReply.hasMoreSteps = reply.HasMore
	x.sim.main.Tasks.ReleaseEventsOfLaunchedTasks()
	calls, err := x.streamReply(ctx, req, reply, tools)
	if err != nil {
		return nil, err
	}
	x.totals.apiTime += x.sim.options.Clock.Now().Sub(asked)
	return calls, nil
}

func (x *modelClient) emitEventsAndWaitBeforeReply(ctx context.Context, req scenarios.Request, reply scenarios.Reply) error {
	x.emitRequestStatusAndReplayPrompt()
	if err := x.emitRuleMatchOrEndTurn(req, reply); err != nil {
		return err
	}
	if err := x.background.sleepWhileEmittingTaskEvents(ctx, x.delayBeforeReply(req, reply)); err != nil {
		return err
	}
	for _, f := range reply.Frames {
		if err := x.emitScriptedFrame(f); err != nil {
			return err
		}
	}
	return x.out.errorIfConsumerStopped()
}

func (x *modelClient) emitScriptedFrame(f scenarios.Frame) error {
	switch {
	case f.Stderr != "":
		x.out.emitAsIs(&protocol.VerbatimOutput{Stderr: f.Stderr})
		return nil
	case f.JSON == nil:
		line := &protocol.VerbatimOutput{Stdout: []byte(f.Line), Times: f.Times}
		if !f.Cut {
			line.End = []byte("\n")
		}
		x.out.emitAsIs(line)
		return nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(f.JSON, &keys); err != nil {
		return fmt.Errorf("the `json` of a scenario frame is not a JSON object: %w", err)
	}
	body := strings.TrimRight(string(f.JSON), " \n\t")
	body = body[:len(body)-1]
	for _, id := range []struct{ key, value string }{{"session_id", x.sim.options.State.SessionID()}, {"uuid", x.sim.options.Clock.NewID()}} {
		if _, given := keys[id.key]; !given {
			body += fmt.Sprintf(",%q:%q", id.key, id.value)
		}
	}
	x.out.emitAsIs(&protocol.VerbatimOutput{Stdout: []byte(body + "}\n")})
	return nil
}

// emitRequestIfProcessEnds announces the next request if a signal ends the process. No reply follows.
func (x *modelClient) emitRequestIfProcessEnds(ctx context.Context) {
	if executor.IsProcessEnding(ctx) {
		x.emitRequestStatusAndReplayPrompt()
	}
}

func (x *modelClient) emitRequestStatusAndReplayPrompt() {
	defer x.prompts.replayPromptIfPending()
	if !x.sim.options.Display.PartialMessages {
		return
	}
	fields := []protocol.Field{{Key: "status", Value: "requesting"}}
	if len(x.prompts.prompt.UUIDs) > 0 {
		fields = append(fields, protocol.Field{Key: "user_message_uuids", Value: slices.Clone(x.prompts.prompt.UUIDs)})
	}
	x.out.emitSystem("status", fields...)
}

// emitRuleMatchOrEndTurn reports the rule that answered a prompt. If no rule did, and the scenario makes
// that an error, it returns a [turnEndError].
func (x *modelClient) emitRuleMatchOrEndTurn(req scenarios.Request, reply scenarios.Reply) error {
	if req.Results != nil || reply.Failure != nil && reply.Failure.Type == scenarios.FailNotLoggedIn {
		return nil // tool results, and requests without credentials, are not matched with rules
	}
	x.out.emitAsIs(&protocol.RuleMatchOutcome{Prompt: req.Prompt, Rule: reply.Rule.Name, File: reply.Rule.File, Line: reply.Rule.Line, WrittenByCLI: req.IsInjected})
	if !reply.IsUnmatched || len(reply.NearMisses) == 0 {
		return nil
	}
	return &turnEndError{subtype: "error_during_execution", isError: true, errors: reply.NearMisses}
}

func (x *modelClient) delayBeforeReply(req scenarios.Request, reply scenarios.Reply) time.Duration {
	d := time.Duration(reply.DelayMS) * time.Millisecond
	if req.Results == nil {
		d += x.sim.options.Display.ResponseDelay
	}
	return max(d, x.sim.options.Display.MinimumDelay)
}

func (x *modelClient) streamReply(ctx context.Context, req scenarios.Request, reply scenarios.Reply, tools []protocol.Tool) ([]preparedCall, error) {
	blocks := slices.Clone(x.structured.blocksWithStructuredOutputCall(reply)) // the model may return the same slice for other replies
	if len(blocks) == 0 {
		blocks = []protocol.Block{protocol.Text("")}
	}
	for i, b := range blocks {
		if call, ok := b.(protocol.ToolUse); ok && call.Name == "Task" { // older name of the tool in scenarios
			call.Name = "Agent"
			blocks[i] = call
		}
	}
	usage := scenarios.EstimateUsage(req, blocks) // computed from the inputs as written, before defaults are filled in
	if reply.Usage != nil {
		usage = *reply.Usage
	}
	index := executor.NewToolNameIndex(tools)
	for i, b := range blocks {
		switch b := b.(type) {
		case protocol.ToolUse:
			blocks[i] = x.withCanonicalNameIDAndInput(b, index)
		case protocol.ThinkingBlock:
			blocks[i] = scenarios.WithDefaultSignature(b)
		}
	}
	m := x.setNewCurrentMessage(replyUsage{usage, scenarios.EstimateThinkingTokens(blocks), reply.Usage != nil, false}, reply.Stream)
	m.index, m.isUnstreamed = index, x.nextReplyIsUnstreamed
	m.stopReason = cmp.Or(reply.StopReason, scenarios.DefaultStopReason(blocks))
	m.summary.ContinuesPrevious, m.summary.HasMore = x.lastReply.isContinuation, reply.HasMore
	x.lastReply.setIDsAndLastText(m.messageHead, blocks)
	if err := m.emitBlocks(ctx, blocks); err != nil {
		return nil, err
	}
	x.currentMessage, x.lastReply.stopReason = nil, &m.stopReason
	x.emitRateLimitsOnce()
	if m.summary.Displayed != nil {
		x.lastReply.displayedText = m.summary.Displayed
	}
	return m.calls, nil
}

// emitRateLimitsOnce reports, once in a session, how much of the subscription's rate limits is used.
func (x *modelClient) emitRateLimitsOnce() {
	if !x.sim.options.Display.RateLimits || x.sim.history.rateLimitsShown {
		return
	}
	x.sim.history.rateLimitsShown = true
	x.out.emitAsIs(&protocol.Frame{
		Type: "rate_limit_event", SessionID: x.sim.options.State.SessionID(), UUID: x.sim.options.Clock.NewID(),
		Fields: []protocol.Field{{Key: "rate_limit_info", Value: rateLimitInfo{"allowed", false}}},
	})
}

type rateLimitInfo struct {
	Status  string `json:"status"`
	Overage bool   `json:"isUsingOverage"`
}

func (x *modelClient) setNewCurrentMessage(usage replyUsage, stream *scenarios.Stream) *streamedMessage {
	stream = cmp.Or(stream, &x.sim.options.Display.Stream)
	name := x.sim.modelForRequestInMode()
	x.currentMessage = &streamedMessage{
		turnContext: x.turnContext, round: x.round, pace: scenarios.NewPace(*stream, x.sim.options.Rand),
		messageHead: messageHead{id: x.out.newAPIStyleID("msg"), requestID: x.out.newAPIStyleID("req"), modelName: name, wireModel: claudecode.WireModel(name), replyUsage: usage},
	}
	return x.currentMessage
}

func (x *modelClient) withCanonicalNameIDAndInput(use protocol.ToolUse, index *executor.ToolNameIndex) protocol.ToolUse {
	use.Type = "tool_use"
	use.Name = index.Canonical(use.Name)
	if use.ID == "" {
		use.ID = x.out.newAPIStyleID("toolu")
	}
	if len(use.Input) == 0 {
		use.Input = json.RawMessage("{}")
	}
	use.Written = use.Input
	if tool, ok := index.Tool(use.Name); ok {
		use.Input = executor.Coerce(use.Input, tool.InputSchema)
	}
	if input := x.sim.options.Tools.Prepare(use).Input; input != nil {
		use.Input = input
	}
	return use
}

// simulateFailureAndRetries simulates a scripted failure and retries like the real CLI. If a retry succeeds, it returns nil, and the
// reply follows. Otherwise it emits the error message and returns the error that ends the turn.
func (x *modelClient) simulateFailureAndRetries(ctx context.Context, rule string, f *scenarios.Failure) error {
	switch f.Type {
	case scenarios.FailHang:
		<-ctx.Done()
		return ctx.Err()
	case scenarios.FailStreamFault: // only claudeless serve simulates these failures
		return nil
	case scenarios.FailCrash:
		return &CrashError{ExitCode: max(1, f.ExitCode), Signal: f.Signal}
	case scenarios.FailPartialResponse, scenarios.FailStreamError:
		if err := x.streamTextBeforeFailure(ctx, f); err != nil {
			return err
		}
	case scenarios.FailConnectionTimeout:
		if err := x.background.sleepWhileEmittingTaskEvents(ctx, time.Duration(f.AfterMS)*time.Millisecond); err != nil {
			return err
		}
	default: // other failures have no partial output or delay
	}
	if f.Whole {
		x.sim.history.simulatedFailures[rule]++
		x.out.emitInjectedText(brokenOffReplyPrompt, true)
		return nil
	}
	api := x.sim.describeFailure(f)
	if api.Stderr != "" {
		x.out.emitAsIs(&protocol.VerbatimOutput{Stderr: api.Stderr})
	}
	recovered, err := x.retryRequest(ctx, f, api, rule)
	if err != nil || recovered {
		return err
	}
	for x.nextFallbackModel(api) != "" {
		x.switchToFallbackForTurn(api)
		if x.sim.isFailureUsedUp(rule, f) {
			return nil
		}
		if recovered, err = x.retryRequest(ctx, f, api, rule); err != nil || recovered {
			return err
		}
	}
	if done, err := x.compactIfRequestWasTooLong(ctx, api); err != nil || done && x.sim.isFailureUsedUp(rule, f) {
		return err
	}
	if f.Type == scenarios.FailStreamError && f.PartialText != "" { // the usage of the turn includes the received part, the usage of the session does not
		broken := x.estimateUsageOfPartialReply(f)
		broken.usage.OutputTokens = min(1, broken.usage.OutputTokens)
		x.totals.lastReply = &broken
	}
	return x.emitFailureAndEndTurn(ctx, api)
}

func (x *modelClient) estimateUsageOfPartialReply(failure *scenarios.Failure) replyUsage {
	return replyUsage{usage: scenarios.EstimateUsage(scenarios.Request{Prompt: x.prompts.prompt.Content.Plain()}, []protocol.Block{protocol.Text(failure.PartialText)})}
}

func (s *Simulator) isFailureUsedUp(rule string, f *scenarios.Failure) bool {
	return f.Times > 0 && s.history.simulatedFailures[rule] >= f.Times
}

// retryRequest repeats a failed request as often as the real CLI does, and reports whether a retry succeeded. After
// some failures, the first retries are immediate and have no event: the CLI repeats the request with fewer optional
// parts or without streaming (spec: cli-observed 9).
func (x *modelClient) retryRequest(ctx context.Context, f *scenarios.Failure, api apiFailure, rule string) (succeeded bool, err error) {
	x.sim.history.simulatedFailures[rule]++
	for n := range api.SilentRetries {
		x.out.emitAsIs(&protocol.RequestRepeated{Attempt: n + 1, WithoutStreaming: api.SilentRetries == 1})
		if x.sim.isFailureUsedUp(rule, f) {
			return true, nil
		}
		x.sim.history.simulatedFailures[rule]++
	}
	retries := max(0, x.sim.options.Limits.Retries)
	if f.Type == scenarios.FailStreamError { // the request without streaming counts as a retry
		retries = max(0, retries-1)
	}
	tries := retries
	if api.RetryClass == "" {
		tries = 0
	}
	switch falls := x.nextFallbackModel(api) != ""; {
	case api.MaxRetries > 0, falls && api.Status == 529:
		tries = min(tries, maxOverloadRetries)
	case falls:
		tries = 0
	}
	for attempt := 1; attempt <= tries; attempt++ {
		wait := x.unscaledRetryDelay(attempt, api.RetryAfter)
		ev := &protocol.APIRetryEvent{
			Type: "system", Subtype: "api_retry", Attempt: attempt, MaxRetries: retries,
			RetryDelayMS: milliseconds(wait), Error: api.RetryClass, SessionID: x.sim.options.State.SessionID(), UUID: x.sim.options.Clock.NewID(),
		}
		if api.Status != 0 {
			ev.ErrorStatus = &api.Status
		}
		x.out.emitAsIs(ev)
		trace := &protocol.FailedAPIRequestBeforeRetry{Status: api.Status, Message: api.APIMessage, Body: api.APIMessage, RetryInMS: milliseconds(wait), Attempt: attempt, MaxRetries: retries}
		if api.ResponseErrorType != "" {
			trace.RequestID = x.out.newAPIStyleID("req")
			trace.Body = api.BodyAsQuotedByCLI(trace.RequestID)
		}
		x.out.emitAsIs(trace)
		if err := x.background.sleepWhileEmittingTaskEvents(ctx, time.Duration(float64(wait)*x.sim.options.Limits.RetryScale)); err != nil {
			return false, err
		}
		if x.sim.isFailureUsedUp(rule, f) {
			return true, nil
		}
		x.sim.history.simulatedFailures[rule]++
		if f.Type == scenarios.FailPartialResponse {
			if err := x.streamTextBeforeFailure(ctx, f); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// unscaledRetryDelay returns the wait before the n-th retry: 0.5 s, doubled for each retry up to 32 s, plus up to 25 % jitter.
// The time in a retry-after header takes precedence.
func (x *modelClient) unscaledRetryDelay(retryNumber int, retryAfterHeader time.Duration) time.Duration {
	if retryAfterHeader > 0 {
		return retryAfterHeader
	}
	d := min(500*time.Millisecond<<min(retryNumber-1, 10), 32*time.Second)
	if x.sim.options.Rand != nil {
		d += time.Duration(float64(d) * 0.25 * x.sim.options.Rand.Float64())
	}
	return d
}

// emitFailureAndEndTurn emits the synthetic message that replaces the failed reply, and ends the turn.
func (x *modelClient) emitFailureAndEndTurn(ctx context.Context, api apiFailure) error {
	for strings.Contains(api.DisplayText, requestIDPlaceholderInFailureText) {
		api.DisplayText = strings.Replace(api.DisplayText, requestIDPlaceholderInFailureText, x.out.newAPIStyleID("req"), 1)
	}
	stop, sequence := cmp.Or(api.StopReason, "stop_sequence"), ""
	ev := &protocol.AssistantEvent{
		Type: "assistant", Message: protocol.SyntheticMessage(x.sim.options.Clock.NewID(), api.DisplayText, stop),
		SessionID: x.sim.options.State.SessionID(), UUID: x.sim.options.Clock.NewID(), Timestamp: x.out.currentTimestamp(),
		Error: api.ErrorClass, IsAPIErrorMessage: true, APIErrorStatus: api.Status, APIStatus: api.Status, APIErrorType: api.ReportedAPIErrorType(), APIError: api.APIError, ErrorCode: api.Code,
	}
	ev.Message.StopSequence = &sequence
	if api.Status != 0 {
		ev.RequestID = x.out.newAPIStyleID("req")
	}
	if api.StopReason == "refusal" {
		ev.Message.StopDetails = protocol.NullOf(protocol.StopDetails{Type: api.StopReason})
	}
	if api.APIError == "prompt_too_long" || api.TerminalReason == "prompt_too_long" {
		ev.ErrorDetails = api.BodyAsQuotedByCLI(ev.RequestID)
	} else if api.Status == 413 {
		ev.ErrorDetails = api.ResponseErrorType + ": " + api.BodyAsQuotedByCLI(ev.RequestID)
	}
	if api.RefusedMessageID != "" {
		ev.RequestID, ev.RefusedMessageID = x.lastReply.requestID, api.RefusedMessageID
	}
	if api.Truncation != "" {
		ev.APIErrorParams = map[string]string{"cut": api.Truncation}
	}
	if api.APIError == mediaRemovedErrorCode {
		ev.APIErrorParams = map[string]string{"media": "image", "media_reason": "unprocessable"}
	}
	if _, err := x.hooks.runMessageDisplayHooks(ctx, api.DisplayText); err != nil {
		return err
	}
	x.prompts.setPromptUUIDsOfFirstAssistantEvent(ev)
	x.out.emitAsIs(ev)
	x.lastReply.text, x.lastReply.displayedText = api.DisplayText, nil
	input := protocol.StopFailureHookInput{Error: api.ErrorClass, ErrorDetails: ev.ErrorDetails, LastAssistantMessage: api.DisplayText}
	return &turnEndError{
		subtype: "success", terminalReason: cmp.Or(api.TerminalReason, "api_error"), isError: true, stopReason: stop,
		apiFailure: &failureSummary{api.Status, api.ReportedAPIErrorType(), api.APIError, api.Code, input},
	}
}

func (x *modelClient) streamTextBeforeFailure(ctx context.Context, failure *scenarios.Failure) error {
	if failure.PartialText == "" {
		return nil
	}
	m := x.setNewCurrentMessage(x.estimateUsageOfPartialReply(failure), nil)
	if err := m.waitAndEmitMessageStart(ctx); err != nil {
		return err
	}
	if failure.Whole {
		if err := m.streamTextAndEmitAssistant(ctx, 0, protocol.Text(failure.PartialText)); err != nil {
			return err
		}
	} else if err := m.streamIncompleteText(ctx, failure.PartialText); err != nil {
		return err
	}
	x.currentMessage = nil
	m.emitEndOfBrokenOffStream()
	return nil
}

package simulator

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// maxStopBlocks is how many times in a row Stop hooks may continue a turn (spec: cli-observed 11), unless [Limits.MaxStopBlocks] is set.
const maxStopBlocks = 8

// maxContinuationsAfterTruncationPerTurn is how many times in a turn the model is asked to continue after a truncated reply.
const maxContinuationsAfterTruncationPerTurn = 3

// Prompts with which the real CLI asks the model to continue.
const (
	truncatedReplyPrompt = "Output token limit hit. Resume directly — no apology, no recap of what you were doing. Pick up mid-thought if that is where " +
		"the cut happened. Break remaining work into smaller pieces."
	refusedReplyPrompt = "Your response above was stopped by a safety classifier — this is not a tool or API error. The rest of it was withheld, and " +
		"tool calls in it that had not finished did not run. Do not produce that content again, even reworded."
	emptyReplyPrompt = "[Your previous response had no visible output. Please continue and produce a user-visible response.]"
)

// turnContinuationDecider decides whether a turn continues after a reply without tool calls: the reply was truncated, prompts
// are queued, structured output is missing, or a Stop hook blocked the end.
type turnContinuationDecider struct {
	*turnContext
	exchange *modelClient

	truncations     int
	hadRefusedReply bool
	askedAfterEmpty bool   // the model was already asked to continue after an empty reply
	stopBlocks      int    // number of times that Stop hooks have continued this turn
	terminalReason  string // set if a Stop hook answered continue: false
}

// continueTurnOrReturnNil returns the request that follows a reply without tool calls, or nil at the end of the turn.
func (a *turnContinuationDecider) continueTurnOrReturnNil(ctx context.Context) (nextRequest *scenarios.Request, err error) {
	text, err := a.continueIncompleteReply(ctx)
	if err = cmp.Or(err, a.out.errorIfConsumerStopped()); err != nil {
		return nil, err
	}
	paused := a.exchange.lastReply.stopReason != nil && *a.exchange.lastReply.stopReason == "pause_turn" // the real CLI does not resume a paused turn
	if a.exchange.lastReply.hasMoreSteps && !paused || text == emptyReplyPrompt {
		a.exchange.lastReply.isContinuation = text != emptyReplyPrompt
		return &scenarios.Request{Results: []scenarios.ToolCallResult{}}, nil
	}
	notification := text == ""
	if notification {
		again := false
		if text, again, err = a.continueForMissingOutputOrStopHook(ctx); err != nil || !again {
			return nil, err
		}
		if err := a.totals.countRoundAndCheckLimit(); err != nil {
			return nil, err
		}
	}
	return &scenarios.Request{Prompt: text, IsInjected: true, IsNotification: notification}, nil
}

// continueForMissingOutputOrStopHook continues the turn if structured output is missing or a Stop hook blocked the end.
func (a *turnContinuationDecider) continueForMissingOutputOrStopHook(ctx context.Context) (nextPrompt string, isContinued bool, err error) {
	if nextPrompt, isContinued = a.structured.remindOnceOfMissingOutput(); isContinued {
		a.out.emitInjectedText(nextPrompt, true)
		return nextPrompt, true, nil
	}
	return a.runStopHooksAndEmitFeedback(ctx)
}

// runHooksAfterStructuredOutput runs the Stop hooks at the end of a turn that has structured output. They cannot continue the
// turn, and the transcript says nothing about them.
func (a *turnContinuationDecider) runHooksAfterStructuredOutput(ctx context.Context) error {
	a.exchange.lastReply.text = "" // the structured output is not a message
	out, err := a.callStopHooks(ctx)
	a.out.assignIDsAndEmitAll(out.Notices)
	a.out.assignIDsAndEmitAll(out.AttachmentEvents())
	return err
}

// continueIncompleteReply checks whether a reply without tool calls ended early. If so, it emits and returns the prompt that
// asks the model to continue; otherwise it returns "". Such a prompt follows a reply that reached the token limit or the
// end of the context window. It also follows the first refusal and, without a schema, the first empty reply of a turn.
// After an empty reply, the next step of the scripted response answers. A returned error ends the turn.
func (a *turnContinuationDecider) continueIncompleteReply(ctx context.Context) (prompt string, turnEnd error) {
	if a.exchange.lastReply.stopReason == nil {
		return "", nil
	}
	switch stop := *a.exchange.lastReply.stopReason; stop {
	case "max_tokens", "model_context_window_exceeded":
		if a.truncations++; a.truncations > maxContinuationsAfterTruncationPerTurn {
			return "", a.exchange.emitFailureAndEndTurn(ctx, a.outputOrContextLimitFailure(stop))
		}
		a.out.emitAsIs(a.messageAskingToContinueReply(truncatedReplyPrompt))
		return truncatedReplyPrompt, nil
	case "refusal":
		a.sim.history.safetyStops++
		if a.hadRefusedReply {
			return "", a.endRefusedTurn(ctx)
		}
		a.hadRefusedReply = true
		a.out.emitInformational(a.sessionModelDisplayName()+"'s safeguards stopped the response above · continuing once with that noted", "notice")
		text := a.messageAskingToContinueReply(refusedReplyPrompt)
		text.RefusedMessageID, text.RefusalRetry = a.exchange.lastReply.messageID, true
		a.out.emitAsIs(text)
		return refusedReplyPrompt, nil
	case "end_turn":
		if a.exchange.lastReply.isEmpty && !a.askedAfterEmpty && a.structured.schema == nil {
			a.askedAfterEmpty = true
			a.out.emitAsIs(a.messageAskingToContinueReply(emptyReplyPrompt))
			return emptyReplyPrompt, nil
		}
	}
	return "", nil
}

func (a *turnContinuationDecider) messageAskingToContinueReply(prompt string) *protocol.UserEvent {
	ev := a.out.injectedMessage(prompt, true)
	ev.Companion = true
	return ev
}

func (a *turnContinuationDecider) outputOrContextLimitFailure(stopReason string) apiFailure {
	api := apiFailure{APIError: "max_output_tokens", ErrorClass: "max_output_tokens", Truncation: "context_window"}
	api.DisplayText = "API Error: The model has reached its context window limit."
	if stopReason == "max_tokens" {
		most := claudecode.FactsOfModel(a.sim.resolvedModelName()).MaxOutput
		api.Truncation = "output_limit"
		api.DisplayText = "API Error: Claude's response exceeded the " + strconv.Itoa(most) + " output token maximum. To configure this behavior, " +
			"set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable."
	}
	return api
}

func (a *turnContinuationDecider) endRefusedTurn(ctx context.Context) error {
	a.out.emitSystem("model_refusal_no_fallback",
		protocol.Field{Key: "original_model", Value: a.sim.resolvedModelName()}, protocol.Field{Key: "request_id", Value: a.exchange.lastReply.requestID},
		protocol.Field{Key: "api_refusal_category", Value: nil}, protocol.Field{Key: "api_refusal_explanation", Value: nil},
		protocol.Field{Key: "refused_user_message_uuid", Value: a.prompts.ensurePromptUUID()}, protocol.Field{Key: "content", Value: ""})
	family := a.sessionModelDisplayName()
	return a.exchange.emitFailureAndEndTurn(ctx, apiFailure{
		ErrorClass: "invalid_request", StopReason: "refusal", RefusedMessageID: a.exchange.lastReply.messageID,
		DisplayText: "API Error: " + family + "'s safeguards flagged this message (https://www.anthropic.com/legal/aup). This sometimes happens with " +
			"safe, normal conversations. Claude Code can't respond to this message with " + family + ".\n\nTry rephrasing the request in a " +
			"new session or change your model.\n\nLearn more: https://support.claude.com/en/articles/8106465\n\nRequest ID: " + a.exchange.lastReply.requestID +
			"\n\nMessage ID: " + a.exchange.lastReply.messageID,
	})
}

func (a *turnContinuationDecider) sessionModelDisplayName() string {
	return claudecode.ModelDisplayName(a.sim.resolvedModelName())
}

func (a *turnContinuationDecider) emitStopHookTranscriptEvents(stopHookOutcome hook.Outcome) {
	a.out.assignIDsAndEmitAll(stopHookOutcome.AttachmentEvents())
	if stopHookOutcome.StopHooks != nil {
		a.out.emitAsIs(stopHookOutcome.StopHooks)
	}
}

func (a *turnContinuationDecider) callStopHooks(ctx context.Context) (hook.Outcome, error) {
	return a.hooks.runHooksAddingContextToPrompt(ctx, protocol.StopHookInput{
		StopHookActive: a.stopBlocks > 0, LastAssistantMessage: a.exchange.lastReply.text,
		BackgroundTasks: task.ForHooks(a.background.sim.main.Tasks), SessionCrons: a.background.sessionCrons(),
	})
}

// runStopHooksAndEmitFeedback runs the Stop hooks. If a hook blocks the end of the turn or adds context, isContinued is true, and the
// caller sends feedback to the model. The number of such continuations is limited.
func (a *turnContinuationDecider) runStopHooksAndEmitFeedback(ctx context.Context) (feedback string, isContinued bool, err error) {
	out, err := a.callStopHooks(ctx)
	if err != nil {
		return "", false, err
	}
	a.out.assignIDsAndEmitAll(out.Notices)
	if !out.Block { // for a hook that blocks, these events follow its feedback
		a.emitStopHookTranscriptEvents(out)
	}
	context := strings.Join(out.AdditionalContext, "\n")
	switch {
	case out.StopTurn:
		a.terminalReason = "stop_hook_prevented"
		return "", false, nil
	case out.Failed && !out.Block:
		if a.stopBlocks == 0 { // a turn has one notification
			a.out.emitAsIs(a.out.assignIDs(hook.StopHookErrorNotification()))
		}
		return "", false, nil
	case !out.Block && context == "":
		return "", false, nil
	}
	a.stopBlocks++
	for _, text := range out.Texts {
		a.out.emitInjectedText(text, true)
	}
	if out.Block {
		a.emitStopHookTranscriptEvents(out)
	}
	if a.stopBlocks > cmp.Or(max(a.sim.options.Limits.MaxStopBlocks, 0), maxStopBlocks) {
		if out.Block {
			a.exchange.lastReply.text, a.exchange.lastReply.displayedText = "", nil // the feedback is the last message now
		}
		a.emitStopHookLimitReached()
		return "", false, nil
	}
	if !out.Block {
		return context, true, nil
	}
	if a.stopBlocks == 1 {
		a.out.emitAsIs(a.out.assignIDs(hook.StopHookErrorNotification()))
	}
	return strings.Join(out.Texts, "\n"), true, nil
}

func (a *turnContinuationDecider) emitStopHookLimitReached() {
	text := fmt.Sprintf("A hook blocked the turn from ending %d consecutive times—overriding and ending turn. "+
		"For Stop/SubagentStop hooks, check stop_hook_active in the input and return success while it's true. "+
		"Set CLAUDE_CODE_STOP_HOOK_BLOCK_CAP to raise this limit.", a.stopBlocks)
	a.out.emitInformational(text, "warning")
	a.out.emitSystem("notification",
		protocol.Field{Key: "key", Value: "stop-hook-block-cap"}, protocol.Field{Key: "text", Value: text},
		protocol.Field{Key: "priority", Value: "high"}, protocol.Field{Key: "color", Value: "warning"})
}

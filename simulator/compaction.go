package simulator

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// compaction replaces the conversation by a summary: on /compact, near a full context, or after a request that was too long.
type compaction struct{ *turnContext }

const (
	compactionTriggerManual = "manual"
	compactionTriggerAuto   = "auto"
)

// minFreeTokensToSendRequest is the number of tokens that must be free before a request is sent.
const minFreeTokensToSendRequest = 23_000

// compactIfRequestMayNotFit compacts the conversation if the context is nearly full, and reports whether the request fits.
func (c *compaction) compactIfRequestMayNotFit(ctx context.Context, req scenarios.Request) (requestFits bool, err error) {
	c.refills.requestsInTurn++
	left := c.sim.contextWindow() - int(c.sim.totals.contextTokens.Load()) - scenarios.EstimateUsage(req, nil).InputTokens
	blocked := left < minFreeTokensToSendRequest
	if left >= slash.CompactBufferTokens || c.sim.options.Main == nil || c.sim.history.retained.repliesSinceCompaction == 0 {
		return true, nil
	}
	if c.sim.options.Limits.DisableAutoCompact {
		return !blocked, nil
	}
	if r := &c.refills; r.requestsAtLastCompaction == 0 || r.requestsInTurn-r.requestsAtLastCompaction >= 3 {
		r.rapidCompactions = 0
	} else if r.rapidCompactions++; r.rapidCompactions == 3 {
		return false, errThrashing
	}
	done, err := c.runAutoCompaction(ctx, blocked, scenarios.EstimateUsage(req, nil).InputTokens)
	if done {
		c.refills.requestsAtLastCompaction = c.refills.requestsInTurn
	}
	return done || !blocked, err
}

// rapidCompactionCounter counts how often the context of a turn is full again soon after a compaction.
type rapidCompactionCounter struct {
	requestsInTurn, requestsAtLastCompaction int // number of requests so far, and before the last compaction
	rapidCompactions                         int // consecutive compactions with fewer than three requests in between
}

// errThrashing means that the context was full soon after a compaction for the third time (observed with 2.1.330).
var errThrashing = errors.New("autocompact is thrashing")

// runAutoCompaction compacts the conversation in the middle of a turn and reports whether it succeeded. A conversation with fewer
// than two replies is compacted only if forced. tokensToSend is the size of the request that does not fit, without the conversation.
func (c *compaction) runAutoCompaction(ctx context.Context, evenWithFewReplies bool, tokensToSend int) (compacted bool, err error) {
	c.out.emitSystem("status", protocol.Field{Key: "status", Value: "compacting"}, protocol.Field{Key: "compact_output_chars", Value: 0})
	if c.sim.history.retained.repliesSinceCompaction < 2 && !evenWithFewReplies {
		c.emitCompactionEndStatus("failed", "too_few_groups")
		return false, nil
	}
	sum, err := c.requestSummaryAndRunHooks(ctx, protocol.PreCompactHookInput{Trigger: compactionTriggerAuto}, tokensToSend)
	switch {
	case err != nil:
		return false, err
	case sum.refusal != "":
		c.out.emitSystem("status", protocol.Field{Key: "status", Value: nil})
		return false, nil
	case sum.failed, sum.tooShort:
		c.emitCompactionEndStatus("failed", "exhausted")
		return false, nil
	}
	shown := c.out.injectedMessage(sum.summaryText(), true)
	shown.Summary = true
	c.compactHistoryAndEmitBoundary(sum, shown.UUID)
	c.out.emitAsIs(&protocol.ConversationCompacted{Summary: shown, Prompt: c.prompts.ensurePromptUUID(), Restored: c.restoreContext(ctx)})
	c.out.emitAsIs(shown)
	c.out.assignIDsAndEmitAll(sum.attachments)
	return true, nil
}

// conversationReader is implemented by transcripts that know what they contain.
type conversationReader interface {
	LastLineUUID() string
	UsedTools() []string // sorted names of the tools that the main conversation has used
}

type summaryOutcome struct {
	trigger        string
	started        time.Time
	tokensBefore   int              // context tokens before the compaction
	reply          string           // text of the model, including its analysis
	usedTools      []string         // tools that the conversation has used, sorted
	transcriptPath string           // empty means that the session has none
	hookReports    []string         // output of hooks for the user
	attachments    []protocol.Event // of the SessionStart hooks; they follow the summary
	refusal        string           // reason of the hook that blocked the compaction; empty if none did
	failed         bool
	tooShort       bool // the conversation has no reply of the model
}

// requestSummaryAndRunHooks asks the model for a summary, and runs the compaction hooks before and after the request. After a success,
// it also emits the status "success"; after a failure, the caller emits the status.
func (c *compaction) requestSummaryAndRunHooks(ctx context.Context, in protocol.PreCompactHookInput, tokensToSend int) (summaryOutcome, error) {
	told := slices.Clip(c.prompts.addedContext)
	sum := summaryOutcome{trigger: in.Trigger, started: c.sim.options.Clock.Now(), tokensBefore: int(c.sim.totals.contextTokens.Load())}
	if last := c.sim.totals.lastReply.Load(); last != nil { // like the real CLI, which counts the last request and its reply
		sum.tokensBefore = last.Input + last.Output + last.CacheCreation + last.CacheRead
	}
	sum.tokensBefore += tokensToSend
	out, err := c.hooks.runHooksAddingContextToPrompt(ctx, in)
	if err != nil {
		return sum, err
	}
	c.out.assignIDsAndEmitAll(out.Notices)
	if out.Block {
		sum.refusal = out.Reason
		return sum, nil
	}
	if err := c.out.errorIfConsumerStopped(); err != nil {
		return sum, err
	}
	if sum.tooShort = c.sim.history.retained.repliesSinceCompaction == 0; sum.tooShort {
		return sum, nil
	}
	reply, err := c.sim.options.Model.Next(ctx, scenarios.Request{SideKind: "compact"})
	if err != nil {
		return sum, err
	}
	if sum.failed = reply.Failure != nil; sum.failed {
		return sum, nil
	}
	sum.reply = protocol.Content{Blocks: reply.Blocks}.Plain()
	sum.transcriptPath = c.sim.options.State.SessionStateSnapshot().TranscriptPath
	if t, ok := c.sim.main.Transcript.(conversationReader); ok {
		sum.usedTools = t.UsedTools()
	}
	c.sim.totals.addReplyUsage(c.sim.resolvedModelName(), replyUsage{isSummary: true, usage: scenarios.Usage{InputTokens: sum.tokensBefore, OutputTokens: scenarios.EstimateTokens(len(sum.reply))}})
	if err := c.background.sleepWhileEmittingTaskEvents(ctx, c.sim.options.Display.CompactDelay); err != nil {
		return sum, err
	}
	start, err := c.hooks.runHooksAddingContextToPrompt(ctx, protocol.SessionStartHookInput{Source: sessionSourceCompact, Model: c.sim.resolvedModelName()})
	if err != nil {
		return sum, err
	}
	sum.attachments = start.AttachmentEvents()
	after, err := c.hooks.runHooksAddingContextToPrompt(ctx, protocol.PostCompactHookInput{Trigger: in.Trigger, CompactSummary: sum.reply})
	if err != nil {
		return sum, err
	}
	sum.hookReports = append(out.Reports, after.Reports...)
	c.out.assignIDsAndEmitAll(after.Notices)
	if err := c.hooks.reloadInstructionsAfterCompaction(ctx, told); err != nil {
		return sum, err
	}
	c.emitCompactionEndStatus("success", "")
	return sum, nil
}

// restoreContext adds files, tasks and skills of the conversation before a compaction to the context of the next request.
func (c *compaction) restoreContext(ctx context.Context) (restored []*protocol.AttachmentAdded) {
	if c.sim.main.Mentions == nil {
		return nil
	}
	for _, content := range c.sim.main.Mentions.ForgetAndRereadAfterCompaction(ctx) {
		restored = append(restored, &protocol.AttachmentAdded{Attachment: content.Attachment, Role: content.Role, Tool: "Read", Rendered: content.Rendered})
		if content.Text != "" {
			c.sim.history.pendingContext = append(c.sim.history.pendingContext, content.Text)
		}
	}
	return restored
}

func (c *compaction) emitCompactionEndStatus(result, problem string) {
	fields := []protocol.Field{{Key: "status", Value: nil}, {Key: "compact_result", Value: result}}
	if problem != "" {
		fields = append(fields, protocol.Field{Key: "compact_error", Value: problem})
	}
	c.out.emitSystem("status", fields...)
}

// compactHistoryAndEmitBoundary compacts the history and emits compact_boundary, which lists the messages that are kept.
// summaryUUID is the uuid of the summary message.
func (c *compaction) compactHistoryAndEmitBoundary(sum summaryOutcome, summaryUUID string) {
	past := &c.sim.history
	parent, kept := past.retained.lastRetainedMessageUUID(), past.retained.forgetAllButKeptMessages()
	after := scenarios.EstimateTokens(len(sum.summaryText()))
	past.droppedTokens += max(0, sum.tokensBefore-after)
	meta := protocol.CompactMetadata{Trigger: sum.trigger, PreTokens: sum.tokensBefore, PostTokens: after, DurationMS: milliseconds(c.sim.options.Clock.Now().Sub(sum.started)), Dropped: past.droppedTokens}
	if len(kept) > 0 {
		meta.Segment = &protocol.CompactionPreservedSegment{Head: kept[0], Anchor: summaryUUID, Tail: parent}
		meta.Messages = &protocol.PreservedMessages{Anchor: summaryUUID, UUIDs: kept, All: kept}
	}
	c.sim.totals.contextTokens.Store(int64(after))
	logicalParent := cmp.Or(parent, past.lastAssistantUUID)
	if t, ok := c.sim.main.Transcript.(conversationReader); ok {
		logicalParent = cmp.Or(t.LastLineUUID(), logicalParent)
	}
	c.out.emitSystem("compact_boundary",
		protocol.Field{Key: "compact_metadata", Value: meta}, protocol.Field{Key: "logical_parent_uuid", Value: logicalParent})
}

// analysisSectionPattern matches the notes that a model writes before its summary. They are not part of the summary.
var analysisSectionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)<analysis>.*?</analysis>`) })

// summaryText returns the message that replaces the conversation. Its sentences around the summary are claudeless's own.
func (sum summaryOutcome) summaryText() string {
	text := strings.TrimSpace(analysisSectionPattern().ReplaceAllString(sum.reply, ""))
	if before, rest, ok := strings.Cut(text, "<summary>"); ok {
		inner, after, _ := strings.Cut(rest, "</summary>")
		text = strings.TrimSpace(before + "Summary:\n" + strings.TrimSpace(inner) + after)
	}
	text = "This session is being continued from a previous conversation that ran out of context. What follows is a summary of its earlier part.\n\n" +
		"<system-reminder>\n<tools-used-before-summary>" + strings.Join(sum.usedTools, ", ") + "</tools-used-before-summary>\n</system-reminder>\n" + text
	if sum.transcriptPath != "" {
		text += "\n\nFor details that the summary lacks, read the full transcript at: " + sum.transcriptPath
	}
	return text + "\nGo on with the last task where it was interrupted."
}

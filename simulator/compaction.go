package simulator

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// compaction puts a summary in the place of the conversation: because somebody
// asks for it, because the context fills up, or because the API has refused what
// is too long.
type compaction struct{ *turnContext }

// Why a conversation is compacted.
const (
	byHand   = "manual"
	byItself = "auto"
)

// blockingBuffer is how many tokens must be left for a request to be made at
// all.
const blockingBuffer = 23_000

// fit makes room for a request where there is none, and tells whether it fits.
func (c *compaction) fit(ctx context.Context, req scenarios.Request) (bool, error) {
	left := c.s.window() - int(c.s.books.said.Load()) - scenarios.Estimate(req, nil).InputTokens
	blocked := left < blockingBuffer
	if left >= slash.CompactBuffer || c.s.o.Main == nil || c.s.past.tail.replies == 0 {
		return true, nil
	}
	if c.s.o.Limits.NoCompact {
		return !blocked, nil
	}
	done, err := c.auto(ctx, blocked)
	return done || !blocked, err
}

// auto compacts in the middle of a turn and tells whether it did. What is a
// single exchange is left alone as long as there is another way.
func (c *compaction) auto(ctx context.Context, forced bool) (bool, error) {
	c.out.system("status", protocol.Field{Key: "status", Value: "compacting"}, protocol.Field{Key: "compact_output_chars", Value: 0})
	if c.s.past.tail.replies < 2 && !forced {
		c.status("failed", "too_few_groups")
		return false, nil
	}
	sum, err := c.sum(ctx, protocol.PreCompactHook{Trigger: byItself})
	switch {
	case err != nil:
		return false, err
	case sum.refused != "":
		c.out.system("status", protocol.Field{Key: "status", Value: nil})
		return false, nil
	case sum.failed:
		c.status("failed", "exhausted")
		return false, nil
	}
	shown := c.out.injected(sum.text(), true)
	shown.Summary = true
	c.boundary(sum, shown.UUID)
	c.out.emit(&protocol.Compacted{Summary: shown, Prompt: c.prompts.uuid()})
	c.out.emit(shown)
	return true, nil
}

// summaryOutcome is what came of summing up.
type summaryOutcome struct {
	trigger string
	began   time.Time
	before  int    // tokens
	raw     string // as the model has written it
	reports []string
	refused string // by a hook, with its reason
	failed  bool   // the model has not answered
}

// sum asks the model for a summary, with the hooks around that, and shows that
// it has come.
func (c *compaction) sum(ctx context.Context, in protocol.PreCompactHook) (summaryOutcome, error) {
	told := slices.Clip(c.prompts.beside)
	sum := summaryOutcome{trigger: in.Trigger, began: c.s.o.Clock.Now(), before: int(c.s.books.said.Load())}
	out, err := c.hooks.run(ctx, in)
	if err != nil {
		return sum, err
	}
	c.out.all(out.Notices)
	if out.Block {
		sum.refused = out.Reason
		return sum, nil
	}
	if err := c.out.gone(); err != nil {
		return sum, err
	}
	reply, err := c.s.o.Model.Next(ctx, scenarios.Request{Side: "compact"})
	if err != nil {
		return sum, err
	}
	if sum.failed = reply.Failure != nil; sum.failed {
		return sum, nil
	}
	sum.raw = protocol.Content{Blocks: reply.Blocks}.Plain()
	c.s.books.enter(c.s.resolved(), replyUsage{usage: scenarios.Usage{InputTokens: sum.before, OutputTokens: scenarios.Tokens(len(sum.raw))}})
	if err := c.behind.sleep(ctx, c.s.o.Show.CompactDelay); err != nil {
		return sum, err
	}
	if _, err := c.hooks.run(ctx, protocol.SessionStartHook{Source: sourceCompact, Model: c.s.resolved()}); err != nil {
		return sum, err
	}
	after, err := c.hooks.run(ctx, protocol.PostCompactHook{Trigger: in.Trigger, CompactSummary: sum.raw})
	if err != nil {
		return sum, err
	}
	sum.reports = append(out.Reports, after.Reports...)
	c.out.all(after.Notices)
	if err := c.hooks.instructAgain(ctx, told); err != nil {
		return sum, err
	}
	c.status("success", "")
	return sum, nil
}

// status shows that the work is over; a problem is why it came to nothing.
func (c *compaction) status(result, problem string) {
	fields := []protocol.Field{{Key: "status", Value: nil}, {Key: "compact_result", Value: result}}
	if problem != "" {
		fields = append(fields, protocol.Field{Key: "compact_error", Value: problem})
	}
	c.out.system("status", fields...)
}

// boundary ends the conversation so far; what is kept of it goes on after the
// summary.
func (c *compaction) boundary(sum summaryOutcome, summary string) {
	past := &c.s.past
	parent, kept := past.tail.last(), past.tail.cut()
	after := scenarios.Tokens(len(sum.text()))
	past.dropped += max(0, sum.before-after)
	meta := protocol.CompactMetadata{
		Trigger: sum.trigger, PreTokens: sum.before, PostTokens: after, DurationMS: ms(c.s.o.Clock.Now().Sub(sum.began)), Dropped: past.dropped,
	}
	if len(kept) > 0 {
		meta.Segment = &protocol.PreservedSegment{Head: kept[0], Anchor: summary, Tail: parent}
		meta.Messages = &protocol.PreservedMessages{Anchor: summary, UUIDs: kept, All: kept}
	}
	c.s.books.said.Store(int64(after))
	c.out.system("compact_boundary",
		protocol.Field{Key: "compact_metadata", Value: meta}, protocol.Field{Key: "logical_parent_uuid", Value: cmp.Or(parent, past.leaf)})
}

// drafts is what a model has written for itself before its summary.
var drafts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)<analysis>.*?</analysis>`) })

// text is the summary as the model will read it.
func (sum summaryOutcome) text() string {
	const opening = "This session is being continued from a previous conversation that ran out of context. " +
		"What follows is a summary of its earlier part.\n\n"
	text := strings.TrimSpace(drafts().ReplaceAllString(sum.raw, ""))
	if before, rest, ok := strings.Cut(text, "<summary>"); ok {
		inner, after, _ := strings.Cut(rest, "</summary>")
		text = strings.TrimSpace(before + "Summary:\n" + strings.TrimSpace(inner) + after)
	}
	return opening + text
}

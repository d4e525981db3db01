package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// emptyPromptText replaces an empty prompt that is replayed, and a prompt for the model that has only blank blocks.
const emptyPromptText = "(no content)"

// ErrSignalled is the cause of a cancellation by a signal. Running calls then get the same result as calls that were not started.
var ErrSignalled = errors.New("interrupted by a signal")

// ErrSuperseded is the cause of a cancellation if the turn ended because another prompt must be answered immediately.
// The model gets no message that the turn was interrupted.
var ErrSuperseded = errors.New("a newer prompt replaced this one")

// ErrWithdrawn is the cause of a cancellation if the user takes the prompt back. If the model has not answered yet, the
// prompt is removed from the conversation.
var ErrWithdrawn = errors.New("the user has taken the prompt back")

// turnPrompts contains the prompts of a turn: the first, the context added to it, and those that joined the turn later.
type turnPrompts struct {
	sim *Simulator
	out *emitter
	in  protocol.UserMessage

	ofHook          bool             // a SessionStart hook created the prompt
	id              string           // uuid of the prompt; empty until the first use
	recordedContent protocol.Content // the prompt as the transcript keeps it
	promptID        string
	context         []string // text that hooks and mentioned files have added for the model
	contextSent     int      // number of entries of context already sent in a request
	unanswered      []string // text of absorbed prompts that have not been sent to the model
	absorbedIDs     []string
	feedback        []string // texts that the user typed when permitting calls of the last tool round; they become the next prompt

	replayPending   bool // the prompt is replayed with the next request to the model
	messageLabelled bool // an assistant event of this turn contains the prompts' uuids
	startLabelled   bool // a message_start of this turn contains the prompts' uuids
}

func (p *turnPrompts) emitPromptQueuedEvent() {
	p.out.emit(&protocol.PromptQueued{Content: p.in.Content, Timestamp: p.out.timestamp(), Source: p.in.Source})
	switch {
	case p.in.Synthetic:
		p.in.Content = withNonUserSourceMark(p.in.Content)
	case p.in.Content.Blocks == nil && p.in.Content.Text == "":
		p.in.Content.Text = emptyPromptText
	default:
		return
	}
	p.recordedContent = p.in.Content
}

func (p *turnPrompts) emitAccepted(refused bool) {
	prompt := p.acceptedEvent()
	prompt.Blocked = refused
	p.out.emit(prompt)
}

func (p *turnPrompts) localCommandAcceptedEvent() *protocol.PromptAccepted {
	prompt := p.acceptedEvent()
	prompt.LocalCommand = true
	return prompt
}

func (p *turnPrompts) acceptedEvent() *protocol.PromptAccepted {
	return &protocol.PromptAccepted{
		UUID: p.turnPromptUUID(), HostID: p.in.UUID, PromptID: p.promptID, Content: p.recordedContent, Timestamp: p.out.timestamp(), Merged: p.mergedPromptUUIDs(),
		PermissionMode: p.sim.options.Location.Mode(), Source: cmp.Or(p.in.Source, "sdk"), Origin: p.promptOriginJSON(), OfHook: p.ofHook, Typed: p.in.Typed, Preamble: p.in.Preamble, Queued: p.in.Queued, Assistant: p.in.Assistant,
	}
}

func (p *turnPrompts) expandedContent(x *slash.Expansion) protocol.Content {
	before, _, _ := p.in.Content.SplitUserTypedText()
	return protocol.Content{Blocks: append(slices.Clone(before), protocol.Text(x.Text))}
}

func (p *turnPrompts) turnPromptUUID() string {
	p.id = cmp.Or(p.id, p.in.UUID)
	if p.id == "" {
		p.id = p.sim.options.Clock.NewID()
	}
	return p.id
}

// isOnlyWhiteSpace reports whether a prompt consists of white space only. It returns false for an empty prompt.
func isOnlyWhiteSpace(in protocol.Content) bool {
	return in.Blocks == nil && in.Text != "" && strings.TrimSpace(in.Text) == ""
}

func promptText(c protocol.Content) string {
	if c.Blocks == nil {
		return c.Text
	}
	said := slices.DeleteFunc(slices.Clone(c.Blocks), func(b protocol.Block) bool {
		text, ok := b.(protocol.TextBlock)
		return ok && strings.TrimSpace(text.Text) == ""
	})
	if len(said) == 0 && len(c.Blocks) > 0 {
		return emptyPromptText
	}
	return protocol.Content{Blocks: said}.Plain()
}

func (p *turnPrompts) emitInit(ctx context.Context) {
	if p.out.stopped {
		return
	}
	var init protocol.Init
	if p.sim.main.Context != nil {
		init = p.sim.main.Context.Init(ctx)
	}
	init.Type, init.Subtype = "system", "init"
	init.SessionID, init.UUID = p.sim.options.State.SessionID(), p.sim.options.Clock.NewID()
	init.Model, init.PermissionMode = p.sim.modelName(), p.sim.options.Location.Mode()
	init.PerTurnEffortActive = claudecode.FactsOfModel(init.Model).EffortPerTurn
	init.UserMessageUUIDs = p.in.UUIDs
	p.out.emit(&init)
}

// replayPrompt sends the recorded prompt back to the host, unless it was already sent or no replay is pending.
func (p *turnPrompts) replayPrompt() {
	if !p.replayPending {
		return
	}
	p.replayPending = false
	in := p.in
	in.Content = p.recordedContent
	p.emitReplay(in, p.turnPromptUUID())
}

func (p *turnPrompts) emitUnsentContextTexts() {
	if texts := p.context[p.contextSent:]; len(texts) > 0 {
		p.contextSent = len(p.context)
		p.out.emit(&protocol.ContextAdded{Texts: texts})
	}
}

// attachMentions adds the files that the prompt mentions to the context. For each mentioned file, it
// returns a Read call that has the same effect.
func (p *turnPrompts) attachMentions(ctx context.Context, text string) (reads []protocol.ToolUse, err error) {
	mentions := p.sim.main.Mentions
	if mentions == nil || p.in.Verbatim || p.in.Source == promptSourceSystem || !strings.Contains(text, "@") {
		return nil, nil
	}
	for _, m := range findFileMentions(text) {
		found, ok := mentions.Open(ctx, m)
		if !ok {
			continue
		}
		p.context = append(p.context, found.Text)
		p.out.emit(&protocol.AttachmentAdded{Attachment: found.Attachment, Role: found.Role, Tool: "Read", Rendered: found.Rendered})
		if input, err := protocol.Marshal(map[string]string{"file_path": m.Path}); err == nil {
			reads = append(reads, protocol.ToolUse{Name: "Read", Input: input})
		}
	}
	return reads, ctx.Err()
}

// IsReplayable reports whether a prompt may be replayed to a host that enabled replays. Synthetic prompts, tool results
// and blank prompts are not replayed.
func IsReplayable(prompt protocol.UserMessage) bool {
	return !prompt.Synthetic && !isOnlyWhiteSpace(prompt.Content) && !slices.ContainsFunc(prompt.Content.Blocks, func(b protocol.Block) bool {
		_, answer := b.(protocol.ToolResultBlock)
		return answer
	})
}

func (p *turnPrompts) emitReplay(in protocol.UserMessage, id string) {
	if !p.sim.options.Display.ReplayPrompts || !IsReplayable(in) {
		return
	}
	yes := true
	if in.Content.Blocks == nil && in.Content.Text == "" {
		in.Content.Text = emptyPromptText
	}
	p.out.emit(&protocol.User{
		Type: "user", Message: protocol.UserContent{Role: "user", Content: in.Content}, Origin: in.Origin,
		SessionID: p.sim.options.State.SessionID(), UUID: id, Timestamp: p.out.timestamp(), IsReplay: &yes,
	})
}

func (p *turnPrompts) takeUnansweredPrompt() (text string, ok bool) {
	if len(p.unanswered) == 0 {
		return "", false
	}
	text, p.unanswered = p.unanswered[0], p.unanswered[1:]
	return text, true
}

func (p *turnPrompts) markAbsorbedPromptStarted(prompt protocol.UserMessage) {
	if prompt.UUID == "" {
		return
	}
	p.emitLifecycle(prompt.UUID, "started")
	p.in.UUIDs = append(p.in.UUIDs, prompt.UUID)
	p.absorbedIDs = append(p.absorbedIDs, prompt.UUID)
}

// HasTurnCompletedPrompts reports whether hosts get the message that the prompts of a turn were
// completed. Otherwise the turn ended early, and hosts get the message that the prompts were cancelled.
func HasTurnCompletedPrompts(turnResult *protocol.Result) bool {
	return (!turnResult.IsError || turnResult.TerminalReason == "max_turns") && !strings.HasPrefix(turnResult.TerminalReason, "aborted")
}

func (p *turnPrompts) emitAbsorbedPromptsEnded(turnResult *protocol.Result) {
	state := "completed"
	if !HasTurnCompletedPrompts(turnResult) {
		state = "cancelled"
	}
	for _, id := range p.absorbedIDs {
		p.emitLifecycle(id, state)
	}
}

func (p *turnPrompts) mergedPromptUUIDs() []string {
	if n := len(p.in.UUIDs); n > 1 {
		return p.in.UUIDs[:n-1]
	}
	return nil
}

func (p *turnPrompts) emitLifecycle(id, state string) {
	p.out.emit(p.out.assignIDs(protocol.CommandLifecycle(id, state)))
}

func (p *turnPrompts) setPromptUUIDsOfFirstAssistantEvent(ev *protocol.Assistant) {
	if !p.messageLabelled && len(p.in.UUIDs) > 0 {
		p.messageLabelled = true
		ev.UserMessageUUID, ev.UserMessageUUIDs = p.promptUUIDsFromHost()
	}
}

func (p *turnPrompts) setPromptUUIDsOfFirstMessageStart(ev *protocol.StreamEvent) {
	if !p.startLabelled && len(p.in.UUIDs) > 0 {
		p.startLabelled = true
		ev.UserMessageUUID, ev.UserMessageUUIDs = p.promptUUIDsFromHost()
		ev.OwedRows = &[]string{}
	}
}

// promptUUIDsFromHost returns the ids that the host gave to the prompts of the turn, for use in events. allMergedUUIDs are the
// ids of all merged prompts. turnOrLastUUID is the id of the turn's prompt itself or, if the host gave it none, the last of
// allMergedUUIDs.
func (p *turnPrompts) promptUUIDsFromHost() (turnOrLastUUID string, allMergedUUIDs []string) {
	if p.in.UUID != "" || len(p.in.UUIDs) == 0 {
		return p.in.UUID, p.in.UUIDs
	}
	return p.in.UUIDs[len(p.in.UUIDs)-1], p.in.UUIDs
}

// withNonUserSourceMark inserts, at the beginning of the text, the real CLI's mark for prompts that no user wrote.
func withNonUserSourceMark(promptContent protocol.Content) protocol.Content {
	const mark = "[MESSAGE FROM NON-USER SOURCE - NOT USER INPUT]\n"
	promptContent.Blocks = slices.Clone(promptContent.Blocks)
	for i, b := range promptContent.Blocks {
		if text, ok := b.(protocol.TextBlock); ok {
			promptContent.Blocks[i] = protocol.Text(mark + text.Text)
			return promptContent
		}
	}
	if len(promptContent.Blocks) == 0 {
		promptContent.Text = mark + promptContent.Text
	}
	return promptContent
}

func (p *turnPrompts) promptOriginJSON() json.RawMessage {
	if p.in.Synthetic {
		return json.RawMessage(protocol.SyntheticPromptOriginJSON)
	}
	return p.in.Origin
}

var (
	quotedMentionPattern    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|\s)@"([^"]+)"`) })
	plainMentionPattern     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|\s)@([^\s"]*\w)`) })
	mentionLineRangePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`#L(\d+)(?:-L?(\d+))?$`) })
)

func findFileMentions(text string) []Mention {
	var list []Mention
	seen := map[string]bool{}
	for _, re := range []*regexp.Regexp{quotedMentionPattern(), plainMentionPattern()} {
		for _, found := range re.FindAllStringSubmatch(text, -1) {
			if !seen[found[1]] {
				seen[found[1]] = true
				list = append(list, parseFileMention(found[1]))
			}
		}
	}
	return list
}

func parseFileMention(textAfterAt string) Mention {
	found := mentionLineRangePattern().FindStringSubmatch(textAfterAt)
	if found == nil {
		return Mention{Path: textAfterAt}
	}
	m := Mention{Path: strings.TrimSuffix(textAfterAt, found[0]), Lines: 1}
	m.FirstLine, _ = strconv.Atoi(found[1]) // found[1] contains only digits; an overflow gives a line that no file has
	if last, err := strconv.Atoi(found[2]); err == nil {
		m.Lines = max(1, last-m.FirstLine+1)
	}
	return m
}

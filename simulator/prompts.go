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

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// emptyPromptText replaces an empty prompt that is replayed, and a prompt for the model that has only blank blocks.
const emptyPromptText = "(no content)"

// ErrSignalled is the cause of a cancellation by a signal. Running calls then get the same result as calls that were not started.
var ErrSignalled = errors.New("interrupted by a signal")

// ErrSuperseded is [executor.ErrSuperseded]. The model gets no message that the turn was interrupted.
var ErrSuperseded = executor.ErrSuperseded

// SupersededError is [executor.SupersededError].
type SupersededError = executor.SupersededError

// ErrWithdrawn is the cause of a cancellation if the user takes the prompt back. If the model has not answered yet, the
// prompt is removed from the conversation.
var ErrWithdrawn = errors.New("the user has taken the prompt back")

// turnPrompts contains the prompts of a turn: the first, the context added to it, and those that joined the turn later.
type turnPrompts struct {
	sim    *Simulator
	out    *recordingEmitter
	prompt protocol.UserMessage

	createdByHook       bool // a SessionOrigin hook created the prompt
	beginsWithPath      bool // the prompt begins with a slash, but not with a command
	commandFallback     *protocol.AttachmentAdded
	promptUUID          string           // uuid of the prompt; empty until the first use
	recordedContent     protocol.Content // the prompt as the transcript keeps it
	promptID            string
	addedContext        []string // text that hooks and mentioned files have added for the model
	sentContextCount    int      // number of entries of context already sent in a request
	unsentAbsorbedTexts []string // text of absorbed prompts that have not been sent to the model
	absorbedIDs         []string
	permissionFeedback  []string // texts that the user typed when permitting calls of the last tool round; they become the next prompt

	replayPending                bool // the prompt is replayed with the next request to the model
	assistantEventHasPromptUUIDs bool // an assistant event of this turn contains the prompts' uuids
	messageStartHasPromptUUIDs   bool // a message_start of this turn contains the prompts' uuids
}

func (p *turnPrompts) emitPromptQueuedAndNormalize() {
	p.out.emitAsIs(&protocol.PromptQueued{Content: p.prompt.Content, Timestamp: p.out.currentTimestamp(), Source: p.prompt.Source})
	switch {
	case p.prompt.Synthetic:
		p.prompt.Content = withNonUserSourceMark(p.prompt.Content)
	case protocol.IsPeerOrigin(p.prompt.Origin):
		p.prompt.Content.Text = protocol.PeerMessageText("sent a message", p.prompt.Content.Text)
	case p.prompt.Content.Blocks == nil && p.prompt.Content.Text == "":
		p.prompt.Content.Text = emptyPromptText
	default:
		return
	}
	p.recordedContent = p.prompt.Content
}

func (p *turnPrompts) localCommandAcceptedEvent() *protocol.PromptAccepted {
	prompt := p.promptAcceptedEvent()
	prompt.LocalCommand = true
	return prompt
}

func (p *turnPrompts) promptAcceptedEvent() *protocol.PromptAccepted {
	return &protocol.PromptAccepted{
		UUID: p.ensurePromptUUID(), HostID: p.prompt.UUID, PromptID: p.promptID, Content: p.recordedContent, Timestamp: p.out.currentTimestamp(), Merged: p.earlierMergedPromptUUIDs(),
		PermissionMode: p.sim.options.Location.Mode(), Source: cmp.Or(p.prompt.Source, "sdk"), Origin: p.promptOriginJSON(), OfHook: p.createdByHook, Typed: p.prompt.Typed, Preamble: p.prompt.Preamble, Queued: p.prompt.Queued, Assistant: p.prompt.Assistant, NoQuery: p.prompt.NoQuery, WithoutContext: p.beginsWithPath, CommandFallback: p.commandFallback,
	}
}

const maxCommandsListedForUnknownCommand = 40

// noteUnknownCommandForModel prepares the attachment of a prompt that begins with the name of a command that does not exist. Other prompts
// that begin with a slash, such as paths, mention no files, and their context reaches the model with a later prompt.
func (p *turnPrompts) noteUnknownCommandForModel(ctx context.Context, name string) {
	_, typed, _ := p.prompt.Content.SplitUserTypedText()
	_, isBuiltin := claudecode.PrintModeCommandNamed(name)
	if !strings.HasPrefix(typed, "/") || isBuiltin || p.prompt.Verbatim || p.prompt.Source == promptSourceSystem {
		return
	}
	if len(p.prompt.Content.Blocks) == 1 {
		p.recordedContent = protocol.Content{Text: typed}
	}
	if p.beginsWithPath = p.sim.commands.LooksLikePath("/"+name) || strings.HasSuffix(name, slash.MCPPromptSuffix); p.beginsWithPath {
		return
	}
	init, names := p.sim.main.Context.InitEventWithModelWarning(ctx), []string{}
	for _, skill := range p.sim.commands.LoadedContext().Skills {
		if slices.Contains(init.SlashCommands, skill.Name) && len(names) < maxCommandsListedForUnknownCommand {
			names = append(names, cmp.Or(skill.DisplayName, skill.Name))
		}
	}
	p.commandFallback = &protocol.AttachmentAdded{
		Role: "user", Rendered: []string{"The prompt begins with /" + name + ", which is not a command of this session. Commands: /" + strings.Join(names, ", /")},
		Attachment: map[string]any{"type": "unknown_command_fallback", "commandName": name, "availableCommandNames": names, "availableCommandCount": len(init.SlashCommands) - len(init.TerminalSlashCommands)},
	}
}

func (p *turnPrompts) expandedContent(x *slash.Expansion) protocol.Content {
	before, _, _ := p.prompt.Content.SplitUserTypedText()
	return protocol.Content{Blocks: append(slices.Clone(before), protocol.Text(x.Text))}
}

func (p *turnPrompts) ensurePromptUUID() string {
	p.promptUUID = cmp.Or(p.promptUUID, p.prompt.UUID)
	if p.promptUUID == "" {
		p.promptUUID = p.sim.options.Clock.NewID()
	}
	return p.promptUUID
}

// isNonEmptyWhiteSpace reports whether a prompt is a string of white space. It returns false for an empty prompt and for blocks.
func isNonEmptyWhiteSpace(in protocol.Content) bool {
	return in.Blocks == nil && in.Text != "" && strings.TrimSpace(in.Text) == ""
}

func promptTextOrPlaceholder(c protocol.Content) string {
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
	if p.out.consumerStopped {
		return
	}
	var init protocol.InitEvent
	if p.sim.main.Context != nil {
		init = p.sim.main.Context.InitEventWithModelWarning(ctx)
	}
	init.Type, init.Subtype = "system", "init"
	init.SessionID, init.UUID = p.sim.options.State.SessionID(), p.sim.options.Clock.NewID()
	init.Model, init.PermissionMode = p.sim.resolvedModelName(), p.sim.options.Location.Mode()
	init.PerTurnEffortActive = claudecode.FactsOfModel(init.Model).EffortPerTurn
	init.UserMessageUUIDs = p.prompt.UUIDs
	p.out.emitAsIs(&init)
}

// replayPromptIfPending sends the recorded prompt back to the host, unless it was already sent or no replay is pending.
func (p *turnPrompts) replayPromptIfPending() {
	if !p.replayPending {
		return
	}
	p.replayPending = false
	in := p.prompt
	in.Content = p.recordedContent
	p.emitReplayIfEnabled(in, p.ensurePromptUUID())
}

func (p *turnPrompts) emitUnsentContextTexts() {
	if texts := p.addedContext[p.sentContextCount:]; len(texts) > 0 {
		p.sentContextCount = len(p.addedContext)
		p.out.emitAsIs(&protocol.ContextAdded{Texts: texts})
	}
}

// addMentionedFilesToContext adds the files that the prompt mentions to the context. For each mentioned file, it
// returns a Read call that has the same effect.
func (p *turnPrompts) addMentionedFilesToContext(ctx context.Context, text string) (reads []protocol.ToolUse, err error) {
	mentions := p.sim.main.Mentions
	if mentions == nil || p.prompt.Verbatim || p.beginsWithPath || p.prompt.Source == promptSourceSystem || !strings.Contains(text, "@") {
		return nil, nil
	}
	for _, m := range findFileMentions(text) {
		found, ok := mentions.Open(ctx, m)
		if !ok {
			continue
		}
		if found.Text != "" {
			p.addedContext = append(p.addedContext, found.Text)
		}
		p.out.emitAsIs(&protocol.AttachmentAdded{Attachment: found.Attachment, Role: found.Role, Tool: "Read", Rendered: found.Rendered})
		if input, err := protocol.Marshal(map[string]string{"file_path": m.Path}); err == nil {
			reads = append(reads, protocol.ToolUse{Name: "Read", Input: input})
		}
	}
	return reads, ctx.Err()
}

// IsReplayable reports whether a prompt may be replayed to a host that enabled replays. Synthetic prompts, tool results
// and blank prompts are not replayed.
func IsReplayable(prompt protocol.UserMessage) bool {
	return !prompt.Synthetic && !isNonEmptyWhiteSpace(prompt.Content) && !slices.ContainsFunc(prompt.Content.Blocks, func(b protocol.Block) bool {
		_, answer := b.(protocol.ToolResultBlock)
		return answer
	})
}

func (p *turnPrompts) emitReplayIfEnabled(prompt protocol.UserMessage, promptUUID string) {
	if !p.sim.options.Display.ReplayPrompts || !IsReplayable(prompt) {
		return
	}
	if prompt.Content.Blocks == nil && prompt.Content.Text == "" {
		prompt.Content.Text = emptyPromptText
	}
	p.out.emitAsIs(&protocol.UserEvent{
		Type: "user", Message: protocol.UserContent{Role: "user", Content: prompt.Content}, Origin: prompt.Origin,
		SessionID: p.sim.options.State.SessionID(), UUID: promptUUID, Timestamp: p.out.currentTimestamp(), IsReplay: new(true),
	})
}

func (p *turnPrompts) takeFirstUnsentAbsorbedText() (text string, ok bool) {
	if len(p.unsentAbsorbedTexts) == 0 {
		return "", false
	}
	text, p.unsentAbsorbedTexts = p.unsentAbsorbedTexts[0], p.unsentAbsorbedTexts[1:]
	return text, true
}

func (p *turnPrompts) emitAbsorbedPromptStarted(prompt protocol.UserMessage) {
	if prompt.UUID == "" {
		return
	}
	p.emitPromptLifecycle(prompt.UUID, "started")
	p.prompt.UUIDs = append(p.prompt.UUIDs, prompt.UUID)
	p.absorbedIDs = append(p.absorbedIDs, prompt.UUID)
}

// CountsPromptsAsCompleted reports whether hosts get the message that the prompts of a turn were
// completed. Otherwise the turn ended early, and hosts get the message that the prompts were cancelled.
func CountsPromptsAsCompleted(turnResult *protocol.ResultEvent) bool {
	return (!turnResult.IsError || turnResult.TerminalReason == "max_turns") && !strings.HasPrefix(turnResult.TerminalReason, "aborted")
}

func (p *turnPrompts) emitAbsorbedPromptsEnded(turnResult *protocol.ResultEvent) {
	state := "completed"
	if !CountsPromptsAsCompleted(turnResult) {
		state = "cancelled"
	}
	for _, id := range p.absorbedIDs {
		p.emitPromptLifecycle(id, state)
	}
}

func (p *turnPrompts) earlierMergedPromptUUIDs() []string {
	if n := len(p.prompt.UUIDs); n > 1 {
		return p.prompt.UUIDs[:n-1]
	}
	return nil
}

func (p *turnPrompts) emitPromptLifecycle(id, state string) {
	p.out.emitAsIs(p.out.assignIDs(protocol.CommandLifecycleEvent(id, state)))
}

func (p *turnPrompts) setPromptUUIDsOfFirstAssistantEvent(ev *protocol.AssistantEvent) {
	if !p.assistantEventHasPromptUUIDs && len(p.prompt.UUIDs) > 0 {
		p.assistantEventHasPromptUUIDs = true
		ev.UserMessageUUID, ev.UserMessageUUIDs = p.promptUUIDsFromHost()
	}
}

func (p *turnPrompts) setPromptUUIDsOfFirstMessageStart(ev *protocol.StreamEvent) {
	if !p.messageStartHasPromptUUIDs && len(p.prompt.UUIDs) > 0 {
		p.messageStartHasPromptUUIDs = true
		ev.UserMessageUUID, ev.UserMessageUUIDs = p.promptUUIDsFromHost()
		ev.OwedRows = &[]string{}
	}
}

// promptUUIDsFromHost returns the ids that the host gave to the prompts of the turn, for use in events. allMergedUUIDs are the ids of
// all merged prompts. turnOrLastUUID is the id of the turn's prompt itself or, if the host gave it none, the last of allMergedUUIDs.
func (p *turnPrompts) promptUUIDsFromHost() (turnOrLastUUID string, allMergedUUIDs []string) {
	if p.prompt.UUID != "" || len(p.prompt.UUIDs) == 0 {
		return p.prompt.UUID, p.prompt.UUIDs
	}
	return p.prompt.UUIDs[len(p.prompt.UUIDs)-1], p.prompt.UUIDs
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
	if p.prompt.Synthetic {
		return json.RawMessage(protocol.SyntheticPromptOriginJSON)
	}
	return p.prompt.Origin
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

// appendAnswersToAbsorbedPrompts requests answers to the prompts that joined the turn. It appends them to reply,
// because the Messages API answers a request with one message. Prompts without an answer in the scenario are dropped.
// lastRequest is set to the last request that was answered.
func (p *turnPrompts) appendAnswersToAbsorbedPrompts(lastRequest *scenarios.Request, reply *scenarios.Reply, ask func(scenarios.Request) (scenarios.Reply, error)) error {
	for !reply.HasMore && reply.Failure == nil && (reply.StopReason == "" || reply.StopReason == "end_turn") && scenarios.DefaultStopReason(reply.Blocks) != "tool_use" {
		prompt, ok := p.takeFirstUnsentAbsorbedText()
		if !ok {
			return nil
		}
		req := scenarios.Request{Prompt: prompt, IsInterjected: true, Vars: lastRequest.Vars}
		next, err := ask(req)
		if err != nil {
			return err
		}
		if !next.IsUnmatched {
			next.Blocks, *lastRequest = append(slices.Clone(reply.Blocks), next.Blocks...), req
			next.Usage, next.StructuredOutput = cmp.Or(reply.Usage, next.Usage), append(reply.StructuredOutput, next.StructuredOutput...)
			*reply = next
		}
	}
	return nil
}

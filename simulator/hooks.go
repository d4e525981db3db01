package simulator

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

const sessionSourceCompact = "compact"

// turnHooks runs the hooks of a turn, except those around tool calls; package layer runs these.
type turnHooks struct {
	sim                *Simulator
	out                *recordingEmitter
	prompts            *turnPrompts
	temporarySessionID string // session id shown while a session is looked up; empty means the session's own id
	displayTurnID      string // turn id in the input of MessageDisplay hooks; empty until the first of them runs
}

// hookBase returns the fields of a hook input that most events have. Some events lack fields: for example, SessionOrigin
// has no prompt id and no permission mode. Only events that follow a request to the model have an effort.
func (p *turnHooks) hookBase(in protocol.HookInput) protocol.HookBase {
	base := p.sim.hookBase()
	event, subject := protocol.HookEvent(in)
	if subject == sessionSourceCompact {
		event = "PreCompact"
	}
	if loaded, is := in.(protocol.InstructionsLoadedHookInput); is && loaded.TriggerFilePath != "" {
		return p.addTurnFields(base)
	}
	switch event {
	case "SessionStart", "InstructionsLoaded", "Setup":
		return base
	case "PreCompact", "PostCompact", "MessageDisplay":
		base.PromptID = p.prompts.promptID
		return base
	case "StopFailure":
		return p.addTurnFields(base)
	case "Stop", "PostToolBatch": // all other events occur before the first request
		base.Effort = p.sim.options.State.SessionStateSnapshot().HookEffort()
	}
	base.PromptID, base.PermissionMode = p.prompts.promptID, p.sim.options.Location.Mode()
	if agent := p.sim.options.Agent; agent != nil {
		base.AgentID, base.AgentType, base.PromptID = agent.ID, agent.Type, p.sim.options.State.SessionStateSnapshot().PromptID
	}
	return base
}

func (p *turnHooks) addTurnFields(base protocol.HookBase) protocol.HookBase {
	base.Effort, base.PromptID = p.sim.options.State.SessionStateSnapshot().HookEffort(), p.prompts.promptID
	if agent := p.sim.options.Agent; agent != nil {
		base.AgentID, base.AgentType, base.PromptID = agent.ID, agent.Type, p.sim.options.State.SessionStateSnapshot().PromptID
	}
	return base
}

// addNewContextFiles passes the files of a [ContextSource] to hooks, the transcript and the model. It is called after a tool
// round, and when an agent's conversation starts.
func (p *turnHooks) addNewContextFiles(ctx context.Context, calls []protocol.ToolUse) error {
	tools, ok := p.sim.options.Tools.(ContextSource)
	if !ok {
		return nil
	}
	for _, in := range tools.TakeNewContextFiles(p.sim.options.Agent, calls) {
		if in.Hook != nil {
			if _, err := p.runHooksEmittingFramesAndAttachments(ctx, *in.Hook); err != nil {
				return err
			}
		}
		p.prompts.addedContext = append(p.prompts.addedContext, in.Text)
		p.sim.history.instructionTexts = append(p.sim.history.instructionTexts, in.Text)
		if in.Attachment != nil {
			p.out.emitAsIs(&protocol.AttachmentAdded{Attachment: in.Attachment, Role: in.Role, Tool: in.Tool, Rendered: []string{in.Text}, FollowsAllResults: true})
		}
	}
	return nil
}

// reloadInstructionsAfterCompaction passes all instruction files to hooks and the model again, because a compaction has
// removed them. contextBeforeCompactionHooks is the context of the prompt before the compaction hooks ran. The texts
// that these hooks have added are kept.
func (p *turnHooks) reloadInstructionsAfterCompaction(ctx context.Context, contextBeforeCompactionHooks []string) error {
	said := p.prompts.addedContext[len(contextBeforeCompactionHooks):]
	p.prompts.addedContext = contextBeforeCompactionHooks
	for _, file := range p.sim.main.Start.Instructions {
		if file.ParentFilePath == "" {
			file.LoadReason = "compact"
		}
		if _, err := p.runHooksEmittingFramesAndAttachments(ctx, file); err != nil {
			return err
		}
	}
	var before, after []string
	if p.sim.main.Context != nil {
		before, after = p.sim.main.Context.FirstPromptContext("")
	}
	p.sim.history.pendingContext = slices.Concat(before, p.sim.history.instructionTexts, said, after)
	return nil
}

// addAsyncHookAnswers passes the answers of hooks that have ended in the background to the transcript and the model, except
// texts of SessionStart hooks that a resumed conversation contains.
func (p *turnHooks) addAsyncHookAnswers() {
	if p.sim.options.Hooks == nil || p.sim.options.Agent != nil {
		return
	}
	for _, ev := range p.sim.options.Hooks.TakeAsyncAnswers() {
		isNew := func(text string) bool { return !slices.Contains(p.sim.main.Start.HookTexts, strings.TrimSpace(text)) }
		if len(ev.Rendered) == 0 || slices.ContainsFunc(ev.Rendered, isNew) {
			p.prompts.addedContext = append(p.prompts.addedContext, ev.Rendered...)
			p.out.emitAsIs(ev)
		}
	}
}

func (p *turnHooks) runHooksEmittingFramesAndAttachments(ctx context.Context, in protocol.HookInput) (hook.Outcome, error) {
	out, err := p.runHooksAddingContextToPrompt(ctx, in)
	if err == nil {
		p.out.assignIDsAndEmitAll(out.AttachmentEvents())
	}
	return out, err
}

// runHooksAddingContextToPrompt runs the hooks of one event and adds the context from the hooks to the prompt. It emits hook
// frames if the session shows them. It emits no notices, and nothing for the transcript.
func (p *turnHooks) runHooksAddingContextToPrompt(ctx context.Context, in protocol.HookInput) (hook.Outcome, error) {
	if err := p.out.errorIfConsumerStopped(); err != nil {
		return hook.Outcome{}, err
	}
	event, _ := protocol.HookEvent(in)
	if p.sim.options.Hooks == nil || !p.sim.options.Hooks.Has(event) || p.sim.options.Agent != nil && event != "PostToolBatch" && event != "InstructionsLoaded" {
		return hook.Outcome{}, nil
	}
	var out hook.Outcome
	if early := p.sim.history.earlySessionStartOutcome; early != nil && event == "SessionStart" {
		out = *early
	} else {
		out = p.sim.options.Hooks.Run(ctx, hook.EventInput{Base: p.hookBase(in), Event: in})
	}
	for _, text := range out.AdditionalContext {
		p.prompts.addedContext = append(p.prompts.addedContext, strings.TrimSpace(text))
	}
	if p.sim.options.Display.HookEvents && !claudecode.HookEventNamed(event).HidesFrames || event == "SessionStart" || event == "Setup" {
		p.out.assignIDsAndEmitAll(p.withTemporarySessionID(out.Frames))
	}
	return out, cmp.Or(p.out.errorIfConsumerStopped(), ctx.Err())
}

// runMessageDisplayHooks runs the MessageDisplay hooks with a complete text, unless it is empty, and returns the text to show
// instead; nil means the original. The turn and message ids of this event occur in no other event.
func (p *turnHooks) runMessageDisplayHooks(ctx context.Context, text string) (displayedText *string, err error) {
	if text == "" {
		return nil, nil
	}
	if p.displayTurnID == "" {
		p.displayTurnID = p.sim.options.Clock.NewID()
	}
	out, err := p.runHooksEmittingFramesAndAttachments(ctx, protocol.MessageDisplayHookInput{TurnID: p.displayTurnID, MessageID: p.sim.options.Clock.NewID(), Final: true, Delta: text})
	return out.Specific.DisplayContent, err
}

// runStartHooksAndAcceptLocalCommand begins the turn of a command that is answered without the model.
func (p *turnHooks) runStartHooksAndAcceptLocalCommand(ctx context.Context, outcome slash.Outcome) error {
	if err := p.emitQueuedPromptAndRunStartHooks(ctx); err != nil {
		return err
	}
	prompt := p.prompts.localCommandAcceptedEvent()
	prompt.UnknownCommand = outcome.IsUnknown
	if outcome.UsedTool != "" {
		prompt.Expansion = &protocol.ExpandedCommand{UsedTool: outcome.UsedTool}
	}
	p.out.emitAsIs(prompt)
	return nil
}

func (p *turnHooks) emitQueuedPromptAndRunStartHooks(ctx context.Context) error {
	p.prompts.emitPromptQueuedAndNormalize()
	p.prompts.promptID = p.sim.options.Clock.NewID()
	p.sim.options.State.updateSnapshot(func(n *SessionStateSnapshot) { n.PromptID = p.prompts.promptID })
	return p.runStartHooksIfNotStarted(ctx)
}

func (p *turnHooks) sessionStartSource() string {
	switch {
	case p.sim.history.nextSessionStartSource != "":
		return p.sim.history.nextSessionStartSource
	case p.sim.main.Start.Forked:
		return "fork"
	case p.sim.history.resumed:
		return "resume"
	default:
		return "startup"
	}
}

// RunSessionStartHooksEarly runs the SessionStart hooks before the first turn and returns their frames. The first turn uses their
// outcome. If there are Setup hooks, which run first, RunSessionStartHooksEarly does nothing.
func RunSessionStartHooksEarly(ctx context.Context, s *Simulator) []protocol.Event {
	if s.history.sessionStarted || s.history.earlySessionStartOutcome != nil || s.options.Hooks == nil || s.main.Start.Setup != "" && s.options.Hooks.Has("Setup") {
		return nil
	}
	p := &turnHooks{sim: s, out: &recordingEmitter{sim: s}, temporarySessionID: s.options.State.SessionID()}
	if s.main.Start.Continue {
		p.temporarySessionID = s.options.Clock.NewID()
	}
	in := p.sessionStartHookInput(p.sessionStartSource())
	out := s.options.Hooks.Run(ctx, hook.EventInput{Base: p.hookBase(in), Event: in})
	frames := p.withTemporarySessionID(out.Frames)
	out.Frames, s.history.earlySessionStartOutcome = nil, &out
	return frames
}

// RunSetupAndSessionStartHooks runs the Setup and SessionStart hooks of a session without turns. Nothing shows their outcome.
func RunSetupAndSessionStartHooks(ctx context.Context, s *Simulator) {
	p := &turnHooks{sim: s, out: &recordingEmitter{sim: s}}
	if s.history.sessionStarted = s.options.Hooks != nil; s.history.sessionStarted {
		for _, in := range []protocol.HookInput{protocol.SetupHookInput{Trigger: s.main.Start.Setup}, p.sessionStartHookInput(p.sessionStartSource())} {
			if in != (protocol.SetupHookInput{}) {
				s.options.Hooks.Run(ctx, hook.EventInput{Base: p.hookBase(in), Event: in})
			}
		}
	}
}

// runStartHooksIfNotStarted runs the hooks that come before the session's first turn. They never block.
func (p *turnHooks) runStartHooksIfNotStarted(ctx context.Context) error {
	if p.sim.history.sessionStarted {
		return p.runHooksOfUnreportedInstructions(ctx)
	}
	p.sim.history.sessionStarted = true
	if p.sim.options.Agent != nil {
		return p.addNewContextFiles(ctx, nil)
	}
	source := p.sessionStartSource()
	isFirstConversation := p.sim.history.nextSessionStartSource == ""
	if p.sim.main.Start.Continue && isFirstConversation {
		p.temporarySessionID = p.sim.options.Clock.NewID()
	}
	if p.sim.main.Start.Setup != "" && isFirstConversation {
		if _, err := p.runHooksEmittingFramesAndAttachments(ctx, protocol.SetupHookInput{Trigger: p.sim.main.Start.Setup}); err != nil {
			return err
		}
	}
	var after []string
	if said := p.sim.main.Context; said != nil && !p.sim.history.resumed {
		var before []string
		before, after = said.FirstPromptContext(p.prompts.prompt.Content.Plain())
		p.prompts.addedContext = append(p.prompts.addedContext, before...)
	}
	out, err := p.runSessionStartHooks(ctx, source)
	if err != nil {
		return err
	}
	p.temporarySessionID, p.sim.history.earlySessionStartOutcome = "", nil
	p.sim.history.initialPromptFromHook = out.Specific.InitialUserMessage
	p.sim.history.pendingContext, p.prompts.addedContext = slices.Concat(p.sim.history.pendingContext, p.prompts.addedContext, after), nil
	p.out.assignIDsAndEmitAll(out.Notices)
	p.sim.history.unreportedInstructions = p.sim.main.Start.Instructions
	if isFirstConversation { // after /clear, the files are reported with the next prompt
		if err := p.runHooksOfUnreportedInstructions(ctx); err != nil {
			return err
		}
	}
	if title := cmp.Or(out.Specific.SessionTitle, p.sim.main.Start.Title); title != "" {
		p.out.emitTitleChange(title)
	}
	if p.sim.main.Start.CustomizationsDisabled {
		p.out.emitSystem("ui_invalidate", protocol.Field{Key: "event", Value: "ui.render"})
	}
	return p.out.errorIfConsumerStopped()
}

func (p *turnHooks) runHooksOfUnreportedInstructions(ctx context.Context) error {
	for _, file := range p.sim.history.unreportedInstructions {
		if _, err := p.runHooksEmittingFramesAndAttachments(ctx, file); err != nil {
			return err
		}
	}
	p.sim.history.unreportedInstructions = nil
	return nil
}

// runSessionStartHooks runs the SessionStart hooks. In a resumed or forked session, it adds to the context only texts that
// the conversation does not contain. If all texts are known, the transcript gets no attachment (observed with 2.1.330).
func (p *turnHooks) runSessionStartHooks(ctx context.Context, source string) (hook.Outcome, error) {
	if source != "resume" && source != "fork" {
		return p.runHooksEmittingFramesAndAttachments(ctx, p.sessionStartHookInput(source))
	}
	told := p.prompts.addedContext
	out, err := p.runHooksAddingContextToPrompt(ctx, p.sessionStartHookInput(source))
	added := slices.DeleteFunc(slices.Clone(p.prompts.addedContext[len(told):]), func(text string) bool {
		return slices.Contains(p.sim.main.Start.HookTexts, strings.TrimSpace(text))
	})
	p.prompts.addedContext = append(told, added...)
	if err == nil && len(added) > 0 {
		p.out.assignIDsAndEmitAll(out.AttachmentEvents())
	}
	return out, err
}

// Lifetime of the API's prompt cache, and the price of writing to it relative to an uncached read.
const (
	promptCacheLifetime, longPromptCacheLifetime     = 5 * time.Minute, time.Hour
	cacheWritePriceFactor, longCacheWritePriceFactor = 1.25, 2
)

func (p *turnHooks) sessionStartHookInput(source string) protocol.SessionStartHookInput {
	in := protocol.SessionStartHookInput{Source: source, AgentType: p.sim.main.Start.Agent, SessionTitle: p.sim.main.Start.Title}
	if heard := p.sim.main.Start.PreviousReply; heard != nil && (source == "resume" || source == "fork") {
		setPreviousReplyAgeAndCost(heard, &in, p.sim.options.Clock.Now())
	}
	return in
}

// setPreviousReplyAgeAndCost sets the time since the previous reply and the price of its context (observed with 2.1.329).
func setPreviousReplyAgeAndCost(previousReply *protocol.LastReplyBeforeResume, hookInput *protocol.SessionStartHookInput, now time.Time) {
	ago := max(0, now.Sub(previousReply.At))
	kept, factor := promptCacheLifetime, float64(cacheWritePriceFactor)
	if previousReply.LongCache {
		kept, factor = longPromptCacheLifetime, longCacheWritePriceFactor
	}
	price := 5. // price of an unknown model
	if facts := claudecode.FactsOfModel(previousReply.Model); facts.IsKnown {
		price = facts.InputPrice
	}
	const million, places = 1e6, 1e4
	hookInput.SecondsSinceLastResponse, hookInput.ContextTokens = new(math.Floor(ago.Seconds())), &previousReply.Tokens
	hookInput.PromptCacheLikelyExpired, hookInput.EstimatedCacheWriteUSD = new(ago > kept), new(math.Round(float64(previousReply.Tokens)/million*price*factor*places)/places)
}

// withTemporarySessionID sets the temporary id in frames while --continue looks up the session (observed with 2.1.329).
func (p *turnHooks) withTemporarySessionID(hookFrames []protocol.Event) []protocol.Event {
	if p.temporarySessionID == "" {
		return hookFrames
	}
	for _, ev := range hookFrames {
		if frame, ok := p.out.assignIDs(ev).(*protocol.SystemEvent); ok {
			frame.SessionID = p.temporarySessionID
		}
	}
	return hookFrames
}

type promptHookResult struct {
	noticesAfterInit []protocol.Event // emitted after init
	refusalTurnEnd   *turnEndError    // how the turn ends if the prompt was refused, otherwise nil
}

// runPromptHooksAndEmitPrompt runs the hooks of the prompt and of the command in it, before init. It also emits the events that
// record the prompt in the transcript. If a hook ends the session, the turn ends immediately, without an init event.
func (p *turnHooks) runPromptHooksAndEmitPrompt(ctx context.Context, c slash.Call, x *slash.Expansion) (s promptHookResult, err error) {
	var out, expansion hook.Outcome
	if p.prompts.prompt.Source != promptSourceSystem && !p.prompts.prompt.NoQuery {
		out, err = p.runHooksAddingContextToPrompt(ctx, p.promptSubmitHookInput())
	}
	switch {
	case err != nil:
		return s, err
	case out.CrashError != "":
		return s, &turnEndError{crashReason: out.CrashError}
	case hasHookRefusedPrompt(out):
		s = p.emitRefusalEvents(out, out.Block)
		if x == nil || out.Block {
			s.refusalTurnEnd.localCommand = ""
		}
		return s, nil
	case x != nil:
		expansion, err = p.runHooksAddingContextToPrompt(ctx, p.promptExpansionHookInput(c, x))
		if err != nil {
			return s, err
		}
		if hasHookRefusedPrompt(expansion) {
			return p.emitRefusalEvents(expansion, true), nil
		}
	}
	s.noticesAfterInit = append(expansion.Notices, out.Notices...)
	if err := p.emitAcceptedPromptAndMentions(ctx, c, x); err != nil {
		return s, err
	}
	p.out.assignIDsAndEmitAll(expansion.AttachmentEvents())
	p.out.assignIDsAndEmitAll(out.AttachmentEvents())
	if title := out.Specific.SessionTitle; title != "" && title != p.sim.options.State.SessionStateSnapshot().Title {
		p.sim.options.State.SetTitle(title)
		p.out.emitTitleChange(title)
	}
	return s, nil
}

func (p *turnHooks) promptSubmitHookInput() protocol.HookInput {
	return protocol.UserPromptSubmitHookInput{Prompt: promptTextForHooks(p.prompts.prompt.Content), SessionTitle: p.sim.options.State.SessionStateSnapshot().Title}
}

func (p *turnHooks) promptExpansionHookInput(c slash.Call, x *slash.Expansion) protocol.HookInput {
	_, typed, _ := p.prompts.prompt.Content.SplitUserTypedText()
	if name, args, _ := strings.Cut(typed, " "); x.Name != "" && name != "/"+x.Name { // the user typed another name
		typed = strings.TrimSpace("/" + x.Name + " " + args)
	}
	return protocol.UserPromptExpansionHookInput{ExpansionType: x.Kind, CommandName: c.Name, CommandArgs: c.Args, CommandSource: x.Source, Prompt: typed}
}

func promptTextForHooks(c protocol.Content) string {
	if c.Blocks == nil {
		return c.Text
	}
	return strings.TrimSpace(c.Plain())
}

func (p *turnHooks) emitAcceptedPromptAndMentions(ctx context.Context, command slash.Call, expansion *slash.Expansion) error {
	prompt, text := p.prompts.promptAcceptedEvent(), cmp.Or(p.prompts.prompt.Typed, promptTextOrPlaceholder(p.prompts.prompt.Content))
	if expansion == nil {
		p.out.emitAsIs(prompt)
	} else {
		prompt.Expansion = &protocol.ExpandedCommand{Name: command.Name, Tools: expansion.Tools, UsedTool: expansion.UsedTool}
		p.out.emitAsIs(prompt)
		if expansion.Model != "" && expansion.Model != "inherit" {
			p.sim.options.State.SetTurnModel(expansion.Model)
			prompt.Expansion.Model = p.sim.resolvedModelName()
		}
		injected := p.newInjectedPromptEvent(p.prompts.expandedContent(expansion))
		injected.Expansion, text = prompt.Expansion, promptTextOrPlaceholder(injected.Content)
		p.out.emitAsIs(injected)
	}
	reads, err := p.prompts.addMentionedFilesToContext(ctx, text)
	if err == nil && len(reads) > 0 {
		err = p.addNewContextFiles(ctx, reads)
	}
	p.addAsyncHookAnswers()
	return err
}

func hasHookRefusedPrompt(promptHookOutcome hook.Outcome) bool {
	return promptHookOutcome.Block || promptHookOutcome.StopTurn
}

// emitRefusalEvents emits the events of a refused prompt before init, and returns the others and the end of the turn.
func (p *turnHooks) emitRefusalEvents(promptHookOutcome hook.Outcome, isDroppedFromConversation bool) promptHookResult {
	accepted := p.prompts.promptAcceptedEvent()
	accepted.Blocked = isDroppedFromConversation
	p.out.emitAsIs(accepted)
	if !promptHookOutcome.Block {
		p.out.emitAsIs(p.newInjectedPromptEvent(protocol.Content{Text: strings.Join(promptHookOutcome.Texts, "\n")}))
	}
	p.out.assignIDsAndEmitAll(promptHookOutcome.AttachmentEvents())
	end := turnEndWithoutModelRequest(strings.Join(promptHookOutcome.Texts, "\n"))
	end.localCommand = "custom"
	return promptHookResult{promptHookOutcome.Notices, end}
}

func (p *turnHooks) newInjectedPromptEvent(content protocol.Content) *protocol.PromptAccepted {
	return &protocol.PromptAccepted{UUID: p.sim.options.Clock.NewID(), PromptID: p.prompts.promptID, Timestamp: p.out.currentTimestamp(), WrittenByCLI: true, Content: content}
}

// addPromptsQueuedDuringTurn adds prompts that arrived during the tool round to the turn. The model receives them together with
// the tool results, and they get no separate result.
func (p *turnHooks) addPromptsQueuedDuringTurn(ctx context.Context) error {
	if p.sim.main.Prompts == nil {
		return nil
	}
	var taken []protocol.UserMessage
	for _, in := range p.sim.main.Prompts.TakeJoiningPrompts() {
		out, err := p.runHooksEmittingFramesAndAttachments(ctx, protocol.UserPromptSubmitHookInput{Prompt: promptTextForHooks(in.Content)})
		if err != nil {
			return err
		}
		p.out.assignIDsAndEmitAll(out.Notices)
		if out.Block || out.StopTurn || out.CrashError != "" {
			continue
		}
		taken = append(taken, in)
	}
	for _, in := range taken {
		id := in.UUID
		if id == "" {
			id = p.sim.options.Clock.NewID()
		}
		p.out.emitAsIs(&protocol.PromptAbsorbed{UUID: id, Content: in.Content, Origin: in.Origin, Timestamp: p.out.currentTimestamp()})
		p.prompts.emitReplayIfEnabled(in, id)
		p.prompts.unsentAbsorbedTexts = append(p.prompts.unsentAbsorbedTexts, promptTextOrPlaceholder(in.Content))
	}
	for _, in := range taken {
		p.prompts.emitAbsorbedPromptStarted(in)
	}
	return nil
}

package simulator

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
	"github.com/claudeless/claudeless/simulator/task"
)

// localCommandRunner answers prompts without the model: the conversation's own slash commands, and blank prompts.
type localCommandRunner struct {
	*turnContext
	stopFeedback string // the model answers it before the turn ends; empty means that no Stop hook blocked the end
}

func (k *localCommandRunner) parsePrompt() (call slash.Call, isCommand bool) {
	if k.prompts.prompt.Source == promptSourceSystem || k.prompts.prompt.Verbatim {
		return slash.Call{}, false
	}
	_, typed, _ := k.prompts.prompt.Content.SplitUserTypedText()
	return slash.Parse(typed)
}

// applyExpansionToolsAndEffort grants the tools and sets the effort of a command's expansion, until undo is called. undo also removes
// the command's model, which is set after the prompt is emitted.
func (k *localCommandRunner) applyExpansionToolsAndEffort(expansion *slash.Expansion) (undo func()) {
	commands := k.sim.commands
	if expansion == nil {
		return func() { commands.SetGrantedRules(nil) }
	}
	commands.SetGrantedRules(expansion.Tools)
	effort := k.sim.options.State.SessionStateSnapshot().Effort
	if expansion.Effort != "" {
		k.sim.options.State.SetReportedEffort(expansion.Effort)
	}
	return func() {
		commands.SetGrantedRules(nil)
		if expansion.Effort != "" {
			k.sim.options.State.SetReportedEffort(effort)
		}
		k.sim.options.State.SetTurnModel("")
	}
}

func (k *localCommandRunner) runSessionCommand(ctx context.Context, c slash.Call) (*slash.Outcome, *slash.Expansion) {
	command, ok := k.sim.commands.Find(c.Name)
	if !ok {
		return nil, nil
	}
	return command.Run(ctx, c)
}

func (k *localCommandRunner) runConversationCommand(ctx context.Context, c slash.Call) error {
	switch c.Name {
	case "compact":
		if k.sim.options.Limits.DisableCompactCommand {
			return k.endTurnWithCommandOutcome(ctx, c, slash.UnavailableOutcome(c.Name), nil)
		}
		return k.runCompact(ctx, c)
	case "context":
		usage := k.sim.ContextUsage()
		return k.endTurnWithCommandOutcome(ctx, c, slash.Outcome{Text: usage.UsageMarkdown()}, &usage)
	case "usage", "cost", "stats":
		return k.endTurnWithCommandOutcome(ctx, c, slash.Outcome{Text: k.sim.Cost().Text(), Name: "usage"}, nil)
	default:
		return k.runClear(ctx, c)
	}
}

const blankPromptText = "Blank prompt — the message was only whitespace, so nothing was sent to the model."

func (k *localCommandRunner) endTurnWithBlankPromptWarning(ctx context.Context) error {
	if err := k.hooks.runStartHooksAndAcceptLocalCommand(ctx, slash.Outcome{}); err != nil {
		return err
	}
	k.prompts.emitInit(ctx)
	k.out.emitInformational(blankPromptText, "warning")
	return turnEndWithoutModelRequest(blankPromptText)
}

// endTurnWithCommandOutcome ends the turn with the output of a command. It emits the init event and a synthetic assistant message.
func (k *localCommandRunner) endTurnWithCommandOutcome(ctx context.Context, c slash.Call, outcome slash.Outcome, usage *slash.ContextUsage) error {
	if outcome.IsPrompt {
		k.prompts.recordedContent = protocol.Content{Text: "/" + c.Name}
	} else if !outcome.IsUnknown && outcome.Work == nil {
		k.prompts.recordedContent = protocol.Content{Text: c.LocalCommandTags(cmp.Or(outcome.Name, c.Name))}
	}
	if outcome.Work != nil {
		return k.runSkillInAgent(ctx, c, outcome)
	}
	if err := k.hooks.runStartHooksAndAcceptLocalCommand(ctx, outcome); err != nil {
		return err
	}
	if outcome.Title != "" {
		k.out.emitTitleChange(outcome.Title)
	}
	k.prompts.emitInit(ctx)
	if outcome.Model != nil {
		k.sim.options.State.SetModelAndClearTurnModel(*outcome.Model)
	}
	return k.emitCommandOutputAndReturnTurnEnd(c, outcome, usage)
}

// runSkillInAgent runs the agent of a skill between the hooks of the prompt and the Stop hooks. It sets stopFeedback.
func (k *localCommandRunner) runSkillInAgent(ctx context.Context, c slash.Call, outcome slash.Outcome) error {
	if err := k.hooks.emitQueuedPromptAndRunStartHooks(ctx); err != nil {
		return err
	}
	refused, err := k.runPromptHooksOfSkillAgent(ctx, c, outcome.Work.Source)
	if err != nil {
		return err
	}
	if refused.refusalTurnEnd != nil {
		k.prompts.emitInit(ctx)
		k.out.assignIDsAndEmitAll(refused.noticesAfterInit)
		return refused.refusalTurnEnd
	}
	addedContext := k.prompts.addedContext
	k.prompts.addedContext = nil
	k.out.emitAsIs(k.prompts.localCommandAcceptedEvent())
	answer, work, err := k.runSkillAgent(ctx, func(ctx context.Context) (string, error) { return outcome.Work.Run(ctx, addedContext) })
	if err != nil {
		return err
	}
	stop, err := k.hooks.runHooksAddingContextToPrompt(ctx, protocol.StopHookInput{LastAssistantMessage: answer, BackgroundTasks: task.ForHooks(k.sim.main.Tasks), SessionCrons: k.background.sessionCrons()})
	if err != nil {
		return err
	}
	k.prompts.emitInit(ctx)
	k.background.emitAndAddAgentUsageToTotals(work)
	k.out.assignIDsAndEmitAll(stop.Notices)
	outcome.Text = answer
	if stop.Block {
		k.stopFeedback = strings.Join(stop.Texts, "\n")
	}
	return k.emitCommandOutputAndReturnTurnEnd(c, outcome, nil)
}

// runPromptHooksOfSkillAgent runs the hooks of a command that runs a skill in an agent (observed with 2.1.330: in this order; the
// messages and attachments of hooks that accept the prompt are not shown, and the notice of a refusal has no outcome).
func (k *localCommandRunner) runPromptHooksOfSkillAgent(ctx context.Context, c slash.Call, source string) (promptHookResult, error) {
	for _, in := range []protocol.HookInput{k.hooks.promptExpansionHookInput(c, &slash.Expansion{Kind: "slash_command", Source: source}), k.hooks.promptSubmitHookInput()} {
		if out, err := k.hooks.runHooksAddingContextToPrompt(ctx, in); err != nil {
			return promptHookResult{}, err
		} else if hasHookRefusedPrompt(out) {
			refused := k.hooks.emitRefusalEvents(out, true)
			for _, notice := range refused.noticesAfterInit {
				if ev, is := notice.(*protocol.SystemEvent); is {
					ev.Fields = slices.DeleteFunc(ev.Fields, func(f protocol.Field) bool { return f.Key == "prompt_submit_outcome" })
				}
			}
			return refused, nil
		}
	}
	return promptHookResult{}, nil
}

// runSkillAgent runs the agent of a skill and returns its answer. System events of the agent's task are emitted
// immediately. All other events are returned in eventsToEmitAfterInit; the caller emits them after init.
func (k *localCommandRunner) runSkillAgent(ctx context.Context, runAgent func(context.Context) (string, error)) (answer string, eventsToEmitAfterInit []protocol.Event, err error) {
	tasks := k.sim.main.Tasks
	take := func() {
		for _, ev := range tasks.TakeEvents(task.ConversationPhaseInTurn) {
			if frame, ok := ev.(*protocol.SystemEvent); ok {
				k.out.emitAsIs(k.out.assignIDs(frame))
				continue
			}
			eventsToEmitAfterInit = append(eventsToEmitAfterInit, ev)
		}
		tasks.MarkTakenEventsEmitted()
	}
	done := make(chan struct{})
	go func() { // the goroutine returns when the work is done
		defer close(done)
		answer, err = runAgent(ctx)
	}()
	for {
		select {
		case <-tasks.ChangeSignal():
			take()
		case <-done:
			take()
			return answer, eventsToEmitAfterInit, err
		}
	}
}

func (k *localCommandRunner) emitCommandOutputAndReturnTurnEnd(c slash.Call, outcome slash.Outcome, usage *slash.ContextUsage) error {
	ev := k.commandOutputMessage(slash.Call{Name: cmp.Or(outcome.Name, c.Name), Args: c.Args}, strings.TrimRight(outcome.Text, " "))
	if outcome.IsUnknown {
		ev.LocalCommandRun, ev.LocalCommandOutcome = nil, &protocol.SlashCommandFailureKind{Kind: "unavailable_headless"}
	}
	if outcome.Failed {
		ev.LocalCommandSource = slash.ErrorOutput(outcome.Text)
		ev.LocalCommandOutcome = &protocol.SlashCommandFailureKind{Kind: "failed"}
	}
	if outcome.Work != nil || outcome.IsPrompt {
		ev.LocalCommandRun = nil
	}
	if usage != nil {
		raw, err := protocol.Marshal(usage)
		if err != nil {
			return err
		}
		ev.ContextUsage = raw
	}
	end := turnEndWithoutModelRequest(outcome.Text)
	if outcome.IsSilent {
		end = turnEndWithoutModelRequest("")
	}
	if !outcome.IsUnknown {
		end.localCommand = strings.Trim(strings.ReplaceAll(cmp.Or(outcome.Result, c.Name), "-", "_"), "_")
	}
	if ev.LocalCommandRun == nil || !ev.LocalCommandRun.IsDisplayOnly {
		k.sim.history.pendingContext = append(k.sim.history.pendingContext, k.prompts.recordedContent.Plain(), ev.LocalCommandSource)
	}
	k.out.emitAsIs(ev)
	return end
}

func (k *localCommandRunner) commandOutputMessage(c slash.Call, text string) *protocol.AssistantEvent {
	return &protocol.AssistantEvent{
		Type: "assistant", Message: protocol.SyntheticMessage(k.sim.options.Clock.NewID(), strings.TrimRight(text, "\n"), "end_turn"),
		SessionID: k.sim.options.State.SessionID(), UUID: k.sim.options.Clock.NewID(), Timestamp: k.out.currentTimestamp(),
		LocalCommandSource: slash.Output(text), LocalCommandRun: &protocol.LocalCommand{Command: c.Name, Args: c.Args},
	}
}

// runClear runs /clear, which starts a new conversation (spec: cli-contract 9.6).
func (k *localCommandRunner) runClear(ctx context.Context, c slash.Call) error {
	s := k.sim
	id := k.prompts.ensurePromptUUID()
	if err := k.hooks.emitQueuedPromptAndRunStartHooks(ctx); err != nil {
		return err
	}
	if s.options.Hooks != nil {
		s.options.Hooks.Run(ctx, hook.EventInput{Base: s.sessionEndHookBaseWithPromptID(), Event: protocol.SessionEndHookInput{Reason: "clear"}})
	}
	conversation := s.options.Clock.NewID()
	k.out.emitAsIs(&protocol.Frame{
		Type: "conversation_reset",
		Fields: []protocol.Field{
			{Key: "new_conversation_id", Value: conversation},
			{Key: "uuid", Value: conversation},
			{Key: "trigger", Value: "clear"},
			{Key: "user_message_uuid", Value: id},
			{Key: "timestamp", Value: k.out.currentTimestamp()},
		},
		SessionID: s.options.State.SessionID(),
	})
	if err := k.out.errorIfConsumerStopped(); err != nil {
		return err
	}
	s.main.Tasks.EndAllAndDiscardEvents()
	k.out.emitSystem("background_tasks_changed", protocol.Field{Key: "tasks", Value: []string{}})
	if err := k.out.errorIfConsumerStopped(); err != nil {
		return err
	}
	k.resetConversation()
	if err := k.hooks.runStartHooksIfNotStarted(ctx); err != nil {
		return err
	}
	k.prompts.recordedContent = protocol.Content{Text: c.LocalCommandTags("clear")}
	k.out.emitAsIs(k.prompts.localCommandAcceptedEvent())
	k.out.emitAsIs(&protocol.TranscriptOnlyEvent{Event: k.commandOutputMessage(slash.Call{Name: "clear", Args: c.Args}, "")})
	k.prompts.emitInit(ctx)
	end := turnEndWithoutModelRequest("")
	end.localCommand = "clear"
	return end
}

// resetConversation forgets the conversation and its costs, but not its times, and begins a new transcript.
func (k *localCommandRunner) resetConversation() {
	s := k.sim
	s.history.resumed, s.history.sessionStarted, s.history.nextSessionStartSource, s.history.turnCount, s.history.pendingContext = false, false, "clear", 0, nil
	k.prompts.promptID = ""
	s.options.State.updateSnapshot(func(n *SessionStateSnapshot) { n.PromptID = "" })
	s.totals.contextTokens.Store(0)
	s.totals.lastReply.Store(nil)
	s.totals.restoreCosts(nil)
	s.totals.requests = 0
	if s.main.Transcript == nil {
		return
	}
	id, path, err := s.main.Transcript.Reset()
	s.options.State.BeginConversation(id, path)
	if err != nil {
		k.out.emitTranscriptNotSavedWarning(err)
	}
}

// runCompact runs /compact, which replaces the conversation by a summary (spec: cli-contract 9.6).
func (k *localCommandRunner) runCompact(ctx context.Context, c slash.Call) error {
	if k.sim.history.turnCount == 0 && !k.sim.history.resumed {
		return k.endTurnWithCommandOutcome(ctx, c, slash.Outcome{Text: "Error: No messages to compact", Failed: true, IsSilent: true}, nil)
	}
	if err := k.hooks.emitQueuedPromptAndRunStartHooks(ctx); err != nil {
		return err
	}
	k.prompts.recordedContent = protocol.Content{Text: c.LocalCommandTags(c.Name)}
	k.out.emitSystem("status", protocol.Field{Key: "status", Value: "compacting"})
	in := protocol.PreCompactHookInput{Trigger: compactionTriggerManual}
	if c.Args != "" {
		in.CustomInstructions = &c.Args
	}
	work := compaction{k.turnContext}
	sum, err := work.requestSummaryAndRunHooks(ctx, in, 0)
	if err != nil {
		return err
	}
	switch {
	case sum.tooShort:
		const reason = "Not enough messages to compact."
		return k.endTurnAfterFailedCompaction(ctx, c, reason, slash.Outcome{Text: reason}, work)
	case sum.failed:
		return k.endTurnAfterFailedCompaction(ctx, c, "exhausted", slash.Outcome{Text: "Compaction failed: exhausted", Failed: true}, work)
	case sum.refusal != "":
		reason := "Compaction blocked by PreCompact hook: " + strings.TrimSpace(sum.refusal)
		return k.endTurnAfterFailedCompaction(ctx, c, "skipped: "+reason, slash.Outcome{Text: reason, Failed: true}, work)
	}
	k.prompts.emitInit(ctx)
	shown := &protocol.UserEvent{Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: sum.summaryText()}}, IsSynthetic: true, IsReplay: new(false)}
	k.out.assignIDs(shown)
	work.compactHistoryAndEmitBoundary(sum, shown.UUID)
	return k.endTurnWithCompactionSummary(shown, sum, work.restoreContext(ctx))
}

// endTurnAfterFailedCompaction reports a failed /compact. Hosts receive problemForHost, and users see outcomeForUser.
func (k *localCommandRunner) endTurnAfterFailedCompaction(ctx context.Context, c slash.Call, problemForHost string, outcomeForUser slash.Outcome, work compaction) error {
	work.emitCompactionEndStatus("failed", problemForHost)
	k.prompts.emitInit(ctx)
	k.out.emitAsIs(k.prompts.localCommandAcceptedEvent())
	return k.emitCommandOutputAndReturnTurnEnd(c, outcomeForUser, nil)
}

func (k *localCommandRunner) endTurnWithCompactionSummary(summaryMessage *protocol.UserEvent, sum summaryOutcome, restored []*protocol.AttachmentAdded) error {
	said := slash.Output("Compacted " + strings.Join(sum.hookReports, "\n"))
	told := &protocol.UserEvent{Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: said}}, IsReplay: new(true), LocalCommandRun: &protocol.LocalCommand{Command: "compact"}}
	k.out.assignIDs(told)
	for _, ev := range []protocol.Event{&protocol.ConversationCompacted{Summary: summaryMessage, Command: k.prompts.localCommandAcceptedEvent(), Output: told, HasHookReports: len(sum.hookReports) > 0, Restored: restored}, summaryMessage, told} {
		k.out.emitAsIs(ev)
	}
	k.out.assignIDsAndEmitAll(sum.attachments)
	end := turnEndWithoutModelRequest("")
	end.localCommand = "compact"
	return end
}

package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// maxConsecutiveSubagentStopBlocks is the number of consecutive times that SubagentStop hooks may make an agent continue.
const maxConsecutiveSubagentStopBlocks = 8

type agentRun struct {
	agents          *CallExecutor
	task            *task.Task
	definition      Definition
	input           agentInput
	script          *protocol.SubagentScript // nil means that the rules of the scenario answer
	model           string                   // full name
	startingCall    protocol.ToolUse         // the call that started the agent
	callerToolUseID string                   // tool use id that the agent's events report as their parent
	worktreeDir     string                   // directory of the agent's worktree; empty means none
	skillName       string                   // skill that the agent runs; empty means none
	startHooks      hook.Outcome
	promptContext   []string // from hooks of the prompt of a skill that the user typed
	simulator       *simulator.Simulator
	heldCalls       []heldCall

	// Guarded by Agents.mu.
	isRunning           bool
	undeliveredMessages []string
	unsentToMain        []string // messages to the main conversation, which are sent after the result of the call
	status              task.FinalStatus
	started             time.Time

	worktree keptWorktree // zero unless the agent's worktree remains after the run
	progress runProgress
	crash    *simulator.CrashError // set if the scenario makes the process exit
}

func (w *agentRun) nameOrTaskID() string { return cmp.Or(w.input.Name, w.task.ID) }

// digestOfTaskID returns a short digest of the task id. Lists of agents show it in brackets after the name.
func (w *agentRun) digestOfTaskID() string {
	return fmt.Sprintf("%.3x", sha256.Sum256([]byte("subagent:"+w.task.ID))) // observed with 2.1.330
}

func (w *agentRun) runOrLaunch(ctx context.Context) (executor.Result, error) {
	if w.task.Background {
		started := w.setModelAndRunStartHooks(ctx)
		ended := w.startHooks.Frames
		if ctx.Err() != nil { // the call was interrupted before the agent started
			end := w.stoppedEnd()
			w.removeOrRecordWorktree(ctx)
			w.finishRunOrTakeMessage(end)
			w.task.End(end)
			return executor.ResultOf(executor.InterruptedResult()), ctx.Err()
		}
		w.agents.options.Tasks.GoDetached(ctx, w.task, w.startConversationAndRun)
		result := executor.ResultOf(w.launchedResult(ctx))
		result.EventsBefore, result.EventsAfter = started, ended
		return result, nil
	}
	end, err := w.runTaskToEnd(ctx)
	if err != nil {
		return executor.Result{}, err
	}
	if ctx.Err() != nil {
		return executor.ResultOf(executor.InterruptedResult()), ctx.Err()
	}
	return executor.ResultOf(w.completedResult(ctx, end)), nil
}

func (w *agentRun) runTaskToEnd(ctx context.Context) (task.End, error) {
	w.task.Post(w.setModelAndRunStartHooks(ctx)...)
	t := w.task
	end := w.startConversationAndRun(ctx)
	w.agents.options.Tasks.StopCommandsEndingWithAgent(t.ID)
	if !executor.IsProcessEnding(ctx) {
		t.End(end)
	}
	if w.crash != nil {
		return end, w.crash
	}
	return end, nil
}

// setModelAndRunStartHooks sets the agent's model and runs its SubagentStart hooks. It returns their hook_started
// events, if shown. Their other events follow the prompt or, for a background agent, the result of the call.
func (w *agentRun) setModelAndRunStartHooks(ctx context.Context) (started []protocol.Event) {
	w.model = claudecode.ResolveModel(w.effectiveModelName())
	if w.definition.Hooks != nil {
		w.agents.options.Skills.SetAgentHooks(w.task.ID, w.definition.Hooks)
	}
	ctx = hook.WithHookStartedCallback(ctx, func(frames []protocol.Event) { started = frames })
	w.startHooks = w.runHooks(ctx, protocol.SubagentStartHookInput{AgentType: w.task.AgentType})
	w.task.Post(w.startHooks.Notices...)
	if !w.agents.options.Session.Options().Display.HookEvents {
		return nil
	}
	return started
}

// modeOverride returns the permission mode of the agent; empty means the mode of the session.
func (w *agentRun) modeOverride() protocol.PermissionMode {
	switch o := w.agents.options.Session.Options(); {
	case o.Location == nil, o.Location.Mode() == protocol.ModeAcceptEdits, o.Location.Mode() == protocol.ModeAuto, o.Location.Mode() == protocol.ModeBypass:
		return ""
	}
	return w.definition.Mode
}

func (w *agentRun) effectiveModelName() string {
	name, ofSession := cmp.Or(w.input.Model, w.definition.Model, w.agents.options.Model, "inherit"), w.agents.options.Session.Options().State.NextRequestModel()
	if name == "inherit" || claudecode.IsFamilyAliasOfModel(name, ofSession) {
		return ofSession
	}
	return w.agents.options.Models.ModelNameAfterOverrides(name)
}

func (w *agentRun) startConversationAndRun(ctx context.Context) task.End {
	options := w.simulatorOptions()
	skills := w.preloadSkills(ctx, &options)
	sim, err := simulator.New(options)
	if err != nil {
		end := w.failureEnd(err.Error())
		w.removeOrRecordWorktree(ctx)
		w.finishRunOrTakeMessage(end)
		return end
	}
	w.agents.mu.Lock()
	w.simulator = sim
	w.agents.mu.Unlock()
	prompt := w.newPromptEventWithStartHooks(w.input.Prompt)
	prompt.StartContext = append(prompt.StartContext, skills...)
	if w.task.Background {
		w.task.Post(&protocol.TranscriptOnlyEvent{Event: prompt})
	} else {
		w.postMessageHiddenIfNested(prompt)
		w.task.Post(w.startHooks.Frames...)
		simulator.LetMessageStreamContinue(ctx)
	}
	return w.runUntilNoMessage(ctx, w.input.Prompt)
}

// runUntilNoMessage runs the agent with a prompt, and then with the messages that have arrived in the meantime.
func (w *agentRun) runUntilNoMessage(ctx context.Context, text string) task.End {
	for {
		end := w.runPrompt(ctx, text)
		message, more := w.finishRunOrTakeMessage(end)
		if end.LastUsage = w.progress.unpostedUsage; !more {
			w.removeOrRecordWorktree(ctx)
			return end
		}
		if w.progress.unpostedUsage = nil; end.LastUsage != nil {
			w.task.Post(end.LastUsage)
		}
		text = w.recordMessageFromCoordinator(message)
	}
}

// finishRunOrTakeMessage records the end of a run. If the run completed and a message is waiting, it instead returns
// the message, with which the caller continues the run. A message that arrives later starts the next run.
func (w *agentRun) finishRunOrTakeMessage(end task.End) (message string, hasMessage bool) {
	w.agents.mu.Lock()
	defer w.agents.mu.Unlock()
	if len(w.undeliveredMessages) > 0 && end.Status == task.StatusCompleted {
		message, w.undeliveredMessages = w.undeliveredMessages[0], w.undeliveredMessages[1:]
		return message, true
	}
	w.isRunning, w.status = false, end.Status
	if w.definition.Hooks != nil {
		w.agents.options.Skills.SetAgentHooks(w.task.ID, nil)
	}
	return "", false
}

const messageOrigin = `{"kind":"coordinator"}`

func promptWithMessage(message string) string {
	return "The coordinator sent a message while you were working:\n" + message + "\n\nAddress this before completing your current task."
}

// recordMessageFromCoordinator records a message of SendMessage in the agent's transcript, and returns the prompt that contains it.
func (w *agentRun) recordMessageFromCoordinator(message string) (prompt string) {
	w.recordPromptOfCLI(promptWithMessage(message), json.RawMessage(messageOrigin))
	return promptWithMessage(message)
}

// recordPromptOfCLI records, in the agent's transcript only, a prompt that the CLI writes.
func (w *agentRun) recordPromptOfCLI(text string, origin json.RawMessage) {
	ev := &protocol.UserEvent{Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: text}}, IsSynthetic: true, Origin: origin}
	w.setUserAgentFields(ev)
	w.task.Post(&protocol.TranscriptOnlyEvent{Event: ev})
}

func (w *agentRun) runPrompt(ctx context.Context, text string) task.End {
	prompt := protocol.UserMessage{Content: protocol.Content{Text: text}}
	for blocks := 0; ; blocks++ {
		if err := w.runTurn(ctx, w.simulator, prompt); err != nil {
			return w.failureEnd(err.Error())
		}
		if ctx.Err() != nil {
			return w.stoppedEnd()
		}
		if w.progress.lastResult.IsError {
			break // SubagentStop hooks run neither after an API error nor at the turn limit (observed with 2.1.330)
		}
		feedback, again := w.runSubagentStopHooks(ctx, blocks)
		if !again {
			break
		}
		prompt = protocol.UserMessage{Content: protocol.Content{Text: feedback}, Source: "system"}
	}
	if text := w.progress.notesAndReportAsText(w.definition.MaxTurns); text != "" {
		_, _ = w.task.Write([]byte(text + "\n")) // writing to a task cannot fail
	}
	if w.progress.lastResult.IsError && w.progress.lastResult.Subtype != maxTurnsSubtype {
		return w.modelFailureEnd()
	}
	end := task.End{Status: task.StatusCompleted, Summary: w.agentEndNoticeText(""), Usage: w.progress.currentUsage(w.task)}
	if w.task.Background {
		end.Report, end.ToolsUsed = w.progress.notesAndReportAsText(w.definition.MaxTurns), w.takeLineOfToolsNewToCaller()
	}
	return end
}

// resumeFinishedAgent continues an agent that has finished, as another run of its task.
func (w *agentRun) resumeFinishedAgent(ctx context.Context, toolUseID, message string) {
	t := w.agents.options.Tasks.Start(task.Info{
		ID: w.task.ID, Kind: task.KindAgent, ToolUseID: toolUseID, Description: w.task.Description, AgentType: w.task.AgentType, Prompt: message,
		Depth: w.task.Depth, ParentID: w.task.ParentID, Background: true,
	})
	w.agents.mu.Lock()
	w.task = t
	w.agents.mu.Unlock()
	w.progress = runProgress{}
	w.agents.options.Tasks.GoDetached(ctx, t, func(ctx context.Context) task.End {
		return w.runUntilNoMessage(ctx, w.recordMessageFromCoordinator(message))
	})
}

func (w *agentRun) simulatorOptions() simulator.Options {
	s := w.agents.options.Session.Options()
	state := s.State.ForAgent(w.model)
	state.SetReportedEffort(w.definition.Effort)
	ref := protocol.AgentRef{
		ID: w.task.ID, Type: w.task.AgentType, Depth: w.task.Depth, Dir: w.worktreeDir, NoPrompts: w.skillName != "" && w.startingCall.ID == "", Mode: string(w.modeOverride()), Model: state.NextRequestModel(), Effort: w.definition.Effort,
		InBackground: w.task.Background, Searches: len(w.definition.Tools) > 0 && !w.definition.allowsTool(protocol.Tool{Name: "Bash"}),
	}
	chain := executor.Chain(s.Tools, middlewareSettingAgentOfCall(ref), middlewareRefusingExcludedTools(s.Tools), executor.RemoveTools(func(t protocol.Tool) bool { return !w.definition.allowsTool(t) }))
	return simulator.Options{
		Model: w.agents.options.Models.AgentModel(w.script), Tools: agentToolbox{chain, s.Tools, ref, w}, Hooks: s.Hooks, Clock: clockMarkingAgentAsWaiting{s.Clock, w},
		State: state, Location: s.Location, System: w.definition.Prompt, Agent: &ref, StartContext: append(w.promptContext, w.startHooks.AdditionalContext...),
		Limits:  simulator.Limits{MaxTurns: w.definition.MaxTurns, Retries: s.Limits.Retries, RetryScale: s.Limits.RetryScale, FallbackModels: s.Limits.FallbackModels, GatewayHost: s.Limits.GatewayHost, IsSandbox: s.Limits.IsSandbox, DescribesJSON: s.Limits.DescribesJSON},
		Display: simulator.DisplayOptions{HookEvents: s.Display.HookEvents, ChangedInput: s.Display.ChangedInput, OrderedResults: s.Display.OrderedResults, Thinking: s.Display.Thinking, Stream: s.Display.Stream},
	}
}

// clockMarkingAgentAsWaiting is the clock of an agent. While it sleeps, the agent's task counts as waiting.
type clockMarkingAgentAsWaiting struct {
	simulator.ClockWithIDs
	run *agentRun
}

func (c clockMarkingAgentAsWaiting) Sleep(ctx context.Context, d time.Duration) error {
	return c.run.task.WhileWaiting(func() error { return c.ClockWithIDs.Sleep(ctx, d) })
}

func (w *agentRun) runTurn(ctx context.Context, sim *simulator.Simulator, prompt protocol.UserMessage) error {
	w.progress.lastResult, w.progress.lastError = nil, nil
	for ev, err := range sim.RunTurn(ctx, prompt) {
		if err != nil {
			if crash, ok := errors.AsType[*simulator.CrashError](err); ok {
				w.crash = crash
			}
			return err
		}
		if answer, ok := ev.(*protocol.UserEvent); ok && ctx.Err() != nil && !executor.IsProcessEnding(ctx) && !w.task.ShowsEventsAfterEnd() {
			w.setUserAgentFields(answer)
			w.task.Post(&protocol.TranscriptOnlyEvent{Event: answer}) // after an interrupt, stdout does not show the results of the agent's calls
			continue
		}
		w.forwardEvent(ctx, ev)
		switch ev.(type) {
		case *protocol.AssistantEvent, *protocol.SystemEvent, *protocol.AgentUsage:
			w.task.WaitUntilPostedEventsShown(ctx) // hooks and questions of a call follow the call
		}
	}
	if w.progress.lastResult == nil {
		return errors.New("the subagent ended without a result")
	}
	return nil
}

func (w *agentRun) forwardEvent(ctx context.Context, ev protocol.Event) {
	if frame, ok := ev.(*protocol.SystemEvent); ok && frame.Subtype == "hook_started" && len(w.heldCalls) > 0 {
		w.showHeldCalls(1, frame)
		return
	}
	switch ev.(type) {
	case *protocol.AssistantEvent, *protocol.AgentUsage:
	default:
		w.showHeldCalls(len(w.heldCalls))
	}
	switch ev := ev.(type) {
	case *protocol.AssistantEvent:
		w.postReplyBlock(ctx, ev)
	case *protocol.TranscriptOnlyEvent:
		if said, ok := ev.Event.(*protocol.AssistantEvent); ok {
			w.setReplyAgentFields(said)
			w.progress.recordReply(said, w.agents.options.Session.Options().Display.Stream)
			w.task.Post(ev)
		}
	case *protocol.UserEvent:
		w.setUserAgentFields(ev)
		if (ev.IsSynthetic || ev.SourceUUID == "") && !w.task.ShowsEventsAfterEnd() { // of the user events of an agent, stdout shows only results of calls
			w.task.Post(&protocol.TranscriptOnlyEvent{Event: ev})
			return
		}
		if _, failed := ev.ToolUseResult.(string); !failed && ev.Tool != "Skill" && !w.agents.options.IsTerminal { // the structured result is shown only if it is an error
			ev.ToolUseResult = nil
		}
		w.postMessageHiddenIfNested(ev)
		w.sendMessagesToMain()
	case *protocol.ToolExecuted:
		w.progress.tools.countCall(ev)
		w.task.Post(ev)
	case *protocol.ResultEvent:
		w.progress.unpostedUsage = &protocol.AgentUsage{Models: *ev.ModelUsageSince, APIMS: w.progress.recordResult(ev)}
	case *protocol.SystemEvent:
		if ev.Subtype != "thinking_tokens" {
			w.task.Post(ev)
		}
	case *protocol.APIRetryEvent:
		w.task.Post(&protocol.RequestRepeated{AgentID: w.task.ID})
		w.reportForegroundRetryAsProgress(ev)
	case *protocol.PermissionDeniedEvent, *protocol.AttachmentAdded, *protocol.RequestRepeated, *protocol.RuleMatchOutcome, *protocol.StderrWarning, *protocol.AgentUsage:
		setAgentID(ev, w.task.ID)
		w.task.Post(ev)
	}
}

func setAgentID(ev protocol.Event, id string) {
	switch ev := ev.(type) {
	case *protocol.PermissionDeniedEvent:
		ev.AgentID = id
	case *protocol.AttachmentAdded:
		ev.AgentID = id
	case *protocol.RequestRepeated:
		ev.AgentID = id
	case *protocol.RuleMatchOutcome:
		ev.AgentID = id
	}
}

// reportForegroundRetryAsProgress reports that the model retries a request of a foreground agent, as progress of the Agent call
// that waits for it. Retries of background agents are not reported (observed with 2.1.329).
func (w *agentRun) reportForegroundRetryAsProgress(apiRetry *protocol.APIRetryEvent) {
	if w.task.Background {
		return
	}
	retry := map[string]any{"agent_id": w.task.ID, "attempt": apiRetry.Attempt, "max_retries": apiRetry.MaxRetries, "retry_delay_ms": apiRetry.RetryDelayMS, "error_status": apiRetry.ErrorStatus, "error_category": apiRetry.Error}
	progress := func(more ...protocol.Field) *protocol.Frame {
		return &protocol.Frame{Type: "tool_progress", Fields: append([]protocol.Field{
			{Key: "tool_use_id", Value: "agent_" + w.callerToolUseID},
			{Key: "tool_name", Value: "Agent"},
			{Key: "parent_tool_use_id", Value: w.callerToolUseID},
			{Key: "elapsed_time_seconds", Value: 0},
			{Key: "subagent_type", Value: w.task.AgentType},
		}, more...)}
	}
	w.task.Post(progress(protocol.Field{Key: "subagent_retry", Value: retry}), progress())
}

// postReplyBlock shows one block of a reply. Texts of foreground agents are hidden unless the session shows the texts of
// agents (spec: cli-contract 9.5).
func (w *agentRun) postReplyBlock(ctx context.Context, replyBlock *protocol.AssistantEvent) {
	w.progress.recordReply(replyBlock, w.agents.options.Session.Options().Display.Stream)
	w.setReplyAgentFields(replyBlock)
	if use, ok := replyBlock.Message.Content[0].(protocol.ToolUse); ok {
		w.heldCalls = append(w.heldCalls, heldCall{replyBlock, use, w.progress.recordCallStart(w.task)})
		if w.task.InBackground() || !w.showsHookStartBeforeCall(ctx, use) {
			w.showHeldCalls(len(w.heldCalls))
		}
		return
	}
	w.showHeldCalls(len(w.heldCalls))
	if w.task.InBackground() || w.agents.options.Session.ShowsTextOfAwaitedAgents() {
		w.postMessageHiddenIfNested(replyBlock)
		return
	}
	w.task.Post(&protocol.TranscriptOnlyEvent{Event: replyBlock})
}

// postMessageHiddenIfNested shows a message of the agent. It hides messages of an agent for which another agent waits,
// unless the session shows the texts of agents (observed with 2.1.330).
func (w *agentRun) postMessageHiddenIfNested(message protocol.Event) {
	if w.task.Depth > 1 && !w.task.Background && !w.agents.options.Session.ShowsTextOfAwaitedAgents() {
		message = &protocol.TranscriptOnlyEvent{Event: message}
	}
	w.task.Post(message)
}

func (w *agentRun) setReplyAgentFields(ev *protocol.AssistantEvent) {
	ev.ParentToolUseID = new(w.callerToolUseID)
	ev.AgentID, ev.SubagentType, ev.TaskDescription = w.task.ID, w.task.AgentType, w.input.Description
	ev.ThinkingDisplay, ev.ThinkingDurationMS, ev.APIErrorStatus = "", nil, 0
}

// preloadSkills adds the skills of the agent's definition to the options. The returned events record them in the transcript.
func (w *agentRun) preloadSkills(ctx context.Context, options *simulator.Options) (events []protocol.Event) {
	for _, name := range w.definition.Skills {
		text, ok := w.agents.options.Skills.Preload(ctx, name)
		if !ok {
			continue
		}
		options.StartContext = append(options.StartContext, strings.TrimSpace(text))
		events = append(events, &protocol.UserEvent{Message: protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: []protocol.Block{
			protocol.Text("<command-message>" + name + "</command-message>\n<command-name>" + name + "</command-name>\n<skill-format>true</skill-format>"), protocol.Text(text),
		}}}})
	}
	return events
}

func (w *agentRun) newPromptEventWithStartHooks(text string) *protocol.UserEvent {
	ev := &protocol.UserEvent{Message: protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: []protocol.Block{protocol.Text(text)}}}}
	if w.skillName != "" {
		ev.Expansion = &protocol.ExpandedCommand{Name: w.skillName}
	}
	ev.StartContext, w.startHooks.Attachments = w.startHooks.AttachmentEvents(), nil
	w.setUserAgentFields(ev)
	return ev
}

func (w *agentRun) setUserAgentFields(ev *protocol.UserEvent) {
	ev.ParentToolUseID = new(w.callerToolUseID)
	ev.AgentID, ev.SubagentType, ev.TaskDescription = w.task.ID, w.task.AgentType, w.input.Description
}

func (w *agentRun) runSubagentStopHooks(ctx context.Context, blocksSoFar int) (feedback string, continueRun bool) {
	out := w.runHooks(ctx, protocol.SubagentStopHookInput{AgentType: w.task.AgentType, StopHookActive: blocksSoFar > 0, AgentTranscriptPath: w.transcriptPath(), LastAssistantMessage: w.progress.answerOrErrorText(), BackgroundTasks: task.ForHooks(w.agents.options.Tasks)})
	feedback = strings.Join(out.AdditionalContext, "\n")
	w.task.Post(append(out.Frames, out.Notices...)...)
	if out.Block {
		feedback = strings.Join(out.Texts, "\n")
		w.recordPromptOfCLI(feedback, nil)
	}
	for _, ev := range out.AttachmentEvents() {
		w.forwardEvent(ctx, ev)
	}
	if hooks := w.agents.options.Session.Options().Hooks; hooks != nil && hooks.Has("SubagentStop") {
		w.progress.unpostedUsage.BeforeAwaitedWork = w.task.Depth == 1 && !w.task.Background
		w.task.Post(w.progress.unpostedUsage)
		w.progress.unpostedUsage = nil
		w.task.WaitUntilPostedEventsShown(ctx)
	}
	return feedback, feedback != "" && !out.StopTurn && blocksSoFar < maxConsecutiveSubagentStopBlocks
}

func (w *agentRun) runHooks(ctx context.Context, in protocol.HookInput) hook.Outcome {
	o := w.agents.options.Session.Options()
	event, _ := protocol.HookEvent(in)
	if o.Hooks == nil || !o.Hooks.Has(event) {
		return hook.Outcome{}
	}
	w.task.WaitUntilPostedEventsShown(ctx)
	now := o.State.SessionStateSnapshot()
	base := protocol.HookBase{SessionID: now.SessionID, TranscriptPath: now.TranscriptPath, PromptID: now.PromptID, AgentID: w.task.ID, AgentType: w.task.AgentType}
	if o.Location != nil {
		base.CWD = cmp.Or(w.worktreeDir, o.Location.Dir())
	}
	if event == "SubagentStop" {
		if o.Location != nil {
			base.PermissionMode = cmp.Or(w.modeOverride(), o.Location.Mode())
		}
		now.Effort = cmp.Or(w.definition.Effort, now.Effort)
		base.Effort = now.HookEffort()
	}
	out := o.Hooks.Run(ctx, hook.EventInput{Base: base, Event: in})
	if !o.Display.HookEvents {
		out.Frames = nil
	}
	return out
}

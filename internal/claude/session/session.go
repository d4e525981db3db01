// Package session assembles a session from a plan: MCP servers, permissions, hooks, tools, records and background work,
// and the simulator that plays its turns.
//
// Each part has its own state and lock. No goroutine or process runs before [Session.Start] or after [Session.Close].
package session

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/command"
	"github.com/claudeless/claudeless/simulator/outputschema"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
	"github.com/claudeless/claudeless/simulator/task"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// Causes with which a terminal cancels a turn's context. A call interrupted by a key has the same result as after a signal.
var (
	ErrWithdrawn        = simulator.ErrWithdrawn
	ErrInterruptedByKey = simulator.ErrSignalled
	ErrSuperseded       = simulator.ErrSuperseded
)

// Events are the events of a session in order; an error is the last item.
type Events = iter.Seq2[protocol.Event, error]

// Session is one session. Its methods may be called from several goroutines, but only one turn runs at a time.
type Session struct {
	plan         launch.Plan
	state        *simulator.SessionState
	records      *recorder
	servers      *sessionMCPServers
	policy       *permissionPolicy
	hooks        *sessionHooks
	library      *skillLibrary
	tools        *toolbox
	background   *backgroundTasksAndAgents
	context      *sessionContext
	conversation *conversation
}

// conversation holds the simulator and the data that is recorded between its turns.
type conversation struct {
	records               *recorder
	causeOfCancelledStart func() error // returns why the context of Start was cancelled, or nil if it was not

	delayedResults []*protocol.ResultEvent // used only by the running turn

	mu                 sync.Mutex // guards the following fields
	simulator          *simulator.Simulator
	costAfterLastTurn  slash.Cost // costs at the end of the last turn
	changesAtTurnEnd   []func()   // changes of the transcript that wait for the end of the turn
	changesAtNextEvent []func()   // changes of the transcript that wait for the next event
}

// Open builds the parts of a session, but starts none of them; see [Session.Start]. If a part
// cannot be built, Open closes the logs and returns the error. host may be nil.
func Open(plan launch.Plan, host Host) (*Session, error) {
	s := &Session{plan: plan, state: &simulator.SessionState{}, tools: &toolbox{}}
	s.context = &sessionContext{plan: plan, state: s.state, tools: s.tools}
	var err error
	if s.records, err = openTranscriptAndRestoreScenario(plan, s.context); err != nil {
		return nil, err
	}
	s.context.records = s.records
	s.conversation = &conversation{records: s.records, causeOfCancelledStart: func() error { return nil }}
	s.context.spentUSD = func() float64 { return s.conversation.simulator.SpentUSDInProcess() }
	s.state.BeginConversation(s.records.ID(), s.records.transcript.Path())
	s.state.SetModelAndClearTurnModel(s.plan.Model.Name)
	if last := s.records.transcript.PreviousReply(); last != nil && !plan.Model.IsExplicit {
		s.state.SetModelAndClearTurnModel(last.Model)
	}
	s.state.SetReportedEffort(s.plan.Model.Effort)
	s.state.SetThinking(s.plan.Model.Thinking)
	s.state.SetOutputStyle(s.plan.Settings.OutputStyleName())
	s.state.SetTitle(cmp.Or(s.plan.Customization.Title, s.records.transcript.Title()))
	if err := s.buildParts(host); err != nil {
		s.records.stopTelemetryAndCloseLogs()
		return nil, err
	}
	return s, nil
}

func (s *Session) buildParts(host Host) error {
	plan := s.plan
	s.servers = newSessionMCPServers(plan, s.state, host, s.records)
	var err error
	if s.policy, err = newPermissionPolicy(plan, s.tools, s.servers); err != nil {
		return err
	}
	expectsMCP := slices.ContainsFunc(plan.Scenario.Expect, func(x scenarios.Expectation) bool { return x.MCP != nil })
	elicit := func(ctx context.Context, q mcp.ElicitRequest) mcp.ElicitAnswer {
		return s.hooks.answerElicitation(ctx, q, s.servers.requestAnswerer)
	}
	if err := s.servers.createManager(s.policy.WorkingDirectories(), plan.Records.Capture != "" || expectsMCP, elicit); err != nil {
		return err
	}
	s.hooks = newSessionHooks(plan, s.state, s.tools, s.policy)
	s.library = &skillLibrary{catalog: plan.Catalog, profile: plan.Profile, policy: s.policy, hooks: s.hooks, shell: s.tools, state: s.state}
	s.background = newBackgroundTasksAndAgents(plan, s.state, s.policy, s.tools, s.library)
	parts := toolboxDependencies{host: host, state: s.state, hooks: s.hooks, library: s.library, background: s.background}
	if err := s.tools.createToolsAndMiddleware(plan, parts, s.servers, s.policy); err != nil {
		return err
	}
	if err := s.rebuildSimulator(plan.Prompt); err != nil {
		return err
	}
	s.conversation.copyCostFromSimulator()
	return s.records.openJournalAndDebugLog(plan)
}

func (s *Session) rebuildSimulator(prompt launch.SystemPromptAndSchema) error {
	o, err := s.buildOptionsAndArmFault(prompt)
	if err != nil {
		return err
	}
	sim, err := simulator.New(o)
	if err != nil {
		return err
	}
	s.background.options = o
	s.conversation.replaceSimulator(sim)
	return nil
}

func (s *Session) buildOptionsAndArmFault(prompt launch.SystemPromptAndSchema) (simulator.Options, error) {
	plan, t := s.plan, s.records.transcript
	o := simulator.Options{
		Model: s.background.model.ArmFaultAndSelectMainModel(), Tools: s.tools, Hooks: s.hooks.Runner, Clock: plan.Clock, Rand: plan.Clock.NewRandFromRunSeed(),
		State: s.state, Location: s.tools, System: prompt.System + prompt.Append, StartContext: t.UnansweredHookOutputs(),
		Limits: simulator.Limits{
			MaxTurns: plan.Limits.MaxTurns, BudgetUSD: plan.Limits.MaxBudgetUSD, Retries: plan.Limits.MaxRetries, RetryScale: plan.Limits.RetryScale,
			FallbackModels: plan.Model.Fallbacks, MaxStopBlocks: plan.Limits.StopBlockCap, SchemaAttempts: prompt.SchemaAttempts,
			ContextWindow: plan.Limits.ContextWindow, DisableAutoCompact: plan.Limits.NoAutoCompact, DisableCompactCommand: plan.Limits.NoCompactCommand, GatewayHost: plan.Limits.GatewayHost, IsSandbox: plan.Limits.IsSandbox, DescribesJSON: plan.Profile.Has(claudecode.FeatureInvalidJSONReportedAsMalformedResponse),
		},
		Display: simulator.DisplayOptions{
			PartialMessages: plan.Output.PartialMessages, ReplayPrompts: plan.Output.ReplayPrompts, HookEvents: plan.Output.HookEvents, ChangedInput: plan.Profile.Has(claudecode.FeatureResultsReportChangedInputAndRemedies), LegacyCost: plan.RustCompat, RateLimits: plan.Profile.Environment().Credential == claudecode.CredentialOAuth, OrderedResults: plan.Clock.IsReproducible(),
			Thinking: plan.Output.ThinkingDisplay, Stream: plan.Scenario.Stream, ResponseDelay: plan.Limits.ResponseDelay, MinimumDelay: plan.Limits.Pace.Answer, CompactDelay: plan.Limits.CompactDelay,
		},
		Main: &simulator.MainOptions{
			Start: simulator.SessionOrigin{
				Resumed: t.Resumed(), Forked: plan.Transcript.Fork && t.Resumed(), Setup: plan.Customization.Setup, Agent: plan.Customization.Agent,
				Title: t.Title(), HookTexts: t.SessionStartHookOutputs(), CustomizationsDisabled: plan.Customization.AllDisabled() || plan.Settings.DisableAllHooks, PreviousReply: t.PreviousReply(), UnansweredPrompts: t.UnansweredPrompts(), Continue: plan.Transcript.Continue && t.Resumed() && !plan.Transcript.Fork, Instructions: instructionsLoadedHookInputs(plan.Customization.InstructionFiles),
			},
			Context: s.context, Transcript: queueFlushingTranscript{t, s.conversation, s.servers.requestAnswerer.host}, Tasks: s.background.tasks, Commands: slashCommands(s), Costs: t.PreviousModelUsage(),
		},
	}
	o.Display.FastModeState, o.Display.FastModeDisabledReason = plan.Profile.FastMode(plan.Model.Name)
	if host := s.servers.requestAnswerer.host; host != nil {
		o.Main.Prompts = host
	}
	if !plan.Customization.Bare {
		o.Main.Mentions = mentionedFileReader{s.tools, s.background.tasks, plan.CWD, plan.Home}
	}
	if use, message, ok := t.DeferredCall(); ok {
		o.Main.Deferred = &simulator.DeferredCall{Use: use, Message: message}
	}
	if prompt.Schema == "" {
		return o, nil
	}
	schema, err := outputschema.CompileJSONSchemaFlag(prompt.Schema)
	o.Main.Schema = schema
	return o, err
}

func slashCommands(s *Session) *command.Set {
	return command.New(command.Options{
		State: s.state, Servers: s.servers.manager, Catalog: s.plan.Catalog, Rules: s.policy, Session: s.records, Models: s.plan.Model.Aliases, Shell: s.tools, Agents: s.background, Context: s.context, InstructionFiles: s.plan.Customization.InstructionFiles, Disabled: s.plan.Customization.NoCommands,
	})
}

// Start waits for the plan's Limits.Pace.Start, a simulated start-up time. Then it connects the servers, and tells the
// breakpoints and the debugger which tools exist. With a host, the servers connect in the background;
// [Session.WaitUntilTurnMayStart] waits for them. After ctx is cancelled, the session yields no more results.
func (s *Session) Start(ctx context.Context) error {
	if s.plan.Entrypoint != "cli" {
		fmt.Fprint(s.plan.Stderr, runAPIKeyHelperReportFailure(ctx, s.plan))
	}
	s.conversation.causeOfCancelledStart = func() error { return context.Cause(ctx) }
	if err := s.plan.Clock.Sleep(ctx, s.plan.Limits.Pace.Start); err != nil {
		return err
	}
	s.records.telemetry = startTelemetryIfEnabled(ctx, s.plan, s.records.transcript, s.state, s.hooks.Runner)
	if s.servers.requestAnswerer.host != nil {
		return s.servers.startInBackground(ctx)
	}
	if err := s.servers.startAndWaitUntilSettled(ctx); err != nil {
		return err
	}
	return s.tools.breakpointGates.sendToolsToGates(ctx, s.tools)
}

func (c *conversation) replaceSimulator(sim *simulator.Simulator) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.simulator = sim
}

// lockSimulatorForQuery returns the simulator for queries between turns and prevents its replacement until release is called.
func (c *conversation) lockSimulatorForQuery() (sim *simulator.Simulator, release func()) {
	c.mu.Lock()
	return c.simulator, c.mu.Unlock
}

// queueUntilNextTurnBoundary delays a change of the transcript until a turn begins or ends, or the session is closed.
func (c *conversation) queueUntilNextTurnBoundary(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changesAtTurnEnd = append(c.changesAtTurnEnd, change)
}

func (c *conversation) applyPendingTranscriptChanges() {
	c.runTranscriptChanges(&c.changesAtNextEvent)
	c.runTranscriptChanges(&c.changesAtTurnEnd)
}

func (c *conversation) runTranscriptChanges(changes *[]func()) {
	c.mu.Lock()
	writes := *changes
	*changes = nil
	c.mu.Unlock()
	for _, write := range writes {
		write()
	}
}

// queueFlushingTranscript is a transcript that, before it records an event, applies the changes queued by [DeferRecordUntilNextEvent].
type queueFlushingTranscript struct {
	*transcript.Transcript
	conversation *conversation
	host         Host // if it has a method RecordDequeuedBeforeFinalReply, it is called before a reply without calls is recorded
}

// Reset begins a new conversation, whose prompts are counted from 1.
func (t queueFlushingTranscript) Reset() (id, path string, err error) {
	t.conversation.records.scenario.SetPromptCount(0)
	return t.Transcript.Reset()
}

func (t queueFlushingTranscript) Record(ev protocol.Event) error {
	if t.conversation.causeOfCancelledStart() != nil {
		return nil // after a signal, the transcript gets only its closing lines
	}
	queue, isQueue := t.host.(interface{ RecordDequeuedBeforeFinalReply() })
	if a, ok := ev.(*protocol.AssistantEvent); isQueue && ok && a.ParentToolUseID == nil && a.Final != nil && len(a.Final.Calls) == 0 {
		queue.RecordDequeuedBeforeFinalReply()
	}
	t.conversation.runTranscriptChanges(&t.conversation.changesAtNextEvent)
	return t.Transcript.Record(ev)
}

func (c *conversation) copyCostFromSimulator() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.costAfterLastTurn = c.simulator.Cost()
}

// PromptToRunDeferredCall returns the prompt that runs the call deferred by an earlier process; false means no such call.
func (s *Session) PromptToRunDeferredCall() (prompt protocol.UserMessage, hasDeferredCall bool) {
	return s.conversation.simulator.DeferredPrompt()
}

// Turn runs one prompt. If ctx is cancelled, the turn still ends with a result.
func (s *Session) Turn(ctx context.Context, in protocol.UserMessage) Events {
	return func(yield func(protocol.Event, error) bool) {
		s.conversation.applyPendingTranscriptChanges()
		defer s.conversation.copyCostFromSimulator()
		defer s.conversation.applyPendingTranscriptChanges()
		s.recordAndYieldEvents(delayResultsWhileAgentsWork(s, s.conversation.simulator.RunTurn(ctx, in)))(yield)
	}
}

// PlayTurnsAndBackgroundWork runs one turn for each prompt and then waits for the background work of these turns. A prompt that has an
// id also gets lifecycle events: started and completed.
func (s *Session) PlayTurnsAndBackgroundWork(ctx context.Context, prompts []protocol.UserMessage) Events {
	var all []Events
	for _, in := range prompts {
		turn := delayResultsWhileAgentsWork(s, s.conversation.simulator.RunTurn(ctx, in))
		all = append(all, s.records.promptLifecycleEvents(in, "started"), turn, s.records.promptLifecycleEvents(in, "completed"))
	}
	all = append(all, backgroundWorkAndItsTurns(ctx, s), turnsOfWakeups(ctx, s))
	return s.recordAndYieldEvents(concatEvents(all...))
}

// concatEvents yields the events of each part until an error.
func concatEvents(parts ...Events) Events {
	return func(yield func(protocol.Event, error) bool) {
		for _, events := range parts {
			for ev, err := range events {
				if !yield(ev, err) || err != nil {
					return
				}
			}
		}
	}
}

func backgroundWorkAndItsTurns(ctx context.Context, s *Session) Events {
	return concatEvents(delayResultsWhileAgentsWork(s, s.conversation.simulator.WaitForBackgroundAndItsTurns(ctx, s.plan.Limits.BackgroundLimit)), takeDelayedResults(s))
}

// turnsOfWakeups waits for each wake-up that the model has scheduled and then runs a turn with its prompt (observed with 2.1.330).
func turnsOfWakeups(ctx context.Context, s *Session) Events {
	return func(yield func(protocol.Event, error) bool) {
		for {
			job, ok := task.NextWakeup(s.background.tasks)
			if !ok || s.plan.Clock.WaitOrJumpTo(ctx, job.At) != nil {
				return
			}
			s.background.tasks.RemoveJobs(func(j task.Job) bool { return j.ID == job.ID })
			in := protocol.UserMessage{Content: protocol.Content{Text: job.Prompt}, UUID: s.plan.Clock.NewID(), Source: protocol.PromptSourceWakeup, Verbatim: true}
			reported := protocol.UserMessage{UUIDs: []string{in.UUID}}
			started := s.records.promptLifecycleEvents(reported, "started", protocol.Field{Key: "wakeup_source", Value: in.Source}, protocol.Field{Key: "scheduled_for", Value: job.At.UnixMilli()})
			turn := delayResultsWhileAgentsWork(s, s.conversation.simulator.RunTurn(ctx, in))
			for ev, err := range concatEvents(started, turn, s.records.promptLifecycleEvents(reported, "completed"), backgroundWorkAndItsTurns(ctx, s)) {
				if !yield(ev, err) || err != nil {
					return
				}
			}
		}
	}
}

// delayResultsWhileAgentsWork delays results while agents work in the background, as the real CLI does if no more prompts
// can arrive. Delayed results precede the next result that is not delayed; see also [TakeDelayedResultsAtSessionEnd].
func delayResultsWhileAgentsWork(s *Session, events Events) Events {
	host := s.servers.requestAnswerer.host
	return func(yield func(protocol.Event, error) bool) {
		for ev, err := range events {
			result, isResult := ev.(*protocol.ResultEvent)
			if isResult = isResult && err == nil; isResult {
				s.conversation.delayedResults = append(s.conversation.delayedResults, result)
				s.records.lastResult.Store(result)
			}
			if err != nil || isResult && (host != nil && !host.IsClosedForNewPrompts() || !s.background.tasks.HasRunningOrUnshownBackgroundAgent()) {
				for result, noErr := range takeDelayedResults(s) {
					if !yield(result, noErr) {
						return
					}
				}
			}
			if !isResult && !yield(ev, err) {
				return
			}
		}
	}
}

// TakeDelayedResultsAtSessionEnd yields the results that are still delayed when a session ends, with the total usage.
func TakeDelayedResultsAtSessionEnd(s *Session) Events {
	return s.recordAndYieldEvents(takeDelayedResults(s))
}

func takeDelayedResults(s *Session) Events {
	return func(yield func(protocol.Event, error) bool) {
		delayed := s.conversation.delayedResults
		s.conversation.delayedResults = nil
		s.conversation.simulator.RefreshTotals(delayed)
		for _, result := range delayed {
			if !yield(result, nil) {
				return
			}
		}
	}
}

// recordAndYieldEvents records and yields each event of a turn. If the context of Start is cancelled, it yields the cause instead of a result.
func (s *Session) recordAndYieldEvents(events Events) Events {
	return func(yield func(protocol.Event, error) bool) {
		for ev, err := range events {
			if _, isResult := ev.(*protocol.ResultEvent); isResult && s.conversation.causeOfCancelledStart() != nil {
				yield(nil, s.conversation.causeOfCancelledStart())
				return
			}
			if err == nil {
				s.records.recordOutsideTranscript(s.servers.callContext, ev)
				s.records.telemetry.recordEvent(ev, s.tools.Mode())
			}
			for _, frame := range takeMirrorAndAsyncHookFrames(s) {
				if !yield(frame, nil) {
					return
				}
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// Close stops everything that Start began, and warns about records that could not be written.
func (s *Session) Close(ctx context.Context) {
	s.conversation.applyPendingTranscriptChanges()
	s.background.close()
	s.tools.builtin.Close()
	s.tools.worktreeAgents.closeToolsOfAllAgents()
	for _, notice := range s.conversation.simulator.RunEndHooksAndCloseHookRunner(ctx) {
		s.records.recordOutsideTranscript(ctx, notice)
	}
	s.servers.close(ctx)
	total := &protocol.ResultEvent{SubagentStats: &protocol.SubagentCounts{}}
	s.conversation.simulator.RefreshTotals([]*protocol.ResultEvent{total})
	s.records.transcript.SetCosts(total)
	s.records.warnIfTranscriptNotSaved(s.records.transcript.Close())
	s.tools.breakpointGates.closeGatesAndWarnFailedConditions(s.records)
	s.records.stopTelemetryAndCloseLogs()
}

// TakeRemainingFrames yields the frames that follow the last turn: the last lines of the transcript (with
// --session-mirror), and the responses of asynchronous hooks that finished late.
func (s *Session) TakeRemainingFrames() Events {
	return func(yield func(protocol.Event, error) bool) {
		for _, frame := range takeMirrorAndAsyncHookFrames(s) {
			if !yield(frame, nil) {
				return
			}
		}
	}
}

// takeMirrorAndAsyncHookFrames returns the frames that have become due since its last call: copies of transcript lines (with
// --session-mirror), and responses of asynchronous hooks.
func takeMirrorAndAsyncHookFrames(s *Session) []protocol.Event {
	frames := s.records.mirror.takeFrames()
	for _, ev := range s.hooks.TakeAsyncFrames() {
		atStart := slices.ContainsFunc(ev.Fields, func(f protocol.Field) bool { return f.Value == "SessionStart" || f.Value == "Setup" })
		if s.plan.Output.HookEvents || atStart { // the condition under which hook_started is shown
			ev.SessionID, ev.UUID = s.state.SessionID(), s.plan.Clock.NewID()
			frames = append(frames, ev)
		}
	}
	return frames
}

// LastResult returns the result of the last turn, even if it is delayed; nil means none.
func (s *Session) LastResult() *protocol.ResultEvent { return s.records.lastResult.Load() }

// JudgeScenarioAndStopTelemetry compares the actions of the process with the expectations of the scenario and returns one line for
// each missed expectation. It returns none if another process does this comparison. It may be called only once.
func (s *Session) JudgeScenarioAndStopTelemetry(exitCode int) (missedExpectationLines []string) {
	if s.plan.Output.DeferVerdict {
		return nil
	}
	return s.records.stopTelemetryAndJudgeExpectations(exitCode)
}

// RunShell runs a shell command that the user typed, without a permission question. If the command
// fails, stdout is empty and stderr contains all output.
func RunShell(ctx context.Context, s *Session, command string) (stdout, stderr string) {
	if strings.HasPrefix(strings.TrimSpace(command), "sleep ") {
		command = ":\n" + command // the tool refuses commands that begin with a long sleep, but users may run them
	}
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return "", err.Error()
	}
	shell := executor.Chain(builtinCallRouter{s.tools}, executor.Canned(s.policy.cannedResults))
	result, err := shell.Execute(ctx, protocol.ToolUse{Type: "tool_use", Name: "Bash", Input: input})
	if err != nil {
		return "", err.Error()
	}
	text := result.Content.Plain()
	if result.IsError {
		if status, output, _ := strings.Cut(text, "\n"); strings.HasPrefix(status, "Exit code ") {
			text = output
		}
		return "", text
	}
	if at := strings.LastIndex(text, "\nShell cwd was reset to "); at >= 0 {
		return text[:at], text[at:]
	}
	return text, ""
}

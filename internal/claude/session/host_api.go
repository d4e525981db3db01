package session

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/claude/checkpoint"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/outputschema"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
	"github.com/claudeless/claudeless/simulator/task"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// This file has the methods for the host of a session: queries, and changes while the session runs.

// ID returns the session id in the latest init event; before the first one, the id of the transcript.
func (s *Session) ID() string {
	if shown := s.records.lastInit.Load(); shown != nil {
		return shown.SessionID
	}
	return s.records.transcript.ID()
}

// Plan returns the plan that the session started with.
func (s *Session) Plan() *launch.Plan { return &s.plan }

// State returns the state that changes while the session runs.
func (s *Session) State() *simulator.SessionState { return s.state }

// Policy returns the permission policy for tool calls.
func (s *Session) Policy() *permission.Policy { return s.policy.Policy }

// Servers returns the MCP servers.
func (s *Session) Servers() *mcp.Manager { return s.servers.manager }

// Hooks returns the runner of the session's hooks.
func (s *Session) Hooks() *hook.Runner { return s.hooks.Runner }

// Tasks returns the background tasks.
func (s *Session) Tasks() *task.Set { return s.background.tasks }

// Checkpoints returns the file checkpoints; nil means the session keeps none.
func (s *Session) Checkpoints() *checkpoint.History { return s.records.checkpoints }

// PlanModeFile returns the path of the plan-mode file and its content. path is empty if the session
// does not save plans, or has no name for a plan yet; plan is empty if no plan has been written.
func (s *Session) PlanModeFile() (path, plan string) {
	path = s.plan.PlanModeFile(s.records.transcript.PlanName())
	if text, err := os.ReadFile(path); path != "" && err == nil {
		plan = string(text)
	}
	return path, plan
}

// ShownPlanPath returns the path of the plan-mode file, with ~ for the home directory.
func ShownPlanPath(s *Session) string {
	path, _ := s.PlanModeFile()
	return homeShortened(path, s.plan.Home)
}

func homeShortened(path, home string) string {
	if rest, ok := strings.CutPrefix(path, home+"/"); ok && home != "" {
		return "~/" + rest
	}
	return path
}

// JournalAndWarningWriter returns the log of the run: warnings, hints and lines of the journal. Hints are warnings that the real CLI does
// not have; they are not written if the program runs under the name claude.
func (s *Session) JournalAndWarningWriter() journalAndWarningWriter { return s.records }

// WaitUntilTurnMayStart waits until the MCP servers have settled, so that a turn may start. It returns the error of a failed start.
func (s *Session) WaitUntilTurnMayStart(ctx context.Context) error {
	return s.servers.settleAndConnectHostServers(ctx)
}

// WaitUntilServersSettled waits until each server has connected or failed, or until the context of Start
// is cancelled. It is only for sessions with a host: without one, it never returns.
func (s *Session) WaitUntilServersSettled() { <-s.servers.lateServers.settled }

// BackgroundState reports whether background work is running or needs a turn, and whether another turn will certainly follow.
func (s *Session) BackgroundState() (busy, anotherTurnFollows bool) {
	sim, release := s.conversation.lockSimulatorForQuery()
	defer release()
	return sim.HasBackgroundWorkOrNotice(), sim.BackgroundWorkWillCauseTurn()
}

// AsyncHookFrameAdded signals that an asynchronous hook has an event for [Session.TakeRemainingFrames].
func AsyncHookFrameAdded(s *Session) <-chan struct{} { return s.hooks.AsyncFrameAdded() }

// BackgroundEventsUntilTurnNeeded yields the events of background work. It ends when work needs a turn, no work is left, or ctx is cancelled.
func (s *Session) BackgroundEventsUntilTurnNeeded(ctx context.Context) Events {
	return s.recordAndYieldEvents(s.conversation.simulator.RunBackgroundUntilNotice(ctx))
}

// RunSessionStartHooks runs the SessionStart hooks before the first turn and returns their frames.
func RunSessionStartHooks(ctx context.Context, s *Session) []protocol.Event {
	return simulator.RunSessionStartHooksEarly(ctx, s.conversation.simulator)
}

// RunSetupAndSessionStartHooks runs the Setup and SessionStart hooks of a session without turns.
func RunSetupAndSessionStartHooks(ctx context.Context, s *Session) {
	simulator.RunSetupAndSessionStartHooks(ctx, s.conversation.simulator)
}

// TakePromptAboutBackgroundWork returns the prompt for a turn that is needed because of background work, or false if no turn is needed.
func (s *Session) TakePromptAboutBackgroundWork() (protocol.UserMessage, bool) {
	return s.conversation.simulator.TakeNextNotice()
}

// HostFlagOverrides has options that a host may set, instead of flags, before the first turn.
type HostFlagOverrides struct {
	SystemPrompt *string // nil means unchanged
	AppendPrompt string  // empty means unchanged
	Schema       string  // JSON Schema of the structured output; an invalid one is ignored
	ToolAliases  map[string]string
}

// ConfigureBeforeFirstTurn applies the options that a host sets before the first turn.
func (s *Session) ConfigureBeforeFirstTurn(c HostFlagOverrides) error {
	prompt := s.plan.Prompt
	if c.SystemPrompt != nil {
		prompt.System, prompt.ReplacesSystem = *c.SystemPrompt, true
	}
	prompt.Append = cmp.Or(c.AppendPrompt, prompt.Append)
	if _, err := outputschema.CompileJSONSchemaFlag(c.Schema); err == nil {
		prompt.Schema = c.Schema
	}
	s.tools.inventory.hostSchema.Store(prompt.Schema != "" && !prompt.SchemaFlag)
	s.tools.aliases = c.ToolAliases
	s.plan.Prompt, s.context.plan.Prompt = prompt, prompt
	return s.rebuildSimulator(prompt)
}

// DefineAgentsBeforeFirstTurn adds the agents of a host. If the session's agent is one of them, its prompt, model and tools apply.
func DefineAgentsBeforeFirstTurn(s *Session, agents json.RawMessage) error {
	plan, err := s.plan.AddHostAgentsAndReplan(agents)
	if err != nil || plan.Customization.Agent == "" {
		return err
	}
	if plan.Model.Name != s.plan.Model.Name {
		s.state.SetModelAndClearTurnModel(plan.Model.Name)
	}
	s.plan, s.context.plan = plan, plan
	s.tools.inventory.plan, s.tools.inventory.customization = plan.Tools, plan.Customization
	return s.rebuildSimulator(plan.Prompt)
}

// ChangeableHostOptions are options that a host may set at any time.
type ChangeableHostOptions struct {
	AgentTexts bool     // true shows what agents say while a turn waits for them; false means unchanged
	Skills     []string // skills that the model may load; nil means unchanged
}

// ApplyHostOptions applies the options to the running session.
func (s *Session) ApplyHostOptions(o ChangeableHostOptions) {
	if o.AgentTexts {
		s.background.showAgentText.Store(true)
	}
	if o.Skills != nil {
		s.library.loadableSkills.Store(&o.Skills)
	}
}

// Transcript returns the record of the session. Its history is the conversation that the session continues.
func (s *Session) Transcript() *transcript.Transcript { return s.records.transcript }

// AddPlugins loads the plugins in these directories. For a directory whose value in withServers is true, it also adds
// the MCP servers of the plugin; [Session.ConnectHostAndPluginServers] connects these servers.
func (s *Session) AddPlugins(dirs []string, withServers map[string]bool) {
	for _, parts := range s.plan.Catalog.AddPlugins(launch.FileTreeBelowDir, dirs...) {
		if !s.hooks.hooksDisabled {
			for _, w := range s.hooks.Add(pluginHooks(parts)) {
				s.records.WarnOnStderr(w.Text)
			}
		}
		if withServers[parts.Dir] && !s.plan.Servers.NoPluginServers {
			s.servers.queuePluginServers(s.plan.PluginServers(parts))
		}
	}
}

// ConnectHostAndPluginServers connects the servers inside the host, including the named ones, and the servers of the host's plugins.
func (s *Session) ConnectHostAndPluginServers(ctx context.Context, names []string) error {
	if err := s.servers.connectServersInsideHost(ctx, names); err != nil {
		return err
	}
	return s.servers.connectPluginServers(ctx)
}

// ReplaceHostServers replaces all servers that the host has added or that run inside it with those of an mcpServers object.
func (s *Session) ReplaceHostServers(ctx context.Context, mcpServersObject json.RawMessage) (mcp.ReplaceServersResult, error) {
	return s.servers.replaceHostServers(ctx, mcpServersObject)
}

// ServerStatuses returns the status of every configured server.
func (s *Session) ServerStatuses() []mcp.ServerStatus { return s.servers.manager.Servers() }

// Rename sets the session's title. The transcript gets the title between turns.
func (s *Session) Rename(title string) {
	s.state.SetTitle(title)
	s.conversation.queueUntilNextTurnBoundary(func() { s.records.warnIfTranscriptNotSaved(s.records.transcript.SetTitle(title)) })
}

// SetTitleOfHost sets the title that the initialize request contains. Unlike [Session.Rename], it does not name the agent.
func SetTitleOfHost(s *Session, title string) {
	s.state.SetTitle(title)
	s.conversation.queueUntilNextTurnBoundary(func() { s.records.warnIfTranscriptNotSaved(s.records.transcript.SetTitleOfHost(title)) })
}

// RecordAtNextTurnBoundary adds events to the transcript when the next turn begins or ends.
func RecordAtNextTurnBoundary(s *Session, events ...protocol.Event) {
	s.conversation.queueUntilNextTurnBoundary(func() {
		for _, ev := range events {
			s.records.warnIfTranscriptNotSaved(s.records.transcript.Record(ev))
		}
	})
}

// DeferRecordUntilNextEvent adds ev to the transcript when a turn records its next event; ev precedes this event.
func DeferRecordUntilNextEvent(s *Session, ev protocol.Event) {
	s.conversation.mu.Lock()
	defer s.conversation.mu.Unlock()
	s.conversation.changesAtNextEvent = append(s.conversation.changesAtNextEvent, func() { s.records.warnIfTranscriptNotSaved(s.records.transcript.Record(ev)) })
}

// RecordQueueChange records in the transcript that the prompt queue of the terminal has changed. text is
// the prompt that was added to the queue or taken back; if it is empty, the line has no content.
func RecordQueueChange(s *Session, operation, text string) {
	line := protocol.QueueLine{Type: "queue-operation", Operation: operation, Timestamp: s.plan.Clock.Now().UTC().Format("2006-01-02T15:04:05.000Z"), SessionID: s.ID()}
	if text != "" {
		line.Content = &text
	}
	raw, _ := protocol.Marshal(line) // strings can be encoded
	DeferRecordUntilNextEvent(s, &protocol.RawTranscriptOnlyLine{Line: raw})
}

// WriteDelayedTranscriptChanges writes the changes to the transcript that were waiting for the end of a turn; see
// [RecordAtNextTurnBoundary]. It must not be called during a turn.
func WriteDelayedTranscriptChanges(s *Session) { s.conversation.applyPendingTranscriptChanges() }

// SlashCommandRecord describes a command that the terminal has run.
type SlashCommandRecord struct {
	Line          string // as typed
	Output        string
	Dismissed     bool   // the user has closed the page of the command without a choice
	IsDisplayOnly bool   // the model does not see the output
	TextForModel  string // the next request contains this text; empty means none
}

// RecordSlashCommand adds a command to the transcript.
func RecordSlashCommand(s *Session, c SlashCommandRecord) {
	call, _ := slash.Parse(c.Line)
	content := protocol.Content{Text: slash.Output(c.Output)}
	var said protocol.Event = &protocol.UserEvent{Message: protocol.UserContent{Role: "user", Content: content}}
	if c.Dismissed {
		said = &protocol.AssistantEvent{LocalCommandSource: content.Text, LocalCommandRun: &protocol.LocalCommand{Command: call.Name, Args: call.Args, IsDisplayOnly: c.IsDisplayOnly}}
	}
	RecordAtNextTurnBoundary(s, &protocol.PromptAccepted{
		UUID: s.plan.Clock.NewID(), PromptID: s.plan.Clock.NewID(), LocalCommand: true, UnknownCommand: c.Dismissed, Content: protocol.Content{Text: call.LocalCommandTags(call.Name)},
	}, said)
	if c.TextForModel != "" {
		RecordAtNextTurnBoundary(s, &protocol.PromptAccepted{UUID: s.plan.Clock.NewID(), PromptID: s.plan.Clock.NewID(), WrittenByCLI: true, Content: protocol.Content{Text: c.TextForModel}})
	}
}

// RecordUserExitInTranscript records that the user ends the session. exitCommandPromptID is the
// prompt id of the exit command; empty means that the user pressed a key.
func RecordUserExitInTranscript(s *Session, exitCommandPromptID string) {
	if h := s.records.checkpoints; h != nil && !h.HasNoBackups() {
		exitCommandPromptID = "" // with checkpoints, the real CLI does not record the command
	}
	s.conversation.queueUntilNextTurnBoundary(func() {
		s.records.warnIfTranscriptNotSaved(s.records.transcript.RecordCostsAndFilesAtExit(exitCommandPromptID))
	})
}

// Model returns the current model, as the API names it.
func (s *Session) Model() string { return claudecode.ResolveModel(s.state.NextRequestModel()) }

// SetModel changes the model. The environment may map the name to another model.
func (s *Session) SetModel(name string) {
	s.state.SetModelAndClearTurnModel(s.plan.Model.Aliases.ModelNameAfterOverrides(name))
}

// CostUntilLastTurnEnd returns the costs of the session up to the end of the last turn.
func (s *Session) CostUntilLastTurnEnd() slash.Cost {
	s.conversation.mu.Lock()
	defer s.conversation.mu.Unlock()
	return s.conversation.costAfterLastTurn
}

// ContextUsage returns how much of the context window is used, for /context.
func (s *Session) ContextUsage() slash.ContextUsage {
	sim, release := s.conversation.lockSimulatorForQuery()
	defer release()
	return sim.ContextUsage()
}

// SystemPromptAndToolTokens returns, for /context, how many tokens the system prompt and the tools of the real CLI use.
func (s *sessionContext) SystemPromptAndToolTokens() slash.LoadedContextTokens {
	offered := s.builtinToolsOfferedTo(agent.RequestingAgent{})
	model := claudecode.FactsOfModel(claudecode.ResolveModel(s.state.NextRequestModel())).Context
	l := slash.LoadedContextTokens{SystemPrompt: model.SystemPrompt, AddedByFirstRequest: model.AddedByFirstRequest}
	if s.plan.Records.Run.Interactive {
		l.SystemPrompt += claudecode.AdditionalPromptTokensOnTerminal
	}
	if s.plan.Prompt.ReplacesSystem {
		l.SystemPrompt = 0
	}
	if s.plan.Prompt.System != "" {
		l.SystemPrompt = slash.EstimateTokensOfPart(s.plan.Prompt.System)
	}
	if s.plan.Prompt.Append != "" {
		l.SystemPrompt += slash.EstimateTokensOfPart(s.plan.Prompt.Append)
	}
	switch {
	case len(offered) == 0:
	case !slices.Contains(offered, "ToolSearch"), model.DeferredTools == 0:
		l.SystemTools = model.AllTools
	default:
		l.SystemTools, l.DeferredTools = model.LoadedTools, model.DeferredTools
		if slices.Contains(offered, "EnterPlanMode") {
			l.DeferredTools += claudecode.DeferredPlanToolsTokens
		}
	}
	if slices.Contains(offered, "AskUserQuestion") {
		l.SystemTools += claudecode.AskUserQuestionTokens
	}
	if slices.Contains([]protocol.PermissionMode{protocol.ModeBypass, protocol.ModeAuto, protocol.ModePlan}, s.tools.policy.Mode()) {
		l.SystemTools = max(0, l.SystemTools-model.LessInUnattendedModes)
	}
	return l
}

// AskSideQuestion asks the scripted model a question outside the conversation; it is not recorded. If the reply is a
// failure, failureText is the text that describes it.
func (s *Session) AskSideQuestion(ctx context.Context, question string) (reply scenarios.Reply, failureText string, err error) {
	reply, err = s.records.scenario.NewSubagentEngine(nil).Next(ctx, scenarios.Request{Prompt: question})
	if err == nil {
		err = s.plan.Clock.Sleep(ctx, time.Duration(reply.DelayMS)*time.Millisecond)
	}
	if err == nil && reply.Failure != nil {
		sim, release := s.conversation.lockSimulatorForQuery()
		failureText = sim.FailureText(reply.Failure)
		release()
	}
	return reply, failureText, err
}

package session

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/claudeless/claudeless/internal/claude/checkpoint"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
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
func (s *Session) ID() string { return s.records.sessionIDOfLastInitOrTranscript() }

// Plan returns the plan that the session started with.
func (s *Session) Plan() *launch.Plan { return &s.plan }

// State returns the state that changes while the session runs.
func (s *Session) State() *simulator.SessionState { return s.state }

// Policy returns the policy that decides about calls.
func (s *Session) Policy() *permission.Policy { return s.policy.Policy }

// Servers returns the MCP servers; nil means that the session cannot have servers.
func (s *Session) Servers() *mcp.Manager { return s.servers.manager }

// Hooks returns the active hooks.
func (s *Session) Hooks() *hook.Runner { return s.hooks.Runner }

// Tasks returns the background tasks.
func (s *Session) Tasks() *task.Set { return s.background.tasks }

// Checkpoints returns the copies of files; nil means the session keeps none.
func (s *Session) Checkpoints() *checkpoint.History { return s.records.checkpoints }

// PlanFile returns the path of the file for plan mode, and the plan that it contains. path is empty if no plan is
// saved; plan is empty if none was written yet.
func (s *Session) PlanFile() (path, plan string) {
	path = s.background.planModeFilePath()
	if text, err := os.ReadFile(path); path != "" && err == nil {
		plan = string(text)
	}
	return path, plan
}

// RunLog returns the log of the run: warnings, hints and lines of the journal. Hints are warnings that the real CLI does
// not have; they are not written if the program runs under the name claude.
func (s *Session) RunLog() runLog { return s.records }

// WaitTurnReady waits until a turn may start.
func (s *Session) WaitTurnReady(ctx context.Context) error { return s.servers.waitConnected(ctx) }

// WaitServersSettled waits until each server has connected or failed, or until the context of Start is cancelled.
func (s *Session) WaitServersSettled() { <-s.servers.dynamic.settled }

// Background reports whether background work is running or needs a turn, and whether another turn is certain to follow.
func (s *Session) Background() (busy, owesTurn bool) {
	sim, release := s.conversation.lockSimulator()
	defer release()
	return sim.HasBackgroundWork(), sim.NeedsTurnAfterBackgroundWork()
}

// BackgroundEvents yields the events of background work until work needs a turn, none is left, or ctx is cancelled.
func (s *Session) BackgroundEvents(ctx context.Context) Events {
	return s.recordEvents(s.conversation.sim.BackgroundEvents(ctx))
}

// RunStartHooks runs the SessionStart hooks before the first turn and returns their frames.
func RunStartHooks(ctx context.Context, s *Session) []protocol.Event {
	return simulator.RunStartHooks(ctx, s.conversation.sim)
}

// TakeNotice returns the prompt for a turn that is needed because of background work, or false if no turn is needed.
func (s *Session) TakeNotice() (protocol.UserMessage, bool) { return s.conversation.sim.NextNotice() }

// HostConfiguration has options that a host may set, instead of flags, before the first turn.
type HostConfiguration struct {
	SystemPrompt *string // nil means unchanged
	AppendPrompt string  // empty means unchanged
	Schema       string  // JSON Schema of the structured output; an invalid one is ignored
	ToolAliases  map[string]string
}

// Configure applies the options of a host.
func (s *Session) Configure(c HostConfiguration) error {
	prompt := s.plan.Prompt
	if c.SystemPrompt != nil {
		prompt.System = *c.SystemPrompt
	}
	prompt.Append = cmp.Or(c.AppendPrompt, prompt.Append)
	if _, err := outputschema.Compile(c.Schema); err == nil {
		prompt.Schema = c.Schema
	}
	s.tools.inventory.hostSchema.Store(prompt.Schema != "" && !prompt.SchemaFlag)
	s.tools.aliases = c.ToolAliases
	s.plan.Prompt = prompt
	return s.rebuildSimulator(prompt)
}

// HostOptions are options that a host may set at any time.
type HostOptions struct {
	AgentTexts bool     // show what agents say while a turn waits for them
	Skills     []string // skills that the model may load; nil means unchanged
}

// ApplyHostOptions sets options of a host.
func (s *Session) ApplyHostOptions(o HostOptions) {
	if o.AgentTexts {
		s.background.showAgentText.Store(true)
	}
	if o.Skills != nil {
		s.library.allowed.Store(&o.Skills)
	}
}

// History returns the conversation that this session continues.
func (s *Session) History() []transcript.Message { return s.records.transcript.History() }

// AddPlugins loads the plugins in these directories. For a directory whose value in withServers is true, it also adds
// the MCP servers of the plugin; [Session.ConnectHostServers] connects these servers.
func (s *Session) AddPlugins(dirs []string, withServers map[string]bool) {
	for _, parts := range s.plan.Catalog.AddPlugins(launch.FileTreeBelowDir, dirs...) {
		if !s.hooks.disabled {
			for _, w := range s.hooks.Add(pluginHooks(parts)) {
				s.records.WarnOnStderr(w.Text)
			}
		}
		if withServers[parts.Dir] && !s.plan.Servers.NoPluginServers {
			s.servers.addPluginServers(s.plan.PluginServers(parts))
		}
	}
}

// ConnectHostServers connects the servers inside the host, including the named ones, and the servers of the host's plugins.
func (s *Session) ConnectHostServers(ctx context.Context, names []string) error {
	if err := s.servers.connectHosted(ctx, names); err != nil {
		return err
	}
	return s.servers.connectPluginServers(ctx)
}

// SetServers replaces the servers that the host has set, and all inside the host, with those of an mcpServers object.
func (s *Session) SetServers(ctx context.Context, object json.RawMessage) (mcp.ServerChange, error) {
	return s.servers.replaceHostServers(ctx, object)
}

// ServerStatuses returns the status of every configured server.
func (s *Session) ServerStatuses() []mcp.ServerStatus { return s.servers.statuses() }

// Rename sets the session's title. It is written to the transcript between turns.
func (s *Session) Rename(title string) {
	s.conversation.queueTranscriptChange(func() { s.records.SetTitle(title) })
}

// RecordInTranscriptBetweenTurns adds events to the transcript when the next turn begins or ends.
func RecordInTranscriptBetweenTurns(s *Session, events ...protocol.Event) {
	s.conversation.queueTranscriptChange(func() {
		for _, ev := range events {
			s.records.warnUnsaved(s.records.transcript.Record(ev))
		}
	})
}

// RecordSoon adds an event to the transcript, before the next event of a turn.
func RecordSoon(s *Session, ev protocol.Event) {
	s.conversation.mu.Lock()
	defer s.conversation.mu.Unlock()
	s.conversation.changesAtNextEvent = append(s.conversation.changesAtNextEvent, func() { s.records.warnUnsaved(s.records.transcript.Record(ev)) })
}

// RecordQueue adds a line about the queue of a terminal to the transcript. text is a prompt that is added or taken back.
func RecordQueue(s *Session, operation, text string) {
	line := protocol.QueueLine{Type: "queue-operation", Operation: operation, Timestamp: s.plan.Clock.Now().UTC().Format("2006-01-02T15:04:05.000Z"), SessionID: s.ID()}
	if text != "" {
		line.Content = &text
	}
	raw, _ := protocol.Marshal(line) // strings can be encoded
	RecordSoon(s, &protocol.RawTranscriptOnlyLine{Line: raw})
}

// ApplyPendingTranscriptChanges makes the changes of the transcript that wait for the end of a turn; see
// [RecordInTranscriptBetweenTurns]. No turn may run.
func ApplyPendingTranscriptChanges(s *Session) { s.conversation.applyPendingTranscriptChanges() }

// CommandRecord is a command that the terminal has run, for the transcript.
type CommandRecord struct {
	Line      string // as typed
	Output    string
	Dismissed bool // the user has closed the page of the command without a choice
}

// RecordTerminalCommandInTranscript adds a command to the transcript.
func RecordTerminalCommandInTranscript(s *Session, c CommandRecord) {
	call, _ := slash.Parse(c.Line)
	content := protocol.Content{Text: slash.Output(c.Output)}
	var said protocol.Event = &protocol.User{Message: protocol.UserContent{Role: "user", Content: content}}
	if c.Dismissed {
		said = &protocol.Assistant{LocalCommandSource: content.Text, LocalCommandRun: &protocol.LocalCommand{Command: call.Name, Args: call.Args}}
	}
	RecordInTranscriptBetweenTurns(s, &protocol.PromptAccepted{
		UUID: s.plan.Clock.NewID(), PromptID: s.plan.Clock.NewID(), LocalCommand: true, UnknownCommand: c.Dismissed, Content: protocol.Content{Text: call.LocalCommandTags(call.Name)},
	}, said)
}

// RecordUserExitInTranscript records that the user ends the session. exitCommandPromptID is the id of the command for it; empty
// means a key.
func RecordUserExitInTranscript(s *Session, exitCommandPromptID string) {
	if h := s.records.checkpoints; h != nil && !h.IsEmpty() {
		exitCommandPromptID = "" // the real CLI does not record the command, because it ends before it has copied the tracked files again
	}
	s.conversation.queueTranscriptChange(func() { s.records.warnUnsaved(s.records.transcript.RecordCostsAndFilesAtExit(exitCommandPromptID)) })
}

// Model returns the current model, as the API names it.
func (s *Session) Model() string { return claudecode.ResolveModel(s.state.Model()) }

// SetModel changes the model. The environment may map the name to another model.
func (s *Session) SetModel(name string) {
	s.state.SetModel(s.plan.Model.Aliases.ResolveModelName(name))
}

// Cost returns the costs of the session up to the end of the last turn.
func (s *Session) Cost() slash.Cost {
	s.conversation.mu.Lock()
	defer s.conversation.mu.Unlock()
	return s.conversation.cost
}

// ContextUsage returns how full the context window is.
func (s *Session) ContextUsage() slash.Context {
	sim, release := s.conversation.lockSimulator()
	defer release()
	return sim.Context()
}

// AskSideQuestion asks the scripted model a question outside the conversation; it is not recorded. If the reply is a
// failure, failureText is the text that describes it.
func (s *Session) AskSideQuestion(ctx context.Context, question string) (reply scenarios.Reply, failureText string, err error) {
	reply, err = s.records.scenario.Subagent(nil).Next(ctx, scenarios.Request{Prompt: question})
	if err == nil {
		err = s.plan.Clock.Sleep(ctx, time.Duration(reply.DelayMS)*time.Millisecond)
	}
	if err == nil && reply.Failure != nil {
		sim, release := s.conversation.lockSimulator()
		failureText = sim.FailureText(reply.Failure)
		release()
	}
	return reply, failureText, err
}

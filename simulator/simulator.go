// Package simulator runs conversations: it turns one user message into an ordered stream of events.
//
// [Simulator.RunTurn] asks the scripted model, runs the model's tool calls through the executor chain, and yields every event once,
// in the real CLI's order. The last event is the only result. Text, JSON, stream-json and SDK hosts read this stream. Transcripts
// and the journal record each event before it is yielded. The package does not depend on output formats, the control protocol,
// the command line or the operating system: the clock, ids, randomness and waiting are injected.
package simulator

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
	"github.com/claudeless/claudeless/simulator/task"
)

// Simulator runs the turns of one conversation, one at a time.
type Simulator struct {
	options  Options       // not changed after New
	main     MainOptions   // options.Main; zero for a sub-agent
	commands SlashCommands // main.Commands; never nil

	totals  sessionTotals
	history conversationState
}

// conversationState is the state of a conversation that lasts from turn to turn. Only the running turn uses it.
type conversationState struct {
	turnCount                int
	toolRounds               int // number of messages with calls
	resultCount              int
	safetyStops              int            // number of refused replies
	simulatedFailures        map[string]int // number of failures simulated, by rule
	sessionStarted           bool
	resumed                  bool                                   // the conversation began in an earlier process
	unreportedInstructions   []protocol.InstructionsLoadedHookInput // instruction files for which no hooks ran yet
	nextSessionStartSource   string                                 // source of the next SessionOrigin after /clear; empty at the start of the process
	earlySessionStartOutcome *hook.Outcome                          // outcome of SessionStart hooks that ran before the first turn; nil means none
	lastAssistantUUID        string                                 // uuid of the model's last message
	pendingContext           []string                               // text that the next request adds to its prompt
	instructionTexts         []string                               // instructions loaded after tool calls, as sent to the model
	retained                 messagesKeptByCompaction
	droppedTokens            int      // tokens removed by compactions
	transcriptSaveFailed     bool     // writing the transcript has failed
	rateLimitsShown          bool     // the limits of the subscription were reported
	unansweredTexts          []string // prompts that were not sent to the model yet; the next request begins with them
	initialPromptFromHook    string   // prompt from a SessionOrigin hook, answered before the first prompt
}

// messagesKeptByCompaction tracks the uuids of the last messages of a conversation, which a compaction may keep.
type messagesKeptByCompaction struct {
	repliesSinceCompaction int      // number of replies since the last compaction
	lastReplyID            string   // id of the last reply
	lastRound              []string // blocks of the last reply and the results of its calls
	prompts                []string // prompts after the last reply with tool calls
}

func (t *messagesKeptByCompaction) recordEvent(ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.PromptAccepted:
		if !ev.LocalCommand && !ev.Blocked && !ev.WrittenByCLI {
			t.prompts = append(t.prompts, ev.UUID)
		}
	case *protocol.UserEvent:
		if ev.ParentToolUseID == nil && ev.Tool != "" {
			t.lastRound = append(t.lastRound, ev.UUID)
		}
	case *protocol.AssistantEvent:
		if ev.ParentToolUseID != nil || ev.Message.Model == protocol.SyntheticModel {
			return
		}
		if ev.Message.ID != t.lastReplyID {
			t.repliesSinceCompaction, t.lastReplyID, t.lastRound, t.prompts = t.repliesSinceCompaction+1, ev.Message.ID, nil, nil
		}
		t.lastRound = append(t.lastRound, ev.UUID)
	}
}

func (t *messagesKeptByCompaction) lastRetainedMessageUUID() string {
	if all := slices.Concat(t.lastRound, t.prompts); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// forgetAllButKeptMessages returns the uuids of the messages that a compaction keeps: the unanswered prompts and, if there are
// at least two replies, the last reply with the results of its calls. It forgets all other replies.
func (t *messagesKeptByCompaction) forgetAllButKeptMessages() (keptUUIDs []string) {
	if t.repliesSinceCompaction < 2 {
		t.repliesSinceCompaction, t.lastRound = 0, nil
	} else {
		t.repliesSinceCompaction = 1
	}
	return slices.Concat(t.lastRound, t.prompts)
}

// New validates the options and creates a simulator. It starts no goroutines.
func New(o Options) (*Simulator, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Simulator{options: o, commands: commandsUnavailableToSubagents{}, history: conversationState{simulatedFailures: map[string]int{}, pendingContext: o.StartContext}}
	if o.Main != nil {
		s.main, s.commands = *o.Main, o.Main.Commands
	}
	s.commands = cmp.Or[SlashCommands](s.commands, emptyCommandSet{})
	if s.main.Tasks == nil {
		s.main.Tasks = task.New(task.Options{Ordered: true})
	}
	s.history.resumed, s.history.unansweredTexts = s.main.Start.Resumed, s.main.Start.UnansweredPrompts
	s.totals.restoreCosts(s.main.Costs)
	if heard := s.main.Start.PreviousReply; heard != nil {
		s.history.lastAssistantUUID = heard.UUID
		s.history.retained.repliesSinceCompaction, s.history.retained.lastRound = heard.Replies, heard.Lines
		s.totals.contextTokens.Store(int64(heard.Tokens))
	}
	return s, nil
}

func (s *Simulator) resolvedModelName() string {
	return claudecode.ResolveModel(s.options.State.NextRequestModel())
}

func (s *Simulator) modelForRequestInMode() string {
	if s.options.Agent == nil && s.options.Location.Mode() == protocol.ModePlan {
		return claudecode.ResolveModelInPlanMode(s.options.State.NextRequestModel())
	}
	return s.resolvedModelName()
}

// contextWindow returns the number of tokens that the conversation may reach.
func (s *Simulator) contextWindow() int {
	own := claudecode.FactsOfModel(s.resolvedModelName()).ContextWindow
	if s.options.Limits.ContextWindow > 0 {
		return min(own, s.options.Limits.ContextWindow)
	}
	return own
}

const (
	promptSourceSystem   = "system"   // marks a prompt that no user wrote
	promptSourceDeferred = "deferred" // marks a turn that answers a deferred call and has no prompt
)

// CrashError is the error of a turn that makes the process exit, because of the scenario or a failed hook. It is
// yielded after all events of the turn.
type CrashError struct {
	ExitCode int
	Signal   string // for example "SIGKILL"; empty means exit with ExitCode
}

func (c *CrashError) Error() string { return "the process crashes here" }

func (s *Simulator) scenarioTemplateVars(sessionTools []protocol.Tool) scenarios.ExpressionVars {
	names := make([]string, len(sessionTools))
	schemas := make(map[string]json.RawMessage, len(sessionTools))
	for i, t := range sessionTools {
		names[i] = t.Name
		if t.InputSchema != nil {
			schemas[t.Name] = t.InputSchema
		}
	}
	return scenarios.ExpressionVars{
		Model: s.modelForRequestInMode(), PermissionMode: string(s.options.Location.Mode()), SystemPrompt: s.options.System,
		Tools: names, Schemas: schemas,
		Session: scenarios.SessionVars{ID: s.options.State.SessionID(), IsResumed: s.history.resumed}, // Turn stays 0, because the scenario engine counts the turns itself, even across processes
	}
}

// ContextUsage returns how much of the model's context window the session uses. It may be called while a turn runs.
func (s *Simulator) ContextUsage() slash.ContextUsage {
	name := s.resolvedModelName()
	isRequested := s.options.Limits.ContextWindow > 0
	window := slash.ContextWindowSize{Tokens: s.contextWindow(), IsRequested: isRequested, NoAutoCompact: s.options.Limits.DisableAutoCompact, HasNoBuffer: claudecode.FactsOfModel(name).Context.NoBuffer && !isRequested}
	return slash.NewContextUsage(name, window, s.totals.lastReply.Load(), s.commands.LoadedContext())
}

// SpentUSDInProcess returns the costs since the process began. It may be called while a turn records an event, but not from other goroutines.
func (s *Simulator) SpentUSDInProcess() float64 { return s.totals.spentUSDInProcess() }

// Cost returns the costs of the session so far. It must not be called while a turn runs.
func (s *Simulator) Cost() slash.Cost {
	cost := slash.Cost{USD: s.totals.usd, APIMS: milliseconds(s.totals.apiTime), WallMS: milliseconds(s.totals.wallTime), Requests: s.totals.requests}
	if s.main.Transcript != nil {
		cost.LinesAdded, cost.LinesRemoved = s.main.Transcript.LineChanges()
	}
	for _, name := range s.totals.modelsByFirstUse {
		m := s.totals.costs[name]
		cost.Models = append(cost.Models, slash.ModelCost{Name: name, Input: m.InputTokens, Output: m.OutputTokens, CacheRead: m.CacheReadInputTokens, CacheNew: m.CacheCreationInputTokens, USD: m.CostUSD})
	}
	return cost
}

// FailureText returns the error message of the real CLI for a scripted failure.
func (s *Simulator) FailureText(f *scenarios.Failure) string { return s.describeFailure(f).DisplayText }

func (s *Simulator) describeFailure(f *scenarios.Failure) apiFailure {
	return describeFailure(f, failureContext{Limits: s.options.Limits, Model: s.resolvedModelName(), ConversationHasReply: s.history.lastAssistantUUID != ""})
}

// DeferredPrompt returns the message for the turn that answers the call in [MainOptions.Deferred],
// with a new id. It returns false if no call was deferred.
func (s *Simulator) DeferredPrompt() (protocol.UserMessage, bool) {
	if s.main.Deferred == nil {
		return protocol.UserMessage{}, false
	}
	return protocol.UserMessage{Source: promptSourceDeferred, UUIDs: []string{s.options.Clock.NewID()}}, true
}

// hookBase returns the hook fields that identify the session. They are read for each hook because /clear changes them.
func (s *Simulator) hookBase() protocol.HookBase {
	now := s.options.State.SessionStateSnapshot()
	return protocol.HookBase{SessionID: now.SessionID, TranscriptPath: now.TranscriptPath, CWD: s.options.Location.Dir()}
}

func (s *Simulator) sessionEndHookBaseWithPromptID() protocol.HookBase {
	base := s.hookBase()
	base.PromptID = s.options.State.SessionStateSnapshot().PromptID
	return base
}

// asyncHookGrace is how long asynchronous hooks may continue after a session has ended. The real CLI 2.1.330 stops them at once,
// which takes at least 20 ms and less than 100 ms.
const asyncHookGrace = 80 * time.Millisecond

func milliseconds(d time.Duration) int { return int(d / time.Millisecond) }

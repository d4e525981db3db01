// Package simulator is the agent: one user message in, an ordered stream of
// events out.
//
// [Simulator.Turn] asks the scripted model, runs its tool calls through the
// executor chain and yields every event exactly once, in the order in which
// the real CLI shows them, ending with exactly one result. Text, JSON,
// stream-json and SDK hosts are loops over that one stream; transcripts and the
// journal are given each event of it before anybody sees it. The package knows no
// output format, no control protocol, no command line and no operating system:
// clock, ids, randomness and waiting are given.
package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/internal/failure"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// Simulator runs the turns of one conversation, one at a time.
type Simulator struct {
	o        Options     // fixed at creation
	main     MainOptions // of o; the zero one of an agent
	commands Commands    // of main, never nil

	books sessionTotals
	past  history
}

// history is what a conversation has behind it. It belongs to the running turn.
type history struct {
	turns   int
	results int
	failed  map[string]int // how often each rule's failure has struck
	begun   bool           // SessionStart has been told
	resumed bool           // the conversation is that of an earlier process
	started string         // source of SessionStart; empty = startup or resume
	leaf    string         // uuid of the last message of the model
	untold  []string       // what the next request says beside its prompt
	nested  []string       // instructions that calls led to, as the model was told them
	tail    retained
	dropped int  // tokens that compactions have taken away
	warned  bool // a transcript write has failed
}

// retained is the end of a conversation, by the uuids of its messages: what a
// compaction may leave as it is.
type retained struct {
	replies int      // messages of the model since the last compaction
	message string   // id of the last one
	round   []string // its blocks, and the results of its calls
	prompts []string // what came after them
}

// see follows the conversation.
func (t *retained) see(ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.PromptAccepted:
		if !ev.Local && !ev.Refused && !ev.Injected {
			t.prompts = append(t.prompts, ev.UUID)
		}
	case *protocol.User:
		if ev.ParentToolUseID == nil && ev.Tool != "" {
			t.round = append(t.round, ev.UUID)
		}
	case *protocol.Assistant:
		if ev.ParentToolUseID != nil || ev.Message.Model == protocol.SyntheticModel {
			return
		}
		if ev.Message.ID != t.message {
			t.replies, t.message, t.round, t.prompts = t.replies+1, ev.Message.ID, nil, nil
		}
		t.round = append(t.round, ev.UUID)
	}
}

// last is the last message; empty = there is none.
func (t *retained) last() string {
	for _, part := range [][]string{t.prompts, t.round} {
		if len(part) > 0 {
			return part[len(part)-1]
		}
	}
	return ""
}

// cut ends the conversation and returns what is kept of it: the last reply, if
// others are summed up, and what nobody has answered.
func (t *retained) cut() []string {
	if t.replies < 2 {
		t.replies, t.round = 0, nil
	} else {
		t.replies = 1
	}
	return slices.Concat(t.round, t.prompts)
}

// New checks the options and makes a simulator. It starts nothing.
func New(o Options) (*Simulator, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	s := &Simulator{o: o, commands: agentCommands{}, past: history{failed: map[string]int{}}}
	if o.Main != nil {
		s.main, s.commands = *o.Main, o.Main.Commands
	}
	if s.commands == nil {
		s.commands = emptyCommands{}
	}
	s.past.resumed = s.main.Start.Resumed
	s.books.open(s.main.Costs)
	if heard := s.main.Start.Heard; heard != nil {
		s.past.leaf, s.past.tail.replies = heard.UUID, heard.Replies
		s.books.said.Store(int64(heard.Tokens))
	}
	return s, nil
}

// resolved is the full name of the model of requests to come.
func (s *Simulator) resolved() string { return model.Resolve(s.o.Live.Model()) }

// window is how many tokens the conversation may grow to.
func (s *Simulator) window() int {
	own := model.Of(s.resolved()).ContextWindow
	if s.o.Limits.Window > 0 {
		return min(own, s.o.Limits.Window)
	}
	return own
}

const (
	// sourceSystem marks a prompt that no user wrote.
	sourceSystem = "system"
	// sourceDeferred marks a turn without a prompt.
	sourceDeferred = "deferred"
)

// CrashError ends the process as the scenario says; it comes out of a turn as its
// error, after everything already yielded.
type CrashError struct {
	ExitCode int
	Signal   string // e.g. "SIGKILL"; empty = exit with ExitCode
}

func (c *CrashError) Error() string { return "the scenario crashes the process here" }

// vars is what scenario expressions may see of the session.
func (s *Simulator) vars(tools []protocol.Tool) scenarios.Vars {
	names := make([]string, len(tools))
	schemas := make(map[string]json.RawMessage, len(tools))
	for i, t := range tools {
		names[i] = t.Name
		if t.InputSchema != nil {
			schemas[t.Name] = t.InputSchema
		}
	}
	return scenarios.Vars{
		Model:          s.resolved(),
		PermissionMode: string(s.o.Here.Mode()),
		SystemPrompt:   s.o.System,
		Tools:          names,
		Schemas:        schemas,
		Session:        scenarios.Session{ID: s.o.Live.SessionID(), Resumed: s.past.resumed}, // the model counts turns: they go on in the next process
	}
}

// Context is how much of the model's context the session uses. It may be
// called while a turn runs.
func (s *Simulator) Context() slash.Context {
	name := s.resolved()
	return slash.NewContext(name, slash.ContextWindow{Window: s.window(), Wished: s.o.Limits.Window > 0, Manual: s.o.Limits.NoCompact}, int(s.books.said.Load()), s.commands.Loaded())
}

// Cost is what the session has cost so far. It must not be called while a turn
// runs.
func (s *Simulator) Cost() slash.Cost {
	cost := slash.Cost{USD: s.books.total(), APIMS: ms(s.books.apiTime), WallMS: ms(s.books.wallTime), Requests: s.books.requests}
	if s.main.Transcript != nil {
		cost.Added, cost.Removed = s.main.Transcript.Lines()
	}
	for _, name := range slices.Sorted(maps.Keys(s.books.costs)) {
		m := s.books.costs[name]
		cost.Models = append(cost.Models, slash.Model{
			Name: name, Input: m.InputTokens, Output: m.OutputTokens, CacheRead: m.CacheReadInputTokens,
			CacheNew: m.CacheCreationInputTokens, USD: m.CostUSD,
		})
	}
	return cost
}

// FailureText puts a scripted failure into the words of the real CLI.
func (s *Simulator) FailureText(f *scenarios.Failure) string { return s.describe(f).Text }

func (s *Simulator) describe(f *scenarios.Failure) failure.API {
	return failure.Describe(f, failure.Where{Model: s.resolved(), Retries: s.o.Limits.Retries, Answered: s.past.leaf != "", Gateway: s.o.Limits.Gateway})
}

// Deferred gives the turn that answers the call of [MainOptions.Deferred], before
// any prompt, under a fresh id; false = there is none to answer.
func (s *Simulator) Deferred() (protocol.UserMessage, bool) {
	if s.main.Deferred == nil {
		return protocol.UserMessage{}, false
	}
	return protocol.UserMessage{Source: sourceDeferred, UUIDs: []string{s.o.Clock.NewID()}}, true
}

// sessionBase names the session of right now: /clear changes it.
func (s *Simulator) sessionBase() protocol.HookBase {
	now := s.o.Live.Now()
	return protocol.HookBase{SessionID: now.SessionID, TranscriptPath: now.Transcript, CWD: s.o.Here.Dir()}
}

// endBase is the common part of SessionEnd inputs.
func (s *Simulator) endBase() protocol.HookBase {
	base := s.sessionBase()
	base.PromptID = s.o.Live.Now().PromptID
	return base
}

// Close runs the SessionEnd hooks of a session that has had a turn. Reason is
// that of the hook's input; empty = "other".
func (s *Simulator) Close(ctx context.Context, reason string) {
	if s.o.Hooks == nil {
		return
	}
	reason = cmp.Or(reason, "other")
	if s.past.begun {
		s.o.Hooks.Run(ctx, hook.Input{Base: s.endBase(), Event: protocol.SessionEndHook{Reason: reason}})
	}
	s.o.Hooks.Close(ctx)
}

func ms(d time.Duration) int { return int(d / time.Millisecond) }

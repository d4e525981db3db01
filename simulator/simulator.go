// Package simulator is the agent: one user message in, an ordered stream of
// events out.
//
// [Simulator.Turn] asks the scripted model, runs its tool calls through the
// executor chain and yields every event exactly once, in the order in which
// the real CLI shows them, ending with exactly one result. Text, JSON,
// stream-json, SDK hosts, transcripts and the journal are loops over that one
// stream. The package knows no output format, no control protocol, no command
// line and no operating system: clock, ids, randomness and waiting are given.
package simulator

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Simulator runs the turns of one conversation, one at a time.
type Simulator struct {
	o        Options  // fixed at creation
	main     Main     // of o; the zero one of an agent
	commands Commands // of main, never nil

	said atomic.Int64 // tokens of the conversation so far

	// Owned by the running turn.
	costs       map[string]protocol.ModelUsage
	since       map[string]protocol.ModelUsage
	resultIndex int
	turnIndex   int
	failed      map[string]int // how often each rule's failure has struck
	exhausted   bool           // the budget is used up
	begun       bool           // SessionStart has been told
	resumed     bool           // the conversation is that of an earlier process
	started     string         // source of SessionStart; empty = startup or resume
	leaf        string         // uuid of the conversation's last message of the model
	requests    int            // replies of the model
	apiTime     time.Duration
	wallTime    time.Duration
	warned      bool // a transcript write has failed
}

// New checks the options and makes a simulator. It starts nothing.
func New(o Options) (*Simulator, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	s := &Simulator{o: o, commands: agentCommands{}, costs: map[string]protocol.ModelUsage{}, since: map[string]protocol.ModelUsage{}, failed: map[string]int{}}
	if o.Main != nil {
		s.main, s.commands = *o.Main, o.Main.Commands
	}
	if s.commands == nil {
		s.commands = noCommands{}
	}
	s.resumed = s.main.Start.Resumed
	for model, m := range s.main.Costs {
		s.costs[model] = described(model, m)
	}
	return s, nil
}

// resolved is the full name of the model of requests to come.
func (s *Simulator) resolved() string { return model.Resolve(s.o.Live.Model()) }

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
		Session:        scenarios.Session{ID: s.o.Live.SessionID(), Resumed: s.resumed}, // the model counts turns: they go on in the next process
	}
}

package simulator

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// Model answers requests; the scenario engine is the one of every run, tests
// have their own. Called from one goroutine at a time.
type Model interface {
	Next(ctx context.Context, r scenarios.Request) (scenarios.Reply, error)
}

// Transcript keeps events beyond the run. Record is called for every event
// before it is yielded; its first error becomes a warning, never a failed run.
type Transcript interface {
	Record(ev protocol.Event) error
}

// Options says how a session runs. Model, Executor, SessionID and Init are
// required; everything else has a working zero value.
type Options struct {
	Model    Model
	Executor executor.Executor
	// Check refuses calls before hooks and permission see them: unknown tools,
	// bad input. Nil, or a nil result, lets the call pass.
	Check func(ctx context.Context, call protocol.ToolUse) *executor.Result
	// Prepare returns the input that a call is shown and run with; nil = its own.
	Prepare func(call protocol.ToolUse) json.RawMessage
	// Observed returns the input that hooks and hosts see of a call that is about
	// to run; nil = the call's own.
	Observed func(call protocol.ToolUse) json.RawMessage
	// Aliases are the tools that run in the place of others, by the name that the
	// model writes; the name of an alias is not looked up again.
	Aliases map[string]string
	// ReadOnly tells which calls may run beside their neighbours; nil = those
	// whose tool says so.
	ReadOnly func(call protocol.ToolUse) bool
	// Transcript is nil when nothing is kept.
	Transcript Transcript
	// Hooks of the turn itself (those around tools are a layer of Executor);
	// nil = none. [Simulator.Close] closes them.
	Hooks        *hook.Runner
	HookEvents   bool   // show hook_started and hook_response
	StopBlockCap int    // blocks of Stop hooks in a row; 0 = 8
	Effort       string // level that hooks are told; empty = none

	// Tasks is the work beside and behind tool calls; nil = there is none. The
	// caller closes it.
	Tasks *task.Set

	SessionID string
	Resumed   bool
	// Deferred is the call that [Simulator.Deferred] answers; nil = none.
	Deferred  *Deferred
	Forked    bool   // Resumed under an id of its own
	Setup     string // trigger of Setup hooks before the session starts; empty = none
	AgentType string // the agent that the session itself is; empty = none
	// Agent says whose conversation it is, for hooks; nil = the session's own.
	Agent *protocol.AgentRef
	// PromptID names the prompt that an agent works for; nil = its own.
	PromptID func() string
	// Instructions are the memory files that were read, for hooks.
	Instructions []protocol.InstructionsLoadedHook
	// Dir is the directory the shell is in right now, for hooks; nil = where the
	// session began.
	Dir func() string
	// TranscriptPath is where the transcript is right now, for hooks; nil = where
	// it was when they were made.
	TranscriptPath func() string
	Commands       Commands
	// Queue is what waits while a turn runs.
	Queue    Queue
	Mentions Mentions
	// Init gives the init event of a turn without its ids, model and mode.
	Init func(ctx context.Context) protocol.Init
	// ModelName is the model at start; [Simulator.SetModel] changes it.
	ModelName string
	// Fallback is the model to go on with when the other is overloaded; empty =
	// none.
	Fallback string
	// Reduced says that customisations are switched off, which hosts with a
	// screen are told (--bare, --safe-mode).
	Reduced bool
	// Title names the session at its start; empty = no name.
	Title string
	// Mode is the permission mode right now; nil = default.
	Mode func() protocol.PermissionMode
	// SystemPrompt is offered to scenario expressions.
	SystemPrompt string
	// Costs are the session's costs so far, by model.
	Costs map[string]protocol.ModelUsage

	MaxTurns     int     // tool rounds per prompt; 0 = no limit, below it the first is the last
	MaxBudgetUSD float64 // cost of the session; 0 = no limit
	MaxRetries   int     // of failed requests; negative = none, 0 = 10
	// RetryScale stretches the waits between retries; 0 = do not wait.
	RetryScale float64
	// ResponseDelay is waited before every prompt's first reply.
	ResponseDelay time.Duration

	Partial bool // yield stream events and request statuses
	Replay  bool // yield the prompt back (isReplay)
	// ThinkingDisplay is how reasoning is marked as shown; "" = updates.
	ThinkingDisplay string
	Stream          scenarios.Stream // pace of partial messages
	Schema          *Schema          // --json-schema; nil = none
	Compat          bool             // add the cost_usd key of the older tool
	// InOrder shows results of parallel calls in call order instead of
	// completion order, which makes runs repeatable byte by byte.
	InOrder bool

	Now   func() time.Time                                 // nil = time.Time{} forever
	Sleep func(ctx context.Context, d time.Duration) error // nil = real waiting
	NewID func() string                                    // uuid v4; required
	Rand  *rand.Rand                                       // jitter; nil = no jitter
}

// Simulator runs the turns of one session, one at a time.
type Simulator struct {
	o Options // fixed at creation

	mu       sync.Mutex
	model    string
	promptID string

	said atomic.Int64 // tokens of the conversation so far

	// Owned by the running turn.
	costs       map[string]protocol.ModelUsage
	since       map[string]protocol.ModelUsage
	resultIndex int
	turnIndex   int
	failed      map[string]int // how often each rule's failure has struck
	exhausted   bool           // the budget is used up
	begun       bool           // SessionStart has been told
	started     string         // its source; empty = startup or resume
	leaf        string         // uuid of the conversation's last message of the model
	requests    int            // replies of the model
	apiTime     time.Duration
	wallTime    time.Duration
	warned      bool // a transcript write has failed
}

// New checks the options and makes a simulator. It starts nothing.
func New(o Options) (*Simulator, error) {
	switch {
	case o.Model == nil, o.Executor == nil, o.Init == nil, o.NewID == nil:
		return nil, errors.New("simulator: Model, Executor, Init and NewID are required")
	case o.SessionID == "":
		return nil, errors.New("simulator: SessionID is required")
	}
	if o.Now == nil {
		o.Now = func() time.Time { return time.Time{} }
	}
	if o.Sleep == nil {
		o.Sleep = Sleep
	}
	if o.Mode == nil {
		o.Mode = func() protocol.PermissionMode { return protocol.ModeDefault }
	}
	if o.MaxRetries == 0 {
		o.MaxRetries = 10
	}
	if o.ModelName == "" {
		o.ModelName = model.Default
	}
	costs := map[string]protocol.ModelUsage{}
	for model, m := range o.Costs {
		costs[model] = described(model, m)
	}
	return &Simulator{o: o, model: o.ModelName, costs: costs, since: map[string]protocol.ModelUsage{}, failed: map[string]int{}}, nil
}

// resolved is the full name of the model of requests to come.
func (s *Simulator) resolved() string { return model.Resolve(s.ModelName()) }

// SetModel changes the model of requests to come; empty = the default model.
// It may be called while a turn runs.
func (s *Simulator) SetModel(name string) {
	if name == "" {
		name = model.Default
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model = name
}

// ModelName is the model of the next request, as given or set.
func (s *Simulator) ModelName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model
}

// Sleep waits for d or until ctx ends, whose error it then returns.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// CrashError ends the process as the scenario says; it comes out of a turn as its
// error, after everything already yielded.
type CrashError struct {
	ExitCode int
	Signal   string // e.g. "SIGKILL"; empty = exit with ExitCode
}

func (c *CrashError) Error() string { return "the scenario crashes the process here" }

// PromptID is the id of the running or the last prompt.
func (s *Simulator) PromptID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.promptID
}

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
		PermissionMode: string(s.o.Mode()),
		SystemPrompt:   s.o.SystemPrompt,
		Tools:          names,
		Schemas:        schemas,
		Session:        scenarios.Session{ID: s.o.SessionID, Resumed: s.o.Resumed}, // the model counts turns: they go on in the next process
	}
}

package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
	"github.com/claudeless/claudeless/simulator/task"
)

// Model answers requests; the scenario engine is the one of every run, tests
// have their own. Called from one goroutine at a time.
type Model interface {
	Next(ctx context.Context, r scenarios.Request) (scenarios.Reply, error)
}

// Clock gives time, waiting and ids (uuid v4). Sleep returns early with the error
// of a ctx that ends. Safe for concurrent use.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
	NewID() string
}

// Location is where a conversation stands right now, asked each time it is told.
// Safe for concurrent use.
type Location interface {
	// Dir is the directory the shell is in; empty = where the session began.
	Dir() string
	Mode() protocol.PermissionMode
}

// Options says how a conversation runs. Model, Tools, Clock and Live are
// required; everything else has a working zero value.
type Options struct {
	Model Model
	Tools Tools
	// Hooks of the turn itself (those around tools are a layer of Tools); nil =
	// none. [Simulator.Close] closes them.
	Hooks *hook.Runner
	Clock Clock
	Rand  *rand.Rand // jitter; nil = no jitter
	// SessionState is what changes while the conversation runs. Its session has an id.
	Live *SessionState
	Here Location // nil = the default mode, where the session began
	// System is the system prompt, which scenario expressions may ask for.
	System string
	Limits Limits
	Show   DisplayOptions
	// Agent says whose conversation it is, for hooks; nil = the session's own.
	Agent *protocol.AgentRef
	// MainOptions is what the session's own conversation has and that of an agent has
	// not; nil = it is an agent's.
	Main *MainOptions
}

// Limits bound a conversation, and say what is done before one is reached. The
// zero value is the real CLI's, without waits.
type Limits struct {
	Turns     int     // tool rounds per prompt; 0 = no limit, below it the first is the last
	BudgetUSD float64 // cost of the session; 0 = no limit
	Retries   int     // of failed requests; negative = none, 0 = 10
	// RetryScale stretches the waits between retries; 0 = do not wait.
	RetryScale float64
	// Fallback is the model to go on with when the other is overloaded; empty =
	// none.
	Fallback    string
	StopBlocks  int // blocks of Stop hooks in a row; 0 = 8
	SchemaTries int // answers that do not fit Main.Schema before the turn fails; 0 = 5
	// Window is how many tokens the conversation may grow to; 0 = as many as the
	// model takes. Shortly before it is compacted, unless NoCompact is set: then
	// what does not fit is refused.
	Window    int
	NoCompact bool
	// Gateway is the host of the API where it is not the vendor's; empty = it is.
	Gateway string
}

// DisplayOptions says what of a conversation is shown, and at which pace.
type DisplayOptions struct {
	Partial bool // yield stream events and request statuses
	Begun   bool // with Partial, results name the messages that have begun
	Replay  bool // yield the prompt back (isReplay)
	Hooks   bool // yield hook_started and hook_response
	Compat  bool // add the cost_usd key of the older tool
	// InOrder shows results of parallel calls in call order instead of
	// completion order, which makes runs repeatable byte by byte.
	InOrder       bool
	Thinking      string           // how reasoning is marked as shown; empty = updates
	Stream        scenarios.Stream // pace of partial messages
	ResponseDelay time.Duration    // waited before every prompt's first reply
	CompactDelay  time.Duration    // how long /compact takes
}

func (s DisplayOptions) thinking() string { return cmp.Or(s.Thinking, "updates") }

// ContextProvider are told of a session.
type ContextProvider interface {
	// Init is what the host is told with every turn, without ids, model and mode.
	Init(ctx context.Context) protocol.Init
	// Beside is what the model is told beside the first prompt: before and after
	// what hooks of the session's start say.
	Beside() (before, after []string)
}

// MainOptions is what makes a conversation that of the session. Said is required;
// other nil interfaces are absent.
type MainOptions struct {
	Start      SessionStart
	Said       ContextProvider
	Transcript Transcript
	// Tasks is the work beside and behind tool calls; nil = there is none. The
	// caller closes it.
	Tasks    *task.Set
	Prompts  Prompts
	Commands Commands
	Mentions Mentions
	Schema   Schema
	Costs    map[string]protocol.ModelUsage // of the session so far, by model
	Deferred *Deferred                      // the call that [Simulator.Deferred] answers; nil = none
}

// SessionStart is how the session came to be. The zero value is a fresh one.
type SessionStart struct {
	Resumed bool
	Forked  bool   // Resumed under an id of its own
	Setup   string // trigger of Setup hooks before the session starts; empty = none
	Agent   string // the agent that the session itself is; empty = none
	Title   string // the session's name at its start; empty = none
	// Reduced says that customisations are switched off, which hosts with a
	// screen are told (--bare, --safe-mode).
	Reduced bool
	// PreviousReply is the last reply of the conversation that is gone on with, for hooks;
	// nil = there is none.
	Heard *PreviousReply
	// Sought says that the session was looked for, not named (--continue): what is
	// shown before it is found has an id of its own.
	Sought bool
	// Instructions are the memory files that were read, for hooks.
	Instructions []protocol.InstructionsLoadedHook
}

// PreviousReply is the last reply of a model before this run.
type PreviousReply struct {
	At     time.Time
	Model  string
	Tokens int  // of the whole context behind it
	Long   bool // its cache is kept for an hour, not for five minutes

	UUID    string // of its last line
	Replies int    // of the conversation, up to it
}

// Transcript keeps events beyond the run. Its first error becomes a warning,
// never a failed run.
type Transcript interface {
	// Record is called for every event before it is yielded.
	Record(ev protocol.Event) error
	// Reset begins a new conversation, for /clear, and returns its id and where
	// its transcript is.
	Reset() (id, path string, err error)
	// Lines tells how many lines of files were added and removed.
	Lines() (added, removed int)
}

// Prompts is what waits while a turn runs.
type Prompts interface {
	// Absorb takes the prompts that are to become part of the running turn; it is
	// called between tool rounds.
	Absorb() []protocol.UserMessage
	// Waiting counts the prompts of people that wait for a turn.
	Waiting() int
}

// Schema is what a structured output has to fit (--json-schema).
type Schema interface {
	// Validate returns nil for a fitting value, else an error whose text is paths
	// and what must be there: "/n: must be number".
	Validate(value json.RawMessage) error
}

// Commands are the slash commands of a session beside those that a conversation
// answers itself ([OwnCommand]).
type Commands interface {
	// Find returns the command of a name. One that is found comes before the
	// conversation's own of that name; false = there is none.
	Find(name string) (Command, bool)
	// Loaded tells /context what the session has loaded.
	Loaded() slash.LoadedContext
	// Grant lets permission rules count until the next call.
	Grant(rules []string)
}

// Command is one slash command.
type Command interface {
	// Run answers the command, or gives the text that the model reads in its
	// place; nil and nil = it is none after all.
	Run(ctx context.Context, c slash.Call) (*slash.Outcome, *slash.Expansion)
}

// OwnCommand tells whether a conversation answers a command itself: those are
// about its messages and what they cost.
func OwnCommand(name string) bool {
	return slices.Contains([]string{"clear", "reset", "new", "compact", "context", "usage", "cost", "stats"}, name)
}

// emptyCommands are those of a session without any.
type emptyCommands struct{}

func (emptyCommands) Find(string) (Command, bool) { return nil, false }
func (emptyCommands) Loaded() slash.LoadedContext { return slash.LoadedContext{} }
func (emptyCommands) Grant([]string)              {}

// agentCommands are those of an agent, which may not run what is the session's.
type agentCommands struct{ emptyCommands }

func (agentCommands) Find(name string) (Command, bool) { return Unavailable{}, OwnCommand(name) }

// Unavailable is a command that there is elsewhere only.
type Unavailable struct{}

// Run says so.
func (Unavailable) Run(_ context.Context, c slash.Call) (*slash.Outcome, *slash.Expansion) {
	return new(slash.Unavailable(c.Name)), nil
}

// Deferred is a tool call that a PreToolUse hook put off in an earlier run of
// the session, so that somebody could be asked meanwhile.
type Deferred struct {
	Use     protocol.ToolUse
	Message string // uuid of the message that made the call
}

// Mention is a file that a prompt names with @.
type Mention struct {
	Path         string // as written, without quotes
	First, Lines int    // the part that is asked for: #L3-5 is 3 and 3; 0 = all of it
}

// Mentioned is what a mention is replaced by for the model.
type Mentioned struct {
	Attachment map[string]any // as transcripts keep it
	Text       string         // what the model reads
}

// Mentions is what stands behind @ in prompts.
type Mentions interface {
	// Open reads a mentioned file or directory; false = it is none, or may not be
	// read, and the mention is plain text.
	Open(ctx context.Context, m Mention) (Mentioned, bool)
	// Read reads what else a text mentions, the resources of MCP servers.
	Read(ctx context.Context, text string) []Mentioned
}

// Tools are what a conversation calls, and what is known of a call before it is
// run. Safe for concurrent use.
type Tools interface {
	executor.Executor
	// Prepare looks at a call as the model has written it.
	Prepare(call protocol.ToolUse) PreparedCall
	// Precheck looks at a call that is about to run, before hooks and permission see
	// it.
	Ready(ctx context.Context, call protocol.ToolUse) Precheck
}

// InstructionSource are tools that know where instructions stand.
type InstructionSource interface {
	// Reached tells which instructions count from now on, in a conversation whose
	// calls have succeeded: that of the session, or of an agent. An agent's begins
	// without calls.
	Reached(agent *protocol.AgentRef, calls []protocol.ToolUse) []Instructions
}

// Instructions are those of one file, which the model is told of.
type Instructions struct {
	Hook       *protocol.InstructionsLoadedHook // what hooks are told; nil = nothing
	Attachment any                              // as transcripts keep it; nil = they do not
	Text       string                           // what the model reads
}

// PreparedCall is what a call becomes before it is shown.
type PreparedCall struct {
	Input json.RawMessage // that the call is shown and run with; nil = its own
	// Runs is the tool that runs in the place of the one that is written; empty =
	// that one.
	Runs     string
	ReadOnly bool // it may run beside its neighbours, whatever its tool says
}

// Precheck is what there is to say of a call right before it runs.
type Precheck struct {
	Seen    json.RawMessage  // the input that hooks and hosts see; nil = the call's own
	Refused *executor.Result // in the place of a run: an unknown tool, a bad input; nil = it may run
}

// Unchecked makes tools of an executor about whose calls nothing is known.
func Unchecked(x executor.Executor) Tools { return uncheckedTools{x} }

type uncheckedTools struct{ executor.Executor }

func (uncheckedTools) Prepare(protocol.ToolUse) PreparedCall            { return PreparedCall{} }
func (uncheckedTools) Ready(context.Context, protocol.ToolUse) Precheck { return Precheck{} }

// unknownLocation is a place of which nothing is known.
type unknownLocation struct{}

func (unknownLocation) Dir() string                   { return "" }
func (unknownLocation) Mode() protocol.PermissionMode { return protocol.ModeDefault }

// filled checks the options and gives what is left out its default.
func (o Options) filled() (Options, error) {
	switch {
	case o.Model == nil, o.Tools == nil, o.Clock == nil, o.Live == nil:
		return o, errors.New("simulator: Model, Tools, Clock and Live are required")
	case o.Live.SessionID() == "":
		return o, errors.New("simulator: Live has no session")
	case o.Main != nil && o.Main.Said == nil:
		return o, errors.New("simulator: Main.Said is required")
	}
	if o.Here == nil {
		o.Here = unknownLocation{}
	}
	o.Limits.Retries = cmp.Or(o.Limits.Retries, 10)
	return o, nil
}

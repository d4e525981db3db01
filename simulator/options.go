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

// Model answers requests. Outside tests, it is always the scenario engine. Next is called from one goroutine at a time.
type Model interface {
	Next(ctx context.Context, r scenarios.Request) (scenarios.Reply, error)
}

// ClockWithIDs provides time and ids (UUID v4), and waits. Sleep ends with ctx and returns its error. Concurrent use is safe.
type ClockWithIDs interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
	NewID() string
}

// DirectoryAndMode reports the current directory and permission mode of a conversation. It is safe for concurrent use.
type DirectoryAndMode interface {
	// Dir returns the shell's current directory; empty means the directory in which the session began.
	Dir() string
	Mode() protocol.PermissionMode
}

// Options configures a conversation. Model, Tools, Clock and State are required; other fields have a usable zero value.
type Options struct {
	Model Model
	Tools InspectingExecutor
	// Hooks runs the hooks of the turn; nil means no hooks. A layer of Tools runs the hooks around tool calls.
	// [Simulator.RunEndHooksAndCloseHookRunner] closes the runner.
	Hooks        *hook.Runner
	Clock        ClockWithIDs
	Rand         *rand.Rand       // source of jitter; nil means no jitter
	State        *SessionState    // contains the values that change while the conversation runs; its session id must be set
	Location     DirectoryAndMode // nil means the default mode in the session's first directory
	System       string           // the system prompt, available to scenario expressions
	Limits       Limits
	Display      DisplayOptions
	Agent        *protocol.AgentRef // identifies the sub-agent whose conversation this is; nil means the main conversation
	StartContext []string           // text that the first request adds to its prompt
	Main         *MainOptions       // configures parts that only the main conversation has; nil for a sub-agent
}

// Limits sets the limits of a conversation and what happens near them. The zero value has the real CLI's limits, but retries do not wait.
type Limits struct {
	MaxTurns       int      // maximum number of rounds per prompt; 0 means no limit, a negative value means 1
	BudgetUSD      float64  // maximum cost of the session; 0 means no limit
	Retries        int      // retries of failed requests; 0 means 10, a negative value none
	RetryScale     float64  // multiplies the waits between retries; 0 means no waits
	FallbackModels []string // asked in order when a model is overloaded or not available
	MaxStopBlocks  int      // consecutive blocks by Stop hooks; 0 means 8
	SchemaAttempts int      // invalid structured outputs before the turn fails; 0 means 5
	// ContextWindow is the number of tokens that the conversation may reach; 0 means the model's own limit. The
	// conversation is compacted shortly before that, or, with DisableAutoCompact, requests that do not fit are refused.
	ContextWindow         int
	DisableAutoCompact    bool
	DisableCompactCommand bool   // makes the slash command /compact unknown
	GatewayHost           string // the host of an API gateway; empty means the vendor's API
	IsSandbox             bool   // IS_SANDBOX is set: after an overload, requests are retried as often as after other failures
	// DescribesJSON makes a response with invalid JSON fail with the same message as other malformed responses.
	// Otherwise the message is the parse error.
	DescribesJSON bool
}

// DisplayOptions specifies which events a conversation shows, and at which pace.
type DisplayOptions struct {
	PartialMessages bool             // emit stream events and request statuses
	ReplayPrompts   bool             // emit the prompt again (isReplay)
	HookEvents      bool             // emit hook_started and hook_response
	ChangedInput    bool             // results say that their input was changed, or how to correct it
	LegacyCost      bool             // add the cost_usd key of older versions
	RateLimits      bool             // report the limits of the subscription after the first reply
	OrderedResults  bool             // shows results of parallel calls in call order, not completion order, so that output is repeatable
	Thinking        string           // value of thinking_display; empty means "updates"
	Stream          scenarios.Stream // pace of partial messages
	ResponseDelay   time.Duration    // wait before the first reply to each prompt
	MinimumDelay    time.Duration    // minimum wait before each reply
	CompactDelay    time.Duration    // duration of a compaction

	FastModeState, FastModeDisabledReason string // for results
}

// InitAndContextProvider provides the init event and the context of the first prompt.
type InitAndContextProvider interface {
	// InitEventWithModelWarning returns the init event of a turn. It leaves the ids, the model and the permission mode empty.
	InitEventWithModelWarning(ctx context.Context) protocol.InitEvent
	// FirstPromptContext returns the texts that the model receives in addition to the first prompt. The texts in before
	// precede the output of SessionStart hooks, and the texts in after follow it.
	FirstPromptContext(prompt string) (before, after []string)
}

// MainOptions configures parts that only the main conversation has. Context is required; other interfaces may be nil.
type MainOptions struct {
	Start      SessionOrigin
	Context    InitAndContextProvider
	Transcript Transcript
	// Tasks is the set of background tasks; nil means an empty set. The caller closes it.
	Tasks    *task.Set
	Prompts  PromptQueue
	Commands SlashCommands
	Mentions MentionReader
	Schema   StructuredOutputSchema
	Costs    map[string]protocol.ModelUsage // costs of earlier runs of the session, by model
	Deferred *DeferredCall                  // call to answer with [Simulator.DeferredPrompt]; nil if none
}

// SessionOrigin specifies how the session began. The zero value is a new session.
type SessionOrigin struct {
	Resumed                bool
	Forked                 bool                            // resumed with a new session id
	Setup                  string                          // trigger of the Setup hooks; empty means none
	Agent                  string                          // the agent that the session runs as; empty means none
	Title                  string                          // title of the session at its start; may be empty
	CustomizationsDisabled bool                            // makes hosts with a screen show that customizations are off (--bare, --safe-mode)
	PreviousReply          *protocol.LastReplyBeforeResume // the last reply of a resumed conversation; nil if there was none
	// Continue is true if --continue looks up the session. Until it is found, events have a temporary session id.
	Continue          bool
	UnansweredPrompts []string                               // last prompts of a resumed conversation that have no reply; the first request contains them
	HookTexts         []string                               // the texts of SessionStart hooks in the resumed conversation
	Instructions      []protocol.InstructionsLoadedHookInput // the instruction files that were read; InstructionsLoaded hooks receive them
}

// Transcript stores the events of a session. Its first error becomes a warning and does not fail the run.
type Transcript interface {
	// Record is called for every event before it is yielded.
	Record(ev protocol.Event) error
	// Reset begins a new conversation, for /clear, and returns its id and the path of its transcript.
	Reset() (id, path string, err error)
	// LineChanges returns how many lines of files were added and removed.
	LineChanges() (added, removed int)
}

// PromptQueue contains the prompts that arrive while a turn runs.
type PromptQueue interface {
	// TakeJoiningPrompts removes and returns the prompts that become part of the running turn. It is called between tool rounds.
	TakeJoiningPrompts() []protocol.UserMessage
	// CountWaitingUserPrompts returns the number of users' prompts that wait for a turn.
	CountWaitingUserPrompts() int
	// IsClosedForNewPrompts reports whether the queue is closed, so that no further prompt can arrive.
	IsClosedForNewPrompts() bool
}

// StructuredOutputSchema validates structured output (--json-schema).
type StructuredOutputSchema interface {
	// Validate returns nil for a valid value, otherwise an error with each path and requirement: "/n: must be number".
	Validate(value json.RawMessage) error
}

// SlashCommands are the slash commands of a session, except those that the conversation handles ([IsConversationCommand]).
type SlashCommands interface {
	// Find returns the command with a name. If the conversation also handles a command with this name, the command that
	// Find returns takes precedence.
	Find(name string) (sessionCommand SlashCommand, found bool)
	// LooksLikePath reports whether text that begins with a slash, and calls no command, is a path.
	LooksLikePath(text string) bool
	// LoadedContext returns the parts of the context that the session has loaded, for /context.
	LoadedContext() slash.LoadedContextTokens
	// SetGrantedRules sets additional permission rules. They replace those of the previous call.
	SetGrantedRules(rules []string)
}

// SlashCommand is the code that runs a slash command.
type SlashCommand interface {
	// Run handles the command and returns its Outcome, or it returns an Expansion: the text that replaces the command
	// in the request to the model. Both are nil if the command does not apply.
	Run(ctx context.Context, c slash.Call) (*slash.Outcome, *slash.Expansion)
}

// IsConversationCommand reports whether the conversation handles a command itself, instead of the session, because the command
// concerns the conversation's messages or costs.
func IsConversationCommand(name string) bool {
	return slices.Contains([]string{"clear", "reset", "new", "compact", "context", "usage", "cost", "stats"}, name)
}

type emptyCommandSet struct{}

func (emptyCommandSet) Find(string) (SlashCommand, bool)         { return nil, false }
func (emptyCommandSet) LooksLikePath(string) bool                { return false }
func (emptyCommandSet) LoadedContext() slash.LoadedContextTokens { return slash.LoadedContextTokens{} }
func (emptyCommandSet) SetGrantedRules([]string)                 {}

// commandsUnavailableToSubagents is the command set of a sub-agent, which may not run the session's commands.
type commandsUnavailableToSubagents struct{ emptyCommandSet }

func (commandsUnavailableToSubagents) Find(name string) (unavailableCommand SlashCommand, isConversationCommand bool) {
	return SlashCommandAnsweringUnavailable{}, IsConversationCommand(name)
}

// SlashCommandAnsweringUnavailable is a slash command that exists but cannot be used in this conversation.
type SlashCommandAnsweringUnavailable struct{}

// Run returns a message that the command is not available.
func (SlashCommandAnsweringUnavailable) Run(_ context.Context, c slash.Call) (unavailableOutcome *slash.Outcome, noExpansion *slash.Expansion) {
	return new(slash.UnavailableOutcome(c.Name)), nil
}

// DeferredCall is a tool call that a PreToolUse hook deferred in an earlier run, so that the host could ask someone.
type DeferredCall struct {
	Use     protocol.ToolUse
	Message string // uuid of the message with the call
}

// Mention is a file or directory that a prompt mentions with @.
type Mention struct {
	Path             string // as written, without quotes
	FirstLine, Lines int    // first line and number of lines: #L3-5 is 3 and 3; zero means the whole file
}

// MentionContent is a file that a prompt mentions, in the forms for the transcript and for the model.
type MentionContent struct {
	Attachment map[string]any // attachment for the transcript
	Role       string         // as in [protocol.AttachmentAdded]
	Rendered   []string       // texts for the model, as the transcript records them: a call and its result
	Text       string         // text for the model
}

// MentionReader reads the files that prompts mention with @.
type MentionReader interface {
	// Open reads a mentioned file or directory. It returns false if the path is missing or forbidden; the mention is then ordinary text.
	Open(ctx context.Context, m Mention) (MentionContent, bool)
	// ForgetAndRereadAfterCompaction forgets the files that the model has seen. It returns the newest of them, running tasks and loaded skills.
	ForgetAndRereadAfterCompaction(ctx context.Context) []MentionContent
}

// InspectingExecutor runs tool calls and inspects them before they run. It is safe for concurrent use.
type InspectingExecutor interface {
	executor.Executor
	// Prepare inspects a call as the model wrote it.
	Prepare(call protocol.ToolUse) ToolCallChangesBeforeShown
	// Precheck inspects a call immediately before its hooks and its permission check.
	Precheck(ctx context.Context, call protocol.ToolUse) PrecheckResult
	// FirstVisibleEffectOfCall returns the first visible effect of a call, and when it appears.
	FirstVisibleEffectOfCall(ctx context.Context, call protocol.ToolUse) CallStartOrRefusal
}

// CallStartOrRefusal is the first visible effect of a call: the call is refused, or it starts.
type CallStartOrRefusal struct {
	Point         StreamPoint
	Starts        bool // true for hooks, a question, an agent or a result; false if the call is refused
	ToolIsMissing bool // the call is refused because the session does not have the tool
}

// StreamPoint is a point in the stream of a message that contains a call.
type StreamPoint int

// The points of a message's stream at which the first effect of a call can appear. An effect that depends on the file
// system or on a process appears after the message.
const (
	StreamPointAfterMessage            StreamPoint = iota
	StreamPointBeforeBlockStop                     // immediately after the call; used if its hooks start, its tool is unknown or its input has the wrong form
	StreamPointAfterBlockStop                      // before the next block begins; used if an agent starts or the tool refuses the input
	StreamPointOneEventAfterBlockStop              // after the next event of the stream; used if the host is asked or permission is denied
	StreamPointTwoEventsAfterBlockStop             // one event later; used if a skill starts
)

// A ContextSource lists files that the model receives in addition to the results of its calls: instruction files
// (CLAUDE.md, rules) that now apply, and files that changed after the session had written them. [InspectingExecutor] may implement it.
type ContextSource interface {
	// TakeNewContextFiles returns the files to add to the context after these calls have succeeded. The calls belong to the
	// conversation of the agent, or of the session if agent is nil. When an agent starts, calls is empty.
	TakeNewContextFiles(agent *protocol.AgentRef, calls []protocol.ToolUse) []ContextFile
}

// ContextFile is one file that is added to the model's context.
type ContextFile struct {
	Hook       *protocol.InstructionsLoadedHookInput // input of InstructionsLoaded hooks; nil runs none
	Attachment any                                   // attachment for the transcript; nil means none
	Role, Tool string                                // role and tool, as in [protocol.AttachmentAdded]
	Text       string                                // text for the model
}

// ToolCallChangesBeforeShown describes how a call is changed before it is shown.
type ToolCallChangesBeforeShown struct {
	Input        json.RawMessage // replaces the input, for display and execution; nil means no change
	ExecutedName string          // the tool that runs instead of the tool in the call; empty means the tool in the call
	ReadOnly     bool            // the call may run in parallel even if its tool is not read-only
	RunsAlone    bool            // the call must not run in parallel even if its tool is read-only
}

// PrecheckResult is the result of [InspectingExecutor.Precheck].
type PrecheckResult struct {
	ObservedInput json.RawMessage  // input that hooks and hosts see; nil means the input of the call
	Refusal       *executor.Result // result that replaces the run, for example for an unknown tool; nil means the call may run
}

// NonInspectingExecutor converts an executor to Tools that do not inspect calls.
func NonInspectingExecutor(toolExecutor executor.Executor) InspectingExecutor {
	return executorAsUncheckedTools{toolExecutor}
}

type executorAsUncheckedTools struct{ executor.Executor }

func (executorAsUncheckedTools) Prepare(protocol.ToolUse) (noChanges ToolCallChangesBeforeShown) {
	return ToolCallChangesBeforeShown{}
}

func (executorAsUncheckedTools) Precheck(context.Context, protocol.ToolUse) PrecheckResult {
	return PrecheckResult{}
}

func (executorAsUncheckedTools) FirstVisibleEffectOfCall(context.Context, protocol.ToolUse) (effectAfterMessage CallStartOrRefusal) {
	return CallStartOrRefusal{}
}

// startDirAndDefaultMode is the Location that is used if the options set none.
type startDirAndDefaultMode struct{}

func (startDirAndDefaultMode) Dir() string                   { return "" }
func (startDirAndDefaultMode) Mode() protocol.PermissionMode { return protocol.ModeDefault }

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Model == nil, o.Tools == nil, o.Clock == nil, o.State == nil:
		return o, errors.New("simulator: Model, Tools, Clock and State are required")
	case o.State.SessionID() == "":
		return o, errors.New("simulator: State has no session")
	case o.Main != nil && o.Main.Context == nil:
		return o, errors.New("simulator: Main.Context is required")
	}
	o.Location = cmp.Or[DirectoryAndMode](o.Location, startDirAndDefaultMode{})
	o.Limits.Retries = cmp.Or(o.Limits.Retries, 10)
	return o, nil
}

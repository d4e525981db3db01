package protocol

import (
	"encoding/json"
	"time"
)

// Trace is an event without a wire form: something that happened which
// transcripts, the journal and debuggers want to know and stdout does not
// show. It stands in the one ordered stream like every other event.
type Trace interface {
	Event
	trace()
}

// Queued says that a prompt was taken. It precedes everything of the turn.
type Queued struct {
	Content   Content
	Timestamp string
}

// PromptAccepted says that a prompt was taken and a turn begins. It precedes Init.
type PromptAccepted struct {
	UUID           string   // uuid of the prompt's transcript line
	HostID         string   // that uuid if the host gave it
	Merged         []string // the host's ids of earlier prompts that became part of it
	PromptID       string
	Content        Content
	Timestamp      string
	PermissionMode PermissionMode
	Source         string // "sdk" or "system"
	Origin         json.RawMessage
	Refused        bool // a hook kept it out of the conversation
	Injected       bool // text the CLI itself put in (hook feedback, reminders)
	Local          bool // a command of the CLI itself, which the model is not asked
	Absent         bool // a command that the CLI does not have here
	// Expansion is the command that this is, or whose text it is; nil = none.
	Expansion *Expansion
}

// Expansion is a command or a skill whose text the model reads.
type Expansion struct {
	Name  string
	Tools []string // permission rules that it brings
}

// PromptAbsorbed says that a prompt which came while the turn ran has become part of
// it.
type PromptAbsorbed struct {
	UUID      string // of the prompt
	Content   Content
	Origin    json.RawMessage // nil = absent
	Notice    bool            // no prompt, but news of the background
	Timestamp string
}

// Compacted says what stands for the conversation so far, after its boundary
// and before the events that show it.
type Compacted struct {
	Summary *User
	Command *PromptAccepted // that asked for it; nil = none did
	Output  *User           // what it said
	Prompt  string          // uuid of the prompt whose turn goes on; "" = none does
	Reports bool            // the output also says how hooks went
}

// Matched says which rule of the scenario answered a prompt.
type Matched struct {
	Prompt  string
	Rule    string // e.g. "responses[2]", "responses[2].turns[0]", "default_response", "" = none
	File    string // "" = none
	Line    int
	Nearest []string // the rules that come nearest to a prompt that none answers; nil = not asked for

	Injected bool // the CLI itself wrote the prompt
}

// ToolRan says how one call went, after its result was made and before the
// user event that shows it.
type ToolRan struct {
	Use         ToolUse
	Result      ToolResult
	Breakpoints []BreakpointDecision // where the call was stopped, in order of time
	CountDenial bool                 // it belongs into result.permission_denials
	RanWith     json.RawMessage      // the input after hooks and the host; nil = as given
	Started     time.Time
	Duration    time.Duration
}

// Attached is something beside the messages that transcripts keep: a file that
// the prompt mentions, what a hook did.
type Attached struct {
	Attachment any    // an object with a type
	Role       string // of the message the model reads it in, "system" or "user"; empty = it does not
	Rendered   string // the text it reads there; empty = not kept
	AgentID    string // of the agent in whose conversation it is; empty = that of the session
}

// Unmet is an expectation of the scenario that the run did not fulfil.
type Unmet struct {
	Message string // "FILE:LINE:COL: …" where known
}

// CLIRetry is the transcript's view of an API failure that is retried.
type CLIRetry struct {
	Status     int    // 0 = no response
	Message    string // of the API itself
	Body       string // the answer as clients quote it
	RequestID  string // empty = no response, or no JSON
	RetryInMS  int
	Attempt    int
	MaxRetries int
}

// Warning is text for the user on stderr.
type Warning struct{ Text string }

// ContextAdded is what a request says beside its prompt or results and none before it
// said.
type ContextAdded struct{ Texts []string }

// StopHooks says how the hooks at the end of a turn went; for transcripts.
type StopHooks struct {
	Summary   StopSummary
	ToolUseID string // of their attachments
}

// Verbatim is output that a scenario wants as it is: bytes for stdout, which the
// stream of JSON lines alone writes, or text for stderr.
type Verbatim struct {
	Stdout []byte
	Times  int    // of Stdout; 0 = once
	End    []byte // behind the last of them
	Stderr string
}

// HiddenEvent is an event that transcripts keep and stdout does not show: what a
// sub-agent says when nobody asked to hear it.
type HiddenEvent struct{ Event Event }

// AgentUsage is what a sub-agent has used: part of the session's costs, not of its
// turn's usage.
type AgentUsage struct {
	Models map[string]ModelUsage
	APIMS  int // waited for the model
}

// CustomLine is a line for the transcript only.
type CustomLine struct{ Line json.RawMessage }

func (*Queued) event()         {}
func (*Compacted) event()      {}
func (*PromptAccepted) event() {}
func (*PromptAbsorbed) event() {}
func (*Matched) event()        {}
func (*ContextAdded) event()   {}
func (*StopHooks) event()      {}
func (*ToolRan) event()        {}
func (*Attached) event()       {}
func (*Unmet) event()          {}
func (*CLIRetry) event()       {}
func (*Warning) event()        {}
func (*CustomLine) event()     {}
func (*HiddenEvent) event()    {}
func (*Verbatim) event()       {}
func (*AgentUsage) event()     {}

func (*Queued) trace()         {}
func (*Compacted) trace()      {}
func (*PromptAccepted) trace() {}
func (*ContextAdded) trace()   {}
func (*StopHooks) trace()      {}
func (*PromptAbsorbed) trace() {}
func (*Matched) trace()        {}
func (*ToolRan) trace()        {}
func (*Attached) trace()       {}
func (*Unmet) trace()          {}
func (*CLIRetry) trace()       {}
func (*Warning) trace()        {}
func (*CustomLine) trace()     {}
func (*HiddenEvent) trace()    {}
func (*Verbatim) trace()       {}
func (*AgentUsage) trace()     {}

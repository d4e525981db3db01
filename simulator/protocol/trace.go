package protocol

import (
	"encoding/json"
	"time"
)

// HasWireForm reports whether stdout shows the event. The other types of events are declared in this file. Transcripts,
// the journal and debuggers read all events from one ordered stream.
func HasWireForm(ev Event) bool {
	switch ev.(type) {
	case *InitEvent, *AssistantEvent, *UserEvent, *ResultEvent, *StreamEvent, *PermissionDeniedEvent, *APIRetryEvent, *SystemEvent, *Frame:
		return true
	}
	return false
}

// PromptQueued means that a prompt was accepted into the queue. It precedes all other events of the turn.
type PromptQueued struct {
	Content           Content
	Timestamp, Source string // Source as in [PromptAccepted.Source]
}

// PromptAccepted means that a turn begins with this prompt. It precedes Init.
type PromptAccepted struct {
	UUID            string   // uuid of the prompt's transcript line
	HostID          string   // the host's uuid for the prompt, if it gave one
	Merged          []string // the host's ids of earlier prompts that were merged into this one
	PromptID        string
	Content         Content
	Timestamp       string
	PermissionMode  PermissionMode
	Source          string   // "sdk" or "system"
	Preamble        string   // see [UserMessage.Preamble]
	Queued          []string // see [UserMessage.Queued]
	Assistant       []HostAssistantMessage
	Origin          json.RawMessage
	NoQuery         bool             // see [UserMessage.NoQuery]
	Blocked         bool             // a hook refused the prompt, so it is not part of the conversation
	OfHook          bool             // the first message, from a SessionStart hook
	WrittenByCLI    bool             // text that the CLI added (hook feedback, reminders)
	Typed           string           // see [UserMessage.Typed]
	LocalCommand    bool             // a command that runs without the model
	UnknownCommand  bool             // a command that is not available here
	WithoutContext  bool             // the model receives its context with the next prompt
	CommandFallback *AttachmentAdded // tells the model that no command has the name in the prompt; nil means that the prompt names no unknown command
	Expansion       *ExpandedCommand // the command that the prompt calls, or the command whose text is the prompt; nil means none
}

// HostCommandRan is a command that a host has run between two prompts. It belongs to the next prompt.
type HostCommandRan struct {
	Command *PromptAccepted
	Output  *UserEvent
}

// ExpandedCommand describes a command or skill whose text was added to the conversation.
type ExpandedCommand struct {
	Name     string
	Tools    []string // permission rules that the command grants
	Model    string   // model that the command sets; empty means none
	Reminds  bool     // the text only reminds the model of instructions that it has received before
	UsedTool string   // tool that counts as used because of the command: Bash, or the prompt of a server; empty means none
}

// PromptAbsorbed means that a prompt that arrived during the turn became part of the turn.
type PromptAbsorbed struct {
	UUID      string // UUID of the prompt
	Content   Content
	Origin    json.RawMessage // nil means absent
	Notice    bool            // a notice about a background task, not a prompt
	Timestamp string
}

// ConversationCompacted means that a summary replaces the conversation. It follows the compact_boundary event and
// precedes the events that show the summary.
type ConversationCompacted struct {
	Summary        *UserEvent
	Command        *PromptAccepted    // the command that requested the compaction; nil if automatic
	Output         *UserEvent         // output of the command
	Prompt         string             // uuid of the prompt whose turn continues; empty if none
	HasHookReports bool               // Output includes reports of hooks
	Restored       []*AttachmentAdded // what the model is told again
}

// RuleMatchOutcome reports the rule of the scenario that answered a prompt, or that no rule did.
type RuleMatchOutcome struct {
	AgentID string // the agent that asked; empty means the main conversation
	Prompt  string
	Rule    string // "responses[2]", "responses[2].turns[0]", "default_response", or empty if none
	File    string // empty if none
	Line    int
	Nearest []string // closest rules, if no rule matched and the session reports them

	WrittenByCLI bool // the CLI wrote the prompt
}

// ToolExecuted describes one finished call. It precedes the user event with the result.
type ToolExecuted struct {
	Use           ToolUse
	Result        ToolResult
	Breakpoints   []BreakpointDecision // decisions at breakpoints, in order
	CountDenial   bool                 // the call is listed in result.permission_denials
	ExecutedInput json.RawMessage      // input after hooks and the host; nil if unchanged
	Duration      time.Duration
}

// AttachmentAdded is context, other than messages, that transcripts record: a mentioned file, or the outcome of a hook.
type AttachmentAdded struct {
	Attachment        any      // an object with a type
	Role              string   // "system" or "user", the role of the message in which the model receives the text; empty means no message
	Rendered          []string // texts for the model, without the tags of reminders; nil if they are not recorded
	Tool              string   // built-in tool that counts as used because of the attachment (for tools-used); empty means none
	AgentID           string   // agent to whose conversation the attachment belongs; empty for the main conversation
	UUID              string   // empty means a new uuid
	FollowsAllResults bool     // the attachment follows the results of all calls of a reply, and belongs to none of them
}

// UnmetExpectation is an expectation of the scenario that the run did not meet.
type UnmetExpectation struct {
	Message string // begins with "FILE:LINE:COL: " if the position is known
}

// FailedAPIRequestBeforeRetry is a failed API request that the CLI retries. Transcripts record it.
type FailedAPIRequestBeforeRetry struct {
	Status                         int    // 0 if there was no response
	Message                        string // message of the API
	Body                           string // body of the response, as clients quote it in errors
	RequestID                      string // empty if there was no JSON response
	RetryInMS, Attempt, MaxRetries int
}

// RequestRepeated means that the CLI sends a failed request again: at once or, for a sub-agent, after a wait. Transcripts record it.
type RequestRepeated struct {
	Attempt          int  // number of the repetition, from 1; 0 means that the request has the same form as the failed one
	WithoutStreaming bool // the API sends the reply as a whole; otherwise each attempt leaves out other optional parts
	AgentID          string
}

// StderrWarning is a text that the user sees on stderr.
type StderrWarning struct{ Text string }

// ContextAdded contains texts that a request adds to its prompt or results. No earlier request contained them.
type ContextAdded struct{ Texts []string }

// StopHooksRan summarizes the hooks at the end of a turn, for transcripts.
type StopHooksRan struct {
	Summary   StopHookSummary
	ToolUseID string // id used in the attachments of these hooks
}

// VerbatimOutput is output that is written exactly as the scenario contains it. Stdout is written only if the output format is stream-json.
type VerbatimOutput struct {
	Stdout []byte
	Times  int    // how many times Stdout is written; 0 means once
	End    []byte // written after the last repetition
	Stderr string
}

// TranscriptOnlyEvent is an event that is recorded in transcripts but not shown on stdout, such as the messages of a
// sub-agent whose output was not requested.
type TranscriptOnlyEvent struct{ Event Event }

// AgentUsage is the usage of a sub-agent. It is part of the session's costs, but not of the turn's usage.
type AgentUsage struct {
	Models            map[string]ModelUsage
	APIMS             int  // time spent waiting for the model
	BeforeAwaitedWork bool // true if the main conversation waits for the agent, and the agent is about to run calls or hooks
}

// TurnPromptWithdrawnByUser means that the user has taken the prompt of the turn back before the model answered.
type TurnPromptWithdrawnByUser struct{}

// RawTranscriptOnlyLine is an event that adds a finished JSON line to the transcript and is not written to the stream.
type RawTranscriptOnlyLine struct{ Line json.RawMessage }

func (*PromptQueued) event()                {}
func (*ConversationCompacted) event()       {}
func (*PromptAccepted) event()              {}
func (*PromptAbsorbed) event()              {}
func (*HostCommandRan) event()              {}
func (*RuleMatchOutcome) event()            {}
func (*ContextAdded) event()                {}
func (*StopHooksRan) event()                {}
func (*ToolExecuted) event()                {}
func (*AttachmentAdded) event()             {}
func (*UnmetExpectation) event()            {}
func (*FailedAPIRequestBeforeRetry) event() {}
func (*RequestRepeated) event()             {}
func (*StderrWarning) event()               {}
func (*TurnPromptWithdrawnByUser) event()   {}
func (*RawTranscriptOnlyLine) event()       {}
func (*TranscriptOnlyEvent) event()         {}
func (*VerbatimOutput) event()              {}
func (*AgentUsage) event()                  {}

// AgentLaunch describes how an agent was started.
type AgentLaunch struct {
	Name, Model                  string // as in the call; empty means that the call has none
	InBackground, OfSkill        bool
	WorktreePath, WorktreeBranch string // the agent's worktree; empty means that it has none, or that it was removed
}

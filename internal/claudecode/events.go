package claudecode

import (
	"slices"
	"strings"
)

// HookOutputIntroductionPrefix begins the line with which requests introduce the output of a hook (observed since 2.1.331).
const HookOutputIntroductionPrefix = "The text below is the output of a hook"

// IsContinuationRequestOfCLIToModel reports whether a text is a request of the CLI to the model to continue.
func IsContinuationRequestOfCLIToModel(messageText string) bool {
	starts := []string{"Output token limit hit.", "Your response above was ", "[Your previous response had no visible output."}
	return slices.ContainsFunc(starts, func(s string) bool { return strings.HasPrefix(messageText, s) })
}

// HookEvent is one event at which hooks can run. The type for the input of its hooks is in package protocol. The rules
// for their output are in package hook.
type HookEvent struct {
	Name         string
	Summary      string // description in lists for hosts
	ListPosition int    // position in lists for hosts, from 0
	HasMatcher   bool   // a matcher selects which hooks run
	// CanBlock is true if exit status 2 of a hook blocks an action or gives feedback. Otherwise,
	// status 2 is an ordinary error.
	CanBlock bool
	// CanGuardPermissions is true if a hook for the event may protect permissions. Therefore the CLI ignores a whole
	// settings file if a hook for the event is invalid.
	CanGuardPermissions bool
	// DecidesPermission is true if the output of a hook can contain a permission decision.
	DecidesPermission bool
	// TextIsContext is true if printed text that is not JSON becomes context for the model.
	TextIsContext bool
	// PrecedesPrompt is true if the event comes right before a prompt, PrecedesEnd if it comes right before the end of a reply.
	PrecedesPrompt, PrecedesEnd bool
	// FramesOnly is true if the output of the event's hooks appears in frames for the host, but not in the transcript.
	FramesOnly bool
}

// HookEvents lists the events in the order in which messages name them.
func HookEvents() []HookEvent { return slices.Clone(hookEvents[:]) }

// HookEventNamed returns the event with a name; the zero value means unknown.
func HookEventNamed(name string) HookEvent {
	for i := range hookEvents {
		if hookEvents[i].Name == name {
			return hookEvents[i]
		}
	}
	return HookEvent{}
}

var hookEvents = [...]HookEvent{
	{Name: "PreToolUse", Summary: "Before tool execution", ListPosition: 0, HasMatcher: true, CanBlock: true, CanGuardPermissions: true, DecidesPermission: true},
	{Name: "PostToolUse", Summary: "After tool execution", ListPosition: 1, HasMatcher: true, CanBlock: true},
	{Name: "PostToolUseFailure", Summary: "After tool execution fails", ListPosition: 2, HasMatcher: true, CanBlock: true},
	{Name: "PostToolBatch", Summary: "After a batch of tool calls resolves", ListPosition: 3, CanBlock: true},
	{Name: "Notification", Summary: "When notifications are sent", ListPosition: 5, HasMatcher: true},
	{Name: "UserPromptSubmit", Summary: "When the user submits a prompt", ListPosition: 6, CanBlock: true, TextIsContext: true, PrecedesPrompt: true},
	{Name: "UserPromptExpansion", Summary: "When a user-typed slash command expands into a prompt", ListPosition: 7, HasMatcher: true, CanBlock: true, TextIsContext: true, PrecedesPrompt: true},
	{Name: "SessionStart", Summary: "When a new session is started", ListPosition: 8, HasMatcher: true, TextIsContext: true},
	{Name: "SessionEnd", Summary: "When a session is ending", ListPosition: 17, HasMatcher: true},
	{Name: "Stop", Summary: "Right before Claude concludes its response", ListPosition: 9, CanBlock: true, PrecedesEnd: true},
	{Name: "StopFailure", Summary: "When the turn ends due to an API error", ListPosition: 10, HasMatcher: true},
	{Name: "SubagentStart", Summary: "When a subagent (Agent tool call) is started", ListPosition: 11, HasMatcher: true},
	{Name: "SubagentStop", Summary: "Right before a subagent (Agent tool call) concludes its response", ListPosition: 12, HasMatcher: true, CanBlock: true, PrecedesEnd: true},
	{Name: "PreCompact", Summary: "Before conversation compaction", ListPosition: 13, HasMatcher: true, CanBlock: true},
	{Name: "PostCompact", Summary: "After conversation compaction", ListPosition: 14, HasMatcher: true},
	{Name: "PreModelSwitch", Summary: "Before a requested model switch (/model, model picker, set_model)", ListPosition: 15, HasMatcher: true, CanBlock: true, DecidesPermission: true},
	{Name: "PostModelSwitch", Summary: "After the session model changes (any cause)", ListPosition: 16, HasMatcher: true},
	{Name: "PermissionRequest", Summary: "When a permission dialog is displayed", ListPosition: 18, HasMatcher: true, CanBlock: true, CanGuardPermissions: true, FramesOnly: true},
	{Name: "PermissionDenied", Summary: "After auto mode denies a tool call", ListPosition: 4, HasMatcher: true},
	{Name: "Setup", Summary: "Repo setup hooks for init and maintenance", ListPosition: 19, HasMatcher: true},
	{Name: "TeammateIdle", Summary: "When a teammate is about to go idle", ListPosition: 20, CanBlock: true},
	{Name: "TaskCreated", Summary: "When a task is being created", ListPosition: 21, CanBlock: true},
	{Name: "TaskCompleted", Summary: "When a task is being marked as completed", ListPosition: 22, CanBlock: true},
	{Name: "Elicitation", Summary: "When an MCP server requests user input (elicitation)", ListPosition: 23, HasMatcher: true, CanBlock: true},
	{Name: "ElicitationResult", Summary: "After a user responds to an MCP elicitation", ListPosition: 24, HasMatcher: true, CanBlock: true},
	{Name: "ConfigChange", Summary: "When configuration files change during a session", ListPosition: 25, HasMatcher: true, CanBlock: true},
	{Name: "WorktreeCreate", Summary: "Create an isolated worktree for VCS-agnostic isolation", ListPosition: 27, CanBlock: true},
	{Name: "WorktreeRemove", Summary: "Remove a previously created worktree", ListPosition: 28},
	{Name: "InstructionsLoaded", Summary: "When an instruction file (CLAUDE.md or rule) is loaded", ListPosition: 26, HasMatcher: true, FramesOnly: true},
	{Name: "CwdChanged", Summary: "After the working directory changes", ListPosition: 29},
	{Name: "FileChanged", Summary: "When a watched file changes", ListPosition: 30, HasMatcher: true},
	{Name: "DirectoryAdded", Summary: "After a working directory is added mid-session", ListPosition: 31, HasMatcher: true},
	{Name: "MessageDisplay", Summary: "While assistant message text is displayed", ListPosition: 32, FramesOnly: true},
}

package claudecode

import "slices"

// HookEvent is one event that hooks can have. Its input is a type of the package
// protocol, its output a row of the package hook.
type HookEvent struct {
	Name    string
	Summary string // in lists for hosts
	Place   int    // in lists for hosts, from 0
	Matched bool   // a matcher decides which hooks run
	// Blocks says that hooks can block something, or give feedback, with exit
	// status 2. For other events that status is an ordinary error.
	Blocks bool
	// Guards says that hooks of the event may guard permissions. If one of them is invalid, its whole settings file
	// is left out.
	Guards bool
	// Decides says that hooks give a permission decision.
	Decides bool
	// PlainText says that printed text that is not JSON is context for the model.
	PlainText bool
	// Prompt says that the event precedes a prompt, End that it precedes the end of a
	// conversation.
	Prompt, End bool
	// Unseen says that hooks of the event are visible only by their frames and failures.
	Unseen bool
}

// HookEvents lists the events in the order in which messages name them.
func HookEvents() []HookEvent { return slices.Clone(hookEvents[:]) }

// HookEventNamed returns the event with a name; the zero value = unknown.
func HookEventNamed(name string) HookEvent {
	for i := range hookEvents {
		if hookEvents[i].Name == name {
			return hookEvents[i]
		}
	}
	return HookEvent{}
}

var hookEvents = [...]HookEvent{
	{Name: "PreToolUse", Summary: "Before tool execution", Place: 0, Matched: true, Blocks: true, Guards: true, Decides: true},
	{Name: "PostToolUse", Summary: "After tool execution", Place: 1, Matched: true, Blocks: true},
	{Name: "PostToolUseFailure", Summary: "After tool execution fails", Place: 2, Matched: true, Blocks: true},
	{Name: "PostToolBatch", Summary: "After a batch of tool calls resolves", Place: 3, Blocks: true},
	{Name: "Notification", Summary: "When notifications are sent", Place: 5, Matched: true},
	{Name: "UserPromptSubmit", Summary: "When the user submits a prompt", Place: 6, Blocks: true, PlainText: true, Prompt: true},
	{Name: "UserPromptExpansion", Summary: "When a user-typed slash command expands into a prompt", Place: 7, Matched: true, Blocks: true, PlainText: true, Prompt: true},
	{Name: "SessionStart", Summary: "When a new session is started", Place: 8, Matched: true, PlainText: true},
	{Name: "SessionEnd", Summary: "When a session is ending", Place: 17, Matched: true},
	{Name: "Stop", Summary: "Right before Claude concludes its response", Place: 9, Blocks: true, End: true},
	{Name: "StopFailure", Summary: "When the turn ends due to an API error", Place: 10, Matched: true},
	{Name: "SubagentStart", Summary: "When a subagent (Agent tool call) is started", Place: 11, Matched: true},
	{Name: "SubagentStop", Summary: "Right before a subagent (Agent tool call) concludes its response", Place: 12, Matched: true, Blocks: true, End: true},
	{Name: "PreCompact", Summary: "Before conversation compaction", Place: 13, Matched: true, Blocks: true},
	{Name: "PostCompact", Summary: "After conversation compaction", Place: 14, Matched: true},
	{Name: "PreModelSwitch", Summary: "Before a requested model switch (/model, model picker, set_model)", Place: 15, Matched: true, Blocks: true, Decides: true},
	{Name: "PostModelSwitch", Summary: "After the session model changes (any cause)", Place: 16, Matched: true},
	{Name: "PermissionRequest", Summary: "When a permission dialog is displayed", Place: 18, Matched: true, Blocks: true, Guards: true, Unseen: true},
	{Name: "PermissionDenied", Summary: "After auto mode denies a tool call", Place: 4, Matched: true},
	{Name: "Setup", Summary: "Repo setup hooks for init and maintenance", Place: 19, Matched: true},
	{Name: "TeammateIdle", Summary: "When a teammate is about to go idle", Place: 20, Blocks: true},
	{Name: "TaskCreated", Summary: "When a task is being created", Place: 21, Blocks: true},
	{Name: "TaskCompleted", Summary: "When a task is being marked as completed", Place: 22, Blocks: true},
	{Name: "Elicitation", Summary: "When an MCP server requests user input (elicitation)", Place: 23, Matched: true, Blocks: true},
	{Name: "ElicitationResult", Summary: "After a user responds to an MCP elicitation", Place: 24, Matched: true, Blocks: true},
	{Name: "ConfigChange", Summary: "When configuration files change during a session", Place: 25, Matched: true, Blocks: true},
	{Name: "WorktreeCreate", Summary: "Create an isolated worktree for VCS-agnostic isolation", Place: 27, Blocks: true},
	{Name: "WorktreeRemove", Summary: "Remove a previously created worktree", Place: 28},
	{Name: "InstructionsLoaded", Summary: "When an instruction file (CLAUDE.md or rule) is loaded", Place: 26, Matched: true, Unseen: true},
	{Name: "CwdChanged", Summary: "After the working directory changes", Place: 29},
	{Name: "FileChanged", Summary: "When a watched file changes", Place: 30, Matched: true},
	{Name: "DirectoryAdded", Summary: "After a working directory is added mid-session", Place: 31, Matched: true},
	{Name: "MessageDisplay", Summary: "While assistant message text is displayed", Place: 32, Unseen: true},
}
